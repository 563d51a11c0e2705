"""A model with known parameters, against exact calculations."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import laplace, multivariate_normal, norm

from noisyica import Model, priors
from tests.tools import TRUE_PRIORS, some_slow


def bernoulli_gaussian(p=3, d=5, alpha=0.4, sigma2=0.5, shift=0.0):
    rng = np.random.default_rng(0)
    return Model(
        rng.normal(size=(d, p)), rng.normal(size=d), sigma2, priors.BernoulliGaussian(alpha, shift)
    )


def enumerate_posterior(model, X):
    """Return the exact log p(x), posterior mean and P(on) of a BG model, by all 2^p patterns."""
    A, s2 = model.mixing, model.noise_variance
    d, p = A.shape
    alpha, shift = model.prior.alpha, model.prior.shift
    logs, means, patterns = [], [], np.array(list(itertools.product((0, 1), repeat=p)))
    for pattern in patterns:
        B = A * pattern
        centre = model.mean + B.sum(1) * shift
        covariance = B @ B.T + s2 * np.eye(d)
        k = pattern.sum()
        logs.append(
            multivariate_normal(centre, covariance).logpdf(X)
            + k * np.log(alpha)
            + (p - k) * np.log(1 - alpha)
        )
        means.append(pattern * (shift + (X - centre) @ np.linalg.solve(covariance, B)))
    logs = np.array(logs)
    total = logsumexp(logs, axis=0)
    weights = np.exp(logs - total)
    return total, np.einsum("kn,knp->np", weights, np.array(means)), weights.T @ patterns


@pytest.mark.parametrize("sampler", ["gibbs", "metropolis"])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_posterior_agrees_with_enumeration(shift, sampler):
    model = bernoulli_gaussian(shift=shift)
    X, _ = model.sample(40, random_state=1)
    _, mean, on = enumerate_posterior(model, X)
    n_draws = 4000
    # proposals from the prior are seldom accepted: that chain needs more sweeps to tell as much
    sweeps = {"gibbs": {}, "metropolis": {"thin": 20, "n_warmup": 1000}}[sampler]
    draws = model.posterior_sample(X, n_draws=n_draws, sampler=sampler, random_state=2, **sweeps)
    assert draws.shape == (n_draws, 40, 3)
    for drawn, exact in ((draws, mean), (draws != 0, on)):
        batches = drawn.reshape(40, 100, 40, 3).mean(
            1
        )  # 40 batches: their spread is the Monte-Carlo error
        z = (batches.mean(0) - exact) / (batches.std(0) / np.sqrt(40) + 1e-3)
        assert np.abs(z).max() < 5.0
        assert np.square(z).mean() < 1.6


def test_posterior_mean_agrees_with_enumeration():
    model = bernoulli_gaussian()
    X, _ = model.sample(200, random_state=3)
    exact = enumerate_posterior(model, X)[1]
    np.testing.assert_allclose(model.posterior_mean(X), exact, atol=1e-9)


def test_log_likelihood_agrees_with_enumeration():
    model = bernoulli_gaussian(p=10, d=12)
    X, _ = model.sample(300, random_state=4)
    exact = enumerate_posterior(model, X)[0]
    estimate, error = model.log_likelihood(X, return_std=True)
    np.testing.assert_allclose(estimate, exact, rtol=1e-9)
    np.testing.assert_array_equal(error, 0)
    estimate, error = model.log_likelihood(X, method="annealed", return_std=True)
    z = (estimate - exact) / error
    # 32 particles: Student's t of 31 degrees of freedom, of variance 31 / 29 and kurtosis 3.2, were
    # weights normal
    assert abs(z.mean()) < 4 * np.sqrt(1.07 / 300)
    assert abs(z.var() - 1.07) < 4 * np.sqrt(2.2 / 300) * 1.07 + 0.1
    assert np.abs(z).max() < 5
    assert error.mean() < 0.1
    with pytest.raises(ValueError, match="method='exact' needs"):
        model.log_likelihood(np.where(np.arange(12) == 3, np.nan, X), method="exact")
    with pytest.raises(ValueError, match="method='ais' is not known"):
        model.log_likelihood(X, method="ais")


@pytest.mark.parametrize("name", some_slow(["lap", "ebg", "teoff"], "ebg", "teoff"))
def test_log_likelihood_agrees_with_simulation(name):
    """p(x) as the prior's average of the Gaussian likelihood, with its standard error."""
    rng = np.random.default_rng(5)
    model = Model(rng.normal(size=(3, 2)), noise_variance=1.0, prior=TRUE_PRIORS[name])
    X, _ = model.sample(8, random_state=0)
    clean, _ = Model(model.mixing, noise_variance=1e-12, prior=model.prior).sample(
        200_000, random_state=1
    )
    estimate, error = model.log_likelihood(X, method="annealed", return_std=True)
    for x, value, own in zip(X, estimate, error, strict=True):
        values = np.exp(-0.5 * np.square(x - clean).sum(1)) / (2 * np.pi) ** 1.5
        standard_error = values.std() / values.mean() / np.sqrt(len(values))
        assert value == pytest.approx(np.log(values.mean()), abs=4 * np.hypot(standard_error, own))


