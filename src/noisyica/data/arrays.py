"""Arrays with names: NumPy's .npy and .npz, MATLAB's .mat, HDF5, Zarr. Only what is asked for is read."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from noisyica.data.files import BadFile, check_size, listed, need, parsing, stored_size
from noisyica.data.layout import Images, Layout, Mesh
from noisyica.data.rows import Data, check_numbers, make

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class Stored(NamedTuple):
    """An array in a file, not yet read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    load: Callable[[], np.ndarray]


def read_npy(path: Path) -> Data:
    with path.open("rb") as file:
        stored = _mapped(path, file, path.stat().st_size)
    X, layout = _rows(path, stored)
    return make(path, X, layout=layout)


def read_npz(path: Path, *, array: str | None = None, id_column: str | None = None) -> Data:
    return _from_store(path, npz_arrays(path), array, id_column)


def read_mat(path: Path, *, array: str | None = None, id_column: str | None = None) -> Data:
    with path.open("rb") as file:
        start = file.read(520)
    newer = HDF5_SIGNATURE in (start[:8], start[512:])
    return _from_store(
        path, _hdf5_arrays(path, matlab=True) if newer else _mat_arrays(path), array, id_column
    )


def read_hdf5(path: Path, *, array: str | None = None, id_column: str | None = None) -> Data:
    return _from_store(path, _hdf5_arrays(path), array, id_column)


def read_zarr(path: Path, *, array: str | None = None, id_column: str | None = None) -> Data:
    return _from_store(path, _zarr_arrays(path), array, id_column)


# What the rows are


def _from_store(
    path: Path, store: dict[str, Stored], array: str | None, id_column: str | None
) -> Data:
    name = _only(path, store) if array is None else _named(path, store, array)
    X, layout = _rows(f"{name or 'The array'} in {path}", store[name])
    others = _per_row(len(X), {key: value for key, value in store.items() if key != name})
    ids = None
    if id_column is not None:
        if id_column not in others:
            raise BadFile(
                f"{path} has no array {id_column!r} with one value for each of the {len(X)} rows: it has {listed(others)}."
            )
        ids = others.pop(id_column).astype(str)
    return make(path, X, ids, others, layout or find_mesh(store, X.shape[1]))


def _named(path: Path, store: dict[str, Stored], array: str) -> str:
    name = array.strip("/")
    if name in store:
        return name
    within = [key for key in store if key.startswith(f"{name}/")]
    if within:
        raise BadFile(f"{path}: {array!r} is a group, not an array: it has {listed(within)}.")
    raise BadFile(f"{path} has no array {array!r}: it has {listed(store) or 'none'}.")


def _only(path: Path, store: dict[str, Stored]) -> str:
    """The one array that can hold the rows: a table, or else images."""
    numbers = {
        name: stored
        for name, stored in store.items()
        if stored.dtype.kind in "fiub" and 0 not in stored.shape
    }
    tables = [name for name, stored in numbers.items() if len(stored.shape) == 2]
    on_mesh = (
        [name for name in tables if find_mesh(store, numbers[name].shape[1])]
        if len(tables) > 1
        else []
    )
    not_vectors = [name for name in tables if 1 not in numbers[name].shape]
    images = [name for name, stored in numbers.items() if len(stored.shape) in (3, 4)]
    for candidates in (tables, on_mesh, not_vectors, images if not tables else []):
        if len(candidates) == 1:
            return candidates[0]
    if len(store) == 1 and not tables and not images:
        return next(iter(store))  # so that the error says what is wrong with it
    if not store:
        raise BadFile(f"{path} has no arrays.")
    raise BadFile(
        f"{path} has the arrays {listed(store)}: say which of them holds the rows (--array)."
    )


def _rows(place: Path | str, stored: Stored) -> tuple[np.ndarray, Layout | None]:
    """An array as rows: tables as they are, images as rows of pixels."""
    check_numbers(place, stored.shape, stored.dtype)
    shape = stored.shape
    image = len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3))
    if not image and len(shape) != 2:
        raise BadFile(
            f"{place} has shape {shape}: data must have two axes, rows and columns; images have three, or four with colours."
        )
    values = stored.load()
    if not image:
        return values, None
    pixels = shape[1:3] if shape[3:] in ((), (1,)) else shape[1:]
    return values.reshape(len(values), -1), Images(np.array(pixels))


