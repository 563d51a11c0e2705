"""Laws for the entries of A: their conditional, their joint law with the coefficients, and fits."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from noisyica import Model, NoisyICA, Smooth, priors
from noisyica._jax.arrays import cast
from noisyica.engine import mixing
from noisyica.engine.mixing.base import unit_prior, with_scale
from noisyica.engine.statistics import collect
from noisyica.laws import Dirac, Exponential, Laplace, Logistic, Mixture, Normal
from noisyica.paper.images import sample, truth
from noisyica.paper.measures import mean_square_error
from noisyica.posterior.parameters import Parameters, channel
from tests.blocks import block_of
from tests.tools import matched_cosine, some_slow

SETTINGS = {
    "normal": "normal",
    "sparse": "sparse",
    "nonnegative": "nonnegative",
    "laplace": Laplace(),
    "two slabs": Mixture((Dirac(), Normal(), Logistic()), (0.4, 0.3, 0.3)),
    "smooth": Smooth(shape=(4,)),
}


def first(setting, scale):
    """Return the parameters of the prior that a setting stands for, with these scales."""
    scale = np.asarray(scale, float)
    if setting == "normal":
        return jnp.square(scale)
    if isinstance(setting, Smooth):
        spectra = mixing.first_parameters(setting, len(scale), 4, setting.basis(4))
        return spectra._replace(scale=scale, smoothness=np.array([0.2, 3.0]))
    return cast(with_scale(unit_prior(mixing.law_of(setting), len(scale)), scale), float)


# ------------------------------------------------------------------------------ the conditional


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("free_mean", [False, True])
def test_sparse_entries_against_enumeration(free_mean):
    """A row of A has 2^p patterns of zeros, and is normal given the pattern."""
    rng = np.random.default_rng(0)
    n, d, p, w = 15, 5, 3, 0.5
    beta, tau = rng.normal(size=(n, p)) + 0.5, np.array([0.5, 1.0, 2.0])
    noise = rng.uniform(0.5, 3.0, d)
    A = tau * rng.normal(size=(d, p)) * (rng.random((d, p)) < 0.5)
    X = beta @ A.T + np.sqrt(noise) * rng.normal(size=(n, d))
    prior = cast(priors.Laplace(), float)
    statistics = collect(prior, jnp.asarray(beta.T), block_of(X.T))
    of_mixing = first("sparse", tau)

    def turn(A, key):
        parameters = Parameters(A, jnp.zeros(d), jnp.asarray(noise), prior, of_mixing)
        A, found = mixing.ColumnsByLaw().draw(key, statistics, parameters, float(n), free_mean)
        return A, (found, A)

    keys = jax.random.split(jax.random.key(1), 40_000)
    _, (found, draws) = jax.lax.scan(turn, jnp.zeros((d, p)), keys)
    if free_mean:
        beta, X = beta - beta.mean(0), X - X.mean(0)
    for i in range(d):
        G, c = beta.T @ beta / noise[i], beta.T @ X[:, i] / noise[i]
        logs, means, squares, patterns = [], [], [], []
        for pattern in itertools.product((0.0, 1.0), repeat=p):
            on = np.array(pattern)
            T = np.diag(tau * on)
            precision = np.eye(p) + T @ G @ T
            covariance = T @ np.linalg.inv(precision) @ T
            mean = covariance @ c
            logs.append(0.5 * c @ mean - 0.5 * np.linalg.slogdet(precision)[1])
            logs[-1] += on.sum() * np.log(w) + (p - on.sum()) * np.log(1 - w)
            means.append(mean)
            squares.append(mean**2 + np.diag(covariance))
            patterns.append(on)
        share = softmax(logs)
        for name, values, exact in (
            ("mean", found.mean, share @ means),
            ("square", found.square, share @ squares),
            ("on", found.on, share @ patterns),
            ("draw", draws, share @ means),
            ("draw is on", draws != 0, share @ patterns),
        ):
            batches = np.asarray(values)[:, i].reshape(40, 1000, p).mean(1)
            error = batches.std(0, ddof=1) / np.sqrt(40)
            assert (np.abs(batches.mean(0) - exact) < 5 * error + 1e-6).all(), name
        left = np.square(X[:, i] - np.asarray(draws)[:, i] @ beta.T).mean(1)
        left = left + free_mean * noise[i] / n
        np.testing.assert_allclose(np.asarray(found.residual)[:, i], left, rtol=1e-8)


def joint_draws(setting, chains=4000, cycles=12, of_c=1.0):
    """Return functionals of (A, beta) drawn from their prior, and after sweeps over A, beta and x.

    Every chain starts with an exact draw, so that all stay exact if the sweeps are right. ``of_c``
    spoils what the data say of A where it is not 1.
    """
    d, p, n, noise = 4, 2, 5, 0.5
    prior = cast(priors.BernoulliGaussian(0.5), float)
    of_mixing, own = first(setting, [0.7, 1.3]), mixing.get(setting)
    law = unit_prior(mixing.law_of(setting) or Normal(), 1).law_at(0)
    size = of_mixing.deviations().T if isinstance(setting, Smooth) else jnp.array([0.7, 1.3])

    def fresh(key):
        keys = jax.random.split(key, 2)
        entries = law.sample(keys[0], shape=(d, p)) * size
        return entries, prior.sample_prior(keys[1], p, n, float)

    def cycle(i, carry):
        key, A, beta = carry
        keys = jax.random.split(jax.random.fold_in(key, i), 3)
        x = A @ beta + np.sqrt(noise) * jax.random.normal(keys[0], (d, n))
        parameters = Parameters(A, jnp.zeros(d), jnp.asarray(noise), prior, of_mixing)
        statistics = collect(prior, beta, block_of(x))
        statistics = statistics._replace(xb=of_c * statistics.xb)
        A, _ = own.draw(keys[1], statistics, parameters, float(n), False)
        beta = prior.gibbs(keys[2], beta, channel(parameters._replace(A=A), x))
        return key, A, beta

    def functionals(A, beta):
        size = jnp.abs(A)
        return jnp.stack([
            jnp.tanh(A[0, 0]), jnp.tanh(A[-1, 1]), jnp.minimum(size, 4.0)[:, 0].mean(),
            jnp.minimum(size, 4.0)[:, 1].mean(), (A == 0)[:, 0].mean(), (A == 0)[:, 1].mean(),
            jnp.tanh(A[0, 0]) * jnp.tanh(beta[0, 0]), jnp.tanh(size[0, 0]) * jnp.tanh(size[0, 1]),
            jnp.abs(beta).mean(), (beta == 0).mean(), jnp.tanh(beta[0, 0]) * jnp.tanh(beta[1, 0]),
        ])  # fmt: skip

    def chain(key):
        begin = (jax.random.fold_in(key, 99), *fresh(key))
        _, A, beta = jax.lax.fori_loop(0, cycles, cycle, begin)
        return functionals(*fresh(jax.random.fold_in(key, 100))), functionals(A, beta)

    drawn = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), chains))
    return [np.asarray(values) for values in drawn]


def largest_z(before, after):
    variance = (before.var(0) + after.var(0)) / len(before)
    return np.max(np.abs(before.mean(0) - after.mean(0)) / np.sqrt(variance + 1e-12))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", some_slow(SETTINGS, "two slabs"))
def test_joint_distribution_of_mixing_matrix_and_coefficients(name):
    """Geweke's test: it passes, and fails where what the data say of A is too small by a fifth."""
    setting = SETTINGS[name]
    assert largest_z(*joint_draws(setting)) < 4.5
    assert largest_z(*joint_draws(setting, of_c=0.8)) > 4.5


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("setting", ["sparse", "nonnegative"])
def test_scales_and_weights_are_those_of_the_entries(setting):
    rng = np.random.default_rng(0)
    d, tau, w = 40_000, np.array([0.2, 3.0]), np.array([0.1, 0.8])
    size = rng.exponential(size=(d, 2)) if setting == "nonnegative" else rng.normal(size=(d, 2))
    A = tau * size * (rng.random((d, 2)) < w)
    prior = first(setting, [0.5, 1.0])
    found = mixing.ColumnsByLaw().mstep(mixing_statistics(prior, A), prior, jnp.asarray(1e-12))
    np.testing.assert_allclose(found.law.scale, tau, rtol=5 / np.sqrt(d * w.min()))
    np.testing.assert_allclose(found.law.law.weights[:, 1], w, atol=5 * np.sqrt(0.25 / d))


