"""Student noise: the rows' weights, the joint law with everything else, the M-step, and fits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

from noisyica import Model, NoisyICA, Smooth, priors
from noisyica._jax.arrays import cast
from noisyica.engine import mixing
from noisyica.engine.algorithms import Saem
from noisyica.engine.expansion import no_move
from noisyica.engine.mstep import mstep
from noisyica.engine.regression import equations
from noisyica.engine.state import Broadcast, Chain
from noisyica.engine.statistics import Weights, collect, rotate, shift
from noisyica.paper.measures import matched_cosines
from noisyica.posterior import student
from noisyica.posterior.parameters import Parameters, channel
from noisyica.posterior.student import RowWeights, draw_weights, solve_dof
from tests.blocks import block_of
from tests.engine.steps import begun, broadcast, constants_of, parameters_of, plan_of, rows_of
from tests.own_prior import BusyRows

# ------------------------------------------------------------------------------------ the weights


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("dof", "count"), [(0.6, 1), (3.0, 6), (40.0, 300)])
def test_weights_are_drawn_from_their_conditional_law(dof, count):
    """From any start, a few steps lead to Gamma((dof + count) / 2, rate (dof + q) / 2)."""
    n = 20_000
    q = jnp.asarray(np.random.default_rng(0).gamma(0.5 * count, 2.0, n))

    def step(w, key):
        drawn = draw_weights(key, jnp.asarray(dof), count, q, w)
        return drawn.draw, (drawn, (drawn.draw != w).mean())

    keys = jax.random.split(jax.random.key(0), 30)
    w, (drawn, accepted) = jax.lax.scan(step, jnp.ones(n), keys)
    assert np.mean(accepted) > 0.85
    shape, rate = 0.5 * (dof + count), 0.5 * (dof + np.asarray(q))
    assert stats.kstest(np.asarray(w) * rate, stats.gamma(shape).cdf).pvalue > 1e-3
    np.testing.assert_allclose(drawn.mean[-1], shape / rate, rtol=1e-10)
    np.testing.assert_allclose(drawn.log[-1], special.digamma(shape) - np.log(rate), rtol=1e-10)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("dof", [0.7, 3.0, 50.0])
def test_degrees_of_freedom_maximise_the_likelihood_of_the_weights(dof):
    w = np.random.default_rng(0).gamma(0.5 * dof, 2.3 / dof, 1000)
    found = float(solve_dof(jnp.mean(w), jnp.mean(jnp.log(w)), jnp.asarray(5.0)))
    best = optimize.minimize_scalar(
        lambda log: -stats.gamma(np.exp(log) / 2, scale=2 / np.exp(log)).logpdf(w / w.mean()).sum(),
        bounds=(-1, 7),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert found == pytest.approx(np.exp(best.x), rel=1e-5)


@pytest.mark.usefixtures("double")
def test_degrees_of_freedom_stay_within_their_bounds():
    one, start = jnp.ones(()), jnp.asarray(5.0)
    assert float(solve_dof(one, jnp.zeros(()), start)) == pytest.approx(student.MOST_DOF)
    assert float(solve_dof(one, -1e9 * one, start)) == pytest.approx(student.LEAST_DOF)


# --------------------------------------------------------------------------- the joint law of all


def differences(prior, sampler, missing, spoilt=False):
    """Return functionals of (beta, w, x) after one sweep less those of exact draws, (k, n).

    If they are right, sweeps leave the joint law of all as it is. ``spoilt`` forgets the weights
    of the rows where coefficients are drawn.
    """
    n, d, p, dof, noise = 20_000, 5, 2, 3.0, 0.4
    rng = np.random.default_rng(0)
    A, mean = rng.normal(size=(d, p)), (0.0 if prior.has_offset else 1.0) * rng.normal(size=d)
    prior = cast(prior.for_components(p), float)
    latent = prior.sample_prior(jax.random.key(1), p, n, float)
    w = rng.gamma(dof / 2, 2 / dof, n)
    x = (
        mean[:, None]
        + A @ np.asarray(prior.coefficients(latent))
        + np.asarray(prior.offset(latent))
    )
    x = x + np.sqrt(noise / w) * rng.normal(size=(d, n))
    observed = rng.random((d, n)) < 0.7 if missing else None
    if missing:
        observed[0] = True
    values = (A, mean, noise, prior, None, dof)
    parameters = cast(Parameters(*values), float)
    block = block_of(np.where(observed, x, 0.0) if missing else x, np.ones(n), observed)
    chain = Chain(latent, jnp.asarray(x) if missing else None, None, jnp.asarray(w), jnp.ones(n))
    if spoilt:
        chain = chain._replace(weight=jnp.ones(n))
    sent = Broadcast(
        jnp.asarray(1),
        jax.random.key(2),
        jnp.asarray(1),
        parameters,
        no_move(p),
        jnp.asarray(False),
    )
    plan = plan_of(Saem(sampler), student=True)
    after, totals = jax.jit(Saem(sampler).expectation, static_argnums=0)(plan, sent, block, chain)

    def functionals(latent, w, x):
        beta, offset = np.asarray(prior.coefficients(latent)), np.asarray(prior.offset(latent))
        w, x = np.asarray(w), np.asarray(x)
        left = np.square(x - mean[:, None] - A @ beta - offset) / noise
        bounded = np.tanh(left)  # the squares of heavy tails have no variance
        return np.stack(
            [
                *(w, np.log(w), w * left[0], w * left[-1], bounded[0], bounded[-1]),
                *(w * np.tanh(beta[0] ** 2), beta[0] == 0, np.tanh(beta[0] * beta[1])),
                *(np.tanh(x[-1]), np.tanh(np.abs(offset)), np.tanh(w * offset * x[0])),
            ]
        )

    now = functionals(after.latent, after.weight, after.x if missing else x)
    return now - functionals(latent, w, x), totals


CASES = [
    (priors.BernoulliGaussian(0.5), "gibbs", True),
    (priors.Logistic(), "metropolis", False),
    (priors.SingleScaleTernary(0.3), "gibbs", True),
    (priors.SingleScaleTernary(0.3), "metropolis", False),
    (priors.Offset("bg", 1.0), "gibbs", True),
    (priors.SingleScaleTernaryOffset(0.3, 1.0), "metropolis", False),
]


def z_scores(change):
    error = change.std(1) / np.sqrt(change.shape[1])
    return np.abs(change.mean(1))[error > 0] / error[error > 0]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("prior", "sampler", "missing"), CASES)
def test_sweeps_keep_the_joint_law_of_coefficients_weights_and_missing_entries(
    prior, sampler, missing
):
    change, totals = differences(prior, sampler, missing)
    assert z_scores(change).max() < 4.5
    weights = totals.statistics.weights
    assert float(weights.total / totals.weight) == pytest.approx(1, abs=0.03)
    assert float(weights.mean / totals.weight) == pytest.approx(1, abs=0.03)


@pytest.mark.usefixtures("double")
def test_the_joint_law_is_lost_where_coefficients_ignore_the_weights():
    change, _ = differences(priors.BernoulliGaussian(0.5), "gibbs", False, spoilt=True)
    assert z_scores(change).max() > 6


def test_rounding_does_not_make_rows_without_noise():
    """Rows that the components explain to the last digit are not said to have less noise."""
    rng = np.random.default_rng(3)
    A, beta, noise = rng.normal(size=(30, 5)), rng.normal(size=(5, 400)), 1e-10
    x = jnp.asarray(A @ beta, jnp.float32)
    values = (A, np.zeros(30), np.asarray(noise), priors.Laplace(), None, np.asarray(5.0))
    seen = channel(cast(Parameters(*values), jnp.float32), x)
    q = np.asarray(seen.misfit(jnp.asarray(beta, jnp.float32), jnp.zeros(400, jnp.float32)))
    assert (q > 2e-7 * np.square(x).sum(0) / noise).all()


@pytest.mark.parametrize("dof", [0.6, 5.0, 300.0])
def test_outlying_rows_are_those_of_a_fifth_of_the_usual_weight(dof):
    usual = stats.gamma(dof / 2, scale=2 / dof).median()
    assert student.outlying_below(dof) == pytest.approx(usual / 5)


# --------------------------------------------------------------------- statistics and the M-step


@pytest.fixture
def weighted(double):
    """Rows with weights, and their statistics."""
    rng = np.random.default_rng(0)
    n, d, p = 40, 4, 2
    beta, x, w = rng.normal(size=(p, n)) + 1, rng.normal(size=(d, n)) + 2, rng.gamma(2, 1, n)
    own, prior = RowWeights(*3 * [jnp.asarray(w)]), cast(priors.Logistic(), float)
    block = block_of(x)
    return beta, x, w, collect(prior, jnp.asarray(beta), block, own), prior


def test_equations_are_those_of_weighted_least_squares(weighted):
    beta, x, w, statistics, prior = weighted
    for free_mean in (False, True):
        centre_b = beta - (np.average(beta, 1, w)[:, None] if free_mean else 0)
        centre_x = x - (np.average(x, 1, w)[:, None] if free_mean else 0)
        found = equations(statistics, prior, free_mean)
        n = len(w)
        np.testing.assert_allclose(found.covariance, (centre_b * w) @ centre_b.T / n)
        np.testing.assert_allclose(found.cross, (centre_x * w) @ centre_b.T / n)
        np.testing.assert_allclose(found.total, (centre_x**2 * w).sum(1) / n)


def test_mstep_is_weighted_least_squares(weighted):
    beta, x, w, statistics, prior = weighted
    plan = plan_of(student=True)
    old = cast(Parameters(np.zeros((4, 2)), np.zeros(4), 1.0, prior, None, 5.0), float)
    learnt = mstep(statistics, old, plan, constants_of(len(w)))
    regressors = np.concatenate([np.ones_like(beta[:1]), beta])
    root = np.sqrt(w)
    solved = np.linalg.lstsq((regressors * root).T, (x * root).T, rcond=None)[0]
    np.testing.assert_allclose(learnt.mean, solved[0], rtol=1e-4)
    np.testing.assert_allclose(learnt.A, solved[1:].T, rtol=1e-4)
    left = x - solved.T @ regressors
    assert float(learnt.sigma2) == pytest.approx(
        np.average(left**2 * np.ones(4)[:, None], None, w + 0 * left), rel=1e-5
    )


def test_statistics_move_with_the_coefficients(weighted):
    beta, x, w, statistics, prior = weighted
    W, delta = np.array([[1.1, 0.3], [-0.2, 0.8]]), np.array([0.4, -0.7])
    there = collect(
        prior,
        jnp.asarray(W @ beta + delta[:, None]),
        block_of(x),
        RowWeights(*3 * [jnp.asarray(w)]),
    )
    moved = shift(rotate(statistics, jnp.asarray(W)), jnp.asarray(delta))
    for name in ("x", "xx", "b", "bb", "xb"):
        np.testing.assert_allclose(getattr(moved, name), getattr(there, name), rtol=1e-10)


@pytest.mark.usefixtures("double")
def test_moves_count_rows_as_often_as_they_are_there():
    """The prior's scores, which moves follow, know nothing of weights: nor must the squares."""
    plan, parameters = plan_of(student=True), parameters_of("bg")
    X = rows_of(parameters)
    X[::4] *= 10  # with large coefficients, and little weight
    dof = jnp.asarray(5.0)
    blocks, run = begun(parameters._replace(dof=dof), X, plan, constants_of())
    block, chain = jax.tree.map(lambda leaf: leaf[0], (blocks, run.chains))
    after, totals = plan.algorithm.expectation(plan, broadcast(run.state), block, chain)
    squares = np.square(after.latent) @ np.asarray(block.weight)
    np.testing.assert_allclose(totals.expansion.squares, squares)
    assert (squares > 1.5 * np.diag(totals.statistics.bb)).all()


