"""Tables: text (.csv, .tsv, .txt) and Parquet. Columns of numbers are the data, the first column of text may be the rows' ids."""

from __future__ import annotations

import collections
import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from noisyica.data.files import BadFile, check_size, listed, need
from noisyica.data.layout import Lines
from noisyica.data.rows import Data, make

MISSING = frozenset(("", "na", "n/a", "nan", "null"))
ROWS = 300
"""Rows that are held as text at a time: text takes ten times the memory of numbers."""
Cells = list[str]


class _Format(NamedTuple):
    """How a text table is written."""

    separator: str | None  # None: spaces
    quoted: bool  # cells may be in quotes, with separators and ends of lines in them

    @property
    def decimal_comma(self) -> bool:
        return self.separator == ";"


def read_text(
    path: Path, *, id_column: str | int | None = None, columns: Sequence[str | int] | None = None
) -> Data:
    """A text table: numbers in a first pass, the columns of text in a second."""
    with path.open("rb") as file:
        if b"\0" in file.read(2**20):
            raise BadFile(
                f"{path} cannot be read as text, as it has zero bytes: is it binary, or UTF-16? Save it as UTF-8."
            )
    try:
        form = _Format(_separator(path), _quoted(path))
        names, headed = _names(path, list(itertools.islice(_lines(path, form), 2)))
        given = None if id_column is None else _find(path, names, id_column)
        titled = 0 if headed and names[0].lower() in ("id", "") else None
        names = [name or f"column{j}" for j, name in enumerate(names)]
        numeric = _numbers(
            itertools.islice(_lines(path, form), headed, None), len(names), form.decimal_comma
        )
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
    return _assemble(path, names, numeric, text, given, 0, columns)


def _separator(path: Path) -> str | None:
    """What stands between columns: the same number of times in the first lines. None: spaces."""
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
    """The numbers of cells in the lines; one, if they are not to be split like that (a cell would be longer than any is)."""
    try:
        return {len(cells) for cells in csv.reader(lines, delimiter=separator)}
    except csv.Error:
        return {1}


def _quoted(path: Path) -> bool:
    with path.open("rb") as file:
        return any(b'"' in block for block in iter(lambda: file.read(2**20), b""))


def _lines(path: Path, form: _Format) -> Iterator[Cells]:
    """The cells of every line that is not blank; all lines must have as many as the first."""
    by_csv = form.separator is not None and form.quoted
    with path.open(encoding="utf-8-sig", newline="" if by_csv else None) as file:
        width = 0
        for number, cells in _quoted_cells(file, form) if by_csv else _plain_cells(file, form):
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            width = width or len(cells)
            if len(cells) != width:
                raise BadFile(
                    f"{path}: line {number} has {len(cells)} columns, the first one {width}."
                )
            yield cells


def _quoted_cells(file: IO[str], form: _Format) -> Iterator[tuple[int, Cells]]:
    reader = csv.reader(file, delimiter=form.separator or ",", skipinitialspace=True, strict=True)
    return ((reader.line_num, cells) for cells in reader)


def _plain_cells(file: IO[str], form: _Format) -> Iterator[tuple[int, Cells]]:
    """The same where nothing is in quotes, three times as fast."""
    lines = enumerate(file, 1)
    if form.separator is None:
        return ((i, line.split()) for i, line in lines if not line.startswith("#"))
    return ((i, line.rstrip("\n").split(form.separator)) for i, line in lines)


def _names(path: Path, first: list[Cells]) -> tuple[list[str], bool]:
    """The columns' names, and whether they are the first line.

    That is so where it has text above numbers, or nothing but text.
    """
    if not first:
        raise BadFile(f"{path} is empty.")
    top = [_floats([cell], False) is None for cell in first[0]]
    below = (
        [_floats([cell], False) is None for cell in first[-1]]
        if len(first) > 1
        else [False] * len(top)
    )
    headed = all(top) or any(a and not b for a, b in zip(top, below, strict=True))
    return [cell.strip() if headed else f"column{j}" for j, cell in enumerate(first[0])], headed


def _floats(cells: Sequence[str], decimal_comma: bool) -> np.ndarray | None:
    """The cells as numbers, NaN where missing; None if any is text."""
    if "_" in "".join(cells):  # Python takes 1_2 for a number
        return None
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        pass
    if decimal_comma:
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        return np.array(
            [np.nan if cell.strip().lower() in MISSING else float(cell) for cell in cells]
        )
    except ValueError:
        return None


def _numbers(lines: Iterator[Cells], width: int, decimal_comma: bool) -> dict[int, np.ndarray]:
    """The columns that are numbers throughout."""
    parts: dict[int, list[np.ndarray]] = {j: [] for j in range(width)}
    while chunk := list(itertools.islice(lines, ROWS)):
        columns = list(zip(*chunk, strict=True))
        for j in list(parts):
            values = _floats(columns[j], decimal_comma)
            if values is None:
                del parts[j]
            else:
                parts[j].append(values)
    return {j: np.concatenate(values) for j, values in parts.items() if values}


def _text(lines: Iterator[Cells], wanted: list[int]) -> dict[int, np.ndarray]:
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
    """A column of numbers with a few words in it is more probably wrong than a column of text."""
    for j, cells in text.items():
        words = np.array([_floats([cell], decimal_comma) is None for cell in cells])
        if 2 * words.sum() < len(words):
            i = int(words.argmax())
            raise BadFile(
                f"{path}: column {names[j]!r} is of numbers, but row {i + 1} has {str(cells[i])!r}: "
                "leave missing entries empty, or say which columns to use, or which holds the ids."
            )