def mixing_statistics(prior, A):
    """Return the statistics of entries that are known."""
    zero = jnp.zeros(len(A))
    law = prior.statistics(jnp.asarray(A.T), jnp.ones(len(A)))
    return mixing.base.Mixing(jnp.asarray(A), jnp.square(A), zero, zero, law)


# ------------------------------------------------------------------------------------------ fits


@pytest.mark.slow
def test_sparse_images():
    """Thirty of the paper's images: a third of the error, and the pixels that are on are known."""
    A, X = truth(), sample(30, 0.5, 3)
    options = {"prior": "bg", "n_init": 1, "random_state": 0}
    normal = NoisyICA(2, **options).fit(X)
    sparse = NoisyICA(2, mixing_prior="sparse", **options).fit(X)
    error = mean_square_error(sparse.mixing_, A)
    assert 3 * error < mean_square_error(normal.mixing_, A)
    assert error < 0.012
    on = sparse.components_probability_ > 0.5
    assert {int(column.sum()) for column in on} == {13, 25}
    assert not hasattr(normal, "components_probability_")
    weights = sparse.mixing_prior_.law.law.weights[:, 1]
    # within three standard errors of a count
    assert (np.abs(np.sort(weights) * 256 - [13, 25]) < 3 * np.sqrt([13, 25])).all()


