"""Which components other samples of rows would show: fits to bootstraps, matched to each other."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from noisyica.analysis.refits import refit, report
from noisyica.arguments import RandomState, check_counts
from noisyica.engine.convergence import match
from noisyica.estimator import NoisyICA
from noisyica.progress import Reporter
from noisyica.rows.held import checked

ROUNDS = 20
"""The maximum number of times that components are matched anew to the means of their matches."""


@dataclass(frozen=True, repr=False, eq=False)
class Consensus:
    """The result of :func:`consensus`.

    Attributes
    ----------
    components : array (p, d)
        The means over bootstraps of the components that were matched, in the order and with the
        signs of the fit to all rows.
    components_std : array (p, d)
        Their standard deviations over bootstraps, which estimate standard errors of the components
        of all rows.
    stability : array (p,)
        The mean absolute cosine of the components of two bootstraps that were matched: 1 where all
        bootstraps have the same component.
    quality : array (p,)
        The index of Icasso (Himberg et al., 2004): the mean similarity (absolute cosine) within the
        matched components, less that between these and all others. It is at most 1 and smaller
        where components overlap, however stable they are.
    estimator : NoisyICA
        The fit to all rows.
    bootstraps : array (n_bootstraps, p, d)
        The matched components of each bootstrap.
    """

    components: np.ndarray
    components_std: np.ndarray
    stability: np.ndarray
    quality: np.ndarray
    estimator: NoisyICA
    bootstraps: np.ndarray

    def __repr__(self) -> str:
        count, p, d = self.bootstraps.shape
        words = ", ".join(f"{value:.2f}" for value in self.stability[:10])
        more = ", ..." if p > 10 else ""
        return f"Consensus({p} components in {d} dimensions, {count} bootstraps: {words}{more})"


def consensus(
    X: Any,
    estimator: NoisyICA | None = None,
    *,
    n_bootstraps: int = 20,
    groups: Any = None,
    random_state: RandomState = None,
    verbose: bool = True,
) -> Consensus:
    """Learn components from bootstraps of the rows, and say on which of them these agree.

    Each bootstrap draws as many rows as there are, with replacement, and fits a clone of the
    estimator with a random seed of its own, so that what differs between them comes from the rows,
    the start and the draws. Components are matched one to one, first to those of all rows, and then
    to the means of their matches until nothing changes.

    Parameters
    ----------
    X : array (n, d)
        All that :meth:`noisyica.NoisyICA.fit` takes.
    estimator : NoisyICA, optional
        By default ``NoisyICA(random_state=random_state)``. If it is fitted, it is taken for the fit
        to all rows; otherwise a clone of it is fitted to X.
    n_bootstraps : int, default=20
    groups : array (n,), optional
        Labels of rows that belong together, such as the cells of a donor. Whole groups are drawn
        then, which is right where rows of a group are not independent.
    random_state : int, RandomState or None
        Decides everything random: the bootstraps and the seeds of their fits.
    verbose : bool
        Show progress on a terminal when it takes more than a second.

    Returns
    -------
    Consensus
        ``components``, ``components_std``, ``stability`` and the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, NoisyICA, consensus
    >>> A = np.random.default_rng(0).normal(size=(12, 2))
    >>> X, _ = Model(A, noise_variance=0.1, prior="bg").sample(200, random_state=0)
    >>> ica = NoisyICA(2, prior="bg", max_iter=60, tol=0, random_state=0)
    >>> found = consensus(X, ica, n_bootstraps=5, random_state=0)
    >>> found.components.shape, bool((found.stability > 0.95).all())
    ((2, 12), True)
    """
    check_counts(n_bootstraps=(n_bootstraps, 2))
    if estimator is None:
        estimator = NoisyICA(random_state=random_state, verbose=verbose)
    if not isinstance(estimator, NoisyICA):
        raise TypeError(
            f"estimator must be a NoisyICA, such as NoisyICA(5, prior='bg'); got {estimator!r}."
        )
    rng = check_random_state(random_state)
    counts = _drawn(groups, checked(X, least=2).shape[0], n_bootstraps, rng)
    seeds = rng.randint(2**31 - 1, size=n_bootstraps + 1)
    steps, found = estimator.max_iter, []
    with Reporter("noisyica consensus", (n_bootstraps + 1) * steps, bool(verbose)) as reporter:
        tell = functools.partial(report, reporter, 0, "all rows")
        if not estimator.__sklearn_is_fitted__():
            of_user = {"callback": estimator.callback, "verbose": estimator.verbose}
            estimator = refit(estimator, X, int(seeds[0]), True, tell).set_params(**of_user)
        p = len(estimator.components_)
        drawn = clone(estimator).set_params(n_components=p)
        for i, (count, seed) in enumerate(zip(counts, seeds[1:], strict=True)):
            note = f"bootstrap {i + 1} of {n_bootstraps}"
            tell = functools.partial(report, reporter, (i + 1) * steps, note)
            try:
                found.append(refit(drawn, X, int(seed), False, tell, count).mixing_)
            except ValueError as error:
                error.add_note(f"This is of the rows of {note}, and not of all of X.")
                raise
    aligned = _matched(np.asarray(estimator.mixing_), found)
    stability, quality = _indices(aligned)
    return Consensus(
        components=aligned.mean(0).T,
        components_std=aligned.std(0, ddof=1).T,
        stability=stability,
        quality=quality,
        estimator=estimator,
        bootstraps=aligned.transpose(0, 2, 1),
    )


def _drawn(groups: Any, n: int, count: int, rng: np.random.RandomState) -> np.ndarray:
    """Return how often each of n rows is drawn in each bootstrap, (count, n)."""
    labels = np.arange(n) if groups is None else np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must be {n} labels, one for each row of X; got shape {labels.shape}."
        )
    missing = [label is None or label != label for label in labels.tolist()]
    if any(missing):
        raise ValueError(f"groups has no label for {sum(missing)} rows: leave these out.")
    kinds, group = np.unique(labels, return_inverse=True)
    if len(kinds) < 2:
        raise ValueError("groups has one kind of label only: at least two groups can be drawn.")
    drawn = rng.multinomial(len(kinds), np.full(len(kinds), 1 / len(kinds)), size=count)
    return np.asarray(drawn[:, group], float)


def _matched(A: np.ndarray, found: list[np.ndarray]) -> np.ndarray:
    """Return matrices (d, p) whose columns and signs are matched to each other, (count, d, p).

    They are matched to A first, and then to the means of their matches.
    """
    aligned, before = np.empty((len(found), *A.shape)), None
    for _ in range(ROUNDS):
        matches = [match(A, B) for B in found]
        orders = [order.tolist() for _, order in matches]
        for i, (B, (cosines, order)) in enumerate(zip(found, matches, strict=True)):
            aligned[i] = B[:, order] * np.where(cosines < 0, -1.0, 1.0)
        if orders == before:
            break
        A, before = _unit(aligned).mean(0), orders
    return aligned


def _indices(aligned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the stability and the index of Icasso of each component, from (count, d, p)."""
    count, _, p = aligned.shape
    units = _unit(aligned).transpose(2, 0, 1).reshape(p * count, -1)
    similar = np.abs(units @ units.T).reshape(p, count, p, count)
    sums = similar.sum((1, 3))  # (p, p)  of the pairs of members of two components
    within = np.diagonal(sums)
    itself = np.einsum("jbjb->j", similar)
    others = (sums.sum(1) - within) / (count**2 * max(p - 1, 1))
    return (within - itself) / (count * (count - 1)), within / count**2 - others


def _unit(A: np.ndarray) -> np.ndarray:
    """Return columns (..., d, p) scaled to length one; a column of zeros stays as it is."""
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=-2, keepdims=True), 1e-300))
