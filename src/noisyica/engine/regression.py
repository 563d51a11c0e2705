"""The regression of x on the coefficients, from sufficient statistics."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from noisyica.engine.statistics import Statistics
from noisyica.priors import Prior

Array = jax.Array


class Equations(NamedTuple):
    """Covariances of beta and x, about their means where the mean is free, otherwise about zero."""

    covariance: Array  # (p, p)  of beta
    cross: Array  # (d, p)  of x and beta
    total: Array  # (d,)  of each column of x


def equations(statistics: Statistics, prior: Prior, free_mean: bool) -> Equations:
    """Return the (co)variances that the regression of x on beta needs.

    With a free mean, beta^0 = 1 joins the regression (paper, appendix), which is the regression of
    the centred variables. With Student noise all of them are weighted sums, as in the regression
    with weights w: means are divided by [w], and the rest is not.
    """
    s = statistics
    covariance, cross, total, x = s.bb, s.xb, s.xx, s.x
    if prior.has_offset:
        cross = cross - s.mb
        total = total - 2 * s.mx + s.mm
        x = x - s.m
    if free_mean:
        b_mean, x_mean = s.b, x
        if s.weights is not None:
            b_mean, x_mean = s.b / s.weights.total, x / s.weights.total
        covariance = covariance - jnp.outer(s.b, b_mean)
        cross = cross - jnp.outer(x, b_mean)
        total = total - x * x_mean
    return Equations(covariance, cross, total)


def residual(A: Array, regression: Equations) -> Array:
    """Return the mean square of what A beta leaves of each column of x."""
    covariance, cross, total = regression
    return total - 2 * (A * cross).sum(1) + (A @ covariance * A).sum(1)


def least_squares(covariance: Array, cross: Array, size: Array) -> Array:
    """Return cross @ covariance^-1, the covariance with a small ridge on its diagonal.

    Few rows leave the covariance singular. The ridge is as large as the rounding error of float32
    sums of ``size`` (p,), and larger where that is not enough.
    """
    # the inverse of a small matrix, then XLA's product: LAPACK's solver for many right sides starts
    # threads of its own
    ridge = jnp.diag(size + 1e-300)
    inverse = _inverse(covariance + 1e-6 * ridge)
    # many components of few rows: their rounding errors together may exceed the ridge
    failed = ~jnp.isfinite(inverse).all()
    return cross @ lax.cond(failed, lambda: _inverse(covariance + 1e-3 * ridge), lambda: inverse)


def undo(W: Array, A: Array) -> Array:
    """Return A W^-1: the mixing matrix after the coefficients moved by W."""
    return A @ _general_inverse(W)


# Several runs at once make batches of matrices. On XLA:CPU two batched calls of LAPACK at the same
# time can wait for ever, each for threads of the pool that the other one holds. So the matrices of
# a batch are decomposed one after the other.


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def _inverse(matrix: Array) -> Array:
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(matrix), jnp.eye(len(matrix)))


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def _general_inverse(matrix: Array) -> Array:
    return jnp.linalg.inv(matrix)


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def eigh(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and eigenvectors of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors
