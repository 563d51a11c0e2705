"""The choice of the number of components and of the prior.

Fits of all combinations are compared by AIC, BIC or the likelihood of rows held out.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.utils import check_array

from noisyica import priors as _priors
from noisyica.arguments import RandomState
from noisyica.estimator import NoisyICA
from noisyica.laws import Law
from noisyica.priors import Prior
from noisyica.progress import Reporter
from noisyica.rows.numbers import plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CRITERIA = ("bic", "aic", "heldout")


class Selection:
    """The result of :func:`select`.

    Attributes
    ----------
    best_ : NoisyICA
        The winner, fitted to all rows.
    table_ : pandas.DataFrame, or dict of arrays where pandas is not installed
        A line for each fit: ``prior``, ``n_components``, ``log_likelihood`` (mean over rows; for
        "heldout", over rows held out), ``standard_error`` (of that mean, by the sampling of
        coefficients; 0 where it is exact), the number of ``parameters``, ``aic`` and ``bic``, or
        how far ``behind`` the best one the likelihood is, with its standard error over rows
        (``behind_error``), ``noise_variance``, ``converged``, and the prior's parameters that are
        single numbers.
    edge_ : {"largest", "smallest"} or None
        Whether the best number of components is the largest or the smallest of those tried, beyond
        which a better one may lie. 1 is not called the smallest, since there is none beyond it.
    criterion : str
        The criterion that was used.
    """

    def __init__(self, best: NoisyICA, rows: list[dict[str, Any]], criterion: str) -> None:
        self.best_ = best
        self.criterion = criterion
        self.edge_ = _edge(best.n_components, [row["n_components"] for row in rows])
        names = dict.fromkeys(name for row in rows for name in row)
        table = {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}
        self.table_: Any = _frame(table)

    def __repr__(self) -> str:
        best = self.best_
        edge = "" if self.edge_ is None else f" (the {self.edge_} number tried)"
        return (
            f"Selection(best: {best.components_.shape[0]} components{edge}, prior {best.prior_!r}, "
            f"by {self.criterion})"
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the criterion against the number of components, a line for each prior.

        See :func:`noisyica.plot.selection`.
        """
        from noisyica import plot

        return plot.selection(self, axes)


def _edge(best: Any, tried: list[int]) -> str | None:
    """Return at which end of the numbers tried the best one lies, if it lies at one."""
    if min(tried) == max(tried) or min(tried) < best < max(tried):
        return None
    if best == max(tried):
        return "largest"
    return "smallest" if best > 1 else None


def _frame(table: dict[str, np.ndarray]) -> Any:
    """Return the table as a pandas.DataFrame, or as it is if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        return table
    return pandas.DataFrame(table)


def select(
    X: Any,
    n_components: int | Iterable[int] = range(1, 11),
    priors: str | Prior | Law | Sequence[str | Prior | Law] = ("bg",),
    criterion: str = "bic",
    *,
    cv: int = 3,
    random_state: RandomState = 0,
    verbose: bool | int = True,
    **options: Any,
) -> Selection:
    """Choose the number of components and the prior.

    For each prior, fits are made with increasing numbers of components. Where one of them ends is
    one of the starts of the next.

    All criteria and errors assume that the rows are independent, and that entries, if any are, are
    missing at random (whether an entry is missing does not depend on what is not seen). Of rows
    that come several from one person, or one after the other in time, more components are found
    than there are.

    Parameters
    ----------
    X : array (n, d)
        Missing entries are NaN.
    n_components : int or iterable of int
        The numbers of components to choose from.
    priors : str, Prior, Law, or sequence of them
        The priors to choose from, each as ``NoisyICA`` takes it for ``prior``.
    criterion : {"bic", "aic", "heldout"}, default="bic"
        "bic" and "aic" are of maximum likelihood (``mixing_prior=None``), from one fit to all rows.
        "heldout" is the mean log likelihood of rows that were left out of the fit, by
        cross-validation; the winner is then fitted to all rows.
    cv : int, default=3
        The number of parts that the rows are divided into for "heldout".
    random_state : int, RandomState or None, default=0
    verbose : bool or 2, default=True
        Show progress on a terminal. With 2, where standard error is not a terminal (but a file,
        say), a line is written there after each fit.
    **options
        Further parameters of ``NoisyICA``, the same for all.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import numpy as np
    >>> import noisyica
    >>> A = np.kron(np.eye(4), np.ones((6, 1)))
    >>> model = noisyica.Model(A, noise_variance=0.25, prior="bg")
    >>> X, _ = model.sample(300, random_state=0)
    >>> result = noisyica.select(X, n_components=[3, 4], priors=["bg"], max_iter=300, tol=0)
    >>> result.best_.components_.shape[0]
    4
    """
    X = check_array(
        plain_numbers(X),
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan",
        ensure_min_samples=2,
        input_name="X",
    )
    counts, prior_list = _check_numbers(n_components), _check_priors(priors)
    _check_criterion(criterion, cv, len(X))
    if criterion != "heldout":
        options = {"mixing_prior": None} | options
    n_init = options.pop("n_init", "auto")
    options |= {"random_state": random_state, "verbose": False, "warm_start": True}
    options["n_init"] = 1 if n_init == "auto" else n_init  # only the winner's reliability is told
    all_rows = np.arange(len(X))
    folds = [(all_rows, all_rows)]
    if criterion == "heldout":
        folds = list(KFold(cv, shuffle=True, random_state=random_state).split(X))
    fits: list[_Fit] = []
    total = len(prior_list) * len(counts)
    with Reporter("noisyica select", total, bool(verbose), lines=verbose == 2) as reporter:
        for prior in prior_list:
            estimators = [NoisyICA(prior=prior, **options) for _ in folds]
            for p in counts:
                reporter.update(len(fits), f"prior {_label(prior)}, {_components(p)}")
                fits.append(_Fit(X, p, prior, estimators, folds))
                reporter.line(f"{len(fits)} of {total}: {fits[-1].said(criterion)}")
    scores = np.array([fit.score(criterion) for fit in fits])
    winner = fits[int(np.nanargmax(scores))]
    lines = [fit.line(criterion, winner) for fit in fits]
    best = winner.first
    if criterion == "heldout":  # the winner is fitted to all rows, from where one fold's fit ended
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            best = copy.copy(best).set_params(n_init=n_init).fit(X)
    return Selection(best.set_params(warm_start=False), lines, criterion)


class _Fit:
    """The fits with one prior and one number of components.

    A fold is a pair of sets of rows: there is a fit to the first set of each fold, and the
    likelihood of the rows in the second set.
    """

    def __init__(
        self,
        X: np.ndarray,
        p: int,
        prior: Any,
        estimators: list[NoisyICA],
        folds: list[tuple[np.ndarray, np.ndarray]],
    ) -> None:
        self.p, self.prior = p, prior
        self.likelihood, variance = np.empty(len(X)), 0.0
        for ica, (train, test) in zip(estimators, folds, strict=True):
            with warnings.catch_warnings():  # the table says which fits have not converged
                warnings.simplefilter("ignore", ConvergenceWarning)
                ica.set_params(n_components=p).fit(X[train])
            self.likelihood[test], error = ica.model_.log_likelihood(X[test], return_std=True)
            variance += float(np.square(error).sum())
        # the standard error of the mean likelihood, by the sampling of coefficients
        self.error = np.sqrt(variance) / len(X)
        self.first = copy.copy(estimators[0])
        self.converged = all(ica.converged_ for ica in estimators)

    def score(self, criterion: str) -> float:
        """Return the log likelihood less the criterion's penalty: the greater, the better."""
        total, count = self.likelihood.sum(), self.first.n_parameters_
        penalties = {
            "heldout": 0.0,
            "aic": count,
            "bic": 0.5 * np.log(len(self.likelihood)) * count,
        }
        return float(total - penalties[criterion])

    def said(self, criterion: str) -> str:
        """Return the fit in a few words, with the criterion's value."""
        score = self.score(criterion)
        held = criterion == "heldout"
        value = score / len(self.likelihood) if held else -2 * score
        name = "mean log likelihood of rows held out" if held else criterion.upper()
        return f"prior {_label(self.prior)}, {_components(self.p)}, {name} {value:.6g}"

    def line(self, criterion: str, winner: _Fit) -> dict[str, Any]:
        """Return the line of the table, by the names of its columns."""
        ica = self.first
        line: dict[str, Any] = {
            "prior": _label(self.prior),
            "n_components": self.p,
            "log_likelihood": self.likelihood.mean(),
            "standard_error": self.error,
            "parameters": ica.n_parameters_,
        }
        if criterion == "heldout":
            behind = winner.likelihood - self.likelihood
            line |= {"behind": behind.mean(), "behind_error": behind.std() / np.sqrt(len(behind))}
        else:
            line |= {name: -2 * self.score(name) for name in ("aic", "bic")}
        line |= {"noise_variance": np.mean(ica.noise_variance_), "converged": self.converged}
        return line | {
            name: float(value) for name, value in ica.prior_.parameters.items() if value.ndim == 0
        }


def _components(p: int) -> str:
    """Return the number of components in words."""
    return "1 component" if p == 1 else f"{p} components"


def _label(prior: Any) -> str:
    """Return the prior's name in the table."""
    return prior if isinstance(prior, str) else repr(prior)


def _check_criterion(criterion: str, cv: int, n: int) -> None:
    """Raise a ValueError if the criterion is not known, or n rows have not as many parts."""
    if criterion not in CRITERIA:
        *names, last = (repr(name) for name in CRITERIA)
        raise ValueError(
            f"criterion={criterion!r} is not known. Choose {', '.join(names)} or {last}."
        )
    if criterion == "heldout" and not (isinstance(cv, (int, np.integer)) and 2 <= cv <= n // 2):
        raise ValueError(
            f"cv must be an integer from 2 to half the number of rows ({n // 2}); got {cv!r}."
        )


def _check_numbers(n_components: Any) -> list[int]:
    """Return the numbers of components in increasing order."""
    numbers = [n_components] if isinstance(n_components, Integral) else list(n_components)
    if not numbers or not all(
        isinstance(p, (int, np.integer)) and not isinstance(p, bool) and p >= 1 for p in numbers
    ):
        raise ValueError(
            "n_components must be one or several integers of at least 1, such as range(1, 11); "
            f"got {n_components!r}."
        )
    return sorted({int(p) for p in numbers})


def _check_priors(priors: Any) -> list[Any]:
    """Return the priors as a list, after checking that each is known."""
    prior_list = [priors] if isinstance(priors, (str, Prior, Law)) else list(priors)
    if not prior_list:
        raise ValueError("priors must name at least one prior, such as 'bg'.")
    for prior in prior_list:
        _priors.get(prior)
    return prior_list
