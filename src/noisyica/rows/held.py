"""Which rows are held elsewhere, and the checks that arrays and such rows go through.

An object is known by what it can do. So no library has to be imported, and what can do the same is
taken as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from noisyica.data.held import Blocks, Held, Mapped, Sliced, is_mapped
from noisyica.data.parquet_tables import held_table
from noisyica.data.sparse_rows import SparseRows, by_rows, is_sparse
from noisyica.rows.numbers import plain_numbers
from noisyica.rows.source import observed_entries

IN_MEMORY = ("__array_interface__", "__dlpack__", "iloc")
"""What objects have that hold their numbers in memory: arrays, tensors, pandas."""


def held(X: Any) -> Held | None:
    """Return X as rows that are held elsewhere, or None if it is in memory, or is no rows at all.

    They may be a memory map that is only read, an array of HDF5, Zarr or Dask, a Parquet file or a
    dataset of pyarrow, or whatever else has a shape and a dtype and can be sliced. A sparse matrix
    is held so, too, since its rows have to be made dense.
    """
    if isinstance(X, Held):
        return X
    if isinstance(X, np.ndarray):
        return Mapped(_plain(X)) if is_mapped(X) else None
    if hasattr(X, "dims") and hasattr(X, "data") and hasattr(X, "coords"):  # of xarray
        return held(X.data)
    if hasattr(X, "__dask_graph__"):
        return _blocks(X)
    if hasattr(X, "read_row_group") or hasattr(X, "get_fragments"):
        return held_table(X)
    if is_sparse(X):
        return SparseRows(by_rows(_plain(X)))
    if any(hasattr(X, name) for name in IN_MEMORY) or not (
        isinstance(getattr(X, "shape", None), tuple)
        and hasattr(X, "dtype")
        and hasattr(X, "__getitem__")
    ):
        return None
    return Sliced(_plain(X))


def checked(X: Any, estimator: Any = None, reset: bool = False, least: int = 1) -> Any:
    """Return X as an array of floating numbers, or as rows of these that are held elsewhere.

    Missing entries are NaN. Rows that are held elsewhere are not read. There must be ``least`` of
    them. Columns are those that the ``estimator`` was fitted to, or is to be (``reset``).
    """
    rows = held(X)
    if rows is not None:
        _check_number(rows, least)
        if estimator is not None:
            validate_data(estimator, rows, reset=reset, skip_check_array=True)
        return rows.floats()
    options: dict[str, Any] = {
        "dtype": [np.float64, np.float32],  # blocks of rows are made float64 one by one
        "ensure_min_samples": least,
        "ensure_all_finite": "allow-nan",
    }
    with np.errstate(invalid="ignore"):  # a sum of huge numbers, to see if all are finite
        if estimator is None:
            return check_array(plain_numbers(X), input_name="X", **options)
        return validate_data(estimator, plain_numbers(X), reset=reset, **options)


def rows_of_model(X: Any, d: int) -> tuple[Any, np.ndarray]:
    """Return X as :func:`checked` rows of a model of d columns, and what is observed of each.

    That is the number of entries that are not missing, which is at least 1.
    """
    X = checked(X)
    if X.shape[1] != d:
        raise ValueError(
            f"X has {X.shape[1]} columns, but the model has {d} dimensions (rows of mixing)."
        )
    return X, observed_entries(X)


def _blocks(X: Any) -> Held:
    """Return a Dask array as rows."""
    if not (hasattr(X, "chunks") and hasattr(X, "blocks")):
        raise TypeError(
            f"X is a {type(X).__name__} of Dask, not an array: give X.to_dask_array(lengths=True)."
        )
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError(
            "X is a Dask array whose blocks have sizes that are not known: call "
            "X.compute_chunk_sizes() first."
        )
    _plain(X)
    if is_sparse(getattr(X, "_meta", None)):  # blocks are made dense where they are
        X = X.map_blocks(_dense, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    return Blocks(X)


def _dense(block: Any) -> np.ndarray:
    """Return a sparse block as an array."""
    return np.asarray(block.toarray())


def _plain(X: Any) -> Any:
    """Return X, if its shape and type are those of rows of numbers, or else raise an error."""
    if len(X.shape) != 2:
        raise ValueError(f"X has shape {tuple(X.shape)}: it must have two axes, rows and columns.")
    try:
        dtype = np.dtype(X.dtype)
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in "fiub":
        raise TypeError(f"X holds {X.dtype}, not numbers: give integers or floating numbers.")
    return X


def _check_number(rows: Held, least: int) -> None:
    """Refuse rows of which there are too few, or which have no columns."""
    n, d = rows.shape
    if n < least or not d:
        what = f"{n} row{'s' * (n != 1)}" if d else "no columns"
        raise ValueError(f"X has {what} (shape {rows.shape}): at least {least} x 1 are needed.")
