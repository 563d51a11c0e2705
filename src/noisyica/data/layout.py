"""What the d numbers of a row are: columns, an image, a volume in a mask, or vertices of a mesh.

A layout knows its size. :mod:`noisyica.plot` and :mod:`noisyica.report` draw rows in their layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def _check(fits: object, message: str) -> None:
    """Raise a ValueError with the message unless the condition holds."""
    if not fits:
        raise ValueError(message)


def numbered_columns(d: int) -> list[str]:
    """Return the names that d columns without names get: column0, column1, ..."""
    return [f"column{j}" for j in range(d)]


@dataclass(frozen=True, eq=False)
class Lines:
    """The numbers stand beside each other: columns of a table, or samples of a signal.

    They are drawn as a line if their order means something, and otherwise as bars with names.
    Unless ``ordered`` says so, their names decide: numbers that increase, such as times, and the
    names of columns that have none (column0, column1, ...) are those of a signal.
    """

    names: np.ndarray  # (d,), the names of the columns
    ordered: bool | None = None

    def __post_init__(self) -> None:
        _check(
            np.ndim(self.names) == 1,
            f"The names of columns must have one axis, not shape {np.shape(self.names)}.",
        )

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def signal(self) -> bool:
        """Whether the order of the columns means something."""
        if self.ordered is not None:
            return self.ordered
        names = [str(name) for name in self.names]
        if names == numbered_columns(len(names)):
            return True
        try:
            places = np.array(names, float)
        except ValueError:
            return False
        return bool((np.diff(places) > 0).all())


@dataclass(frozen=True, eq=False)
class Images:
    """The numbers are the pixels of an image, in C order."""

    shape: np.ndarray  # (height, width), or (height, width, 3) in colour

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
    """The numbers are the voxels inside a mask, in the order of ``volume[mask]``."""

    mask: np.ndarray  # of three axes, bool
    affine: np.ndarray  # (4, 4), from the indices of a voxel to its place in millimetres

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
    """There is a number at each vertex of a triangulated surface."""

    vertices: np.ndarray  # (d, 3), coordinates
    faces: np.ndarray  # (f, 3), the indices of the three vertices of each triangle

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
