"""Reading data: .npy, .npz, and text tables (.csv, .tsv, .txt)."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica.data.layout import Layout, Lines

TEXT = {".csv": ",", ".tsv": "\t", ".txt": None}
"""Text formats, with what separates their columns (None: found out)."""


class Data(NamedTuple):
    """Rows, and what else the file says of them."""

    X: np.ndarray  # (n, d); a memory map where the format allows it
    others: dict[str, np.ndarray]  # one value a row, by name
    ids: np.ndarray  # (n,): the rows' names, as text
    layout: Layout  # what the d numbers of a row are


def _plain(X: np.ndarray, others: dict[str, np.ndarray], names: Sequence[str] | None = None) -> Data:
    """Rows without names of their own: they are numbered, and so are their columns unless named."""
    n, d = X.shape
    columns = np.array(names if names is not None else [f"column{j}" for j in range(d)])
    return Data(X, others, np.arange(n).astype(str), Lines(columns))


def read(path: str | Path, array: str | None = None) -> Data:
    """Read the rows of a file.

    Parameters
    ----------
    path : str or Path
        .npy; .npz; or a text table, whose first line may be names. Its columns that are not numbers are among the ``others``.
    array : str, optional
        Which array of a .npz holds the rows; needed where several have two axes.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    if array is not None and path.suffix.lower() != ".npz":
        raise ValueError(f"An array can be named for a .npz only, not for {path.name}.")
    try:
        if path.suffix.lower() in TEXT:
            return _read_text(path)
        if path.suffix.lower() == ".npz":
            return _read_npz(path, array)
        if path.suffix.lower() == ".npy":
            return _plain(_rows(_load(path), path.name), {})
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile, csv.Error) as error:
        raise ValueError(f"{path} cannot be read ({error}): is it damaged, or of another format than its name says?") from error
    raise ValueError(f"{path.name}: files of this kind are not known. Give .npy, .npz, .csv, .tsv or .txt.")


def _load(path: Path) -> Any:
    """What NumPy reads; Python objects (pickles), which could run code, are not read."""
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise OSError("not NumPy's format, or Python objects, which are not read") from error


def _rows(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {values.dtype}, not numbers.")
    if values.ndim != 2:
        raise ValueError(f"{name} has shape {values.shape}: data must have two axes, rows and columns.")
    return values


def _read_npz(path: Path, array: str | None) -> Data:
    with _load(path) as file:
        names = file.files
        if array is None:
            tables = [name for name in names if file[name].ndim == 2]
            if len(tables) != 1:
                raise ValueError(f"{path.name} has the arrays {', '.join(names)}: say which of them holds the rows (--array).")
            array = tables[0]
        elif array not in names:
            raise ValueError(f"{path.name} has no array {array!r}: it has {', '.join(names)}.")
        X = _rows(file[array], f"{array} in {path.name}")
        return _plain(X, {name: file[name] for name in names if file[name].shape == X.shape[:1]})


def _read_text(path: Path) -> Data:
    text = path.read_text(encoding="utf-8-sig")
    separator = TEXT[path.suffix.lower()]
    lines = text.splitlines()
    cells = list(csv.reader(lines, delimiter=separator)) if separator else [line.split() for line in lines]
    cells = [[cell.strip() for cell in line] for line in cells if any(cell.strip() for cell in line)]
    if not cells:
        raise ValueError(f"{path.name} is empty.")
    widths = {len(line) for line in cells}
    if len(widths) > 1:
        odd = next(i for i, line in enumerate(cells) if len(line) != len(cells[0]))
        raise ValueError(f"{path.name}: line {odd + 1} has {len(cells[odd])} columns, the first one {len(cells[0])}.")
    numbers = [[_number(cell) for cell in line] for line in cells]
    # a first line is of names if it has text where the second has numbers, or nothing but text
    named = any(a is None and (len(cells) == 1 or b is not None) for a, b in zip(numbers[0], numbers[min(1, len(cells) - 1)], strict=True))
    named = named or all(a is None for a in numbers[0])
    names = cells[0] if named else [f"column{j}" for j in range(len(cells[0]))]
    body, values = cells[named:], numbers[named:]
    columns = range(len(names))
    numeric = [j for j in columns if all(line[j] is not None for line in values)]
    if not body or not numeric:
        raise ValueError(f"{path.name} has no rows of numbers.")
    others = {names[j]: np.array([line[j] for line in body]) for j in columns if j not in numeric}
    X = np.array([[line[j] for j in numeric] for line in values], float)
    return _plain(X, others, [names[j] for j in numeric])


def _number(cell: str) -> Any:
    """The number that a cell holds, NaN for an empty one, None for text."""
    if cell.lower() in ("", "na", "nan"):
        return np.nan
    try:
        return float(cell)
    except ValueError:
        return None


def labels(data: Data, groups: str) -> np.ndarray:
    """A label for each row: what the data file has under that name, or the lines of a file of that name."""
    if groups in data.others:
        return data.others[groups]
    path = Path(groups)
    if not path.is_file():
        known = f" It has {', '.join(data.others)}." if data.others else ""
        raise ValueError(f"{groups!r} is neither a file nor one value a row in the data file.{known}")
    found: Any = _load(path) if path.suffix == ".npy" else np.array(path.read_text(encoding="utf-8").split("\n"))
    if path.suffix != ".npy" and not found[-1].strip():
        found = found[:-1]
    if found.shape != (len(data.X),):
        raise ValueError(f"{groups} has {len(found)} labels, but the data have {len(data.X)} rows.")
    return np.char.strip(found) if found.dtype.kind == "U" else found
