"""Pictures of fitted models, with matplotlib; every function returns the figure or the axes that it drew on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from noisyica.estimator import NoisyICA
    from noisyica.selection import Selection

SIGNED, PLAIN = "RdBu_r", "gray_r"


def _shape(d: int, image_shape: tuple[int, int] | None) -> tuple[int, int]:
    if image_shape is None:
        side = int(np.sqrt(d))
        image_shape = (side, d // side)
    if len(image_shape) != 2 or image_shape[0] * image_shape[1] != d:
        raise ValueError(f"image_shape {image_shape} does not hold the {d} columns of the data: give (height, width) with product {d}.")
    return image_shape


def _image(axes: Axes, values: np.ndarray, shape: tuple[int, int], limits: tuple[float, float], cmap: str, title: str = "") -> None:
    axes.imshow(values.reshape(shape), cmap=cmap, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    axes.set_title(title, fontsize=8, pad=3)
    axes.set_axis_off()


def overview(ica: NoisyICA, X: Any, image_shape: tuple[int, int] | None = None, n_rows: int = 5, columns: int = 10) -> Figure:
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

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> ica = NoisyICA(10, max_iter=200, tol=0, random_state=0).fit(X)
    >>> figure = plot.overview(ica, X, n_rows=2)
    """
    from matplotlib.figure import Figure

    X = np.asarray(X, float)[:n_rows]
    p, d = ica.components_.shape
    shape = _shape(d, image_shape)
    beta = ica.transform(X)
    fitted = ica.inverse_transform(beta)
    lines = -(-p // columns)
    height = 1.35 * (lines + len(X)) + 1.6
    figure = Figure(figsize=(1.05 * (columns + 1) + 0.4, height), layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=[lines + 0.45, len(X) + 0.45])
    top, bottom = halves
    top.suptitle("Mean, and components (share of the variance)", fontsize=10)
    bottom.suptitle("Rows: original, reconstruction, and the components that make most of it (coefficient)", fontsize=10)
    low, high = float(min(X.min(), ica.mean_.min())), float(max(X.max(), ica.mean_.max()))
    limit = float(np.abs(ica.components_).max())
    grid = top.subplots(lines, columns + 1, squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    _image(grid[0, 0], ica.mean_, shape, (low, high), PLAIN, "mean")
    for j in range(p):
        title = f"{j}: {100 * ica.explained_variance_ratio_[j]:.1f} %"
        _image(grid[j // columns, 1 + j % columns], ica.components_[j], shape, (-limit, limit), SIGNED, title)
    grid = bottom.subplots(len(X), columns + 1, squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for i, row in enumerate(X):
        _image(grid[i, 0], row, shape, (low, high), PLAIN, "original")
        _image(grid[i, 1], fitted[i], shape, (low, high), PLAIN, "reconstruction")
        parts = beta[i, :, None] * ica.components_
        for k, j in enumerate(np.argsort(-np.square(parts).sum(1))[: columns - 1]):
            _image(grid[i, 2 + k], parts[j], shape, (-high, high), SIGNED, f"{j}: {beta[i, j]:+.2f}")
    return figure


def selection(result: Selection, axes: Axes | None = None) -> Axes:
    """The criterion of a selection against the number of components, a line for each prior, the winner marked.

    Parameters
    ----------
    result : Selection
        Of :func:`noisyica.select`.
    axes : matplotlib Axes, optional
        To draw on; a new figure by default.
    """
    if axes is None:
        from matplotlib.figure import Figure

        axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    table = {name: np.asarray(result.table_[name]) for name in result.table_}
    held = result.criterion == "heldout"
    value = table["log_likelihood"] if held else table[result.criterion]
    for name in dict.fromkeys(table["prior"]):
        mine = table["prior"] == name
        error = table["behind_error"][mine] if held else None  # of the difference from the best, which is what is compared
        axes.errorbar(table["n_components"][mine], value[mine], error, marker="o", markersize=4, capsize=3, label=str(name))
    best = int(np.nanargmax(value) if held else np.nanargmin(value))
    axes.plot(table["n_components"][best], value[best], "o", markersize=13, fillstyle="none", color="black", label="chosen")
    axes.set_xlabel("number of components")
    axes.set_ylabel("mean log likelihood of held-out rows" if held else f"{result.criterion.upper()} (the lower the better)")
    axes.set_xticks(np.unique(table["n_components"]) if np.ptp(table["n_components"]) <= 20 else axes.get_xticks())
    axes.legend(title="prior", fontsize=8)
    return axes
