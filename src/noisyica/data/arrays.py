"""Reading rows from files of named arrays: NumPy's .npy and .npz, MATLAB's .mat, HDF5 and Zarr.

Only the arrays that are needed are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from noisyica.data.files import BadFile, check_size, listed
from noisyica.data.layout import Images, Layout, Mesh
from noisyica.data.rows import Data, blocks, check_numbers, make
from noisyica.data.stored import (
    Stored,
    hdf5_arrays,
    mat_arrays,
    npy_array,
    npz_arrays,
    zarr_arrays,
)


def read_npy(path: Path, *, unread: bool = False) -> Data:
    """Read the rows of a .npy file; here and below, ``unread`` rows are left in the file."""
    X, layout = _rows(path, npy_array(path), unread)
    return make(path, X, layout=layout)


def read_npz(path: Path, *, array: str | None = None, id_column: str | None = None) -> Data:
    """Read the rows of a .npz file."""
    return _from_arrays(path, npz_arrays(path), array, id_column)


def read_mat(path: Path, *, array: str | None = None, id_column: str | None = None) -> Data:
    """Read the rows of a MATLAB file of any version."""
    return _from_arrays(path, mat_arrays(path), array, id_column)


def read_hdf5(
    path: Path,
    *,
    array: str | None = None,
    id_column: str | None = None,
    unread: bool = False,
) -> Data:
    """Read the rows of an HDF5 file."""
    return _from_arrays(path, hdf5_arrays(path), array, id_column, unread)


def read_zarr(
    path: Path,
    *,
    array: str | None = None,
    id_column: str | None = None,
    unread: bool = False,
) -> Data:
    """Read the rows of a Zarr store."""
    return _from_arrays(path, zarr_arrays(path), array, id_column, unread)


def _from_arrays(
    path: Path,
    arrays: dict[str, Stored],
    array: str | None,
    id_column: str | None,
    unread: bool = False,
) -> Data:
    """Read the rows from the array of the given name, or from the only one that can hold them."""
    name = _only(path, arrays) if array is None else _named(path, arrays, array)
    X, layout = _rows(f"{name or 'The array'} in {path}", arrays[name], unread)
    others = _per_row(len(X), {key: value for key, value in arrays.items() if key != name})
    ids = None
    if id_column is not None:
        if id_column not in others:
            raise BadFile(
                f"{path} has no array {id_column!r} with one value for each of the {len(X)} rows: "
                f"it has {listed(others)}."
            )
        ids = others.pop(id_column).astype(str)
    return make(path, X, ids, others, layout or find_mesh(arrays, X.shape[1]))


def _named(path: Path, arrays: dict[str, Stored], array: str) -> str:
    """Return the name by which the file itself knows the array that was asked for."""
    name = array.strip("/")
    if name in arrays:
        return name
    within = [key for key in arrays if key.startswith(f"{name}/")]
    if within:
        raise BadFile(f"{path}: {array!r} is a group, not an array: it has {listed(within)}.")
    raise BadFile(f"{path} has no array {array!r}: it has {listed(arrays) or 'none'}.")


def _only(path: Path, arrays: dict[str, Stored]) -> str:
    """Return the name of the only array that can hold the rows: a table, or else images."""
    numbers = {
        name: stored
        for name, stored in arrays.items()
        if stored.dtype.kind in "fiub" and 0 not in stored.shape
    }
    tables = [name for name, stored in numbers.items() if len(stored.shape) == 2]
    on_mesh = []
    if len(tables) > 1:
        on_mesh = [name for name in tables if find_mesh(arrays, numbers[name].shape[1])]
    not_vectors = [name for name in tables if 1 not in numbers[name].shape]
    images = [name for name, stored in numbers.items() if len(stored.shape) in (3, 4)]
    for candidates in (tables, on_mesh, not_vectors, images if not tables else []):
        if len(candidates) == 1:
            return candidates[0]
    if len(arrays) == 1 and not tables and not images:
        return next(iter(arrays))  # so that the error says what is wrong with it
    if not arrays:
        raise BadFile(f"{path} has no arrays.")
    raise BadFile(
        f"{path} has the arrays {listed(arrays)}: say which of them holds the rows (--array)."
    )


def _rows(place: Path | str, stored: Stored, unread: bool) -> tuple[Any, Layout | None]:
    """Load an array as rows: a table is left as it is, and each image becomes a row of pixels.

    The layout is None for a table. A memory map stays one if its numbers are in the order of rows.
    ``unread`` rows are only opened, where they can be.
    """
    check_numbers(place, stored.shape, stored.dtype)
    shape = stored.shape
    image = len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3))
    if not image and len(shape) != 2:
        raise BadFile(
            f"{place} has shape {shape}: data must have two axes, rows and columns; "
            "images have three, or four with colours."
        )
    pixels = shape[1:3] if shape[3:] in ((), (1,)) else shape[1:]
    layout = Images(np.array(pixels)) if image else None
    if unread and stored.rows is not None:
        return stored.rows(), layout
    values = stored.load()
    if not image:
        return values, None
    if not values.flags.c_contiguous:  # images in Fortran's order become rows only by a copy
        check_size(place, values.nbytes, values.nbytes)
    return values.reshape(len(values), -1), layout


def _per_row(n: int, arrays: dict[str, Stored]) -> dict[str, np.ndarray]:
    """Load the arrays that have one number, date or text for each of the n rows."""
    others = {}
    for name, stored in arrays.items():
        if stored.shape in ((n,), (n, 1), (1, n)) and stored.dtype.kind in "fiubUSTmM":
            values = np.asarray(stored.load()).reshape(-1)
            if values.dtype.kind == "S":
                values = np.char.decode(values, "utf-8", "replace")
            if values.dtype.kind in "fiubUTmM" and len(values) == n:
                others[name] = values.astype(str) if values.dtype.kind == "T" else values
    return others


def find_mesh(arrays: dict[str, Stored], d: int) -> Mesh | None:
    """Return the mesh of d vertices among the arrays, or None if there is none.

    It consists of coordinates, (d, 3), and of indices of vertices, (f, 3).
    """
    three_columns = {
        name: stored
        for name, stored in arrays.items()
        if len(stored.shape) == 2 and stored.shape[1] == 3
    }
    vertices = [
        name
        for name, stored in three_columns.items()
        if stored.shape[0] == d and stored.dtype.kind == "f"
    ]
    for vertex in sorted(vertices, key=lambda name: "vert" not in name.lower()):
        for face in (name for name in three_columns if name != vertex):
            corners = _corners(three_columns[face], d)
            if corners is not None:
                coordinates = np.asarray(three_columns[vertex].load())
                return Mesh(coordinates, corners) if np.isfinite(coordinates).all() else None
    return None


def _corners(stored: Stored, d: int) -> np.ndarray | None:
    """Return an array as the corners of triangles of d vertices, or None if it cannot be that.

    MATLAB counts vertices from 1, and in floating numbers. The array may be large, and something
    else: it is looked at block by block, and no further than necessary.
    """
    if stored.dtype.kind not in "fiu" or not stored.shape[0]:
        return None
    values = np.asarray(stored.load())
    lowest, highest = d, 0
    for _, block in blocks(values):
        if not _are_triangles(block, d):
            return None
        lowest, highest = min(lowest, int(block.min())), max(highest, int(block.max()))
    first = 1 if lowest >= 1 and highest == d else 0
    if highest - first >= d:
        return None
    whole = values.astype(np.int64) if values.dtype.kind == "f" else values
    return whole - first if first else whole


def _are_triangles(block: np.ndarray, d: int) -> bool:
    """Whether the rows are three different whole numbers from 0 to d each.

    Indices of voxels on a grid, which also have three columns, are not all different.
    """
    if block.dtype.kind == "f" and not (
        np.isfinite(block).all() and (block == np.round(block)).all()
    ):
        return False
    a, b, c = block.T
    different = ((a != b) & (b != c) & (c != a)).all()
    return bool(different and block.min() >= 0 and block.max() <= d)