def _per_row(n: int, store: dict[str, Stored]) -> dict[str, np.ndarray]:
    """The arrays with one number, date or text for each row."""
    found = {}
    for name, stored in store.items():
        if stored.shape in ((n,), (n, 1), (1, n)) and stored.dtype.kind in "fiubUSTmM":
            values = np.asarray(stored.load()).reshape(-1)
            if values.dtype.kind == "S":
                values = np.char.decode(values, "utf-8", "replace")
            if values.dtype.kind in "fiubUTmM" and len(values) == n:
                found[name] = values.astype(str) if values.dtype.kind == "T" else values
    return found


def find_mesh(store: dict[str, Stored], d: int) -> Mesh | None:
    """The mesh of d vertices among arrays: coordinates (d, 3), and indices of them (f, 3)."""
    three = {
        name: stored
        for name, stored in store.items()
        if len(stored.shape) == 2 and stored.shape[1] == 3
    }
    vertices = [
        name for name, stored in three.items() if stored.shape[0] == d and stored.dtype.kind == "f"
    ]
    for vertex in sorted(vertices, key=lambda name: "vert" not in name.lower()):
        for face in (name for name in three if name != vertex):
            corners = _corners(three[face], d)
            if corners is not None:
                coordinates = np.asarray(three[vertex].load())
                return Mesh(coordinates, corners) if np.isfinite(coordinates).all() else None
    return None


def _corners(stored: Stored, d: int) -> np.ndarray | None:
    """An array as the faces of d vertices, if it can be that; MATLAB counts from 1, and in floating numbers."""
    if stored.dtype.kind not in "fiu" or not stored.shape[0]:
        return None
    values = np.asarray(stored.load())
    if values.dtype.kind == "f":
        if (
            not np.isfinite(values).all()
            or (values != np.round(values)).any()
            or np.abs(values).max() > d
        ):
            return None
        values = values.astype(np.int64)
    if values.min() >= 1 and values.max() == d:
        values = values - 1
    a, b, c = values.T
    triangles = ((a != b) & (b != c) & (c != a)).all()  # places of voxels on a grid are not
    return values if triangles and values.min() >= 0 and values.max() < d else None


# NumPy


