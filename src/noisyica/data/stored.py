"""The arrays that a file holds, listed by name without being read.

The formats are NumPy's .npy and .npz, MATLAB's .mat, HDF5 and Zarr.
"""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from noisyica.data.files import BadFile, check_claim, check_size, need, parsing, stored_size
from noisyica.data.held import Held, Mapped, Sliced

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class Stored(NamedTuple):
    """An array in a file that has not been read yet."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    load: Callable[[], np.ndarray]
    rows: Callable[[], Held] | None = None
    """Opens it, where it can be read row by row, each row as one line of numbers."""


# NumPy


def npy_array(path: Path) -> Stored:
    """Return the array of a .npy file, which is loaded as a memory map."""
    with path.open("rb") as file:
        return _mapped(path, file, path.stat().st_size)


def npz_arrays(path: Path) -> dict[str, Stored]:
    """Return the arrays of a .npz file; those not compressed are loaded as memory maps."""
    arrays = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.filename == name:
                continue
            if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1:
                raw.seek(info.header_offset + 26)
                name_size, extra_size = struct.unpack("<HH", raw.read(4))
                raw.seek(name_size + extra_size, 1)
                end = min(raw.tell() + info.file_size, path.stat().st_size)
                arrays[name] = _mapped(path, raw, end)
            else:
                with archive.open(info) as file:
                    shape, _, dtype = _npy_header(file)
                arrays[name] = _packed(path, info, shape, dtype)
    return arrays


def _mapped(path: Path, file: IO[bytes], end: int) -> Stored:
    """Return an array in NumPy's format that is loaded as a memory map.

    It begins where ``file`` stands, and must end before byte ``end`` of the file.
    """
    shape, fortran, dtype = _npy_header(file)
    offset = file.tell()
    if offset + math.prod(shape) * dtype.itemsize > end:
        raise BadFile(
            f"{path} is cut short: it says that it has {dtype} of shape {shape}, "
            "which do not fit into it."
        )
    order: Any = "F" if fortran else "C"

    def load() -> np.ndarray:
        return np.memmap(path, dtype, "r", offset, shape, order)

    return Stored(shape, dtype, load, lambda: Mapped(load()))


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read a header in NumPy's format: shape, whether the order is Fortran's, and type."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    if any(size < 0 for size in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, dtype


def _packed(
    path: Path, info: zipfile.ZipInfo, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Stored:
    """Return a compressed array of a .npz file."""

    def load() -> np.ndarray:
        size = math.prod(shape) * dtype.itemsize
        check_size(f"{info.filename} in {path}", size, info.compress_size)
        with parsing(path), zipfile.ZipFile(path) as archive, archive.open(info) as file:
            values: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return values

    return Stored(shape, dtype, load)


# MATLAB

_MATLAB_TYPES = {
    "double": "f8",
    "single": "f4",
    "logical": "?",
    "sparse": "f8",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""MATLAB's classes of numbers, and their types in NumPy."""


def mat_arrays(path: Path) -> dict[str, Stored]:
    """Return the variables of a .mat file of any version that are numbers or text.

    Structs, objects and functions are left out.
    """
    with path.open("rb") as file:
        start = file.read(520)
    if HDF5_SIGNATURE in (start[:8], start[512:]):  # version 7.3
        return hdf5_arrays(path, matlab=True)
    from scipy.io import whosmat

    return {
        name: _mat_array(path, name, shape, kind)
        for name, shape, kind in whosmat(path)
        if kind in {"char", "cell", *_MATLAB_TYPES}
    }


def _mat_array(path: Path, name: str, shape: tuple[int, ...], kind: str) -> Stored:
    """Return a variable of MATLAB's class ``kind`` in a .mat file before version 7.3."""
    from scipy.io import loadmat

    def load() -> np.ndarray:
        check_size(f"{name} in {path}", 8 * math.prod(shape), path.stat().st_size)
        with parsing(path):
            values = loadmat(path, variable_names=[name])[name]
            if kind == "sparse":
                return values.toarray()
            return _cells_as_text(values) if kind == "cell" else values

    if kind in _MATLAB_TYPES:
        return Stored(shape, np.dtype(_MATLAB_TYPES[kind]), load)
    return Stored(shape[:1] if kind == "char" else shape, np.dtype(str), load)


