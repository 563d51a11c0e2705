"""Sufficient statistics of the complete data (x, beta), and the M-step that turns them into parameters.

The statistics are averages over rows, held in float64: a vector space, so that blocks of rows add up and SAEM averages them over
iterations. All algorithms share them.

Where A is hidden (``mixing_prior="normal"``), the entries of its column j have the prior N(0, tau_j^2), and A is part of the complete
data: it is drawn given beta (:func:`draw_mixing`), and its conditional mean and square, and the residual, are averaged over iterations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisyica._jax.arrays import uniforms
from noisyica._jax.special import normal_quantile
from noisyica.priors import Channel, Prior

Array = jax.Array


class Parameters(NamedTuple):
    """theta: everything that is learnt."""

    A: Array  # (d, p)
    mean: Array  # (d,)
    sigma2: Array  # () or, for diagonal noise, (d,)
    prior: Prior
    tau2: Any = None  # (p,) variance of the entries of each column, where A is hidden


class Mixing(NamedTuple):
    """What is averaged of a hidden A: its moments given beta, entry by entry, and what they leave of x."""

    mean: Array  # (d, p)  E[A]
    square: Array  # (d, p)  E[A^2]
    shift: Array  # (d,)    E[A] [beta]
    residual: Array  # (d,)    E[(x - mean - A beta)^2]


class Statistics(NamedTuple):
    """Averages over the rows, [.] in the paper's appendix; m is the random offset of priors that have one."""

    x: Array  # (d,)    [x]
    xx: Array  # (d,)    [x^2]
    b: Array  # (p,)    [beta]
    bb: Array  # (p, p)  [beta beta']
    xb: Array  # (d, p)  [x beta']
    m: Array  # ()      [m]
    mb: Array  # (p,)    [m beta]
    mx: Array  # (d,)    [m x]
    mm: Array  # ()      [m^2]
    prior: Any  # the prior's own
    mixing: Any = None  # Mixing, where A is hidden


class Block(NamedTuple):
    """A block of rows, transposed, with the rows' weights, which sum to one over all blocks."""

    x: Array  # (d, n)
    weight: Array  # (n,)
    sum_x: Array  # (d,)  weighted sums
    sum_xx: Array  # (d,)
    observed: Any = None  # (d, n) where entries are missing: which are not


def channel(parameters: Parameters, x: Array) -> Channel:
    """What the likelihood says of the coefficients of the rows ``x`` (d, n), in their dtype."""
    A, mean, sigma2, prior, _ = parameters
    dtype = x.dtype
    d, p = A.shape
    scaled = A / sigma2[..., None]
    # Eight columns at least: with fewer, the CPU's matrix product depends on the number of threads in its last bits.
    padded = jnp.pad(scaled, ((0, 0), (0, -p % 8))).astype(dtype)
    products = (padded.T @ x)[:p]
    c_one, x_one, one_one = (
        jnp.zeros((p,), dtype),
        jnp.zeros(x.shape[1:], dtype),
        jnp.zeros((), dtype),
    )
    if prior.has_offset:
        inverse = jnp.broadcast_to(1 / sigma2, (d,))
        c_one, one_one = scaled.sum(0).astype(dtype), inverse.sum().astype(dtype)
        x_one = jnp.tile(inverse.astype(dtype), (8, 1)) @ x
        x_one = x_one[0] - (inverse @ mean).astype(dtype)
    return Channel(
        (A.T @ scaled).astype(dtype),
        products - (scaled.T @ mean).astype(dtype)[:, None],
        c_one,
        x_one,
        one_one,
    )


def row_channel(parameters: Parameters, x: Array, observed: Array) -> Channel:
    """The channel of one row (d,) alone, where entries are missing: they have infinite variance."""
    return channel(
        parameters._replace(sigma2=jnp.where(observed, parameters.sigma2, jnp.inf)), x[:, None]
    )


def impute(key: Array, parameters: Parameters, latent: Any, block: Block) -> Block:
    """The block with its missing entries drawn given the coefficients. ``key`` may be an array of keys, one a row."""
    prior, dtype = parameters.prior, block.x.dtype
    (u,) = uniforms(key, 1, block.x.shape, jnp.float32)
    sigma = jnp.sqrt(parameters.sigma2).astype(dtype)
    fit = fitted(parameters, prior.coefficients(latent), prior.offset(latent), dtype)
    x = jnp.where(
        block.observed, block.x, fit + sigma[..., None] * normal_quantile(u).astype(dtype)
    )
    weights = jnp.tile(block.weight.astype(dtype), (8, 1))
    sum_x, sum_xx = ((y @ weights.T)[:, 0].astype(float) for y in (x, x * x))
    return block._replace(x=x, sum_x=sum_x, sum_xx=sum_xx)


def fitted(parameters: Parameters, beta: Array, offset: Array, dtype: Any) -> Array:
    """mean + A beta + offset, (d, n)."""
    p = parameters.A.shape[1]
    A = jnp.pad(parameters.A, ((0, 0), (0, -p % 8))).astype(dtype)  # see ``channel``
    beta = jnp.pad(beta, ((0, -p % 8), (0, 0))).astype(dtype)
    return A @ beta + parameters.mean.astype(dtype)[:, None] + offset.astype(dtype)


