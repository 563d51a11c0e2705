"""Smooth components: their M-step, fits over grids and surfaces, and what they refuse."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone

from noisyica import Model, NoisyICA, Smooth, priors
from noisyica.engine.mixing.smooth import first_spectra, learn_spectra
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
@pytest.mark.parametrize("xp", [np, jnp])
def test_scale_and_smoothness_are_of_maximum_likelihood(xp):
    rng = np.random.default_rng(0)
    basis, d = Smooth(shape=(9, 5)).basis(90), 90
    old = first_spectra(basis, d, 4)
    true = old._replace(scale=np.array([0.3, 1, 2, 5]), smoothness=np.array([0, 0.3, 5.0, 80.0]))
    square = np.square(true.deviations() * rng.normal(size=(4, d))).T
    found = learn_spectra(xp.asarray(square), old, xp.asarray(1e-12), xp)
    e = basis.eigenvalues(d)

    def loss(parameters, squares):
        tau, smoothness = np.exp(parameters)
        deviations = tau / (1 + smoothness * e)
        return np.sum(np.log(deviations) + 0.5 * squares / deviations**2)

    for j in range(4):
        starts = [[0.0, at] for at in (-9.0, -2.0, 2.0, 6.0)]
        runs = [optimize.minimize(loss, at, square[:, j], "Nelder-Mead") for at in starts]
        best = min(runs, key=lambda run: run.fun)
        ours = np.log([found.scale[j], max(found.smoothness[j], 1e-300)])
        assert loss(ours, square[:, j]) < best.fun + 1e-3
        if best.x[1] > -4:  # otherwise it is as good as zero
            np.testing.assert_allclose(ours, best.x, atol=0.01)


def test_the_scale_has_a_floor():
    old = first_spectra(GRID.basis(144), 144, 1)
    found = learn_spectra(np.full((144, 1), 1e-30), old, 1e-8, np)
    np.testing.assert_allclose(found.scale, 1e-4)


# ------------------------------------------------------------------------------------------ fits


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


def test_rough_components_lose_nothing():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(144, 3))
    X, _ = Model(A, noise_variance=1.0, prior=priors.BernoulliGaussian(0.3)).sample(
        200, random_state=0
    )
    normal, smooth = (matched_cosine(fit(X, setting).mixing_, A) for setting in ("normal", GRID))
    assert smooth > normal - 0.001


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
        "graph": Smooth(adjacency=sparse.diags_array([1, 1], offsets=[-1, 1], shape=(144, 144))),
        "colours": Smooth(shape=(6, 8)),
    }.get(case, GRID)  # fmt: skip
    prior = case if case in ("log", "te") else None
    A, X = smooth_data(n=300, setting=setting, prior=prior)
    options = {"algorithm": "mcem", "n_draws": 3, "max_iter": 100} if case == "mcem" else {}
    ica = fit(X, setting, prior=prior or "bg", **options)
    assert matched_cosine(ica.mixing_, A) > 0.97
    assert (ica.components_[np.arange(3), np.abs(ica.components_).argmax(1)] > 0).all()
    np.testing.assert_allclose(ica.mean_, X.mean(0), atol=1.0)
    np.testing.assert_allclose(ica.noise_variance_, 0.25, rtol=0.05)


def test_number_of_components_is_found():
    A, X = smooth_data()
    ica = fit(X, p="auto")
    assert ica.components_.shape == (3, 144)
    assert matched_cosine(ica.mixing_, A) > 0.97


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
    em, same = (fit(X, m, algorithm="em", max_iter=20, tol=0) for m in (GRID, None))
    np.testing.assert_array_equal(em.components_, same.components_)


# -------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"noise": "diagonal"}, "noise='isotropic'"),
        ({"mean": "offset"}, "without random offsets"),
        ({"prior": "teoff"}, "without random offsets"),
        ({"setting": Smooth(shape=(5, 5))}, "25 points, but X has 144 columns"),
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
