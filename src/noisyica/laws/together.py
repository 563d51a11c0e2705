"""Parameters of several components that have a common law, and are drawn towards each other by it.

How strongly they are is learnt, by moments: as strongly as they are alike. Components of which the
rows say little learn from the others, and components that differ keep parameters of their own.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

Array = jax.Array

LEAST_VARIANCE = 1e-3
"""The minimum variance of the logarithms of squared scales: less cannot be told from none."""
LEAST_SHARE = 1e-4
"""The minimum variance of weights, as a share of that of an indicator."""


def scales_together(square: Array, information: ArrayLike) -> Array:
    """Return squared scales tau_j^2 (p,), drawn towards each other where they are alike.

    1 / tau_j^2 is Gamma, with a shape a and the mean 1 / c. ``square`` are mean squares, by which
    data tell tau_j^2, and ``information`` (p numbers, or one) is what they tell of its logarithm:
    half of the number of squares, where these are of normal values. The mode of log tau_j^2 is then
    a weighted mean of the mean square and c.

    1 / a is the variance of log tau_j^2 beyond what the data leave uncertain (the estimate of
    DerSimonian and Laird for the variance between groups), and log c is their mean.
    """
    p = len(square)
    if p == 1:
        return square
    weight = jnp.broadcast_to(information, (p,))
    total = weight.sum()
    centre, spread = _spread_of_scales(square, weight)
    a = 1 / jnp.maximum((spread - (p - 1)) / (total - weight @ weight / total), LEAST_VARIANCE)
    return (weight * square + a * jnp.exp(centre)) / (weight + a)


def told_apart(square: Array, information: ArrayLike) -> Array:
    """Return by how many standard errors the scales differ more than equal ones do by chance.

    The arguments are those of :func:`scales_together`. Of equal scales, the spread has a chi-square
    law of p - 1 degrees of freedom.
    """
    degrees = max(len(square) - 1, 1)
    spread = _spread_of_scales(square, jnp.broadcast_to(information, square.shape))[1]
    return (spread - degrees) / (2 * degrees) ** 0.5


def _spread_of_scales(square: Array, weight: Array) -> tuple[Array, Array]:
    """Return the mean of log tau^2, and the weighted sum of squares about it."""
    # the mean of the logarithm of a mean square is too small: digamma(k) is log k - 1 / 2k, nearly
    logs = jnp.log(square) + 0.5 / weight
    centre = weight @ logs / weight.sum()
    return centre, weight @ jnp.square(logs - centre)


def weights_together(counts: Array) -> Array:
    """Return the weights (p, K) of K classes for p components, drawn towards common ones.

    The weights have a common Dirichlet law, of a mean m and a concentration k: those of a component
    of N values with the shares f are (N f + k m) / (N + k). The shares vary about m with the
    variance m (1 - m) (r + (1 - r) / N), r = 1 / (1 + k), which tells r.
    """
    return together(counts)[0]


def together(counts: Array) -> tuple[Array, Array]:
    """Return the weights of :func:`weights_together`, and the share k / (N + k) of m in them.

    The latter is the mean over the components.
    """
    p = len(counts)
    total = counts.sum(-1, keepdims=True)
    known = total > 1e-9  # before the first iteration, statistics are zero
    shares = jnp.where(known, counts / jnp.where(known, total, 1.0), 1 / counts.shape[-1])
    if p == 1:
        return shares, jnp.zeros(())
    mean, n = shares.mean(0), jnp.maximum(total.mean(), 2.0)
    between = jnp.square(shares - mean).sum() / (p - 1)
    variance = between / jnp.maximum(1 - mean @ mean, 1e-9)
    r = jnp.clip((variance - 1 / n) / (1 - 1 / n), LEAST_SHARE, 1.0)
    k = 1 / r - 1
    return (total * shares + k * mean) / (total + k), (k / (total + k)).mean()
