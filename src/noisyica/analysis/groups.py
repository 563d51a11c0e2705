r"""Do two groups of rows differ in their coefficients? Hotelling's T^2 with a permutation p-value, over posterior draws and refits.

**One number a permutation.** With n0 + n1 = n rows, c = n0 n1 / n, the difference d of the group means and the scatter S within the
groups, T^2 = (n - 2) c d' S^-1 d. The total scatter is V = S + c d d', and by Sherman and Morrison's formula

    T^2 = (n - 2) q / (1 - q),    q = c d' V^-1 d,

q being the share, from 0 to 1, of the whitened scatter that lies between the groups. V knows no labels: it is the same for all
permutations, so the coefficients are whitened by it once (U, with orthonormal columns of mean zero). The sums of U's rows in the two
groups are s and -s, whence

    d = s n / (n0 n1),    q = |s|^2 / c,

and T^2, which increases with q, has the p-value of q. A permutation costs a sum of n0 rows, and all of them one product of matrices.
The same holds for one coefficient: U is then its values, centred and of length 1, and T^2 the square of Student's t.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state

from noisyica.estimator import NoisyICA
from noisyica.model import Model, RandomState, check_counts
from noisyica.progress import Reporter

SWEEPS = 10
"""From one posterior draw to the next, so that the spread over draws is the posterior's and not that of a slow chain."""
NUMBERS = 2**22
"""Entries of the matrices of permuted labels, and of sums over them, that are held at a time."""
TIE = 1e-12
"""Values of q this near to each other are equal: permutations that exchange equal rows, summed in another order."""


@dataclass(frozen=True, repr=False, eq=False)
class GroupComparison:
    """What :func:`compare_groups` found.

    Attributes
    ----------
    labels : tuple
        The two labels; differences are those of the second from the first.
    sizes : tuple of int
        Rows of each.
    p_values : array (n_refits, n_draws)
        The permutation p-value of Hotelling's T^2 for each posterior draw of the coefficients. Each one is valid by itself.
    statistics : array (n_refits, n_draws)
        The T^2.
    p_value_of_mean : float
        The permutation p-value of T^2 on the posterior means of the coefficients: one valid p-value for all that was done. With several
        refits, the statistic is the mean over them of T^2 / (T^2 + n - 2).
    statistics_of_mean : array (n_refits,)
        T^2 on the posterior means.
    differences : array (p,)
        Differences of the groups' posterior mean coefficients, in the first fit. (The components of others have another order.)
    component_statistics : array (p,)
        Student's t of each.
    component_p_values : array (p,)
        The permutation p-value of each |t|, by itself: with p components look at the next.
    component_p_values_adjusted : array (p,)
        The same, adjusted for there being p of them (Westfall and Young's max-|t|): if those at most 0.05 are called different, the
        probability that any is called so by chance is at most 0.05.
    models : tuple of Model
        The fitted models, one for each refit.
    n_permutations : int
        As many as there are, where that is less than was asked for.
    exact : bool
        Whether these are all there are.
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
        """Mean of the p-values over draws and refits, the paper's summary. (Not a p-value in general; twice it is a bound of one.)"""
        return float(self.p_values.mean())

    @property
    def p_value_std(self) -> float:
        """Standard deviation of the p-values over the draws of a fit (root mean square over refits); NaN for one draw."""
        return float(np.sqrt(np.square([_deviation(row) for row in self.p_values]).mean()))

    @property
    def p_value_std_refits(self) -> float:
        """Standard deviation over refits of their mean p-values; NaN for one."""
        return _deviation(self.p_values.mean(1))

    def __repr__(self) -> str:
        (first, second), (n0, n1), (refits, draws) = self.labels, self.sizes, self.p_values.shape
        spreads = [f"{self.p_value_std:.2g} over {draws} draws"] if draws > 1 else []
        spreads += [f"{self.p_value_std_refits:.2g} over {refits} refits"] if refits > 1 else []
        spread = f" (sd {', '.join(spreads)})" if spreads else ""
        return (
            f"GroupComparison({first!r}: {n0} rows, {second!r}: {n1} rows, p_value={self.p_value:.3g}{spread}, "
            f"p_value_of_mean={self.p_value_of_mean:.3g}, {self.n_permutations} permutations{' (all)' if self.exact else ''})"
        )

    def table(self) -> str:
        """The components of the first fit as lines of text: difference, t, p-value, and p-value adjusted for their number."""
        columns = (
            self.differences,
            self.component_statistics,
            self.component_p_values,
            self.component_p_values_adjusted,
        )
        lines = [
            f"{j:9d} {a:12.4g} {b:8.3f} {c:8.4f} {d:10.4f}"
            for j, (a, b, c, d) in enumerate(zip(*columns, strict=True))
        ]
        return "\n".join(
            [f"{'component':>9} {'difference':>12} {'t':>8} {'p':>8} {'adjusted p':>10}", *lines]
        )


