"""Drawing the d numbers of a row in their layout.

They are drawn as a line, as bars with names, as an image, as slices of a volume, or as a mesh from
two sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from noisyica.data import Images, Layout, Lines, Mesh, Volume
from noisyica.data.layout import numbered_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIGNED = "RdBu_r"
"""The colours for numbers about zero."""
FEW_COLUMNS = 16
"""The maximum number of columns whose names are written below a line."""
TOP_COLUMNS = 20
"""The maximum number of columns of a table that are drawn: those with the largest values."""
OFF = "0.84"
"""The grey of entries of components that are probably zero."""


class Scale(NamedTuple):
    """The range of numbers, and the colours for them, that pictures beside each other share."""

    low: float
    high: float
    cmap: str

    @property
    def signed(self) -> bool:
        """Whether zero is in the middle."""
        return self.cmap == SIGNED


def data_scale(values: np.ndarray, layout: Layout) -> Scale:
    """Return the scale for rows of data, from their smallest to their largest value."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    colours = "viridis" if isinstance(layout, Mesh) else "gray"
    return Scale(low, high if high > low else low + 1.0, colours)


def signed_scale(values: np.ndarray) -> Scale:
    """Return the scale for what is added and taken away, with zero in the middle."""
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return Scale(-limit, limit, SIGNED)


def find_layout(
    d: int, layout: Layout | None, image_shape: tuple[int, ...] | None, names: Any = None
) -> Layout:
    """Return the layout of d columns: the given one, an image of a given shape, or else lines.

    ``names`` are those of the columns, if they have any.
    """
    if layout is not None and image_shape is not None:
        raise ValueError("Give a layout or image_shape, not both.")
    if image_shape is not None:
        if (
            len(image_shape) not in (2, 3)
            or int(np.prod(image_shape)) != d
            or (len(image_shape) == 3 and image_shape[2] != 3)
        ):
            raise ValueError(
                f"image_shape {image_shape} does not hold the {d} columns of the data: "
                f"give (height, width) with product {d}."
            )
        return Images(np.array(image_shape))
    if layout is None:
        return Lines(np.array(numbered_columns(d) if names is None else names, str))
    if layout.size != d:
        raise ValueError(
            f"The layout ({type(layout).__name__}) is of {layout.size} columns, "
            f"but there are {d}: give that of these data."
        )
    return layout


def aspect(layout: Layout) -> float:
    """Return the width of a picture divided by its height."""
    if isinstance(layout, Images):
        return float(layout.shape[1] / layout.shape[0])
    if isinstance(layout, Volume):
        height, width = mosaic(layout, np.zeros(layout.size)).shape[:2]
        return width / height
    if isinstance(layout, Mesh):
        width, height = np.ptp(upright(layout.vertices), 0)[:2]
        return float(2.1 * width / max(height, 1e-12))
    return 1.9


def draw(
    axes: Axes,
    values: np.ndarray,
    layout: Layout,
    scale: Scale,
    title: str = "",
    errors: np.ndarray | None = None,
    chosen: np.ndarray | None = None,
    probability: np.ndarray | None = None,
) -> None:
    """Draw d numbers in their layout; those that are missing (NaN) are left out.

    Those of a table may have standard ``errors``, and ``chosen`` are the columns to draw. Numbers
    whose ``probability`` not to be zero is below one half are grey.
    """
    off = np.zeros(len(values), bool) if probability is None else probability < 0.5
    axes.set_title(title, fontsize=8 if isinstance(layout, Lines) else 7, pad=3)
    if isinstance(layout, Lines):
        if layout.signal:
            _lines(axes, values, layout, scale, off)
        else:
            _bars(axes, values, layout, scale, off, errors, chosen)
        return
    axes.set_axis_off()
    if isinstance(layout, Mesh):
        _mesh(axes, values, layout, scale, off)
    else:
        _image(axes, values, layout, scale, off)


def _image(
    axes: Axes, values: np.ndarray, layout: Images | Volume, scale: Scale, off: np.ndarray
) -> None:
    """Draw numbers as an image or as slices of a volume, and grey over those that are off."""
    from matplotlib.colors import ListedColormap

    over = np.where(off, 1.0, np.nan)
    if isinstance(layout, Volume):
        where = peak(layout, values)
        image, over = mosaic(layout, values, where), mosaic(layout, over, where)
    elif len(layout.shape) == 3:  # colours, in which zero is grey
        share = (np.where(off, 0.0, values) - scale.low) / (scale.high - scale.low)
        axes.imshow(np.nan_to_num(np.clip(share, 0, 1)).reshape(layout.shape))
        return
    else:
        image, over = values.reshape(layout.shape), over.reshape(layout.shape)
    axes.imshow(image, cmap=scale.cmap, vmin=scale.low, vmax=scale.high, interpolation="nearest")
    if off.any():
        axes.imshow(over, cmap=ListedColormap([OFF]), interpolation="nearest")


def _lines(axes: Axes, values: np.ndarray, layout: Lines, scale: Scale, off: np.ndarray) -> None:
    """Draw numbers as a line, grey where they are off; the columns are named if they are few."""
    places, few = np.arange(len(values)), len(values) <= FEW_COLUMNS
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    marker, colour = "o" if few else None, "C3" if scale.signed else "C0"
    if off.any():
        axes.plot(places, values, linewidth=1, marker=marker, markersize=3, color=OFF)
        values, marker = np.where(off, np.nan, values), "o"  # there may be gaps beside a column
    size = 3 if few else 1
    axes.plot(places, values, linewidth=1, marker=marker, markersize=size, color=colour)
    margin = 0.05 * (scale.high - scale.low)
    axes.set_ylim(scale.low - margin, scale.high + margin)
    axes.tick_params(labelsize=6, length=2)
    axes.locator_params(axis="y", nbins=4)
    axes.spines[["top", "right"]].set_visible(False)
    if few:
        axes.set_xticks(places, [str(name)[:12] for name in layout.names], rotation=90)


