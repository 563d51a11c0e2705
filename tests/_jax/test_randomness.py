"""Random numbers that depend on a key and on the number of the row that they are for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica._jax.randomness import RowKeys, fold_in, split, uniforms
from noisyica.priors import TABLE, Channel
from tests.tools import TRUE_PRIORS

pytestmark = pytest.mark.usefixtures("double")

N = 40


def numbers(key, n=N, dtype="float32", count=2, lead=(3,)):
    return np.stack([np.asarray(u) for u in uniforms(key, count, (*lead, n), dtype)])


def row_keys(first, seed=0):
    return RowKeys(jax.random.key(seed), jnp.asarray(first, jnp.uint32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
def test_a_row_has_the_same_numbers_in_any_block(dtype, lead):
    whole = numbers(row_keys(0), N, dtype, lead=lead)
    for first, size in ((0, 7), (7, 1), (8, 32)):
        part = numbers(row_keys(first), size, dtype, lead=lead)
        np.testing.assert_array_equal(part, whole[..., first : first + size])
    np.testing.assert_array_equal(numbers(jax.random.key(0), N, dtype, lead=lead), whole)


@pytest.mark.parametrize("make", [lambda key: fold_in(key, 5), lambda key: split(key, 3)[1]])
def test_new_keys_keep_the_numbers_of_the_rows(make):
    whole = numbers(make(row_keys(0)))
    part = numbers(make(row_keys(30)), 10)
    np.testing.assert_array_equal(part, whole[..., 30:])
    assert not np.isin(whole, numbers(row_keys(0))).any()


def test_keys_of_rows_give_each_row_its_own_numbers():
    keys = jax.random.split(jax.random.key(3), N)
    whole = numbers(keys)
    np.testing.assert_array_equal(numbers(keys[10:20], 10), whole[..., 10:20])
    one = numbers(keys[4:5], 1)
    np.testing.assert_array_equal(one[..., 0], whole[..., 4])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_uniform_and_all_different(dtype):
    n = 20_000
    u = numbers(row_keys(2**31), n, dtype).reshape(6, n)
    assert 0 < u.min() < u.max() < 1
    assert np.unique(u[0]).size > 0.999 * n
    ranks = np.sort(u, axis=1)
    largest = np.abs(ranks - (np.arange(n) + 0.5) / n).max(1)  # Kolmogorov and Smirnov's
    assert largest.max() < 2.2 / np.sqrt(n)
    correlations = np.corrcoef(u)[~np.eye(6, dtype=bool)]
    assert np.abs(correlations).max() < 5 / np.sqrt(n)
    assert abs(np.corrcoef(u[0, 1:], u[0, :-1])[0, 1]) < 5 / np.sqrt(n)


def test_no_numbers():
    assert uniforms(jax.random.key(0), 0, (3, 4), "float32") == ()


@pytest.mark.parametrize("sampler", ["gibbs", "metropolis"])
@pytest.mark.parametrize("name", TABLE)
def test_sweeps_and_draws_of_a_row_do_not_depend_on_its_block(name, sampler):
    prior = TRUE_PRIORS[name]
    p = 3
    rng = np.random.default_rng(0)
    A = jnp.asarray(rng.normal(size=(6, p)))
    c = jnp.asarray(rng.normal(size=(p, N)))
    channel = Channel(A.T @ A, c, A.sum(0), jnp.asarray(rng.normal(size=N)), jnp.asarray(6.0))

    @jax.jit
    def draw(key):
        return prior.sample_prior(key, p, N, float)

    @jax.jit
    def sweep(key, latent, channel):
        return getattr(prior, sampler)(key, latent, channel)

    start = draw(row_keys(0))
    # shifted by ten rows, and then the same shape, which need not be compiled again
    later = jax.tree.map(lambda leaf: jnp.roll(leaf, -10, axis=-1), start)
    moved = channel._replace(c=jnp.roll(c, -10, axis=-1), x_one=jnp.roll(channel.x_one, -10))
    swept, shifted = sweep(row_keys(0, 1), start, channel), sweep(row_keys(10, 1), later, moved)
    from_ten = draw(row_keys(10))
    for whole, part in ((swept, shifted), (start, from_ten)):
        for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(part), strict=True):
            same = np.asarray(other)[..., : N - 10]
            np.testing.assert_allclose(same, np.asarray(one)[..., 10:], rtol=1e-9, atol=1e-12)
