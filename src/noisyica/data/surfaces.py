"""Surfaces in PLY and OBJ files.

The readers are our own, so that what a damaged file claims to hold is compared with its size.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Surface(NamedTuple):
    """What a file says of a surface; either part of the mesh may be missing."""

    vertices: np.ndarray | None  # (d, 3), coordinates
    faces: np.ndarray | None  # (f, 3), indices of vertices
    fields: dict[str, np.ndarray]  # by name, a number at each vertex


_PLY_TYPES = {
    "char": "i1", "short": "i2", "int": "i4",
    "uchar": "u1", "ushort": "u2", "uint": "u4",
    "float": "f4", "double": "f8",
    "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
    "float32": "f4", "float64": "f8",
}  # fmt: skip
"""The types of numbers in a PLY file, and what NumPy calls them."""
_PLY_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": "="}
_Elements = dict[str, tuple[int, np.dtype[Any]]]
"""How many elements of each name a PLY file has, and what one of them consists of."""


def read_ply(path: Path) -> Surface:
    """Read a PLY file, text or binary, whose faces must be triangles."""
    head, end, body = path.read_bytes().partition(b"end_header")
    lines = [line.split() for line in head.decode("ascii", "replace").splitlines()]
    if not end or not lines or lines[0] != ["ply"]:
        raise ValueError("it has no PLY header")
    order = next(line[1] for line in lines if line[:1] == ["format"])
    elements = _ply_elements(lines, _PLY_ORDERS[order])
    body = body[body.index(b"\n") + 1 :]
    tables = _ply_text(body, elements) if order == "ascii" else _ply_binary(body, elements)
    vertex, face = tables["vertex"], tables.get("face")
    corners = None
    if face is not None and len(face):
        name = next(name for name in face.dtype.names or () if face.dtype[name].shape)
        if (face[f"number of {name}"] != 3).any():
            raise ValueError("its faces are not all triangles")
        corners = face[name].astype(np.int64)
    fields = {
        name: vertex[name].astype(vertex[name].dtype.newbyteorder("="))
        for name in vertex.dtype.names or ()
        if name not in ("x", "y", "z")
    }
    return Surface(np.stack([vertex[axis] for axis in "xyz"], axis=1), corners, fields)


def _ply_elements(lines: list[list[str]], order: str) -> _Elements:
    """Return the elements that a header describes; a list must be the corners of a triangle."""
    counts: dict[str, int] = {}
    parts: dict[str, list[Any]] = {}
    for line in lines:
        if line[:1] == ["element"]:
            counts[line[1]], parts[line[1]] = int(line[2]), []
            last = parts[line[1]]
        elif line[:2] == ["property", "list"]:
            last += [
                (f"number of {line[4]}", order + _PLY_TYPES[line[2]]),
                (line[4], order + _PLY_TYPES[line[3]], 3),
            ]
        elif line[:1] == ["property"]:
            last.append((line[2], order + _PLY_TYPES[line[1]]))
    return {name: (counts[name], np.dtype(parts[name])) for name in counts}


def _ply_binary(body: bytes, elements: _Elements) -> dict[str, np.ndarray]:
    """Read the elements of a binary file, up to the faces."""
    tables, offset = {}, 0
    for name, (count, dtype) in elements.items():
        tables[name] = np.frombuffer(body, dtype, count, offset)
        offset += tables[name].nbytes
        if name == "face":
            break
    return tables


def _ply_text(body: bytes, elements: _Elements) -> dict[str, np.ndarray]:
    """Read the elements of a text file, up to the faces."""
    words, start, tables = body.split(), 0, {}
    for name, (count, dtype) in elements.items():
        columns = [(part, k) for part in dtype.names or () for k in np.ndindex(dtype[part].shape)]
        stop = start + count * len(columns)
        if stop > len(words):
            raise ValueError("it is cut short")
        numbers = np.array(words[start:stop], float).reshape(count, len(columns))
        tables[name] = np.empty(count, dtype)
        for (part, k), column in zip(columns, numbers.T, strict=True):
            tables[name][part][(slice(None), *k)] = column
        start = stop
        if name == "face":
            break
    return tables


def read_obj(path: Path) -> Surface:
    """Read a Wavefront OBJ file of triangles; the format has no numbers at vertices."""
    vertices: list[list[float]] = []
    faces: list[list[int]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, *words = line.split() or [""]
        if key == "v":
            vertices.append([float(word) for word in words[:3]])
        elif key == "f":
            corners = [int(word.partition("/")[0]) for word in words]
            # Vertices count from 1; negative numbers count backwards from the latest vertex.
            faces.append([k - 1 if k > 0 else len(vertices) + k for k in corners])
    if any(len(vertex) != 3 for vertex in vertices) or any(len(face) != 3 for face in faces):
        raise ValueError("its vertices must have three coordinates, and its faces three corners")
    if not vertices or not faces:
        raise ValueError("it has no vertices, or no faces")
    return Surface(np.array(vertices), np.array(faces), {})


def write_ply(
    file: Any, vertices: np.ndarray, faces: np.ndarray, fields: dict[str, np.ndarray]
) -> None:
    """Write a binary PLY file with the fields at its vertices, in double precision.

    Spaces in the names of fields become underscores, as PLY does not allow them.
    """
    names = ["x", "y", "z", *(name.replace(" ", "_") for name in fields)]
    if len(set(names)) != len(names):
        raise ValueError(
            f"The maps' names do not make different names of a PLY: {', '.join(names[3:])}."
        )
    header = [
        "ply",
        "format binary_little_endian 1.0",
        f"element vertex {len(vertices)}",
        *(f"property double {name}" for name in names),
        f"element face {len(faces)}",
        "property list uchar int vertex_indices",
        "end_header\n",
    ]
    file.write("\n".join(header).encode())
    file.write(np.column_stack([vertices, *fields.values()]).astype("<f8").tobytes())
    corners = np.empty(len(faces), [("number", "u1"), ("corners", "<i4", 3)])
    corners["number"], corners["corners"] = 3, faces
    file.write(corners.tobytes())
