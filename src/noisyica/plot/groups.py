"""A picture of how groups of rows differ in their coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from noisyica.plot.figures import new_figure
from noisyica.plot.layouts import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from noisyica.analysis.comparison import GroupComparison

LEVEL = 0.05
"""Components whose adjusted p-value is at most this are marked."""
NORMAL = 1.96
"""The half width of a normal interval of 95 %, in standard errors."""
MOST = 15
"""The largest number of components that have a tick each."""


def groups(result: GroupComparison, axes: Axes | None = None) -> Axes:
    """Draw the mean coefficient of each group for each component, with its error.

    Means are those at equal covariates, as they differ from the average of the groups, in standard
    deviations of the coefficients within groups. Bars are 95 % intervals (1.96 standard errors). A
    star marks components whose adjusted p-value is at most 0.05.

    Parameters
    ----------
    result : GroupComparison
        What :func:`noisyica.compare_groups` returned.
    axes : matplotlib Axes, optional
        What to draw on; a new figure by default.

    Examples
    --------
    >>> from noisyica import NoisyICA, compare_groups, plot
    >>> from sklearn.datasets import load_iris
    >>> X, species = load_iris(return_X_y=True)
    >>> ica = NoisyICA(2, max_iter=50, tol=0, random_state=0)
    >>> result = compare_groups(X, species, ica, n_draws=5, random_state=0)
    >>> axes = plot.groups(result)
    """
    k, p = result.means.shape
    if axes is None:
        axes = new_figure(min(12.0, 2.5 + 0.16 * p * (k + 1)), 3.5).subplots()
    scale = np.where(result.residual_deviations > 0, result.residual_deviations, 1.0)
    heights = (result.means - result.means.mean(0)) / scale
    errors = NORMAL * result.standard_errors / scale
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    for number, (label, size) in enumerate(zip(result.labels, result.sizes, strict=True)):
        places = np.arange(p) + (number - (k - 1) / 2) * 0.7 / k
        axes.errorbar(
            places,
            heights[number],
            errors[number],
            fmt="o",
            markersize=4,
            capsize=2,
            label=f"{shortened(str(label))} ({size})",
        )
    tops = (heights + errors).max(0)
    for j in np.flatnonzero(result.component_p_values_adjusted <= LEVEL):
        axes.annotate("*", (j, tops[j]), ha="center", va="bottom", fontsize=13)
    axes.margins(y=0.12)
    axes.set_xlim(-0.6, p - 0.4)
    axes.set_xticks(np.arange(p) if p <= MOST else np.arange(0, p, -(-p // MOST)))
    axes.set_xlabel("component")
    given = f" given {shortened(', '.join(result.covariates))}" if result.covariates else ""
    axes.set_ylabel(f"mean coefficient{given}\n(standard deviations)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return axes
