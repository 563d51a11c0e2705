"""Whether groups of rows differ in their coefficients: tests over posterior draws and refits.

The test itself is a permutation test: Hotelling's T^2 for two groups
(:mod:`noisyica.analysis.hotelling`), Pillai's trace for more of them or with covariates
(:mod:`noisyica.analysis.manova`).
"""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state

from noisyica.analysis.comparison import GroupComparison, PairwiseComparison
from noisyica.analysis.covariates import design
from noisyica.analysis.hotelling import hotelling
from noisyica.analysis.labels import grouped_rows
from noisyica.analysis.manova import pillai
from noisyica.analysis.permuted import Permuted, together
from noisyica.analysis.refits import refit, report
from noisyica.arguments import RandomState, check_counts
from noisyica.data.sparse_rows import by_rows, is_sparse
from noisyica.estimator import NoisyICA
from noisyica.model import Model
from noisyica.progress import Reporter
from noisyica.rows.held import held
from noisyica.rows.numbers import plain_numbers

SWEEPS = 10
"""The number of sweeps from one posterior draw to the next. With too few, the spread over draws
would be that of a slow chain and not that of the posterior."""


def compare_groups(
    X: Any,
    groups: Any,
    estimator: NoisyICA | Model | None = None,
    *,
    between: tuple[Any, ...] | None = None,
    covariates: Any = None,
    n_draws: int = 50,
    n_refits: int = 1,
    n_permutations: int = 1000,
    random_state: RandomState = None,
    verbose: bool = True,
) -> GroupComparison:
    """Test whether two or more groups of rows have the same coefficients, also given covariates.

    The test is Hotelling's T^2 of the coefficients (for more than two groups, Pillai's trace of a
    multivariate analysis of variance), with a p-value by permutation, for each of ``n_draws`` draws
    from the posterior. The model is learnt from all rows, whatever their groups and covariates.

    Parameters
    ----------
    X : array (n, d)
        Missing entries are NaN. It may be a sparse matrix of SciPy.
    groups : array (n,)
        A label for each row: strings, numbers or booleans.
    between : tuple of labels, optional
        Which groups to compare, where there are more of them; differences are those of later ones
        from earlier ones. The model is learnt from all rows, also from those of other groups and
        those without a label (None or NaN).
    covariates : array (n,) or (n, k), DataFrame or dict of arrays, optional
        What else may explain the coefficients of a row, such as age or the scanner. Groups are
        compared at equal covariates, by a linear model. Numbers enter as numbers; text, booleans
        and pandas' categories are categories. (If numbers stand for categories, convert them to
        text. In a two-dimensional array of text, columns that are all numbers are numbers: give
        categories in a dict or a DataFrame.) They are centred.
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
        The number of random permutations of the labels; with covariates, of the residuals that the
        covariates leave. The least possible p-value is then 1 / (n_permutations + 1). If there are
        no more permutations than that, all are used, and it is 1 / (their number).
    random_state : int, RandomState or None
        Decides everything random: the permutations, which are the same for all draws, the draws,
        and the random seeds of refits.
    verbose : bool
        Show progress on a terminal when it takes more than a second.

    Returns
    -------
    GroupComparison
        ``p_value`` (mean over draws and refits) and ``p_value_std``, ``p_value_of_mean``, tests of
        the components and of each two groups, effect sizes, and the rest. ``print(result.table())``
        shows the components, and ``result.plot()`` draws the groups' means.

    Notes
    -----
    The p-values assume that the rows are independent of each other (not several of one person, for
    example), so that labels can be permuted; and that entries, if any are, are missing at random
    and in all groups alike.

    With covariates, residuals of the model without groups are permuted (Freedman and Lane, 1983).
    The p-values are then exact for many rows and very nearly so for few. Covariates must act on the
    coefficients linearly and in all groups alike.

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

    Three groups, given the age of each row, with the same model:

    >>> age = np.random.default_rng(1).normal(50, 10, size=60)
    >>> stages = np.repeat(["none", "mild", "severe"], [30, 15, 15])
    >>> given_age = compare_groups(
    ...     X, stages, result.models[0], covariates={"age": age}, n_draws=10, random_state=0
    ... )
    >>> given_age.pairwise.labels
    (('mild', 'none'), ('mild', 'severe'), ('none', 'severe'))
    >>> given_age.p_value < 0.01
    True
    """
    check_counts(n_draws=(n_draws, 1), n_refits=(n_refits, 1), n_permutations=(n_permutations, 1))
    if estimator is None:
        estimator = NoisyICA(random_state=random_state, verbose=verbose)
    _check_estimator(estimator, n_refits)
    X, rows = _rows(X)
    labels, compared, group = grouped_rows(groups, rows.shape[0], between)
    names, columns = design(covariates, compared, group)
    rng = check_random_state(random_state)
    # one seed for all tests: their p-values differ by the draws, not by the permutations
    permutation_seed = int(rng.randint(2**31 - 1))
    fit_seeds = rng.randint(2**31 - 1, size=(n_refits, 2)).tolist()
    chosen = X if compared.all() else rows[compared]
    fits = _learn(estimator, X, chosen, n_draws, fit_seeds, columns.shape[1] + len(labels), verbose)
    tests = Tests(group, columns, n_permutations, permutation_seed)
    return _comparison(fits, tests, labels, names)


