"""Reading tables in the Parquet format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noisyica.data.columns import Columns, assemble, check_different, find_column
from noisyica.data.files import BadFile, check_size, need
from noisyica.data.rows import Data


def read_parquet(
    path: Path, *, id_column: str | int | None = None, columns: Sequence[str | int] | None = None
) -> Data:
    """Read a Parquet table; the index of a pandas table becomes the ids of the rows."""
    parquet = need("pyarrow.parquet", "parquet")
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        check_size(path, 8 * file.metadata.num_rows * len(schema), path.stat().st_size)
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
        table = file.read([name for name, kind in zip(names, kinds, strict=True) if kind])
    read = {j: _column(table[names[j]], kind) for j, kind in enumerate(kinds) if kind}
    numeric = {j: values for j, values in read.items() if kinds[j] in ("float32", "float64")}
    text = {j: values for j, values in read.items() if j not in numeric}
    index = _pandas_index(schema)
    likely_ids = names.index(index) if index in names else 0
    titled = names[likely_ids].lower() in ("id", index)
    ids = given if given is not None else likely_ids if titled else None
    if ids is not None:
        text[ids] = np.array([str(value) for value in table[names[ids]].to_pylist()])
    return assemble(path, Columns(names, numeric, text), given, likely_ids, columns)


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


def _column(column: Any, kind: str) -> np.ndarray:
    """Convert a column to an array of the given kind; missing numbers become NaN."""
    import pyarrow

    if kind in ("float32", "float64"):
        target = pyarrow.float32() if kind == "float32" else pyarrow.float64()
        return column.cast(target, safe=False).to_numpy()
    if kind == "date":
        return column.cast(pyarrow.timestamp("us"), safe=False).to_numpy().astype("datetime64[us]")
    return np.array(["" if value is None else value for value in column.to_pylist()], dtype=str)
