"""The layout of the rows: as data for the page, and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.data import Images, Layout, Lines, Mesh, Volume
from noisyica.plot.layouts import upright, voxel_sizes
from noisyica.report.pack import pack, pack_exactly


def describe(layout: Layout) -> dict[str, Any]:
    """The layout as the page's script reads it."""
    if isinstance(layout, Lines):
        kind = "lines" if layout.signal else "table"
        return {"kind": kind, "names": [str(name) for name in layout.names]}
    if isinstance(layout, Images):
        return {"kind": "images", "shape": [int(side) for side in layout.shape]}
    if isinstance(layout, Volume):
        mask = layout.mask.astype(bool)
        affine, sizes = np.asarray(layout.affine, float).tolist(), voxel_sizes(layout).tolist()
        return {
            "kind": "volume",
            "shape": list(mask.shape),
            "mask": pack_exactly(np.packbits(mask), "uint8"),
            "sizes": sizes,
            "affine": affine,
        }
    points = upright(layout.vertices)
    points = points / max(float(np.linalg.norm(points, axis=1).max()), 1e-300)
    return {"kind": "mesh", "vertices": pack(points), "faces": pack_exactly(layout.faces, "uint32")}


def size_in_bytes(described: dict[str, Any]) -> int:
    """The number of bytes of the arrays and names in what :func:`describe` returned."""
    packed = [part for part in described.values() if isinstance(part, dict)]
    arrays = sum(3 * len(part["data"]) // 4 for part in packed)
    return arrays + sum(len(name) + 3 for name in described.get("names", ()))


def in_words(layout: Layout) -> str:
    """A few words that say what a row is."""
    if isinstance(layout, Images):
        return f"images, {' × '.join(str(side) for side in layout.shape)}"
    if isinstance(layout, Volume):
        sides = " × ".join(str(side) for side in layout.mask.shape)
        return f"volumes, {layout.size:,} of {sides} voxels"
    if isinstance(layout, Mesh):
        return f"meshes, {layout.size:,} vertices and {len(layout.faces):,} triangles"
    return f"{'lines' if layout.signal else 'a table'} of {layout.size:,} columns"
