"""Writing components, maps and coefficients.

The formats are among those that :func:`noisyica.data.read` reads.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from noisyica.data.files import members, need
from noisyica.data.layout import Images, Layout, Lines, Mesh, Volume
from noisyica.data.meshes import SUFFIXES
from noisyica.data.storage import whole
from noisyica.data.surfaces import write_ply
from noisyica.data.vtk import write_vtk


def component_names(p: int) -> list[str]:
    """Return the names of p components in files and tables: component0, component1, ..."""
    return [f"component{j}" for j in range(p)]


def write(
    values: np.ndarray,
    layout: Layout,
    stem: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    like: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Write maps, such as ``components_``, in the format that belongs to their layout.

    ========  ====================================================================================
    Lines     ``stem.csv``, with a line for each map (``stem.parquet`` if ``like`` is Parquet)
    Images    ``stem.npy`` with the exact values, (k, height, width); and for looking at them, a
              ``stem-NAME.png`` for each map, in which mid-grey (128) is 0, and black and white are
              minus and plus the largest absolute value of that map
    Volume    ``stem.nii.gz`` with four axes, 0 outside the mask; and ``stem-mask.nii.gz``
    Mesh      ``stem.surf.gii``, and ``stem.shape.gii`` with an array for each map, in single
              precision, as GIFTI has no other; or one ``stem.vtk`` or ``stem.ply`` with fields, if
              ``like`` is a file of that kind, or if nibabel is not installed
    ========  ====================================================================================

    Parameters
    ----------
    values : (k, d) ndarray
        The maps, one per row.
    layout : Layout
        What the d numbers of a map are: the ``layout`` of the data that were read.
    stem : str or Path
        What the files' names begin with. If it is a folder, they begin with "maps" in it.
    names : sequence of str, optional
        The names of the maps; component0, component1, ... by default.
    like : str or Path, optional
        The file that the data came from: its ending chooses between formats.

    Returns
    -------
    list of Path
        The files that were written, each as a whole or not at all.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from noisyica.data import Images, read, write
    >>> maps = np.random.default_rng(0).normal(size=(2, 12))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write(maps, Images(np.array([3, 4])), f"{folder}/components")
    ...     print([file.name for file in files])
    ...     print(np.array_equal(read(files[0]).X, maps))
    ['components.npy', 'components-component0.png', 'components-component1.png']
    True
    """
    values = np.atleast_2d(np.asarray(values))
    if values.ndim != 2 or values.shape[1] != layout.size:
        raise ValueError(
            f"The maps have shape {values.shape}, but the layout is of {layout.size} numbers."
        )
    if values.dtype.kind not in "fiub":
        raise TypeError(f"Maps are numbers, not {values.dtype}.")
    if names is None:
        titles = component_names(len(values))
    else:
        titles = [str(name) for name in names]
    if len(titles) != len(values) or len(set(titles)) != len(titles) or "" in titles:
        raise ValueError(
            f"There are {len(values)} maps: give as many different names, not {names}."
        )
    start = Path(stem) / "maps" if Path(stem).is_dir() else Path(stem)
    start.parent.mkdir(parents=True, exist_ok=True)
    ending = "" if like is None else _ending(Path(like))
    if isinstance(layout, Lines):
        target = _with(start, ".parquet" if ending == ".parquet" else ".csv")
        return [write_table(target, values, titles, layout.names)]
    if isinstance(layout, Images):
        return _write_images(values, layout, start, titles)
    if isinstance(layout, Volume):
        return write_volumes(values, layout, start)
    return _write_mesh(dict(zip(titles, values, strict=True)), layout, start, ending)


def write_table(
    path: str | os.PathLike[str],
    values: np.ndarray,
    ids: Sequence[Any] | np.ndarray,
    names: Sequence[Any] | np.ndarray,
) -> Path:
    """Write a table, such as coefficients, with the ids of the rows in its first column.

    Parameters
    ----------
    path : str or Path
        A .csv or .parquet file, which is written as a whole or not at all.
    values : (n, k) ndarray
        The numbers, which :func:`read` gives back exactly.
    ids : sequence of length n
        The names of the rows, in the column "id" ("id_0" if there is a column of that name).
    names : sequence of length k
        The names of the other columns.

    Examples
    --------
    >>> import tempfile
    >>> from noisyica.data import read, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_table(f"{folder}/beta.csv", [[0.1, 2.0]], ["s1"], ["first", "second"])
    ...     print(path.read_text())
    id,first,second
    s1,0.1,2.0
    <BLANKLINE>
    """
    target = Path(path)
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "fiub":
        raise TypeError(f"The values of a table are numbers, not {numbers.dtype}.")
    numbers = numbers.astype(np.uint8) if numbers.dtype.kind == "b" else numbers
    if numbers.shape != (len(ids), len(names)):
        raise ValueError(
            f"The table has shape {numbers.shape}, but there are {len(ids)} ids "
            f"and {len(names)} names of columns."
        )
    columns = [str(name) for name in names]
    if len(set(columns)) != len(columns):
        raise ValueError("The columns' names must differ from each other.")
    id_names = ("id", *(f"id_{i}" for i in range(len(columns) + 1)))
    columns.insert(0, next(name for name in id_names if name not in columns))
    rows = [str(name) for name in ids]
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix.lower() == ".parquet":
        pyarrow, parquet = need("pyarrow", "parquet"), need("pyarrow.parquet", "parquet")
        table = pyarrow.table(
            [pyarrow.array(rows), *(pyarrow.array(column) for column in numbers.T)], columns
        )
        with whole(target) as file:
            parquet.write_table(table, file)
    elif target.suffix.lower() == ".csv":
        with whole(target) as file:
            _write_csv(file, columns, rows, numbers)
    else:
        raise ValueError(f"{target}: tables are written as .csv or .parquet.")
    return target


