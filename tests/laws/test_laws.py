"""Every law, after every tilt, against quadrature, finite differences and its draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from jax.extend.random import threefry_2x32

from noisyica import laws
from noisyica._jax.arrays import cast
from noisyica._jax.randomness import threefry, uniforms
from noisyica._jax.special import normal_quantile
from noisyica.laws import (
    Dirac,
    Exponential,
    ExponentialNormal,
    Laplace,
    Mixture,
    Normal,
    NormalScales,
    Scaled,
    ScaleMixture,
)
from tests.tools import (
    LAWS,
    PRIOR_LAWS,
    atoms_of,
    best,
    draw,
    log_normaliser,
    moments,
    penalty,
    quadrature,
    quadrature_moments,
    tilt_exists,
)

# laws whose parts are among the others are tested in one precision, and with `make test-all` some
# of them in the other, too
COMPOSED = ("two-slabs", "scale-mixture", "log-density", "shift", "ebg", "et")
IN_BOTH = [
    pytest.param(name, dtype, marks=[pytest.mark.slow] * (name in COMPOSED and dtype == "float64"))
    for name in LAWS
    for dtype in ("float32", "float64")
    if dtype == "float64" or name not in ("ifa-two", "bg-shift", "two-atoms")
]

pytestmark = pytest.mark.usefixtures("double")

TILTS = [
    (0.0, 0.0), (0.0, 0.5), (1e-4, 0.02), (0.05, -0.8), (0.3, 2.0), (1.0, 0.0), (1.0, 3.0),
    (7.0, -5.0), (50.0, 15.0), (1e3, -40.0), (1e5, 1e4), (1e8, 1e4),
]  # fmt: skip
EXTREMES = [
    (a, b)
    for a in (0.0, 1e-8, 1e-6, 1e-3, 1.0, 1e4, 1e8)
    for b in (0.0, 1e-6, -0.7, 30.0, -1e4, 1e4)
]


@pytest.mark.parametrize("name", LAWS)
def test_agrees_with_quadrature(name):
    law = LAWS[name]
    for a, b in TILTS:
        if not tilt_exists(law, a, b):
            continue
        log_z, mean, variance = quadrature_moments(law, a, b)
        law_mean, law_variance = moments(law, a, b)
        assert log_normaliser(law, a, b) == pytest.approx(log_z, rel=1e-5, abs=1e-5), (a, b)
        assert law_mean == pytest.approx(mean, rel=1e-5, abs=1e-5 * np.sqrt(variance)), (a, b)
        assert law_variance == pytest.approx(variance, rel=1e-5, abs=1e-12), (a, b)


@pytest.mark.parametrize("name", LAWS)
def test_derivatives_of_the_normaliser_are_mean_and_variance(name):
    law = LAWS[name]
    for a, b in [(0.05, -0.8), (1.0, 0.3), (1.0, 3.0), (7.0, -5.0), (50.0, 15.0)]:
        mean, variance = moments(law, a, b)
        h = 1e-3 / np.sqrt(float(variance))
        low, middle, high = (float(log_normaliser(law, a, b + x)) for x in (-h, 0.0, h))
        assert (high - low) / (2 * h) == pytest.approx(
            float(mean), rel=1e-5, abs=1e-5 * np.sqrt(float(variance))
        )
        assert (high - 2 * middle + low) / h**2 == pytest.approx(float(variance), rel=1e-4)


@pytest.mark.parametrize(("name", "dtype"), IN_BOTH)
def test_draws_have_the_tilted_law(name, dtype):
    law = LAWS[name]
    narrow = cast(law, dtype)
    n = 20_000
    for i, (a, b) in enumerate(
        [(0.0, 0.0), (0.05, -0.8), (1.0, 3.0), (50.0, 15.0), (1e3, 2.0), (1e8, 1e4)]
    ):
        if not tilt_exists(law, a, b):
            continue
        u = uniforms(jax.random.key(100 + i), law.n_uniforms, (n,), jnp.dtype(dtype))
        draws = np.sort(
            np.asarray(draw(narrow, u, jnp.asarray(a, dtype), jnp.full((n,), b, dtype)), float)
        )
        t, logs = quadrature(law, a, b)
        order = np.argsort(t, kind="stable")
        cumulative = np.cumsum(np.exp(logs - logs.max())[order])
        grid = np.quantile(t[order], np.linspace(0.001, 0.999, 997))
        atoms = atoms_of(law)
        nearest = np.abs(grid[:, None] - atoms).min(1) if atoms.size else np.ones(grid.size)
        grid = grid[nearest > 1e-9]
        exact = cumulative[np.searchsorted(t[order], grid, side="right") - 1] / cumulative[-1]
        empirical = np.searchsorted(draws, grid, side="right") / n
        # Kolmogorov-Smirnov at level 1e-5, and the width of one quadrature cell
        cell = np.exp(logs - logs.max()).max() / cumulative[-1] if not atoms.size else 2e-3
        assert np.abs(exact - empirical).max() < 2.47 / np.sqrt(n) + cell, (a, b)


def test_wrong_draws_are_noticed():
    """The bound above is tight enough: a tilt wrong by 10 % fails it."""
    n = 20_000
    u = uniforms(jax.random.key(0), 2, (n,), jnp.float64)
    draws = np.sort(np.asarray(Laplace().draw(u, jnp.asarray(1.0), jnp.full((n,), 2.7))))
    t, logs = quadrature(Laplace(), 1.0, 3.0)
    order = np.argsort(t)
    cumulative = np.cumsum(np.exp(logs - logs.max())[order])
    empirical = np.searchsorted(draws, t[order], side="right") / n
    assert np.abs(cumulative / cumulative[-1] - empirical).max() > 4 / np.sqrt(n)


@pytest.mark.parametrize(("name", "dtype"), IN_BOTH)
def test_extreme_tilts_are_finite_and_right(name, dtype):
    law = cast(LAWS[name], dtype)
    exact = LAWS[name]
    u = uniforms(jax.random.key(1), law.n_uniforms, (64,), jnp.dtype(dtype))
    for a, b in EXTREMES:
        if not tilt_exists(exact, a, b):
            continue
        # numerical integration has no digits left where the log density is as large as b^2 / a here
        if name == "own" and b * b > 1e15 * a:
            continue
        x, y = jnp.asarray(a, dtype), jnp.asarray(b, dtype)
        log_z, (mean, variance), (t, _) = (
            log_normaliser(law, x, y),
            moments(law, x, y),
            best(law, x, y),
        )
        draws = np.asarray(draw(law, u, x, jnp.full((64,), b, dtype)), float)
        assert log_z.dtype == mean.dtype == jnp.dtype(dtype)
        assert np.isfinite([log_z, mean, variance, t]).all(), (a, b)
        assert np.isfinite(draws).all(), (a, b)
        assert variance >= 0
        # Cauchy-Schwarz and convexity: log_z lies above its tangent at b = 0
        spread = np.sqrt(float(variance)) + 1e-6 * abs(float(mean)) + 1e-30
        assert np.abs(np.median(draws) - float(mean)) < 6 * spread, (a, b)
        if dtype == "float32":
            wide, (wide_mean, wide_variance) = log_normaliser(exact, a, b), moments(exact, a, b)
            assert log_z == pytest.approx(float(wide), rel=1e-4, abs=1e-3), (a, b)
            # the float32 grids of 24 nodes are good to about 2e-4
            assert mean == pytest.approx(
                float(wide_mean), rel=2e-4, abs=2e-3 * np.sqrt(float(wide_variance))
            ), (a, b)
            assert variance == pytest.approx(float(wide_variance), rel=1e-2, abs=1e-30), (a, b)


@pytest.mark.parametrize("law", [ExponentialNormal(), laws.Logistic()])
def test_draws_on_a_grid_are_exact(law):
    """The sum over a grid of 24 nodes does not depend on its shift, so that a draw is exact."""
    rng = np.random.default_rng(0)
    n = 2000
    a = 10 ** rng.uniform(-2, 5, n)
    value = rng.choice([0.0, 1.0], n) * rng.uniform(0, 30, n)  # of the coefficient
    b = np.abs(a * value + np.sqrt(a) * rng.uniform(-5, 5, n))
    grid = law._grid(jnp.asarray(a, "float32"), jnp.asarray(b, "float32"))
    shifts = (np.arange(8, dtype="float32") + 0.5) / 8
    sums = np.array([sum(np.asarray(x, float) for x in grid.walk(shift)) for shift in shifts])
    change = sums.max(0) / sums.min(0) - 1
    assert change.max() < 1e-4
    assert np.median(change) < 2e-6


def test_normal_quantile():
    """The polynomial in single precision errs by a few units in the last place, in both tails."""
    tail = np.concatenate(
        [10.0 ** np.linspace(-37, -0.4, 20_000), np.linspace(0.4, 1 - 6e-8, 20_000)]
    ).astype(np.float32)
    exact = scipy.special.ndtri(tail.astype(float))
    assert (
        np.abs(np.asarray(normal_quantile(jnp.asarray(tail))) - exact).max()
        < 4e-7 * np.abs(exact).max()
    )
    near = np.abs(exact) < 1
    assert np.abs(np.asarray(normal_quantile(jnp.asarray(tail))) - exact)[near].max() < 4e-7


def test_random_numbers_are_threefrys():
    """The hash is that of jax.random, and each of its words is used once.

    A row with a key of its own has the same numbers wherever it is.
    """
    key = jax.random.key(7)
    words = threefry_2x32(jax.random.key_data(key), jnp.array([3, 5], jnp.uint32))
    assert [int(w) for w in threefry(*jax.random.key_data(key), jnp.uint32(3), jnp.uint32(5))] == [
        int(w) for w in words
    ]
    u = np.stack(uniforms(key, 3, (5, 40_000), jnp.float32))
    assert u.min() > 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 4.5 * np.sqrt(1 / 12 / u.size)
    rows = u.reshape(15, -1)
    assert np.abs(np.corrcoef(rows) - np.eye(15)).max() < 4.5 / np.sqrt(40_000)
    keys = jax.random.split(key, 6)
    alone, together = (
        uniforms(keys[3:4], 2, (4, 1), jnp.float64),
        uniforms(keys, 2, (4, 6), jnp.float64),
    )
    assert all((x[:, 0] == y[:, 3]).all() for x, y in zip(alone, together, strict=True))


@pytest.mark.parametrize(
    ("law", "slope", "constant"),
    [(Laplace(), 1.0, 0.5), (laws.Logistic(), 2.0, 2.0), (Exponential(), 1.0, 1.0)],
)
def test_limit_where_the_tilt_wins(law, slope, constant):
    """Where b^2 / a is enormous, exponential tails leave N((b - slope) / a, 1 / a), exactly."""
    for a, b in [(1e-6, 1e4), (1e-2, 1e3), (1.0, 1e4), (1e-12, 50.0)]:
        mean, variance = law.moments(a, b)
        assert mean == pytest.approx((b - slope) / a, rel=1e-9)
        assert variance == pytest.approx(1 / a, rel=1e-6)
        expected = (b - slope) ** 2 / (2 * a) + 0.5 * np.log(2 * np.pi / a) + np.log(constant)
        assert law.log_normaliser(a, b) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_mode_minimises_the_objective(name):
    law = LAWS[name]
    locations = atoms_of(law)
    for a, b in [(0.5, 0.2), (1.0, 3.0), (2.0, -6.0), (30.0, 40.0)]:
        t, value = best(law, a, b)
        grid = np.concatenate([np.linspace(-8, 8, 4_001), locations, [float(t)]])
        with np.errstate(all="ignore"):
            objective = 0.5 * a * grid**2 - b * grid + np.asarray(penalty(law, jnp.asarray(grid)))
        assert objective[-1] == pytest.approx(float(value), abs=2e-4)
        assert float(value) <= objective.min() + 1e-6


@pytest.mark.parametrize(
    "name", [*PRIOR_LAWS, "ifa-two", "two-atoms", "bg-shift", "normal-scales", "own", "scaled"]
)
def test_scale_statistics_average_to_one(name):
    """E[t psi(t)] = 1 off the atoms: what parameter expansion relies on."""
    law = LAWS[name]
    n = 200_000
    t = jax.jit(lambda key: law.sample(key, shape=(50, n // 50)))(jax.random.key(3))
    total, count = (terms.sum(-1) for terms in jax.jit(law.scale_statistics)(t))
    terms = np.asarray(total / count)
    assert float(total.sum() / count.sum()) == pytest.approx(
        1.0, abs=4.5 * terms.std() / np.sqrt(50)
    )
    assert terms.std() / np.sqrt(50) < 0.03


@pytest.mark.parametrize("name", ["ifa", "bg", "ebg", "et", "two-atoms", "two-slabs"])
def test_m_step_raises_the_likelihood(name):
    """One M-step from wrong parameters gives a law under which the sample is likelier."""
    true = LAWS[name]
    t = true.sample(jax.random.key(4), shape=(20_000,))
    weights = np.asarray(true.weights)
    wrong = jax.tree.map(lambda x: np.asarray(x, float), true)
    object.__setattr__(wrong, "weights", weights[::-1] * 0.5 + 0.5 / len(weights))
    better = wrong.mstep(jax.tree.map(jnp.sum, wrong.statistics(t)))
    before, after = (np.asarray(law.log_density(t)) for law in (wrong, better))
    finite = np.isfinite(before)
    assert after[finite].mean() > before[finite].mean()
    assert np.asarray(better.weights).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("law", [Normal(), Laplace(), Exponential(), laws.Logistic()])
def test_scales_are_learnt(law):
    """From a scale that is wrong: at once for laws with a power, else step by step."""
    t = law.sample(jax.random.key(4), shape=(20_000,)) * 2.5
    learnt = Scaled(law, 1.5)
    for _ in range(1 if law.scale_power == 1 or isinstance(law, Normal) else 30):
        learnt = learnt.mstep(jax.tree.map(jnp.sum, learnt.statistics(t)))
    assert float(learnt.scale) == pytest.approx(2.5, abs=4.5 * 2.5 / np.sqrt(20_000))


def test_identities():
    """The algebra: laws that are equal by definition answer alike."""
    a, b = jnp.asarray([0.1, 1.0, 20.0]), jnp.asarray([0.3, -3.0, 8.0])
    pairs = [
        (ExponentialNormal(), ScaleMixture(Exponential(), Normal())),
        (Laplace(), Mixture((Exponential(), laws.Shift(Laplace(), 0.0)), (0.0, 1.0))),
        (Normal(2.0), laws.Shift(Normal(), 2.0)),
        (
            laws.SymmetricNormals((2.0,), (0.4, 0.6)),
            Mixture((Normal(), Normal(2.0), Normal(-2.0)), (0.4, 0.3, 0.3)),
        ),
        (
            Mixture((Dirac(), Normal(0.0, 2.0)), (0.7, 0.3)),
            Scaled(Mixture((Dirac(), Normal()), (0.7, 0.3)), 2.0),
        ),
        (Laplace(0.3), Scaled(Laplace(), 0.3)),
        (laws.Logistic(), laws.LogDensity(lambda t: -2 * jnp.logaddexp(t, -t))),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(
            log_normaliser(one, a, b), log_normaliser(other, a, b), rtol=1e-6
        )
        np.testing.assert_allclose(moments(one, a, b), moments(other, a, b), rtol=1e-5)


def test_a_scaled_mixture_is_the_mixture_of_scaled_laws():
    scaled = Scaled(Mixture((Dirac(), Normal()), (0.7, 0.3)), 2.0)
    mixture = Mixture((Dirac(), Normal(0.0, 2.0)), (0.7, 0.3))
    a, b = jnp.asarray([0.1, 1.0, 20.0, 3.0]), jnp.asarray([0.3, -3.0, 8.0, 0.1])
    t = jnp.asarray([0.0, 0.5, -3.0, 0.0])
    u = uniforms(jax.random.key(0), 1, (1000, 4), jnp.float64)
    np.testing.assert_allclose(scaled.draw(u, a, b), mixture.draw(u, a, b), rtol=1e-12)
    np.testing.assert_allclose(scaled.log_density(t), mixture.log_density(t), rtol=1e-12)
    np.testing.assert_allclose(scaled.penalty(t), mixture.penalty(t), rtol=1e-12)
    np.testing.assert_allclose(scaled.best(a, b), mixture.best(a, b), rtol=1e-12)
    for one, other in zip(scaled.pieces(), mixture.pieces(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    (_, off), (_, on) = scaled.parts()
    assert (off.atom, on.atom) == (0.0, None)


def test_laws_of_different_kinds_have_different_structures():
    """Compiled functions are kept by structure.

    If two laws had the same structure, one would be given the answers of the other.
    """
    structures = [
        jax.tree.structure(law)
        for law in (*LAWS.values(), Laplace(), Normal(), ExponentialNormal())
    ]
    for x in structures:
        assert {str(y) for y in structures if y == x} == {str(x)}
    assert jax.tree.structure(Laplace()) != jax.tree.structure(Exponential())


def test_divergent_tilts_have_an_infinite_normaliser():
    for law in (Laplace(), Exponential()):
        assert law.log_normaliser(0.0, 3.0) == np.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mixture((Dirac(), Normal()), (0.2, 0.3, 0.5)), "as it has laws, 2; got 3"),
        (lambda: NormalScales((0.0, 1.0), (1.0,)), "as it has laws, 2; got 1"),
        (lambda: NormalScales((0.0, 1.0), np.ones((4, 3))), r"2; got an array of shape \(4, 3\)"),
        (lambda: NormalScales((1.0, 0.5), (0.5, 0.5)), "must increase"),
        (lambda: NormalScales((-1.0, 0.5), (0.5, 0.5)), "must be 0 or more"),
    ],
)
def test_weights_and_scales_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_normal_scales_are_the_mixture_of_their_parts():
    """Answers that NormalScales works out in its own way are those of the mixture."""
    weights = (0.3, 0.4, 0.2, 0.1)
    own = NormalScales((0.0, 0.5, 1.0, 3.0), weights)
    mixture = Mixture((Dirac(), *(Normal(scale=s) for s in own.scales[1:])), weights)
    a, b = jnp.asarray([0.0, 1.0, 9.0])[:, None], jnp.linspace(-4, 4, 7)
    t = jnp.linspace(-5, 5, 21)
    for law in (own, mixture):
        assert not law.smooth
    np.testing.assert_allclose(own.log_normaliser(a, b), mixture.log_normaliser(a, b), rtol=1e-5)
    np.testing.assert_allclose(own.moments(a, b), mixture.moments(a, b), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(own.log_density(t), mixture.log_density(t), rtol=1e-5)
    np.testing.assert_allclose(own.statistics(t), mixture.statistics(t)[0], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(own.score(t[t != 0]), mixture.score(t[t != 0]), rtol=1e-4)
