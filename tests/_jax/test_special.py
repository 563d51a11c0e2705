"""The half-line channel against scipy."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from noisyica._jax.special import half_line_factors, log_half_line

pytestmark = pytest.mark.usefixtures("double")


def exact(a, c):
    """Return log I(a, c)."""
    z = c / np.sqrt(a)
    below = np.log(scipy.special.erfcx(np.abs(z) / np.sqrt(2)) / 2)
    above = 0.5 * z * z + scipy.special.log_ndtr(z)
    return np.where(z < 0, below, above) + 0.5 * np.log(2 * np.pi / a)


@pytest.mark.parametrize(("dtype", "error"), [("float32", 3e-6), ("float64", 3e-14)])
def test_integrals_over_the_half_line(dtype, error):
    rng = np.random.default_rng(0)
    n = 20_000
    a = 10 ** rng.uniform(-9, 9, n)
    c = rng.choice([-1, 1], n) * 10 ** rng.uniform(-3, 3, n) * np.sqrt(a)
    a, c = jnp.asarray(a, dtype), jnp.asarray(c, dtype)
    expected = exact(np.asarray(a, float), np.asarray(c, float))
    e, f = half_line_factors(a, c)
    assert e.dtype == f.dtype == jnp.dtype(dtype)
    for found in (log_half_line(a, c), np.asarray(e, float) + np.log(np.asarray(f, float))):
        assert np.max(np.abs(found - expected) / (1 + np.abs(expected))) < error


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_a_quadratic_term_it_is_an_exponential_law(dtype):
    c = -jnp.asarray([1e-3, 1.0, 1e4], dtype)
    e, f = half_line_factors(jnp.zeros_like(c), c)
    np.testing.assert_allclose(f * jnp.exp(e), -1 / c, rtol=1e-6)
