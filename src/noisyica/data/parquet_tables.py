"""Reading tables in the Parquet format."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica.data.columns import (
    Columns,
    assemble,
    check_different,
    find_column,
    used_columns,
    with_rest,
)
from noisyica.data.files import BadFile, check_claim, check_size, need
from noisyica.data.held import Held
from noisyica.data.rows import Data

NUMBERS = ("float32", "float64")
"""The types of numbers that columns are read as."""
BYTES = 2**26
"""The approximate size of the columns of a group of rows that are converted at a time."""


class Read(NamedTuple):
    """What is known of the columns of a table before they are read."""

    names: list[str]
    kinds: list[str | None]  # what each column is read as; None for types that are not read
    given: int | None  # the column of the ids that was asked for
    likely_ids: int
    ids: int | None  # a column that is ids, whatever it holds

    def columns(self, of: Callable[[int], np.ndarray], ids: Callable[[int], np.ndarray]) -> Columns:
        """Return the columns that are read, by functions that read a column, and one with ids."""
        known = {j: kind for j, kind in enumerate(self.kinds) if kind}
        text = {j: of(j) for j, kind in known.items() if kind not in NUMBERS}
        if self.ids is not None:
            text[self.ids] = ids(self.ids)
        return Columns(self.names, {j: of(j) for j, kind in known.items() if kind in NUMBERS}, text)


def read_parquet(
    path: Path,
    *,
    id_column: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    unread: bool = False,
) -> Data:
    """Read a Parquet table; the index of a pandas table becomes the ids of the rows.

    The columns of ``unread`` data are left in the file.
    """
    if unread:
        return _open_parquet(path, id_column, columns)
    parquet = need("pyarrow.parquet", "parquet")
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        check_size(path, 8 * file.metadata.num_rows * len(schema), path.stat().st_size)
        plan = _plan(path, schema, id_column, columns)
        table = file.read([name for name, kind in zip(plan.names, plan.kinds, strict=True) if kind])

    def of(j: int) -> np.ndarray:
        return _column(table[plan.names[j]], plan.kinds[j])

    read = plan.columns(of, lambda j: _as_ids(table[plan.names[j]]))
    return assemble(path, read, plan.given, plan.likely_ids, columns)


def _open_parquet(
    path: Path, id_column: str | int | None, columns: Sequence[str | int] | None
) -> Data:
    """Open a Parquet table as :func:`read_parquet` reads it; columns of data are not read yet."""
    parquet = need("pyarrow.parquet", "parquet")
    file = parquet.ParquetFile(path)
    schema, n = file.schema_arrow, file.metadata.num_rows
    check_claim(path, 8 * n * len(schema), path.stat().st_size)
    plan = _plan(path, schema, id_column, columns)
    used = _used(path, plan, columns) if n else []
    if not used:
        raise BadFile(f"{path} has no rows of numbers.")

    def of(j: int) -> np.ndarray:
        if j in used:
            return np.empty(0)
        return _column(file.read([plan.names[j]])[plan.names[j]], plan.kinds[j])

    read = plan.columns(of, lambda j: _as_ids(file.read([plan.names[j]])[plan.names[j]]))
    X = Groups(_groups_of_file(file), plan, used)
    return with_rest(path, X, read, used, plan.given, plan.likely_ids)


def held_table(source: Any) -> Held:
    """Return the rows of an open Parquet file, or of a dataset of pyarrow, without reading them.

    They are the columns that :func:`read_parquet` takes for the data.
    """
    place = Path("X")
    if hasattr(source, "read_row_group"):
        schema, groups = source.schema_arrow, _groups_of_file(source)
    else:
        schema, groups = source.schema, _groups_of_dataset(source)
    plan = _plan(place, schema, None, None)
    used = _used(place, plan, None)
    if not used:
        raise BadFile("X has no columns of numbers to use.")
    return Groups(groups, plan, used)


class Group(NamedTuple):
    """A group of rows of a table."""

    n: int
    read: Callable[[list[str]], Any]  # reads columns by their names


class Groups(Held):
    """The rows of a table, one group after the other, of the columns that are used."""

    def __init__(self, groups: list[Group], plan: Read, used: list[int]) -> None:
        groups = [group for group in groups if group.n]
        self._groups, self._names = groups, [plan.names[j] for j in used]
        self._kinds = [plan.kinds[j] for j in used]
        ends = np.cumsum([0, *(group.n for group in groups)]).tolist()
        dtype = np.result_type(*(np.dtype(kind) for kind in self._kinds))
        super().__init__((ends[-1], len(used)), dtype, ends[:-1] or [0])

    def _read(self, number: int, first: int, end: int) -> np.ndarray:
        rows = np.empty((end - first, len(self._names)), self.dtype)
        some = max(1, BYTES // (8 * (end - first)))
        for begin in range(0, len(self._names), some):
            names = self._names[begin : begin + some]
            table = self._groups[number].read(names)
            for j, name in enumerate(names, begin):
                rows[:, j] = _column(table[name], self._kinds[j])
        return rows


def _groups_of_file(file: Any) -> list[Group]:
    """Return the groups of rows of an open Parquet file."""

    def group(i: int) -> Group:
        n = file.metadata.row_group(i).num_rows
        return Group(n, lambda names: file.read_row_group(i, columns=names))

    return [group(i) for i in range(file.metadata.num_row_groups)]


def _groups_of_dataset(source: Any) -> list[Group]:
    """Return the groups of rows of a dataset of pyarrow, or its files where they have no groups."""

    def group(part: Any) -> Group:
        # a fragment of one group counts the rows of its whole file
        groups = getattr(part, "row_groups", None)
        n = part.count_rows() if groups is None else sum(some.num_rows for some in groups)
        return Group(n, lambda names: part.to_table(columns=names, schema=source.schema))

    groups: list[Group] = []
    for fragment in source.get_fragments():
        in_groups = hasattr(fragment, "split_by_row_group")
        groups += map(group, fragment.split_by_row_group() if in_groups else [fragment])
    return groups


def _plan(
    path: Path,
    schema: Any,
    id_column: str | int | None,
    columns: Sequence[str | int] | None,
) -> Read:
    """Return what the columns of a table are, and refuse those that cannot be read."""
    names = list(schema.names)
    if not names:
        raise BadFile(f"{path} has no columns.")
    check_different(path, names)
    kinds = [_kind(schema.field(j).type) for j in range(len(names))]
    given = None if id_column is None else find_column(path, names, id_column)
    chosen: list[int | None] = [*range(len(names))]
    if columns is not None:
        chosen = [given, *(find_column(path, names, column) for column in columns)]
    for j, kind in enumerate(kinds):
        if kind is None and j in chosen:
            raise BadFile(
                f"{path}: column {names[j]!r} holds {schema.field(j).type}, "
                "not numbers or text: name the columns to use."
            )
    index = _pandas_index(schema)
    likely_ids = names.index(index) if index in names else 0
    titled = names[likely_ids].lower() in ("id", index)
    ids = given if given is not None else likely_ids if titled else None
    return Read(names, kinds, given, likely_ids, ids)


def _used(path: Path, plan: Read, wanted: Sequence[str | int] | None) -> list[int]:
    """Return the numbers of the columns that are the data, before any is read."""
    unread = plan.columns(lambda j: np.empty(0), lambda j: np.empty(0))
    return used_columns(path, unread, wanted) if unread.numeric else []


def _pandas_index(schema: Any) -> str | None:
    """Return the name of the column with the index of a pandas table, if there is exactly one."""
    stored = (schema.metadata or {}).get(b"pandas")
    index = json.loads(stored).get("index_columns", []) if stored else []
    index = [name for name in index if isinstance(name, str)]
    return index[0] if len(index) == 1 and index[0] in schema.names else None


def _kind(arrow: Any) -> str | None:
    """Return what a column of this type is read as: a type of numbers, "text" or "date".

    None stands for types that are not read.
    """
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


def _as_ids(column: Any) -> np.ndarray:
    """Convert a column to the names of rows."""
    return np.array([str(value) for value in column.to_pylist()])


def _column(column: Any, kind: str | None) -> np.ndarray:
    """Convert a column to an array of the given kind; missing numbers become NaN."""
    import pyarrow

    if kind in NUMBERS:
        target = pyarrow.float32() if kind == "float32" else pyarrow.float64()
        return column.cast(target, safe=False).to_numpy()
    if kind == "date":
        return column.cast(pyarrow.timestamp("us"), safe=False).to_numpy().astype("datetime64[us]")
    return np.array(["" if value is None else value for value in column.to_pylist()], dtype=str)