def compare_groups(
    X: Any,
    groups: Any,
    estimator: NoisyICA | Model | None = None,
    *,
    n_draws: int = 50,
    n_refits: int = 1,
    n_permutations: int = 1000,
    random_state: RandomState = None,
    verbose: bool = True,
) -> GroupComparison:
    """Test whether two groups of rows have the same coefficients.

    Hotelling's T^2 of the coefficients, with a p-value by permutation of the labels, for each of ``n_draws`` draws from the posterior. The
    model is learnt from all rows, whatever their labels.

    Parameters
    ----------
    X : array (n, d)
        Missing entries are NaN.
    groups : array (n,)
        A label for each row, of two kinds: strings, numbers or booleans.
    estimator : NoisyICA or Model, optional
        By default ``NoisyICA(random_state=random_state)``. If it is fitted (or a Model) and ``n_refits`` is 1 it is used as it is; the
        p-values are then valid if it was not fitted to one group more than to the other. Else clones are fitted to X.
    n_draws : int
        Posterior draws of the coefficients for each fit.
    n_refits : int
        Fits. The first has the estimator's own ``random_state`` (if it has one), the others have seeds of their own.
    n_permutations : int
        Random permutations of the labels; all, if there are no more than that. The least p-value is 1 / (n_permutations + 1).
    random_state : int, RandomState or None
        Decides everything random: permutations, the same for all draws; draws; and the seeds of refits.
    verbose : bool
        Show progress on a terminal when it takes more than a second.

    Returns
    -------
    GroupComparison
        ``p_value`` (mean over draws and refits) and ``p_value_std``, ``p_value_of_mean``, tests of the components, and the rest.

    Notes
    -----
    Where coefficients are linearly dependent (a component that is off in all rows) the inverse of their scatter is the pseudo-inverse: what
    is constant does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, NoisyICA, compare_groups
    >>> A = np.random.default_rng(0).normal(size=(12, 2))
    >>> X, _ = Model(A, noise_variance=0.1, prior="bg").sample(60, random_state=0)
    >>> groups = np.repeat(["control", "patient"], 30)
    >>> X[30:] += 1.5 * A[:, 0]  # patients have more of the first component
    >>> result = compare_groups(X, groups, NoisyICA(2, prior="bg", max_iter=60, tol=0, random_state=0), n_draws=10, random_state=0)
    >>> result.p_values.shape
    (1, 10)
    >>> result.p_value < 0.01
    True
    """
    check_counts(n_draws=(n_draws, 1), n_refits=(n_refits, 1), n_permutations=(n_permutations, 1))
    if estimator is None:
        estimator = NoisyICA(random_state=random_state, verbose=verbose)
    _check_estimator(estimator, n_refits)
    n = len(check_array(X, dtype=np.float64, input_name="X", ensure_all_finite="allow-nan"))
    labels, second = _two_groups(groups, n)
    rng = check_random_state(random_state)
    how = (
        second,
        n_permutations,
        int(rng.randint(2**31 - 1)),
    )  # one seed: p-values differ by the draws, not by the permutations
    fits = _learn(
        estimator, X, n_draws, rng.randint(2**31 - 1, size=(n_refits, 2)).tolist(), verbose
    )
    means = [fit.means for fit in fits]
    of_draws = hotelling([draw for fit in fits for draw in fit.draws], *how)
    of_means = hotelling(means, *how)
    components = hotelling(list(means[0].T[:, :, None]), *how)
    differences = means[0][second].mean(0) - means[0][~second].mean(0)
    return GroupComparison(
        labels=labels,
        sizes=(int((~second).sum()), int(second.sum())),
        p_values=of_draws.p_values.reshape(n_refits, n_draws),
        statistics=of_draws.statistics.reshape(n_refits, n_draws),
        p_value_of_mean=of_means.p_value_of_average,
        statistics_of_mean=of_means.statistics,
        differences=differences,
        component_statistics=np.sign(differences) * np.sqrt(components.statistics),
        component_p_values=components.p_values,
        component_p_values_adjusted=components.adjusted_p_values,
        models=tuple(fit.model for fit in fits),
        n_permutations=len(of_draws.null),
        exact=of_draws.exact,
    )


# ------------------------------------------------------------------------------------------------------------- the test


@dataclass(frozen=True, eq=False)
class Hotelling:
    """T^2 of several sets of coefficients of the same rows, with the same permutations of the labels for all.

    ``shares`` (k,) are q of the module's docstring, ``null`` (n_permutations, k) theirs under permuted labels; ``exact`` says that the
    permutations are all there are.
    """

    n: int
    shares: np.ndarray
    null: np.ndarray
    exact: bool

    @property
    def statistics(self) -> np.ndarray:
        """T^2, (k,); infinite where the groups are apart without any spread."""
        with np.errstate(divide="ignore"):
            return (self.n - 2) * self.shares / (1 - self.shares)

    @property
    def p_values(self) -> np.ndarray:
        """Of each set by itself, (k,)."""
        return self._p_values(self.shares, self.null)

    @property
    def p_value_of_average(self) -> float:
        """Of the average of the shares."""
        return float(self._p_values(self.shares.mean(), self.null.mean(1)))

    @property
    def adjusted_p_values(self) -> np.ndarray:
        """For the family of all k: each against the largest under permuted labels, (k,)."""
        return self._p_values(self.shares, self.null.max(1, keepdims=True))

    def _p_values(self, observed: Any, null: np.ndarray) -> np.ndarray:
        """The part of the permutations that do as well; the observed one counts with random ones, and is among all."""
        extra = 0 if self.exact else 1
        return (np.sum(null >= observed - TIE, axis=0) + extra) / (len(null) + extra)


