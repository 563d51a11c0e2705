"""Sufficient statistics of the complete data (x, beta).

They are sums over rows, or averages, held in float64: a vector space, so that blocks of rows add up
and SAEM averages them over iterations. All algorithms share them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisyica._jax.xla import apart, pad_columns, product, repeat_rows
from noisyica.posterior.student import RowWeights
from noisyica.priors import Prior
from noisyica.rows.block import Block

Array = jax.Array


class Mixing(NamedTuple):
    """Statistics of a hidden A: its moments given beta, and the residual of x."""

    mean: Array  # (d, p)  E[A]
    square: Array  # (d, p)  E[A^2], entry by entry
    shift: Array  # (d,)    E[A] [beta]
    residual: Array  # (d,)    E[(x - mean - A beta)^2]
    law: Any = ()  # the statistics of the entries' law, summed over each column
    on: Any = None  # (d, p)  P(an entry is not at an atom), where the law has atoms


class Weights(NamedTuple):
    """Statistics of the rows' weights w, where the noise is Student's."""

    total: Array  # ()  [w]  as they were drawn
    mean: Array  # ()  [E[w]]  given the coefficients
    log: Array  # ()  [E[log w]]  given the coefficients


class Statistics(NamedTuple):
    """Sufficient statistics: sums or averages over the rows, [.] in the paper's appendix.

    m is the random offset of priors that have one. Where the noise is Student's, all but those of
    the prior are weighted by the rows' w: [x] is [w x], and so on.
    """

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
    weights: Any = None  # Weights, where the noise is Student's


def without_offset(block: Block, b: Array, bb: Array, xb: Array, prior: Any) -> Statistics:
    """Return the statistics of a block of rows that have no random offset."""
    zero, p, d = jnp.zeros((), float), len(b), len(block.x)
    return Statistics(
        x=block.sum_x,
        xx=block.sum_xx,
        b=b,
        bb=bb,
        xb=xb,
        m=zero,
        mb=jnp.zeros((p,), float),
        mx=jnp.zeros((d,), float),
        mm=zero,
        prior=prior,
    )


def collect(prior: Prior, latent: Any, block: Block, own: RowWeights | None = None) -> Statistics:
    """Return the sums of the statistics of a block of rows with these latent variables.

    Within a block they are summed in the sampler's precision, and over blocks in float64. ``own``
    are the rows' weights where the noise is Student's.
    """
    beta = prior.coefficients(latent)
    p = beta.shape[0]
    weight = block.weight if own is None else block.weight * own.draw
    if own is None:
        weighted = pad_columns(beta * weight, axis=0)
    else:  # the weights join the product with x, which gives the sums of x, too
        weighted = pad_columns(jnp.concatenate([beta, jnp.ones_like(beta[:1])]) * weight, axis=0)
    products = product(block.x, weighted.T)
    sums = without_offset(
        block,
        b=weighted.sum(-1)[:p],
        bb=product(apart(weighted), beta.T)[:p],
        xb=products[:, :p],
        prior=prior.statistics(latent, block.weight),
    )
    if own is not None:
        sums = sums._replace(
            x=products[:, p],
            xx=_weighted_squares(block, weight),
            weights=Weights(*((part * block.weight).sum() for part in own)),
        )
    if prior.has_offset:
        offset = prior.offset(latent)
        repeated = repeat_rows(offset * weight)
        sums = sums._replace(
            m=repeated[0].sum(),
            mb=(repeated @ beta.T)[0],
            mx=(block.x @ repeated.T)[:, 0],
            mm=(repeated @ offset)[0],
        )
    return jax.tree.map(lambda s: s.astype(float), sums)


def _weighted_squares(block: Block, weight: Array) -> Array:
    """Return the weighted sums (d,) of the squares of x.

    Where only their sum over columns is known, which is all that equal noise needs, each column has
    an equal share of it.
    """
    if block.squares is not None:
        sums = block.squares @ weight
        return jnp.broadcast_to(sums * (len(sums) / len(block.x)), block.x.shape[:1])
    terms = jnp.square(block.x) * weight
    if not terms.shape[1] % 32:  # then vectorised, in a third of the time of a matrix product
        terms = terms.reshape(len(terms), 32, -1).sum(1)
    return terms.sum(1)


def rotate(statistics: Statistics, W: Array) -> Statistics:
    """Return the statistics after beta -> W beta.

    The prior's own statistics are not changed: the next draws will renew them.
    """
    s = statistics
    return s._replace(b=W @ s.b, bb=W @ s.bb @ W.T, xb=s.xb @ W.T, mb=W @ s.mb)


def shift(statistics: Statistics, delta: Array) -> Statistics:
    """Return the statistics after beta -> beta + delta.

    The prior's own statistics are not changed: the next draws will renew them.
    """
    s = statistics
    mixing = s.mixing
    total = delta if s.weights is None else s.weights.total * delta  # [w] delta
    if mixing is not None:
        mixing = mixing._replace(shift=mixing.shift + mixing.mean @ total)
    return s._replace(
        b=s.b + total,
        bb=s.bb + jnp.outer(s.b, delta) + jnp.outer(delta, s.b + total),
        xb=s.xb + jnp.outer(s.x, delta),
        mb=s.mb + s.m * delta,
        mixing=mixing,
    )
