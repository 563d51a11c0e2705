"""The rows of a file with their names and their layout; labels for them; and their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica.data.files import BadFile, check_size, parsing
from noisyica.data.held import Held, native
from noisyica.data.layout import Layout, Lines, Volume, numbered_columns

BLOCK = 2**25
"""How many bytes are looked at in one go: a memory map is never read into memory as a whole."""


class Data(NamedTuple):
    """Rows, and what else their file says of them."""

    X: Any  # (n, d); a memory map where the format allows it; of open files, rows not read yet
    others: dict[str, np.ndarray]  # by name, arrays with one value per row
    ids: np.ndarray  # (n,), the names of the rows, as text
    layout: Layout  # what the d numbers of a row are
    places: Volume | None = None  # where the n rows are, if they are the voxels of a volume


def make(
    path: Path | str,
    X: Any,
    ids: np.ndarray | None = None,
    others: dict[str, np.ndarray] | None = None,
    layout: Layout | None = None,
) -> Data:
    """Check the rows that were read from ``path``, and put them together with what belongs to them.

    Rows without names are numbered, and so are columns without names. Rows that are held elsewhere
    are not read.
    """
    check_numbers(path, X.shape, X.dtype)
    if X.ndim != 2:
        raise BadFile(f"{path} has shape {X.shape}: data must have two axes, rows and columns.")
    n, d = X.shape
    ids = _numbered(path, n) if ids is None else _different(path, ids)
    layout = layout or Lines(np.array(numbered_columns(d)))
    if isinstance(X, Held):
        X.place = Path(path)
    else:
        X = _native(path, X)
        _check_finite(path, X, ids, layout)
    return Data(X, others or {}, ids, layout)


def check_numbers(path: Path | str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array that cannot be data, by its shape and its type, before it is read."""
    if dtype.kind == "O":
        raise BadFile(f"{path} holds Python objects, which are not read: save numbers.")
    if dtype.kind not in "fiub":
        raise BadFile(f"{path} holds {dtype}, not numbers.")
    if 0 in shape:
        raise BadFile(f"{path} has shape {tuple(shape)}: there are no numbers in it.")


def _numbered(path: Path | str, n: int) -> np.ndarray:
    """Return the numbers from 0 to n - 1 as text, which takes no more room than it needs."""
    digits = len(str(n - 1))
    check_size(path, 4 * digits * n, 4 * digits * n)
    return np.arange(n).astype(f"U{digits}")


def _native(path: Path | str, X: np.ndarray) -> np.ndarray:
    """Return the numbers in a type that all libraries know, as a copy only if they have another."""
    dtype = native(X.dtype)
    if X.dtype == dtype:
        return X
    check_size(path, X.size * dtype.itemsize, X.nbytes)
    return X.astype(dtype)


def blocks(X: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Yield blocks of rows of at most `BLOCK` bytes, each with the number of its first row.

    A row that is larger than that is a block by itself.
    """
    size = max(1, BLOCK // max(1, X.dtype.itemsize * int(np.prod(X.shape[1:]))))
    for start in range(0, len(X), size):
        yield start, np.asarray(X[start : start + size])


def _check_finite(path: Path | str, X: np.ndarray, ids: np.ndarray, layout: Layout) -> None:
    """Refuse rows with an infinite number, and say where the first one is."""
    if X.dtype.kind != "f":
        return
    for start, block in blocks(X):
        infinite = np.isinf(block)
        if infinite.any():
            i, j = np.argwhere(infinite)[0]
            column = repr(str(layout.names[j])) if isinstance(layout, Lines) else int(j)
            raise BadFile(
                f"{path} has an infinite number in row {str(ids[start + i])!r}, column {column}: "
                "replace it, or mark it as missing (NaN)."
            )


def _different(path: Path | str, ids: np.ndarray) -> np.ndarray:
    """Return the ids if they all differ, and refuse them otherwise."""
    names, counts = np.unique(ids, return_counts=True)
    if counts.max(initial=0) > 1:
        twice = str(names[counts.argmax()])
        raise BadFile(f"{path} has {counts.max()} rows with the id {twice!r}: ids must differ.")
    return ids


def labels(data: Data, groups: str) -> np.ndarray:
    """Return a label for each row, from the data file itself or from a file of labels.

    Parameters
    ----------
    data : Data
        What :func:`read` returned.
    groups : str
        A key of ``data.others``, or else the name of a text file with one label per line, or of a
        .npy file with one axis.

    Examples
    --------
    >>> from noisyica.data import Data, Lines, labels
    >>> import numpy as np
    >>> others = {"sex": np.array(["f", "m"])}
    >>> data = Data(np.zeros((2, 1)), others, np.array(["s1", "s2"]), Lines(np.array(["x"])))
    >>> print(labels(data, "sex"))
    ['f' 'm']
    """
    if groups in data.others:
        return data.others[groups]
    path = Path(groups)
    if not path.is_file():
        known = f" It has {', '.join(data.others)}." if data.others else ""
        raise ValueError(
            f"{groups!r} is neither a file nor one value per row in the data file.{known}"
        )
    with parsing(path):
        if path.suffix.lower() == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            values = _text_lines(path)
    if values.shape != (len(data.X),):
        raise ValueError(
            f"{groups} has labels of shape {values.shape}, but the data have {len(data.X)} rows."
        )
    return values


def _text_lines(path: Path) -> np.ndarray:
    """Return the lines of a text file without the spaces around them; the last one may be open."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n")]
    return np.array(lines[:-1] if not lines[-1] else lines)


def fingerprint(X: Any) -> str:
    """Return the SHA-256 of an array's shape, type and numbers, whatever their order in memory.

    Parameters
    ----------
    X : ndarray
        The array, which may be a memory map, or rows that are held elsewhere (of
        :func:`noisyica.data.open`): it is read block by block.

    Examples
    --------
    >>> from noisyica.data import fingerprint
    >>> import numpy as np
    >>> fingerprint(np.eye(3)) == fingerprint(np.asfortranarray(np.eye(3)))
    True
    >>> fingerprint(np.eye(3)) == fingerprint(np.eye(3, dtype="float32"))
    False
    """
    X = X if isinstance(X, Held) else np.asanyarray(X)
    if X.dtype.hasobject:
        raise TypeError("Python objects have no fingerprint: give an array of numbers or text.")
    digest = hashlib.sha256(f"{X.shape} {X.dtype.str}".encode())
    # Seen as one line, which takes no copy, an array can be cut even within its rows.
    in_one_line = isinstance(X, np.ndarray) and X.flags.c_contiguous
    for _, block in blocks(X.reshape(-1) if in_one_line else X):
        digest.update(block.tobytes())
    return digest.hexdigest()
