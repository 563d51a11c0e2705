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
        Whether each component is divided by its own largest entry, instead of the model's.
    """
    lines = -(-len(models) // across)
    deep = -(-len(next(iter(models.values()))[1]) // columns)
    width = 11.0 / across
    figure = canvas(11.0, lines * (width * deep / (columns + 1) * shape[0] / shape[1] + 0.35) + 0.1)
    grid = figure.subplots(lines, across, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, (name, (mean, components)) in zip(grid, models.items(), strict=False):
        sheet = _model_sheet(mean - mean.mean(), components, shape, columns, own_scale)
        image = show(axes, sheet, (-1, 1))
        axes.set_title(name, fontsize=9)
    bar = figure.colorbar(image, ax=grid.tolist(), shrink=0.6, fraction=0.02, aspect=30)
    unit = "share of its largest entry" if own_scale else "share of the model's largest entry"
    bar.set_label(unit, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _model_sheet(
    mean: np.ndarray, components: np.ndarray, shape: tuple[int, int], columns: int, own_scale: bool
) -> np.ndarray:
    """Put the mean, and to its right the components in lines, into one image."""
    sizes = np.abs(components)
    unit = sizes.max(1, keepdims=True) if own_scale else sizes.max()
    scaled = components / np.maximum(unit, 1e-12)
    tiles = np.full((-(-len(components) // columns), columns + 1, len(mean)), np.nan)
    tiles[0, 0] = mean / max(np.abs(mean).max(), 1e-12)
    for i in range(len(tiles)):
        line = scaled[i * columns : (i + 1) * columns]
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
    """Draw values at the vertices (n, 3) of a mesh, seen along its thinnest axis.

    Only triangles that face the viewer are drawn, the farthest first.
    """
    from matplotlib.collections import PolyCollection

    centred = vertices - vertices.mean(0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    corners = turned[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outward = np.sign((normal * corners.mean(1)).sum())  # whichever way round the faces are stored
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
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.set_axis_off()
    return coloured
