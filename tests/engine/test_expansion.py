"""Parameter expansion: each step against the likelihood that it is meant to raise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import laws, priors
from noisyica._jax.arrays import cast
from noisyica.engine.expansion import LONGEST_TURN, location_step, newton_rotation, no_move
from noisyica.priors import Expansion

pytestmark = pytest.mark.usefixtures("double")

SMOOTH = {
    "log": priors.Logistic(),
    "ifa": priors.GaussianMixture((2.0,), (0.5, 0.5)),
    "shift": priors.Independent(laws.Shift(laws.Logistic(), 1.0)),
}
N, P = 4000, 3
FULL, HALF = 1.0, 0.5
LARGEST_ROTATION = 0.4  # what algorithms take at most


def drawn(prior, seed=0):
    """Return coefficients (P, N) drawn from a prior."""
    return prior.coefficients(prior.sample_prior(jax.random.key(seed), P, N, float))


def averages(prior, beta):
    """Return what parameter expansion needs of coefficients, on average over their rows."""
    sums = prior.expansion(beta, jnp.full(beta.shape[1], 1 / beta.shape[1]))
    return prior.expansion_from_sums(sums)


@jax.jit
def log_likelihood(prior, beta, R):
    """Return log p(R beta) + log |det R| on average over the rows: that of x = (A R^-1) R beta."""
    density = prior.log_density(R @ beta, jnp.zeros(beta.shape[1]))
    return density.mean() + jnp.linalg.slogdet(R)[1]


def gradient_by_differences(function, shape, step=1e-5):
    gradient = np.zeros(shape)
    for index in np.ndindex(shape):
        change = np.zeros(shape)
        change[index] = step
        gradient[index] = (function(change) - function(-change)) / (2 * step)
    return gradient


def step_of(prior, beta, step=HALF, rotation=LARGEST_ROTATION, pull=None):
    squares = jnp.square(beta).mean(1)
    pull = jnp.zeros((P, P)) if pull is None else pull
    return newton_rotation(averages(prior, beta), pull, squares, step, rotation)


@pytest.mark.parametrize("name", SMOOTH)
def test_sums_are_the_gradient_of_the_likelihood(name):
    """E[psi beta'] - 1 along beta -> R beta, and E[psi] along beta -> beta + delta."""
    prior = cast(SMOOTH[name], float)
    beta = 0.8 * drawn(prior) + 0.1
    products, squares, rows, scores = averages(prior, beta)
    np.testing.assert_allclose(rows, 1.0)

    def of_rotation(change):
        return log_likelihood(prior, beta, jnp.eye(P) + change)

    def of_location(change):
        return log_likelihood(prior, beta + jnp.asarray(change)[:, None], jnp.eye(P))

    expected = gradient_by_differences(of_rotation, (P, P))
    np.testing.assert_allclose(np.eye(P) - products, expected, atol=1e-7)
    np.testing.assert_allclose(-scores, gradient_by_differences(of_location, (P,)), atol=1e-7)
    score = np.asarray(jax.vmap(jax.grad(prior.law.log_density))(beta.ravel())).reshape(beta.shape)
    np.testing.assert_allclose(squares, np.square(score).mean(1), rtol=1e-10)


@pytest.mark.parametrize("name", SMOOTH)
def test_a_rotation_raises_the_likelihood_until_it_is_at_its_maximum(name):
    prior = cast(SMOOTH[name], float)
    beta = jnp.array([[1.0, 0.4, -0.2], [0.3, 0.7, 0.1], [0.0, -0.3, 1.4]]) @ drawn(prior)

    @jax.jit
    def iterate(R):
        return step_of(prior, R @ beta) @ R

    R = jnp.eye(P)
    values = [log_likelihood(prior, beta, R)]
    for _ in range(500):
        R = iterate(R)
        values.append(log_likelihood(prior, beta, R))
    assert min(np.diff(values)[:5]) > 0
    assert min(np.diff(values)) > -1e-12
    # at the maximum E[psi beta'] = 1, and there is nothing left to do
    np.testing.assert_allclose(averages(prior, R @ beta).products, np.eye(P), atol=1e-6)
    np.testing.assert_allclose(step_of(prior, R @ beta), np.eye(P), atol=1e-6)


def some_expansion(seed=0):
    """Return sums that are not clipped: near the maximum, and well conditioned."""
    rng = np.random.default_rng(seed)
    H = np.eye(P) + 0.03 * rng.normal(size=(P, P))
    return Expansion(jnp.array(H), jnp.array(rng.uniform(1.5, 2.5, P)), jnp.ones(P), jnp.zeros(P))


def test_directions_are_newtons_for_each_pair_of_components():
    expansion, squares = some_expansion(), jnp.array([0.9, 1.1, 1.3])
    pull = jnp.array(0.02 * np.random.default_rng(1).normal(size=(P, P)))
    W = newton_rotation(expansion, pull, squares, HALF, 0.3)
    gradient = np.asarray(expansion.products - pull)
    for i in range(P):
        for j in range(i):
            h = [float(expansion.squares[a] * squares[b]) for a, b in ((i, j), (j, i))]
            right = [gradient[i, j], gradient[j, i]]
            newton = -np.linalg.solve([[h[0], 1.0], [1.0, h[1]]], right)
            np.testing.assert_allclose([W[i, j], W[j, i]], 0.3 * newton, rtol=1e-10)
    k = 1 + expansion.squares * squares
    scale = np.exp(-0.5 * (jnp.diag(expansion.products) - 1) / k)
    np.testing.assert_allclose(jnp.diag(W), scale, rtol=1e-10)


def test_the_pull_is_what_the_gradient_should_be():
    """Where A is hidden, nothing moves once E[psi beta'] is the pull off its diagonal."""
    expansion = some_expansion()
    diagonal = jnp.eye(P, dtype=bool)
    expansion = expansion._replace(products=jnp.where(diagonal, 1.0, expansion.products))
    squares = jnp.ones(P)
    W = newton_rotation(expansion, expansion.products, squares, HALF, FULL)
    np.testing.assert_allclose(W, np.eye(P), atol=1e-14)
    assert (
        np.abs(newton_rotation(expansion, jnp.zeros((P, P)), squares, HALF, FULL) - W).max() > 0.01
    )


def test_a_rotation_is_damped_and_bounded():
    expansion = some_expansion()
    none = newton_rotation(expansion, jnp.zeros((P, P)), jnp.ones(P), 0.0, 0.0)
    np.testing.assert_array_equal(none, np.eye(P))
    wild = expansion._replace(products=1e6 * jnp.ones((P, P)))
    for H in (wild, wild._replace(products=-wild.products)):
        W = newton_rotation(H, jnp.zeros((P, P)), jnp.ones(P), FULL, FULL)
        off = np.asarray(W)[~np.eye(P, dtype=bool)]
        assert np.abs(off).max() <= 0.3
        assert np.exp(-0.25) <= np.diag(W).min() <= np.diag(W).max() <= np.exp(0.25)


def test_many_components_that_depend_on_each_other_do_not_overshoot():
    """All pairs turn at once, each as if it were alone: together they would go much too far."""
    p, n = 100, 3000
    rng = np.random.default_rng(0)
    beta = np.sqrt(0.5) * (rng.laplace(size=(p, n)) + rng.laplace(size=n))
    prior = priors.BernoulliGaussian(0.5)  # its rotations follow the score of a Laplace law
    for _ in range(10):
        squares = jnp.square(beta).mean(1)
        averaged = averages(prior, beta)
        W = newton_rotation(averaged, jnp.zeros((p, p)), squares, FULL, LARGEST_ROTATION)
        turn = np.asarray(W) * (1 - np.eye(p))
        assert np.linalg.norm(turn, 2) <= LONGEST_TURN
        beta = np.asarray(W) @ beta
    variances = np.linalg.eigvalsh(np.corrcoef(beta))
    # of 50; independent ones have (1 + sqrt(p / n))^2, and little more
    assert variances[-1] < 1.1 * (1 + np.sqrt(p / n)) ** 2


def test_components_without_rows_stay_as_they_are():
    expansion = some_expansion()
    expansion = expansion._replace(
        products=expansion.products.at[1].set(0.0),
        squares=expansion.squares.at[1].set(0.0),
        rows=jnp.array([1.0, 0.0, 1.0]),
    )
    W = newton_rotation(expansion, jnp.zeros((P, P)), jnp.array([1.0, 0.0, 1.0]), HALF, FULL)
    assert np.isfinite(W).all()
    assert float(W[1, 1]) == 1.0


def test_one_component_is_only_scaled():
    one = Expansion(jnp.array([[1.3]]), jnp.array([2.0]), jnp.ones(1), jnp.zeros(1))
    W = newton_rotation(one, jnp.zeros((1, 1)), jnp.array([1.5]), HALF, FULL)
    np.testing.assert_allclose(W, [[np.exp(-0.5 * 0.3 / 4)]], rtol=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_locations_climb_to_the_maximum(name):
    prior = cast(SMOOTH[name], float)
    beta = drawn(prior) + jnp.array([0.6, -0.4, 0.0])[:, None]
    values, moved = [], beta
    for _ in range(40):
        values.append(log_likelihood(prior, moved, jnp.eye(P)))
        moved = moved + location_step(averages(prior, moved), HALF)[:, None]
    assert min(np.diff(values)) > -1e-12
    assert values[-1] > values[0] + 0.01
    np.testing.assert_allclose(averages(prior, moved).scores, 0.0, atol=1e-8)


def test_a_step_of_the_location_is_newtons_damped_and_bounded():
    sums = Expansion(
        jnp.eye(P), jnp.array([2.0, 1.0, 0.0]), jnp.ones(P), jnp.array([0.4, -9.0, 0.0])
    )
    np.testing.assert_allclose(location_step(sums, 0.1 * FULL), [-0.02, 0.05, 0.0], rtol=1e-12)
    np.testing.assert_allclose(location_step(sums, FULL), [-0.1, 0.25, 0.0], rtol=1e-12)


def test_no_move_leaves_coefficients_where_they_are():
    prior = priors.Logistic()
    beta = drawn(prior)
    np.testing.assert_array_equal(prior.transform(beta, *no_move(P)), beta)
