"""Pictures of components and of rows, drawn in their layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from noisyica.data import Layout, Lines
from noisyica.plot.figures import new_figure
from noisyica.plot.layouts import (
    TOP_COLUMNS,
    Scale,
    aspect,
    data_scale,
    draw,
    find_layout,
    signed_scale,
    top_columns,
)
from noisyica.posterior.offsets import offsets
from noisyica.rows.numbers import plain_numbers

if TYPE_CHECKING:
    from noisyica.estimator import NoisyICA


NARROWEST = 1.15
"""The minimum width of a picture in inches, below which titles would overlap."""


class Picture(NamedTuple):
    """The numbers of a picture, and how they are shown."""

    values: np.ndarray
    scale: Scale
    title: str
    errors: np.ndarray | None = None  # standard errors of the numbers
    chosen: np.ndarray | None = None  # the columns of a table that are shown
    probability: np.ndarray | None = None  # that the numbers are not zero


def components(
    ica: NoisyICA | Any,
    layout: Layout | None = None,
    image_shape: tuple[int, ...] | None = None,
    columns: int | None = None,
    figure: Any = None,
) -> Any:
    """Draw the mean and the components of a fitted model, or any rows of numbers.

    The components, or the rows, have one scale. Of a table with many columns, each picture has the
    20 with the largest values by name, with standard errors if they were computed
    (:meth:`noisyica.NoisyICA.standard_errors`).

    Where the fit says with which probability entries of the components are not zero
    (``components_probability_``), those with a probability below one half are grey: pixels, voxels,
    vertices, bars, and parts of lines.

    Parameters
    ----------
    ica : NoisyICA, or array (k, d)
        A fitted estimator, or rows to be drawn with zero in the middle of the colours.
    layout : noisyica.data.Layout, optional
        What the d numbers of a row are. By default they are columns of a table, with the names
        that the estimator was fitted with, or else lines. Volumes are cut through their largest
        value, and meshes are seen from two sides.
    image_shape : (height, width), optional
        The shape of the images that the rows are, instead of a layout.
    columns : int, optional
        The number of pictures per line.
    figure : matplotlib Figure or SubFigure, optional
        What to draw on; a new figure by default.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> options = {"noise": "isotropic", "max_iter": 50, "tol": 0, "random_state": 0}
    >>> ica = NoisyICA(5, **options).fit(load_digits().data)
    >>> figure = plot.components(ica, image_shape=(8, 8))
    """
    fitted = hasattr(ica, "components_")
    values = ica.components_ if fitted else np.atleast_2d(np.asarray(ica, float))
    names = getattr(ica, "feature_names_in_", None)
    layout = find_layout(values.shape[1], layout, image_shape, names)
    scale = signed_scale(values)
    if not fitted:
        rows = [Picture(row, scale, str(j)) for j, row in enumerate(values)]
        return _grid(rows, layout, columns, figure)
    errors = getattr(ica, "standard_errors_", {}).get("components", [None] * len(values))
    titles = [
        f"Component {j}: {100 * x:.1f} %" for j, x in enumerate(ica.explained_variance_ratio_)
    ]
    probability = _probability(ica)
    pictures = [
        Picture(row, scale, title, error, None, on)
        for row, title, error, on in zip(values, titles, errors, probability, strict=True)
    ]
    title = "Components (share of the variance)"
    if ica.mean_.any():  # models with an offset or a shift have none
        pictures.insert(0, Picture(ica.mean_, data_scale(ica.mean_, layout), "Mean"))
        title = "Mean, and components (share of the variance)"
    if pictures[-1].errors is not None and isinstance(layout, Lines) and not layout.signal:
        title += ", with standard errors"
    if pictures[-1].probability is not None:
        title += "; grey: probably zero"
    figure = _grid(pictures, layout, columns, figure)
    figure.suptitle(title, fontsize=10, wrap=True)
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
    """Draw rows of X, their reconstructions, the residuals, and the largest contributions.

    Entries of components that are probably zero are grey, as in :func:`components`.

    Parameters
    ----------
    ica : NoisyICA
        A fitted estimator.
    X : array (n, d), DataFrame or sparse matrix
        The data, of which only the rows to be drawn are used.
    rows : sequence of int, optional
        The indices of the rows to be drawn; by default, those of the first four.
    layout, image_shape, figure
        As in :func:`components`.
    n_parts : int, optional
        The number of components to show for each row, with their coefficients. They are those with
        the largest contributions; by default, as many as fit, up to 5.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> options = {"noise": "isotropic", "max_iter": 50, "tol": 0, "random_state": 0}
    >>> ica = NoisyICA(5, **options).fit(X)
    >>> figure = plot.reconstruction(ica, X, rows=[0, 7], image_shape=(8, 8))
    """
    p, d = ica.components_.shape
    layout = find_layout(d, layout, image_shape, getattr(ica, "feature_names_in_", None))
    n_parts = min(5, _fitting(layout) - 3) if n_parts is None else n_parts
    X = X.tocsr() if issparse(X) else X
    n = _num_samples(X)
    chosen = np.arange(min(4, n)) if rows is None else np.asarray(rows)
    if not chosen.size or chosen.min() < -n or chosen.max() >= n:
        raise ValueError(f"rows must be indices of the {n} rows of X; got {rows!r}.")
    some = _safe_indexing(X, chosen)  # a DataFrame stays one: its columns have names
    some = some.toarray() if issparse(some) else some
    beta, Y = np.asarray(ica.transform(some)), np.asarray(plain_numbers(some), float)
    fitted = ica.inverse_transform(beta) + offsets(ica.model_, Y, beta)[:, None]
    parts = beta[:, :, None] * ica.components_
    order = np.argsort(-np.square(parts).sum(2), axis=1)[:, :n_parts]
    ranged = np.concatenate([Y, fitted]) if isinstance(layout, Lines) else Y
    unsigned = data_scale(ranged, layout)
    largest = np.take_along_axis(parts, order[:, :, None], 1)
    signed = signed_scale(np.concatenate([(Y - fitted)[:, None], largest], 1))
    pictures: list[Picture] = []
    probability = _probability(ica)
    for i, row in enumerate(chosen):
        # the same columns of a table beside each other: those furthest from the mean
        columns = top_columns(Y[i] - ica.mean_)
        pictures += [
            Picture(Y[i], unsigned, f"Row {row}", chosen=columns),
            Picture(fitted[i], unsigned, "Reconstruction", chosen=columns),
            Picture(Y[i] - fitted[i], signed, "Residual", chosen=columns),
        ]
        for j in order[i]:
            title = f"Component {j}: {beta[i, j]:+.2f}"
            pictures.append(Picture(parts[i, j], signed, title, None, columns, probability[j]))
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
    """Draw the mean and the components, and then rows of X with their reconstructions.

    Parameters
    ----------
    ica : NoisyICA
        A fitted estimator.
    X : array (n, d)
        The data, of which only the rows to be drawn are used.
    image_shape : (height, width), optional
        The shape of the images; a square by default. Columns that have names are drawn as those of
        a table if no shape is given.
    n_rows : int
        The number of rows to be drawn, from the first one on.
    columns : int
        The number of components per line, or fewer where they are wide.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> options = {"noise": "isotropic", "max_iter": 50, "tol": 0, "random_state": 0}
    >>> ica = NoisyICA(5, **options).fit(X)
    >>> figure = plot.overview(ica, X, n_rows=2)
    """
    shown = np.arange(min(n_rows, len(X)))
    p, d = ica.components_.shape
    names, side = getattr(ica, "feature_names_in_", None), int(np.sqrt(d))
    if image_shape is None and names is None:
        image_shape = (side, d // side)
    layout = find_layout(d, None, image_shape, names)
    if isinstance(layout, Lines):
        columns = min(columns, _fitting(layout) - 1)
    lines, across = -(-(p + 1) // (columns + 1)), columns + 1
    sizes = [_size(layout, across, count)[1] for count in (lines, len(shown))]
    figure = new_figure(_size(layout, across, 1)[0], sum(sizes))
    halves: Any = figure.subfigures(2, 1, height_ratios=sizes)
    components(ica, layout, columns=across, figure=halves[0])
    reconstruction(ica, X, shown.tolist(), layout, n_parts=columns - 2, figure=halves[1])
    return figure


def _probability(ica: NoisyICA) -> Sequence[np.ndarray | None]:
    """Return the probabilities of each component's entries not to be zero, or None for each."""
    found = getattr(ica, "components_probability_", None)
    return [None] * len(ica.components_) if found is None else list(found)


