"""The regression of x on the coefficients, from their statistics."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisyica.engine.statistics import Statistics
from noisyica.priors import Prior

Array = jax.Array


class Equations(NamedTuple):
    """(Co)variances of beta and x: about the mean where it is free, about zero where it is not."""

    covariance: Array  # (p, p)  of beta
    cross: Array  # (d, p)  of x and beta
    total: Array  # (d,)  of each column of x


def equations(statistics: Statistics, prior: Prior, free_mean: bool) -> Equations:
    """Return the regression's equations.

    With a free mean, beta^0 = 1 joins the regression (paper, appendix), which is the regression of
    the centred variables.
    """
    s = statistics
    covariance, cross, total, x = s.bb, s.xb, s.xx, s.x
    if prior.has_offset:
        cross = cross - s.mb
        total = total - 2 * s.mx + s.mm
        x = x - s.m
    if free_mean:
        covariance = covariance - jnp.outer(s.b, s.b)
        cross = cross - jnp.outer(x, s.b)
        total = total - x * x
    return Equations(covariance, cross, total)


def residual(A: Array, regression: Equations) -> Array:
    """Return the mean square of what A beta leaves of each column of x."""
    covariance, cross, total = regression
    return total - 2 * (A * cross).sum(1) + (A @ covariance * A).sum(1)


def least_squares(covariance: Array, cross: Array, size: Array) -> Array:
    """Return cross @ covariance^-1, with a ridge at the rounding of the float32 sums of ``size``.

    Few rows leave the covariance singular.
    """
    # the inverse of a small matrix, then XLA's product: LAPACK's solver for many right sides starts
    # threads of its own
    return cross @ _inverse(covariance + jnp.diag(1e-6 * size + 1e-300))


# Several runs at once make batches of matrices, and on XLA:CPU two batched calls of LAPACK at once
# can wait for ever, each for threads of the pool that the other one holds: so one matrix after the
# other.


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def _inverse(matrix: Array) -> Array:
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(matrix), jnp.eye(len(matrix)))


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def eigh(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and eigenvectors of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors
