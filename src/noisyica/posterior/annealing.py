r"""Importance weights of rows by annealed importance sampling, for any prior that has Gibbs sweeps.

A path of channels (t G, t c) leads from nothing (t = 0) to the data (t = 1): between lie laws of
beta proportional to prior(beta) exp(t (c . beta - beta' G beta / 2)), for each of which the exact
Gibbs sweep serves. A particle that starts with a draw from the prior and takes one sweep at each
t_k has the weight

    log w = sum_k (t_{k+1} - t_k) L(beta_k),        E[w] = p(x),

with L the exponent above at t = 1 (Neal, 2001). What a step does to the weights depends on by how
much it multiplies the information in the likelihood, so that 1 + R t_k is a geometric sequence, R
being that information in units of the prior's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.randomness import fold_in
from noisyica.posterior.parameters import Parameters, channel, row_channel
from noisyica.priors import Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array
TEMPERATURES = 200
"""The default number of temperatures of a path."""


def information(parameters: Parameters) -> float:
    """Return R, the information about a coefficient (or an offset) in units of the prior's."""
    A, _, sigma2, prior, *_ = to_numpy(parameters)
    precision = 1 / (np.asarray(sigma2) * np.ones(len(A)))
    squares = (np.square(A) * precision[:, None]).sum(0).max()
    of_offset = np.square(np.asarray(prior.offset_scale, float)) * precision.sum()
    return float(max(prior.variance() * squares, of_offset, 1.0))


def annealed_weights(
    parameters: Parameters,
    block: Block,
    keys: Array,
    ratio: Array,
    n_temperatures: Array,
    n_particles: int,
) -> Array:
    """Return the log weights of each row's particles, (n_particles, n), up to a constant.

    Each row has a key; ``ratio`` is the path's :func:`information`.
    """
    options = (jnp.log1p(ratio), n_temperatures, n_particles)
    if block.observed is None:
        return _log_weights(parameters.prior, channel(parameters, block.x), keys, *options)

    def of_row(row: tuple[Array, Array, Array]) -> Array:
        x, observed, key = row
        seen = row_channel(parameters, x, observed)
        return _log_weights(parameters.prior, seen, key[None], *options)[:, 0]

    rows = (block.x.T, block.observed.T, keys)  # each row has a channel of its own
    return lax.map(of_row, rows, batch_size=256).T


def _log_weights(
    prior: Prior, end: Channel, keys: Array, log_ratio: Array, count: Array, n_particles: int
) -> Array:
    """Return the log weights of the particles of each row, (n_particles, n).

    ``end`` is the channel of the data, at which the path ends.
    """
    prior32 = cast(prior, "float32")

    def temperature(k: Array) -> Array:
        return jnp.expm1(k / count * log_ratio) / jnp.expm1(log_ratio)

    def exponent(latent: Any) -> Array:
        beta, m = prior32.coefficients(latent).astype(float), prior32.offset(latent).astype(float)
        c = end.c - end.c_one[:, None] * m
        of_offset = m * (end.x_one - 0.5 * end.one_one * m)
        return (beta * (c - 0.5 * (end.G @ beta))).sum(0) + of_offset

    def log_weights_of(particle: Array) -> Array:
        particle_keys = fold_in(keys, particle)

        def step(k: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            latent, log_weight = carry
            t = temperature(k)
            between = cast(end.raised(t), jnp.float32)
            # the start has the key 0
            latent = prior32.gibbs(fold_in(particle_keys, k + 1), latent, between)
            return latent, log_weight + (temperature(k + 1) - t) * exponent(latent)

        p, n = end.c.shape
        start = prior32.sample_prior(fold_in(particle_keys, 0), p, n, "float32")
        return lax.fori_loop(0, count, step, (start, jnp.zeros(n)))[1]

    return lax.map(log_weights_of, jnp.arange(n_particles))
