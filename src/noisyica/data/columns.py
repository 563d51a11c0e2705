"""Rows from the columns of a table, and finding columns by their names.

Columns of numbers are the data; the first column of text may be the ids of the rows.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica.data.files import BadFile, listed
from noisyica.data.layout import Lines
from noisyica.data.rows import Data, make


class Columns(NamedTuple):
    """What was read of a table; columns are known by their numbers, which count from 0."""

    names: list[str]
    numeric: dict[int, np.ndarray]  # the columns of numbers
    text: dict[int, np.ndarray]  # the columns of text, and columns of numbers that may be the ids


def find_column(path: Path, names: list[str], column: str | int) -> int:
    """Return the number of the column that a name, or a number, means."""
    matches = [j for j, name in enumerate(names) if name == column]
    if not matches and str(column).isdigit() and int(column) < len(names):
        return int(column)
    if len(matches) != 1:
        problem = "no column" if not matches else f"{len(matches)} columns"
        raise BadFile(f"{path} has {problem} {column!r}: it has {listed(names)}.")
    return matches[0]


def check_different(path: Path, names: list[str]) -> None:
    """Refuse a table with several columns of one name."""
    for name, count in collections.Counter(names).most_common(1):
        if count > 1:
            raise BadFile(f"{path} has {count} columns {name!r}: name them differently.")


def assemble(
    path: Path,
    columns: Columns,
    id_column: int | None,
    likely_ids: int | None,
    wanted: Sequence[str | int] | None,
) -> Data:
    """Make rows of the columns that are ``wanted``, or else of all that are numbers.

    The ids are ``id_column``. If it is None they are ``likely_ids``, if that is among the columns
    of text and its entries all differ.
    """
    names, numeric, text = columns
    count = len(next(iter({**numeric, **text}.values()), ()))
    if not count or not numeric:
        raise BadFile(f"{path} has no rows of numbers.")
    used = used_columns(path, columns, wanted)
    X = np.empty((count, len(used)), np.result_type(*(numeric[j] for j in used)))
    for k, j in enumerate(used):
        X[:, k] = numeric[j]
    return with_rest(path, X, columns, used, id_column, likely_ids)


def with_rest(
    path: Path,
    X: Any,
    columns: Columns,
    used: list[int],
    id_column: int | None,
    likely_ids: int | None,
) -> Data:
    """Put the rows of the columns that are used together with what the other columns say of them.

    The ids are found as :func:`assemble` finds them.
    """
    names, numeric, text = columns
    if id_column is None and likely_ids in text and len(set(text[likely_ids])) == len(X):
        id_column = likely_ids
    rest = sorted({*numeric, *text} - {*used, id_column})
    check_different(path, [names[j] for j in used])
    check_different(path, [names[j] for j in rest])
    others = {names[j]: text[j] if j in text else numeric[j] for j in rest}
    ids = None if id_column is None else text[id_column]
    return make(path, X, ids, others, Lines(np.array([names[j] for j in used])))


def used_columns(path: Path, columns: Columns, wanted: Sequence[str | int] | None) -> list[int]:
    """Return the numbers of the columns that are the data."""
    if wanted is None:
        used = [j for j in columns.numeric if j not in columns.text]
    else:
        used = [find_column(path, columns.names, column) for column in wanted]
        for j in used:
            if j not in columns.numeric:
                raise BadFile(f"{path}: column {columns.names[j]!r} is not of numbers.")
    if not used:
        raise BadFile(f"{path} has no columns of numbers to use.")
    return used
