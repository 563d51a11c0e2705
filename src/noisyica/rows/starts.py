"""Where learning starts: a mixing matrix and a noise variance.

The data are scaled already, and centred unless the mean is zero.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from noisyica.priors import Prior
from noisyica.rows import fastica
from noisyica.rows.source import Rows

METHODS = ("auto", "pca", "fastica", "varimax", "random")
"""Starts by name; "auto" tries those that the priors propose (``Prior.starts``), for the best."""
SMOOTHED = "fastica, smoothed "
"""The beginning of the names of starts from rows that are smoothed first; a strength follows."""
SCALED = ", scaled"
"""The end of the names of starts from rows that are divided by their scale first."""
MAX_ROWS = 20_000
"""The maximum number of rows that starts are made from: they need not be exact."""
MAX_COLUMNS = 4096
"""The maximum number of columns for which the covariance of all rows is computed."""


def principal(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the principal variances, decreasing, and directions (columns) of rows about zero."""
    n, d = X.shape
    if n < d:
        _, values, directions = np.linalg.svd(X, full_matrices=False)
        return np.square(values) / n, directions.T
    values, vectors = np.linalg.eigh(X.T @ X / n)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def covariance(rows: Rows) -> np.ndarray:
    """Return the mean products of the columns (d, d) of rows without missing entries."""
    total = np.zeros((rows.d, rows.d))
    for part in rows.standardised_blocks():
        total += part.T @ part
    return total / rows.n


def column_sizes(X: np.ndarray) -> np.ndarray:
    """Return the root mean square of each column, or 1 where that is zero."""
    size = np.sqrt(np.square(X).mean(0))
    return np.where(size > 0, size, 1.0)


def fill(X: np.ndarray, rounds: int = 10) -> np.ndarray:
    """Return X with its missing entries (NaN) filled in from its leading principal components.

    The entries and the principal components are computed in turn, ``rounds`` times.
    """
    missing = np.isnan(X)
    if not missing.any():
        return X
    filled = np.where(missing, np.nan_to_num(np.nanmean(X, 0)), X)
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        for _ in range(rounds):
            variances, directions = principal(filled)
            directions = directions[:, : count_above_noise(variances, *filled.shape)]
            filled = np.where(missing, filled @ directions @ directions.T, X)
    return filled


def count_above_noise(variances: np.ndarray, n: int, d: int) -> int:
    """Return the number of principal variances of n rows above those of noise, at least one.

    The bound is the Marchenko-Pastur edge; the noise level is the median variance over that of pure
    noise (Gavish and Donoho, 2014).
    """
    variances = variances[: min(n - 1, d)]
    if variances.size < 2 or variances[0] <= 0:
        return 1
    ratio = min(n, d) / max(n, d)
    low, high = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    x = np.linspace(low, high, 2001)
    density = np.sqrt(np.maximum((high - x) * (x - low), 0)) / np.maximum(x, 1e-12)
    median = x[np.searchsorted(np.cumsum(density), density.sum() / 2)]
    # the largest variance of pure noise is above the edge by a Tracy-Widom variable on this scale;
    # 3.3 is its 99.9 % point
    scatter = (1 / np.sqrt(n) + 1 / np.sqrt(d)) ** (1 / 3) / (np.sqrt(n) + np.sqrt(d))
    edge = np.median(variances) * high / median * (1 + 3.3 * scatter)
    return int(np.clip((variances > edge).sum(), 1, max(1, min(n - 1, d) - 1)))


def left_over(X: np.ndarray, A: np.ndarray) -> float:
    """Return the mean square of what the columns of A leave of rows X, per direction left."""
    d, p = A.shape
    basis = np.linalg.qr(A)[0]
    left = np.square(X).sum() - np.square(X @ basis).sum()
    return float(max(left, 0.0) / (len(X) * max(d - p, 1)))


def extended(X: np.ndarray, A: np.ndarray, p: int, spread: float) -> np.ndarray:
    """Return A with further columns, p in all: principal directions of what A leaves of X.

    The further columns are scaled for coefficients of standard deviation ``spread``.
    """
    basis = np.linalg.qr(A)[0]
    variances, directions = principal(X - X @ basis @ basis.T)
    more = np.zeros((len(A), p - A.shape[1]))
    count = min(more.shape[1], directions.shape[1])
    more[:, :count] = directions[:, :count] * np.sqrt(variances[:count]) / spread
    return np.column_stack([A, more])


