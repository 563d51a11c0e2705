"""The result of a comparison of groups, as numbers, as text and as a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from noisyica.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class PairwiseComparison:
    """Which pairs of groups differ in which component of the first fit.

    With m pairs of groups, each array is (m, p).

    Attributes
    ----------
    labels : tuple of pairs
        The two labels of each pair; differences are those of the second from the first.
    differences : array (m, p)
        The differences of the groups' mean coefficients, given covariates.
    cohens_d : array (m, p)
        The same in standard deviations of the residuals: within groups, given covariates.
    statistics : array (m, p)
        Student's t of each difference, by the residuals of all groups that are compared.
    p_values : array (m, p)
        The permutation p-value of each |t| by itself.
    p_values_adjusted : array (m, p)
        The same p-values, adjusted for the number of pairs and components (the largest |t| of all).
    """

    labels: tuple[tuple[Any, Any], ...]
    differences: np.ndarray
    cohens_d: np.ndarray
    statistics: np.ndarray
    p_values: np.ndarray
    p_values_adjusted: np.ndarray


@dataclass(frozen=True, repr=False, eq=False)
class GroupComparison:
    """The result of :func:`compare_groups`.

    Attributes
    ----------
    labels : tuple
        The labels of the k groups.
    sizes : tuple of int
        The number of rows of each group.
    covariates : tuple of str
        The columns of covariates in the linear model: numbers by their name, categories as
        ``name=category``, each against the first category.
    p_values : array (n_refits, n_draws)
        The permutation p-value of the joint test of all components for each posterior draw of the
        coefficients. Without covariates, each one is valid by itself.
    statistics : array (n_refits, n_draws)
        The statistic of each draw: Hotelling's T^2 for two groups, Pillai's trace for more.
    p_value_of_mean : float
        The permutation p-value of the same statistic on the posterior means of the coefficients:
        one p-value for all that was done. It is valid without covariates, and approximately so with
        them. With several refits, the statistic is the mean over refits of Pillai's trace, which is
        T^2 / (T^2 + residual degrees of freedom) for two groups.
    statistics_of_mean : array (n_refits,)
        The statistic on the posterior means.
    differences : array (p,), or (m, p) for the m pairs of more than two groups
        The differences of the groups' posterior mean coefficients in the first fit, given
        covariates: of the second group from the first, or as in ``pairwise``. (The components of
        other fits have another order.)
    component_statistics : array (p,)
        Student's t of each component in the first fit for two groups, Fisher's F for more.
    component_p_values : array (p,)
        The permutation p-value of each |t| or F by itself, not adjusted for the number of
        components.
    component_p_values_adjusted : array (p,)
        The same p-values, adjusted for there being p of them (Westfall and Young's max-|t|): if the
        components with at most 0.05 are called different, the probability that any is called so by
        chance is at most 0.05.
    partial_eta_squared : array (p,)
        The effect size of each component: the share that groups account for of the squared
        differences from the mean that covariates leave.
    means : array (k, p)
        The groups' mean coefficients in the first fit, at the mean of the covariates.
    standard_errors : array (k, p)
        The standard errors of these means.
    residual_deviations : array (p,)
        The standard deviation of each coefficient within groups, given covariates.
    pairwise : PairwiseComparison
        The differences between each two groups.
    models : tuple of Model
        The fitted models, one for each refit.
    n_permutations : int
        The number of permutations: as many as there are, if that is less than was asked for.
    exact : bool
        Whether these are all permutations that there are.
    """

    labels: tuple[Any, ...]
    sizes: tuple[int, ...]
    covariates: tuple[str, ...]
    p_values: np.ndarray
    statistics: np.ndarray
    p_value_of_mean: float
    statistics_of_mean: np.ndarray
    differences: np.ndarray
    component_statistics: np.ndarray
    component_p_values: np.ndarray
    component_p_values_adjusted: np.ndarray
    partial_eta_squared: np.ndarray
    means: np.ndarray
    standard_errors: np.ndarray
    residual_deviations: np.ndarray
    pairwise: PairwiseComparison
    models: tuple[Model, ...]
    n_permutations: int
    exact: bool

    @property
    def p_value(self) -> float:
        """The mean of the p-values over draws and refits, which is the paper's summary.

        It is not a p-value in general; twice it is one.
        """
        return float(self.p_values.mean())

    @property
    def p_value_std(self) -> float:
        """The standard deviation of the p-values over the draws of a fit; NaN for one draw.

        With several refits, it is the root mean square over them.
        """
        return float(np.sqrt(np.square([_deviation(row) for row in self.p_values]).mean()))

    @property
    def p_value_std_refits(self) -> float:
        """The standard deviation over refits of their mean p-values; NaN for one refit."""
        return _deviation(self.p_values.mean(1))

    def __repr__(self) -> str:
        refits, draws = self.p_values.shape
        groups = ", ".join(
            f"{label!r}: {size} rows" for label, size in zip(self.labels, self.sizes, strict=True)
        )
        given = f"given {', '.join(self.covariates)}, " if self.covariates else ""
        spreads = [f"{self.p_value_std:.2g} over {draws} draws"] if draws > 1 else []
        spreads += [f"{self.p_value_std_refits:.2g} over {refits} refits"] if refits > 1 else []
        spread = f" (sd {', '.join(spreads)})" if spreads else ""
        return (
            f"GroupComparison({groups}, {given}"
            f"p_value={self.p_value:.3g}{spread}, p_value_of_mean={self.p_value_of_mean:.3g}, "
            f"{self.n_permutations} permutations{' (all)' if self.exact else ''})"
        )

    def table(self) -> str:
        """The components of the first fit as lines of text.

        For two groups, the columns are the difference, t, its p-value, the p-value adjusted for the
        number of components, and Cohen's d. For more, they are F, its p-values and partial eta
        squared, and a second table has the differences between each two groups, whose adjusted
        p-values are adjusted for the number of pairs, too.
        """
        pairs = [self._differences(number) for number in range(len(self.pairwise.labels))]
        if len(pairs) == 1:
            return pairs[0]
        components = _table(
            {
                "F": ("8.3f", self.component_statistics),
                "p": ("8.4f", self.component_p_values),
                "adjusted p": ("10.4f", self.component_p_values_adjusted),
                "eta squared": ("11.3f", self.partial_eta_squared),
            }
        )
        titles = [f"{other} - {one}:" for one, other in self.pairwise.labels]
        return "\n".join(
            [components, *(f"\n{title}\n{pair}" for title, pair in zip(titles, pairs, strict=True))]
        )

    def _differences(self, number: int) -> str:
        """Return the table of a pair of groups."""
        pairs = self.pairwise
        return _table(
            {
                "difference": ("12.4g", pairs.differences[number]),
                "t": ("8.3f", pairs.statistics[number]),
                "p": ("8.4f", pairs.p_values[number]),
                "adjusted p": ("10.4f", pairs.p_values_adjusted[number]),
                "Cohen's d": ("9.3f", pairs.cohens_d[number]),
            }
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the groups' mean coefficients of each component, with their errors.

        See :func:`noisyica.plot.groups`.
        """
        from noisyica import plot

        return plot.groups(self, axes)


def _deviation(values: np.ndarray) -> float:
    """Return the standard deviation of the values; NaN if there is only one."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _table(columns: dict[str, tuple[str, np.ndarray]]) -> str:
    """Return a line of headings and a line for each component, by the format of each column."""
    widths = [int(format_.split(".")[0]) for format_, _ in columns.values()]
    heads = [f"{name:>{width}}" for name, width in zip(columns, widths, strict=True)]
    cells = [[f"{value:{format_}}" for value in values] for format_, values in columns.values()]
    lines = [f"{j:9d} {' '.join(line)}" for j, line in enumerate(zip(*cells, strict=True))]
    return "\n".join([f"{'component':>9} {' '.join(heads)}", *lines])
