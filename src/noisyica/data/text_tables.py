"""Reading tables in text files (.csv, .tsv, .txt)."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from noisyica.data.columns import Columns, assemble, find_column
from noisyica.data.files import BadFile
from noisyica.data.rows import Data

MISSING = frozenset(("", "na", "n/a", "nan", "null"))
"""Cells that stand for missing entries, in lower case."""
ROWS = 300
"""How many rows are held as text at a time: text takes ten times the memory of numbers."""
Cells = list[str]
"""The cells of a line."""


GROUPED = re.compile(
    r"[+-]?[1-9]\d{0,2}(?:(?:\.\d{3})+(?:,\d+)?|(?:,\d{3})+(?:\.\d+)?|(?:'\d{3})+(?:[.,]\d+)?"
    r"|(?:[ \u00a0\u202f]\d{3})+[.,]\d+)"
)
"""Numbers whose thousands are separated (1.234,5 or 1,234.5), or may be (1.234 or 1,234)."""


_MARKS = {".": "dot", ",": "comma"}


class _Format(NamedTuple):
    """How a text table is written."""

    separator: str | None  # None stands for any number of spaces
    quoted: bool  # whether cells may be in quotes, with separators and ends of lines in them

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma may be a decimal point, as it is not the separator."""
        return self.separator == ";"


def read_text(
    path: Path, *, id_column: str | int | None = None, columns: Sequence[str | int] | None = None
) -> Data:
    """Read a text table: the columns of numbers first, and those of text in a second pass."""
    with path.open("rb") as file:
        if b"\0" in file.read(2**20):
            raise BadFile(
                f"{path} cannot be read as text, as it has zero bytes: "
                "is it binary, or UTF-16? Save it as UTF-8."
            )
    try:
        form = _Format(_separator(path), _quoted(path))
        first_two = list(itertools.islice(_lines(path, form), 2))
        names, headed = _names(path, first_two, form.decimal_comma)
        given = None if id_column is None else find_column(path, names, id_column)
        titled = 0 if headed and names[0].lower() in ("id", "") else None
        names = [name or f"column{j}" for j, name in enumerate(names)]
        lines = itertools.islice(_lines(path, form), headed, None)
        marks = _DecimalMarks(path, names) if form.decimal_comma else None
        numeric = _numbers(lines, len(names), marks)
        wanted = [j for j in range(len(names)) if j not in numeric or j in (given, titled)]
        text = _text(itertools.islice(_lines(path, form), headed, None), wanted)
    except UnicodeDecodeError as error:
        raise BadFile(
            f"{path} cannot be read as UTF-8 (byte {error.start}): save it as UTF-8."
        ) from error
    if columns is None:
        suspects = {
            j: cells for j, cells in text.items() if j not in numeric and j not in (given, titled)
        }
        _check_text(path, names, suspects, form.decimal_comma)
    return assemble(path, Columns(names, numeric, text), given, 0, columns)


