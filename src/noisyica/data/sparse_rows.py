"""Rows of a sparse matrix, a piece of which is made dense when it is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.data.held import Held, rows_of_piece


class SparseRows(Held):
    """Rows of a sparse matrix in memory, or of one in a file that can be sliced by rows.

    Entries that are not stored are zeros. Those that are stored as NaN are missing.

    Parameters
    ----------
    source : sparse matrix (n, d)
        In rows (CSR): of SciPy, or what AnnData has of one in a file.
    """

    def __init__(self, source: Any) -> None:
        n, d = source.shape
        super().__init__((n, d), source.dtype, range(0, max(n, 1), rows_of_piece(source)))
        self._source = source

    def _read(self, number: int, first: int, end: int) -> np.ndarray:
        return np.asarray(self._source[first:end].toarray())

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        # only these rows are made dense
        return np.asarray(self._source[numbers].toarray()).astype(self.dtype, copy=False)


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix of SciPy, or one in a file of AnnData."""
    return hasattr(X, "tocsr") or _in_file(X)


def by_rows(X: Any) -> Any:
    """Return a sparse matrix of any format as one that can be sliced by rows.

    One in a file stays there if it is stored by rows, and is read into memory if not.
    """
    if _in_file(X):
        return X if X.format == "csr" else X.to_memory().tocsr()
    return X.tocsr()


def _in_file(X: Any) -> bool:
    return hasattr(X, "to_memory") and getattr(X, "format", None) in ("csr", "csc")