def _find(path: Path, names: list[str], column: str | int) -> int:
    """Which column a name or a number means."""
    found = [j for j, name in enumerate(names) if name == column]
    if not found and str(column).isdigit() and int(column) < len(names):
        return int(column)
    if len(found) != 1:
        problem = "no column" if not found else f"{len(found)} columns"
        raise BadFile(f"{path} has {problem} {column!r}: it has {listed(names)}.")
    return found[0]


def _assemble(
    path: Path,
    names: list[str],
    numeric: dict[int, np.ndarray],
    text: dict[int, np.ndarray],
    given: int | None,
    guess: int | None,
    columns: Sequence[str | int] | None,
) -> Data:
    """Data from columns. Ids are those given, or the guess if it is text (or among ``text``) and all different."""
    count = len(next(iter({**numeric, **text}.values()), ()))
    if not count or not numeric:
        raise BadFile(f"{path} has no rows of numbers.")
    if given is None and guess in text and len(set(text[guess])) == count:
        given = guess
    if columns is None:
        used = [j for j in numeric if j not in text]
    else:
        used = [_find(path, names, column) for column in columns]
        for j in used:
            if j not in numeric:
                raise BadFile(f"{path}: column {names[j]!r} is not of numbers.")
    if not used:
        raise BadFile(f"{path} has no columns of numbers to use.")
    rest = sorted({*numeric, *text} - {*used, given})
    _check_different(path, [names[j] for j in used])
    _check_different(path, [names[j] for j in rest])
    X = np.empty((count, len(used)), np.result_type(*(numeric[j] for j in used)))
    for k, j in enumerate(used):
        X[:, k] = numeric[j]
    others = {names[j]: text[j] if j in text else numeric[j] for j in rest}
    ids = None if given is None else text[given]
    return make(path, X, ids, others, Lines(np.array([names[j] for j in used])))


def _check_different(path: Path, names: list[str]) -> None:
    for name, count in collections.Counter(names).most_common(1):
        if count > 1:
            raise BadFile(f"{path} has {count} columns {name!r}: name them differently.")


def read_parquet(
    path: Path, *, id_column: str | int | None = None, columns: Sequence[str | int] | None = None
) -> Data:
    """A Parquet table; the names that pandas gave its rows are their ids."""
    parquet = need("pyarrow.parquet", "parquet")
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        check_size(path, 8 * file.metadata.num_rows * len(schema), path.stat().st_size)
        names = list(schema.names)
        if not names:
            raise BadFile(f"{path} has no columns.")
        _check_different(path, names)
        kinds = [_kind(schema.field(j).type) for j in range(len(names))]
        given = None if id_column is None else _find(path, names, id_column)
        chosen = None if columns is None else {_find(path, names, column) for column in columns}
        for j, kind in enumerate(kinds):
            if kind is None and (chosen is None or j in chosen or j == given):
                raise BadFile(
                    f"{path}: column {names[j]!r} holds {schema.field(j).type}, not numbers or text: name the columns to use."
                )
        table = file.read([name for name, kind in zip(names, kinds, strict=True) if kind])
    numeric = {
        j: _column(table[names[j]], kind)
        for j, kind in enumerate(kinds)
        if kind in ("float32", "float64")
    }
    text = {
        j: _column(table[names[j]], kind)
        for j, kind in enumerate(kinds)
        if kind in ("text", "date")
    }
    index = _pandas_index(schema)
    guess = names.index(index) if index in names else 0
    for j in (
        [given] if given is not None else [guess] if names[guess].lower() in ("id", index) else []
    ):
        text[j] = np.array([str(value) for value in table[names[j]].to_pylist()])
    return _assemble(path, names, numeric, text, given, guess, columns)


def _pandas_index(schema: Any) -> str | None:
    """The column that holds the index of a pandas table, where there is exactly one."""
    stored = (schema.metadata or {}).get(b"pandas")
    index = (
        [name for name in json.loads(stored).get("index_columns", []) if isinstance(name, str)]
        if stored
        else []
    )
    return index[0] if len(index) == 1 and index[0] in schema.names else None


def _kind(arrow: Any) -> str | None:
    """What becomes of a column of this type: numbers, text, a date; None: nothing, as it is neither."""
    import pyarrow.types as types

    if types.is_float32(arrow) or types.is_float16(arrow):
        return "float32"
    if (
        types.is_integer(arrow)
        or types.is_floating(arrow)
        or types.is_boolean(arrow)
        or types.is_decimal(arrow)
    ):
        return "float64"
    if types.is_dictionary(arrow):
        return "text" if _kind(arrow.value_type) == "text" else None
    if types.is_string(arrow) or types.is_large_string(arrow):
        return "text"
    return "date" if types.is_date(arrow) or types.is_timestamp(arrow) else None


def _column(column: Any, kind: str | None) -> np.ndarray:
    import pyarrow

    if kind in ("float32", "float64"):
        wide = column.cast(
            pyarrow.float32() if kind == "float32" else pyarrow.float64(), safe=False
        )
        return wide.to_numpy()
    if kind == "date":
        return column.cast(pyarrow.timestamp("us"), safe=False).to_numpy().astype("datetime64[us]")
    return np.array(["" if value is None else value for value in column.to_pylist()], dtype=str)
