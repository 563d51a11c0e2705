"""Reading a file or a folder of any known format."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica.data import arrays, images, meshes, tables, volumes
from noisyica.data.files import BadFile, members, parsing
from noisyica.data.layout import Images
from noisyica.data.rows import Data


class Kind(NamedTuple):
    """A kind of files: what they are called, how their names end, how they are read, with which options."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[..., Data]
    options: tuple[str, ...]
    in_folder: bool = False  # a folder of such files can be read, too


_NAMED = ("array", "id_column", "shape", "mesh")
_TABLE = ("id_column", "columns", "shape", "mesh")
KINDS = (
    Kind("text tables", (".csv", ".tsv", ".txt"), tables.read_text, _TABLE),
    Kind("Parquet tables", (".parquet",), tables.read_parquet, _TABLE),
    Kind(".npy files", (".npy",), arrays.read_npy, ("shape", "mesh")),
    Kind(".npz files", (".npz",), arrays.read_npz, _NAMED),
    Kind("MATLAB files", (".mat",), arrays.read_mat, _NAMED),
    Kind("HDF5 files", (".h5", ".hdf5"), arrays.read_hdf5, _NAMED),
    Kind("Zarr stores", (".zarr",), arrays.read_zarr, _NAMED),
    Kind(
        "images",
        images.SUFFIXES,
        images.read_images,
        ("patch_size", "stride", "colour", "size", "centre_patches"),
        True,
    ),
    Kind("volumes", volumes.SUFFIXES, volumes.read_volumes, ("mask",), True),
    Kind("surfaces", meshes.SUFFIXES, meshes.read_meshes, ("array", "mesh"), True),
)


