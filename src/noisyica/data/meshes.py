"""Reading numbers at the vertices of surfaces.

They come from one file with several fields, or from a folder with one field per file.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from noisyica.data.arrays import find_mesh
from noisyica.data.files import BadFile, listed, members, need, parsing
from noisyica.data.layout import Layout, Lines, Mesh
from noisyica.data.rows import Data, make
from noisyica.data.stored import npz_arrays
from noisyica.data.surfaces import Surface, read_obj, read_ply
from noisyica.data.vtk import read_vtk

SUFFIXES = (".gii", ".vtk", ".ply", ".obj")


def read_meshes(path: Path, *, array: str | None = None) -> Data:
    """Read fields as rows of numbers at vertices, on the mesh of the files if they have one."""
    if path.is_dir():
        return _read_folder(path, array)
    surface = read_surface(path)
    fields = _fields(path, surface) if array is None else {array: _field(path, surface, array)}
    X = np.stack(list(fields.values()))
    mesh = _mesh(path, surface)
    return make(path, X, np.array(list(fields), dtype=str), layout=_layout(mesh, X.shape[1]))


def read_surface(path: Path) -> Surface:
    """Read a surface from a file of any of the formats."""
    reader = {".gii": _read_gifti, ".vtk": read_vtk, ".ply": read_ply, ".obj": read_obj}[
        path.suffix.lower()
    ]
    with parsing(path):
        surface: Surface = reader(path)
    return surface


def read_mesh(path: Path, d: int) -> Mesh:
    """Read the mesh in a file, which must have d vertices, as the data have d columns."""
    if not path.is_file():
        raise BadFile(f"There is no file {path} for the mesh.")
    if path.suffix.lower() == ".npz":
        with parsing(path):
            mesh = find_mesh(npz_arrays(path), d)
        if mesh is None:
            raise BadFile(
                f"{path} holds no mesh of {d} vertices: "
                f"it takes floats ({d}, 3) and integers (f, 3) below {d}."
            )
        return mesh
    if path.suffix.lower() not in SUFFIXES:
        raise BadFile(f"{path}: a mesh is read from {', '.join(SUFFIXES)} or .npz.")
    mesh = _mesh(path, read_surface(path))
    if mesh is None:
        raise BadFile(f"{path} has no surface in it: vertices and triangles are needed.")
    if mesh.size != d:
        raise BadFile(f"{path} has {mesh.size} vertices, but the data have {d} columns.")
    return mesh


class _Row(NamedTuple):
    """The field that a file of a folder holds."""

    file: Path
    values: np.ndarray


def _read_folder(path: Path, array: str | None) -> Data:
    """Read a row from each file that has a field; all must be on the same mesh."""
    rows: list[_Row] = []
    meshes: list[tuple[Path, Mesh]] = []
    for file in members(path, SUFFIXES):
        surface = read_surface(file)
        mesh = _mesh(file, surface)
        if mesh is not None and not any(
            np.array_equal(mesh.faces, other.faces) for _, other in meshes
        ):
            meshes.append((file, mesh))
        if surface.fields:
            rows.append(_Row(file, _field(file, surface, array)))
    if not rows:
        raise BadFile(f"{path}: the surfaces in this folder have no numbers at their vertices.")
    d = len(rows[0].values)
    for row in rows:
        if len(row.values) != d:
            raise BadFile(
                f"{row.file} has {len(row.values)} vertices, {rows[0].file.name} has {d}: "
                "they must be the same."
            )
    fitting = [(file, mesh) for file, mesh in meshes if mesh.size == d]
    if len(fitting) > 1:
        raise BadFile(
            f"{fitting[1][0]} has other faces than {fitting[0][0].name}: all rows need one mesh."
        )
    X = np.stack([row.values for row in rows])
    ids = np.array([row.file.name for row in rows])
    return make(path, X, ids, layout=_layout(fitting[0][1] if fitting else None, d))


def _fields(path: Path, surface: Surface) -> dict[str, np.ndarray]:
    """Return the fields of a surface, which must be of one length."""
    if not surface.fields:
        raise BadFile(f"{path} has no numbers at its vertices.")
    sizes = {len(values) for values in surface.fields.values()}
    if len(sizes) > 1:
        raise BadFile(
            f"{path} has arrays of different lengths ({listed(sorted(sizes))}): "
            "say which of them to read."
        )
    return surface.fields


def _field(path: Path, surface: Surface, array: str | None) -> np.ndarray:
    """Return the field of the given name, or the only one if no name is given."""
    if array is not None:
        if array not in surface.fields:
            raise BadFile(
                f"{path} has no array {array!r}: it has {listed(surface.fields) or 'none'}."
            )
        return surface.fields[array]
    if len(surface.fields) != 1:
        raise BadFile(
            f"{path} has the arrays {listed(surface.fields)}: "
            "say which of them holds the rows (--array)."
        )
    return next(iter(surface.fields.values()))


def _mesh(path: Path, surface: Surface) -> Mesh | None:
    """Return the mesh of a surface, or None if it lacks vertices or faces."""
    if surface.vertices is None or surface.faces is None:
        return None
    try:
        return Mesh(surface.vertices, surface.faces)
    except ValueError as error:
        raise BadFile(f"{path}: {error}") from error


def _layout(mesh: Mesh | None, d: int) -> Layout:
    """Return the mesh if it has d vertices, and otherwise d columns that are called vertices."""
    if mesh is not None and mesh.size == d:
        return mesh
    return Lines(np.array([f"vertex{j}" for j in range(d)]))


def _read_gifti(path: Path) -> Surface:
    """Read a GIFTI file; its arrays without a name are numbered."""
    nibabel = need("nibabel", "neuro")
    image = nibabel.load(path)
    points, triangles = (
        nibabel.nifti1.intent_codes[f"NIFTI_INTENT_{name}"] for name in ("POINTSET", "TRIANGLE")
    )
    geometry: dict[int, np.ndarray] = {}
    fields: dict[str, np.ndarray] = {}
    for i, item in enumerate(image.darrays):
        if item.data is None:
            raise BadFile(f"{path}: its array {i} is empty.")
        if item.intent in (points, triangles):
            geometry[item.intent] = item.data
        elif item.data.ndim == 1:
            name = item.meta.get("Name") or str(len(fields))
            fields[name if name not in fields else f"{name} {i}"] = item.data
    return Surface(geometry.get(points), geometry.get(triangles), fields)
