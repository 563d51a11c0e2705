"""A drawn with the coefficients: its conditional, what it cures, and the number of components."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica._jax.arrays import cast
from noisyica.engine.mixing import NormalColumns, normal
from noisyica.engine.regression import least_squares
from noisyica.engine.statistics import collect
from noisyica.posterior.parameters import Parameters
from tests.blocks import block_of
from tests.tools import matched_cosine, simulate


def _images() -> np.ndarray:
    """Return the paper's components, 16 x 16, as columns (256, 2): a cross and a square.

    The cross is in the top left corner, the square in the bottom right one.
    """
    cross, square = np.zeros((16, 16)), np.zeros((16, 16))
    cross[4, 1:8] = cross[1:8, 4] = 1
    square[9:14, 9:14] = 1
    return np.stack([cross.ravel(), square.ravel()], 1)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("diagonal", "platform"), [(False, "cpu"), (True, "cpu"), (False, "gpu")])
def test_conditional_of_the_mixing_matrix(diagonal, platform, monkeypatch):
    """Against Bayesian linear regression written out row by row; the draws have those moments."""
    monkeypatch.setattr(normal, "platform", lambda: platform)
    rng = np.random.default_rng(0)
    n, d, p = 40, 6, 3
    beta, tau2 = rng.normal(size=(n, p)) + 0.5, np.array([0.3, 1.0, 4.0])
    noise = rng.uniform(0.3, 2.0, d) if diagonal else np.full(d, 0.7)
    X = (
        rng.normal(size=d)
        + beta @ rng.normal(size=(p, d))
        + np.sqrt(noise) * rng.normal(size=(n, d))
    )
    prior = cast(priors.Laplace(), float)
    statistics = collect(prior, jnp.asarray(beta.T), block_of(X.T))
    sigma2 = jnp.asarray(noise if diagonal else noise[0])
    parameters = Parameters(jnp.zeros((d, p)), jnp.zeros(d), sigma2, prior, jnp.asarray(tau2))
    keys = jax.random.split(jax.random.key(0), 4000)
    draws, mixing = jax.vmap(
        lambda key: NormalColumns().draw(key, statistics, parameters, jnp.asarray(float(n)), True)
    )(keys)
    centred_beta, centred = beta - beta.mean(0), X - X.mean(0)
    for i in range(d):
        covariance = np.linalg.inv(centred_beta.T @ centred_beta / noise[i] + np.diag(1 / tau2))
        mean = covariance @ centred_beta.T @ centred[:, i] / noise[i]
        np.testing.assert_allclose(mixing.mean[0, i], mean, rtol=1e-9)
        np.testing.assert_allclose(mixing.square[0, i], mean**2 + np.diag(covariance), rtol=1e-9)
        left = (
            np.square(centred[:, i] - centred_beta @ mean).mean()
            + np.trace(covariance @ centred_beta.T @ centred_beta) / n
        )
        assert float(mixing.residual[0, i]) == pytest.approx(left + noise[i] / n, rel=1e-9)
        drawn = np.asarray(draws)[:, i]
        error = np.sqrt(np.diag(covariance) / 4000)
        assert (np.abs(drawn.mean(0) - mean) < 4.5 * error).all()
        np.testing.assert_allclose(
            np.cov(drawn.T), covariance, atol=4.5 * np.diag(covariance).max() * np.sqrt(2 / 4000)
        )


@pytest.mark.usefixtures("double")
def test_a_covariance_that_rounding_spoiled_is_decomposed_by_eigenvectors():
    """Where the matrix has no root, as A's draws on a GPU want it, they are those of the CPU."""
    scaled = jnp.diag(jnp.array([1.0, 0.5, -1e-6]))
    count, noise = jnp.asarray(1e6), jnp.full((4, 1), 0.5)
    found = normal._by_root(scaled, count, noise)
    for x, expected in zip(found, normal._by_eigenvectors(scaled, count, noise), strict=True):
        np.testing.assert_array_equal(x, expected)
    good = normal._by_root(jnp.abs(scaled), count, noise)
    assert not np.allclose(good[2], found[2])