def _write_csv(file: IO[bytes], columns: list[str], ids: list[str], values: np.ndarray) -> None:
    """Write a table as text with commas, and numbers with all their digits."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([name, *row.tolist()] for name, row in zip(ids, values, strict=True))
    text.flush()
    text.detach()


def _ending(like: Path) -> str:
    """Return the ending of a file's name, or of that of the first surface in a folder."""
    surfaces = members(like, SUFFIXES) if like.is_dir() else []
    return (surfaces[0] if surfaces else like).suffix.lower()


def _with(stem: Path, ending: str) -> Path:
    """Return the stem with an ending; dots in the stem, unlike in ``with_suffix``, are kept."""
    return stem.with_name(stem.name + ending)


def _write_images(values: np.ndarray, layout: Images, stem: Path, names: list[str]) -> list[Path]:
    """Write the exact values as one .npy file, and each map as a .png file to look at."""
    pillow = need("PIL.Image", "images")
    maps = values.reshape(len(values), *layout.shape)
    files = [
        _with(stem, ".npy"),
        *(_with(stem, "-" + re.sub(r"[^\w.-]", "_", name) + ".png") for name in names),
    ]
    if len(set(files)) != len(files):
        raise ValueError(f"The maps' names do not make different names of files: {names}.")
    with whole(files[0]) as file:
        np.save(file, maps)
    for target, image in zip(files[1:], maps, strict=True):
        image = image.astype(float)
        scale = np.nanmax(np.abs(image), initial=0.0) or 1.0
        grey = np.rint(127.5 + 127.5 * np.nan_to_num(image / scale)).astype(np.uint8)
        with whole(target) as file:
            pillow.fromarray(grey).save(file, "png")
    return files


def write_volumes(values: np.ndarray, layout: Volume, stem: Path) -> list[Path]:
    """Write the maps and their mask as NIfTI files."""
    nibabel = need("nibabel", "neuro")
    maps = np.zeros(
        (*layout.mask.shape, len(values)), values.dtype if values.dtype.kind == "f" else np.float64
    )
    maps[layout.mask] = values.T
    files = [_with(stem, ".nii.gz"), _with(stem, "-mask.nii.gz")]
    for target, volume in zip(files, (maps, layout.mask.astype(np.uint8)), strict=True):
        with whole(target) as file:
            image = nibabel.Nifti1Image(volume, layout.affine)
            image.header.set_xyzt_units("mm")
            file.write(gzip.compress(image.to_bytes(), 6, mtime=0))
    return files


def _write_mesh(fields: dict[str, np.ndarray], layout: Mesh, stem: Path, ending: str) -> list[Path]:
    """Write the maps and their mesh as .vtk or .ply if the ending is that, or else as GIFTI."""
    if ending not in (".vtk", ".ply") and importlib.util.find_spec("nibabel") is not None:
        return _write_gifti(fields, layout, stem)
    target = _with(stem, ".ply" if ending == ".ply" else ".vtk")
    with whole(target) as file:
        (write_ply if ending == ".ply" else write_vtk)(file, layout.vertices, layout.faces, fields)
    return [target]


def _write_gifti(fields: dict[str, np.ndarray], layout: Mesh, stem: Path) -> list[Path]:
    """Write the mesh as one GIFTI file, and the maps as another."""
    gifti = need("nibabel.gifti", "neuro")

    def image(*parts: tuple[np.ndarray, str, str, str]) -> Any:
        """Make a GIFTI image of arrays, each with its intent, its type, and its name or none."""
        arrays = [
            gifti.GiftiDataArray(
                data.astype(dtype),
                intent=f"NIFTI_INTENT_{intent}",
                datatype=f"NIFTI_TYPE_{dtype.upper()}",
                meta=gifti.GiftiMetaData({"Name": name}) if name else None,
            )
            for data, intent, dtype, name in parts
        ]
        return gifti.GiftiImage(darrays=arrays)

    surface = image(
        (layout.vertices, "POINTSET", "float32", ""), (layout.faces, "TRIANGLE", "int32", "")
    )
    shape = image(*((values, "SHAPE", "float32", name) for name, values in fields.items()))
    files = [_with(stem, ".surf.gii"), _with(stem, ".shape.gii")]
    for target, content in zip(files, (surface, shape), strict=True):
        with whole(target) as file:
            file.write(content.to_bytes())
    return files
