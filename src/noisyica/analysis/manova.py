r"""Pillai's trace between groups of rows given covariates, with p-values by permutation.

**The statistic.** Y (n, p) are coefficients, Z are the columns of the reduced model (the constant
and covariates), and T are those that the full model has in addition (which rows are in which
group). With the residuals e of Y in the reduced model, and an orthonormal basis G of the residuals
of T in it, the scatter between groups is H = e' G G' e, the scatter of both is V = e' e, and

    Pillai's trace = tr(H V^-1).

For one column of T (two groups) it is the q of :mod:`noisyica.analysis.hotelling`, and T^2 =
nu q / (1 - q) with nu = n - rank(Z, T). For one coefficient it is the share of the residual sum of
squares that groups account for (partial eta squared), and F = (q / g) / ((1 - q) / nu) is that of
the analysis of covariance, with g columns in G.

**Permutations** are those of Freedman and Lane (1983): the residuals of the reduced model, as rows,
are permuted by a matrix P and added to what this model fits, Y* = (Y - e) + P e, and the statistic
is computed anew. What the reduced model fits drops out, since both models have Z. What is left are
the residuals of P e: with an orthonormal basis Q of the covariates,

    H* = C' C,    V* = e' e - B' B,    C = G' P e,    B = Q' P e.

The statistic does not change if coefficients are mixed, so e is whitened once, e' e = 1, and by
Woodbury's formula, which needs the inverse of a matrix no larger than the number of covariates,

    tr(H* V*^-1) = |C|^2 + tr(C B' (1 - B B')^-1 B C').

Without covariates, B is empty, P exchanges labels, and the test is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.stats

from noisyica.analysis.permuted import BATCH_ENTRIES, Permuted, whiten


def pillai(
    coefficients: Sequence[np.ndarray],
    tested: np.ndarray,
    reduced: np.ndarray,
    n_permutations: int,
    seed: int,
) -> Permuted:
    """Test whether some columns of a linear model matter, for one or more sets of coefficients.

    Parameters
    ----------
    coefficients : sequence of arrays (n, p)
    tested : array (n, g)
        The columns that are tested. They are linearly independent, also given the others.
    reduced : array (n, c)
        The other columns, without the constant, linearly independent. There may be none.
    n_permutations : int
        The number of random permutations. If there are no more than that, all are used.
    seed : int
        The random seed.
    """
    n, c = reduced.shape
    Q = whiten(reduced) if c else reduced
    G = whiten(_residuals(tested, Q))
    basis = np.concatenate([Q, G], axis=1)
    sets = [whiten(_residuals(Y, Q), np.abs(Y).max(0)) for Y in coefficients]
    whitened = np.concatenate(sets, axis=1)
    ends = np.cumsum([columns.shape[1] for columns in sets])
    samples, kind = _exchangeable(tested, c)
    order = np.concatenate(samples)

    def traces(*permuted: np.ndarray, axis: int) -> np.ndarray:
        # the rows of the model to which the rows of e go, as a permutation of the model's rows
        places = order[np.argsort(np.concatenate(permuted, axis=-1), axis=-1)]
        products = np.swapaxes(basis[places], -1, -2) @ whitened
        B, C = products[..., :c, :], products[..., c:, :]
        return np.stack(
            [
                _trace(B[..., end - columns.shape[1] : end], C[..., end - columns.shape[1] : end])
                for columns, end in zip(sets, ends, strict=True)
            ],
            axis=-1,
        )

    test = scipy.stats.permutation_test(
        samples,
        traces,
        permutation_type=kind,
        vectorized=True,
        n_resamples=n_permutations,
        batch=max(1, BATCH_ENTRIES // (basis.shape[1] * max(whitened.shape))),
        alternative="greater",
        random_state=np.random.default_rng(seed),
    )
    exact = _number_is_at_most(n_permutations, samples, kind)
    freedom = n - 1 - basis.shape[1]
    return Permuted(freedom, G.shape[1], test.statistic, test.null_distribution, exact)


def _residuals(columns: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return the residuals of columns in a model with a constant and the orthonormal columns Q."""
    centred = columns - columns.mean(0)
    return centred - Q @ (Q.T @ centred)


def _exchangeable(tested: np.ndarray, covariates: int) -> tuple[list[np.ndarray], str]:
    """Return the numbers of the rows in parts, and how SciPy has to permute them.

    Without covariates, rows of a group have the same place in the model, and only permutations that
    exchange rows of different groups make a difference.
    """
    if covariates:
        return [np.arange(len(tested))], "pairings"
    kinds = np.unique(tested, axis=0, return_inverse=True)[1].ravel()
    return [np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)], "independent"


def _number_is_at_most(limit: int, samples: list[np.ndarray], kind: str) -> bool:
    """Return whether there are no more than ``limit`` permutations, without huge numbers."""
    sizes = np.array([len(sample) for sample in samples])
    alike = sizes if kind == "independent" else np.ones(1)
    logarithm = math.lgamma(sizes.sum() + 1) - sum(math.lgamma(size + 1) for size in alike)
    return logarithm <= math.log(limit) + 1e-9


def _trace(B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return the trace of C (1 - B' B)^+ C' for each of many (c, p) and (g, p)."""
    trace = np.square(C).sum((-1, -2))
    if B.shape[-2]:
        left = np.eye(B.shape[-2]) - B @ np.swapaxes(B, -1, -2)
        mixed = B @ np.swapaxes(C, -1, -2)
        # pseudo-inverse: a direction of e that covariates explain does not count
        trace = trace + (mixed * (np.linalg.pinv(left, hermitian=True) @ mixed)).sum((-1, -2))
    return np.minimum(trace, min(C.shape[-2:]))
