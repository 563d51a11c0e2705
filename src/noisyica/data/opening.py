"""Opening files whose rows may be larger than memory, without reading these."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from noisyica.data.files import available_memory, parsing
from noisyica.data.held import Held
from noisyica.data.reading import kind_of, read, read_file
from noisyica.data.rows import Data


def open(path: str | os.PathLike[str], array: str | None = None, **options: Any) -> Data:
    """Open a file whose rows may be larger than memory, as :func:`read` reads it.

    ``X`` of what is returned takes the place of an array in ``fit``, ``transform`` and the other
    methods of :class:`noisyica.NoisyICA` and :class:`noisyica.Model`, which read it in parts as
    they need it: ``X[first:end]`` and ``X[numbers]`` give rows as arrays. All else is read: ids,
    layout, and what other columns or arrays say of the rows. Infinite numbers are found later,
    when their rows are read.

    Parameters
    ----------
    path : str or Path
        A .npy, HDF5, Zarr or Parquet file. Parquet is read by groups of rows, one of which has to
        fit into memory, and so has a chunk of HDF5 and of Zarr. Files of other kinds are read as
        :func:`read` does it.
    array, **options
        As those of :func:`read`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from noisyica import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.arange(12.0).reshape(4, 3))
    ...     rows = data.open(f"{folder}/rows.npy")
    ...     rows.X.shape, rows.X[2:3]
    ((4, 3), array([[6., 7., 8.]]))
    """
    return read_file(Path(path), {"array": array, **options}, unread=True)


def read_or_open(path: str | os.PathLike[str], **options: Any) -> Data:
    """Read a file, or open it if its numbers would take more than half of the available memory."""
    if not opens(path):
        return read(path, **options)
    data = open(path, **options)
    small = not isinstance(data.X, Held) or data.X.floats().nbytes <= available_memory() / 2
    return read(path, **options) if small else data


def opens(path: str | os.PathLike[str]) -> bool:
    """Return whether files of this kind can be opened without reading their rows."""
    with parsing(Path(path)):
        return kind_of(Path(path)).opens
