r"""The most probable coefficients of a row (MAP), by coordinate descent from good starts.

The objective is the paper's (section "Reconstruction"), |x - mean - A beta|^2 / 2 sigma^2 plus what
the hidden variables behind beta cost at their best. One coefficient at a time it is a scalar
problem that every law solves exactly (:meth:`noisyica.laws.Law.best`). Where the penalty is convex
(``log``, ``lap``) that ends at the only minimum. Elsewhere it begins with the best of all discrete
states, if they can be enumerated (:mod:`noisyica.priors.pieces`), or with many states that a Gibbs
sampler visits while the likelihood is heated and cooled. Its random numbers are a hash of the row:
the answer is a function of x and the model alone.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import choose
from noisyica._jax.compiling import Compiled
from noisyica._jax.randomness import fold_in
from noisyica.posterior.chains import blocks, row_keys
from noisyica.posterior.parameters import Parameters, channel, row_channel
from noisyica.priors import MODE, Channel
from noisyica.rows.block import Block

Array = jax.Array

POWERS = (0.03, 0.1, 0.3, 1.0)
"""The powers to which the likelihood is raised in turn while the sampler looks for states."""
CYCLES = 20
"""The number of times that the sampler takes all these powers in turn."""
SHORT = 5
"""The number of sweeps of coordinate descent from each start."""
TRIED = 5
"""The number of weights with which the mode of a row is searched for under Student noise."""
LONG = 10_000
"""The maximum number of sweeps of coordinate descent from the best start."""


def most_probable(parameters: Parameters, X: Any, verbose: bool, betas: np.ndarray) -> np.ndarray:
    """Write the most probable coefficients of the rows of X to ``betas`` (n, p).

    Return the offsets (n,) that belong to them.
    """
    MODE.require(parameters.prior)
    offsets = np.empty(len(X))
    first = 0
    for block, part in blocks(X, verbose):
        keys = row_keys(part, 0, block.x.shape[1])
        beta, offset = modes.compiled(fast_compile=True)(parameters, block, keys)
        here = slice(first, first + len(part))
        betas[here], offsets[here] = (
            np.asarray(beta).T[: len(part)],
            np.asarray(offset)[: len(part)],
        )
        first += len(part)
    return offsets


def _modes(parameters: Parameters, block: Block, keys: Array) -> tuple[Array, Array]:
    """Return the most probable coefficients (p, n) and offsets (n,) of a block of rows.

    ``keys`` has a key for each row.
    """
    prior, dof = parameters.prior, parameters.dof
    if block.observed is None and dof is None:
        latent = _search(prior, channel(parameters, block.x), keys)
        return prior.coefficients(latent), prior.offset(latent)

    def of_row(row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        x, observed, key = row
        seen = row_channel(parameters, x, observed)
        if dof is None:
            latent = _search(prior, seen, key[None])
        else:
            latent = _search_with_weight(prior, seen, key[None], dof, observed.sum())
        return prior.coefficients(latent)[:, 0], prior.offset(latent)[0]

    observed = jnp.ones(block.x.shape, bool) if block.observed is None else block.observed
    rows = (block.x.T, observed.T, keys)  # each row has a channel of its own
    beta, offset = lax.map(of_row, rows, batch_size=64)
    return beta.T, offset


modes = Compiled(_modes)


def _search(prior: Any, seen: Channel, keys: Array) -> Any:
    """Return the best latent variables that the search from all starts finds, row by row."""
    p, n = seen.c.shape
    start = jax.tree.map(jnp.asarray, prior.zeros(p, n, float))
    best = _sweeps(prior, seen, start, SHORT)
    if not prior.convex:
        starts, exhaustive = prior.candidates(seen)
        best = _best_of(prior, seen, starts, best)
        if not exhaustive:
            best = _visits(prior, seen, keys, best)

    def moving(state: tuple[Array, Any, Array]) -> Array:
        i, latent, before = state
        value = _objective(prior, seen, latent)
        return (i < LONG // SHORT) & jnp.any(before - value > 1e-12 * (1 + jnp.abs(value)))

    def go_on(state: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
        i, latent, _ = state
        return i + 1, _sweeps(prior, seen, latent, SHORT), _objective(prior, seen, latent)

    first = (jnp.zeros((), int), best, jnp.full(n, jnp.inf))
    return lax.while_loop(moving, go_on, first)[1]


def _search_with_weight(prior: Any, seen: Channel, keys: Array, dof: Array, count: Array) -> Any:
    """Return the best latent variables of one row under Student noise.

    With q the squares that they leave of ``count`` entries, the objective has the term (dof +
    count) / 2 log(1 + q / dof). It lies below a line in q that touches it, whose slope is half the
    expected weight of the row: so the search with that weight never makes it worse. Since there may
    be several minima, it is tried with weights from that of a row that is nothing but noise to that
    of a row without noise.
    """

    def misfit(latent: Any) -> Array:
        return seen.misfit(prior.coefficients(latent), prior.offset(latent))

    def weight(latent: Any) -> Array:
        return ((dof + count) / (dof + misfit(latent)))[0]

    def objective(latent: Any) -> Array:
        cost = prior.penalty(prior.coefficients(latent), prior.offset(latent))
        return 0.5 * (dof + count) * jnp.log1p(misfit(latent) / dof) + cost

    p, n = seen.c.shape
    nothing = jax.tree.map(jnp.asarray, prior.zeros(p, n, float))
    least, most = jnp.log(weight(nothing)), jnp.log((dof + count) / dof)

    def again(i: Array, best: Any) -> Any:
        tried = jnp.exp(least + (most - least) * i / (TRIED - 1))
        new = _search(prior, seen.raised(jnp.where(i < TRIED, tried, weight(best))), keys)
        return choose(objective(new) < objective(best), new, best)

    def moving(state: tuple[Array, Any, Array]) -> Array:
        i, latent, before = state
        value = objective(latent)
        return (i < LONG // SHORT) & jnp.any(before - value > 1e-12 * (1 + jnp.abs(value)))

    def go_on(state: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
        i, latent, _ = state
        new = _sweeps(prior, seen.raised(weight(latent)), latent, SHORT)
        return i + 1, new, objective(latent)

    best = lax.fori_loop(0, TRIED + 1, again, nothing)
    return lax.while_loop(moving, go_on, (jnp.zeros((), int), best, jnp.full(n, jnp.inf)))[1]


def _objective(prior: Any, seen: Channel, latent: Any) -> Array:
    """Return what the mode minimises, for each row (n,) and up to a constant that depends on x."""
    beta, mu = prior.coefficients(latent), prior.offset(latent)
    c = seen.c - seen.c_one[:, None] * mu
    fit = (beta * (0.5 * (seen.G @ beta) - c)).sum(0) + mu * (0.5 * seen.one_one * mu - seen.x_one)
    return fit + prior.penalty(beta, mu)


def _sweeps(prior: Any, seen: Channel, latent: Any, count: int) -> Any:
    """Return the latent variables after ``count`` sweeps of coordinate descent."""
    return lax.fori_loop(0, count, lambda _, latent: prior.ascend(latent, seen), latent)


def _better(prior: Any, seen: Channel, new: Any, old: Any) -> Any:
    """Return, row by row, those of two sets of latent variables that have the lower objective."""
    wins = _objective(prior, seen, new) < _objective(prior, seen, old)
    return jax.tree.map(lambda x, y: jnp.where(wins, x, y), new, old)


def _best_of(prior: Any, seen: Channel, starts: Any, best: Any) -> Any:
    """Return the best of ``best`` and of what a few sweeps from each of the ``starts`` lead to."""
    return lax.scan(
        lambda best, start: (_better(prior, seen, _sweeps(prior, seen, start, SHORT), best), None),
        best,
        starts,
    )[0]


def _visits(prior: Any, seen: Channel, keys: Array, best: Any) -> Any:
    """Return the best of ``best`` and of what sweeps from the states of a Gibbs sampler lead to."""

    def visit(carry: tuple[Any, Any], k: Array) -> tuple[tuple[Any, Any], None]:
        best, latent = carry
        hot = seen.raised(jnp.asarray(POWERS)[k % len(POWERS)])
        latent = prior.gibbs(fold_in(keys, k), latent, hot)
        return (_better(prior, seen, _sweeps(prior, seen, latent, SHORT), best), latent), None

    return lax.scan(visit, (best, best), jnp.arange(CYCLES * len(POWERS)))[0][0]