def top_columns(values: np.ndarray) -> np.ndarray:
    """Return the numbers of the columns of a table that are drawn.

    These are all in their order if they are few, or those with the largest absolute values first.
    """
    if len(values) <= TOP_COLUMNS:
        return np.arange(len(values))
    return np.argsort(-np.nan_to_num(np.abs(values)), kind="stable")[:TOP_COLUMNS]


def _bars(
    axes: Axes,
    values: np.ndarray,
    layout: Lines,
    scale: Scale,
    off: np.ndarray,
    errors: np.ndarray | None,
    chosen: np.ndarray | None,
) -> None:
    """Draw columns of a table below each other: bars about zero with their errors, or dots.

    Bars of columns that are ``off`` are grey, and so are the names of these columns.
    """
    chosen = top_columns(values) if chosen is None else chosen
    places, shown = np.arange(len(chosen)), values[chosen]
    axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    if scale.signed:
        colours = np.where(off[chosen], OFF, np.where(shown < 0, "C0", "C3"))
        axes.barh(places, shown, height=0.7, color=colours, alpha=0.75)
        if errors is not None:
            ink: Any = np.where(off[chosen], OFF, "0.2")
            axes.errorbar(shown, places, xerr=errors[chosen], fmt="none", ecolor=ink, linewidth=1)
    else:
        axes.plot(shown, places, "o", markersize=3.5, color="C0")
        axes.grid(axis="y", color="0.92", linewidth=0.6)
    margin = 0.05 * (scale.high - scale.low)
    axes.set_xlim(scale.low - margin, scale.high + margin)
    axes.set_ylim(len(chosen) - 0.4, -0.6)
    axes.set_yticks(places, [shortened(layout.names[k]) for k in chosen])
    for label in np.array(axes.get_yticklabels())[off[chosen]]:
        label.set_color("0.6")
    axes.tick_params(labelsize=6, length=2)
    axes.locator_params(axis="x", nbins=4)
    axes.spines[["top", "right"]].set_visible(False)


def shortened(name: Any, length: int = 20) -> str:
    """Return a name, cut with a sign that says so if it is too long."""
    text = str(name)
    return text if len(text) <= length else f"{text[: length - 1]}…"


# Volumes


def mosaic(layout: Volume, values: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
    """Return an image of three orthogonal slices through a voxel, beside each other.

    The voxel is that with the indices ``where``, by default the :func:`peak`. Pixels are squares
    of the shortest edge of a voxel. The image is NaN outside the mask.
    """
    volume = np.full(layout.mask.shape, np.nan)
    volume[layout.mask.astype(bool)] = values
    where = peak(layout, values) if where is None else where
    sizes = voxel_sizes(layout)
    panels = []
    for axis in (2, 1, 0):
        panel = np.take(volume, where[axis], axis)
        columns, rows = (
            _stretched(length, size, sizes.min())
            for length, size in zip(panel.shape, np.delete(sizes, axis), strict=True)
        )
        panels.append(panel[columns][:, rows].T[::-1])
    height = max(len(panel) for panel in panels)
    padded = []
    for panel in panels:
        missing = height - len(panel)
        borders = ((missing // 2, (missing + 1) // 2), (0, 1))
        padded.append(np.pad(panel, borders, constant_values=np.nan))
    return np.concatenate(padded, 1)


def _stretched(length: int, voxel: float, pixel: float) -> np.ndarray:
    """Return which of the voxels along an axis each pixel shows, given the sizes of both."""
    pixels = max(1, round(length * voxel / pixel))
    return np.arange(pixels) * length // pixels


def peak(layout: Volume, values: np.ndarray) -> np.ndarray:
    """Return the indices, (3,), of the voxel with the largest absolute value.

    If all values are the same, this is the voxel nearest to the middle of the mask.
    """
    inside = np.argwhere(layout.mask)
    size = np.nan_to_num(np.abs(values))
    if size.max() > size.min():
        return inside[size.argmax()]
    return inside[np.square(inside - inside.mean(0)).sum(1).argmin()]


def voxel_sizes(layout: Volume) -> np.ndarray:
    """Return the lengths of the edges of a voxel, (3,)."""
    return np.maximum(np.linalg.norm(np.asarray(layout.affine, float)[:3, :3], axis=0), 1e-12)


# Meshes


def upright(vertices: np.ndarray) -> np.ndarray:
    """Return vertices about their middle, turned by right angles.

    The longest side of the mesh then goes across, and the shortest points at the viewer.
    """
    centred = np.asarray(vertices, float) - 0.5 * (vertices.max(0) + vertices.min(0))
    longest, middle, shortest = np.argsort(-np.ptp(centred, 0), kind="stable")
    axes = np.eye(3)[[longest, middle, shortest]]
    axes[2] *= np.linalg.det(axes)  # a rotation, not a mirror image
    return centred @ axes.T


def _mesh(axes: Axes, values: np.ndarray, layout: Mesh, scale: Scale, off: np.ndarray) -> None:
    """Draw the front and the back of a mesh, from the farthest triangle to the nearest."""
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize, to_rgba

    points = upright(layout.vertices)
    width, height = np.ptp(points, 0)[:2]
    colours = colormaps[scale.cmap].with_extremes(bad="0.6")(
        Normalize(scale.low, scale.high)(np.ma.masked_invalid(values))
    )
    colours[off] = to_rgba(OFF)
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