def _comparison(
    fits: list[Fit], tests: Tests, labels: tuple[Any, ...], names: tuple[str, ...]
) -> GroupComparison:
    """Return what the tests say of the draws and the means of each fit."""
    means = [fit.means for fit in fits]
    of_draws = tests.groups([draw for fit in fits for draw in fit.draws])
    of_means = tests.groups(means)
    of_components = tests.groups(list(means[0].T[:, :, None]))
    model = linear_model(means[0], tests.group, tests.columns)
    pairwise = _pairs(tests, means[0], labels, model, of_components)
    two = len(labels) == 2
    return GroupComparison(
        labels=labels,
        sizes=tuple(np.bincount(tests.group).tolist()),
        covariates=names,
        p_values=of_draws.p_values.reshape(len(fits), -1),
        statistics=of_draws.statistics.reshape(len(fits), -1),
        p_value_of_mean=of_means.p_value_of_average,
        statistics_of_mean=of_means.statistics,
        differences=pairwise.differences[0] if two else pairwise.differences,
        component_statistics=pairwise.statistics[0] if two else of_components.f_statistics,
        component_p_values=of_components.p_values,
        component_p_values_adjusted=of_components.adjusted_p_values,
        partial_eta_squared=of_components.shares,
        means=model.means,
        standard_errors=model.standard_errors,
        residual_deviations=model.deviations,
        pairwise=pairwise,
        models=tuple(fit.model for fit in fits),
        n_permutations=len(of_draws.null),
        exact=of_draws.exact,
    )


def _rows(X: Any) -> tuple[Any, Any]:
    """Return X, and its rows in a form of which some can be chosen."""
    if is_sparse(X):
        X = by_rows(X)
        return X, X
    elsewhere = held(X)
    if elsewhere is not None:  # rows are read when they are needed
        return X, elsewhere.floats()
    X = plain_numbers(X)
    return X, check_array(X, dtype=np.float64, input_name="X", ensure_all_finite="allow-nan")


# ----------------------------------------------------------------------------------- the tests


class Tests(NamedTuple):
    """The groups and covariates of the rows, and how they are permuted."""

    group: np.ndarray  # (n,)  the number of each row's group
    columns: np.ndarray  # (n, c)  covariates
    n_permutations: int
    seed: int

    def groups(self, coefficients: list[np.ndarray]) -> Permuted:
        """Test whether all groups are alike in each of one or more sets of coefficients."""
        if not self.columns.shape[1] and self.group.max() == 1:
            return hotelling(coefficients, self.group == 1, self.n_permutations, self.seed)
        tested = dummies(self.group)[:, 1:]
        return pillai(coefficients, tested, self.columns, self.n_permutations, self.seed)

    def pair(self, coefficients: list[np.ndarray], one: int, other: int) -> Permuted:
        """Test whether two groups are alike, where the others may differ from them.

        The reduced model has one mean for both, and a mean of each other group.
        """
        inside = dummies(self.group)
        reduced = np.column_stack([self.columns, np.delete(inside, [one, other], axis=1)])
        tested = inside[:, [other]]
        return pillai(coefficients, tested, reduced, self.n_permutations, self.seed)


def dummies(group: np.ndarray) -> np.ndarray:
    """Return which group each row is in, as zeros and ones (n, k)."""
    return np.eye(int(group.max()) + 1)[group]


class LinearModel(NamedTuple):
    """The means of groups at the mean of the covariates, by least squares."""

    means: np.ndarray  # (k, p)
    standard_errors: np.ndarray  # (k, p)
    deviations: np.ndarray  # (p,)  of the residuals


def linear_model(coefficients: np.ndarray, group: np.ndarray, columns: np.ndarray) -> LinearModel:
    """Return the means of the groups, given centred covariates."""
    inside = dummies(group)
    k = inside.shape[1]
    X = np.column_stack([inside, columns])
    effects = np.linalg.lstsq(X, coefficients, rcond=None)[0]
    squares = np.square(coefficients - X @ effects).sum(0)
    deviations = np.sqrt(squares / (len(X) - X.shape[1]))
    lengths = np.sqrt(np.diag(np.linalg.inv(X.T @ X))[:k])
    return LinearModel(effects[:k], lengths[:, None] * deviations, deviations)


def _pairs(
    tests: Tests,
    means: np.ndarray,
    labels: tuple[Any, ...],
    model: LinearModel,
    of_components: Permuted,
) -> PairwiseComparison:
    """Compare each two groups in each component; two groups are those of ``of_components``."""
    pairs = list(itertools.combinations(range(len(labels)), 2))
    if len(pairs) == 1 and not tests.columns.shape[1]:
        second = tests.group == 1
        differences = (means[second].mean(0) - means[~second].mean(0))[None]
    else:
        differences = np.array([model.means[other] - model.means[one] for one, other in pairs])
    components = list(means.T[:, :, None])
    test = (
        of_components
        if len(pairs) == 1
        else together([tests.pair(components, *pair) for pair in pairs])
    )
    shape = differences.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        cohens_d = np.where(differences == 0, 0.0, differences / model.deviations)
    return PairwiseComparison(
        labels=tuple((labels[one], labels[other]) for one, other in pairs),
        differences=differences,
        cohens_d=cohens_d,
        statistics=np.sign(differences) * np.sqrt(test.statistics).reshape(shape),
        p_values=test.p_values.reshape(shape),
        p_values_adjusted=test.adjusted_p_values.reshape(shape),
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
    terms: int,
    verbose: bool,
) -> list[Fit]:
    """Return a fit to X for each pair of random seeds: one for the fit, and one for the draws.

    ``compared`` has the rows of X that are compared, whose coefficients are wanted. ``terms`` is
    the number of coefficients of a linear model of groups and covariates.
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
            _check_rows(means, terms)
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


def _check_rows(means: np.ndarray, terms: int) -> None:
    """Raise a ValueError if there are too few rows for the statistic to be defined."""
    n, p = means.shape
    if n < p + terms:
        known = "" if terms == 2 else f" and {terms} groups and covariates"
        raise ValueError(
            f"{n} rows are too few for {p} components{known}: any groups of them differ. The test "
            f"needs at least {p + terms} rows."
        )