def test_no_runaway_and_no_bias():
    """With 30 images at a noise of 1.5, maximum likelihood lets |A| run away.

    Its noise is 10 % too low.
    """
    A = _images()
    errors, noises = [], []
    for seed in range(5):
        X, _ = Model(A, noise_variance=2.25, prior=priors.BernoulliGaussian(0.8)).sample(
            30, random_state=seed
        )
        ica = NoisyICA(2, noise="isotropic", n_init=1, tol=0, random_state=seed, verbose=False).fit(
            X
        )
        mixing = ica.mixing_ if matched_order(A, ica.mixing_) else ica.mixing_[:, ::-1]
        errors.append(
            sum(
                min(
                    np.square(mixing[:, j] - A[:, j]).mean(),
                    np.square(mixing[:, j] + A[:, j]).mean(),
                )
                for j in range(2)
            )
        )
        noises.append(ica.noise_variance_)
    assert max(errors) < 0.2  # least squares with the coefficients known: 0.26
    # 7,680 numbers in a set: a standard error of 0.016 * 2.25
    assert np.mean(noises) == pytest.approx(2.25, abs=3 * 0.016 * 2.25)


def matched_order(A, B):
    return abs(A[:, 0] @ B[:, 0]) / np.linalg.norm(B[:, 0]) > abs(
        A[:, 0] @ B[:, 1]
    ) / np.linalg.norm(B[:, 1])


@pytest.mark.slow
def test_superfluous_components_are_switched_off():
    A = _images()
    X, _ = Model(A, noise_variance=0.25, prior=priors.BernoulliGaussian(0.8)).sample(
        100, random_state=0
    )
    six = NoisyICA(6, n_init=1, tol=0, random_state=0).fit(X)
    norms = np.sort(np.linalg.norm(six.mixing_, axis=0))[::-1]
    assert norms[2] < 0.2 * norms[1]
    ica = NoisyICA(tol=0, random_state=0).fit(X)
    assert ica.components_.shape == (2, 256)
    assert ica.history_["n_components"][-1] == 2


def test_auto_finds_the_intervals():
    """The paper's second experiment: eight disjoint intervals, shifted coefficients."""
    A = np.kron(np.eye(8), np.ones((12, 1)))
    for seed in range(2):
        model = Model(A, noise_variance=0.25, prior=priors.BernoulliGaussian(0.5, shift=2.0))
        ica = NoisyICA(random_state=seed, verbose=False, n_init=1, tol=0, max_iter=400).fit(
            model.sample(1000, random_state=seed)[0]
        )
        assert len(ica.components_) == 8


@pytest.mark.slow
def test_random_starts_lose_nothing():
    A = np.random.default_rng(0).normal(size=(64, 10))
    X, _ = Model(A, noise_variance=0.01, prior=priors.BernoulliGaussian(0.3)).sample(
        1000, random_state=0
    )
    cosines = [
        matched_cosine(A, NoisyICA(10, init=init, tol=0, random_state=0).fit(X).mixing_)
        for init in ("auto", "random")
    ]
    assert cosines[0] > 0.999
    assert abs(cosines[1] - cosines[0]) < 0.005


@pytest.mark.parametrize("init", ["auto", "truth"])
def test_more_components_than_dimensions(init):
    """Columns must not die, as they do from FastICA or with a noise that begins too low.

    The cosines were .70 to .85 then, and .89 to .95 from the truth (five sets of data).
    """
    A = np.random.default_rng(0).normal(size=(20, 40))
    X, _ = Model(A, noise_variance=0.04, prior=priors.BernoulliGaussian(0.1)).sample(
        1000, random_state=0
    )
    ica = NoisyICA(
        40,
        noise="isotropic",
        init=A if init == "truth" else init,
        n_init=1,
        tol=0,
        max_iter=600,
        random_state=0,
    ).fit(X)
    assert (
        matched_cosine(A, ica.mixing_) > 0.955
    )  # .9995; a component missed, which happens, costs .02: two may be
    # 20,000 numbers, 1,000 * 40 * 0.1 coefficients: a standard error of 1.1 %; a component missed
    # adds about 5 %
    assert ica.noise_variance_ == pytest.approx(0.04, rel=3 * 0.011 + 2 * 0.05)


def test_diagonal_noise():
    rng = np.random.default_rng(0)
    A, noise = rng.normal(size=(30, 3)), np.linspace(0.05, 4.0, 30)
    X, _ = Model(A, noise_variance=noise, prior="bg").sample(1500, random_state=0)
    ica = NoisyICA(3, prior="bg", noise="diagonal", tol=0, random_state=0).fit(X)
    assert ica.noise_variance_.shape == (30,)
    # each variance from 1,500 numbers: a standard error of 3.7 %
    np.testing.assert_allclose(ica.noise_variance_, noise, rtol=4.5 * np.sqrt(2 / 1500), atol=0.01)
    isotropic = NoisyICA(3, noise="isotropic", prior="bg", tol=0, random_state=0).fit(X)
    assert (
        ica.model_.log_likelihood(X[:100]).mean()
        > isotropic.model_.log_likelihood(X[:100]).mean() + 1
    )
    assert matched_cosine(A, ica.mixing_) > matched_cosine(A, isotropic.mixing_)


