"""Noise that is as unequal between columns, and between rows, as these tell (noise="auto")."""

import warnings

import numpy as np
import pytest

from noisyica import NoisyICA, Smooth
from tests.engine.test_doubts import heywood
from tests.tools import matched_cosine, simulate

FAST = {"n_init": 1, "max_iter": 300, "tol": 0, "random_state": 0}


def log_spread(variances):
    return float(np.std(np.log(variances)))


def test_equal_columns_have_one_variance():
    """60 rows leave a variance uncertain by 18 per cent, which is how "diagonal" varies."""
    _, X = simulate("bg", n=60, d=40, p=2, sigma=0.5)
    alike, own = (NoisyICA(2, noise=noise, **FAST).fit(X) for noise in ("auto", "diagonal"))
    assert log_spread(own.noise_variance_) > 0.12
    assert isinstance(alike.noise_variance_, float)
    # the mean of 2,400 squares has an error of sqrt(2 / 2400) = .03
    assert alike.noise_variance_ == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize("settings", [{"algorithm": "fam-em"}, {"n_components": 5, "prior": "lap"}])
def test_auto_has_one_variance_where_nothing_tells_those_of_columns(settings):
    _, X = simulate("bg", n=80, d=5, p=2, sigma=0.5)
    settings = {"n_components": 2, **FAST, "max_iter": 30, **settings}
    found = NoisyICA(noise="auto", **settings).fit(X)
    assert isinstance(found.noise_variance_, float)
    if "algorithm" in settings:  # nor are there weights of rows
        same = NoisyICA(noise="isotropic", **settings).fit(X)
        np.testing.assert_array_equal(found.components_, same.components_)


def test_unequal_columns_have_variances_of_their_own():
    true_model, X = simulate("bg", n=500, d=20, p=2, sigma=1e-6)
    rng = np.random.default_rng(1)
    true = np.exp(rng.normal(size=20))
    X = X + np.sqrt(true) * rng.normal(size=X.shape)
    ica = NoisyICA(2, noise="auto", **FAST).fit(X)
    # sqrt(2 / 500) is the error of the logarithm of each
    assert np.abs(np.log(ica.noise_variance_ / true)).max() < 4 * np.sqrt(2 / 500)
    assert matched_cosine(ica.mixing_, true_model.mixing) > 0.98
    equal = NoisyICA(2, noise="isotropic", **FAST).fit(X)
    assert ica.score(X) > equal.score(X) + 1


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_no_column_is_taken_over(unit):
    """A column that is a component by itself keeps some noise, and a warning says so.

    In the unit of that column the noise of the others may be as low as that of columns without any.
    """
    X = heywood()
    X[:, 2] *= unit
    with pytest.warns(
        UserWarning, match=r"1 of 6 columns \(2\) ran to zero, and was held at 0.001"
    ):
        ica = NoisyICA(2, noise="auto", **FAST).fit(X)
    share = ica.noise_variance_ / X.var(0)
    assert share[2] == pytest.approx(1e-3, rel=1e-6)
    assert np.delete(share, 2).min() > 0.01


@pytest.mark.slow
def test_columns_with_hardly_any_noise_have_no_floor():
    """Where noise is low in all columns, it is as low as it is, and nothing is wrong."""
    sigma = 0.01
    true_model, X = simulate("lap", n=400, d=10, p=3, sigma=sigma)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ica = NoisyICA(3, prior="lap", noise="auto", **FAST).fit(X)
    assert (ica.noise_variance_ / X.var(0)).max() < 1e-3
    np.testing.assert_allclose(ica.noise_variance_, sigma**2, rtol=0.3)
    assert matched_cosine(ica.mixing_, true_model.mixing) > 0.98


def strokes(n, side, seed=0):
    """Return pictures of two pen strokes each: most pixels of most rows are -1, or nearly."""
    rng = np.random.default_rng(seed)
    axis, along = np.linspace(-1, 1, side), np.linspace(0, 1, 8)[:, None, None, None]
    pixels = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 1, 1, 1, 2)
    begin, end = rng.normal(0, 0.35, size=(2, n, 2, 2))
    distance = np.square(pixels - begin - (end - begin) * along).sum(-1).min((1, 3))
    return 2 * np.exp(-distance / (2 * 0.12**2)).T - 1


@pytest.mark.parametrize("noise", ["student", "auto"])
def test_many_components_of_columns_that_are_nearly_constant(noise):
    """Coefficients of many components that hardly differ used to grow without end."""
    X = strokes(300, 10)
    assert np.median(np.abs(X + 1)) < 0.01
    settings = {"noise": noise, "init": "fastica", "max_iter": 100, "tol": 0, "n_init": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns at their floor
        ica = NoisyICA(80, random_state=0, verbose=False, **settings).fit(X)
    # coefficients are of the order of one: no component is longer than a row
    assert ica.history_["column_norms"].max() < np.linalg.norm(X, axis=1).max()


def test_independent_columns_have_one_component():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20)) * np.exp(rng.normal(size=20))
    assert len(NoisyICA(noise="auto", **FAST).fit(X).components_) == 1


def test_heavy_tailed_rows_have_one_component():
    """With equal noise in all rows, the longest of them have components of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20)) / np.sqrt(rng.gamma(1.05, 1 / 1.05, 400))[:, None]
    assert len(NoisyICA(noise="auto", **FAST).fit(X).components_) == 1
    assert len(NoisyICA(noise="isotropic", **FAST).fit(X).components_) > 2


def test_outlying_rows_of_unequal_columns():
    """Both are found, with their sizes; where rows are normal, the model is one of normal noise."""
    true_model, clean = simulate("bg", n=400, d=20, p=2, sigma=1e-6)
    rng = np.random.default_rng(1)
    true = np.exp(rng.normal(size=20))
    noise = np.sqrt(true) * rng.normal(size=clean.shape)
    outlying = np.arange(400) < 20
    ica = NoisyICA(2, noise="auto", **FAST).fit(clean + np.where(outlying, 8, 1)[:, None] * noise)
    assert ica.row_weights_[outlying].max() < 0.3 < ica.row_weights_[~outlying].min()
    assert np.abs(np.log(ica.noise_variance_ / true)).max() < 0.1 + 4 * np.sqrt(2 / 380)
    assert matched_cosine(ica.mixing_, true_model.mixing) > 0.98
    normal = NoisyICA(2, noise="auto", **FAST).fit(clean + noise)
    assert not hasattr(normal, "noise_dof_")
    assert np.isfinite(normal.model_.log_likelihood(clean[:5], method="exact")).all()


@pytest.mark.slow
def test_smooth_components_have_one_variance():
    _, X = simulate("bg", n=60, d=16, p=2, sigma=0.5)
    ica = NoisyICA(2, noise="auto", mixing_prior=Smooth(shape=(4, 4)), **FAST).fit(X)
    assert isinstance(ica.noise_variance_, float)
