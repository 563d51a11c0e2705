"""Reading a file or a folder of any known format."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica.data import arrays, images, meshes, parquet_tables, text_tables, volumes
from noisyica.data.files import BadFile, members, parsing
from noisyica.data.layout import Images
from noisyica.data.rows import Data


class Kind(NamedTuple):
    """A kind of files, and how it is read."""

    name: str  # what such files are called
    suffixes: tuple[str, ...]  # how their names end
    read: Callable[..., Data]
    options: tuple[str, ...]  # those options of `read` below that are for such files
    in_folder: bool = False  # whether a folder of such files can be read, too
    opens: bool = False  # whether ``read`` can leave rows ``unread`` in the file


_NAMED = ("array", "id_column", "shape", "mesh")
"""The options for files of named arrays."""
_TABLE = ("id_column", "columns", "shape", "mesh")
"""The options for tables."""
KINDS = (
    Kind("text tables", (".csv", ".tsv", ".txt"), text_tables.read_text, _TABLE),
    Kind("Parquet tables", (".parquet",), parquet_tables.read_parquet, _TABLE, opens=True),
    Kind(".npy files", (".npy",), arrays.read_npy, ("shape", "mesh"), opens=True),
    Kind(".npz files", (".npz",), arrays.read_npz, _NAMED),
    Kind("MATLAB files", (".mat",), arrays.read_mat, _NAMED),
    Kind("HDF5 files", (".h5", ".hdf5"), arrays.read_hdf5, _NAMED, opens=True),
    Kind("Zarr stores", (".zarr",), arrays.read_zarr, _NAMED, opens=True),
    Kind(
        "images",
        images.SUFFIXES,
        images.read_images,
        ("patch_size", "stride", "colour", "size", "centre_patches"),
        True,
    ),
    Kind("volumes", volumes.SUFFIXES, volumes.read_volumes, ("mask", "ica"), True),
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
    ica: str | None = None,
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
        A table (.csv, .tsv, .txt, .parquet), arrays (.npy, .npz, .mat, .h5, .hdf5, .zarr), an
        image, volumes (.nii, .nii.gz), or a surface with numbers at its vertices (.gii, .vtk,
        .ply). Or a folder of images, volumes or surfaces, each of which becomes one row.
    array : str, optional
        The array of a .npz, .mat, HDF5 ("group/data") or Zarr that holds the rows, or the field of
        a surface.
    id_column : str or int, optional
        The column (name or number) or array that holds the names of the rows. By default this is
        the first column of a table, if all its entries differ and it is text, or has the heading
        "id" or none.
    columns : sequence of str or int, optional
        The columns of a table that are data; by default, all that are numbers. The other columns
        are among ``others``.
    shape : (height, width) or (height, width, 3), optional
        The shape of the images that the rows are.
    mesh : str or Path, optional
        A surface (.gii, .vtk, .ply, .obj, .npz) with a vertex for each column.
    mask : str or Path, optional
        A volume that is not zero in the voxels to be read. By default, these are the voxels that
        differ between volumes.
    ica : {"spatial", "temporal"}, optional
        What the rows of one file with several volumes are. "spatial" (the default): its voxels,
        less their mean over time and in units of their noise (the steps from each volume to the
        next tell it); the columns are time points, the coefficients are maps, and ``places`` says
        where the rows are. "temporal": its volumes, which may be time points or subjects, as they
        are; the columns are voxels.
    patch_size : int, optional
        The side, in pixels, of the squares into which images are cut; each square is a row.
    stride : int, optional
        The number of pixels from one patch to the next; ``patch_size`` by default.
    colour : bool
        Whether to read red, green and blue, and not only grey.
    size : (height, width), optional
        The size to which images are brought first.
    centre_patches : bool
        Whether to subtract its mean from each patch.

    Returns
    -------
    Data
        ``X``, (n, d), which is a memory map where possible; ``others``, arrays by name with one
        value per row; ``ids``, the names of the rows; ``layout``, what the numbers of a row are;
        and ``places``, the volume whose voxels the rows are, or None. Missing entries are NaN.

    Raises
    ------
    ValueError
        If there is no such file, or it is damaged, or holds anything but numbers, or infinite ones.
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
    options: dict[str, Any] = {
        "array": array,
        "id_column": id_column,
        "columns": columns,
        "shape": shape,
        "mesh": mesh,
        "mask": mask,
        "ica": ica,
        "patch_size": patch_size,
        "stride": stride,
        "colour": colour or None,
        "size": size,
        "centre_patches": centre_patches or None,
    }
    return read_file(Path(path), options)


def read_file(path: Path, options: dict[str, Any], unread: bool = False) -> Data:
    """Read a file with these options, or only open it, if it is of a kind that can be opened."""
    given = {name: value for name, value in options.items() if value is not None}
    _check_options(given)
    with parsing(path):
        kind = kind_of(path)
        _check_fitting(path, kind, given)
        after = {name: given.pop(name) for name in ("shape", "mesh") if name in given}
        if unread and kind.opens:
            given["unread"] = True
        return _laid_out(path, kind.read(path, **given), **after)


def kind_of(path: Path) -> Kind:
    """Return the kind of a file by the ending of its name, or of a folder by its files."""
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
    known = ", ".join(suffix for kind in KINDS for suffix in kind.suffixes)
    raise BadFile(f"{path}: files of this kind are not known. Give {known}.")


def _folder_kind(path: Path) -> Kind:
    """Return the kind of a folder: a Zarr store, or that of the files in it."""
    zarr = next(kind for kind in KINDS if kind.suffixes == (".zarr",))
    if path.suffix.lower() == ".zarr" or any(
        (path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")
    ):
        return zarr
    for kind in KINDS:
        if path.name.lower().endswith(kind.suffixes):
            raise BadFile(f"{path} is a folder, not a file.")
    kinds = [kind for kind in KINDS if kind.in_folder and members(path, kind.suffixes)]
    if not kinds:
        raise BadFile(
            f"There are no images, volumes or surfaces in the folder {path} "
            "(folders in it are not looked at)."
        )
    if len(kinds) > 1:
        raise BadFile(
            f"The folder {path} has {' and '.join(kind.name for kind in kinds)}: "
            "put them into folders of their own."
        )
    return kinds[0]


def _check_options(given: dict[str, Any]) -> None:
    """Refuse options that are wrong whatever the file is, and convert sizes to whole numbers."""
    for name in {"patch_size", "stride"} & given.keys():
        given[name] = _positive(name, given[name])
    for name, lengths in (("size", (2,)), ("shape", (2, 3))):
        if name in given:
            value = tuple(_positive(name, part) for part in np.atleast_1d(given[name]))
            if len(value) not in lengths or (len(value) == 3 and value[2] != 3):
                or_colour = " or (height, width, 3)" if name == "shape" else ""
                raise ValueError(f"{name} is (height, width){or_colour}, not {given[name]}.")
            given[name] = value
    for name in {"stride", "centre_patches"} & given.keys():
        if "patch_size" not in given:
            raise ValueError(f"{name} is for patches: give a patch_size, too.")
    if {"shape", "mesh"} <= given.keys():
        raise ValueError("Rows are either images (shape) or on a mesh, not both.")
    if given.get("ica", "spatial") not in volumes.ICA:
        raise ValueError(f"ica is {' or '.join(volumes.ICA)}, not {given['ica']!r}.")
    if isinstance(given.get("columns"), str):
        raise TypeError(f"columns is a list of names, not {given['columns']!r}.")


def _positive(name: str, value: Any) -> int:
    """Return a positive whole number as an int, and refuse anything else."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be whole numbers, not {value!r}.") from None
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}.")
    return number


def _check_fitting(path: Path, kind: Kind, given: dict[str, Any]) -> None:
    """Refuse options that are not for files of this kind."""
    for name in given:
        if name not in kind.options:
            fitting = [other.name for other in KINDS if name in other.options]
            raise BadFile(f"{name} is for {', '.join(fitting)}: {path} is not of those.")


def _laid_out(
    path: Path, data: Data, shape: tuple[int, ...] | None = None, mesh: str | Path | None = None
) -> Data:
    """Replace the layout of the data by the one that was asked for, if any was."""
    d = data.X.shape[1]
    if shape is not None:
        layout = Images(np.array(shape))
        if layout.size != d:
            raise BadFile(
                f"{path} has {d} columns: they are not images of {' x '.join(map(str, shape))}."
            )
        return data._replace(layout=layout)
    return data if mesh is None else data._replace(layout=meshes.read_mesh(Path(mesh), d))
