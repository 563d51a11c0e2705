"""Centre, unit and the rest of rows, in one pass over blocks, against NumPy on the whole array."""

import numpy as np
import pytest

from noisyica.rows import scaling

SIZES = [(7, 5), (1, 1, 10), (12,), (3, 3, 3, 3)]
"""Numbers of rows of the blocks that twelve rows are given in."""


def summary_of(X, weight=None, *, sizes):
    """Summarise rows that are given in blocks of these sizes."""
    weight = np.ones(len(X)) if weight is None else weight
    ends = np.cumsum(sizes)
    return scaling.summarise(
        scaling.summary_of(X[end - size : end], weight[end - size : end])
        for size, end in zip(sizes, ends, strict=True)
    )


def rows(seed=0, n=12, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 10, d) + 3 * rng.normal(size=d)


@pytest.mark.parametrize("sizes", SIZES)
def test_agrees_with_numpy(sizes):
    X = rows()
    summary = summary_of(X, sizes=sizes)
    np.testing.assert_allclose(summary.centre, X.mean(0), rtol=1e-12)
    assert summary.root_mean_square == pytest.approx(np.sqrt(np.square(X).mean()), rel=1e-12)
    deviation = np.sqrt(np.square(X - X.mean(0)).mean())
    assert summary.deviation == pytest.approx(deviation, rel=1e-12)
    np.testing.assert_array_equal(summary.largest, np.abs(X).max(0))
    assert summary.offset == pytest.approx(np.abs(X.mean(1)).mean(), rel=1e-12)
    np.testing.assert_array_equal(summary.observed, 1.0)
    assert summary.varies.all()
    assert not summary.missing
    assert summary.empty_rows.size == 0


@pytest.mark.parametrize("sizes", SIZES)
def test_missing_entries_are_left_out(sizes):
    X = rows(1)
    X[[0, 3, 11], [1, 0, 3]] = np.nan
    X[4] = X[8] = np.nan
    summary = summary_of(X, sizes=sizes)
    assert summary.missing
    np.testing.assert_array_equal(summary.empty_rows, [4, 8])
    np.testing.assert_allclose(summary.centre, np.nanmean(X, 0), rtol=1e-12)
    np.testing.assert_allclose(summary.observed, (~np.isnan(X)).mean(0), rtol=1e-12)
    deviation = np.sqrt(np.nanmean(np.square(X - np.nanmean(X, 0))))
    assert summary.deviation == pytest.approx(deviation, rel=1e-12)
    np.testing.assert_array_equal(summary.largest, np.nanmax(np.abs(X), 0))


def test_empty_columns_and_empty_blocks_of_rows():
    X = rows(2)
    X[:, 2] = np.nan
    X[:3] = np.nan
    summary = summary_of(X, sizes=(3, 9))
    np.testing.assert_allclose(summary.observed, [0.75, 0.75, 0.0, 0.75])
    np.testing.assert_array_equal(summary.empty_rows, [0, 1, 2])
    others = [0, 1, 3]
    np.testing.assert_allclose(summary.centre[others], X[3:, others].mean(0), rtol=1e-12)
    assert np.isfinite(summary.deviation)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_centre_is_weighted(sizes):
    X, weight = rows(3), np.random.default_rng(0).uniform(0.1, 5, 12)
    X[2, 1] = np.nan
    summary = summary_of(X, weight, sizes=sizes)
    seen = ~np.isnan(X)
    expected = np.nansum(X * weight[:, None], 0) / (seen * weight[:, None]).sum(0)
    np.testing.assert_allclose(summary.centre, expected, rtol=1e-12)
    np.testing.assert_allclose(summary.observed, seen.T @ weight / weight.sum(), rtol=1e-12)
    about = np.sqrt(np.nanmean(np.square(X - expected)))
    assert summary.deviation == pytest.approx(about, rel=1e-12)


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("sizes", SIZES)
def test_squares_of_huge_and_of_tiny_numbers_stay_within_range(factor, sizes):
    X = rows(4)
    usual, scaled = summary_of(X, sizes=sizes), summary_of(X * factor, sizes=sizes)
    for name in ("centre", "root_mean_square", "deviation", "largest", "offset"):
        expected = getattr(usual, name) * factor
        np.testing.assert_allclose(getattr(scaled, name), expected, rtol=1e-10, err_msg=name)


def test_blocks_of_different_size():
    """One block has entries 1e180 times as large as another's: squares of their ratio underflow."""
    X = rows(5)
    X[:6] *= 1e-180
    for sizes in ((6, 6), (3, 3, 6), (12,)):
        summary = summary_of(X, sizes=sizes)
        np.testing.assert_allclose(summary.centre, X.mean(0), rtol=1e-12)
        deviation = np.sqrt(np.square(X - X.mean(0)).mean())
        assert summary.deviation == pytest.approx(deviation, rel=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_rows_far_from_zero_keep_their_digits(sizes):
    X = rows(6)
    summary = summary_of(X + 1e8, sizes=sizes)
    deviation = np.sqrt(np.square(X - X.mean(0)).mean())
    assert summary.deviation == pytest.approx(deviation, rel=1e-7)


def test_constant_data():
    assert not summary_of(np.full((12, 4), 7.3), sizes=(5, 7)).varies.any()
    constant_columns = np.tile([1.0, 2.0, 3.0, 4.0], (12, 1))
    assert not summary_of(constant_columns, sizes=(5, 7)).varies.any()
    # each block is constant, but they differ
    steps = np.repeat([[1.0], [2.0]], [5, 7], axis=0) * np.ones(4)
    assert summary_of(steps, sizes=(5, 7)).varies.all()
    with pytest.raises(ValueError, match="All entries of X are zero"):
        summary_of(np.zeros((12, 4)), sizes=(5, 7))


def test_nothing_at_all_is_not_zeros():
    summary = summary_of(np.full((12, 4), np.nan), sizes=(5, 7))
    assert summary.empty_rows.size == 12
    assert not summary.observed.any()


def test_a_constant_column_is_not_rounded_however_large():
    X = rows(7)
    X[:, 2] = 1e15 / 3
    summary = summary_of(X, sizes=(5, 7))
    np.testing.assert_array_equal(summary.varies, [True, True, False, True])
    assert summary.centre[2] == X[0, 2]
    X[:, 2] = 0
    expected = np.sqrt(np.square(X - X.mean(0)).mean())
    assert summary.deviation == pytest.approx(expected, rel=1e-12)