def collect(prior: Prior, latent: Any, block: Block) -> Statistics:
    """The statistics of a block of rows (float64)."""
    beta = prior.coefficients(latent)
    p, d = beta.shape[0], block.x.shape[0]
    columns = jnp.pad(beta * block.weight, ((0, -p % 8), (0, 0)))
    zero = jnp.zeros((), float)
    m, mb, mx, mm = zero, jnp.zeros((p,), float), jnp.zeros((d,), float), zero
    if prior.has_offset:
        offset = prior.offset(latent)
        weighted = jnp.tile(offset * block.weight, (8, 1))
        m, mb, mx, mm = (
            weighted[0].sum(),
            (weighted @ beta.T)[0],
            (block.x @ weighted.T)[:, 0],
            (weighted @ offset)[0],
        )
    found = Statistics(
        x=block.sum_x,
        xx=block.sum_xx,
        b=columns.sum(-1)[:p],
        bb=(columns @ beta.T)[:p],
        xb=(block.x @ columns.T)[:, :p],
        m=m,
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


def shifted(statistics: Statistics, shift: Array) -> Statistics:
    """The statistics after beta -> beta + shift (those of the prior are left to the next draws)."""
    s = statistics
    bb = s.bb + jnp.outer(s.b, shift) + jnp.outer(shift, s.b + shift)
    mixing = (
        None
        if s.mixing is None
        else s.mixing._replace(shift=s.mixing.shift + s.mixing.mean @ shift)
    )
    return s._replace(
        b=s.b + shift, bb=bb, xb=s.xb + jnp.outer(s.x, shift), mb=s.mb + s.m * shift, mixing=mixing
    )


class _Equations(NamedTuple):
    """The regression of x on beta: (co)variances about the mean where it is free, about zero where it is not."""

    covariance: Array  # (p, p)
    cross: Array  # (d, p)
    total: Array  # (d,)


def _equations(s: Statistics, prior: Prior, free_mean: bool) -> _Equations:
    """With a free mean, beta^0 = 1 joins the regression (paper, appendix), which is the regression of the centred variables."""
    covariance, cross, total, x = s.bb, s.xb, s.xx, s.x
    if prior.has_offset:
        cross = cross - s.mb
        total = total - 2 * s.mx + s.mm
        x = x - s.m
    if free_mean:
        covariance = covariance - jnp.outer(s.b, s.b)
        cross = cross - jnp.outer(x, s.b)
        total = total - x * x
    return _Equations(covariance, cross, total)


def _residual(A: Array, equations: _Equations) -> Array:
    """Mean square of what A beta leaves of each column of x."""
    covariance, cross, total = equations
    return total - 2 * (A * cross).sum(1) + (A @ covariance * A).sum(1)


def mstep(
    statistics: Statistics, prior: Prior, free_mean: bool, diagonal: bool, floor: Array
) -> Parameters:
    """Maximum likelihood given complete data: the regression of x on beta, the noise, and the prior's own parameters."""
    s = statistics
    if s.mixing is None:
        equations = _equations(s, prior, free_mean)
        A, tau2 = regression(equations.covariance, equations.cross, jnp.diag(s.bb)), None
        residual, shift = _residual(A, equations), A @ s.b
    else:
        A, tau2 = s.mixing.mean, s.mixing.square.mean(0)
        residual, shift = s.mixing.residual, s.mixing.shift
    mean = s.x - s.m - shift if free_mean else jnp.zeros_like(s.x)
    sigma2 = jnp.maximum(residual if diagonal else residual.mean(), floor)
    return Parameters(A, mean, sigma2, prior.mstep(s.prior), tau2)


def regression(covariance: Array, cross: Array, size: Array) -> Array:
    """cross @ covariance^-1, with a ridge at the rounding of the float32 sums of ``size`` in it: few rows leave it singular."""
    # the inverse of a small matrix, then XLA's product: LAPACK's solver for many right sides starts threads of its own
    return cross @ _inverse(covariance + jnp.diag(1e-6 * size + 1e-300))


# Several runs at once make batches of matrices, and on XLA:CPU two batched calls of LAPACK at once can wait for ever, each for threads of
# the pool that the other one holds: one matrix after the other, then.


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def _inverse(matrix: Array) -> Array:
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(matrix), jnp.eye(len(matrix)))


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def _eigh(matrix: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


def draw_mixing(
    key: Array, statistics: Statistics, parameters: Parameters, count: Array, free_mean: bool
) -> tuple[Array, Mixing]:
    """A draw of A given beta, and A's conditional moments, for ``count`` rows.

    Row i of A has precision count * covariance / sigma_i^2 + diag(1 / tau^2). With T = diag(tau) and T covariance T = U diag(s) U', the
    inverse is T U diag(sigma_i^2 / (count s + sigma_i^2)) U' T: one decomposition serves all rows, whatever their noise.
    """
    equations = _equations(statistics, parameters.prior, free_mean)
    tau = jnp.sqrt(parameters.tau2)
    s, U = _eigh(tau[:, None] * equations.covariance * tau)
    s, turn = jnp.maximum(count * s, 0.0), tau[:, None] * U
    noise = jnp.broadcast_to(parameters.sigma2, equations.total.shape)[:, None]
    shrink = 1 / (s + noise)  # (d, p)
    mean = (count * (equations.cross @ turn) * shrink) @ turn.T
    spread = noise * shrink
    (u,) = uniforms(
        key, 1, mean.T.shape, jnp.float32
    )  # the long axis last: it is the one that is vectorised
    draw = mean + (jnp.sqrt(spread) * normal_quantile(u).T) @ turn.T
    variance = spread @ jnp.square(turn).T
    # E[(x - mean - A beta)^2] given beta: the residual of the means, the variance of A beta, and that of the mean
    residual = _residual(mean, equations) + ((spread * s).sum(1) + free_mean * noise[:, 0]) / count
    return draw, Mixing(mean, jnp.square(mean) + variance, mean @ statistics.b, residual)
