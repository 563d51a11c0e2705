"""What NumPy would convert in silence: masks, dates and durations."""

import numpy as np
import pandas
import pytest

from noisyica import Model, NoisyICA, compare_groups, select
from noisyica.rows.numbers import plain_numbers


@pytest.fixture(scope="module")
def rows():
    return Model(np.eye(4, 2), None, 0.1, "lap").sample(30, random_state=0)[0]


@pytest.fixture(scope="module")
def holes(rows):
    """Which entries are missing."""
    return np.random.default_rng(0).random(rows.shape) < 0.15


def short_fit():
    return NoisyICA(2, prior="lap", max_iter=4, tol=0, random_state=0, verbose=False)


@pytest.mark.slow
def test_masked_entries_are_missing(rows, holes):
    missing = np.where(holes, np.nan, rows)
    masked = np.ma.array(np.where(holes, 99.0, rows), mask=holes)
    expected, ica = short_fit().fit(missing), short_fit().fit(masked)
    assert np.array_equal(ica.components_, expected.components_)
    assert np.array_equal(ica.transform(masked), expected.transform(missing))
    assert np.array_equal(ica.score_samples(masked), expected.score_samples(missing))
    assert np.array_equal(ica.model_.check(masked), missing, equal_nan=True)


def test_masks_of_any_form():
    whole = np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    expected = [[1.0, np.nan], [3.0, 4.0]]
    assert np.array_equal(plain_numbers(whole), expected, equal_nan=True)
    assert np.array_equal(plain_numbers(list(whole)), expected, equal_nan=True)
    single = plain_numbers(whole.astype(np.float32))
    assert single.dtype == np.float32
    assert np.array_equal(single, expected, equal_nan=True)
    unmasked = plain_numbers(np.ma.array([[1, 2]]))
    assert type(unmasked) is np.ndarray
    assert unmasked.tolist() == [[1, 2]]


def test_masked_weights_and_coefficients_are_refused(rows):
    weight = np.ma.array(np.ones(30), mask=np.arange(30) == 3)
    with pytest.raises(ValueError, match="sample_weight must be 30 finite numbers"):
        short_fit().fit(rows, sample_weight=weight)
    beta = np.ma.array(np.ones((3, 2)), mask=np.eye(3, 2))
    with pytest.raises(ValueError, match="B contains NaN"):
        short_fit().fit(rows).inverse_transform(beta)


DATES = np.arange(120).reshape(30, 4).astype("datetime64[D]")


@pytest.mark.parametrize(
    "X",
    [
        DATES,
        DATES - DATES[0],
        np.ma.array(DATES),
        [list(row) for row in DATES],
        pandas.DataFrame({"a": np.arange(30.0), "b": DATES[:, 0]}),
        pandas.DataFrame({"a": np.arange(30.0), "b": DATES[:, 0] - DATES[0, 0]}),
        pandas.DataFrame({"b": pandas.to_datetime(DATES[:, 0]).tz_localize("UTC")}),
    ],
    ids=["dates", "durations", "masked", "list", "column", "column of durations", "time zone"],
)
def test_dates_are_refused(X, rows):
    with pytest.raises(TypeError, match=r"(X|'b' of X) holds (date|time).*, not numbers"):
        short_fit().fit(X)
    with pytest.raises(TypeError, match="not numbers"):
        select(X, [1], max_iter=2)
    with pytest.raises(TypeError, match="not numbers"):
        short_fit().fit(rows).transform(X)
    with pytest.raises(TypeError, match="not numbers"):
        compare_groups(X, np.arange(30) % 2, short_fit())
