"""Whether two groups of rows differ in their coefficients: tests over posterior draws and refits.

The test itself is Hotelling's T^2 with a permutation p-value (:mod:`noisyica.analysis.hotelling`).
"""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state

from noisyica.analysis.hotelling import hotelling
from noisyica.analysis.labels import two_groups
from noisyica.analysis.refits import refit, report
from noisyica.arguments import RandomState, check_counts
from noisyica.estimator import NoisyICA
from noisyica.model import Model
from noisyica.progress import Reporter
from noisyica.rows.numbers import plain_numbers

SWEEPS = 10
"""The number of sweeps from one posterior draw to the next. With too few, the spread over draws
would be that of a slow chain and not that of the posterior."""


@dataclass(frozen=True, repr=False, eq=False)
class GroupComparison:
    """The result of :func:`compare_groups`.

    Attributes
    ----------
    labels : tuple
        The two labels; differences are those of the second from the first.
    sizes : tuple of int
        The number of rows of each group.
    p_values : array (n_refits, n_draws)
        The permutation p-value of Hotelling's T^2 for each posterior draw of the coefficients. Each
        one is valid by itself.
    statistics : array (n_refits, n_draws)
        The T^2 of each draw.
    p_value_of_mean : float
        The permutation p-value of T^2 on the posterior means of the coefficients: one valid p-value
        for all that was done. With several refits, the statistic is the mean over refits of
        T^2 / (T^2 + n - 2).
    statistics_of_mean : array (n_refits,)
        The T^2 on the posterior means.
    differences : array (p,)
        The differences of the groups' posterior mean coefficients in the first fit. (The components
        of other fits have another order.)
    component_statistics : array (p,)
        Student's t of each component in the first fit.
    component_p_values : array (p,)
        The permutation p-value of each ``|t|``, not adjusted for the number of components.
    component_p_values_adjusted : array (p,)
        The same p-values, adjusted for there being p of them (Westfall and Young's ``max |t|``): if
        the components with at most 0.05 are called different, the probability that any is called
        so by chance is at most 0.05.
    models : tuple of Model
        The fitted models, one for each refit.
    n_permutations : int
        The number of permutations: as many as there are, if that is less than was asked for.
    exact : bool
        Whether these are all permutations that there are.
    """

    labels: tuple[Any, Any]
    sizes: tuple[int, int]
    p_values: np.ndarray
    statistics: np.ndarray
    p_value_of_mean: float
    statistics_of_mean: np.ndarray
    differences: np.ndarray
    component_statistics: np.ndarray
    component_p_values: np.ndarray
    component_p_values_adjusted: np.ndarray
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
        (first, second), (n0, n1), (refits, draws) = self.labels, self.sizes, self.p_values.shape
        spreads = [f"{self.p_value_std:.2g} over {draws} draws"] if draws > 1 else []
        spreads += [f"{self.p_value_std_refits:.2g} over {refits} refits"] if refits > 1 else []
        spread = f" (sd {', '.join(spreads)})" if spreads else ""
        return (
            f"GroupComparison({first!r}: {n0} rows, {second!r}: {n1} rows, "
            f"p_value={self.p_value:.3g}{spread}, p_value_of_mean={self.p_value_of_mean:.3g}, "
            f"{self.n_permutations} permutations{' (all)' if self.exact else ''})"
        )

    def table(self) -> str:
        """The components of the first fit as lines of text.

        The columns are the difference, t, its p-value, and the p-value adjusted for the number of
        components.
        """
        columns = (
            self.differences,
            self.component_statistics,
            self.component_p_values,
            self.component_p_values_adjusted,
        )
        lines = [
            f"{j:9d} {difference:12.4g} {t:8.3f} {p_value:8.4f} {adjusted:10.4f}"
            for j, (difference, t, p_value, adjusted) in enumerate(zip(*columns, strict=True))
        ]
        return "\n".join(
            [f"{'component':>9} {'difference':>12} {'t':>8} {'p':>8} {'adjusted p':>10}", *lines]
        )


