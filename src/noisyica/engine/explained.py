"""Explained variance: how the variance of x is shared between components, offset and noise."""

from __future__ import annotations

from typing import Any

import numpy as np


def explained_variance(
    A: np.ndarray, statistics: Any, noise: Any, kept: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the variance of x that each component explains, and the variance of x in all.

    Variances are summed over the columns of x. C is the covariance of the coefficients over the
    rows that were learnt from, rows and posterior together, and G = E[A'A]. What component j adds
    has the variance C_jj G_jj by itself; what all components add together has tr(C G). The two
    agree where coefficients are uncorrelated, which they are in the model, and nearly are in a fit.
    The variances that components have by themselves are scaled so that they sum to tr(C G): shares
    are never negative, and those of the components, the offset (a component with ones in all
    columns) and the noise sum to one.

    C is that of the rows and not of the prior, because a law that all components share cannot tell
    one that is often on from one that hardly ever is. With Student noise the rows count by their
    weights, and the noise is that of a row of weight one: a few outlying rows do not hide what the
    components explain. For a hidden A, G has A's posterior variance in it: without that, the
    variance of x would come out too small by what is not known of A.

    Parameters
    ----------
    A : array (d, p)
        The mixing matrix; for a hidden A, its posterior mean.
    statistics : noisyica.engine.statistics.Statistics
        Averages over rows, in the same units.
    noise : float or array (d,)
        The noise variance.
    kept : array of int
        The numbers of the components that x consists of; the others are left out.
    """
    s, d = statistics, len(A)
    columns = np.column_stack([A, np.ones(d)])  # the offset comes last
    G = columns.T @ columns
    if s.mixing is not None:
        np.fill_diagonal(G, np.append(s.mixing.square.sum(0), d))
    moments, means = np.block([[s.bb, s.mb[:, None]], [s.mb, s.mm]]), np.append(s.b, s.m)
    if s.weights is not None:
        moments, means = moments / s.weights.total, means / s.weights.total
    C = moments - np.outer(means, means)
    parts = np.append(kept, A.shape[1])
    C, G = C[np.ix_(parts, parts)], G[np.ix_(parts, parts)]
    alone = np.maximum(np.diag(C), 0.0) * np.diag(G)
    together = max(float((C * G).sum()), 0.0)
    shares = alone * (together / max(float(alone.sum()), np.finfo(float).tiny))
    return shares[:-1], together + float(np.broadcast_to(noise, d).sum())