def hotelling(
    coefficients: Sequence[np.ndarray], second: np.ndarray, n_permutations: int, seed: int
) -> Hotelling:
    """Compare the rows where ``second`` is true with the others, in each of several arrays (n, p) of coefficients."""
    n, n1 = len(second), int(second.sum())
    sets = [_whiten(one) for one in coefficients]
    whitened = np.concatenate(sets, axis=1)
    begins = np.cumsum([0, *(one.shape[1] for one in sets[:-1])])

    def shares(first: np.ndarray, rest: np.ndarray, axis: int) -> np.ndarray:
        in_first = np.zeros((*first.shape[:-1], n))
        np.put_along_axis(in_first, first, 1.0, axis=-1)
        squares = np.add.reduceat(np.square(in_first @ whitened), begins, axis=-1)
        return np.minimum(squares * n / (n1 * (n - n1)), 1.0)

    # SciPy permutes the numbers of the rows, not the rows: the permutations are made once for all arrays, and a sum over a group is a
    # product with zeros and ones, which BLAS does for all permutations at once. Its own p-values take for ties what is relatively near;
    # q needs an absolute bound
    found = scipy.stats.permutation_test(
        (np.flatnonzero(~second), np.flatnonzero(second)),
        shares,
        permutation_type="independent",
        vectorized=True,
        n_resamples=n_permutations,
        batch=max(1, NUMBERS // max(whitened.shape)),
        alternative="greater",
        random_state=np.random.default_rng(seed),
    )
    return Hotelling(
        n, found.statistic, found.null_distribution, exact=math.comb(n, n1) <= n_permutations
    )


def _whiten(coefficients: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the centred coefficients; zero for what is constant or a combination of others."""
    centred = coefficients - coefficients.mean(0)
    rounding = len(centred) * np.finfo(float).eps
    length = np.linalg.norm(centred, axis=0)
    varies = length > rounding * np.abs(coefficients).max(0)
    unit = np.where(
        varies, centred / np.where(varies, length, 1.0), 0.0
    )  # small units are not a lack of rank
    U, size, _ = np.linalg.svd(unit, full_matrices=False)
    return np.where(size > rounding * size[0], U, 0.0)


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


# ------------------------------------------------------------------------------------------------------------- the fits


class Fit(NamedTuple):
    """A model, and what it says of the rows' coefficients."""

    model: Model
    means: np.ndarray  # (n, p)
    draws: np.ndarray  # (n_draws, n, p)


def _learn(
    estimator: NoisyICA | Model, X: Any, n_draws: int, seeds: list[list[int]], verbose: bool
) -> list[Fit]:
    """A fit for each pair of seeds: of the fit, and of the draws."""
    steps = estimator.max_iter if isinstance(estimator, NoisyICA) else 1
    fits = []
    with Reporter("noisyica groups", len(seeds) * steps, bool(verbose)) as reporter:
        for i, (seed, draw_seed) in enumerate(seeds):
            tell = functools.partial(_tell, reporter, i * steps, f"fit {i + 1} of {len(seeds)}")
            if isinstance(estimator, Model):
                model, means = estimator, estimator.posterior_mean(X)
            else:
                as_is = len(seeds) == 1 and estimator.__sklearn_is_fitted__()
                fitted = estimator if as_is else _refit(estimator, X, seed, i == 0, tell)
                model, means = fitted.model_, fitted.transform(X)
            _check_rows(means)
            tell(steps)
            fits.append(
                Fit(
                    model,
                    means,
                    model.posterior_sample(X, n_draws, thin=SWEEPS, random_state=draw_seed),
                )
            )
    return fits


def _refit(
    estimator: NoisyICA, X: Any, seed: int, own_seed: bool, tell: Callable[[int], None]
) -> NoisyICA:
    """A clone, fitted to X with the given seed, or with its own if it may and has one."""
    new = clone(estimator)
    asked = new.callback

    def callback(iteration: int, model: Model) -> bool | None:
        tell(iteration)
        return asked(iteration, model) if asked is not None else None

    if new.random_state is None or not own_seed:
        new.set_params(random_state=seed)
    return new.set_params(verbose=False, callback=callback).fit(X)  # one progress line, not two


def _tell(reporter: Reporter, before: int, note: str, done: int) -> None:
    reporter.update(before + done, note)


# ------------------------------------------------------------------------------------------------------------ the checks


def _check_estimator(estimator: Any, n_refits: int) -> None:
    if not isinstance(estimator, (NoisyICA, Model)):
        raise TypeError(
            f"estimator must be a NoisyICA, such as NoisyICA(5, prior='bg'), or a Model; got {estimator!r}."
        )
    if isinstance(estimator, Model) and n_refits > 1:
        raise ValueError(
            "A Model has all its parameters and is not refitted: leave n_refits at 1, or give a NoisyICA."
        )


def _check_rows(means: np.ndarray) -> None:
    n, p = means.shape
    if n < p + 2:
        raise ValueError(
            f"{n} rows are too few for {p} components: any two groups of them differ. T^2 needs at least {p + 2} rows."
        )


def _two_groups(groups: Any, n: int) -> tuple[tuple[Any, Any], np.ndarray]:
    """The two labels, in order where they have one, and which rows have the second."""
    values = np.asarray(
        groups, dtype=object
    )  # NumPy makes the string "nan" of a NaN beside strings
    if values.shape != (n,):
        raise ValueError(
            f"groups must be {n} labels, one for each row of X; got shape {values.shape}."
        )
    missing = np.flatnonzero([_is_missing(value) for value in values])
    if missing.size:
        raise ValueError(
            f"groups has no label (None or NaN) in {missing.size} of its rows, such as row {missing[0]}: leave them out of X and groups."
        )
    kinds = list(dict.fromkeys(values))
    if len(kinds) == 1:
        raise ValueError(
            f"All labels of groups are {kinds[0]!r}: two groups are needed for a comparison."
        )
    if len(kinds) > 2:
        names = ", ".join(repr(kind) for kind in kinds[:5]) + (", ..." if len(kinds) > 5 else "")
        raise ValueError(
            f"groups has {len(kinds)} kinds of labels ({names}), but two can be compared. Choose them with a mask, "
            f"mask = np.isin(groups, [{kinds[0]!r}, {kinds[1]!r}]), and give X[mask] and groups[mask]; an estimator "
            f"that is fitted to all of X keeps what the other rows taught it."
        )
    first, other = _in_order(*kinds)
    second = np.array([value == other for value in values])
    for kind, size in ((first, (~second).sum()), (other, second.sum())):
        if size < 2:
            raise ValueError(f"Only one row has the label {kind!r}: each group needs at least two.")
    return (first, other), second


def _in_order(one: Any, other: Any) -> tuple[Any, Any]:
    try:
        return (other, one) if other < one else (one, other)
    except TypeError:  # a number and a string, say: as they come
        return one, other


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA does not know whether it equals itself
        return True
