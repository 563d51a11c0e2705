"""Components and rows drawn in their layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noisyica.analysis.offsets import offsets
from noisyica.data import Images, Layout, Lines
from noisyica.plot.layouts import Scale, aspect, draw, find_layout, plain_scale, signed_scale

if TYPE_CHECKING:
    from noisyica.estimator import NoisyICA

Picture = tuple[np.ndarray, Scale, str]
"""Numbers, colours, title."""


def components(
    ica: NoisyICA | Any,
    layout: Layout | None = None,
    image_shape: tuple[int, ...] | None = None,
    columns: int | None = None,
    figure: Any = None,
) -> Any:
    """The mean and the components of a fitted model, or any rows of numbers, as pictures with one colour scale.

    Parameters
    ----------
    ica : NoisyICA, or array (k, d)
        Fitted; or rows to be drawn with zero in the middle of the colours.
    layout : noisyica.data.Layout, optional
        What the d numbers of a row are; lines by default. Volumes are cut through their largest value, meshes seen from two sides.
    image_shape : (height, width), optional
        Instead of a layout.
    columns : int, optional
        Pictures in a line.
    figure : matplotlib Figure or SubFigure, optional
        To draw on; a new figure by default.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> ica = NoisyICA(5, max_iter=50, tol=0, random_state=0).fit(load_digits().data)
    >>> figure = plot.components(ica, image_shape=(8, 8))
    """
    fitted = hasattr(ica, "components_")
    values = ica.components_ if fitted else np.atleast_2d(np.asarray(ica, float))
    layout = find_layout(values.shape[1], layout, image_shape)
    scale = signed_scale(values)
    if not fitted:
        return _grid(
            [(row, scale, str(j)) for j, row in enumerate(values)], layout, columns, figure
        )
    pictures = [
        (row, scale, f"{j}: {100 * ica.explained_variance_ratio_[j]:.1f} %")
        for j, row in enumerate(values)
    ]
    if ica.mean_.any():  # there is none with an offset or a shift
        pictures.insert(0, (ica.mean_, plain_scale(ica.mean_, layout), "mean"))
    figure = _grid(pictures, layout, columns, figure)
    figure.suptitle(
        "Mean, and components (share of the variance)"
        if ica.mean_.any()
        else "Components (share of the variance)",
        fontsize=10,
    )
    return figure


def reconstruction(
    ica: NoisyICA,
    X: Any,
    rows: Sequence[int] | None = None,
    layout: Layout | None = None,
    image_shape: tuple[int, ...] | None = None,
    n_parts: int | None = None,
    figure: Any = None,
) -> Any:
    """Rows of X beside their reconstructions, what is left, and the components that make most of them.

    Parameters
    ----------
    ica : NoisyICA
        Fitted.
    X : array (n, d)
    rows : sequence of int, optional
        Which rows; the first four by default.
    layout, image_shape, figure
        As in :func:`components`.
    n_parts : int, optional
        Components to show for each row, those of the largest contributions, with their coefficients; by default as many as fit, up to 5.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> ica = NoisyICA(5, max_iter=50, tol=0, random_state=0).fit(X)
    >>> figure = plot.reconstruction(ica, X, rows=[0, 7], image_shape=(8, 8))
    """
    p, d = ica.components_.shape
    layout = find_layout(d, layout, image_shape)
    n_parts = min(5, _fitting(layout) - 3) if n_parts is None else n_parts
    chosen = np.arange(min(4, len(X))) if rows is None else np.asarray(rows)
    if not chosen.size or chosen.min() < -len(X) or chosen.max() >= len(X):
        raise ValueError(f"rows must be indices of the {len(X)} rows of X; got {rows!r}.")
    Y = np.asarray(X[chosen], float)
    beta = ica.transform(Y)
    fitted = ica.inverse_transform(beta) + offsets(ica.model_, Y, beta)[:, None]
    parts = beta[:, :, None] * ica.components_
    order = np.argsort(-np.square(parts).sum(2), axis=1)[:, :n_parts]
    plain = plain_scale(
        np.concatenate([Y, fitted]) if isinstance(layout, Lines) else Y, layout
    )  # the colours of the data
    signed = signed_scale(
        np.concatenate([(Y - fitted)[:, None], np.take_along_axis(parts, order[:, :, None], 1)], 1)
    )
    pictures: list[Picture] = []
    for i, row in enumerate(chosen):
        pictures += [
            (Y[i], plain, f"row {row}"),
            (fitted[i], plain, "reconstruction"),
            (Y[i] - fitted[i], signed, "residual"),
        ]
        pictures += [(parts[i, j], signed, f"{j}: {beta[i, j]:+.2f}") for j in order[i]]
    figure = _grid(pictures, layout, 3 + order.shape[1], figure)
    figure.suptitle(
        "Rows, what the components make of them, and the largest contributions (coefficient)",
        fontsize=10,
    )
    return figure


def overview(
    ica: NoisyICA,
    X: Any,
    image_shape: tuple[int, int] | None = None,
    n_rows: int = 5,
    columns: int = 10,
) -> Any:
    """The mean and the components as images, then a few rows of X with their reconstructions.

    Parameters
    ----------
    ica : NoisyICA
        Fitted.
    X : array (n, d)
        Rows of which the first ``n_rows`` are shown.
    image_shape : (height, width), optional
        A square by default.
    n_rows : int
    columns : int
        Components in a line.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> ica = NoisyICA(5, max_iter=50, tol=0, random_state=0).fit(X)
    >>> figure = plot.overview(ica, X, n_rows=2)
    """
    from matplotlib.figure import Figure

    X = np.asarray(X, float)[:n_rows]
    p, d = ica.components_.shape
    side = int(np.sqrt(d))
    layout = find_layout(d, None, image_shape or (side, d // side))
    lines, across = -(-(p + 1) // (columns + 1)), columns + 1
    sizes = [height for _, height in (_size(layout, across, count) for count in (lines, len(X)))]
    figure = Figure(figsize=(_size(layout, across, 1)[0], sum(sizes)), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=sizes)
    components(ica, layout, columns=across, figure=halves[0])
    reconstruction(ica, X, range(len(X)), layout, n_parts=columns - 2, figure=halves[1])
    return figure


def _grid(pictures: list[Picture], layout: Layout, columns: int | None, figure: Any) -> Any:
    """The pictures in lines, on the figure or on a new one."""
    from matplotlib.figure import Figure

    if columns is None:
        columns = -(
            -len(pictures) // -(-len(pictures) // _fitting(layout))
        )  # lines of the same length, as far as that goes
    lines = -(-len(pictures) // columns)
    if figure is None:
        figure = Figure(figsize=_size(layout, columns, lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, (values, scale, title) in zip(grid, pictures, strict=False):
        draw(axes, values, layout, scale, title)
    for axes in grid[len(pictures) :]:
        axes.set_axis_off()
    return figure


def _fitting(layout: Layout) -> int:
    """How many pictures stand beside each other."""
    return max(4, round(10.5 / (1.05 * _width(layout))))


def _width(layout: Layout) -> float:
    """Width of a picture, inches."""
    return float(np.clip(1.05 * aspect(layout), 0.6, 4.0)) if not isinstance(layout, Lines) else 2.3


def _size(layout: Layout, columns: int, lines: int) -> tuple[float, float]:
    """Of a figure of so many pictures, inches; titles need room."""
    height = _width(layout) / aspect(layout) if not isinstance(layout, Lines) else 1.4
    width = max(_width(layout), 0.95 if isinstance(layout, Images) else 0)
    return 0.2 + columns * (width + 0.1), 0.45 + lines * (height + 0.3)
