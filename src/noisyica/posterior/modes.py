r"""The most probable coefficients of a row (MAP), by coordinate descent from good starts.

The objective is the paper's (section "Reconstruction"), |x - mean - A beta|^2 / 2 sigma^2 plus what the hidden variables behind beta cost
at their best. One coefficient at a time it is a scalar problem that every law solves exactly (:meth:`noisyica.laws.Law.best`). Where the
penalty is convex (``log``, ``lap``) that ends at the only minimum. Elsewhere it begins with the best of all discrete states, if they can
be gone through (:mod:`noisyica.priors.pieces`), or with many states that a Gibbs sampler visits while the likelihood is heated and cooled. Its
random numbers are a hash of the row: the answer is a function of x and the model alone.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from noisyica._jax.arrays import Compiled
from noisyica.engine.statistics import Block, Parameters, channel, row_channel
from noisyica.priors import Channel, Prior

Array = jax.Array

HEAT = (0.03, 0.1, 0.3, 1.0)
"""What the likelihood is raised to in turn."""
CYCLES = 20
"""How often."""
SHORT, LONG = 5, 10_000
"""Sweeps from each start, and at most from the best one."""


def _modes(parameters: Parameters, block: Block, keys: Array) -> tuple[Array, Array]:
    """The most probable coefficients (p, n) and offsets (n,) of a block of rows; ``keys`` holds a key a row."""
    prior = parameters.prior
    if block.observed is None:
        latent = _search(prior, channel(parameters, block.x), keys)
        return prior.coefficients(latent), prior.offset(latent)

    def alone(row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        x, observed, key = row
        latent = _search(prior, row_channel(parameters, x, observed), key[None])
        return prior.coefficients(latent)[:, 0], prior.offset(latent)[0]

    beta, offset = lax.map(alone, (block.x.T, block.observed.T, keys), batch_size=64)
    return beta.T, offset


modes = Compiled(_modes)


def _search(prior: Prior, tilt: Channel, keys: Array) -> Any:
    """The best latent variables that are found."""
    p, n = tilt.c.shape
    start = jax.tree.map(jnp.asarray, prior.blank(p, n, float))
    found = _sweeps(prior, tilt, start, SHORT)
    if not prior.convex:
        starts, exhaustive = prior.candidates(tilt)
        found = _best_of(prior, tilt, starts, found)
        if not exhaustive:
            found = _visits(prior, tilt, keys, found)

    def moving(state: tuple[Array, Any, Array]) -> Array:
        i, latent, before = state
        value = _objective(prior, tilt, latent)
        return (i < LONG // SHORT) & jnp.any(before - value > 1e-12 * (1 + jnp.abs(value)))

    def go_on(state: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
        i, latent, _ = state
        return i + 1, _sweeps(prior, tilt, latent, SHORT), _objective(prior, tilt, latent)

    first = (jnp.zeros((), int), found, jnp.full(n, jnp.inf))
    return lax.while_loop(moving, go_on, first)[1]


def _objective(prior: Prior, tilt: Channel, latent: Any) -> Array:
    """What is minimised, up to a constant of the row (n,)."""
    beta, mu = prior.coefficients(latent), prior.offset(latent)
    c = tilt.c - tilt.c_one[:, None] * mu
    fit = (beta * (0.5 * (tilt.G @ beta) - c)).sum(0) + mu * (0.5 * tilt.one_one * mu - tilt.x_one)
    return fit + prior.penalty(beta, mu)


def _sweeps(prior: Prior, tilt: Channel, latent: Any, count: int) -> Any:
    return lax.fori_loop(0, count, lambda _, latent: prior.ascend(latent, tilt), latent)


def _better(prior: Prior, tilt: Channel, new: Any, old: Any) -> Any:
    """Row by row, the latent variables of lower objective."""
    wins = _objective(prior, tilt, new) < _objective(prior, tilt, old)
    return jax.tree.map(lambda x, y: jnp.where(wins, x, y), new, old)


def _best_of(prior: Prior, tilt: Channel, starts: Any, found: Any) -> Any:
    """The best of where a few sweeps from each of the ``starts`` end, and of what was found before."""
    return lax.scan(
        lambda best, start: (_better(prior, tilt, _sweeps(prior, tilt, start, SHORT), best), None),
        found,
        starts,
    )[0]


def _visits(prior: Prior, tilt: Channel, keys: Array, found: Any) -> Any:
    """The best of where a few sweeps end that begin with the visits of a Gibbs sampler."""

    def visit(carry: tuple[Any, Any], k: Array) -> tuple[tuple[Any, Any], None]:
        best, latent = carry
        hot = Channel(*(jnp.asarray(HEAT)[k % len(HEAT)] * part for part in tilt))
        latent = prior.gibbs(jax.vmap(lambda key: jax.random.fold_in(key, k))(keys), latent, hot)
        return (_better(prior, tilt, _sweeps(prior, tilt, latent, SHORT), best), latent), None

    return lax.scan(visit, (found, found), jnp.arange(CYCLES * len(HEAT)))[0][0]