def _cells_as_text(cells: np.ndarray) -> np.ndarray:
    """Return a cell array of words as text; other cells are returned unchanged, and not used."""
    words = [
        str(cell.item()) if cell.size == 1 and cell.dtype.kind == "U" else None
        for cell in cells.reshape(-1)
    ]
    return cells if None in words else np.array(words, dtype=str)


# HDF5 and Zarr


def hdf5_arrays(path: Path, matlab: bool = False) -> dict[str, Stored]:
    """Return the arrays of an HDF5 file; those that MATLAB wrote have their axes reversed."""
    h5py = need("h5py", "hdf5")
    arrays = {}

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or item.shape is None or name.startswith("#"):
            return
        kind = item.attrs.get("MATLAB_class", b"") if matlab else b""
        if kind == b"char" or "MATLAB_empty" in item.attrs:
            return
        shape = item.shape[::-1] if matlab else item.shape
        text = kind == b"cell" or h5py.check_string_dtype(item.dtype)
        load = _hdf5_loader(path, name, matlab, kind == b"cell")
        rows = None if matlab or text else lambda: _hdf5_rows(path, name)
        arrays[name] = Stored(shape, np.dtype(str) if text else item.dtype, load, rows)

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return arrays


def _hdf5_loader(path: Path, name: str, matlab: bool, cells: bool) -> Callable[[], np.ndarray]:
    """Return the function that loads an array of an HDF5 file; ``cells`` are MATLAB's."""

    def load() -> np.ndarray:
        h5py = need("h5py", "hdf5")
        with parsing(path), h5py.File(path, "r") as file:
            item = file[name]
            check_size(f"{name} in {path}", item.nbytes, _hdf5_size(item))
            if cells:
                return _hdf5_words([file[reference] for reference in np.asarray(item).reshape(-1)])
            if h5py.check_string_dtype(item.dtype):
                return np.asarray(item.asstr(errors="replace")[()], dtype=str)
            values = np.asarray(item[()])
        return values.T if matlab else values

    return load


def _hdf5_rows(path: Path, name: str) -> Held:
    """Open an array of an HDF5 file, which stays open as long as its rows are in use."""
    file = need("h5py", "hdf5").File(path, "r")
    item = file[name]
    check_claim(f"{name} in {path}", item.nbytes, _hdf5_size(item))
    return Sliced(item, file)


def _hdf5_size(item: Any) -> int:
    """Return the number of bytes in which an array of an HDF5 file is stored."""
    return int(item.nbytes if item.is_virtual else item.id.get_storage_size())


def _hdf5_words(cells: list[Any]) -> np.ndarray:
    """Return the words of MATLAB's cells, which hold the codes of letters.

    If some cells are not words, an array of objects is returned, which is not used.
    """
    if any(cell.attrs.get("MATLAB_class") != b"char" for cell in cells):
        return np.empty(len(cells), dtype=object)
    words = [
        "" if "MATLAB_empty" in cell.attrs else "".join(map(chr, np.asarray(cell).reshape(-1)))
        for cell in cells
    ]
    return np.array(words, dtype=str)


def zarr_arrays(path: Path) -> dict[str, Stored]:
    """Return the arrays of a Zarr store; one that is itself an array has the empty name."""
    zarr = need("zarr", "zarr")

    def stored(name: str, item: Any) -> Stored:
        place, size = f"{name or 'The array'} in {path}", path / name

        def load() -> np.ndarray:
            check_size(place, item.nbytes, stored_size(size))
            with parsing(path):
                return np.asarray(item[...])

        def rows() -> Held:
            check_claim(place, item.nbytes, stored_size(size))
            return Sliced(item)

        return Stored(tuple(item.shape), item.dtype, load, rows)

    root = zarr.open(str(path), mode="r")
    arrays = {"": root} if isinstance(root, zarr.Array) else dict(root.members(max_depth=None))
    return {
        name: stored(name, item) for name, item in arrays.items() if isinstance(item, zarr.Array)
    }