def _grid(pictures: list[Picture], layout: Layout, columns: int | None, figure: Any) -> Any:
    """Draw pictures in lines, on the given figure or on a new one."""
    if columns is None:  # lines of the same length, as far as possible
        lines = -(-len(pictures) // _fitting(layout))
        columns = -(-len(pictures) // lines)
    lines = -(-len(pictures) // columns)
    if figure is None:
        figure = new_figure(*_size(layout, columns, lines))
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, picture in zip(grid, pictures, strict=False):
        draw(axes, layout=layout, **picture._asdict())
    for axes in grid[len(pictures) :]:
        axes.set_axis_off()
    return figure


def _fitting(layout: Layout) -> int:
    """Return how many pictures fit beside each other."""
    return max(4, round(10.5 / (1.05 * _width(layout))))


def _width(layout: Layout) -> float:
    """Return the width of a picture in inches."""
    if isinstance(layout, Lines):
        return 2.3 if layout.signal else 2.6
    return float(np.clip(1.05 * aspect(layout), NARROWEST, 4.0))


def _size(layout: Layout, columns: int, lines: int) -> tuple[float, float]:
    """Return the width and the height in inches of a figure with so many pictures and titles."""
    if isinstance(layout, Lines):
        height = 1.4 if layout.signal else 0.3 + 0.13 * min(layout.size, TOP_COLUMNS)
    else:
        height = float(np.clip(1.05 * aspect(layout), 0.6, 4.0)) / aspect(layout)
    return 0.2 + columns * (_width(layout) + 0.1), 0.45 + lines * (height + 0.3)
