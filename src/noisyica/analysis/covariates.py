"""Covariates of rows as columns of a linear model: numbers as they are, categories as 0 and 1."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from noisyica.analysis.labels import is_missing, listed, masked_as_none
from noisyica.rows.numbers import refuse_dates

DATES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)

ALIKE = 1e-8
"""A column whose part that others do not explain is smaller than this part of it follows from
them."""


def design(
    covariates: Any, compared: np.ndarray, group: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the columns of covariates, and these columns of the compared rows.

    The columns are centred and divided by their standard deviations.

    Parameters
    ----------
    covariates : array (n,) or (n, k), DataFrame, mapping of names to arrays, or None
        Numbers are numbers, whatever they mean; text, booleans and pandas' categories are
        categories, of which each but the first one has a column of zeros and ones. (In a
        two-dimensional array of text, columns that are all numbers are numbers: give categories in
        a dict or a DataFrame.)
    compared : array of bool (n,)
        Which rows are compared.
    group : array of int (n_compared,)
        The group of each row that is compared.
    """
    rows = np.flatnonzero(compared)
    coded = [
        column
        for name, values in _named(covariates, len(compared))
        for column in _coded(name, values[compared], rows)
    ]
    if not coded:
        return (), np.empty((len(group), 0))
    names = tuple(name for name, _ in coded)
    columns = np.column_stack([column for _, column in coded])
    _check_different(names, columns, group)
    return names, (columns - columns.mean(0)) / columns.std(0)


def _named(covariates: Any, n: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the values of each covariate."""
    if covariates is None:
        return
    refuse_dates(covariates, "covariates")
    if isinstance(covariates, Mapping):
        named = [(str(name), covariates[name]) for name in covariates]
    elif hasattr(covariates, "columns"):
        named = [(str(name), covariates[name]) for name in covariates.columns]
    else:
        named = _columns(covariates, n)
    for label, values in named:
        refuse_dates(values, f"{label!r} of covariates")
        column = _array(values)
        if column.shape != (n,):
            raise ValueError(
                f"{label!r} of covariates has shape {column.shape}, but X has {n} rows: give one "
                "value for each row, in the order of the rows of X."
            )
        yield label, column


def _columns(covariates: Any, n: int) -> list[tuple[str, np.ndarray]]:
    """Return the name and the values of each column of an array, of which one may have a name."""
    name, of_text = getattr(covariates, "name", None), _is_text(covariates)
    if isinstance(covariates, (list, tuple)) and any(
        isinstance(row, np.ma.MaskedArray) and row.ndim for row in covariates
    ):
        covariates = np.ma.array(covariates)
    table = _array(covariates)
    if table.ndim not in (1, 2) or table.dtype.names:
        raise ValueError(
            f"covariates must be an array with a row for each of the {n} rows of X, or a "
            f"DataFrame; got shape {table.shape} of {table.dtype}."
        )
    if table.ndim == 1:
        return [("covariate 0" if name is None else str(name), table)]
    # where an array has a column of text, NumPy makes text of the numbers of other columns
    columns = [_parsed(column) if of_text else column for column in table.T]
    return [(f"covariate {j}", column) for j, column in enumerate(columns)]


def _array(values: Any) -> np.ndarray:
    """Return values as an array; what has categories, text or a mask becomes one of objects."""
    if str(getattr(values, "dtype", "")) == "category":
        return np.asarray([value if is_missing(value) else str(value) for value in values], object)
    of_text = _is_text(values)
    values = masked_as_none(values)
    array = np.asarray(values, dtype=object if isinstance(values, (list, tuple)) else None)
    if not of_text:
        return array
    decoded = array.astype(str) if array.dtype.kind == "S" else array
    return np.asarray(_without_nan(decoded.astype(object)), dtype=object)


def _is_text(values: Any) -> bool:
    """Return whether values are an array of text."""
    return isinstance(values, np.ndarray) and values.dtype.kind in "UST"


def _nan_as_none(text: Any) -> Any:
    """Return None for the text that NumPy makes of a NaN beside other text."""
    return None if isinstance(text, str) and text == "nan" else text


_without_nan = np.frompyfunc(_nan_as_none, 1, 1)


def _parsed(values: np.ndarray) -> np.ndarray:
    """Return text as numbers if all of it is that of numbers, and as it is otherwise."""
    try:
        return values.astype(float)
    except ValueError:
        return values


def _coded(name: str, values: np.ndarray, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the columns of a covariate, with names; ``rows`` are the numbers of its rows in X."""
    missing = np.array([is_missing(value) for value in values.tolist()], bool)
    if missing.any():
        raise ValueError(
            f"The covariate {name!r} is missing (None or NaN) in {missing.sum()} of the rows that "
            f"are compared, such as row {rows[missing][0]}: leave these rows out of X, groups and "
            "covariates, or fill in what you would expect of them."
        )
    if all(_is_number(value) for value in values.tolist()):
        numbers = values.astype(float)
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"The covariate {name!r} is infinite in row {rows[~np.isfinite(numbers)][0]}."
            )
        scale = np.abs(numbers).max()
        # in units of the largest one, neither squares nor their inverses are infinite
        numbers = numbers / (scale or 1.0)
        if np.ptp(numbers) <= len(numbers) * np.finfo(float).eps:  # up to rounding
            raise ValueError(_constant(name, float(values[0])))
        yield name, numbers
        return
    dates = [value for value in values.tolist() if isinstance(value, DATES)]
    if dates:
        raise TypeError(
            f"The covariate {name!r} has a date or a duration ({dates[0]}): convert these to "
            "numbers, such as days since the first."
        )
    texts = values.astype(str)
    kinds = sorted(set(texts.tolist()))
    if len(kinds) == 1:
        raise ValueError(_constant(name, kinds[0]))
    if len(kinds) > len(texts) / 2:
        raise ValueError(
            f"The covariate {name!r} has {len(kinds)} different values ({listed(kinds)}) in "
            f"{len(texts)} rows, and they are not numbers. If they stand for numbers, convert "
            "them; if not, too many categories have hardly more than one row each."
        )
    for kind in kinds[1:]:
        yield f"{name}={kind}", (texts == kind).astype(float)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, and not a boolean."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def _check_different(names: tuple[str, ...], columns: np.ndarray, group: np.ndarray) -> None:
    """Raise a ValueError if a column, or the groups, follow from the columns before them."""
    basis = [np.full(len(group), 1 / math.sqrt(len(group)))]
    labels: list[tuple[str | None, np.ndarray]] = list(zip(names, columns.T, strict=True))
    for number in range(1, int(group.max()) + 1):
        labels.append((None, (group == number).astype(float)))
    for label, column in labels:
        centred = column - column.mean()
        rest = centred / np.linalg.norm(centred)
        for direction in [*basis, *basis]:  # twice, for rounding
            rest = rest - direction @ rest * direction
        length = np.linalg.norm(rest)
        if length <= ALIKE and label is None:
            raise ValueError(
                f"The groups follow from the covariates ({', '.join(names)}), so what is due to "
                "one cannot be told from what is due to the other: leave out the covariate that "
                "says which group a row is in."
            )
        if length <= ALIKE:
            raise ValueError(
                f"The covariate {label!r} follows from those before it "
                f"({', '.join(names[: len(basis) - 1])}): leave it out."
            )
        basis.append(rest / length)


def _constant(name: str, value: Any) -> str:
    """Return what is wrong with a covariate that is the same in all rows."""
    return (
        f"The covariate {name!r} is {value} in all rows that are compared, so it explains nothing: "
        "leave it out."
    )