@pytest.mark.slow
def test_missing_values():
    """Without a fifth of the entries, components are nearly the same.

    The model guesses the missing entries better than the columns' means do.
    """
    model, X = simulate("bg", n=800, d=30, p=4, sigma=0.5)
    rng = np.random.default_rng(3)
    holes = rng.uniform(size=X.shape) < 0.2
    Y = np.where(holes, np.nan, X)
    whole, ica = (
        NoisyICA(4, noise="isotropic", tol=0, random_state=0).fit(rows) for rows in (X, Y)
    )
    assert (
        matched_cosine(model.mixing, ica.mixing_)
        > matched_cosine(model.mixing, whole.mixing_) - 0.02
    )
    assert ica.noise_variance_ == pytest.approx(0.25, rel=4.5 * np.sqrt(2 / (0.8 * X.size)) + 0.01)
    guess = ica.inverse_transform(ica.transform(Y))
    left = np.square(guess - X)[holes].mean()
    assert left < 1.3 * 0.25 < np.square(np.nanmean(Y, 0) - X)[holes].mean()


def test_likelihood_of_rows_with_missing_entries_is_that_of_the_others():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 2))
    model = Model(A, noise_variance=0.5, prior="bg")
    X = model.sample(6, random_state=0)[0]
    X[:, [1, 4]] = np.nan
    kept = [0, 2, 3, 5, 6, 7]
    other = Model(A[kept], noise_variance=0.5, prior="bg")
    exact = other.log_likelihood(X[:, kept], n_particles=40)
    np.testing.assert_allclose(model.log_likelihood(X, n_particles=40), exact, atol=0.15)
    np.testing.assert_allclose(
        model.posterior_mean(X, n_draws=4000),
        other.posterior_mean(X[:, kept], n_draws=4000),
        atol=0.12,
    )
    np.testing.assert_allclose(
        model.complete_log_density(X, np.ones((6, 2))),
        other.complete_log_density(X[:, kept], np.ones((6, 2))),
    )


def test_nothing_observed_is_an_error():
    X = np.random.default_rng(0).normal(size=(20, 5))
    row, column = X.copy(), X.copy()
    row[3], column[:, 2] = np.nan, np.nan
    with pytest.raises(ValueError, match=r"Nothing is observed in 1 of the rows of X \(3\)"):
        NoisyICA(2).fit(row)
    with pytest.raises(ValueError, match=r"Nothing is observed in 1 of the columns of X \(2\)"):
        NoisyICA(2).fit(column)


@pytest.mark.usefixtures("double")
def test_many_components_of_few_rows_leave_a_solution():
    """Rounding errors of forty coefficients together exceed the ridge that suits a few."""
    rng = np.random.default_rng(0)
    beta = rng.normal(size=(2, 40)) * 10.0 ** rng.uniform(-4, 2, 40)
    covariance = beta.T @ beta / 2
    size = np.diag(covariance)
    error = rng.normal(size=(40, 40)) * 3e-7 * np.sqrt(np.outer(size, size))
    covariance = covariance + (error + error.T) / 2
    assert np.linalg.eigvalsh(covariance / np.sqrt(np.outer(size, size)))[0] < -1e-6
    cross = rng.normal(size=(5, 2)) @ beta / 2
    solution = least_squares(jnp.asarray(covariance), jnp.asarray(cross), jnp.asarray(size))
    assert np.isfinite(solution).all()
    left = cross - np.asarray(solution) @ covariance
    assert np.abs(left / np.sqrt(size)).max() < 0.01 * np.abs(cross / np.sqrt(size)).max()


def test_a_component_that_rows_hardly_show_is_not_switched_off():
    """Its scale is learnt together with those of the others; by itself it ran to zero."""
    rng = np.random.default_rng(14)
    A = rng.normal(size=(64, 10))
    X = Model(A, noise_variance=16.0, prior=priors.BernoulliGaussian(0.3)).sample(
        1000, random_state=14
    )[0]
    ica = NoisyICA(10, n_init=1, max_iter=600, tol=0, random_state=14).fit(X)
    norms = np.linalg.norm(ica.mixing_, axis=0)
    assert norms.min() > 0.3 * np.linalg.norm(A, axis=0).min()
