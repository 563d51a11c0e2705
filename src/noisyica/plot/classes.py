"""Pictures of coefficients by class, where rows have labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from noisyica.plot.figures import new_figure
from noisyica.plot.layouts import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from noisyica.estimator import NoisyICA

MOST = 30
"""The largest number of classes that are drawn."""
DOTS = 2000
"""The largest number of rows that are drawn as dots."""
PER_LINE = 4


def coefficients(ica: NoisyICA, values: Any, labels: Any, figure: Any = None) -> Any:
    """Draw the coefficients of each component by the class of the rows.

    Each row is a dot; a line holds half of the rows of a class, and a white dot is their median.
    The title has the share of the coefficients' variance that is between classes: 0 % if their
    means are all the same, 100 % if all rows of a class are alike.

    Parameters
    ----------
    ica : NoisyICA
        A fitted estimator.
    values : array (n, d) or (n, p), or DataFrame
        Rows of X, or their coefficients. If p = d, it is taken for rows of X.
    labels : array (n,)
        The class of each row, at most 30 different ones.
    figure : matplotlib Figure or SubFigure, optional
        What to draw on; a new figure by default.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_iris
    >>> X, species = load_iris(return_X_y=True)
    >>> ica = NoisyICA(2, max_iter=50, tol=0, random_state=0).fit(X)
    >>> figure = plot.coefficients(ica, X, species)
    """
    p, d = ica.components_.shape
    beta = np.asarray(values if np.shape(values)[1:] == (p,) and p != d else ica.transform(values))
    classes, index = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    if index.shape != (len(beta),):
        raise ValueError(f"labels must be one for each of the {len(beta)} rows.")
    if len(classes) > MOST:
        raise ValueError(
            f"labels has {len(classes)} different values: give at most {MOST} classes."
        )
    columns = min(p, PER_LINE)
    lines = -(-p // columns)
    if figure is None:
        height = 0.6 + 0.17 * len(classes)
        figure = new_figure(1.2 + 2.4 * columns, 0.5 + lines * height)
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for j, axes in enumerate(grid):
        if j < p:
            _classes(axes, beta[:, j], index, classes, j)
        else:
            axes.set_axis_off()
    figure.suptitle("Coefficients (share of their variance that is between classes)", fontsize=10)
    return figure


def between(beta: np.ndarray, index: np.ndarray) -> float:
    """Return the share of the variance of coefficients that is between classes.

    ``index`` (n,) has the number of each row's class.
    """
    sizes = np.maximum(np.bincount(index), 1)
    means = np.bincount(index, beta) / sizes
    total = beta.var()
    return float(1 - np.square(beta - means[index]).mean() / total) if total > 0 else 0.0


def _classes(axes: Axes, beta: np.ndarray, index: np.ndarray, classes: np.ndarray, j: int) -> None:
    """Draw the coefficients of component j, the classes below each other."""
    if len(beta) <= DOTS:
        # spread by the order of the rows, so that equal coefficients can be told apart
        height = index + 0.5 * ((np.arange(len(beta)) * 0.618) % 1 - 0.5)
        axes.plot(beta, height, "o", markersize=2, color="C0", alpha=0.35, markeredgewidth=0)
    for k in range(len(classes)):
        low, middle, high = np.quantile(beta[index == k], [0.25, 0.5, 0.75])
        axes.plot([low, high], [k, k], color="C0", linewidth=3, solid_capstyle="butt")
        axes.plot(middle, k, "o", markersize=4, color="white", markeredgecolor="C0")
    axes.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    sizes = np.bincount(index, minlength=len(classes))
    names = [f"{shortened(name)} ({size})" for name, size in zip(classes, sizes, strict=True)]
    axes.set_yticks(np.arange(len(classes)), names)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.set_title(f"Component {j}: {100 * between(beta, index):.0f} %", fontsize=8, pad=3)
    axes.tick_params(labelsize=6, length=2)
    axes.spines[["top", "right"]].set_visible(False)