def test_simulation_has_the_model_s_moments():
    model = bernoulli_gaussian(alpha=0.4, shift=1.0)
    X, beta = model.sample(200_000, random_state=0)
    variance = 0.4 * 2 - 0.16
    covariance = variance * model.mixing @ model.mixing.T + 0.5 * np.eye(5)
    expected = model.mean + 0.4 * model.mixing.sum(1)
    assert np.abs((X.mean(0) - expected) / np.sqrt(np.diag(covariance) / 2e5)).max() < 4.5
    assert np.abs(np.cov(X.T) - covariance).max() < 0.05 * covariance.max()
    assert (beta == 0).mean() == pytest.approx(0.6, abs=4.5 * np.sqrt(0.24 / 6e5))


def test_complete_log_density():
    model = bernoulli_gaussian(shift=1.0)
    X, beta = model.sample(30, random_state=0)
    gaussian = norm(model.mean + beta @ model.mixing.T, np.sqrt(0.5)).logpdf(X).sum(1)
    prior = np.where(beta == 0, np.log(0.6), np.log(0.4) + norm(1.0).logpdf(beta)).sum(1)
    np.testing.assert_allclose(model.complete_log_density(X, beta), gaussian + prior, rtol=1e-10)
    ternary = Model(
        model.mixing, noise_variance=0.5, prior=priors.SingleScaleTernaryOffset(0.2, 1.5)
    )
    beta = np.array([[0.7, 0.0, -0.7], [0.0, 0.0, 0.0], [0.7, 0.2, 0.0]])
    density = ternary.complete_log_density(X[:3], beta, offset=np.ones(3))
    gaussian = norm(1 + beta @ model.mixing.T, np.sqrt(0.5)).logpdf(X[:3]).sum(1) + laplace(
        scale=1.5
    ).logpdf(1.0)
    expected = [2 * np.log(0.2) + np.log(0.6) - 0.7, 3 * np.log(0.6), -np.inf]
    np.testing.assert_allclose(density, gaussian + expected, rtol=1e-10)


def test_a_row_s_posterior_mean_depends_on_the_row_alone():
    model = Model(bernoulli_gaussian().mixing, noise_variance=0.5, prior="lap")
    X, _ = model.sample(50, random_state=0)
    together = model.posterior_mean(X)
    np.testing.assert_array_equal(model.posterior_mean(X[::-1])[::-1], together)
    np.testing.assert_allclose(model.posterior_mean(X[7:8]), together[7:8], rtol=1e-6, atol=1e-6)
    assert not np.array_equal(model.posterior_mean(X, random_state=1), together)


def test_seeds():
    model = bernoulli_gaussian()
    one, two, other = (model.sample(5, random_state=s)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    draws = [model.posterior_sample(one, n_draws=3, random_state=9) for _ in range(2)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mixing": np.ones(3)}, "Expected 2D array"),
        ({"mean": np.ones(3)}, "mean must be 5 finite numbers"),
        ({"noise_variance": -1.0}, "noise_variance must be one positive number, or"),
        ({"noise_variance": np.nan}, "noise_variance must be one positive number, or"),
        ({"prior": "gauss"}, "Unknown prior 'gauss'"),
        ({"prior": "teoff"}, "random offset instead of a mean"),
    ],
)
def test_bad_parameters(change, message):
    good = {"mixing": np.ones((5, 2)), "mean": np.ones(5), "noise_variance": 1.0, "prior": "bg"}
    with pytest.raises(ValueError, match=message):
        Model(**(good | change))


def test_bad_data():
    model = bernoulli_gaussian()
    with pytest.raises(ValueError, match="X has 4 columns, but the model has 5 dimensions"):
        model.posterior_mean(np.ones((3, 4)))
    with pytest.raises(ValueError, match="NaN"):
        model.posterior_sample(np.full((3, 5), np.nan))
    with pytest.raises(ValueError, match="n_draws must be an integer of at least 1"):
        model.posterior_sample(np.ones((3, 5)), n_draws=0)
    with pytest.raises(ValueError, match="sampler must be 'gibbs' or 'metropolis'"):
        model.posterior_sample(np.ones((3, 5)), sampler="nuts")
    with pytest.raises(ValueError, match="n_samples must be a positive integer"):
        model.sample(0)
    with pytest.raises(ValueError, match="beta must have shape"):
        model.complete_log_density(np.ones((3, 5)), np.ones((3, 4)))


def test_repr():
    assert (
        repr(bernoulli_gaussian()) == "Model(3 components in 5 dimensions, noise_variance=0.5, "
        "prior=BernoulliGaussian(alpha=0.4))"
    )
    assert jax.tree.leaves(bernoulli_gaussian().prior)
