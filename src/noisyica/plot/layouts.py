"""Drawing the d numbers of a row in their layout: a line, an image, slices of a volume, or a mesh from two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from noisyica.data import Images, Layout, Lines, Mesh, Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIGNED = "RdBu_r"
FEW_COLUMNS = 16
"""As many columns of a table are named."""


class Scale(NamedTuple):
    """Colours (or the heights of lines) that several pictures share."""

    low: float
    high: float
    cmap: str

    @property
    def signed(self) -> bool:
        return self.cmap == SIGNED


def plain_scale(values: np.ndarray, layout: Layout) -> Scale:
    """For rows of data: from their smallest to their largest value."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return Scale(
        low, high if high > low else low + 1.0, "viridis" if isinstance(layout, Mesh) else "gray"
    )


def signed_scale(values: np.ndarray) -> Scale:
    """For what is added and taken away: zero in the middle."""
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return Scale(-limit, limit, SIGNED)


def find_layout(d: int, layout: Layout | None, image_shape: tuple[int, ...] | None) -> Layout:
    """The layout of d columns: as given, an image of that shape, or by default lines."""
    if layout is not None and image_shape is not None:
        raise ValueError("Give a layout or image_shape, not both.")
    if image_shape is not None:
        if (
            len(image_shape) not in (2, 3)
            or int(np.prod(image_shape)) != d
            or (len(image_shape) == 3 and image_shape[2] != 3)
        ):
            raise ValueError(
                f"image_shape {image_shape} does not hold the {d} columns of the data: give (height, width) with product {d}."
            )
        return Images(np.array(image_shape))
    if layout is None:
        return Lines(np.array([f"column{j}" for j in range(d)]))
    if layout.size != d:
        raise ValueError(
            f"The layout ({type(layout).__name__}) is of {layout.size} columns, but there are {d}: give that of these data."
        )
    return layout


def aspect(layout: Layout) -> float:
    """Width over height of a picture."""
    if isinstance(layout, Images):
        return float(layout.shape[1] / layout.shape[0])
    if isinstance(layout, Volume):
        height, width = mosaic(layout, np.zeros(layout.size)).shape[:2]
        return width / height
    if isinstance(layout, Mesh):
        width, height = np.ptp(upright(layout.vertices), 0)[:2]
        return float(2.1 * width / max(height, 1e-12))
    return 1.9


def draw(axes: Axes, values: np.ndarray, layout: Layout, scale: Scale, title: str = "") -> None:
    """Draw d numbers in their layout; missing ones (NaN) are left out."""
    axes.set_title(title, fontsize=8, pad=3)
    if isinstance(layout, Lines):
        _lines(axes, values, layout, scale)
        return
    axes.set_axis_off()
    if isinstance(layout, Mesh):
        _mesh(axes, values, layout, scale)
        return
    image = mosaic(layout, values) if isinstance(layout, Volume) else values.reshape(layout.shape)
    if image.ndim == 3:
        image = np.nan_to_num(np.clip((image - scale.low) / (scale.high - scale.low), 0, 1))
    axes.imshow(image, cmap=scale.cmap, vmin=scale.low, vmax=scale.high, interpolation="nearest")


def _lines(axes: Axes, values: np.ndarray, layout: Lines, scale: Scale) -> None:
    places, few = np.arange(len(values)), len(values) <= FEW_COLUMNS
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.plot(
        places,
        values,
        linewidth=1,
        marker="o" if few else None,
        markersize=3,
        color="C3" if scale.signed else "C0",
    )
    margin = 0.05 * (scale.high - scale.low)
    axes.set_ylim(scale.low - margin, scale.high + margin)
    axes.tick_params(labelsize=6, length=2)
    axes.locator_params(axis="y", nbins=4)
    axes.spines[["top", "right"]].set_visible(False)
    if few:
        axes.set_xticks(places, [str(name)[:12] for name in layout.names], rotation=90)


# ------------------------------------------------------------------------------------------------------------ volumes


def mosaic(layout: Volume, values: np.ndarray) -> np.ndarray:
    """Three orthogonal slices through the largest value, beside each other, in pixels of the same size; NaN outside the mask."""
    volume = np.full(layout.mask.shape, np.nan)
    volume[layout.mask.astype(bool)] = values
    where = peak(layout, values)
    sizes = voxel_sizes(layout)
    panels = []
    for axis in (2, 1, 0):
        across, up = (k for k in range(3) if k != axis)
        panel = np.take(volume, where[axis], axis)  # (across, up)
        wide, tall = (
            max(1, round(panel.shape[i] * sizes[k] / sizes.min()))
            for i, k in enumerate((across, up))
        )
        columns, rows = (
            np.arange(m) * s // m for m, s in ((wide, panel.shape[0]), (tall, panel.shape[1]))
        )
        panels.append(panel[columns][:, rows].T[::-1])
    height = max(len(panel) for panel in panels)
    padded = [
        np.pad(
            p,
            (((height - len(p)) // 2, (height - len(p) + 1) // 2), (0, 1)),
            constant_values=np.nan,
        )
        for p in panels
    ]
    return np.concatenate(padded, 1)


def peak(layout: Volume, values: np.ndarray) -> np.ndarray:
    """The voxel (3,) of the largest absolute value; where all are alike, that nearest to the middle of the mask."""
    inside = np.argwhere(layout.mask)
    size = np.nan_to_num(np.abs(values))
    if size.max() > size.min():
        return inside[size.argmax()]
    return inside[np.square(inside - inside.mean(0)).sum(1).argmin()]


def voxel_sizes(layout: Volume) -> np.ndarray:
    """Edges of a voxel, (3,)."""
    return np.maximum(np.linalg.norm(np.asarray(layout.affine, float)[:3, :3], axis=0), 1e-12)


# ------------------------------------------------------------------------------------------------------------- meshes


def upright(vertices: np.ndarray) -> np.ndarray:
    """Vertices about their middle, turned by quarters: the longest side goes across, the shortest points at the viewer."""
    centred = np.asarray(vertices, float) - 0.5 * (vertices.max(0) + vertices.min(0))
    longest, middle, shortest = np.argsort(-np.ptp(centred, 0), kind="stable")
    axes = np.eye(3)[[longest, middle, shortest]]
    axes[2] *= np.linalg.det(axes)  # a rotation, not a mirror image
    return centred @ axes.T


def _mesh(axes: Axes, values: np.ndarray, layout: Mesh, scale: Scale) -> None:
    """The front and the back, painted from the farthest triangle to the nearest."""
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    points = upright(layout.vertices)
    width, height = np.ptp(points, 0)[:2]
    colours = colormaps[scale.cmap].with_extremes(bad="0.6")(
        Normalize(scale.low, scale.high)(np.ma.masked_invalid(values))
    )
    for side in (0, 1):
        seen = points * (1 if side == 0 else np.array([-1, 1, -1]))
        corners = seen[layout.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        light = np.abs(normals @ np.array([0.3, 0.5, 0.81])) / np.maximum(
            np.linalg.norm(normals, axis=1), 1e-300
        )
        shade = colours[layout.faces].mean(1)
        shade[:, :3] *= (0.45 + 0.55 * light)[:, None]
        order = np.argsort(corners[:, :, 2].mean(1))
        flat = corners[order, :, :2] + [1.05 * width * side, 0]
        axes.add_collection(
            PolyCollection(
                list(flat), facecolors=shade[order], edgecolors=shade[order], linewidths=0.3
            )
        )
    axes.set_xlim(-0.52 * width, 1.57 * width)
    axes.set_ylim(-0.53 * height, 0.53 * height)
    axes.set_aspect("equal")