def sparse_data(n=300, d=40, p=3, prior="bg", seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, p)) * (rng.random((d, p)) < 0.3)
    mean = None if priors.get(prior).has_offset else rng.normal(size=d)
    model = Model(A, mean, noise**2, prior)
    return A, model.sample(n, random_state=seed)[0]


@pytest.mark.parametrize(
    "case",
    some_slow(
        ["missing", "diagonal", "auto", "starts", "te", "teoff", "log", "mcem", "laplace"],
        "te", "teoff", "mcem", "laplace",
    ),
)  # fmt: skip
@pytest.mark.slow
def test_sparse_components_in_many_settings(case):
    prior = case if case in ("te", "teoff", "log") else "bg"
    A, X = sparse_data(prior=prior)
    options = {"n_components": 3, "mixing_prior": "sparse", "prior": prior, "n_init": 1}
    options |= {
        "missing": {},
        "diagonal": {"noise": "diagonal"},
        "auto": {"n_components": "auto"},
        "starts": {"n_init": 3, "max_iter": 200, "tol": 0},
        "mcem": {"algorithm": "mcem", "max_iter": 100, "n_draws": 3},
        "laplace": {"mixing_prior": Laplace()},
    }.get(case, {})
    if case == "missing":
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    ica = NoisyICA(random_state=0, verbose=False, **options).fit(X)
    assert ica.components_.shape == (3, 40)
    assert matched_cosine(ica.mixing_, A) > 0.98
    if case != "laplace":
        known = np.abs(ica.components_probability_ - 0.5) > 0.4
        assert known.mean() > 0.8
        shares = ica.mixing_prior_.law.law.weights[:, 1]
        np.testing.assert_allclose(shares, 0.3, atol=0.2)


@pytest.mark.slow
def test_non_negative_factorisation():
    rng = np.random.default_rng(0)
    A = rng.exponential(size=(30, 3)) * (rng.random((30, 3)) < 0.5)
    X = rng.exponential(size=(300, 3)) @ A.T + 0.5 * rng.normal(size=(300, 30))
    assert (X < 0).any()
    options = {"mixing_prior": "nonnegative", "prior": Exponential(), "mean": "zero", "n_init": 1}
    ica = NoisyICA(3, random_state=0, **options).fit(X)
    assert (ica.components_ >= 0).all()
    assert (ica.transform(X) >= 0).all()
    assert matched_cosine(ica.mixing_, A) > 0.99


@pytest.mark.slow
def test_signs_follow_the_law_of_the_entries():
    """Symmetric coefficients leave the signs to A."""
    rng = np.random.default_rng(0)
    A = rng.exponential(size=(30, 2))
    X = rng.laplace(size=(300, 2)) @ A.T + 0.3 * rng.normal(size=(300, 30))
    options = {"prior": "lap", "n_init": 1, "random_state": 0}
    ica = NoisyICA(2, mixing_prior=Exponential(), **options).fit(X)
    assert (ica.components_ >= 0).all()
    assert matched_cosine(ica.mixing_, A) > 0.98


@pytest.mark.slow
def test_dense_components_lose_nothing():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 3))
    X, _ = Model(A, noise_variance=0.25, prior=priors.BernoulliGaussian(0.3)).sample(
        300, random_state=0
    )
    cosines = [
        matched_cosine(
            NoisyICA(3, prior="bg", mixing_prior=setting, n_init=1, random_state=0).fit(X).mixing_,
            A,
        )
        for setting in ("normal", "sparse")
    ]
    assert cosines[1] > cosines[0] - 0.001


