"""Parameters that are drawn towards each other: as strongly as they are alike, and to a gain."""

import jax.numpy as jnp
import numpy as np
import pytest

from noisyica.laws import Dirac, FreeNormal, Mixture, Normal, Scaled
from noisyica.laws.together import scales_together, told_apart, weights_together

pytestmark = pytest.mark.usefixtures("double")


def shapes_by_moments(square, together, information):
    """Return the shape a and the centre c that a weighted mean of two scales was made with."""
    # square, c and together of two components are two equations in a and a c
    rows = np.column_stack([together[:2], -np.ones(2)])
    a, ac = np.linalg.solve(rows, information * (square - together)[:2])
    return a, ac / a


@pytest.mark.parametrize("a", [2.0, 30.0])
def test_shape_of_scales_is_learnt(a):
    """Scales of a known law, seen through few squares each: its shape and centre are found."""
    rng = np.random.default_rng(0)
    p, d = 4000, 40
    tau2 = 3.0 * a / rng.gamma(a, size=p)
    square = tau2 * rng.chisquare(d, p) / d
    together = np.asarray(scales_together(jnp.asarray(square), d / 2))
    found, centre = shapes_by_moments(square, together, d / 2)
    # by moments of logarithms, 1 / a stands for trigamma(a), and 2 / d for trigamma(d / 2)
    expected = np.var(np.log(square), ddof=1) - 2 / d
    assert 1 / found == pytest.approx(expected, rel=1e-6)
    assert 1 / found == pytest.approx(1 / a, rel=0.5 / a + 0.15)
    assert np.log(centre) == pytest.approx(np.log(3.0), abs=0.6 / a + 0.02)
    wrong = [np.square(np.log(x / tau2)).mean() for x in (square, together)]
    assert wrong[1] < wrong[0] / (1.02 if a == 2 else 1.8)


def test_scales_that_differ_are_their_own():
    square = jnp.array([1.0, 1.5, 1e-6, 3e-6])
    found = scales_together(square, 32.0)
    np.testing.assert_allclose(found[:2], square[:2], rtol=0.01)
    np.testing.assert_allclose(found[2:], square[2:], rtol=1)
    alike = jnp.array([1.0, 1.1, 0.9, 1.05])
    assert np.ptp(np.asarray(scales_together(alike, 32.0))) < 0.01
    # of one of them little is known: it takes the place of the others
    found = scales_together(jnp.array([1.0, 1.1, 0.9, 0.1]), jnp.array([32.0, 32.0, 32.0, 0.5]))
    assert found[3] > 0.9


def test_scales_are_told_apart_by_standard_errors():
    rng = np.random.default_rng(2)
    repeats, p, count = 400, 50, 200
    square = rng.chisquare(count, (repeats, p)) / count
    found = [float(told_apart(jnp.asarray(row), count / 2)) for row in square]
    # standard normal, nearly, where scales are equal: errors of 1 / 20 and 1 / 28
    assert abs(np.mean(found)) < 0.2
    assert np.std(found) == pytest.approx(1, abs=0.15)
    # a standard deviation of .1 of log tau^2 adds p * 100 * .01 = 50 to a spread of 49 +- 10
    unequal = square * np.exp(rng.normal(size=square.shape) / 10)
    found = [float(told_apart(jnp.asarray(row), count / 2)) for row in unequal]
    assert np.mean(found) == pytest.approx(50 / np.sqrt(2 * 49), abs=0.6)


@pytest.mark.parametrize("k", [3.0, 200.0])
def test_concentration_of_weights_is_learnt(k):
    rng = np.random.default_rng(1)
    p, n, mean = 3000, 60, np.array([0.5, 0.3, 0.2])
    weights = rng.dirichlet(k * mean, p)
    counts = np.array([rng.multinomial(n, w) for w in weights], float)
    together = np.asarray(weights_together(jnp.asarray(counts)))
    np.testing.assert_allclose(together.sum(1), 1)
    # the best weights, if k and the mean were known
    known = (counts + k * mean) / (n + k)
    np.testing.assert_allclose(together, known, atol=0.02)
    wrong = [np.square(x - weights).mean() for x in (counts / n, together)]
    assert wrong[1] < wrong[0] * 1.02 * n / (n + k)


def test_only_classes_that_are_the_same_learn_from_each_other():
    counts = (jnp.array([60.0, 40.0]), jnp.array([40.0, 60.0]))
    laws = Dirac(jnp.zeros(2)), Normal(jnp.zeros(2), jnp.ones(2))
    mixture = Mixture(laws, jnp.full((2, 2), 0.5))
    nothing = mixture.mstep_of_each((counts, ((), ())))
    assert 0.4 < float(nothing.weights[0, 1]) < 0.46
    scaled = Scaled(mixture, jnp.ones(2))
    sums = ((counts, ((), ())), jnp.array([8.0, 4.0]), jnp.array([2.0, 4.0]))
    learnt = scaled.mstep_of_each(sums)
    np.testing.assert_allclose(learnt.scale, [2.0, 1.0])
    np.testing.assert_allclose(learnt.law.weights, nothing.weights)
    own = Mixture((laws[0], FreeNormal(jnp.zeros(2), jnp.ones(2))), jnp.full((2, 2), 0.5))
    inner = ((), (jnp.array([4.0, 6.0]), jnp.array([40.0, 60.0])))
    np.testing.assert_allclose(own.mstep_of_each((counts, inner)).weights[:, 1], [0.4, 0.6])
