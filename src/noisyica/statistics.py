"""Sufficient statistics of the complete data (x, beta), and the M-step that turns them into parameters.

The statistics are averages over rows, held in float64: a vector space, so that blocks of rows add up and SAEM averages them over
iterations. All algorithms share them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisyica.priors import Channel, Prior

Array = jax.Array


class Parameters(NamedTuple):
    """theta: everything that is learnt."""

    A: Array  # (d, p)
    mean: Array  # (d,)
    sigma2: Array  # ()
    prior: Prior


class Moments(NamedTuple):
    """Averages over the rows that do not depend on beta."""

    x: Array  # (d,)
    xx: Array  # ()   |x|^2


class Statistics(NamedTuple):
    """Averages over the rows, [.] in the paper's appendix; m is the random offset of priors that have one."""

    b: Array  # (p,)    [beta]
    bb: Array  # (p, p)  [beta beta']
    xb: Array  # (d, p)  [x beta']
    mb: Array  # (p,)    [m beta]
    mx: Array  # ()      [m 1'x]
    mm: Array  # ()      [m^2]
    prior: Any  # the prior's own


class Block(NamedTuple):
    """A block of rows, transposed: x (d, n), its column sums, and the rows' weights, which sum to one over all blocks."""

    x: Array
    x_one: Array
    weight: Array


def channel(parameters: Parameters, block: Block) -> Channel:
    """What the likelihood says of the coefficients of a block of rows, in the block's dtype."""
    A, mean, sigma2, _ = parameters
    dtype = block.x.dtype
    p = A.shape[1]
    # Eight columns at least: with fewer, the CPU's matrix product depends on the number of threads in its last bits.
    padded = jnp.pad(A / sigma2, ((0, 0), (0, -p % 8))).astype(dtype)
    products = (padded.T @ block.x)[:p]
    return Channel(
        G=(A.T @ A / sigma2).astype(dtype),
        c=products - (A.T @ mean / sigma2).astype(dtype)[:, None],
        c_one=(A.sum(0) / sigma2).astype(dtype),
        x_one=(block.x_one - mean.sum().astype(dtype)) / sigma2.astype(dtype),
        one_one=(A.shape[0] / sigma2).astype(dtype),
    )


def collect(prior: Prior, latent: Any, block: Block) -> Statistics:
    """The statistics of a block of rows (float64)."""
    beta = prior.coefficients(latent)
    weighted = beta * block.weight
    p = beta.shape[0]
    zero = jnp.zeros((), float)
    mb, mx, mm = jnp.zeros((p,), float), zero, zero
    if prior.has_offset:
        m = prior.offset(latent)
        mb, mx, mm = weighted @ m, (block.weight * m * block.x_one).sum(), (block.weight * m * m).sum()
    columns = jnp.pad(weighted, ((0, -p % 8), (0, 0)))
    found = Statistics(
        b=weighted.sum(-1),
        bb=(columns @ beta.T)[:p],
        xb=(block.x @ columns.T)[:, :p],
        mb=mb,
        mx=mx,
        mm=mm,
        prior=prior.statistics(latent, block.weight),
    )
    return jax.tree.map(lambda s: s.astype(float), found)


def transformed(statistics: Statistics, W: Array) -> Statistics:
    """The statistics after beta -> W beta (those of the prior are left to the next draws)."""
    s = statistics
    return s._replace(b=W @ s.b, bb=W @ s.bb @ W.T, xb=s.xb @ W.T, mb=W @ s.mb)


def mstep(statistics: Statistics, moments: Moments, prior: Prior, free_mean: bool, floor: float) -> Parameters:
    """Maximum likelihood given complete data: the regression of x on beta, and the prior's own parameters.

    With a free mean, beta^0 = 1 joins the regression (paper, appendix), which is the regression of the centred variables.
    """
    s = statistics
    d = moments.x.shape[0]
    covariance, cross, total = s.bb, s.xb, moments.xx
    if prior.has_offset:
        cross = cross - s.mb
        total = total - 2 * s.mx + d * s.mm
    if free_mean:
        covariance = covariance - jnp.outer(s.b, s.b)
        cross = cross - jnp.outer(moments.x, s.b)
        total = total - moments.x @ moments.x
    A = regression(covariance, cross, jnp.diag(s.bb))
    mean = moments.x - A @ s.b if free_mean else jnp.zeros_like(moments.x)
    residual = total - 2 * (A * cross).sum() + (A @ covariance * A).sum()
    return Parameters(A, mean, jnp.maximum(residual / d, floor), prior.mstep(s.prior))


def regression(covariance: Array, cross: Array, size: Array) -> Array:
    """cross @ covariance^-1, with a ridge at the rounding of the float32 sums of ``size`` in it: few rows leave it singular."""
    factor = jax.scipy.linalg.cho_factor(covariance + jnp.diag(1e-6 * size + 1e-300))
    # the inverse of a small matrix, then XLA's product: LAPACK's solver for many right sides starts threads of its own
    return cross @ jax.scipy.linalg.cho_solve(factor, jnp.eye(len(size)))
