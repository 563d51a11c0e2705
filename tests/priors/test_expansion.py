"""What priors give to parameter expansion: sums over rows, and coefficients that move."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import laws, priors
from noisyica._jax.arrays import cast
from noisyica.priors import EXPANSION
from tests.tools import TRUE_PRIORS

pytestmark = pytest.mark.usefixtures("double")

PRIORS = TRUE_PRIORS | {
    "offset": priors.Offset(priors.BernoulliGaussian(0.4), 1.5),
    "own": priors.Independent(
        laws.Mixture((laws.Dirac(), laws.Laplace()), (0.5, 0.5)), shared=False
    ).for_components(3),
}
N, P = 200, 3


def latent_of(prior, seed=0):
    return prior.sample_prior(jax.random.key(seed), P, N, float)


@pytest.mark.parametrize("name", PRIORS)
def test_sums_over_blocks_are_the_sums_over_all_rows(name):
    """The mean sizes of sparse laws are made of the sums, and not of each block's."""
    prior = cast(PRIORS[name], float)
    latent, weight = latent_of(prior), jnp.asarray(np.random.default_rng(0).uniform(0.5, 2.0, N))
    whole = prior.expansion(latent, weight)
    parts = [
        prior.expansion(jax.tree.map(operator.itemgetter((..., rows)), latent), weight[rows])
        for rows in (slice(0, 30), slice(30, 31), slice(31, N))
    ]
    added = jax.tree.map(lambda *leaves: sum(leaves), *parts)
    for one, other in zip(jax.tree.leaves(added), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    # averages, or any other multiple of the sums, give the same step
    halves = prior.expansion_from_sums(jax.tree.map(lambda leaf: leaf / 2, whole))
    for one, other in zip(halves, prior.expansion_from_sums(whole), strict=True):
        np.testing.assert_allclose(2 * one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PRIORS)
def test_weights_count_rows(name):
    prior = cast(PRIORS[name], float)
    latent, weight = latent_of(prior), np.random.default_rng(0).integers(0, 3, N)
    repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, weight, axis=-1), latent)
    weighted = prior.expansion(latent, jnp.asarray(weight, float))
    expected = prior.expansion(repeated, jnp.ones(int(weight.sum())))
    for one, other in zip(jax.tree.leaves(weighted), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", PRIORS)
def test_the_scale_is_right_under_the_prior(name):
    """E[beta psi(beta)] = 1, of those coefficients that are on, whatever the law."""
    prior = cast(PRIORS[name], float)
    latent = prior.sample_prior(jax.random.key(1), P, 40_000, float)
    sums = prior.expansion_from_sums(prior.expansion(latent, jnp.ones(40_000)))
    scale = np.diag(sums.products) / np.asarray(sums.rows)
    np.testing.assert_allclose(scale, 1.0, atol=0.06)


def test_rotations_of_sparse_laws_follow_a_laplace_law():
    """Off its diagonal E[psi beta'] is that of a Laplace law with the coefficients' mean size."""
    prior = cast(priors.BernoulliGaussian(0.4), float)
    beta = jnp.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.0], [0.2, 0.0, 1.0]]) @ latent_of(prior)
    sums = prior.expansion_from_sums(prior.expansion(beta, jnp.full(N, 1 / N)))
    b = np.asarray(beta)
    sign = np.sign(b) / np.abs(b).mean(1, keepdims=True)
    expected = np.cov(sign, b, bias=True)[:P, P:]
    off = ~np.eye(P, dtype=bool)
    np.testing.assert_allclose(np.asarray(sums.products)[off], expected[off], atol=1e-10)


MOVE = np.array([[1.1, 0.2, 0.0], [-0.1, 0.9, 0.3], [0.0, 0.1, 1.2]]), np.array([0.5, -0.2, 0.1])


@pytest.mark.parametrize("name", [name for name in PRIORS if not name.startswith("te")])
def test_coefficients_are_transformed(name):
    prior = cast(PRIORS[name], float)
    latent = latent_of(prior)
    W, shift = map(jnp.asarray, MOVE)
    moved = prior.transform(latent, W, shift)
    expected = W @ prior.coefficients(latent) + shift[:, None]
    np.testing.assert_allclose(prior.coefficients(moved), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(prior.offset(moved), prior.offset(latent))
    assert jax.tree.structure(moved) == jax.tree.structure(latent)


@pytest.mark.parametrize("name", ["te", "teoff"])
def test_signs_times_a_scale_are_only_scaled(name):
    prior = cast(PRIORS[name], float)
    latent = latent_of(prior)
    moved = prior.transform(latent, 1.3 * jnp.eye(P), jnp.zeros(P))
    before = prior.coefficients(latent)
    np.testing.assert_allclose(prior.coefficients(moved), 1.3 * before, rtol=1e-12)
    np.testing.assert_array_equal(prior.offset(moved), prior.offset(latent))


def test_all_priors_of_the_table_can_move():
    assert all(EXPANSION.of(prior) for prior in PRIORS.values())