def read(
    path: str | os.PathLike[str],
    array: str | None = None,
    *,
    id_column: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    shape: Sequence[int] | None = None,
    mesh: str | os.PathLike[str] | None = None,
    mask: str | os.PathLike[str] | None = None,
    patch_size: int | None = None,
    stride: int | None = None,
    colour: bool = False,
    size: Sequence[int] | None = None,
    centre_patches: bool = False,
) -> Data:
    """Read the rows of a file, or of the files in a folder.

    Parameters
    ----------
    path : str or Path
        A table (.csv, .tsv, .txt, .parquet), an array (.npy, .npz, .mat, .h5, .hdf5, .zarr), an image, volumes (.nii, .nii.gz), a
        surface with numbers at its vertices (.gii, .vtk, .ply), or a folder of images, volumes or surfaces, which make one row each.
    array : str, optional
        Which array of a .npz, .mat, HDF5 ("group/data") or Zarr holds the rows; which field of a surface.
    id_column : str or int, optional
        The column (name or number) or array that holds the rows' names. Without it, a first column that is text, or that has the
        heading "id" or none, is taken for it if all its entries differ.
    columns : sequence of str or int, optional
        The columns of a table that are data; other columns are among ``others``. All that are numbers, unless given.
    shape : (height, width) or (height, width, 3), optional
        Rows are images of this shape.
    mesh : str or Path, optional
        A surface (.gii, .vtk, .ply, .obj, .npz) with a vertex for each column.
    mask : str or Path, optional
        A volume that is not zero in the voxels to be read. Without it, those that differ between rows are.
    patch_size : int, optional
        Cut images into squares of so many pixels, which are the rows.
    stride : int, optional
        Pixels from one patch to the next; ``patch_size``, unless given.
    colour : bool
        Read red, green and blue; else grey.
    size : (height, width), optional
        Bring images to this size first.
    centre_patches : bool
        Subtract its mean from each patch.

    Returns
    -------
    Data
        ``X`` (n, d), where possible a memory map; ``others``, one value a row, by name; ``ids``; and the ``layout`` of a row.

    Raises
    ------
    ValueError
        If there is no such file, or it is damaged, or holds anything but numbers. Missing entries are NaN; infinite ones are refused.
    ImportError
        If the library for the format is not installed.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from noisyica.data import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/rows.csv", "w") as file:
    ...         _ = file.write("name,a,b,sex\\ns1,1,2,f\\ns2,,4,m\\n")
    ...     data = read(f"{folder}/rows.csv")
    >>> data.X
    array([[ 1.,  2.],
           [nan,  4.]])
    >>> print(data.ids, data.layout.names, data.others["sex"])
    ['s1' 's2'] ['a' 'b'] ['f' 'm']
    """
    place = Path(path)
    given: dict[str, Any] = {
        "array": array,
        "id_column": id_column,
        "columns": columns,
        "shape": shape,
        "mesh": mesh,
        "mask": mask,
    }
    given |= {
        "patch_size": patch_size,
        "stride": stride,
        "colour": colour or None,
        "size": size,
        "centre_patches": centre_patches or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    _check_options(given)
    with parsing(place):
        kind = _kind(place)
        _check_fitting(place, kind, given)
        after = {name: given.pop(name) for name in ("shape", "mesh") if name in given}
        return _laid_out(place, kind.read(place, **given), **after)


def _kind(path: Path) -> Kind:
    if os.path.isdir(path):
        return _folder_kind(path)
    if not os.path.exists(path):
        raise BadFile(f"There is no file {path}.")
    if not os.path.isfile(path):
        raise BadFile(f"{path} is neither a file nor a folder.")
    for kind in KINDS:
        if path.name.lower().endswith(kind.suffixes):
            if not path.stat().st_size:
                raise BadFile(f"{path} is empty.")
            return kind
    raise BadFile(
        f"{path}: files of this kind are not known. Give {', '.join(suffix for kind in KINDS for suffix in kind.suffixes)}."
    )


def _folder_kind(path: Path) -> Kind:
    zarr = next(kind for kind in KINDS if kind.suffixes == (".zarr",))
    if path.suffix.lower() == ".zarr" or any(
        (path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")
    ):
        return zarr
    for kind in KINDS:
        if path.name.lower().endswith(kind.suffixes):
            raise BadFile(f"{path} is a folder, not a file.")
    found = [kind for kind in KINDS if kind.in_folder and members(path, kind.suffixes)]
    if not found:
        raise BadFile(
            f"There are no images, volumes or surfaces in the folder {path} (folders in it are not looked at)."
        )
    if len(found) > 1:
        raise BadFile(
            f"The folder {path} has {' and '.join(kind.name for kind in found)}: put them into folders of their own."
        )
    return found[0]


def _check_options(given: dict[str, Any]) -> None:
    """Errors in the call itself, whatever the file."""
    for name in {"patch_size", "stride"} & given.keys():
        given[name] = _positive(name, given[name])
    for name, lengths in (("size", (2,)), ("shape", (2, 3))):
        if name in given:
            value = tuple(_positive(name, part) for part in np.atleast_1d(given[name]))
            if len(value) not in lengths or (len(value) == 3 and value[2] != 3):
                raise ValueError(
                    f"{name} is (height, width){' or (height, width, 3)' if name == 'shape' else ''}, not {given[name]}."
                )
            given[name] = value
    for name in {"stride", "centre_patches"} & given.keys():
        if "patch_size" not in given:
            raise ValueError(f"{name} is for patches: give a patch_size, too.")
    if {"shape", "mesh"} <= given.keys():
        raise ValueError("Rows are either images (shape) or on a mesh, not both.")
    if isinstance(given.get("columns"), str):
        raise TypeError(f"columns is a list of names, not {given['columns']!r}.")


def _positive(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be whole numbers, not {value!r}.") from None
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}.")
    return number


def _check_fitting(path: Path, kind: Kind, given: dict[str, Any]) -> None:
    for name in given:
        if name not in kind.options:
            fitting = [other.name for other in KINDS if name in other.options]
            raise BadFile(f"{name} is for {', '.join(fitting)}: {path} is not of those.")


def _laid_out(
    path: Path, data: Data, shape: tuple[int, ...] | None = None, mesh: str | Path | None = None
) -> Data:
    """The layout that was asked for, instead of the file's own."""
    d = data.X.shape[1]
    if shape is not None:
        layout = Images(np.array(shape))
        if layout.size != d:
            raise BadFile(
                f"{path} has {d} columns: they are not images of {' x '.join(map(str, shape))}."
            )
        return data._replace(layout=layout)
    return data if mesh is None else data._replace(layout=meshes.read_mesh(Path(mesh), d))
