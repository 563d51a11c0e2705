"""Arrays of numbers from what users give, where NumPy would convert in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def plain_numbers(X: Any, name: str = "X") -> Any:
    """Return X with its masked entries as NaN, and raise TypeError if it has dates or durations.

    NumPy would drop the mask, and take dates and durations for integers.
    """
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.array(X)
    refuse_dates(X, name)
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return np.asarray(X.data)
    floating = X.dtype if X.dtype.kind in "fcO" else np.float64
    return np.ma.filled(X.astype(floating), np.nan)


def refuse_dates(X: Any, name: str) -> None:
    """Raise a TypeError if X has dates or durations, or columns of these."""
    for column, dtype in _types(X):
        if _temporal(dtype):
            where = name if column is None else f"The column {column!r} of {name}"
            raise TypeError(
                f"{where} holds {dtype}, not numbers: leave dates and durations out, or convert "
                "them to numbers, such as days since the first."
            )


def _types(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the type of an array, or the name and type of each column of a table."""
    if isinstance(X, (list, tuple)):
        yield from ((None, np.asarray(row).dtype) for row in X[:1])
    elif hasattr(X, "dtypes") and hasattr(X, "columns"):
        yield from zip(X.columns, X.dtypes, strict=True)
    elif hasattr(X, "dtype"):
        yield None, X.dtype


def _temporal(dtype: Any) -> bool:
    """Whether a type of NumPy, pandas or Polars is of dates, times or durations."""
    of_polars = getattr(dtype, "is_temporal", None)
    return getattr(dtype, "kind", "") in ("m", "M") or bool(of_polars and of_polars())
