"""Rows that are held elsewhere, in a file or by a scheduler, and are read when they are needed.

They are read in pieces (chunks of a file, groups of a table's rows, blocks of a Dask array), and
the last piece is kept, so that reading all rows in order reads each piece once.
"""

from __future__ import annotations

import abc
import bisect
import contextlib
import copy
import math
import mmap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noisyica.data.files import parsing

BYTES = 2**22
"""The approximate size of a piece, where the way in which rows are stored leaves it open."""


class Held(abc.ABC):
    """Rows (n, d) of numbers that are not in memory.

    ``X[first:end]`` reads rows as a new array, and ``X[numbers]`` those with these numbers, which
    may be in any order and occur more than once.

    Parameters
    ----------
    shape : (n, d)
    dtype : dtype
        The type of what is read.
    starts : sequence of int
        The number of the first row of each piece.
    """

    ndim = 2

    def __init__(self, shape: tuple[int, int], dtype: Any, starts: Sequence[int]) -> None:
        self.shape, self.dtype = shape, native(np.dtype(dtype))
        self.place: Path | None = None
        """The file that errors name, if there is one."""
        self._starts, self._lock = starts, threading.Lock()
        self._last: tuple[int, np.ndarray | None] = (-1, None)

    @abc.abstractmethod
    def _read(self, number: int, first: int, end: int) -> np.ndarray:
        """Read the piece of this number: the rows from ``first`` up to ``end``."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """The number of bytes that all rows would take in memory."""
        return self.size * self.dtype.itemsize

    def floats(self) -> Held:
        """Return the same rows as floating numbers: in single precision where they have it."""
        new = copy.copy(self)
        new.dtype = np.dtype(np.float32 if self.dtype == np.float32 else np.float64)
        return new

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, slice) and rows.step in (None, 1):
            first, end, _ = rows.indices(len(self))
            return self._between(first, max(first, end))
        numbers = self._numbers(rows)
        wanted, places = np.unique(numbers, return_inverse=True)
        values = self._numbered(wanted)
        return values if np.array_equal(wanted, numbers) else values[places]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Read all rows."""
        if copy is False:
            raise ValueError("Rows that are not in memory cannot become an array without a copy.")
        return self[:] if dtype is None else self[:].astype(dtype)

    def _numbers(self, rows: Any) -> np.ndarray:
        """Return the numbers of rows that a slice, a mask or an array of numbers stands for."""
        n = len(self)
        if isinstance(rows, slice):
            return np.arange(*rows.indices(n))
        numbers = np.asarray(rows)
        if numbers.dtype == bool and numbers.shape == (n,):
            return np.flatnonzero(numbers)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise IndexError("Rows that are not in memory are read by a slice or by their numbers.")
        if numbers.size and not (numbers.min() >= -n and numbers.max() < n):
            raise IndexError(f"There is no row {numbers.max()}: there are {n} rows.")
        return np.where(numbers < 0, numbers + n, numbers).astype(np.int64)

    def _between(self, first: int, end: int) -> np.ndarray:
        """Read the rows from ``first`` up to ``end``."""
        rows = np.empty((end - first, self.shape[1]), self.dtype)
        number, at = bisect.bisect_right(self._starts, first) - 1, first
        while at < end:
            begin, piece = self._piece(number)
            until = min(begin + len(piece), end)
            rows[at - first : until - first] = piece[at - begin : until - begin]
            number, at = number + 1, until
        return rows

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        """Read the rows with these numbers, which increase."""
        rows = np.empty((len(numbers), self.shape[1]), self.dtype)
        done = 0
        while done < len(numbers):
            begin, piece = self._piece(bisect.bisect_right(self._starts, numbers[done]) - 1)
            until = int(np.searchsorted(numbers, begin + len(piece)))
            rows[done:until] = piece[numbers[done:until] - begin]
            done = until
        return rows

    def _piece(self, number: int) -> tuple[int, np.ndarray]:
        """Return the number of the first row of a piece, and the piece, which is kept."""
        starts = self._starts
        first = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else len(self)
        with self._lock:  # blocks may be read ahead in another thread
            kept, piece = self._last
            if kept != number or piece is None:
                self._last = (-1, None)  # two pieces are not held at a time
                with contextlib.nullcontext() if self.place is None else parsing(self.place):
                    piece = self._read(number, first, end)
                self._last = (number, piece)
        return first, piece


class Sliced(Held):
    """Rows of an object that can be sliced, such as an array in an HDF5 file or a Zarr store.

    Where it has more than two axes, the numbers of a row are those of all other axes in C order.
    ``file`` is what has to stay open.
    """

    def __init__(self, source: Any, file: Any = None) -> None:
        shape = (int(source.shape[0]), math.prod(map(int, source.shape[1:])))
        super().__init__(shape, source.dtype, range(0, max(shape[0], 1), rows_of_piece(source)))
        self._source, self._file = source, file

    def _read(self, number: int, first: int, end: int) -> np.ndarray:
        part = self._source[first:end]
        if isinstance(part, np.ma.MaskedArray):
            part = np.ma.filled(part.astype(self.floats().dtype), np.nan)
        return np.asarray(part).reshape(end - first, self.shape[1])


