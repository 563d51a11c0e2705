"""What the d numbers of a row are: a line of values, an image, a volume inside a mask, or the vertices of a mesh.

A layout knows its size and how to go to plain arrays and back; :mod:`noisyica.plot` and :mod:`noisyica.report` draw it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Lines:
    """Values beside each other: the columns of a table, or samples of a signal."""

    names: np.ndarray  # of the columns, (d,)

    @property
    def size(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Images:
    """An image: (height, width), or (height, width, 3) in colour, in C order."""

    shape: np.ndarray

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True, eq=False)
class Volume:
    """The voxels inside a mask, in the order of ``volume[mask]``."""

    mask: np.ndarray  # (i, j, k), bool
    affine: np.ndarray  # (4, 4): from voxels to millimetres

    @property
    def size(self) -> int:
        return int(self.mask.sum())


@dataclass(frozen=True, eq=False)
class Mesh:
    """A number at each vertex of a triangulated surface."""

    vertices: np.ndarray  # (d, 3)
    faces: np.ndarray  # (f, 3), indices of vertices

    @property
    def size(self) -> int:
        return len(self.vertices)


Layout = Lines | Images | Volume | Mesh
KINDS: dict[str, Any] = {kind.__name__.lower(): kind for kind in (Lines, Images, Volume, Mesh)}


def to_arrays(layout: Layout) -> dict[str, np.ndarray]:
    """The layout as arrays that :func:`from_arrays` reads (to be stored with a model)."""
    parts = {f.name: np.asarray(getattr(layout, f.name)) for f in fields(layout)}
    return {"kind": np.array(type(layout).__name__.lower()), **parts}


def from_arrays(arrays: dict[str, np.ndarray]) -> Layout:
    """The layout that :func:`to_arrays` wrote."""
    parts = dict(arrays)
    return KINDS[str(parts.pop("kind"))](**parts)
