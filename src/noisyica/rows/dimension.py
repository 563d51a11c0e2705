"""How many components rows have, and whether equal noise in all columns is what makes them many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from noisyica.rows import starts
from noisyica.rows.source import Rows

ROUNDS = 100
"""The number of iterations of EM for factor analysis, which need not have converged."""
MOST_COLUMNS = 500
"""The maximum number of columns for which noise in all columns alike is checked."""
MUCH_SMALLER = 0.75
"""The ratio of two numbers of components from which on the smaller one is worth mentioning."""
EVIDENCE = 10.0
"""By how much a BIC has to be lower to be strong evidence (Kass and Raftery, 1995)."""


class Dimension(NamedTuple):
    """A number of components by the principal variances above those of noise."""

    p: int
    own_noise: int | None = None
    """The number with noise of each column's own, where that is smaller and fits much better."""


def dimension(
    rows: Rows, all_rows: np.ndarray | None, missing: bool, own_noise: bool, outlying: bool
) -> Dimension:
    """Return the number of principal variances of rows above what noise alone would give.

    ``all_rows`` are all rows where these are few, with missing entries filled in. With noise of
    each column's own (``own_noise``) this is also done with columns divided by their root mean
    square. Where rows may be ``outlying``, none counts for more than half of the others do.
    """
    if all_rows is None and (missing or outlying or rows.d > starts.MAX_COLUMNS):
        numbers = np.random.RandomState(0).choice(rows.n, starts.MAX_ROWS, replace=False)
        all_rows = starts.fill(rows.chosen(numbers))
    if outlying and all_rows is not None:
        all_rows = _shortened(all_rows)
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        if all_rows is None:
            covariance, n = starts.covariance(rows), rows.n
        elif len(all_rows) < rows.d:  # no covariance, which would be larger than the rows
            return Dimension(
                min(
                    starts.count_above_noise(starts.principal(X)[0], *X.shape)
                    for X in (all_rows, all_rows / starts.column_sizes(all_rows))[: 1 + own_noise]
                )
            )
        else:
            covariance, n = all_rows.T @ all_rows / len(all_rows), len(all_rows)
        varies = np.diag(covariance) > 0
        root = np.sqrt(np.where(varies, np.diag(covariance), 1.0))
        alike, own = _variances(covariance), _variances(covariance / np.outer(root, root))
        p, q = (starts.count_above_noise(values, n, rows.d) for values in (alike, own))
        if own_noise:  # either may be too large: the noise is not equal, or not in proportion
            return Dimension(min(p, q))
        if missing or q > MUCH_SMALLER * p or rows.d > MOST_COLUMNS or n < 2 * rows.d:
            return Dimension(p)
        S = covariance[np.ix_(varies, varies)]
        gain = bic_of_equal_noise(S, n, p) - min(bic_of_own_noise(S, n, k) for k in (0, q))
        return Dimension(p, q if gain > EVIDENCE else None)


def _shortened(X: np.ndarray) -> np.ndarray:
    """Return the rows, those that are longer than the median made as long as it.

    Rows of noise that is heavy-tailed, but points in all directions alike, then have principal
    variances like those of normal noise.
    """
    squares = np.square(X).sum(1)
    return X * np.sqrt(np.minimum(1.0, np.median(squares) / np.maximum(squares, 1e-300)))[:, None]


def _variances(covariance: np.ndarray) -> np.ndarray:
    """Return the principal variances, decreasing."""
    return np.maximum(np.linalg.eigvalsh(covariance)[::-1], 0.0)


def bic_of_equal_noise(S: np.ndarray, n: int, p: int) -> float:
    """Return the BIC of p normal components and equal noise (Tipping and Bishop, 1999).

    ``S`` is the covariance of n rows. The means are the same in all models, and left out.
    """
    d = len(S)
    values = _variances(S)
    noise = max(values[p:].mean(), 1e-12 * values[0])
    deviance = np.log(values[:p]).sum() + (d - p) * np.log(noise) + d
    return float(n * deviance + np.log(n) * (d * p - p * (p - 1) / 2 + 1))


def bic_of_own_noise(S: np.ndarray, n: int, q: int) -> float:
    """Return the BIC of q normal components and noise of each column's own (factor analysis).

    By EM (Rubin and Thayer, 1982), from principal components. It may be a little too large, since
    EM may not have converged.
    """
    d = len(S)
    root = np.sqrt(np.diag(S))
    R = S / np.outer(root, root)
    values, vectors = np.linalg.eigh(R)
    A = vectors[:, d - q :] * np.sqrt(0.5 * values[d - q :])
    noise = np.maximum(1 - np.square(A).sum(1), 0.01)
    for _ in range(ROUNDS if q else 0):
        weighted = A / noise[:, None]
        spread = np.linalg.inv(np.eye(q) + A.T @ weighted)
        cross = R @ weighted @ spread  # of x and the factors' posterior means
        A = cross @ np.linalg.inv(spread + spread @ weighted.T @ cross)
        noise = np.maximum(1 - (A * cross).sum(1), 1e-4)
    covariance = A @ A.T + np.diag(noise)
    deviance = np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, R))
    deviance += 2 * np.log(root).sum()
    return float(n * deviance + np.log(n) * (d * q - q * (q - 1) / 2 + d))
