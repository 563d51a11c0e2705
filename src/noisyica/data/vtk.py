"""Surfaces in VTK's legacy format (.vtk), text or binary, up to version 5.1.

A surface is a POLYDATA, or an UNSTRUCTURED_GRID of triangles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from noisyica.data.surfaces import Surface

_TYPES = {
    "char": "i1", "short": "i2", "int": "i4", "long": "i8",
    "unsigned_char": "u1", "unsigned_short": "u2", "unsigned_int": "u4", "unsigned_long": "u8",
    "float": "f4", "double": "f8",
    "vtktypeint64": "i8", "vtkidtype": "i4",
}  # fmt: skip
"""VTK's types of numbers, and what NumPy calls them."""
_COMPONENTS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9}
"""The number of components per point of attributes that are skipped."""


def read_vtk(path: Path) -> Surface:
    """Read the points, the triangles, and the numbers at points of a file."""
    file = _File(path.read_bytes())
    file.read()
    if file.points is None:
        raise ValueError("it has no POINTS")
    return Surface(file.points, file.faces, file.fields)


class _File:
    """The content of a file, how far it has been read, and what has been read so far."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.points: np.ndarray | None = None
        self.faces: np.ndarray | None = None
        self.fields: dict[str, np.ndarray] = {}
        self.count = 0  # of the points or cells whose data are being read
        self.of_points = False  # whether these are data of points, not of cells
        if not self.line()[0].startswith("#") or b"vtk DataFile" not in data[:64]:
            raise ValueError("it has no VTK header")
        self.at = data.index(b"\n", self.at) + 1  # a title, which may be empty
        self.text = self.line() == ["ASCII"]

    def line(self) -> list[str]:
        """Return the words of the next line that is not empty, or none at the end of the file."""
        while self.at < len(self.data):
            end = self.data.find(b"\n", self.at)
            end = len(self.data) if end < 0 else end
            words = self.data[self.at : end].decode("latin-1").split()
            self.at = end + 1
            if words:
                return words
        return []

    def numbers(self, count: int, kind: str) -> np.ndarray:
        """Return the next numbers of the given type, not more of them than the file has bytes."""
        dtype = np.dtype(_TYPES[kind.lower()])
        if count < 0 or count > len(self.data):
            raise ValueError(f"it claims {count} numbers")
        if not self.text:
            values = np.frombuffer(self.data, dtype.newbyteorder(">"), count, self.at)
            self.at += values.nbytes
            return values.astype(dtype)
        words: list[str] = []
        while len(words) < count:
            line = self.line()
            if not line:
                raise ValueError("it is cut short")
            words += line
        return np.array(words[:count], float if dtype.kind == "f" else np.int64).astype(dtype)

    def read(self) -> None:
        """Read all sections of the file."""
        kind = self.line()
        if kind[:1] != ["DATASET"] or kind[1] not in ("POLYDATA", "UNSTRUCTURED_GRID"):
            raise ValueError(
                "it is no surface: POLYDATA, or an UNSTRUCTURED_GRID of triangles, is needed"
            )
        while words := self.line():
            self.section(words)

    def section(self, words: list[str]) -> None:
        """Read the section that begins with a line of these words."""
        key = words[0].upper()
        if key == "POINTS":
            self.points = self.numbers(3 * int(words[1]), words[2]).reshape(-1, 3)
        elif key in ("POLYGONS", "CELLS"):
            self.faces = self.triangles(int(words[1]), int(words[2]))
        elif key in ("VERTICES", "LINES", "TRIANGLE_STRIPS"):
            raise ValueError(f"it has {key}: only triangles are read")
        elif key == "CELL_TYPES":
            if (self.numbers(int(words[1]), "int") != 5).any():
                raise ValueError("its cells are not all triangles")
        elif key in ("POINT_DATA", "CELL_DATA"):
            self.count, self.of_points = int(words[1]), key == "POINT_DATA"
        elif key == "METADATA":
            end = self.data.find(b"\n\n", self.at)
            self.at = len(self.data) if end < 0 else end
        elif key == "FIELD":
            self.field(int(words[2]))
        else:
            self.attribute(key, words)

    def triangles(self, count: int, size: int) -> np.ndarray:
        """Read the corners of triangles, (f, 3), from the two numbers that head their section."""
        start = self.at
        following = self.line()
        if following[:1] == ["OFFSETS"]:  # since version 5.1
            lengths = np.diff(self.numbers(count, following[1]))
            corners = self.numbers(size, self.line()[1])
        else:
            self.at = start
            cells = self.numbers(size, "int")
            fits = size == 4 * count
            lengths, corners = (
                (cells[::4], cells.reshape(-1, 4)[:, 1:]) if fits else (np.zeros(1), cells)
            )
        if (lengths != 3).any():
            raise ValueError("its cells are not all triangles")
        return corners.reshape(-1, 3)

    def field(self, count: int) -> None:
        """Read named arrays, each of which has its own number of components and of tuples."""
        for _ in range(count):
            words = self.line()
            while words[:1] == ["METADATA"]:
                self.section(words)
                words = self.line()
            name, components, tuples = words[0], int(words[1]), int(words[2])
            self.keep(name, self.numbers(components * tuples, words[3]), components)

    def attribute(self, key: str, words: list[str]) -> None:
        """Read an attribute of points or cells; of these, only scalars are kept."""
        if key == "SCALARS":
            components = int(words[3]) if len(words) > 3 else 1
            start = self.at
            if self.line()[:1] != ["LOOKUP_TABLE"]:
                self.at = start
            self.keep(words[1], self.numbers(components * self.count, words[2]), components)
        elif key in _COMPONENTS:
            self.numbers(_COMPONENTS[key] * self.count, words[2])
        elif key == "TEXTURE_COORDINATES":
            self.numbers(int(words[2]) * self.count, words[3])
        elif key == "COLOR_SCALARS":
            self.numbers(int(words[2]) * self.count, "float" if self.text else "unsigned_char")
        elif key == "LOOKUP_TABLE":
            self.numbers(4 * int(words[2]), "float" if self.text else "unsigned_char")
        else:
            raise ValueError(f"the section {key[:30]} is not known")

    def keep(self, name: str, values: np.ndarray, components: int) -> None:
        """Keep an array as a field if it has one number for each point."""
        if self.of_points and components == 1:
            if len(values) != self.count:
                raise ValueError(f"{name} has {len(values)} numbers for {self.count} points")
            self.fields[unquote(name)] = values


def write_vtk(
    file: Any, vertices: np.ndarray, faces: np.ndarray, fields: dict[str, np.ndarray]
) -> None:
    """Write a binary POLYDATA of version 4.2 with the fields at its points, in double precision."""
    n, f = len(vertices), len(faces)
    cells = np.concatenate([np.full((f, 1), 3), faces], axis=1)
    file.write(b"# vtk DataFile Version 4.2\nnoisyica\nBINARY\nDATASET POLYDATA\n")
    file.write(f"POINTS {n} double\n".encode() + vertices.astype(">f8").tobytes())
    file.write(f"\nPOLYGONS {f} {4 * f}\n".encode() + cells.astype(">i4").tobytes())
    file.write(f"\nPOINT_DATA {n}\nFIELD FieldData {len(fields)}\n".encode())
    for name, values in fields.items():
        file.write(
            f"{quote(name)} 1 {n} double\n".encode() + values.astype(">f8").tobytes() + b"\n"
        )