@pytest.mark.slow
def test_intervals_cover():
    """Of all entries, and of the large ones, whose error is mostly that of a component's scale.

    Draws do not tell of scales: without what rows do, two thirds of the large ones are covered.
    """
    covered, large = [], []
    for seed in range(6):
        A, X = sparse_data(200, 100, 3, priors.BernoulliGaussian(0.3), seed, noise=0.3)
        ica = NoisyICA(3, prior="bg", mixing_prior="sparse", n_init=1, random_state=seed).fit(X)
        cosine = A.T @ ica.mixing_ / np.linalg.norm(A, axis=0)[:, None]
        match = np.abs(cosine).argmax(1)
        sign = np.sign(cosine[np.arange(3), match])
        off = np.abs(ica.components_[match] * sign[:, None] - A.T)
        inside = off <= 1.96 * ica.components_std_[match]
        covered.append(inside.mean())
        large += [row[np.abs(a) > 1].mean() for row, a in zip(inside, A.T, strict=True)]
        assert ica.standard_errors(X)["components"] is ica.components_std_
    # the entries of a column share its scale: the columns are what is independent
    assert np.mean(covered) > 0.95 - 3 * np.std(covered) / np.sqrt(6)
    assert np.mean(large) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 18)


# -------------------------------------------------------------------------------------- settings


@pytest.mark.slow
def test_a_fit_with_a_law_goes_on_from_a_checkpoint(tmp_path):
    _, X = sparse_data(n=80, d=12)
    options = {"mixing_prior": "sparse", "prior": "bg", "max_iter": 150, "tol": 0, "n_init": 1}
    whole = NoisyICA(3, random_state=0, **options).fit(X)
    file = tmp_path / "checkpoint"
    stop = {"callback": lambda t, model: t >= 30}
    cut = NoisyICA(3, random_state=0, checkpoint=file, **stop, **options)
    cut._fit(X, None)  # what an interruption leaves: the checkpoint stays
    resumed = NoisyICA(3, random_state=0, checkpoint=file, **options).fit(X)
    assert cut.n_iter_ < 150
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.components_probability_, whole.components_probability_)


@pytest.mark.parametrize("setting", ["sparse", Mixture((Dirac(), Laplace()), (0.5, 0.5))])
@pytest.mark.slow
def test_saved_and_loaded(tmp_path, setting):
    _, X = sparse_data(n=60, d=8)
    ica = NoisyICA(2, mixing_prior=setting, max_iter=20, tol=0, random_state=0).fit(X)
    ica.save(tmp_path / "model.npz")
    again = NoisyICA.load(tmp_path / "model.npz")
    for name in ("components_", "components_std_", "components_probability_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(ica, name))
    assert repr(again.mixing_prior) == repr(ica.mixing_prior)
    assert repr(again.mixing_prior_) == repr(ica.mixing_prior_)
    assert repr(clone(again).mixing_prior) == repr(setting)
    # another fit leaves nothing behind
    again.set_params(mixing_prior=None).fit(X)
    assert not hasattr(again, "components_probability_")
    assert not hasattr(again, "mixing_prior_")


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("spars", "'normal', 'sparse', 'nonnegative', None, a law"),
        ("smooth", r"noisyica.Smooth\(shape=...\)"),
        (3.0, "a law of"),
        (Mixture((Dirac(1.0), Normal()), (0.5, 0.5)), "atom at 0 only"),
        (Dirac(), "atom at 0 only"),
    ],
)
def test_what_cannot_be_a_prior_of_the_mixing_matrix(setting, text):
    with pytest.raises(ValueError, match=text):
        NoisyICA(2, mixing_prior=setting).fit(np.random.default_rng(0).normal(size=(20, 4)))


def test_units_do_not_matter():
    _, X = sparse_data(n=80, d=12)
    options = {"mixing_prior": "sparse", "prior": "bg", "max_iter": 60, "tol": 0, "n_init": 1}
    ica = NoisyICA(3, random_state=0, **options).fit(X)
    scaled = NoisyICA(3, random_state=0, **options).fit(X * 1e-12)
    np.testing.assert_allclose(scaled.components_ * 1e12, ica.components_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scaled.components_std_ * 1e12, ica.components_std_, rtol=1e-3)
    scales = [np.asarray(fit.mixing_prior_.law.scale) for fit in (ica, scaled)]
    np.testing.assert_allclose(scales[1] * 1e12, scales[0], rtol=1e-3)