@pytest.mark.usefixtures("double")
def test_a_hidden_mixing_matrix_sees_rows_by_their_weights(weighted):
    """Normal columns have a closed form: a ridge regression of the weighted rows."""
    beta, x, w, statistics, prior = weighted
    noise, tau2, n = 0.5, np.array([0.7, 1.3]), len(w)
    values = (np.zeros((4, 2)), np.zeros(4), noise, prior, tau2, 5.0)
    parameters = cast(Parameters(*values), float)
    drawn = mixing.get("normal").draw(jax.random.key(0), statistics, parameters, float(n), False)
    precision = (beta * w) @ beta.T / noise + np.diag(1 / tau2)
    mean = np.linalg.solve(precision, (beta * w) @ x.T / noise).T
    np.testing.assert_allclose(drawn[1].mean, mean, rtol=1e-6)
    variance = drawn[1].square - drawn[1].mean ** 2
    np.testing.assert_allclose(variance, np.tile(np.diag(np.linalg.inv(precision)), (4, 1)))


@pytest.mark.parametrize("noise", [0.7, (0.3, 0.7, 1.5, 2.0)])
def test_squares_that_are_known_save_a_pass_over_the_rows(weighted, noise):
    beta, x, w, statistics, prior = weighted
    rng, noise = np.random.default_rng(5), np.asarray(noise)
    squares = x**2 if noise.ndim else (x**2).sum(0, keepdims=True)
    block = block_of(x)._replace(squares=jnp.asarray(squares))
    own = RowWeights(*3 * [jnp.asarray(w)])
    fast = collect(prior, jnp.asarray(beta), block, own)
    if noise.ndim:
        np.testing.assert_allclose(fast.xx, statistics.xx)
    assert float(fast.xx.sum()) == pytest.approx(float(statistics.xx.sum()))
    assert isinstance(fast.weights, Weights)
    # and of the channel, whose squares are those of what the mean leaves
    A, mean = rng.normal(size=(len(x), len(beta))), rng.normal(size=len(x))
    parameters = cast(Parameters(A, mean, noise, prior, None, 5.0), float)
    direct = (np.square(x - mean[:, None]) / np.broadcast_to(noise, len(x))[:, None]).sum(0)
    for known in (None, jnp.asarray(squares)):
        np.testing.assert_allclose(channel(parameters, jnp.asarray(x), known).square, direct)


