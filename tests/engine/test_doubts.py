"""What a fit says of itself: noise that runs to zero, components that rows do not determine."""

import numpy as np
import pytest

from noisyica import NoisyICA
from noisyica.engine.task import LEAST_AT_MODE, LEAST_OWN_NOISE
from noisyica.rows import starts
from noisyica.rows.dimension import bic_of_equal_noise, bic_of_own_noise, dimension
from noisyica.rows.source import Rows
from tests.tools import simulate

FAST = {"max_iter": 60, "tol": 0, "random_state": 0, "verbose": False}


def heywood(n=300, d=6):
    """Rows in which a sparse component is a column by itself: its noise has nothing to explain."""
    rng = np.random.default_rng(0)
    common = rng.laplace(size=(n, 1)) @ rng.normal(size=(1, d))
    X = common + 0.5 * rng.normal(size=(n, d))
    X[:, 2] = 3 * rng.normal(size=n) * (rng.random(n) < 0.2)
    return X


def test_noise_of_a_column_that_a_component_takes_over_has_a_floor():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(heywood(), columns=list("abcdef"))
    with pytest.warns(UserWarning, match=r"1 of 6 columns \('c'\) ran to zero") as caught:
        ica = NoisyICA(2, noise="diagonal", **FAST | {"max_iter": 300}).fit(X)
    assert len(caught) == 1
    share = ica.noise_variance_ / X.to_numpy().var(0)
    assert share[2] == pytest.approx(LEAST_OWN_NOISE, rel=1e-6)
    assert np.delete(share, 2).min() > 0.01
    assert np.isfinite(ica.transform(X)).all()


def test_rows_without_noise_can_be_learnt():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 2))
    X = rng.laplace(size=(300, 2)) @ A.T
    with pytest.warns(UserWarning, match=r"6 of 6 columns \(0, 1, 2, 3, 4 and 1 more\)"):
        ica = NoisyICA(2, prior="lap", noise="diagonal", **FAST).fit(X)
    residual = X - ica.inverse_transform(ica.transform(X))
    assert np.square(residual).mean() < 2 * LEAST_OWN_NOISE * X.var()


def test_a_constant_column_is_no_surprise():
    _, X = simulate("bg", n=200, d=6, p=2, sigma=0.5)
    X[:, 3] = 7.0
    ica = NoisyICA(2, noise="diagonal", **FAST).fit(X)
    assert (ica.noise_variance_ > 0).all()
    assert ica.mean_[3] == pytest.approx(7.0, abs=1e-3)


def test_columns_in_any_units_can_be_learnt_with_noise_of_their_own():
    _, X = simulate("bg", n=300, d=6, p=2, sigma=0.5)
    units = 10.0 ** np.array([-9, -6, -3, 0, 2, 3])
    settings = FAST | {"noise": "diagonal", "mixing_prior": None, "max_iter": 150}
    usual, scaled = (NoisyICA(2, **settings).fit(Y) for Y in (X, X * units))
    # the starts are the same, and so are the random numbers; rounding differs from column to column
    ratio = scaled.noise_variance_ / np.square(units) / usual.noise_variance_
    np.testing.assert_allclose(ratio, 1.0, rtol=0.05)
    assert np.isfinite(scaled.transform(X * units)).all()
    assert np.isfinite(scaled.score(X * units))


def test_columns_that_are_lost_beside_others():
    _, X = simulate("bg", n=100, d=4, p=1, sigma=0.5)
    with pytest.warns(UserWarning, match=r"1 of 4 columns \(2\) are less than 3e-16 times"):
        ica = NoisyICA(1, noise="diagonal", **FAST).fit(X * [1, 1, 1e-30, 1])
    assert np.isfinite(ica.components_).all()


def test_more_components_than_columns_at_the_mode():
    _, X = simulate("lap", n=100, d=4, p=2, sigma=0.5)
    with pytest.warns(UserWarning, match="at their mode, 6 components fit any row of 4 columns"):
        ica = NoisyICA(
            6, prior="lap", algorithm="fam-em", n_init=1, **FAST | {"max_iter": 400}
        ).fit(X)
    assert ica.noise_variance_ == pytest.approx(LEAST_AT_MODE * X.var(0).mean(), rel=1e-6)


def test_more_components_than_rows():
    X = np.random.default_rng(0).normal(size=(12, 20))
    with pytest.warns(UserWarning, match="15 components are more than 12 rows can determine"):
        NoisyICA(15, **FAST).fit(X)


def unequal(seed, n=300, d=20):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.exp(0.6 * rng.normal(size=d))


def test_unequal_noise_is_not_taken_for_components():
    X = unequal(0)
    with pytest.warns(UserWarning, match=r"with equal noise .* about 1, .* noise='diagonal'"):
        many = NoisyICA(noise="isotropic", **FAST).fit(X)
    assert len(many.components_) > 3
    assert len(NoisyICA(noise="diagonal", **FAST).fit(X).components_) == 1


def found(X):
    rows, _ = Rows(X).centred(True)
    return dimension(rows, rows.standardised(0, rows.n), False, False, False)


def test_the_check_of_equal_noise_has_power_and_no_false_alarms():
    assert sum(found(unequal(seed)).own_noise is not None for seed in range(20)) >= 18
    for seed in range(20):
        rng = np.random.default_rng(seed)
        signal = rng.laplace(size=(300, 4)) @ rng.normal(size=(4, 20)) * rng.uniform(0.2, 2)
        assert found(signal + rng.normal(size=(300, 20))).own_noise is None


def test_bic_is_that_of_the_normal_likelihood():
    """Against the density of rows, at parameters that maximise it."""
    from scipy.stats import multivariate_normal
    from sklearn.decomposition import PCA, FactorAnalysis

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 7)) + rng.normal(size=(400, 7))
    X = (X - X.mean(0)) * rng.uniform(0.5, 2, 7)
    S = X.T @ X / 400
    covariance = PCA(2).fit(X * np.sqrt(399 / 400)).get_covariance()
    value = -2 * multivariate_normal(np.zeros(7), covariance).logpdf(X).sum()
    constant = 400 * 7 * np.log(2 * np.pi)
    expected = value - constant + np.log(400) * (7 * 2 - 1 + 1)
    assert bic_of_equal_noise(S, 400, 2) == pytest.approx(expected, rel=1e-3)
    covariance = FactorAnalysis(2, tol=1e-8, max_iter=5000).fit(X).get_covariance()
    value = -2 * multivariate_normal(np.zeros(7), covariance).logpdf(X).sum()
    expected = value - constant + np.log(400) * (7 * 2 - 1 + 7)
    assert bic_of_own_noise(S, 400, 2) == pytest.approx(expected, abs=1.0)
    value = -2 * multivariate_normal(np.zeros(7), np.diag(np.diag(S))).logpdf(X).sum()
    assert bic_of_own_noise(S, 400, 0) == pytest.approx(value - constant + 7 * np.log(400))
    assert starts.column_sizes(np.array([[0.0, 3.0], [0.0, -4.0]])).tolist() == [
        1.0,
        np.sqrt(12.5),
    ]
