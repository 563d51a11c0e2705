"""How many components, and which prior? Fits of all combinations, compared by AIC, BIC or the likelihood of rows held out."""

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
from noisyica.estimator import NoisyICA
from noisyica.laws import Law
from noisyica.model import RandomState
from noisyica.priors import Prior
from noisyica.progress import Reporter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CRITERIA = ("bic", "aic", "heldout")


class Selection:
    """What :func:`select` found.

    Attributes
    ----------
    best_ : NoisyICA
        The winner, fitted to all rows.
    table_ : pandas.DataFrame, or dict of arrays where pandas is not installed
        A line for each fit: ``prior``, ``n_components``, ``log_likelihood`` (mean over rows; of rows held out for "heldout"),
        ``standard_error`` (of that mean, by the sampling of coefficients; 0 where it is exact), the number of ``parameters``, ``aic`` and
        ``bic``, or how far ``behind`` the best one the likelihood is, with its standard error over rows (``behind_error``),
        ``noise_variance``, ``converged``, and the prior's parameters that are single numbers.
    criterion : str
    """

    def __init__(self, best: NoisyICA, rows: list[dict[str, Any]], criterion: str) -> None:
        self.best_ = best
        self.criterion = criterion
        names = dict.fromkeys(name for row in rows for name in row)
        table = {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}
        self.table_: Any = _frame(table)

    def __repr__(self) -> str:
        best = self.best_
        return f"Selection(best: {best.components_.shape[0]} components, prior {best.prior_!r}, by {self.criterion})"

    def plot(self, axes: Axes | None = None) -> Axes:
        """The criterion against the number of components, a line for each prior (:func:`noisyica.plot.selection`)."""
        from noisyica import plot

        return plot.selection(self, axes)


def _frame(table: dict[str, np.ndarray]) -> Any:
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
    verbose: bool = True,
    **options: Any,
) -> Selection:
    """Choose the number of components and the prior.

    For each prior the numbers of components are gone through in increasing order, each fit being offered where the last one ended as one
    of its starts.

    Parameters
    ----------
    X : array (n, d)
        Missing entries are NaN.
    n_components : int or iterable of int
    priors : one or several of what ``NoisyICA`` takes for ``prior``
    criterion : {"bic", "aic", "heldout"}, default="bic"
        "bic" and "aic" are of maximum likelihood (``mixing_prior=None``), from one fit to all rows. "heldout" is the mean log likelihood
        of rows that were left out of the fit, by cross-validation; the winner is then fitted to all rows.
    cv : int, default=3
        Parts that the rows are divided into for "heldout".
    random_state : int, RandomState or None, default=0
    verbose : bool, default=True
        Show progress on a terminal.
    **options
        Further parameters of ``NoisyICA``, the same for all.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import numpy as np
    >>> import noisyica
    >>> model = noisyica.Model(np.kron(np.eye(4), np.ones((6, 1))), noise_variance=0.25, prior="bg")
    >>> X, _ = model.sample(300, random_state=0)
    >>> result = noisyica.select(X, n_components=[3, 4], priors=["bg"], max_iter=300, tol=0)
    >>> result.best_.components_.shape[0]
    4
    """
    X = check_array(
        X,
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan",
        ensure_min_samples=2,
        input_name="X",
    )
    counts, laws = _check_numbers(n_components), _check_priors(priors)
    if criterion not in CRITERIA:
        raise ValueError(
            f"criterion={criterion!r} is not known. Choose {', '.join(repr(c) for c in CRITERIA[:-1])} or {CRITERIA[-1]!r}."
        )
    if criterion != "heldout":
        options = {"mixing_prior": None} | options
    elif not (isinstance(cv, (int, np.integer)) and 2 <= cv <= len(X) // 2):
        raise ValueError(
            f"cv must be an integer from 2 to half the number of rows ({len(X) // 2}); got {cv!r}."
        )
    options |= {"random_state": random_state, "verbose": False, "warm_start": True}
    whole = np.arange(len(X))
    folds = (
        list(KFold(cv, shuffle=True, random_state=random_state).split(X))
        if criterion == "heldout"
        else [(whole, whole)]
    )
    fits: list[_Fit] = []
    with Reporter("noisyica select", len(laws) * len(counts), verbose) as reporter:
        for prior in laws:
            estimators = [NoisyICA(prior=prior, **options) for _ in folds]
            for p in counts:
                reporter.update(len(fits), f"prior {_label(prior)}, {p} components")
                fits.append(_Fit(X, p, prior, estimators, folds))
    scores = np.array([fit.score(criterion) for fit in fits])
    winner = fits[int(np.nanargmax(scores))]
    rows = [fit.line(criterion, winner) for fit in fits]
    best = winner.first
    if criterion == "heldout":  # to all rows, this time, from where one of the fits ended
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            best = copy.copy(best).fit(X)
    return Selection(best.set_params(warm_start=False), rows, criterion)


class _Fit:
    """One prior and number of components: the fits to the first rows of each fold, and the likelihoods of the second."""

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
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", ConvergenceWarning
                )  # the table says which have not converged
                ica.set_params(n_components=p).fit(X[train])
            self.likelihood[test], error = ica.model_.log_likelihood(X[test], return_std=True)
            variance += float(np.square(error).sum())
        self.error = np.sqrt(variance) / len(X)  # of the mean, by the sampling of coefficients
        self.first = copy.copy(estimators[0])
        self.converged = all(ica.converged_ for ica in estimators)

    def score(self, criterion: str) -> float:
        """The greater the better."""
        total, count = self.likelihood.sum(), self.first.n_parameters_
        penalty = {"heldout": 0.0, "aic": count, "bic": 0.5 * np.log(len(self.likelihood)) * count}[
            criterion
        ]
        return float(total - penalty)

    def line(self, criterion: str, winner: _Fit) -> dict[str, Any]:
        """What the table says of it."""
        ica = self.first
        row: dict[str, Any] = {
            "prior": _label(self.prior),
            "n_components": self.p,
            "log_likelihood": self.likelihood.mean(),
        }
        row |= {"standard_error": self.error, "parameters": ica.n_parameters_}
        if criterion == "heldout":
            behind = winner.likelihood - self.likelihood
            row |= {"behind": behind.mean(), "behind_error": behind.std() / np.sqrt(len(behind))}
        else:
            row |= {name: -2 * self.score(name) for name in ("aic", "bic")}
        row |= {"noise_variance": np.mean(ica.noise_variance_), "converged": self.converged}
        return row | {
            name: float(value) for name, value in ica.prior_.parameters.items() if value.ndim == 0
        }


def _label(prior: Any) -> str:
    return prior if isinstance(prior, str) else repr(prior)


def _check_numbers(n_components: Any) -> list[int]:
    """The numbers of components in increasing order."""
    given = [n_components] if isinstance(n_components, Integral) else list(n_components)
    if not given or not all(
        isinstance(p, (int, np.integer)) and not isinstance(p, bool) and p >= 1 for p in given
    ):
        raise ValueError(
            f"n_components must be one or several integers of at least 1, such as range(1, 11); got {n_components!r}."
        )
    return sorted({int(p) for p in given})


def _check_priors(given: Any) -> list[Any]:
    several = [given] if isinstance(given, (str, Prior, Law)) else list(given)
    if not several:
        raise ValueError("priors must name at least one prior, such as 'bg'.")
    for prior in several:
        _priors.get(prior)
    return several
