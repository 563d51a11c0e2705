"""The model's parameters: what rows say of their coefficients, and missing entries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import priors
from noisyica._jax.arrays import cast
from noisyica._jax.randomness import RowKeys
from noisyica.posterior.parameters import Parameters, channel, fitted, impute, row_channel
from tests.blocks import block_of

pytestmark = pytest.mark.usefixtures("double")

D, P, N = 5, 2, 7


def parameters_of(prior, diagonal=False):
    rng = np.random.default_rng(0)
    noise = rng.uniform(0.3, 2.0, D) if diagonal else 0.5
    mean = np.zeros(D) if prior.has_offset else rng.normal(size=D)
    return cast(Parameters(rng.normal(size=(D, P)), mean, noise, prior), float)


def log_density(parameters, x, beta, offset):
    """Return the log density of rows x (d, n) given their coefficients, from its definition."""
    A, mean, sigma2 = (np.asarray(value) for value in parameters[:3])
    residual = x - mean[:, None] - A @ beta - offset
    noise = np.broadcast_to(sigma2, D)[:, None]
    return -0.5 * (np.square(residual) / noise).sum(0)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("name", ["bg", "teoff"])
def test_channel_is_all_that_the_likelihood_says(name, diagonal):
    parameters = parameters_of(priors.get(name), diagonal)
    rng = np.random.default_rng(1)
    x, beta = rng.normal(size=(D, N)), rng.normal(size=(P, N))
    offset = rng.normal(size=N) * parameters.prior.has_offset
    seen = jax.tree.map(np.asarray, channel(parameters, jnp.asarray(x)))
    c = seen.c - np.outer(seen.c_one, offset)
    said = (c * beta).sum(0) - 0.5 * (beta * (seen.G @ beta)).sum(0)
    said += offset * seen.x_one - 0.5 * offset**2 * seen.one_one
    expected = log_density(parameters, x, beta, offset)
    expected = expected - log_density(parameters, x, 0 * beta, 0 * offset)
    np.testing.assert_allclose(said, expected, rtol=1e-10)


def test_a_row_with_missing_entries_has_the_channel_of_the_others():
    parameters = parameters_of(priors.get("bg"))
    x = np.random.default_rng(1).normal(size=D)
    observed = np.array([True, False, True, True, False])
    seen = row_channel(parameters, jnp.asarray(x), jnp.asarray(observed))
    A, mean, sigma2 = (np.asarray(value) for value in parameters[:3])
    kept = A[observed]
    np.testing.assert_allclose(seen.G, kept.T @ kept / sigma2, rtol=1e-12)
    centred = (x - mean)[observed]
    np.testing.assert_allclose(seen.c[:, 0], kept.T @ centred / sigma2, rtol=1e-12)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("name", ["bg", "teoff"])
def test_missing_entries_are_drawn_given_the_coefficients(name, diagonal):
    """Their mean and variance over many draws, and that nothing else changes."""
    prior = cast(priors.get(name), float)
    parameters = parameters_of(prior, diagonal)
    rng = np.random.default_rng(1)
    latent = prior.sample_prior(jax.random.key(0), P, N, float)
    observed = rng.random((D, N)) < 0.6
    weight = rng.uniform(0.5, 2.0, N)
    block = block_of(np.where(observed, rng.normal(size=(D, N)), 0.0), weight, observed)
    count = 4000

    @jax.jit
    @jax.vmap
    def draw(key):
        return impute(RowKeys(key, block.rows), parameters, latent, block)

    filled = draw(jax.random.split(jax.random.key(2), count))
    x = np.asarray(filled.x)
    np.testing.assert_array_equal(x[:, observed], np.tile(block.x[observed], (count, 1)))
    fit = fitted(parameters, prior.coefficients(latent), prior.offset(latent), float)
    sigma2 = np.broadcast_to(np.asarray(parameters.sigma2), D)[:, None] * np.ones(N)
    error = np.sqrt(sigma2 / count)
    assert (np.abs(x.mean(0) - fit)[~observed] < 4.5 * error[~observed]).all()
    ratio = x.var(0)[~observed] / sigma2[~observed]
    np.testing.assert_allclose(ratio, 1.0, atol=4.5 * np.sqrt(2 / count))
    # entries are drawn independently of each other
    noise = (x - np.asarray(fit))[:, ~observed]
    off = np.corrcoef(noise.T)[~np.eye(noise.shape[1], dtype=bool)]
    assert np.abs(off).max() < 5 / np.sqrt(count)
    np.testing.assert_allclose(filled.sum_x[0], x[0] @ weight, rtol=1e-10)
    np.testing.assert_allclose(filled.sum_xx[0], np.square(x[0]) @ weight, rtol=1e-10)
    assert filled.sum_x.dtype == np.float64
    np.testing.assert_array_equal(filled.weight[0], weight)


def test_fitted_rows():
    parameters = parameters_of(priors.get("bg"))
    rng = np.random.default_rng(0)
    beta, offset = rng.normal(size=(P, N)), rng.normal(size=N)
    expected = np.asarray(parameters.mean)[:, None] + np.asarray(parameters.A) @ beta + offset
    answer = fitted(parameters, jnp.asarray(beta), jnp.asarray(offset), float)
    np.testing.assert_allclose(answer, expected, rtol=1e-12)