def start(
    X: np.ndarray, p: int, prior: Prior, method: str, rng: np.random.RandomState
) -> tuple[np.ndarray, float]:
    """Return a mixing matrix (d, p) and a noise variance to start from.

    The columns that the method gives come first; where it gives fewer than p (there are few rows,
    say), the others are random directions. Then the columns are scaled so that coefficients have
    the prior's variance.
    """
    method, scaled, _ = method.partition(SCALED)
    centred, spread = prior.rows_to_start_from(X, bool(scaled))
    d = X.shape[1]
    if p > d and method != "pca":
        # the others look for what is not there: p sources as functions of d numbers
        method = "random"
    variances, directions = principal(centred)
    columns = _columns_by_method(centred, variances, directions, p, method, rng)
    known = columns.shape[1]
    columns = _with_random_columns(columns, p, variances.sum(), rng)
    if known:
        if prior.has_offset:
            columns[:, :known] = _with_offset(X, centred, columns[:, :known])
        # coefficients by least squares get variance 1 here, and the prior's at the end
        columns = columns * np.sqrt(np.square(centred @ np.linalg.pinv(columns).T).mean(0))
    if not prior.symmetric and not prior.has_offset:
        columns = _oriented(columns, X, prior)
    return columns / np.sqrt(max(spread, 1e-3)), _noise_variance(variances, known, p, d)