def _mapped(path: Path, file: IO[bytes], end: int) -> Stored:
    """An array in NumPy's format that starts where ``file`` is and ends before ``end``, as a memory map."""
    shape, fortran, dtype = _npy_header(file)
    offset = file.tell()
    if offset + math.prod(shape) * dtype.itemsize > end:
        raise BadFile(
            f"{path} is cut short: it says that it has {dtype} of shape {shape}, which do not fit into it."
        )
    order: Any = "F" if fortran else "C"
    return Stored(shape, dtype, lambda: np.memmap(path, dtype, "r", offset, shape, order))


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    reader = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = reader(file)
    if any(size < 0 for size in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, dtype


def npz_arrays(path: Path) -> dict[str, Stored]:
    """The arrays of a .npz; those that are not compressed are memory maps."""
    found = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.filename == name:
                continue
            if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1:
                raw.seek(info.header_offset + 26)
                name_size, extra_size = struct.unpack("<HH", raw.read(4))
                raw.seek(name_size + extra_size, 1)
                found[name] = _mapped(
                    path, raw, min(raw.tell() + info.file_size, path.stat().st_size)
                )
            else:
                with archive.open(info) as file:
                    found[name] = _packed(path, info, *_npy_header(file))
    return found


def _packed(
    path: Path, info: zipfile.ZipInfo, shape: tuple[int, ...], fortran: bool, dtype: np.dtype[Any]
) -> Stored:
    def load() -> np.ndarray:
        check_size(
            f"{info.filename} in {path}", math.prod(shape) * dtype.itemsize, info.compress_size
        )
        with parsing(path), zipfile.ZipFile(path) as archive, archive.open(info) as file:
            values: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return values

    return Stored(shape, dtype, load)


# MATLAB

_NUMBERS = {
    "double",
    "single",
    "logical",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "sparse",
}


def _mat_arrays(path: Path) -> dict[str, Stored]:
    """The variables of a .mat before version 7.3 that are numbers or text; not structs, objects and functions."""
    from scipy.io import loadmat, whosmat

    def stored(name: str, shape: tuple[int, ...], kind: str) -> Stored:
        def load() -> np.ndarray:
            check_size(f"{name} in {path}", 8 * math.prod(shape), path.stat().st_size)
            with parsing(path):
                values = loadmat(path, variable_names=[name])[name]
                return (
                    values.toarray()
                    if kind == "sparse"
                    else _cells_as_text(values)
                    if kind == "cell"
                    else values
                )

        if kind in _NUMBERS:
            dtypes = {
                "single": np.float32,
                "logical": np.bool_,
                "sparse": np.float64,
                "double": np.float64,
            }
            return Stored(shape, np.dtype(dtypes.get(kind, kind)), load)
        return Stored(shape[:1] if kind == "char" else shape, np.dtype(str), load)

    return {
        name: stored(name, shape, kind)
        for name, shape, kind in whosmat(path)
        if kind in {"char", "cell", *_NUMBERS}
    }


def _cells_as_text(cells: np.ndarray) -> np.ndarray:
    """A cell array of words; other cells are left as they are, and are no use."""
    words = [
        str(cell.item()) if cell.size == 1 and cell.dtype.kind == "U" else None
        for cell in cells.reshape(-1)
    ]
    return cells if None in words else np.array(words, dtype=str)


# HDF5 and Zarr


def _hdf5_arrays(path: Path, matlab: bool = False) -> dict[str, Stored]:
    """The arrays of an HDF5 file. MATLAB writes them with their axes reversed."""
    h5py = need("h5py", "hdf5")
    found = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None and not name.startswith("#"):
            kind = item.attrs.get("MATLAB_class", b"") if matlab else b""
            shape = item.shape[::-1] if matlab else item.shape
            dtype = (
                np.dtype(str)
                if kind == b"cell" or h5py.check_string_dtype(item.dtype)
                else item.dtype
            )
            if kind != b"char" and "MATLAB_empty" not in item.attrs:
                found[name] = Stored(
                    shape, dtype, _hdf5_loader(path, name, matlab, kind == b"cell")
                )

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def _hdf5_loader(path: Path, name: str, matlab: bool, cells: bool) -> Callable[[], np.ndarray]:
    def load() -> np.ndarray:
        h5py = need("h5py", "hdf5")
        with parsing(path), h5py.File(path, "r") as file:
            item = file[name]
            stored = item.nbytes if item.is_virtual else item.id.get_storage_size()
            check_size(f"{name} in {path}", item.nbytes, stored)
            if cells:
                return _hdf5_words([file[reference] for reference in np.asarray(item).reshape(-1)])
            if h5py.check_string_dtype(item.dtype):
                return np.asarray(item.asstr(errors="replace")[()], dtype=str)
            values = np.asarray(item[()])
        return values.T if matlab else values

    return load


def _hdf5_words(cells: list[Any]) -> np.ndarray:
    """The words of MATLAB's cells, which are codes of letters; objects, which are no use, if some are not words."""
    if any(cell.attrs.get("MATLAB_class") != b"char" for cell in cells):
        return np.empty(len(cells), dtype=object)
    empty = ["MATLAB_empty" in cell.attrs for cell in cells]
    return np.array(
        [
            "" if none else "".join(map(chr, np.asarray(cell).reshape(-1)))
            for cell, none in zip(cells, empty, strict=True)
        ],
        dtype=str,
    )


def _zarr_arrays(path: Path) -> dict[str, Stored]:
    """The arrays of a Zarr store; a store that is one array has it under the empty name."""
    zarr = need("zarr", "zarr")

    def stored(name: str, item: Any) -> Stored:
        def load() -> np.ndarray:
            check_size(f"{name or 'The array'} in {path}", item.nbytes, stored_size(path / name))
            with parsing(path):
                return np.asarray(item[...])

        return Stored(tuple(item.shape), item.dtype, load)

    root = zarr.open(str(path), mode="r")
    arrays = {"": root} if isinstance(root, zarr.Array) else dict(root.members(max_depth=None))
    return {
        name: stored(name, item) for name, item in arrays.items() if isinstance(item, zarr.Array)
    }
