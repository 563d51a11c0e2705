"""Rows behind one door: read block by block, centred and scaled, never changed where they are."""

import numpy as np
import pytest

from noisyica import NoisyICA
from noisyica.rows import source
from noisyica.rows.source import Rows

N, D = 50, 4


@pytest.fixture(params=[1, 10, 33, 2**22], ids=lambda numbers: f"{numbers} numbers at a time")
def at_a_time(request, monkeypatch):
    """Blocks of one, two, eight and all rows."""
    monkeypatch.setattr(source, "NUMBERS_AT_A_TIME", request.param)
    return max(1, request.param // D)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, D)) * [1, 2, 3, 4] + 5


def test_blocks_are_the_rows_in_order(X, at_a_time):
    firsts, blocks = zip(*Rows(X).blocks(), strict=True)
    assert [len(block) for block in blocks[:-1]] == [at_a_time] * (len(blocks) - 1)
    np.testing.assert_array_equal(firsts, np.cumsum([0, *map(len, blocks[:-1])]))
    np.testing.assert_array_equal(np.concatenate(blocks), X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_centred_and_scaled(X, at_a_time, dtype, order):
    X = np.array(X, dtype, order=order)
    before = X.copy()
    rows, summary = Rows(X).centred(free_mean=True)
    standard = rows.standardised(0, N)
    assert standard.dtype == np.float64
    np.testing.assert_allclose(standard.mean(0), 0, atol=1e-12)
    assert np.square(standard).mean() == pytest.approx(1, rel=1e-12)
    exact = X.astype(float)
    np.testing.assert_allclose(standard * rows.unit + rows.centre, exact, rtol=1e-12)
    np.testing.assert_array_equal(rows.standardised(7, 20), standard[7:20])
    np.testing.assert_array_equal(rows.standardised(40, 99), standard[40:])
    chosen = np.array([3, 3, 49, 0])
    np.testing.assert_array_equal(rows.chosen(chosen), standard[chosen])
    np.testing.assert_array_equal(X, before)
    assert summary.deviation == rows.unit


def test_without_a_mean_rows_are_only_scaled(X, at_a_time):
    rows, _ = Rows(X).centred(free_mean=False)
    assert not rows.centre.any()
    assert np.square(rows.standardised(0, N)).mean() == pytest.approx(1, rel=1e-12)


def test_the_first_rows_stay_as_they_are(X):
    """Centring gives other rows: the first ones still are in the units of X."""
    first = Rows(X)
    first.centred(free_mean=True)
    np.testing.assert_array_equal(first.standardised(0, N), X)


def test_rows_of_weight_zero_are_left_out(X, at_a_time):
    weight = np.random.default_rng(1).integers(0, 3, N).astype(float)
    kept = weight > 0
    X[~kept] = 1e9
    weighted, _ = Rows(X, weight).centred(True)
    expected, _ = Rows(X[kept], weight[kept]).centred(True)
    assert weighted.n == kept.sum()
    assert weighted.total_weight == weight.sum()
    np.testing.assert_allclose(weighted.centre, expected.centre, rtol=1e-12)
    assert weighted.unit == pytest.approx(expected.unit, rel=1e-12)
    n = weighted.n
    np.testing.assert_array_equal(weighted.standardised(0, n), expected.standardised(0, n))
    chosen = np.array([5, 0, 5])
    np.testing.assert_array_equal(weighted.chosen(chosen), expected.chosen(chosen))


def test_weights_are_one_on_average(X):
    weight = np.random.default_rng(1).integers(0, 3, N).astype(float)
    rows = Rows(X, weight)
    relative = rows.relative_weight(0, rows.n)
    assert relative.mean() == pytest.approx(1)
    np.testing.assert_allclose(relative / relative[0], weight[weight > 0] / weight[weight > 0][0])
    np.testing.assert_array_equal(rows.relative_weight(3, 9), relative[3:9])
    np.testing.assert_array_equal(rows.relative_weight(rows.n - 2, rows.n + 9), relative[-2:])
    np.testing.assert_allclose(rows.share, weight[weight > 0] / weight.sum())
    assert Rows(X).share is None
    np.testing.assert_array_equal(Rows(X).relative_weight(3, 9), 1.0)


def test_missing_entries_stay_missing(X, at_a_time):
    X[[0, 9], [1, 2]] = np.nan
    rows, summary = Rows(X).centred(True)
    assert summary.missing
    np.testing.assert_array_equal(np.isnan(rows.standardised(0, N)), np.isnan(X))
    np.testing.assert_allclose(np.nanmean(rows.standardised(0, N), 0), 0, atol=1e-12)


def test_what_is_not_observed_is_named(X, at_a_time):
    X[[3, 30]] = np.nan
    with pytest.raises(ValueError, match=r"Nothing is observed in 2 of the rows of X \(3, 30\)"):
        Rows(X).centred(True)
    # rows are numbered as in X, also where others before them have no weight
    weight = np.ones(N)
    weight[[0, 1, 3]] = 0
    with pytest.raises(ValueError, match=r"Nothing is observed in 1 of the rows of X \(30\)"):
        Rows(X, weight).centred(True)
    X[[3, 30]] = 1.0
    X[:, [0, 2]] = np.nan
    with pytest.raises(ValueError, match=r"Nothing is observed in 2 of the columns of X \(0, 2\)"):
        Rows(X).centred(True)


@pytest.mark.parametrize("value", [7.3, 1e300, 1e-300])
def test_constant_rows_are_refused(value, at_a_time):
    for free_mean in (True, False):
        with pytest.raises(ValueError, match="X is constant"):
            Rows(np.full((N, D), value)).centred(free_mean)


def test_a_memory_map_is_read_and_left_as_it_is(X, tmp_path, at_a_time):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows, _ = Rows(mapped).centred(True)
    expected, _ = Rows(X).centred(True)
    np.testing.assert_array_equal(rows.standardised(0, N), expected.standardised(0, N))
    np.testing.assert_array_equal(mapped, X)


@pytest.mark.parametrize("part", [slice(None), slice(5, 45)], ids=["whole", "a view"])
@pytest.mark.parametrize("mode", ["c", "r+"])
def test_what_was_changed_in_memory_is_not_lost(X, tmp_path, mode, part):
    """Pages of a copy-on-write map that are given back to the system would lose what they hold."""
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
    mapped[7:9] += 100.0
    mapped[:, 1] *= -1
    expected = np.array(mapped)
    view = mapped[part]
    ica = NoisyICA(2, max_iter=5, tol=0, random_state=0, verbose=False).fit(view)
    np.testing.assert_array_equal(mapped, expected)
    again = NoisyICA(2, max_iter=5, tol=0, random_state=0, verbose=False).fit(expected[part])
    np.testing.assert_array_equal(ica.components_, again.components_)
    ica.transform(view)
    np.testing.assert_array_equal(mapped, expected)
