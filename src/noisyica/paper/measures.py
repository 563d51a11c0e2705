"""Measures of components and coefficients."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def matched(A: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return A with its columns in the order, and with the signs, that are nearest to the truth."""
    plus, minus = (np.square(s * A[:, :, None] - truth[:, None]).sum(0) for s in (1, -1))
    rows, columns = linear_sum_assignment(np.minimum(plus, minus))
    order = rows[np.argsort(columns)]
    signs = np.where(plus <= minus, 1, -1)[order, np.sort(columns)]
    return A[:, order] * signs


def mean_square_error(A: np.ndarray, truth: np.ndarray) -> float:
    """Return the paper's MSE of A.

    It is the mean over pixels of the squared errors, summed over the columns, "up to a permutation
    and a change of sign".
    """
    return float(np.square(matched(A, truth) - truth).sum(1).mean())


def cosines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the absolute cosine of each column of A (first axis) with each of B (second axis)."""
    unit = [M / np.maximum(np.linalg.norm(M, axis=0), 1e-300) for M in (A, B)]
    return np.abs(unit[0].T @ unit[1])


def matched_cosines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the absolute cosine of each column of A with its match among the columns of B, (p,).

    The matching is the one with the largest sum.
    """
    cosine = cosines(A, B)
    return cosine[linear_sum_assignment(-cosine)]


def contributions(components: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return the components (p, d) in the unit of the data.

    Each is multiplied by the root mean square of its coefficients, the columns of beta. Components
    of models with different laws of the coefficients can then be compared.
    """
    return components * np.sqrt(np.square(beta).mean(0))[:, None]


def purity(beta: np.ndarray, labels: np.ndarray, top: int, one_sided: bool = False) -> np.ndarray:
    """Return the purity of each coefficient, (p,).

    It is the share of the most frequent label among the ``top`` rows in which the coefficient has
    the largest absolute value; if ``one_sided``, among the ``top`` rows in which it is largest or
    those in which it is smallest, whichever are purer.
    """

    def share(score: np.ndarray) -> float:
        _, counts = np.unique(labels[np.argsort(-score, kind="stable")[:top]], return_counts=True)
        return float(counts.max() / counts.sum())

    if one_sided:
        return np.array([max(share(score), share(-score)) for score in beta.T])
    return np.array([share(np.abs(score)) for score in beta.T])


def nearest_class(components: np.ndarray, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the absolute cosine of each component with the class mean nearest to it, (p,).

    The mean of all rows is subtracted from the class means.
    """
    means = np.stack([X[labels == label].mean(0) for label in np.unique(labels)]) - X.mean(0)
    return cosines(components.T, means.T).max(1)


def effective_area(components: np.ndarray) -> np.ndarray:
    """Return the share of the d pixels that each component occupies, (p,).

    It is (sum a^2)^2 / (d sum a^4), which is 1 if all pixels have the same absolute value.
    """
    square = np.square(components)
    return square.sum(1) ** 2 / np.maximum(components.shape[1] * np.square(square).sum(1), 1e-300)


def roughness(components: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the roughness of each component, (p,).

    It is the mean square difference of neighbouring pixels over twice the mean square: 0 for a
    constant image, and 1 for white noise.
    """
    images = components.reshape(-1, *shape)
    steps = (np.square(np.diff(images, axis=axis)).mean((1, 2)) for axis in (1, 2))
    return sum(steps) / np.maximum(4 * np.square(images).mean((1, 2)), 1e-300)


def hoyer(beta: np.ndarray) -> float:
    """Return Hoyer's sparsity, averaged over the rows that are not all zeros.

    It is 0 for a row whose entries have equal absolute values, and 1 for a row with one nonzero.
    """
    size = np.linalg.norm(beta, axis=1)
    rows, p = beta[size > 0], beta.shape[1]
    return float(((np.sqrt(p) - np.abs(rows).sum(1) / size[size > 0]) / (np.sqrt(p) - 1)).mean())
