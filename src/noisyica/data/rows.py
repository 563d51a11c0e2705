"""The rows of a file, with their names and their layout; and labels for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica.data.files import BadFile, parsing
from noisyica.data.layout import Layout, Lines

CHUNK = 2**22
"""Numbers that are looked at in one go: memory maps are never read into memory as a whole."""


class Data(NamedTuple):
    """Rows, and what else the file says of them."""

    X: np.ndarray  # (n, d); a memory map where the format allows it
    others: dict[str, np.ndarray]  # one value a row, by name
    ids: np.ndarray  # (n,): the rows' names, as text
    layout: Layout  # what the d numbers of a row are


def make(
    path: Path | str,
    X: np.ndarray,
    ids: np.ndarray | None = None,
    others: dict[str, np.ndarray] | None = None,
    layout: Layout | None = None,
) -> Data:
    """Checked rows; numbers stand for the names of rows and columns that have none."""
    check_numbers(path, X.shape, X.dtype)
    if X.ndim != 2:
        raise BadFile(f"{path} has shape {X.shape}: data must have two axes, rows and columns.")
    X = _native(X)
    n, d = X.shape
    ids = np.arange(n).astype(str) if ids is None else _different(path, ids)
    layout = layout or Lines(np.array([f"column{j}" for j in range(d)]))
    _check_finite(path, X, ids, layout)
    return Data(X, others or {}, ids, layout)


def check_numbers(path: Path | str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse what cannot be data, before it is read."""
    if dtype.kind == "O":
        raise BadFile(f"{path} holds Python objects, which are not read: save numbers.")
    if dtype.kind not in "fiub":
        raise BadFile(f"{path} holds {dtype}, not numbers.")
    if 0 in shape:
        raise BadFile(f"{path} has shape {tuple(shape)}: there are no numbers in it.")


def _native(X: np.ndarray) -> np.ndarray:
    """In a format that all libraries know: the machine's own byte order, double precision at most."""
    if X.dtype.kind == "f" and X.dtype.itemsize > 8:
        return X.astype(np.float64)
    return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))


def blocks(X: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of rows of a size that fits into memory, each with the number of its first row."""
    size = max(1, CHUNK // max(1, int(np.prod(X.shape[1:]))))
    for start in range(0, len(X), size):
        yield start, np.asarray(X[start : start + size])


def _check_finite(path: Path | str, X: np.ndarray, ids: np.ndarray, layout: Layout) -> None:
    if X.dtype.kind != "f":
        return
    for start, block in blocks(X):
        infinite = np.isinf(block)
        if infinite.any():
            i, j = np.argwhere(infinite)[0]
            column = repr(str(layout.names[j])) if isinstance(layout, Lines) else int(j)
            raise BadFile(
                f"{path} has an infinite number in row {str(ids[start + i])!r}, column {column}: replace it, or mark it as missing (NaN)."
            )


def _different(path: Path | str, ids: np.ndarray) -> np.ndarray:
    names, counts = np.unique(ids, return_counts=True)
    if counts.max(initial=0) > 1:
        twice = str(names[counts.argmax()])
        raise BadFile(f"{path} has {counts.max()} rows with the id {twice!r}: ids must differ.")
    return ids


def labels(data: Data, groups: str) -> np.ndarray:
    """A label for each row: what the data file has under that name, or the lines of a file of that name.

    Parameters
    ----------
    data : Data
        What :func:`read` returned.
    groups : str
        A key of ``data.others``, or a file with one label a line (or a .npy of one axis).

    Examples
    --------
    >>> from noisyica.data import Data, Lines, labels
    >>> import numpy as np
    >>> data = Data(np.zeros((2, 1)), {"sex": np.array(["f", "m"])}, np.array(["s1", "s2"]), Lines(np.array(["x"])))
    >>> print(labels(data, "sex"))
    ['f' 'm']
    """
    if groups in data.others:
        return data.others[groups]
    path = Path(groups)
    if not path.is_file():
        known = f" It has {', '.join(data.others)}." if data.others else ""
        raise ValueError(
            f"{groups!r} is neither a file nor one value a row in the data file.{known}"
        )
    with parsing(path):
        found = (
            np.load(path, allow_pickle=False)
            if path.suffix.lower() == ".npy"
            else _text_lines(path)
        )
    if found.shape != (len(data.X),):
        raise ValueError(
            f"{groups} has labels of shape {found.shape}, but the data have {len(data.X)} rows."
        )
    return found


def _text_lines(path: Path) -> np.ndarray:
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n")]
    return np.array(lines[:-1] if not lines[-1] else lines)


def fingerprint(X: np.ndarray) -> str:
    """The SHA-256 of an array's shape, type and numbers, whatever their order in memory.

    Parameters
    ----------
    X : ndarray
        May be a memory map: it is read block by block.

    Examples
    --------
    >>> from noisyica.data import fingerprint
    >>> import numpy as np
    >>> fingerprint(np.eye(3)) == fingerprint(np.asfortranarray(np.eye(3)))
    True
    >>> fingerprint(np.eye(3)) == fingerprint(np.eye(3, dtype="float32"))
    False
    """
    X = np.asanyarray(X)
    if X.dtype.hasobject:
        raise TypeError("Python objects have no fingerprint: give an array of numbers or text.")
    digest = hashlib.sha256(f"{X.shape} {X.dtype.str}".encode())
    for _, block in blocks(X) if X.ndim else [(0, X)]:
        digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()