def _separator(path: Path) -> str | None:
    """Return the separator of columns: the one that occurs equally often in each first line.

    None stands for spaces.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    with path.open(encoding="utf-8-sig") as file:
        lines = [
            line
            for line in itertools.islice(file, 20)
            if line.strip() and not (path.suffix.lower() == ".txt" and line[0] == "#")
        ]
    for separator in (";", "\t", ","):
        widths = _widths(lines, separator)
        if len(widths) == 1 and widths != {1}:
            return separator
    if path.suffix.lower() == ".txt":
        return None
    return max(",;\t", key=lambda separator: max(_widths(lines[:1], separator), default=0))


def _widths(lines: list[str], separator: str) -> set[int]:
    """Return the different numbers of cells that lines have if they are split at the separator.

    Lines that cannot be split like that, as a cell would be too long, count as one cell each.
    """
    try:
        return {len(cells) for cells in csv.reader(lines, delimiter=separator)}
    except csv.Error:
        return {1}


def _quoted(path: Path) -> bool:
    """Whether there is a quotation mark anywhere in the file."""
    with path.open("rb") as file:
        return any(b'"' in block for block in iter(lambda: file.read(2**20), b""))


def _lines(path: Path, form: _Format) -> Iterator[Cells]:
    """Yield the cells of every line that is not blank; all must have as many as the first."""
    by_csv = form.separator is not None and form.quoted
    with path.open(encoding="utf-8-sig", newline="" if by_csv else None) as file:
        width = 0
        for number, cells in _quoted_cells(file, form) if by_csv else _unquoted_cells(file, form):
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            width = width or len(cells)
            if len(cells) != width:
                raise BadFile(
                    f"{path}: line {number} has {len(cells)} columns, the first one {width}."
                )
            yield cells


def _quoted_cells(file: IO[str], form: _Format) -> Iterator[tuple[int, Cells]]:
    """Return the number and the cells of each line, some of which may be in quotes."""
    reader = csv.reader(file, delimiter=form.separator or ",", skipinitialspace=True, strict=True)
    return ((reader.line_num, cells) for cells in reader)


def _unquoted_cells(file: IO[str], form: _Format) -> Iterator[tuple[int, Cells]]:
    """Return the number and the cells of each line if nothing is in quotes: three times as fast."""
    lines = enumerate(file, 1)
    if form.separator is None:
        return ((i, line.split()) for i, line in lines if not line.startswith("#"))
    return ((i, line.rstrip("\n").split(form.separator)) for i, line in lines)


def _names(path: Path, first: list[Cells], decimal_comma: bool) -> tuple[list[str], bool]:
    """Return the columns' names, and whether they are the first line of the file.

    They are if that line has text above numbers, or nothing but text. ``first`` holds the cells of
    the first two lines.
    """
    if not first:
        raise BadFile(f"{path} is empty.")
    top = [not _number(cell, decimal_comma) for cell in first[0]]
    below = [False] * len(top)
    if len(first) > 1:
        below = [not _number(cell, decimal_comma) for cell in first[1]]
    headed = all(top) or any(a and not b for a, b in zip(top, below, strict=True))
    return [cell.strip() if headed else f"column{j}" for j, cell in enumerate(first[0])], headed


def _floats(cells: Sequence[str], decimal_comma: bool) -> np.ndarray | None:
    """Return the cells as numbers, NaN if missing; or None if any of them is text."""
    if "_" in "".join(cells):  # Python takes 1_2 for a number
        return None
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        pass
    if decimal_comma:
        cells = [cell.replace(",", ".") for cell in cells]
    numbers = ("nan" if cell.strip().lower() in MISSING else cell for cell in cells)
    try:
        return np.array(list(map(float, numbers)))
    except ValueError:
        return None


def _number(cell: str, decimal_comma: bool) -> bool:
    """Whether a cell is a number, however it is written, or missing."""
    return bool(GROUPED.fullmatch(cell.strip())) or _floats([cell], decimal_comma) is not None


class _DecimalMarks:
    """The dots and commas in the numbers of a table in which either may be a decimal point."""

    def __init__(self, path: Path, names: list[str]) -> None:
        self.path, self.names = path, names
        # by mark and column: a cell, if all cells so far may have thousands separated by the mark
        self.doubtful: dict[str, dict[int, str | None]] = {".": {}, ",": {}}

    def note(self, j: int, cells: Sequence[str]) -> None:
        """Look at some of the cells of column j."""
        text = "".join(cells)
        for mark, doubtful in self.doubtful.items():
            if mark in text and doubtful.get(j, "") is not None:
                marked = [cell.strip() for cell in cells if mark in cell]
                sure = not all(map(GROUPED.fullmatch, marked))
                doubtful[j] = None if sure else marked[0]

    def check(self, numeric: dict[int, np.ndarray]) -> None:
        """Refuse columns of numbers with one mark where the decimal point may be the other."""
        for mark, other in (".,", ",."):
            if not self.doubtful[other].keys() & numeric.keys():
                continue
            for j in self.doubtful[mark].keys() & numeric.keys():
                cell = self.doubtful[mark][j]
                if cell is not None:
                    raise BadFile(
                        f"{self.path}: does {cell!r} in column {self.names[j]!r} have a decimal "
                        f"{_MARKS[mark]}, or thousands? Other numbers have a {_MARKS[other]}: "
                        "write all with the same decimal point, and thousands without separators."
                    )


def _numbers(
    lines: Iterator[Cells], width: int, marks: _DecimalMarks | None
) -> dict[int, np.ndarray]:
    """Return the columns in which all cells are numbers, or missing."""
    parts: dict[int, list[np.ndarray]] = {j: [] for j in range(width)}
    while chunk := list(itertools.islice(lines, ROWS)):
        columns = list(zip(*chunk, strict=True))
        for j in list(parts):
            values = _floats(columns[j], marks is not None)
            if values is None:
                del parts[j]
            else:
                parts[j].append(values)
                if marks is not None:
                    marks.note(j, columns[j])
    numeric = {j: np.concatenate(values) for j, values in parts.items() if values}
    if marks is not None:
        marks.check(numeric)
    return numeric


def _text(lines: Iterator[Cells], wanted: list[int]) -> dict[int, np.ndarray]:
    """Return the columns that are wanted as text."""
    if not wanted:
        return {}
    rows = [[cells[j].strip() for j in wanted] for cells in lines]
    return {
        j: np.array(column, dtype=str)
        for j, column in zip(wanted, zip(*rows, strict=True), strict=False)
    }


def _check_text(
    path: Path, names: list[str], text: dict[int, np.ndarray], decimal_comma: bool
) -> None:
    """Refuse a column of which less than half are words.

    It is more probably a column of numbers with mistakes, or with separators of thousands, than a
    column of text.
    """
    for j, cells in text.items():
        plain = np.array([_floats([cell], decimal_comma) is not None for cell in cells])
        numbers = np.array([_number(cell, decimal_comma) for cell in cells])
        if 2 * numbers.sum() <= len(numbers):
            continue
        i = int(plain.argmin())
        advice = "write thousands without separators" if numbers[i] else "leave missing ones empty"
        raise BadFile(
            f"{path}: column {names[j]!r} is of numbers, "
            f"but row {i + 1} has {str(cells[i])!r}: {advice}, "
            "or say which columns to use, or which holds the ids."
        )
