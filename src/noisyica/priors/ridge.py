"""Coefficients by ridge regression, from what a prior sees of the data."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisyica._jax.device import platform
from noisyica._jax.matrices import inverse_root
from noisyica._jax.special import eliminate
from noisyica.priors.base import Channel

Array = jax.Array


def ridge_factor(G: Array) -> Array:
    """Return F (p, p) such that F'F is the inverse of G plus a small ridge."""
    p = len(G)
    shrunk = G + jnp.eye(p, dtype=G.dtype) * (1e-3 * jnp.trace(G) / p + 1e-12)
    if platform() == "gpu":
        return inverse_root(shrunk)
    return eliminate(jnp.concatenate([shrunk, jnp.eye(p, dtype=G.dtype)], 1))[:, p:]


def ridge(channel: Channel) -> tuple[Array, Array]:
    """Return coefficients (p, n) by ridge regression, and the offsets (n,) that come off before."""
    mu = channel.x_one / jnp.where(channel.one_one > 0, channel.one_one, 1.0)
    factor = ridge_factor(channel.G)
    return factor.T @ (factor @ (channel.c - channel.c_one[:, None] * mu)), mu