# ------------------------------------------------------------------------------------------- fits


def outlying_rows(n, d, p, kind="outlying", seed=0):
    """Return A, rows with coefficients of "bg", and which of them are outlying."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, p))
    beta = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.3)
    outlying = np.arange(n) < (n // 20 if kind == "outlying" else 0)
    size = np.where(outlying, 10.0, 1.0)
    if kind == "t3":
        size = 1 / np.sqrt(rng.chisquare(3, n) / 3)
    return A, beta @ A.T + size[:, None] * rng.normal(size=(n, d)), outlying


def area(weights, outlying):
    """Return the probability that an outlying row has less weight than another one."""
    return (weights[outlying][:, None] < weights[~outlying]).mean()


@pytest.fixture(scope="module")
def fitted():
    A, X, outlying = outlying_rows(400, 24, 3)
    ica = NoisyICA(3, noise="student", max_iter=200, n_init=1, tol=0, random_state=0, verbose=False)
    return A, X, outlying, ica.fit(X)


def test_outlying_rows_get_little_weight_and_do_no_harm(fitted):
    A, X, outlying, ica = fitted
    settings = {"max_iter": 200, "n_init": 1, "tol": 0, "random_state": 0, "verbose": False}
    normal = NoisyICA(3, noise="isotropic", **settings).fit(X)
    assert matched_cosines(A, ica.mixing_).mean() > 0.99
    assert matched_cosines(A, normal.mixing_).mean() < 0.97  # so the task is not too easy
    assert ica.row_weights_.shape == (400,)
    assert area(ica.row_weights_, outlying) > 0.99
    assert ica.row_weights_[outlying].max() < student.outlying_below(ica.noise_dof_)
    assert ica.noise_variance_ == pytest.approx(1, rel=0.15)
    assert 1 < ica.noise_dof_ < 20


def test_what_a_fit_leaves(fitted, tmp_path):
    ica = fitted[-1]
    assert isinstance(ica.noise_dof_, float)
    assert ica.history_["noise_dof"][-1] == ica.noise_dof_
    assert ica.model_.noise_dof == ica.noise_dof_
    # A, the mean, sigma^2, the degrees of freedom, alpha
    assert ica.n_parameters_ == 24 * 3 + 24 + 1 + 1 + 1
    ica.save(tmp_path / "model.npz")
    loaded = NoisyICA.load(tmp_path / "model.npz")
    assert loaded.noise_dof_ == ica.noise_dof_
    assert np.array_equal(loaded.row_weights_, ica.row_weights_)
    assert repr(loaded.model_) == repr(ica.model_)
    assert "noise_dof=" in repr(ica.model_)


def test_a_later_fit_with_normal_noise_has_no_weights(fitted):
    ica = NoisyICA(3, noise="student", max_iter=3, n_init=1, tol=0, random_state=0, verbose=False)
    ica.fit(fitted[1]).set_params(noise="isotropic").fit(fitted[1])
    assert not hasattr(ica, "noise_dof_")
    assert not hasattr(ica, "row_weights_")
    assert ica.model_.noise_dof is None


def test_units_of_rows_do_not_matter(fitted):
    X = fitted[1][:100]
    settings = {"max_iter": 10, "n_init": 1, "tol": 0, "random_state": 0, "verbose": False}
    one, other = (NoisyICA(3, noise="student", **settings).fit(c * X) for c in (1.0, 1024.0))
    assert np.array_equal(1024 * one.mixing_, other.mixing_)
    assert one.noise_dof_ == other.noise_dof_
    assert np.array_equal(one.row_weights_, other.row_weights_)


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": "te", "mixing_prior": "sparse", "init": "pca"},
        {"prior": "teoff", "sampler": "metropolis", "mixing_prior": None, "init": "pca"},
        {"mean": "offset", "algorithm": "mcem", "n_draws": 2},
        {"mixing_prior": Smooth(shape=(24,)), "n_init": 2},
    ],
)
def test_other_settings(fitted, settings):
    A, X, outlying, _ = fitted
    settings = {"max_iter": 40, "n_init": 1, "tol": 0, "random_state": 0} | settings
    ica = NoisyICA(3, noise="student", verbose=False, **settings).fit(X)
    assert area(ica.row_weights_, outlying) > 0.99
    assert np.isfinite(ica.components_).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clean", "outlying", "t3"])
def test_recovery_at_full_size(kind):
    A, X, outlying = outlying_rows(1000, 64, 10, kind)
    ica = NoisyICA(10, noise="student", n_init=1, random_state=0, verbose=False).fit(X)
    assert matched_cosines(A, ica.mixing_).mean() > 0.997
    if kind == "clean":
        assert ica.noise_dof_ > 100
    if kind == "t3":  # the error of log nu with 1,000 weights that are nearly known is about 0.06
        assert ica.noise_dof_ == pytest.approx(3, rel=0.2)
    if kind == "outlying":
        assert area(ica.row_weights_, outlying) > 0.99


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("algorithm", ["em", "fam-em"])
def test_algorithms_that_draw_nothing_refuse_it(algorithm):
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(ValueError, match="does not know noise='student'.*'saem'"):
        NoisyICA(2, algorithm=algorithm, noise="student", verbose=False).fit(X)


class OwnSampler(priors.BernoulliGaussian):
    """A prior of the library, with a sampler that may know nothing of weights."""

    def gibbs(self, key, latent, channel):
        return latent


@pytest.mark.parametrize("prior", [BusyRows(), OwnSampler(), priors.Offset(BusyRows(), 1.0)])
def test_priors_that_may_ignore_the_weights_are_refused(prior):
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(NotImplementedError, match="takes_row_weights"):
        NoisyICA(2, prior=prior, noise="student", verbose=False).fit(X)
    with pytest.raises(NotImplementedError, match="takes_row_weights"):
        Model(np.eye(4)[:, :2], prior=prior, noise_dof=3.0)
