"""What is measured of components and coefficients."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def matched(A: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """A's columns, with the order and signs that bring them nearest to the truth's."""
    plus, minus = (np.square(s * A[:, :, None] - truth[:, None]).sum(0) for s in (1, -1))
    rows, columns = linear_sum_assignment(np.minimum(plus, minus))
    order = rows[np.argsort(columns)]
    signs = np.where(plus <= minus, 1, -1)[order, np.sort(columns)]
    return A[:, order] * signs


def mean_square_error(A: np.ndarray, truth: np.ndarray) -> float:
    """The paper's MSE: mean over pixels of the squared errors of all columns, "up to a permutation and a change of sign"."""
    return float(np.square(matched(A, truth) - truth).sum(1).mean())


def cosines(A: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """|cosine| of each column of A (first axis) with each of the truth's (second)."""
    unit = [M / np.maximum(np.linalg.norm(M, axis=0), 1e-300) for M in (A, truth)]
    return np.abs(unit[0].T @ unit[1])


def purity(beta: np.ndarray, labels: np.ndarray, top: int, one_sided: bool = False) -> np.ndarray:
    """For each coefficient, the share of the most frequent label among the ``top`` rows where it is largest in size, (p,).

    One-sided: where it is largest with its sign, of the two signs the purer.
    """

    def share(score: np.ndarray) -> float:
        _, counts = np.unique(labels[np.argsort(-score, kind="stable")[:top]], return_counts=True)
        return float(counts.max() / counts.sum())

    if one_sided:
        return np.array([max(share(score), share(-score)) for score in beta.T])
    return np.array([share(np.abs(score)) for score in beta.T])


def nearest_class(components: np.ndarray, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """|cosine| of each component with that class mean (less the mean of all) to which it is nearest, (p,)."""
    means = np.stack([X[labels == label].mean(0) for label in np.unique(labels)]) - X.mean(0)
    return cosines(components.T, means.T).max(1)


def effective_area(components: np.ndarray) -> np.ndarray:
    """The share of pixels that a component lives on: (sum a^2)^2 / (d sum a^4), 1 where all have the same size, (p,)."""
    square = np.square(components)
    return square.sum(1) ** 2 / np.maximum(components.shape[1] * np.square(square).sum(1), 1e-300)


def roughness(components: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Mean square of the differences of neighbouring pixels over twice the mean square: 0 for a constant, 1 for white noise, (p,)."""
    images = components.reshape(-1, *shape)
    steps = (np.square(np.diff(images, axis=axis)).mean((1, 2)) for axis in (1, 2))
    return sum(steps) / np.maximum(4 * np.square(images).mean((1, 2)), 1e-300)


def hoyer(beta: np.ndarray) -> float:
    """Hoyer's sparsity of the rows, from 0 (all equal in size) to 1 (one nonzero), averaged; rows of zeros do not count."""
    size = np.linalg.norm(beta, axis=1)
    rows, p = beta[size > 0], beta.shape[1]
    return float(((np.sqrt(p) - np.abs(rows).sum(1) / size[size > 0]) / (np.sqrt(p) - 1)).mean())