def _deviation(values: np.ndarray) -> float:
    """Return the standard deviation of the values; NaN if there is only one."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def compare_groups(
    X: Any,
    groups: Any,
    estimator: NoisyICA | Model | None = None,
    *,
    between: tuple[Any, Any] | None = None,
    n_draws: int = 50,
    n_refits: int = 1,
    n_permutations: int = 1000,
    random_state: RandomState = None,
    verbose: bool = True,
) -> GroupComparison:
    """Test whether two groups of rows have the same coefficients.

    The test is Hotelling's T^2 of the coefficients, with a p-value by permutation of the labels,
    for each of ``n_draws`` draws from the posterior. The model is learnt from all rows, whatever
    their labels.

    Parameters
    ----------
    X : array (n, d)
        Missing entries are NaN.
    groups : array (n,)
        A label for each row: strings, numbers or booleans.
    between : pair of labels, optional
        Which two groups to compare, where there are more of them; differences are those of the
        second from the first. The model is learnt from all rows, also from those of other groups
        and those without a label (None or NaN).
    estimator : NoisyICA or Model, optional
        By default ``NoisyICA(random_state=random_state)``. If it is fitted (or a Model) and
        ``n_refits`` is 1 it is used as it is; the p-values are then valid if it was not fitted to
        one group more than to the other. Otherwise clones of it are fitted to X.
    n_draws : int
        The number of posterior draws of the coefficients for each fit.
    n_refits : int
        The number of fits. The first has the estimator's own ``random_state`` (if it has one), the
        others have random seeds of their own.
    n_permutations : int
        The number of random permutations of the labels. If there are no more than that, all are
        used. The least possible p-value is 1 / (n_permutations + 1).
    random_state : int, RandomState or None
        Decides everything random: the permutations, which are the same for all draws, the draws,
        and the random seeds of refits.
    verbose : bool
        Show progress on a terminal when it takes more than a second.

    Returns
    -------
    GroupComparison
        ``p_value`` (mean over draws and refits) and ``p_value_std``, ``p_value_of_mean``, tests of
        the components, and the rest.

    Notes
    -----
    The p-values assume that the rows are independent of each other (not several of one person, for
    example), so that labels can be permuted; and that entries, if any are, are missing at random
    and in both groups alike.

    If coefficients are linearly dependent (a component may be off in all rows), the inverse of
    their scatter is the pseudo-inverse: what is constant does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, NoisyICA, compare_groups
    >>> A = np.random.default_rng(0).normal(size=(12, 2))
    >>> X, _ = Model(A, noise_variance=0.1, prior="bg").sample(60, random_state=0)
    >>> groups = np.repeat(["control", "patient"], 30)
    >>> X[30:] += 1.5 * A[:, 0]  # patients have more of the first component
    >>> ica = NoisyICA(2, prior="bg", max_iter=60, tol=0, random_state=0)
    >>> result = compare_groups(X, groups, ica, n_draws=10, random_state=0)
    >>> result.p_values.shape
    (1, 10)
    >>> result.p_value < 0.01
    True
    """
    check_counts(n_draws=(n_draws, 1), n_refits=(n_refits, 1), n_permutations=(n_permutations, 1))
    if estimator is None:
        estimator = NoisyICA(random_state=random_state, verbose=verbose)
    _check_estimator(estimator, n_refits)
    X = plain_numbers(X)
    rows = check_array(X, dtype=np.float64, input_name="X", ensure_all_finite="allow-nan")
    labels, compared, second = two_groups(groups, len(rows), between)
    rng = check_random_state(random_state)
    # one seed for all tests: their p-values differ by the draws, not by the permutations
    permutation_seed = int(rng.randint(2**31 - 1))
    fit_seeds = rng.randint(2**31 - 1, size=(n_refits, 2)).tolist()
    chosen = X if compared.all() else rows[compared]
    fits = _learn(estimator, X, chosen, n_draws, fit_seeds, verbose)
    means = [fit.means for fit in fits]
    test = functools.partial(
        hotelling, second=second, n_permutations=n_permutations, seed=permutation_seed
    )
    of_draws = test([draw for fit in fits for draw in fit.draws])
    of_means = test(means)
    of_components = test(list(means[0].T[:, :, None]))
    differences = means[0][second].mean(0) - means[0][~second].mean(0)
    return GroupComparison(
        labels=labels,
        sizes=(int((~second).sum()), int(second.sum())),
        p_values=of_draws.p_values.reshape(n_refits, n_draws),
        statistics=of_draws.statistics.reshape(n_refits, n_draws),
        p_value_of_mean=of_means.p_value_of_average,
        statistics_of_mean=of_means.statistics,
        differences=differences,
        component_statistics=np.sign(differences) * np.sqrt(of_components.statistics),
        component_p_values=of_components.p_values,
        component_p_values_adjusted=of_components.adjusted_p_values,
        models=tuple(fit.model for fit in fits),
        n_permutations=len(of_draws.null),
        exact=of_draws.exact,
    )


# ------------------------------------------------------------------------------------ the fits


class Fit(NamedTuple):
    """A model, and the coefficients of the rows that are compared."""

    model: Model
    means: np.ndarray  # (n, p)  of the posterior
    draws: np.ndarray  # (n_draws, n, p)  from the posterior


def _learn(
    estimator: NoisyICA | Model,
    X: Any,
    compared: Any,
    n_draws: int,
    seeds: list[list[int]],
    verbose: bool,
) -> list[Fit]:
    """Return a fit to X for each pair of random seeds: one for the fit, and one for the draws.

    ``compared`` has the rows of X that are compared, whose coefficients are wanted.
    """
    steps = estimator.max_iter if isinstance(estimator, NoisyICA) else 1
    fits = []
    with Reporter("noisyica groups", len(seeds) * steps, bool(verbose)) as reporter:
        for i, (seed, draw_seed) in enumerate(seeds):
            tell = functools.partial(report, reporter, i * steps, f"fit {i + 1} of {len(seeds)}")
            if isinstance(estimator, Model):
                model, means = estimator, estimator.posterior_mean(compared)
            else:
                as_is = len(seeds) == 1 and estimator.__sklearn_is_fitted__()
                fitted = estimator if as_is else refit(estimator, X, seed, i == 0, tell)
                model, means = fitted.model_, _coefficients(fitted, compared)
            _check_rows(means)
            tell(steps)
            draws = model.posterior_sample(compared, n_draws, thin=SWEEPS, random_state=draw_seed)
            fits.append(Fit(model, means, draws))
    return fits


def _coefficients(estimator: NoisyICA, X: Any) -> np.ndarray:
    """Return the coefficients of X, whose columns have no names if it has some rows only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return np.asarray(estimator.transform(X))


# ---------------------------------------------------------------------------------- the checks


def _check_estimator(estimator: Any, n_refits: int) -> None:
    """Raise an error if the estimator is none, or cannot be refitted and has to be."""
    if not isinstance(estimator, (NoisyICA, Model)):
        raise TypeError(
            "estimator must be a NoisyICA, such as NoisyICA(5, prior='bg'), or a Model; "
            f"got {estimator!r}."
        )
    if isinstance(estimator, Model) and n_refits > 1:
        raise ValueError(
            "A Model has all its parameters and is not refitted: leave n_refits at 1, or give a "
            "NoisyICA."
        )


def _check_rows(means: np.ndarray) -> None:
    """Raise a ValueError if there are too few rows for T^2 to be defined."""
    n, p = means.shape
    if n < p + 2:
        raise ValueError(
            f"{n} rows are too few for {p} components: any two groups of them differ. T^2 needs at "
            f"least {p + 2} rows."
        )
