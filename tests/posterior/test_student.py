"""Answers of a model with Student noise against quadrature, and what refuses it."""

import copy

import numpy as np
import pytest
from scipy import stats

from noisyica import Model, NoisyICA, priors
from noisyica.posterior.offsets import offsets

DOF, NOISE = 3.0, 0.3
GRID = np.linspace(-14, 14, 7001)  # with zero in the middle
STEP = GRID[1] - GRID[0]


def one_component(prior, n=60, d=6):
    """Return a model with one component, and rows: some outlying, some with entries missing."""
    A = np.random.default_rng(0).normal(size=(d, 1))
    model = Model(A, noise_variance=NOISE, prior=prior, noise_dof=DOF)
    X, _ = model.sample(n, random_state=1)
    X[0] += 3 * A[:, 0]
    X[1] = 3 * np.random.default_rng(2).normal(size=d)
    X[n // 2 :, 2:4] = np.nan
    return model, X


def log_t(model, x, beta):
    """Return the log density of the observed entries of x given coefficients (m,)."""
    seen = ~np.isnan(x)
    law = stats.multivariate_t(shape=NOISE * np.eye(seen.sum()), df=DOF)
    return law.logpdf(x[seen] - np.outer(beta, model.mixing[seen, 0])).reshape(-1)


PRIORS = {
    "bg": (priors.BernoulliGaussian(0.4), 0.6, 0.4 * stats.norm.pdf(GRID)),
    "lap": (priors.Laplace(), 0.0, stats.laplace.pdf(GRID)),
    "te": (priors.SingleScaleTernary(0.2), 0.6, 0.2 * np.exp(-np.abs(GRID))),
}


def by_quadrature(name, model, X):
    """Return log p(x), the posterior mean of the coefficient, and P(it is not zero) of rows."""
    _, at_zero, density = PRIORS[name]
    answers = []
    for x in X:
        on = np.exp(log_t(model, x, GRID)) * density * STEP
        total = on.sum() + at_zero * np.exp(log_t(model, x, np.zeros(1))[0])
        answers.append((np.log(total), (on * GRID).sum() / total, on.sum() / total))
    return np.array(answers).T


@pytest.mark.parametrize("name", PRIORS)
def test_likelihood_against_quadrature(name):
    model, X = one_component(PRIORS[name][0])
    exact = by_quadrature(name, model, X)[0]
    value, error = model.log_likelihood(X, return_std=True, verbose=False)
    assert (error < 0.3).all()
    z = (value - exact) / error
    assert np.abs(z).max() < 5
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.5  # the error is as large as it says
    ratio = np.exp(value - exact)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(X))


@pytest.mark.parametrize("name", ["bg", pytest.param("te", marks=pytest.mark.slow)])
def test_posterior_against_quadrature(name):
    model, X = one_component(PRIORS[name][0], n=20)
    _, mean, on = by_quadrature(name, model, X)
    posterior = model.posterior(X, n_draws=2000, n_chains=8, random_state=0, verbose=False)
    for draws, exact in ((posterior.draws, mean), (posterior.draws != 0, on)):
        chains = draws[..., 0].mean(1)
        error = chains.std(0, ddof=1) / np.sqrt(len(chains)) + 1e-3
        # of eight chains: the 1 - 1e-4 quantile of a t law with 7 degrees of freedom is 7
        assert (np.abs(chains.mean(0) - exact) < 7 * error).all()
    estimate, error = model.posterior_mean(X, n_draws=800, return_std=True, verbose=False)
    assert (error > 0).all()  # an average over draws: nothing is enumerated
    assert np.abs(estimate[:, 0] - mean).max() < 0.1


