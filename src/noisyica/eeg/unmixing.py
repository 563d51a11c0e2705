"""The linear unmixing of a noisy model, as MNE's ICA objects have it.

MNE takes out component j by taking m_j (u_j . x) from x, with unmixing vectors u_j and maps m_j of
which u_j . m_k is 1 for j = k and 0 else: the maps are the inverse of the unmixing, within their
span. A noisy model would rather take a_j E[beta_j | x] from x, which has no such inverse. Of what
MNE can hold, weighted least squares, (A' D^-1 A)^-1 A' D^-1, has the maps m_j = a_j but multiplies
the noise where the model has weak or similar components. So we ask for uncorrelated sources, as
MNE's own algorithms do, U S U' = 1 with the covariance S of x, and of these for those that are most
correlated with the coefficients. In units of S^1/2 the maps are then orthonormal, M = S^1/2 O, and
the correlation of u_j . x with beta_j is o_j . S^-1/2 a_j c_j^1/2, where c_j is the variance of
beta_j. The sum over j is largest if O is the orthonormal factor of the polar decomposition of
S^-1/2 A C^1/2. Without noise that factor is the matrix itself, and the maps are A C^1/2.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import polar

EMPTY = 1e-10
"""A direction whose variance is less than this share of the largest has no data."""


def axes(A: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal axes (d, d), as rows, and the variances along them (d,).

    The first p are the principal axes within the span of A (d, p), and the others are those of what
    is orthogonal to it.
    """
    p = A.shape[1]
    basis = np.linalg.qr(A, mode="complete")[0]
    rows: list[np.ndarray] = []
    variances: list[np.ndarray] = []
    for part in (basis[:, :p], basis[:, p:]):
        values, vectors = np.linalg.eigh(part.T @ covariance @ part)
        rows.append((part @ vectors[:, ::-1]).T)
        variances.append(values[::-1])
    return np.concatenate(rows), np.concatenate(variances)


def uncorrelated(A: np.ndarray, variances: np.ndarray, explained: np.ndarray) -> np.ndarray:
    """Return the unmixing matrix (p, p) whose sources are uncorrelated and closest to A's.

    Parameters
    ----------
    A : array (p, p)
        The components, as columns, in coordinates that are uncorrelated.
    variances : array (p,)
        The variances of these coordinates.
    explained : array (p,)
        The variances of the coefficients, c.
    """
    scale = np.sqrt(np.maximum(variances, 1e-12 * variances.max()))
    closest, _ = polar(A * np.sqrt(explained) / scale[:, None])
    return closest.T / scale
