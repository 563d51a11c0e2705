"""The likelihood by joint draws, against exact calculations, and the error that it states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from noisyica import Model, priors
from noisyica._jax.precision import double_precision
from noisyica._jax.randomness import fold_in, key_of
from noisyica.laws import Dirac, Mixture, Normal
from noisyica.posterior import chains, evidence, signs
from noisyica.posterior.propagation import target
from tests.blocks import block_of
from tests.tools import TRUE_PRIORS, some_slow


def uneven(p, d, prior, ratio=1e6, seed=0):
    """Return a model with next to no noise in two of its columns."""
    rng = np.random.default_rng(seed)
    noise = np.where(np.arange(d) < 2, 0.25 / ratio, 0.25)
    return Model(rng.normal(size=(d, p)), noise_variance=noise, prior=prior)


def test_smooth_laws_with_next_to_no_noise_in_some_columns():
    """Annealing was hundreds of nats off here, and claimed an error of 1."""
    model = uneven(6, 12, "lap")
    X, _ = model.sample(40, random_state=1)
    first, error = model.log_likelihood(X, return_std=True)
    second, _ = model.log_likelihood(X, return_std=True, random_state=5)
    assert error.max() < 0.05
    assert np.abs(first - second).max() < 6 * np.hypot(error, error).max()
    assert first.mean() == pytest.approx(_importance_sampling(model, X).mean(), abs=0.05)


def _importance_sampling(model, X, draws=20_000):
    """Return log p(x) by draws from a t law (5 degrees of freedom) around the normal posterior."""
    rng = np.random.default_rng(0)
    A, noise = model.mixing, model.noise_variance
    P = A.T @ (A / noise[:, None]) + np.eye(A.shape[1]) / model.prior.variance()
    root = np.linalg.cholesky(np.linalg.inv(P))
    p, values = A.shape[1], []
    for x in X:
        z = rng.normal(size=(draws, p)) / np.sqrt(rng.chisquare(5, (draws, 1)) / 5)
        beta = np.linalg.solve(P, A.T @ (x / noise)) + z @ root.T
        log_q = multivariate_t(df=5, shape=np.eye(p)).logpdf(z) - np.log(np.diag(root)).sum()
        log_w = model.complete_log_density(np.broadcast_to(x, (draws, len(x))), beta) - log_q
        values.append(np.log(np.mean(np.exp(log_w - log_w.max()))) + log_w.max())
    return np.array(values)


@pytest.mark.parametrize("alpha", [0.2, 0.5])
@pytest.mark.parametrize("shape", [(9, 18), (9, 6)])
def test_atoms_against_enumeration(alpha, shape):
    p, d = shape
    ratio, noise = (1e6, 0.25) if d > p else (1.0, 1e-3)
    model = uneven(p, d, priors.BernoulliGaussian(alpha), ratio)
    model = Model(
        model.mixing, noise_variance=model.noise_variance / 0.25 * noise, prior=model.prior
    )
    X, _ = model.sample(60, random_state=2)
    exact = model.log_likelihood(X, method="exact")
    value, error = model.log_likelihood(X, method="sequential", n_particles=256, return_std=True)
    finite = np.isfinite(error)
    assert finite.mean() > 0.9
    z = (value - exact)[finite] / np.maximum(error[finite], 1e-3)
    assert np.abs(z).max() < 5
    assert np.median(error) < 0.1


def test_signs_that_are_drawn_against_enumeration(monkeypatch):
    monkeypatch.setattr(signs, "ENUMERATED", 0)
    model = uneven(5, 10, priors.SingleScaleTernary(0.25), ratio=100.0)
    X, _ = model.sample(40, random_state=3)
    exact = model.log_likelihood(X, method="exact")
    value, error = model.log_likelihood(X, method="sequential", n_particles=256, return_std=True)
    assert np.abs((value - exact) / np.maximum(error, 1e-3)).max() < 5
    assert np.median(error) < 0.15


def test_few_signs_are_enumerated():
    """Only the scale is left then, in closed form: missing values leave no error, either."""
    model = uneven(5, 10, priors.SingleScaleTernary(0.25), ratio=100.0)
    X, _ = model.sample(40, random_state=3)
    X[:, [1, 5]] = np.nan
    kept = [0, 2, 3, 4, 6, 7, 8, 9]
    other = Model(model.mixing[kept], noise_variance=model.noise_variance[kept], prior=model.prior)
    value, error = model.log_likelihood(X, return_std=True)
    np.testing.assert_allclose(value, other.log_likelihood(X[:, kept], method="exact"), atol=1e-8)
    assert error.max() < 1e-6


def test_few_signs_and_an_offset_against_quadrature():
    """The offset is integrated out on a grid, and all else by enumeration."""
    inner = priors.SingleScaleTernary(0.3)
    model = uneven(3, 6, priors.Offset(inner, 0.8), ratio=100.0)
    without = Model(model.mixing, np.zeros(6), model.noise_variance, inner)
    X, _ = model.sample(6, random_state=2)
    grid, width = np.linspace(-15, 15, 30_001, retstep=True)  # a fiftieth of the least noise
    value, error = model.log_likelihood(X, return_std=True)
    for x, log_p, own in zip(X, value, error, strict=True):
        rows = x - grid[:, None]
        near = np.abs(rows[:, :2].mean(1)) < 8
        terms = without.log_likelihood(rows[near], method="exact") - np.abs(grid[near]) / 0.8
        exact = logsumexp(terms) + np.log(width / 1.6)
        assert log_p == pytest.approx(exact, abs=4 * own + 1e-6)
    assert error.max() < 0.02


def test_few_signs_and_an_offset_with_missing_values():
    model = uneven(3, 7, priors.SingleScaleTernaryOffset(0.3, 0.8), ratio=100.0)
    X, _ = model.sample(30, random_state=2)
    X[:, 2] = np.nan
    kept = [0, 1, 3, 4, 5, 6]
    other = Model(model.mixing[kept], None, model.noise_variance[kept], model.prior)
    value, error = model.log_likelihood(X, return_std=True)
    expected, own = other.log_likelihood(X[:, kept], random_state=1, return_std=True)
    assert (np.abs(value - expected) < 4.5 * np.hypot(error, own) + 1e-6).all()


def test_draws_with_few_signs_have_the_posterior_mean():
    model = uneven(3, 6, priors.SingleScaleTernary(0.25), ratio=10.0)
    X, _ = model.sample(20, random_state=1)
    parameters = model.parameters()

    def draw(number):
        guide = signs.guide(parameters.prior, target(parameters, block_of(X.T)))
        return signs.draw(parameters.prior, guide, fold_in(key_of(0), number)).beta

    with double_precision():
        draws = np.asarray(jax.lax.map(draw, jnp.arange(400)))
    batches = draws.reshape(20, 20, 3, 20).mean(1)
    exact = model.posterior_mean(X).T  # by enumeration
    z = (batches.mean(0) - exact) / (batches.std(0, ddof=1) / np.sqrt(20) + 1e-3)
    assert np.square(z).mean() < 1.6


@pytest.mark.parametrize("name", some_slow(["lap", "log", "ebg", "et", "teoff"], "ebg", "et"))
def test_one_coefficient_against_quadrature(name):
    """With one component (and an offset) p(x) is an integral in one or two dimensions."""
    rng = np.random.default_rng(5)
    prior = TRUE_PRIORS[name]
    model = Model(rng.normal(size=(3, 1)), noise_variance=0.3, prior=prior)
    X, _ = model.sample(6, random_state=0)
    clean, _ = Model(model.mixing, noise_variance=1e-12, prior=prior).sample(
        400_000, random_state=1
    )
    value, error = model.log_likelihood(X, method="sequential", return_std=True)
    for x, log_p, own in zip(X, value, error, strict=True):
        density = np.exp(-0.5 * np.square(x - clean).sum(1) / 0.3) / (2 * np.pi * 0.3) ** 1.5
        spread = density.std() / density.mean() / np.sqrt(len(density))
        assert log_p == pytest.approx(np.log(density.mean()), abs=4 * np.hypot(spread, own))


def test_a_logistic_coefficient_against_quadrature():
    a, x, noise = np.array([1.0, -0.5]), np.array([0.7, 0.2]), np.array([1e-4, 0.5])
    model = Model(a[:, None], noise_variance=noise, prior="log")

    def integrand(t):
        gaussian = np.exp(-0.5 * np.square(x - a * t) / noise) / np.sqrt(2 * np.pi * noise)
        return gaussian.prod() * 0.5 / np.cosh(t) ** 2

    exact = np.log(quad(integrand, 0.5, 0.9, epsabs=0, epsrel=1e-10, points=[0.7])[0])
    # a single coefficient is integrated out by its law alone: there is no error
    assert model.log_likelihood(x[None])[0] == pytest.approx(exact, rel=1e-9)


def test_several_atoms_and_normals():
    law = Mixture((Dirac(), Dirac(2.0), Normal(-1.0, 0.5)), (0.5, 0.2, 0.3))
    rng = np.random.default_rng(1)
    model = Model(rng.normal(size=(5, 4)), noise_variance=0.1, prior=law)
    X, _ = model.sample(50, random_state=0)
    exact = model.log_likelihood(X, method="exact")
    value, error = model.log_likelihood(X, method="sequential", return_std=True)
    assert np.abs((value - exact) / np.maximum(error, 1e-3)).max() < 5


def test_missing_values_are_left_out():
    model = uneven(4, 9, "bg", ratio=100.0)
    X, _ = model.sample(30, random_state=0)
    X[:, [1, 5]] = np.nan
    kept = [0, 2, 3, 4, 6, 7, 8]
    other = Model(model.mixing[kept], noise_variance=model.noise_variance[kept], prior=model.prior)
    exact = other.log_likelihood(X[:, kept], method="exact")
    value, error = model.log_likelihood(X, return_std=True)
    assert np.abs((value - exact) / np.maximum(error, 1e-3)).max() < 5


def test_an_error_that_is_not_known_is_infinite(monkeypatch):
    """Of weights between which hundreds of nats lie, one has all: their spread says nothing."""
    model = uneven(3, 6, "lap")
    X, _ = model.sample(5, random_state=0)
    rng = np.random.default_rng(0)

    def far_apart(compiled, parameters, block, part, seed, first, m):
        return rng.normal(scale=100.0, size=(m, block.x.shape[1]))

    monkeypatch.setattr(evidence, "_weights", far_apart)
    with pytest.warns(RuntimeWarning, match="likelihood of 5 of 5 rows could not be computed"):
        _, error = model.log_likelihood(X, return_std=True)
    np.testing.assert_array_equal(error, np.inf)


def test_weights_that_are_no_numbers_count_for_nothing():
    logs = np.array([[0.0, np.nan, np.nan], [np.log(3.0), 1.0, np.inf], [-np.inf, 1.0, -np.inf]])
    value, _, effective = evidence.log_mean_exp(logs)
    # with the correction for the bias of the log, half of its variance
    relative = np.array([np.var([1, 3, 0], ddof=1) / 3 / (4 / 3) ** 2, 1 / 12 / (4 / 9) * 4 / 3])
    expected = np.log([4 / 3, np.exp(1.0) * 2 / 3]) + relative / 2
    np.testing.assert_allclose(value[:2], expected)
    assert value[2] == -np.inf
    np.testing.assert_allclose(effective, [16 / 10, 2, 0])


def test_rounding_is_part_of_the_error():
    """Next to no noise: squares of 1e15 leave a likelihood of order one."""
    model = Model(np.ones((4, 1)), noise_variance=1e-14, prior="lap")
    X, _ = model.sample(20, random_state=0)
    _, error = model.log_likelihood(X, return_std=True)
    squares = np.square(X).sum(1) / 1e-14
    assert (error >= np.finfo(float).eps * squares).all()
    assert squares.max() > 1e14


def test_poor_rows_are_done_again_with_more_particles(monkeypatch):
    asked = []
    weights = evidence._weights

    def poor_at_first(compiled, parameters, block, part, seed, first, m):
        asked.append((len(part), first))
        log_weights = np.array(weights(compiled, parameters, block, part, seed, first, m))
        if len(asked) == 1:
            log_weights[0, 2] += 1000.0
        return log_weights

    model = uneven(3, 6, "lap")
    X, _ = model.sample(5, random_state=0)
    plain = model.log_likelihood(X)
    monkeypatch.setattr(evidence, "LITTLE", 0)  # all draws of a round are one call
    monkeypatch.setattr(evidence, "_weights", poor_at_first)
    again, error = model.log_likelihood(X, return_std=True)
    assert asked == [(5, 64), *((1, 64 * k) for k in (4, 5, 6, 7))]
    assert np.isfinite(error).all()
    np.testing.assert_allclose(again, plain, atol=0.1)
    np.testing.assert_array_equal(np.delete(again, 2), np.delete(plain, 2))


@pytest.mark.parametrize("dof", [None, pytest.param(5.0, marks=pytest.mark.slow)])
def test_draws_of_few_rows_are_those_of_one_call(monkeypatch, dof):
    truth = uneven(3, 6, "bg")
    model = Model(truth.mixing, truth.mean, truth.noise_variance, truth.prior, dof)
    X, _ = model.sample(40, random_state=0)
    X[7] *= 30  # a row that is done again
    options = {"method": "sequential", "return_std": True}
    few = model.log_likelihood(X, **options)
    monkeypatch.setattr(evidence, "LITTLE", 0)
    np.testing.assert_allclose(few, model.log_likelihood(X, **options), rtol=1e-12)


def test_annealing_warns_of_what_it_cannot_do():
    model = uneven(4, 8, "lap")
    X, _ = model.sample(3, random_state=0)
    with pytest.warns(RuntimeWarning, match="could not be computed"):
        _, error = model.log_likelihood(X, method="annealed", n_temperatures=5, return_std=True)
    assert np.isinf(error).any()


def test_offsets_of_any_scale():
    """The path of annealing led through twelve orders of magnitude without a step in them."""
    rng = np.random.default_rng(0)
    prior = priors.SingleScaleTernaryOffset(0.25, 1.0)
    model = Model(1e-4 * rng.normal(size=(12, 3)), noise_variance=1e-9, prior=prior)
    X, _ = model.sample(20, random_state=0)
    first, error = model.log_likelihood(X, return_std=True)
    second, _ = model.log_likelihood(X, random_state=1, return_std=True)
    assert error.max() < 0.5
    assert np.abs((first - second) / np.maximum(np.hypot(error, error), 1e-3)).max() < 5


# ------------------------------------------------------------------------------ chains and means


@pytest.mark.parametrize("name", ["lap", "bg"])
def test_chains_mix_where_coefficients_are_nearly_dependent(name):
    """Without joint moves, R-hat was above 3 here."""
    model = uneven(6, 12, name)
    X, _ = model.sample(20, random_state=1)
    assert chains.coupled(model.parameters())
    posterior = model.posterior(X, n_draws=300, random_state=0)
    assert np.quantile(posterior.rhat(), 0.9) < 1.1
    assert not chains.coupled(uneven(6, 12, name, ratio=1.0).parameters())


def test_joint_moves_keep_the_posterior():
    model = uneven(5, 10, priors.BernoulliGaussian(0.4), ratio=1e4)
    X, _ = model.sample(30, random_state=1)
    exact = model.posterior_mean(X)  # by enumeration
    draws = model.posterior_sample(X, n_draws=3000, random_state=2)
    assert chains.coupled(model.parameters())
    batches = draws.reshape(30, 100, 30, 5).mean(1)
    z = (batches.mean(0) - exact) / (batches.std(0, ddof=1) / np.sqrt(30) + 1e-3)
    assert np.square(z).mean() < 1.6
    assert np.abs(z).max() < 5.5


def test_posterior_means_are_continuous_and_state_their_error():
    """A relative change of 1e-12 moved coefficients by up to .06."""
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(20, 5)), noise_variance=1.0, prior="lap")
    X, _ = model.sample(60, random_state=1)
    mean, error = model.posterior_mean(X, return_std=True)
    assert np.abs(model.posterior_mean(X * (1 + 1e-12)) - mean).max() < 1e-4
    accurate = model.posterior_mean(X, n_draws=10_000, random_state=3)
    # four chains: Student's t of 3 degrees of freedom, whose 99.9 % quantile is 12.9
    z = (mean - accurate) / error
    assert (np.abs(z) > 12.9).mean() < 0.01
    assert 0.3 < np.sqrt(np.square(mean - accurate).mean() / np.square(error).mean()) < 1.7


def test_posterior_means_are_exact_where_states_are_few():
    model = uneven(5, 10, priors.BernoulliGaussian(0.4), ratio=10.0)
    X, _ = model.sample(20, random_state=1)
    mean, error = model.posterior_mean(X, return_std=True)
    np.testing.assert_array_equal(error, 0)
    draws = model.posterior_sample(X, n_draws=4000, random_state=0)
    batches = draws.reshape(40, 100, 20, 5).mean(1)
    z = (batches.mean(0) - mean) / (batches.std(0, ddof=1) / np.sqrt(40) + 1e-3)
    assert np.square(z).mean() < 1.6


def test_many_components_make_small_blocks(monkeypatch):
    """So that progress is seen: 512 rows of 60 components take half a minute."""
    sizes, inner = [], chains.block_size

    def note(*options):
        sizes.append(inner(*options))
        return sizes[-1]

    monkeypatch.setattr(chains, "block_size", note)
    model = uneven(12, 16, "lap", ratio=1.0)
    X, _ = model.sample(300, random_state=1)
    before = model.log_likelihood(X, n_particles=2)
    monkeypatch.setitem(evidence.NUMBERS_AT_A_TIME, jax.default_backend(), 300 * 2 * 12**3)
    after = model.log_likelihood(X, n_particles=2)
    assert sizes[0] == 512
    assert sizes[-3:] == [128, 128, 128]
    np.testing.assert_allclose(after, before, rtol=1e-12)


@pytest.mark.parametrize(
    ("A", "noise", "x"),
    [
        (
            [[-0.1, -0.9, 1.9], [-1.0, 1.0, 0.6], [0.1, -0.1, -0.1], [-0.1, 0.7, -0.6]],
            [1e-2, 1e-6, 1e-2, 1e-6],
            [0.71, 0.3, -0.01, -0.3009],  # half of the last column of A, and noise
        ),
        (
            [[-2.6, 0.6, -2.0], [-0.1, 1.3, 0.4], [0.1, 0.2, -1.2], [-0.5, -0.6, -0.8]],
            [1e-3, 1e-2, 1e-1, 1e-7],
            [-0.06, -0.05, -0.16, 0.0303],  # a tenth of the first less the last, or of the second
        ),
    ],
)
def test_rows_in_which_the_guide_is_wrong(monkeypatch, A, noise, x):
    """Signs that the guides call next to impossible have much of the probability of these rows.

    Where all proposals believe the guides, the answers are off by 8946 and .6, with errors of .01
    and .03. The second answer needs those that hardly believe them.
    """
    monkeypatch.setattr(signs, "ENUMERATED", 0)
    model = Model(A, noise_variance=noise, prior=priors.SingleScaleTernary(0.25))
    exact = model.log_likelihood([x], method="exact")
    value, error = model.log_likelihood(
        [x], method="sequential", n_particles=4000, return_std=True, random_state=0
    )
    assert np.abs(value - exact) < 3 * error
    assert error < 0.3