def test_chains_of_coupled_coefficients_against_quadrature():
    """Two components are nearly the same: all coefficients of a row may jump at once."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=6)
    A = np.column_stack([first, first + 0.1 * rng.normal(size=6)])
    model = Model(A, noise_variance=NOISE, prior="bg", noise_dof=DOF)
    X, _ = model.sample(8, random_state=1)
    grid = np.linspace(-5, 5, 401)
    step = grid[1] - grid[0]
    values, weights = np.append(grid, 0.0), np.append(0.5 * stats.norm.pdf(grid) * step, 0.5)
    one, other = np.meshgrid(values, values, indexing="ij")
    both = np.stack([one.ravel(), other.ravel()], 1)
    prior = np.outer(weights, weights).ravel()
    law = stats.multivariate_t(shape=NOISE * np.eye(6), df=DOF)
    posterior = model.posterior(X, n_draws=2000, n_chains=8, random_state=0, verbose=False)
    chains = posterior.draws.mean(1)
    error = chains.std(0, ddof=1) / np.sqrt(8) + 2e-3
    for i, x in enumerate(X):
        share = np.exp(law.logpdf(x - both @ A.T)) * prior
        exact = share @ both / share.sum()
        assert (np.abs(chains.mean(0)[i] - exact) < 7 * error[i]).all()


@pytest.mark.parametrize("name", PRIORS)
def test_the_mode_is_the_best_of_a_grid(name):
    model, X = one_component(PRIORS[name][0], n=20)
    found = model.map_objective(X, model.map(X, verbose=False))
    tried = [model.map_objective(X, np.full((20, 1), value)) for value in GRID[::10]]
    assert (found <= np.min(tried, 0) + 1e-9).all()


def test_complete_log_density_is_that_of_the_t_law():
    model, X = one_component(priors.BernoulliGaussian(0.4), n=10)
    beta = np.random.default_rng(0).normal(size=(10, 1))
    expected = [log_t(model, x, b)[0] for x, b in zip(X, beta, strict=True)]
    expected += np.log(0.4) + stats.norm.logpdf(beta[:, 0])
    np.testing.assert_allclose(model.complete_log_density(X, beta), expected, rtol=1e-10)


def test_samples_have_t_noise():
    A = np.random.default_rng(0).normal(size=(5, 2))
    model = Model(A, mean=np.arange(5.0), noise_variance=NOISE, prior="bg", noise_dof=DOF)
    X, beta = model.sample(4000, random_state=0)
    left = X - np.arange(5) - beta @ A.T
    squares = np.square(left).sum(1) / 5 / NOISE
    assert stats.kstest(squares, stats.f(5, DOF).cdf).pvalue > 1e-3
    normal = Model(A, mean=np.arange(5.0), noise_variance=NOISE, prior="bg")
    assert np.array_equal(normal.sample(4000, random_state=0)[1], beta)


@pytest.mark.slow
def test_many_degrees_of_freedom_are_normal_noise():
    A = np.random.default_rng(0).normal(size=(5, 2))
    normal, student = (Model(A, noise_variance=NOISE, prior="bg", noise_dof=k) for k in (None, 1e6))
    X, beta = normal.sample(20, random_state=0)
    exact = normal.log_likelihood(X, verbose=False)
    value, error = student.log_likelihood(X, return_std=True, verbose=False)
    assert (np.abs(value - exact) < 5 * error).all()
    np.testing.assert_allclose(
        student.complete_log_density(X, beta), normal.complete_log_density(X, beta), rtol=1e-3
    )
    np.testing.assert_allclose(
        student.map(X, verbose=False), normal.map(X, verbose=False), atol=1e-4
    )


def test_offsets_of_rows_by_quadrature():
    d = 4
    A = np.random.default_rng(0).normal(size=(d, 1))
    model = Model(A, noise_variance=NOISE, prior=priors.Offset("bg", 1.0), noise_dof=DOF)
    X, beta = model.sample(6, random_state=0)
    X[0, 0] += 5
    law = stats.multivariate_t(shape=NOISE * np.eye(d), df=DOF)
    left = X - beta @ A.T
    exact = []
    for row in left:
        share = np.exp(law.logpdf(row - GRID[:, None])) * stats.laplace.pdf(GRID)
        exact.append((share * GRID).sum() / share.sum())
    # an average over twenty draws of the weights
    assert np.abs(offsets(model, X, beta) - exact).max() < 0.15
    assert np.isfinite(offsets(model, X, beta, seed=1)).all()


def test_copies_know_the_degrees_of_freedom():
    model = Model(np.eye(3), noise_variance=NOISE, prior="bg", noise_dof=DOF)
    assert repr(copy.deepcopy(model)) == repr(model)
    assert "noise_dof=3" in repr(model)
    assert "noise_dof" not in repr(Model(np.eye(3)))


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("method", ["exact", "annealed"])
def test_other_methods_of_the_likelihood_refuse_it(method):
    model = Model(np.eye(3), prior="bg", noise_dof=DOF)
    with pytest.raises(ValueError, match="does not know Student noise.*'sequential'"):
        model.log_likelihood(np.ones((2, 3)), method=method)


@pytest.mark.parametrize("dof", [0.0, -1.0, np.nan, np.inf])
def test_impossible_degrees_of_freedom(dof):
    with pytest.raises(ValueError, match="noise_dof must be a positive number"):
        Model(np.eye(3), noise_dof=dof)


@pytest.mark.slow
def test_standard_errors_know_it():
    X = np.random.default_rng(0).normal(size=(60, 4))
    ica = NoisyICA(2, noise="student", max_iter=5, n_init=1, tol=0, random_state=0, verbose=False)
    ica.fit(X)
    errors = ica.standard_errors(X)
    assert "noise_dof" in errors
    assert np.isfinite(errors["components"]).all()
