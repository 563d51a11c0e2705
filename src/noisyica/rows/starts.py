"""Where learning starts: the mixing matrix and the noise, for data already centred (unless the mean is zero) and scaled."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from noisyica.priors import Prior
from noisyica.rows.source import Rows

METHODS = ("auto", "pca", "fastica", "random")
"""Starts by name; "auto" tries those that the prior proposes (``Prior.starts``) and keeps the best."""
MAX_ROWS = 20_000
"""The maximum number of rows that starts look at: they need to be near, not exact."""
MAX_COLUMNS = 4096
"""The maximum number of columns for which the covariance of all rows is computed."""


def principal(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances (all of them, decreasing) and directions (columns) of the rows about zero."""
    n, d = X.shape
    if n < d:
        _, values, directions = np.linalg.svd(X, full_matrices=False)
        return np.square(values) / n, directions.T
    values, vectors = np.linalg.eigh(X.T @ X / n)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def principal_variances(rows: Rows) -> np.ndarray:
    """Return all principal variances of rows without missing entries, decreasing, block by block."""
    covariance = np.zeros((rows.d, rows.d))
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        for first, block in rows.blocks():
            part = rows.standardised(first, first + len(block))
            covariance += part.T @ part
        values = np.linalg.eigvalsh(covariance / rows.n)
    return np.maximum(values[::-1], 0.0)


def fill(X: np.ndarray, rounds: int = 10) -> np.ndarray:
    """X with its missing entries (NaN) replaced by what its leading principal components say, found in turn with them."""
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
    """Return how many principal variances of n rows exceed what noise alone would give, at least one.

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


def extended(X: np.ndarray, A: np.ndarray, p: int, spread: float) -> np.ndarray:
    """A with further columns, p in all: principal directions of what its span leaves of X, for coefficients of that standard deviation."""
    basis = np.linalg.qr(A)[0]
    variances, directions = principal(X - X @ basis @ basis.T)
    more = np.zeros((len(A), p - A.shape[1]))
    few = min(more.shape[1], directions.shape[1])
    more[:, :few] = directions[:, :few] * np.sqrt(variances[:few]) / spread
    return np.column_stack([A, more])


def start(
    X: np.ndarray, p: int, prior: Prior, method: str, rng: np.random.RandomState
) -> tuple[np.ndarray, float]:
    """Mixing matrix (d, p) and noise variance to start from.

    Columns are scaled so that coefficients have the prior's variance. What PCA or FastICA cannot
    give (more components than rows, say) is filled with random directions. Where p > d, FastICA and
    its like look for what is not there, p sources as functions of d numbers, and all directions are
    random; and principal components leave nothing to tell the noise by, which must not begin too
    low.
    """
    centred = X - X.mean(1, keepdims=True) if prior.has_offset else X
    n, d = X.shape
    if p > d and method != "pca":
        method = "random"
    variances, directions = principal(centred)
    total = variances.sum()
    available = int((variances > 1e-10 * max(total, 1e-300)).sum())
    kept = min(p, available, max(n - 1, 1))
    noise = max(float(variances[kept:].sum()), (0.5 if p > d else 1e-3) * float(total)) / d
    columns = directions[:, :kept] * np.sqrt(variances[:kept])
    if method == "random" or kept == 0:
        columns, kept = columns[:, :0], 0
        noise = 0.5 * float(total) / d
    elif method != "pca" and kept > 1:
        scores = centred @ directions[:, :kept] / np.sqrt(variances[:kept])
        columns = columns @ _FINDERS[method](scores, rng)
    if kept < p:
        extra = rng.normal(size=(d, p - kept))
        size = np.sqrt(total / max(p, 1)) if kept == 0 else np.sqrt(np.square(columns).sum(0).min())
        columns = np.hstack([columns, extra * size / np.linalg.norm(extra, axis=0)])
    if prior.has_offset and kept:
        columns[:, :kept] = _with_offset(X, centred, columns[:, :kept])
    if kept:  # scale: the coefficients that least squares gives should have the prior's variance
        columns = columns * np.sqrt(np.square(centred @ np.linalg.pinv(columns).T).mean(0))
    if not prior.symmetric and not prior.has_offset:
        columns = _oriented(columns, X, prior)
    return columns / np.sqrt(max(prior.variance(), 1e-3)), max(noise, 1e-12 * float(total) / d)


def _oriented(columns: np.ndarray, X: np.ndarray, prior: Prior) -> np.ndarray:
    """The columns with signs that give the coefficients means of the sign of the prior's (with a free mean, X says nothing of them)."""
    sign = np.sign(np.linalg.pinv(columns) @ X.mean(0)) * np.sign(prior.mean())
    return columns * np.where(sign < 0, -1.0, 1.0)


def _independent(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """FastICA: the matrix whose columns are the independent directions of whitened scores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not have converged
        ica = FastICA(whiten="unit-variance", max_iter=400, tol=1e-4, random_state=rng).fit(scores)
    mixing = np.asarray(ica.mixing_)
    return mixing if np.isfinite(mixing).all() else np.eye(scores.shape[1])


def _unit_rows(scores: np.ndarray, share: float) -> np.ndarray:
    """The longest ``share`` of the rows, made of length one: what is left when each row has a scale of its own."""
    size = np.linalg.norm(scores, axis=1)
    longest = np.argsort(-size, kind="stable")[: max(int(share * len(size)), 2)]
    return scores[longest] / np.maximum(size[longest, None], 1e-300)


def _independent_directions(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """FastICA on the directions of the rows: for ternary coefficients with a common scale, where most are on."""
    return _independent(_unit_rows(scores, 0.9), rng)


def _sparse_directions(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """ICA with a sharply peaked law on the directions of the rows: for ternary coefficients with a common scale, where some are on.

    Maximum likelihood by relative Newton steps, as in parameter expansion
    (:func:`noisyica.engine.learning.expand`). FastICA's contrasts vanish between the sparse and the
    dense case.
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
        W = np.diag(scale) + step * (
            0.9 / max(float(np.linalg.norm(step, 2)), 0.9)
        )  # many small steps together may be too large
        y, mixing = y @ W.T, mixing @ np.linalg.inv(W)
        if np.abs(newton).max() < 1e-5:
            break
    return mixing if np.isfinite(mixing).all() else np.eye(scores.shape[1])


def _dense_directions(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """The directions in which most rows lie: for ternary coefficients with a common scale, where few are on.

    A row with just one component on lies along that component, and when few are on no other
    direction has as many rows.
    """
    unit = _unit_rows(scores, 0.6)[:3000]
    cosine = np.abs(unit @ unit.T)
    density = np.exp(80 * (cosine - 1)).sum(0)
    found = []
    for _ in range(scores.shape[1]):
        i = int(np.argmax(density))
        near = unit[cosine[i] > 0.95]
        centre = (np.sign(near @ unit[i])[:, None] * near).sum(0)
        found.append(centre / np.linalg.norm(centre))
        density = np.where(cosine[i] > 0.9, 0.0, density)
    return np.array(found).T


def _any_rotation(scores: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """A random rotation of the principal components."""
    return np.linalg.qr(rng.normal(size=(scores.shape[1], scores.shape[1])))[0]


_FINDERS = {"rotation": _any_rotation, "fastica": _independent, "directions": _independent_directions,
            "sparse directions": _sparse_directions, "clusters": _dense_directions}  # fmt: skip


def _with_offset(X: np.ndarray, centred: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Add to the columns, found in rows without their means, what the means say: the offset is independent of the coefficients."""
    sources = centred @ np.linalg.pinv(columns).T
    return X.T @ sources @ np.linalg.pinv(sources.T @ sources)
