"""The parts that the experiments' figures are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIGNED = "RdBu_r"
"""The colours of values that may be negative: white is zero."""
LARGEST = 0.995
"""A common colour scale ends at this quantile of the absolute values, so that few entries in one
image do not make all others pale."""


def canvas(width: float, height: float) -> Figure:
    """Make an empty figure; width and height are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def mosaic(images: np.ndarray, columns: int, shape: tuple[int, int]) -> np.ndarray:
    """Put images (k, height * width) next to each other in one, with lines of NaN between them."""
    height, width = shape
    lines = -(-len(images) // columns)
    sheet = np.full((lines * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for i, image in enumerate(np.reshape(images, (-1, height, width))):
        top, left = i // columns * (height + 1), i % columns * (width + 1)
        sheet[top : top + height, left : left + width] = image
    return sheet


def show(axes: Axes, sheet: np.ndarray, limits: tuple[float, float]) -> Any:
    """Draw an image without ticks and frame; NaN is grey."""
    axes.set_facecolor("0.87")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    return axes.imshow(sheet, cmap=SIGNED, vmin=limits[0], vmax=limits[1], interpolation="nearest")


def table_of_images(
    cells: Sequence[Sequence[np.ndarray]],
    rows: Sequence[str],
    columns: Sequence[str],
    limit: float,
    size: float,
) -> Figure:
    """Draw images in a table with named rows and columns, all with the same colour scale.

    Colours go from -``limit`` to ``limit``; ``size`` is the width of one image in inches.
    """
    ratio = cells[0][0].shape[0] / cells[0][0].shape[1]
    figure = canvas(size * len(columns) + 2.0, (size * ratio + 0.08) * len(rows) + 0.6)
    grid = figure.subplots(len(rows), len(columns), squeeze=False)
    for i, line in enumerate(cells):
        for j, sheet in enumerate(line):
            image = show(grid[i, j], sheet, (-limit, limit))
            if i == 0:
                grid[i, j].set_title(columns[j], fontsize=8)
        grid[i, 0].set_ylabel(rows[i], fontsize=8, rotation=0, ha="right", va="center")
    shrink = min(1.0, 3 / len(rows))
    bar = figure.colorbar(image, ax=grid, shrink=shrink, fraction=0.03, aspect=25)
    bar.ax.tick_params(labelsize=7)
    return figure


def model_sheets(
    models: Mapping[str, tuple[np.ndarray, np.ndarray]],
    shape: tuple[int, int],
    columns: int,
    across: int,
    own_scale: bool = False,
) -> Figure:
    """Draw the mean (less its average) and the components of models.

    All means have one colour scale, and all components another, unless each component has its own.
    The place of a mean that is 0 everywhere is empty, and says so.

    Parameters
    ----------
    models : mapping
        The mean (d,) and the components (p, d) of each model, by its name.
    shape : pair of int
        Height and width of an image of d pixels.
    columns : int
        The number of components per line.
    across : int
        The number of models next to each other.
    own_scale : bool
        Whether each component is divided by its own largest entry, instead of a common unit.
    """
    lines = -(-len(models) // across)
    deep = -(-len(next(iter(models.values()))[1]) // columns)
    width = 11.0 / across
    figure = canvas(11.0, lines * (width * deep / (columns + 1) * shape[0] / shape[1] + 0.35) + 0.1)
    grid = figure.subplots(lines, across, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    means = {name: mean - mean.mean() for name, (mean, _) in models.items()}
    of_means = unit(list(means.values()))
    of_all = unit([components for _, components in models.values()])
    for axes, (name, (_, components)) in zip(grid, models.items(), strict=False):
        units = np.abs(components).max(1, keepdims=True) if own_scale else of_all
        scaled = components / np.maximum(units, 1e-12)
        image = show(axes, _model_sheet(means[name] / of_means, scaled, shape, columns), (-1, 1))
        axes.set_title(name, fontsize=9)
        if not means[name].any():
            at = (shape[1] / 2 - 0.5, shape[0] / 2 - 0.5)
            axes.text(*at, "no\nmean", ha="center", va="center", fontsize=6)
    bar = figure.colorbar(image, ax=grid.tolist(), shrink=0.6, fraction=0.02, aspect=30)
    shares = "its largest entry" if own_scale else f"the {LARGEST:.1%} quantile of all components"
    bar.set_label(f"share of {shares}; means: of all means", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def unit(images: Sequence[np.ndarray]) -> float:
    """Return the size at which a common colour scale of images ends."""
    return max(float(np.quantile(np.abs(np.concatenate(images, axis=None)), LARGEST)), 1e-12)


def _model_sheet(
    mean: np.ndarray, components: np.ndarray, shape: tuple[int, int], columns: int
) -> np.ndarray:
    """Put the mean, and to its right the components in lines, into one image."""
    tiles = np.full((-(-len(components) // columns), columns + 1, len(mean)), np.nan)
    tiles[0, 0] = mean if mean.any() else np.nan
    for i in range(len(tiles)):
        line = components[i * columns : (i + 1) * columns]
        tiles[i, 1 : 1 + len(line)] = line
    return mosaic(tiles.reshape(-1, len(mean)), columns + 1, shape)


def curve(
    axes: Axes, x: Sequence[float], lines: Mapping[str, Sequence[float]], xlabel: str, ylabel: str
) -> None:
    """Draw lines with dots, and a legend with their names."""
    for name, y in lines.items():
        axes.plot(x, y, marker="o", markersize=4, label=name)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def surface(
    axes: Axes, vertices: np.ndarray, faces: np.ndarray, values: np.ndarray, limit: float
) -> Any:
    """Draw values at the vertices (n, 3) of a mesh, seen from both sides along its thinnest axis.

    The view from behind is below the other one, as if the mesh were turned about its longest axis.
    """
    centred = vertices - vertices.mean(0)
    front = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    behind = front * (1, -1, -1)
    height = 1.15 * (front[:, 1].max() - front[:, 1].min())
    coloured = _one_side(axes, front, faces, values, limit)
    _one_side(axes, behind - (0, height, 0), faces, values, limit)
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.set_axis_off()
    return coloured


def _one_side(
    axes: Axes, vertices: np.ndarray, faces: np.ndarray, values: np.ndarray, limit: float
) -> Any:
    """Draw the triangles of a mesh that face the viewer, who looks down the third axis.

    The farthest are drawn first.
    """
    from matplotlib.collections import PolyCollection

    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    centred = corners.mean(1) - vertices.mean(0)
    outward = np.sign((normal * centred).sum())  # whichever way round the faces are stored
    seen = np.flatnonzero(outward * normal[:, 2] > 0)
    seen = seen[np.argsort(corners[seen].mean(1)[:, 2])]
    outlines = corners[seen][:, :, :2]
    coloured = PolyCollection(outlines, cmap=SIGNED, edgecolors="face", linewidths=0.2)
    coloured.set_array(values[faces[seen]].mean(1))
    coloured.set_clim(-limit, limit)
    axes.add_collection(coloured)
    facing = outward * normal[seen, 2] / np.linalg.norm(normal[seen], axis=1)
    shadows = [(0, 0, 0, 0.35 * (1 - cosine)) for cosine in facing]
    axes.add_collection(PolyCollection(outlines, facecolors=shadows, edgecolors="none"))
    return coloured
