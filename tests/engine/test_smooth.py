"""Smooth components: their M-step, fits over grids and surfaces, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone

from noisyica import Model, NoisyICA, Smooth, priors
from noisyica.engine.loop import learn_stage
from noisyica.engine.mixing.smooth import Seen, SmoothColumns, first_spectra, learn_spectra
from noisyica.engine.runs import begin
from noisyica.engine.task import prepare
from noisyica.laws import Exponential
from noisyica.paper.images import truth
from noisyica.posterior.parameters import Parameters
from noisyica.rows import block
from noisyica.rows.source import Rows
from tests.tools import matched_cosine, some_slow

SHAPE = (12, 12)
GRID = Smooth(shape=SHAPE)
SMOOTHNESS = np.array([1.0, 4.0, 16.0])


def smooth_data(n=150, noise=0.5, seed=0, setting=GRID, d=144, prior=None):
    """Return components that follow the prior, and rows of them."""
    rng = np.random.default_rng(seed)
    basis = setting.basis(d)
    spectra = first_spectra(basis, d, 3)
    spectra = spectra._replace(scale=np.array([3.0, 5.0, 8.0]), smoothness=SMOOTHNESS)
    A = basis.back(spectra.deviations() * rng.normal(size=(3, d))).T
    model = Model(A, noise_variance=noise**2, prior=prior or priors.BernoulliGaussian(0.3))
    return A, model.sample(n, random_state=seed)[0] + rng.normal(size=d)


def fit(X, setting=GRID, p=3, **options):
    options = {"prior": "bg", "n_init": 1, "random_state": 0, "verbose": False, **options}
    return NoisyICA(p, mixing_prior=setting, **options).fit(X)


# ---------------------------------------------------------------------------------- the M-step


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("noise", [1e-6, 0.3])
def test_scale_and_smoothness_are_of_maximum_likelihood(noise):
    """Steps from afar end where a general optimiser does, whatever the noise of the entries."""
    rng = np.random.default_rng(0)
    basis, d = Smooth(shape=(15, 9)).basis(135), 135
    old = first_spectra(basis, d, 4)
    true = old._replace(scale=np.array([1, 2, 3, 9]), smoothness=np.array([0, 0.3, 5.0, 80.0]))
    deviations = np.hypot(true.deviations(), np.sqrt(noise)).T
    square = np.square(deviations * rng.normal(size=(d, 4)))
    weight = np.array([1.0, 0.5, 2.0, 1.0])
    seen = Seen(jnp.asarray(weight * square), jnp.asarray(weight * noise), jnp.asarray(weight))
    found = jax.tree.map(jnp.asarray, old)
    for _ in range(60):
        found = learn_spectra(seen, found, jnp.asarray(1e-12))
    e = basis.eigenvalues(d)

    def loss(parameters, squares):
        tau, smoothness = np.exp(parameters)
        variance = np.square(tau / (1 + smoothness * e)) + noise
        return 0.5 * np.sum(np.log(variance) + squares / variance)

    for j in range(4):
        starts = [[0.0, at] for at in (-9.0, -2.0, 2.0, 6.0)]
        runs = [optimize.minimize(loss, at, square[:, j], "Nelder-Mead") for at in starts]
        best = min(runs, key=lambda run: run.fun)
        ours = np.log([found.scale[j], found.smoothness[j]])
        assert loss(ours, square[:, j]) < best.fun + 1e-3
        if best.x[1] > -4:  # otherwise it is as good as zero
            np.testing.assert_allclose(ours, best.x, atol=0.01)


@pytest.mark.usefixtures("double")
def test_the_scale_has_a_floor():
    old = jax.tree.map(jnp.asarray, first_spectra(GRID.basis(144), 144, 1))
    for _ in range(40):
        old = learn_spectra(Seen(jnp.full((144, 1), 1e-30), *jnp.ones((2, 1))), old, 1e-8)
    np.testing.assert_allclose(old.scale, 1e-4)


def test_a_run_begins_with_the_smoothness_of_its_start():
    rng = np.random.default_rng(0)
    spectra = first_spectra(GRID.basis(144), 144, 3)
    true = spectra._replace(scale=np.array([3.0, 5.0, 8.0]), smoothness=SMOOTHNESS)
    A = (true.deviations() * rng.normal(size=(3, 144))).T
    parameters = Parameters(A, np.zeros(144), np.array(0.5), priors.get("lap"), spectra)
    found = SmoothColumns().begin(parameters, 1e-8, 100)
    np.testing.assert_allclose(np.log(found.smoothness / SMOOTHNESS), 0, atol=1)


@pytest.mark.usefixtures("double")
def test_a_dead_column_is_no_reason_to_prefer_a_run():
    """What tells of runs is not the density of a draw, which is large where A is small."""
    A, X = smooth_data(n=60)
    task = prepare(NoisyICA(3, mixing_prior=GRID, n_init=1, random_state=0), Rows(X))
    scores = []
    for kept in (3, 2):
        begun = A / task.rows.unit
        begun[:, kept:] = 1e-6
        start = task.zeros._replace(A=task.rows.to_basis(begun.T).T, sigma2=np.array(0.1))
        runs = [begin(task.stages[0].sweeper, start, task.plan, task.constants)]
        *_, runs = learn_stage(task.stages[0], runs, task.key, task.plan, 40)
        state = runs[0].state
        if kept == 2:  # as a run that lost a component
            off = state.statistics.mixing.mean.at[:, 2].set(0.0)
            square = state.statistics.mixing.square.at[:, 2].set(1e-12)
            mixing = state.statistics.mixing._replace(mean=off, square=square)
            spectra = state.parameters.mixing
            spectra = spectra._replace(
                scale=spectra.scale.at[2].set(1e-6), smoothness=spectra.smoothness.at[2].set(1e-6)
            )
            parameters = state.parameters._replace(mixing=spectra)
            statistics = state.statistics._replace(mixing=mixing)
            state = state._replace(parameters=parameters, statistics=statistics)
        scores.append(task.score(state))
    assert scores[0] > scores[1]


# ------------------------------------------------------------------------------------------ fits


@pytest.mark.slow
def test_smooth_components_are_found_with_a_fraction_of_the_error():
    A, X = smooth_data(n=40, noise=1.5)
    cosines = [matched_cosine(fit(X, setting).mixing_, A) for setting in ("normal", GRID)]
    assert 1 - cosines[1] < 0.4 * (1 - cosines[0])


def test_how_smooth_components_are_is_learnt():
    A, X = smooth_data()
    ica = fit(X)
    cosine = np.abs(A.T @ ica.mixing_) / np.linalg.norm(A, axis=0)[:, None]
    order = (cosine / np.linalg.norm(ica.mixing_, axis=0)).argmax(1)
    # the error of log lambda is about sqrt(2 / (number of entries that matter)) < 0.4
    np.testing.assert_allclose(np.log(ica.mixing_prior_.length[order] ** 2 / SMOOTHNESS), 0, atol=1)
    np.testing.assert_allclose(np.log(ica.mixing_prior_.scale[order] / [3, 5, 8]), 0, atol=0.6)


def test_smooth_components_in_much_noise_are_found_from_the_default_start():
    """The principal components of rows that are not smoothed have nothing of them."""
    setting, rng = Smooth(shape=(48, 48)), np.random.default_rng(0)
    basis = setting.basis(48 * 48)
    spectra = first_spectra(basis, 48 * 48, 1)
    spectra = spectra._replace(scale=np.array([60.0]), smoothness=np.array([1000.0]))
    A = basis.back(spectra.deviations() * rng.normal(size=(1, 48 * 48))).T
    X = rng.logistic(size=(50, 1)) @ A.T + 8 * rng.normal(size=(50, 48 * 48))
    ica = fit(X, setting, 1, prior="log")
    assert matched_cosine(ica.mixing_, A) > 0.9
    assert 300 < ica.mixing_prior_.smoothness[0] < 3000


def test_rough_components_lose_nothing():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(144, 3))
    X, _ = Model(A, noise_variance=1.0, prior=priors.BernoulliGaussian(0.3)).sample(
        200, random_state=0
    )
    normal, smooth = (matched_cosine(fit(X, setting).mixing_, A) for setting in ("normal", GRID))
    assert smooth > normal - 0.001


@pytest.mark.slow
def test_intervals_cover():
    """Of the points of a component: those near each other err together, so sets are compared."""
    covered = []
    for seed in range(6):
        A, X = smooth_data(200, 1.0, seed)
        ica = fit(X, random_state=seed)
        cosine = A.T @ ica.mixing_ / np.linalg.norm(A, axis=0)[:, None]
        match = np.abs(cosine / np.linalg.norm(ica.mixing_, axis=0)).argmax(1)
        sign = np.sign(cosine[np.arange(3), match])
        off = np.abs(ica.components_[match] * sign[:, None] - A.T)
        covered.append((off <= 1.96 * ica.components_std_[match]).mean())
        assert ica.standard_errors(X)["components"] is ica.components_std_
    error = np.std(covered, ddof=1) / np.sqrt(6)
    assert abs(np.mean(covered) - 0.95) < 3 * error
    assert error < 0.02


def tube():
    """Return the triangles of a tube of 12 rings of 12 points."""
    ring, place = np.divmod(np.arange(11 * 12), 12)
    corners = [ring * 12 + place, ring * 12 + (place + 1) % 12]
    corners += [corner + 12 for corner in corners]
    a, b, c, d = corners
    return np.concatenate([np.stack([a, b, c], 1), np.stack([b, d, c], 1)])


@pytest.mark.parametrize(
    "case",
    some_slow(["volume", "surface", "graph", "colours", "log", "te", "mcem"], "te", "mcem"),
)
def test_in_many_settings(case):
    setting = {
        "volume": Smooth(shape=(6, 4, 6)),
        "surface": Smooth(faces=tube()),
        "graph": Smooth(adjacency=np.eye(144, k=1) + np.eye(144, k=-1)),
        "colours": Smooth(shape=(6, 8), channels=3),
    }.get(case, GRID)  # fmt: skip
    prior = case if case in ("log", "te") else None
    A, X = smooth_data(n=300, setting=setting, prior=prior)
    options = {"algorithm": "mcem", "n_draws": 3, "max_iter": 100} if case == "mcem" else {}
    ica = fit(X, setting, prior=prior or "bg", **options)
    assert matched_cosine(ica.mixing_, A) > 0.97
    assert (ica.components_[np.arange(3), np.abs(ica.components_).argmax(1)] > 0).all()
    np.testing.assert_allclose(ica.noise_variance_, 0.25, rtol=0.05)


def test_the_mean_is_in_the_basis_of_x():
    """Coefficients of mean 1 take a part of the mean of x, which is smooth, away from it."""
    rng = np.random.default_rng(0)
    A, _ = smooth_data()
    mean = 5 * rng.normal(size=144)
    X = mean + rng.exponential(size=(400, 3)) @ A.T + 0.3 * rng.normal(size=(400, 144))
    told = []
    ica = fit(X, prior=Exponential(), callback=lambda t, model: told.append(model))
    left = ica.mean_ + ica.components_.sum(0) - X.mean(0)
    assert np.abs(left).max() < 0.2
    assert np.abs(ica.mean_ - X.mean(0)).max() > 1
    np.testing.assert_allclose(told[-1].mean, ica.mean_, atol=0.1)
    np.testing.assert_allclose(np.abs(told[-1].mixing).sum(), np.abs(ica.mixing_).sum(), rtol=0.1)
    mean = ica.mean_
    ica.set_params(warm_start=True, max_iter=1, init="random").fit(X)
    np.testing.assert_allclose(ica.mean_, mean, atol=0.3)


@pytest.mark.slow
def test_many_blocks_of_a_memory_map_and_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(block, "ROWS_ON_CPU", 128)
    A, X = smooth_data(n=300)
    np.save(tmp_path / "X.npy", X)
    weight = np.ones(300)
    weight[:20] = 0
    settings = {"prior": "bg", "n_init": "auto", "max_iter": 210, "tol": 0, "verbose": False}
    ica = NoisyICA(3, mixing_prior=GRID, random_state=0, **settings)
    ica.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), sample_weight=weight)
    assert matched_cosine(ica.mixing_, A) > 0.97
    assert (ica.reliability_ > 0.85).all()


def test_varimax_looks_for_zeros_in_the_basis_of_x():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ truth().T + 0.1 * rng.normal(size=(200, 256))
    ica = fit(X, Smooth(shape=(16, 16)), 2, prior="log", init="varimax", max_iter=1)
    assert matched_cosine(ica.mixing_, truth()) > 0.95


def test_number_of_components_is_found():
    A, X = smooth_data()
    ica = fit(X, p="auto")
    assert ica.components_.shape == (3, 144)
    assert matched_cosine(ica.mixing_, A) > 0.97


@pytest.mark.slow
def test_starts_and_halves_are_compared_in_one_basis():
    _, X = smooth_data(noise=0.3)
    ica = fit(X, n_init=3, max_iter=210, tol=0)
    assert (ica.stability_ > 0.95).all()
    assert (ica.reliability_ > 0.9).all()


def test_a_given_start_and_a_warm_start_are_in_the_basis_of_x():
    A, X = smooth_data()
    once = fit(X, init=A, max_iter=1, burn_in=1.0)
    assert matched_cosine(once.mixing_, A) > 0.97
    ica = fit(X)
    components, mean = ica.mixing_, ica.mean_
    ica.set_params(warm_start=True, max_iter=1, init="random").fit(X)
    assert matched_cosine(ica.mixing_, components) > 0.99
    np.testing.assert_allclose(ica.mean_, mean, atol=0.3)


def test_a_fit_goes_on_from_a_checkpoint(tmp_path):
    _, X = smooth_data(n=60)
    whole = fit(X, max_iter=150, tol=0)
    file = tmp_path / "checkpoint"
    cut = clone(whole).set_params(checkpoint=file, callback=lambda t, model: t >= 30)
    cut._fit(X, None)  # what an interruption leaves: the checkpoint stays
    assert cut.n_iter_ < 150
    resumed = clone(whole).set_params(checkpoint=file).fit(X)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


@pytest.mark.parametrize("setting", [GRID, Smooth(faces=tube())])
def test_saved_and_loaded(tmp_path, setting):
    _, X = smooth_data(n=60)
    ica = fit(X, setting, max_iter=20, tol=0)
    ica.save(tmp_path / "model.npz")
    again = NoisyICA.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.components_std_, ica.components_std_)
    np.testing.assert_array_equal(again.mixing_prior_.length, ica.mixing_prior_.length)
    np.testing.assert_array_equal(again.fit(X).components_, ica.components_)


def test_units_do_not_matter():
    _, X = smooth_data(n=60)
    one, other = fit(X, max_iter=30, tol=0), fit(2.0**40 * X, max_iter=30, tol=0)
    np.testing.assert_allclose(other.components_, 2.0**40 * one.components_, rtol=1e-6)
    np.testing.assert_allclose(other.mixing_prior_.scale, 2.0**40 * one.mixing_prior_.scale)
    np.testing.assert_allclose(other.mixing_prior_.length, one.mixing_prior_.length, rtol=1e-6)


def test_maximum_likelihood_does_not_look_at_neighbours():
    _, X = smooth_data(n=60)
    em, same = (
        fit(X, m, algorithm="em", noise="isotropic", max_iter=20, tol=0) for m in (GRID, None)
    )
    np.testing.assert_array_equal(em.components_, same.components_)


# -------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"noise": "diagonal"}, "noise='isotropic'"),
        ({"mean": "offset"}, "without random offsets"),
        ({"prior": "teoff"}, "without random offsets"),
        ({"setting": Smooth(shape=(5, 5))}, "25 points, but X has 144 columns"),
        ({"setting": Smooth(shape=12)}, "12 points, but X has 144 columns"),
        ({"setting": Smooth(shape=(5, 5), channels=3)}, "25 points with 3 numbers each, but"),
        ({"setting": Smooth(faces=tube()[:20])}, "points, but X has 144 columns"),
    ],
)
def test_what_is_not_possible_is_refused(options, text):
    _, X = smooth_data(n=20)
    with pytest.raises(ValueError, match=text):
        fit(X, **options)


def test_missing_entries_are_refused():
    _, X = smooth_data(n=20)
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match="without missing entries"):
        fit(X)