def _columns_by_method(
    X: np.ndarray,
    variances: np.ndarray,
    directions: np.ndarray,
    p: int,
    method: str,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return the columns that the method gives, (d, k) with k <= p, for coefficients of variance 1.

    They are the principal components of X, or combinations of them. With "random" there are none.
    """
    available = int((variances > 1e-10 * max(variances.sum(), 1e-300)).sum())
    count = min(p, available, max(len(X) - 1, 1))
    columns = directions[:, :count] * np.sqrt(variances[:count])
    if method == "random":
        return columns[:, :0]
    if method == "pca" or count <= 1:
        return columns
    if method == "varimax":
        noise = variances[count : X.shape[1]].mean() if X.shape[1] > count else 0.0
        signal = np.sqrt(np.maximum(variances[:count] - noise, 1e-3 * variances[:count]))
        return columns @ _varimax(directions[:, :count] * signal)
    scores = X @ directions[:, :count] / np.sqrt(variances[:count])
    return columns @ _FINDERS[method](scores, rng)


def _with_random_columns(
    columns: np.ndarray, p: int, total: float, rng: np.random.RandomState
) -> np.ndarray:
    """Return p columns: those that are known, then random directions.

    The random ones are as long as the shortest that is known. Where none is known, they share the
    ``total`` variance.
    """
    d, known = columns.shape
    if known == p:
        return columns
    extra = rng.normal(size=(d, p - known))
    size = np.sqrt(total / max(p, 1)) if known == 0 else np.sqrt(np.square(columns).sum(0).min())
    return np.hstack([columns, extra * size / np.linalg.norm(extra, axis=0)])


def _noise_variance(variances: np.ndarray, known: int, p: int, d: int) -> float:
    """Return the noise variance to start from: what the known columns leave, and not too little.

    Where p > d, or no column is known, that is half of the total variance: p principal components
    would explain everything, and columns die if the noise begins too low.
    """
    total = float(variances.sum())
    if known == 0:
        noise = 0.5 * total / d
    else:
        noise = max(float(variances[known:].sum()), (0.5 if p > d else 1e-3) * total) / d
    return max(noise, 1e-12 * total / d)


def _oriented(columns: np.ndarray, X: np.ndarray, prior: Prior) -> np.ndarray:
    """Return the columns with signs that suit the mean of the prior's coefficients.

    The coefficients get means of its sign. With a free mean the rows are centred and say nothing of
    means; the coefficients are then skewed to its side, since those that are on are mostly rarer.
    """
    coefficients = X @ np.linalg.pinv(columns).T
    mean, spread = coefficients.mean(0), coefficients.std(0)
    skewness = ((coefficients - mean) ** 3).mean(0)
    side = np.where(np.abs(mean) > 1e-6 * spread, mean, skewness)
    sign = np.sign(side) * np.sign(prior.mean())
    return columns * np.where(sign < 0, -1.0, 1.0)


def _independent(scores: np.ndarray, rng: np.random.RandomState, max_iter: int = 400) -> np.ndarray:
    """Return the matrix whose columns are the independent directions that FastICA finds in scores.

    The scores are nearly white already. They are made white by the symmetric root of their
    covariance, which stays near one: FastICA's own whitening would turn them by the eigenvectors of
    a matrix whose eigenvalues are all the same, which are a matter of rounding.
    """
    centred = scores - scores.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    root = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    turn = fastica.rotation(centred @ (vectors / root) @ vectors.T, rng, max_iter)
    mixing = np.asarray((vectors * root) @ vectors.T @ turn)
    return mixing if np.isfinite(mixing).all() else np.eye(scores.shape[1])


def _unit_rows(scores: np.ndarray, share: float) -> np.ndarray:
    """Return the longest rows, a ``share`` of all, scaled to length one.

    There are at least as many of them as columns, where there are as many rows at all.
    Directions are what is left to learn from when each row has a scale of its own.
    """
    size = np.linalg.norm(scores, axis=1)
    count = max(int(share * len(size)), scores.shape[1], 2)
    longest = np.argsort(-size, kind="stable")[:count]
    return scores[longest] / np.maximum(size[longest, None], 1e-300)


def _independent_directions(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return the independent directions of rows scaled to length one, by FastICA.

    This is for ternary coefficients with one scale per row, most of which are on.
    """
    return _independent(_unit_rows(scores, 0.9), rng)


def _sparse_directions(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return the independent directions of rows scaled to length one, by ICA with a peaked law.

    This is for ternary coefficients with one scale per row, some of which are on: between the
    sparse and the dense case, FastICA's contrasts vanish. The law is proportional to 1 / cosh(1.5
    t). Its likelihood is maximised by relative Newton steps, as in parameter expansion
    (:func:`noisyica.engine.expansion.newton_rotation`).
    """
    rows = _unit_rows(scores, 0.7)
    whitened = np.sqrt(len(rows)) * np.linalg.svd(rows, full_matrices=False)[0]
    y = whitened @ _any_rotation(scores, rng)
    mixing = np.linalg.lstsq(y, rows, rcond=None)[0].T
    off_diagonal = 1 - np.eye(y.shape[1])
    for _ in range(300):
        psi = 1.5 * np.tanh(1.5 * y)
        gradient = psi.T @ y / len(y)
        curvature = np.outer((2.25 - psi**2).mean(0), np.square(y).mean(0))
        low = 0.5 * (curvature + curvature.T - np.sqrt(np.square(curvature - curvature.T) + 4))
        curvature += np.maximum(0.1 - low, 0)
        newton = (
            -(curvature.T * gradient - gradient.T) / (curvature * curvature.T - 1) * off_diagonal
        )
        scale = np.exp(-0.5 * (np.diag(gradient) - 1) / (1 + np.diag(curvature)))
        step = np.clip(newton, -0.3, 0.3)
        # the norm of the whole step is bounded, too: many small entries may together be too large
        W = np.diag(scale) + step * (0.9 / max(float(np.linalg.norm(step, 2)), 0.9))
        y, mixing = y @ W.T, mixing @ np.linalg.inv(W)
        if np.abs(newton).max() < 1e-5:
            break
    return mixing if np.isfinite(mixing).all() else np.eye(scores.shape[1])


def _dense_directions(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return the directions in which most rows lie.

    This is for ternary coefficients with one scale per row, few of which are on. A row with just
    one component on lies along that component, and no other direction has as many rows.
    """
    unit = _unit_rows(scores, 0.6)[:3000]
    cosine = np.abs(unit @ unit.T)
    density = np.exp(80 * (cosine - 1)).sum(0)
    centres = []
    for _ in range(scores.shape[1]):
        i = int(np.argmax(density))
        near = unit[cosine[i] > 0.95]
        centre = (np.sign(near @ unit[i])[:, None] * near).sum(0)
        centres.append(centre / np.linalg.norm(centre))
        density = np.where(cosine[i] > 0.9, 0.0, density)
    return np.array(centres).T


def _varimax(loadings: np.ndarray, max_iter: int = 500) -> np.ndarray:
    """Return the rotation that makes the squares of loadings (d, k) vary most, column by column.

    (Kaiser, The varimax criterion for analytic rotation in factor analysis, 1958.) Components whose
    entries are mostly zero are found by it, whatever their coefficients.
    """
    rotation, last = np.eye(loadings.shape[1]), 0.0
    for _ in range(max_iter):
        turned = loadings @ rotation
        gradient = loadings.T @ (turned**3 - turned * np.square(turned).mean(0))
        left, values, right = np.linalg.svd(gradient)
        rotation = left @ right
        if values.sum() <= last * (1 + 1e-8):
            break
        last = values.sum()
    return rotation


def _any_rotation(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return a random rotation of the principal components."""
    return np.linalg.qr(rng.normal(size=(scores.shape[1], scores.shape[1])))[0]


_FINDERS: dict[str, Callable[[np.ndarray, np.random.RandomState], np.ndarray]] = {
    "rotation": _any_rotation,
    "fastica": _independent,
    "short fastica": functools.partial(_independent, max_iter=50),
    "directions": _independent_directions,
    "sparse directions": _sparse_directions,
    "clusters": _dense_directions,
}
"""Functions that find the directions (k, k) of components in whitened scores (n, k), by name."""


def _with_offset(X: np.ndarray, centred: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the columns again, by regression of X on the coefficients of the centred rows.

    The columns are those of rows without their means. The regression adds what the rows' means say
    of them, since the offset is independent of the coefficients.
    """
    sources = centred @ np.linalg.pinv(columns).T
    return X.T @ sources @ np.linalg.pinv(sources.T @ sources)