class Mapped(Sliced):
    """Rows of a memory map that is only read, the pages of which are given back at once.

    They would otherwise count as memory of the process until the system needs them elsewhere.
    """

    def _read(self, number: int, first: int, end: int) -> np.ndarray:
        part = np.array(super()._read(number, first, end))
        give_back(self._source)
        return part

    def view(self, first: int, end: int) -> np.ndarray:
        """Return the rows from ``first`` up to ``end`` where they are, without a copy if possible.

        Their pages are given back by :meth:`give_back`.
        """
        part = np.asarray(self._source[first:end]).reshape(end - first, self.shape[1])
        return np.ascontiguousarray(part, self.dtype)

    def give_back(self) -> None:
        """Give the pages that were read back to the system."""
        give_back(self._source)

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        rows = np.array(self._source[numbers]).reshape(len(numbers), self.shape[1])
        give_back(self._source)
        return rows.astype(self.dtype, copy=False)


class Blocks(Held):
    """Rows of a Dask array, whose blocks are computed one after the other."""

    def __init__(self, source: Any) -> None:
        super().__init__(
            tuple(source.shape), source.dtype, np.cumsum([0, *source.chunks[0][:-1]]).tolist()
        )
        self._source = source

    def _read(self, number: int, first: int, end: int) -> np.ndarray:
        return np.asarray(self._source.blocks[number].compute())

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        # only these rows leave the workers
        return np.asarray(self._source[numbers].compute()).astype(self.dtype, copy=False)

    @property
    def client(self) -> Any:
        """The client of dask.distributed that is active, or None."""
        try:
            from distributed import get_client
        except ImportError:
            return None
        with contextlib.suppress(ValueError):  # there is none
            return get_client()
        return None

    def partitioned(self, multiple: int) -> Any:
        """Return the rows as a Dask array whose blocks are whole rows, a ``multiple`` of them.

        The blocks have about as many rows as before, and at least ``multiple``.
        """
        sizes = self._source.chunks[0]
        size = max(round(max(sizes) / multiple), 1) * multiple
        return self._source.rechunk({0: size, 1: -1}).astype(self.dtype)

    def mapped(self, function: Callable[[np.ndarray], np.ndarray], width: int | None) -> Any:
        """Return what a function says of rows as a Dask array, to be computed where they are.

        For each row these are ``width`` numbers or, if that is None, one.
        """
        rows = self._source.rechunk({1: -1})
        if width is None:
            return rows.map_blocks(function, dtype=float, drop_axis=1, meta=np.empty(0))
        chunks = (rows.chunks[0], (width,))
        return rows.map_blocks(function, dtype=float, chunks=chunks, meta=np.empty((0, 0)))

    def each_block(self, function: Callable[[np.ndarray, int], Any]) -> list[Any]:
        """Return ``function(rows, number of the first row)`` of each block, called where it is."""
        import dask

        computed: Any = dask
        blocks = self._source.rechunk({1: -1}).to_delayed().ravel()
        return list(computed.compute(*map(computed.delayed(function), blocks, self._starts)))


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the same numbers that all libraries know.

    It has the machine's own order of bytes, and double precision at most.
    """
    dtype = dtype.newbyteorder("=")
    return np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype


def give_back(X: Any) -> None:
    """Give the pages that were read of a memory map back to the system, if it was only read.

    Of another one, they would be lost with what was written to them.
    """
    if isinstance(X, Mapped):
        return X.give_back()
    array = X
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.mode != "r":
            return
        array = array.base
    if isinstance(array, mmap.mmap) and hasattr(array, "madvise"):
        array.madvise(mmap.MADV_DONTNEED)


def is_mapped(X: Any) -> bool:
    """Return whether an array is in a file that is mapped to be only read."""
    mapped = False
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            mapped = X.mode == "r"
        X = X.base
    return mapped and isinstance(X, mmap.mmap)


def rows_of_piece(source: Any) -> int:
    """Return the number of rows to read at a time: whole chunks, where they are stored in chunks.

    Pieces have about :data:`BYTES` bytes, unless a chunk has more.
    """
    row = max(1, math.prod(map(int, source.shape[1:])) * np.dtype(source.dtype).itemsize)
    chunks = getattr(source, "chunks", None)
    in_chunks = isinstance(chunks, tuple) and chunks and isinstance(chunks[0], (int, np.integer))
    chunk = max(1, int(chunks[0])) if in_chunks and chunks else 1
    return chunk * max(1, BYTES // (chunk * row))
