"""The law of each component's coefficients, and what the rows say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from noisyica.plot.figures import new_figure
from noisyica.plot.fits import draws_of
from noisyica.posterior.marginal import Marginal, marginal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from noisyica.estimator import NoisyICA
    from noisyica.priors import Prior

BINS = 40
FINER = 4
"""How many times finer than the bins the grid of the densities is."""
PER_LINE = 4
SELDOM = 0.005
"""Probabilities of an atom below this are not spoken of."""
HIGHEST = 3.0
"""A peak of the law is cut off at so many times the height of the histogram."""


class Histograms(NamedTuple):
    """The law of each of p coefficients, and histograms of draws of them.

    Attributes
    ----------
    law : Marginal
        The law, its density on the grid.
    grid : array (m,)
    edges : array (bins + 1,)
    heights : array (p, bins)
        The density of the draws that are not at an atom; it integrates to their share.
    shares : array (p, k)
        The share of the draws at each of the law's atoms.
    """

    law: Marginal
    grid: np.ndarray
    edges: np.ndarray
    heights: np.ndarray
    shares: np.ndarray

    def top(self, j: int) -> float:
        """Return the height that a picture of coefficient j needs."""
        curve, bars = self.law.density[j].max(), self.heights[j].max()
        return float(min(curve, HIGHEST * bars) if curve > bars > 0 else max(curve, bars))


def histograms(prior: Prior, draws: np.ndarray) -> Histograms:
    """Compute histograms of draws (m, p) on a range around zero that holds nearly all of them."""
    low, high = np.quantile(draws, [0.002, 0.998])
    reach = 1.1 * max(abs(float(low)), abs(float(high)), 1e-3)
    edges = np.linspace(-reach, reach, BINS + 1)
    grid = np.linspace(-reach, reach, FINER * BINS + 1)
    law = marginal(prior, draws.shape[1], grid)
    scale = len(draws) * (edges[1] - edges[0])
    heights = [np.histogram(x[~np.isin(x, law.atoms)], edges)[0] / scale for x in draws.T]
    shares = (draws[:, :, None] == law.atoms).mean(0)
    return Histograms(law, grid, edges, np.stack(heights), shares)


def density(ica: NoisyICA, values: Any = None, figure: Any = None) -> Any:
    """Draw the learnt law of each component's coefficients, over their histogram.

    The curve is the density that the fitted prior has: of ``prior="adaptive"`` it is each
    component's own. Where a value has a probability of its own, most often 0, a stem stands there
    with a dot at the probability: the height of the picture is 1. It is above the picture in words.

    Were the model true, draws from the posterior of all rows together would follow the curve. A
    component whose bars do not has another law.

    Parameters
    ----------
    ica : NoisyICA
        A fitted estimator.
    values : array (n, d) or (n, p), or Posterior, optional
        Rows of X, of at most 2,000 of which the posterior is drawn from; or the draws of
        :meth:`noisyica.Model.posterior`; or coefficients, but posterior means vary less than the
        curve says. If p = d, an array is taken for rows of X. By default there are curves only.
    figure : matplotlib Figure or SubFigure, optional
        What to draw on; a new figure by default.

    Returns
    -------
    figure

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> options = {"noise": "isotropic", "max_iter": 50, "tol": 0, "random_state": 0}
    >>> ica = NoisyICA(3, prior="adaptive", **options).fit(X)
    >>> figure = plot.density(ica, X)
    """
    p = len(ica.components_)
    if values is None:
        draws = marginal(ica.prior_, p, np.linspace(-1, 1, 3)).draws
    else:
        draws = draws_of(ica, values)
    found = histograms(ica.prior_, draws)
    columns = min(p, PER_LINE)
    lines = -(-p // columns)
    if figure is None:
        figure = new_figure(max(4.0, 0.3 + 2.4 * columns), 0.5 + 1.7 * lines)
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    for j, axes in enumerate(grid):
        if j < p:
            _density(axes, found, j, values is not None)
            axes.tick_params(labelbottom=j + columns >= p)
        else:
            axes.set_axis_off()
    grid[0].legend(fontsize=6, frameon=False, loc="upper left", handlelength=1.2)
    return figure


def _density(axes: Axes, found: Histograms, j: int, with_bars: bool) -> None:
    """Draw the law of coefficient j, and its histogram if there is one."""
    law, top = found.law, found.top(j) if with_bars else float(found.law.density[j].max())
    if with_bars:
        axes.stairs(found.heights[j], found.edges, fill=True, color="C0", alpha=0.4, label="rows")
    curve = np.minimum(law.density[j], 1.05 * top)
    axes.plot(found.grid, curve, color="C3", linewidth=1.3, label="prior, as learnt")
    often = law.weights[j] >= SELDOM
    atoms, weights = law.atoms[often], law.weights[j][often]
    # a stem's height is a share of the picture, whatever the density
    whole = axes.get_xaxis_transform()
    if often.any():
        axes.vlines(atoms, 0, weights, "C3", linewidth=1.3, transform=whole)
        axes.plot(atoms, weights, "o", color="C3", markersize=3.5, transform=whole, clip_on=False)
    words = ", ".join(
        f"{100 * weight:.0f} % exactly {atom:.3g}"
        for atom, weight in zip(atoms, weights, strict=True)
    )
    axes.set_title(f"Component {j}" + (f": {words}" if words else ""), fontsize=8, pad=3)
    axes.set_xlim(found.grid[0], found.grid[-1])
    axes.set_ylim(0, 1.08 * top or 1.0)
    axes.set_yticks([])
    axes.tick_params(labelsize=6, length=2)
    axes.spines[["top", "right", "left"]].set_visible(False)
