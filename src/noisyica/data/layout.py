"""What the d numbers of a row are: a line of values, an image, a volume inside a mask, or the vertices of a mesh.

A layout knows its size and how to go to plain arrays and back; :mod:`noisyica.plot` and :mod:`noisyica.report` draw it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np


def _check(fits: object, message: str) -> None:
    if not fits:
        raise ValueError(message)


@dataclass(frozen=True, eq=False)
class Lines:
    """Values beside each other: the columns of a table, or samples of a signal."""

    names: np.ndarray  # of the columns, (d,)

    def __post_init__(self) -> None:
        _check(
            np.ndim(self.names) == 1,
            f"The names of columns must have one axis, not shape {np.shape(self.names)}.",
        )

    @property
    def size(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Images:
    """An image: (height, width), or (height, width, 3) in colour, in C order."""

    shape: np.ndarray

    def __post_init__(self) -> None:
        shape = np.asarray(self.shape)
        fits = (
            shape.dtype.kind in "iu"
            and shape.shape in ((2,), (3,))
            and bool((shape > 0).all())
            and (len(shape) == 2 or shape[2] == 3)
        )
        _check(
            fits,
            f"The shape of an image is (height, width) or (height, width, 3), not {self.shape}.",
        )

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True, eq=False)
class Volume:
    """The voxels inside a mask, in the order of ``volume[mask]``."""

    mask: np.ndarray  # (i, j, k), bool
    affine: np.ndarray  # (4, 4): from voxels to millimetres

    def __post_init__(self) -> None:
        mask, affine = np.asarray(self.mask), np.asarray(self.affine)
        _check(
            mask.ndim == 3 and mask.dtype == bool,
            f"A mask has three axes and holds bool, not {mask.ndim} and {mask.dtype}.",
        )
        _check(mask.any(), "The mask is empty.")
        _check(
            affine.shape == (4, 4) and bool(np.isfinite(affine).all()),
            "An affine is a finite matrix of 4 x 4.",
        )

    @property
    def size(self) -> int:
        return int(self.mask.sum())


@dataclass(frozen=True, eq=False)
class Mesh:
    """A number at each vertex of a triangulated surface."""

    vertices: np.ndarray  # (d, 3)
    faces: np.ndarray  # (f, 3), indices of vertices

    def __post_init__(self) -> None:
        vertices, faces = np.asarray(self.vertices), np.asarray(self.faces)
        _check(
            vertices.ndim == 2 and vertices.shape[1] == 3,
            f"Vertices have three coordinates each, not shape {vertices.shape}.",
        )
        _check(bool(np.isfinite(vertices).all()), "A vertex is not finite.")
        _check(
            faces.ndim == 2 and faces.shape[1] == 3,
            f"Faces have three corners each, not shape {faces.shape}.",
        )
        _check(faces.dtype.kind in "iu", f"Faces are indices of vertices, not {faces.dtype}.")
        inside = not faces.size or bool(faces.min() >= 0 and faces.max() < len(vertices))
        _check(inside, f"A face has a corner that is none of the {len(vertices)} vertices.")

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
