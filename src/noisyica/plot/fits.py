"""Pictures of how a fit went, and of what it says of the coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from noisyica.plot.figures import new_figure
from noisyica.posterior import Posterior
from noisyica.posterior.marginal import marginal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from noisyica.analysis.selection import Selection
    from noisyica.estimator import NoisyICA

FIXED = (
    "iteration",
    "n_components",
    "noise_variance",
    "noise_dof",
    "column_norms",
    "gaussian_log_likelihood",
    "returns",
)
"""What may be in every history; the rest of a history are the parameters of the prior."""
ROWS = 2000
"""The maximum number of rows whose posterior is drawn from."""
ON = 0.95
"""A component whose probability of being on is greater is never called off."""


def convergence(ica: NoisyICA, figure: Any = None) -> Any:
    """Plot what was learnt against the iteration.

    That is the noise variance, the norms of the components, the log likelihood given the
    coefficients, and the parameters of the prior. The burn-in, in which steps are full, is shaded;
    a line marks where the fit stopped by itself.

    Parameters
    ----------
    ica : NoisyICA
        A fitted estimator.
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
    >>> figure = plot.convergence(ica)
    """
    shown = [("noise variance", "noise_variance"), ("norms of the components", "column_norms")]
    shown += [("log p(x | coefficients) of a row", "gaussian_log_likelihood")]
    if "noise_dof" in ica.history_:
        shown.append(("degrees of freedom", "noise_dof"))
    shown += [(f"prior: {name}", name) for name in ica.history_ if name not in FIXED]
    columns = 2 if len(shown) in (2, 4) else 3
    lines = -(-len(shown) // columns)
    if figure is None:
        figure = new_figure(3.4 * columns, 2.3 * lines + 0.3)
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
    for axes, (title, name) in zip(grid, shown, strict=False):
        _trace(axes, ica, title, ica.history_[name])
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    for axes in grid[max(0, len(shown) - columns) : len(shown)]:
        axes.set_xlabel("iteration", fontsize=8)
        axes.tick_params(labelbottom=True)
    return figure


def burn_in(ica: NoisyICA) -> int:
    """Return the number of iterations with full steps, before those whose steps decrease.

    It is 0 for algorithms whose steps never decrease.
    """
    return min(round(ica.burn_in * ica.max_iter), ica.n_iter_) if ica.algorithm == "saem" else 0


def _trace(axes: Axes, ica: NoisyICA, title: str, values: np.ndarray) -> None:
    """Draw what a history holds under one name: a line for each number per iteration."""
    lines = values.reshape(len(values), -1)
    axes.axvspan(0, burn_in(ica), color="0.93", zorder=0)
    alpha, width = (1.0, 1.3) if lines.shape[1] <= 4 else (0.75, 0.8)
    axes.plot(ica.history_["iteration"], lines, alpha=alpha, linewidth=width)
    if ica.converged_:
        axes.axvline(ica.n_iter_, color="C2", linestyle="--", linewidth=1)
    if np.all(lines > 0) and lines.max() > 100 * lines.min():
        axes.set_yscale("log")
    axes.set_title(title, fontsize=9)
    axes.tick_params(labelsize=7)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)


def activation(ica: NoisyICA, values: Any, axes: Axes | None = None) -> Axes:
    """Plot how often each component is on, or how large its coefficients are.

    What the prior says of that is shown, too.
    If by the prior some component is off in at least one row of twenty, and some of the ``values``
    are zero, bars show how often each component is on. Otherwise dots are medians, thick lines hold
    half of a component's coefficients, and thin lines nine tenths of them; the bands hold as much
    of the prior. :func:`density` draws all of the law.

    Parameters
    ----------
    ica : NoisyICA
        A fitted estimator.
    values : array (n, d) or (n, p), or Posterior
        Rows of X, of at most 2,000 of which the posterior is drawn from; or coefficients; or the
        draws of :meth:`noisyica.Model.posterior`. If p = d, an array is taken for rows of X.
    axes : matplotlib Axes, optional
        What to draw on; a new figure by default.

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> options = {"noise": "isotropic", "max_iter": 50, "tol": 0, "random_state": 0}
    >>> ica = NoisyICA(5, **options).fit(X)
    >>> axes = plot.activation(ica, X)
    """
    p = len(ica.components_)
    draws = draws_of(ica, values)
    prior = marginal(ica.prior_, p, np.linspace(-1, 1, 3))
    axes = axes if axes is not None else _new_axes(max(4.0, 0.28 * p + 1.5))
    axes.set_xlabel("Component")
    axes.set_xticks(np.arange(p) if p <= 30 else axes.get_xticks())
    axes.set_xlim(-0.7, p - 0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if (prior.probability_on <= ON).any() and (draws == 0).any():
        axes.bar(np.arange(p), (draws != 0).mean(0), width=0.7, label="posterior")
        for j, on in enumerate(prior.probability_on):
            axes.hlines(
                on, j - 0.5, j + 0.5, color="black", linewidth=1.2, label="prior" if j == 0 else "_"
            )
        axes.set_ylim(0, 1)
        axes.set_ylabel("share of rows in which it is on")
        _legend_above(axes)
        return axes
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    of_draws = np.quantile(draws, levels, axis=0)
    # where all components have the same law, all draws together tell it best
    same = prior.draws if prior.of_each else prior.draws.reshape(-1, 1)
    of_prior = np.broadcast_to(np.quantile(same, levels, axis=0), (5, p))
    for (low, high), colour, share in zip(
        ((0, 4), (1, 3)), ("0.94", "0.86"), (90, 50), strict=True
    ):
        ends, label = np.linspace(-0.5, p - 0.5, p + 1), f"prior, {share} %"
        axes.stairs(
            of_prior[high], ends, baseline=of_prior[low], fill=True, color=colour, label=label
        )
    axes.vlines(np.arange(p), of_draws[0], of_draws[4], linewidth=1, color="C0")
    axes.vlines(np.arange(p), of_draws[1], of_draws[3], linewidth=4, color="C0")
    axes.plot(np.arange(p), of_draws[2], "o", markersize=4, color="white", markeredgecolor="C0")
    axes.set_ylabel("coefficient")
    _legend_above(axes)
    return axes


def draws_of(ica: NoisyICA, values: Any) -> np.ndarray:
    """Return coefficients, (m, p), from any of the values that :func:`activation` takes."""
    p, d = ica.components_.shape
    if isinstance(values, Posterior):
        array = values.draws.reshape(-1, values.draws.shape[-1])
    else:
        array = np.asarray(values)
        if array.ndim == 2 and array.shape[1] == d:
            some = array[:: -(-len(array) // ROWS)]
            draws = ica.model_.posterior_sample(some, n_draws=50, n_warmup=50, random_state=0)
            return draws.reshape(-1, p)
    if array.ndim != 2 or array.shape[1] != p:
        raise ValueError(
            f"values must be rows of X ({d} columns) or coefficients ({p} columns); "
            f"got shape {array.shape}."
        )
    return array


def stability(ica: NoisyICA, axes: Axes | None = None) -> Axes:
    """Plot how well each component is found again from other starts.

    This is the absolute cosine of the component with its match in each of the other runs.

    Parameters
    ----------
    ica : NoisyICA
        An estimator that was fitted with ``n_init`` > 1.
    axes : matplotlib Axes, optional
        What to draw on; a new figure by default.

    Examples
    --------
    >>> from noisyica import NoisyICA, plot
    >>> from sklearn.datasets import load_iris
    >>> ica = NoisyICA(2, n_init=3, max_iter=50, tol=0, random_state=0).fit(load_iris().data)
    >>> axes = plot.stability(ica)
    """
    cosines = getattr(ica, "stability_", None)
    if cosines is None:
        raise ValueError("There is no stability_: fit with n_init of 2 or more.")
    p = cosines.shape[1]
    axes = axes if axes is not None else _new_axes(max(4.0, 0.28 * p + 1.5))
    axes.axhspan(0.9, 1, color="C2", alpha=0.12, zorder=0, label="above 0.9")
    axes.vlines(np.arange(p), cosines.min(0), cosines.max(0), color="0.7", linewidth=1)
    for i, run in enumerate(cosines):
        (dots,) = axes.plot(np.arange(p), run, "o", markersize=4, color="C0", alpha=0.6)
        dots.set_label("a run" if i == 0 else "_")
    axes.set_xticks(np.arange(p) if p <= 30 else axes.get_xticks())
    axes.set_xlim(-0.7, p - 0.3)
    axes.set_ylim(min(0.5, float(cosines.min()) - 0.05), 1.01)
    axes.set_xlabel("Component")
    axes.set_ylabel("|cosine| with its match")
    axes.spines[["top", "right"]].set_visible(False)
    _legend_above(axes)
    return axes


def selection(result: Selection, axes: Axes | None = None) -> Axes:
    """Plot the criterion of a selection against the number of components.

    There is a line for each prior, and the winner is marked.

    Parameters
    ----------
    result : Selection
        What :func:`noisyica.select` returned.
    axes : matplotlib Axes, optional
        What to draw on; a new figure by default.

    Examples
    --------
    >>> from noisyica import plot, select
    >>> from sklearn.datasets import load_iris
    >>> settings = {"priors": ["bg"], "noise": "isotropic", "max_iter": 50, "tol": 0}
    >>> result = select(load_iris().data, n_components=[1, 2], random_state=0, **settings)
    >>> axes = plot.selection(result)
    """
    axes = axes if axes is not None else _new_axes()
    table = {name: np.asarray(result.table_[name]) for name in result.table_}
    held = result.criterion == "heldout"
    value = table["log_likelihood"] if held else table[result.criterion]
    for name in dict.fromkeys(table["prior"]):
        mine = table["prior"] == name
        # The error is that of the difference from the best, as differences are compared.
        error = table["behind_error"][mine] if held else None
        sizes = table["n_components"][mine]
        axes.errorbar(sizes, value[mine], error, fmt="o-", markersize=4, capsize=3, label=str(name))
    best = int(np.nanargmax(value) if held else np.nanargmin(value))
    chosen = (table["n_components"][best], value[best])
    axes.plot(*chosen, "o", markersize=13, fillstyle="none", color="black", label="chosen")
    axes.set_xlabel("number of components")
    by_criterion = f"{result.criterion.upper()} (the lower the better)"
    axes.set_ylabel("mean log likelihood of held-out rows" if held else by_criterion)
    few = np.ptp(table["n_components"]) <= 20
    axes.set_xticks(np.unique(table["n_components"]) if few else axes.get_xticks())
    axes.legend(title="prior", fontsize=8)
    return axes


def _new_axes(width: float = 6.0) -> Axes:
    """Return the axes of a new figure."""
    axes: Axes = new_figure(width, 3.5).subplots()
    return axes


def _legend_above(axes: Axes) -> None:
    """Put the legend above the axes, at the right."""
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
