"""Where learning starts: near the components, whatever the rounding of the rows."""

import numpy as np
import pytest

from noisyica import Model, priors
from noisyica.rows.source import Rows
from noisyica.rows.starts import count_above_noise, covariance, fill, principal, start
from tests.tools import matched_cosine, simulate


def test_components_above_noise_are_counted():
    for p in (1, 3, 7):
        _, X = simulate("bg", n=800, d=40, p=p, sigma=1.0, seed=p)
        variances = principal(X - X.mean(0))[0]
        assert count_above_noise(variances, *X.shape) == p


def test_the_covariance_is_that_of_all_rows():
    X = np.random.default_rng(0).normal(size=(60, 5)) * [1, 2, 3, 4, 5]
    rows, _ = Rows(X).centred(True)
    whole = rows.standardised(0, 60)
    expected = np.linalg.eigvalsh(np.cov(whole.T, bias=True))[::-1]
    variances = np.linalg.eigvalsh(covariance(rows))[::-1]
    np.testing.assert_allclose(variances, expected, rtol=1e-10)
    np.testing.assert_allclose(principal(whole)[0], expected, rtol=1e-10)


def test_missing_entries_are_filled_from_the_components():
    model, X = simulate("bg", n=400, d=30, p=3, sigma=0.2)
    X = X - X.mean(0)
    holes = np.random.default_rng(0).random(X.shape) < 0.2
    filled = fill(np.where(holes, np.nan, X))
    np.testing.assert_array_equal(filled[~holes], X[~holes])
    assert np.square(filled - X)[holes].mean() < 0.5 * np.square(X)[holes].mean()


def test_varimax_finds_sparse_components_of_normal_coefficients():
    """No other start can: normal coefficients look the same after any rotation."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.2)
    X = rng.normal(size=(300, 4)) @ A.T + 0.3 * rng.normal(size=(300, 60))
    cosines = {
        method: matched_cosine(
            start(X, 4, priors.get("bg"), method, np.random.RandomState(0))[0], A
        )
        for method in ("varimax", "fastica")
    }
    assert cosines["varimax"] > 0.97
    assert cosines["fastica"] < 0.9


@pytest.mark.parametrize("method", ["fastica", "pca", "rotation", "varimax"])
def test_a_start_has_the_scale_of_the_rows(method):
    """Coefficients of the prior's variance, times the start, have the variance of the rows."""
    prior = priors.get("bg")
    X = simulate("bg", n=500, d=12, p=3)[1]
    X = X - X.mean(0)
    A, noise = start(X, 3, prior, method, np.random.RandomState(0))
    assert A.shape == (12, 3)
    explained = prior.variance() * np.square(A).sum() + 12 * noise
    assert explained == pytest.approx(np.square(X).mean(0).sum(), rel=0.35)


@pytest.mark.parametrize("seed", [0, 1])
def test_rounding_does_not_spoil_fastica(seed):
    """The last bits of the rows decide how white scores are whitened again, and nothing else.

    Columns have one direction in common, which has most of the variance.
    """
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 15)) + 8 * rng.normal(size=15)
    X = Model(A, noise_variance=0.09, prior="bg").sample(1500, random_state=0)[0]
    X = (X - X.mean(0)) / X.std()
    cosines = []
    for _ in range(10):
        rounded = X * (1 + 1e-15 * rng.normal(size=X.shape))
        B, _ = start(rounded, 15, priors.get("bg"), "fastica", np.random.RandomState(seed))
        cosines.append(matched_cosine(A, B))
    assert min(cosines) > 0.999


@pytest.mark.parametrize("method", ["sparse directions", "directions", "clusters"])
def test_starts_of_one_scale_with_few_rows(method):
    X = np.random.default_rng(0).normal(size=(6, 12))
    A, noise = start(X, 8, priors.SingleScaleTernary(), method, np.random.RandomState(0))
    assert A.shape == (12, 8)
    assert np.isfinite(A).all()
    assert noise > 0
