r"""The scores of rows: derivatives of their log likelihood in the parameters, by Markov chains.

By Fisher's identity the score of a row is the posterior mean of the complete data's score, which a
Markov chain at the fitted parameters estimates. With b = (1, beta) and a change A C of (mean, A)
within the columns of A,

    score of C = u b',  u = A' Sigma^-1 (x - mean - A beta);
    score of log sigma^2 = (|x - mean - A beta|^2 / sigma^2 - d) / 2.

Where there are offsets, C has one more row, for changes along (1, .., 1). For a *full* change C of
(mean, A), which is not restricted to the columns of A, u is Sigma^-1 (x - mean - A beta).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from noisyica._jax.arrays import cast
from noisyica.posterior.chains import blocks, chain, row_keys
from noisyica.posterior.parameters import Parameters, fitted
from noisyica.priors import Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array

FEW_COEFFICIENTS = 16384
"""The number of coefficients up to which code is compiled fast rather than to run fast.

With so few of them, compiling takes longer than sampling."""


class Scores(NamedTuple):
    """Posterior means for each row (the last axis of the first four), and sums over the rows."""

    C: Any  # (p, p + 1, n); (p + 1, p + 1, n) with an offset; (d, p + 1, n) for a full change
    noise: Any  # (1, n), or (d, n) for diagonal noise
    prior: Any  # (k, n)  in the directions of the prior's parameters
    b: Any  # (p + 1, n)  b = (1, beta)
    bb: Any  # (p + 1, p + 1)  sum of b b'
    squares: Any  # (k, k)  sum of the outer products of the prior's scores


def row_scores(
    parameters: Parameters,
    X: np.ndarray,
    weight: np.ndarray,
    directions: np.ndarray,
    full: bool,
    n_draws: int,
    n_warmup: int,
    seed: int,
    verbose: bool,
) -> Scores:
    """Return the scores of all rows, by one chain for each row.

    ``directions`` are those of :func:`prior_directions`; ``full`` says whether C is a full change.
    """
    few = X.shape[0] * parameters.A.shape[1] <= FEW_COEFFICIENTS
    compiled = chain.compiled(parameters.prior.compiles_fast or few)
    score = _score_of_full_change if full else _score_within_columns
    options = (n_warmup, 1, jnp.asarray(directions), n_draws, "gibbs", False, score)
    parts, first = [], 0
    for block, rows in blocks(X, verbose):
        size, n = block.x.shape[1], len(rows)
        block_weight = np.append(weight[first : first + n], np.zeros(size - n))
        block = block._replace(weight=jnp.asarray(block_weight))
        total, _ = compiled(parameters, block, row_keys(rows, seed, size), *options)
        mean = [np.asarray(part, float) / n_draws for part in total]
        parts.append([part[..., :n] for part in mean[:4]] + mean[4:])
        first += n
    values = list(zip(*parts, strict=True))
    per_row = [np.concatenate(value, -1) for value in values[:4]]
    return Scores(*per_row, *(sum(value) for value in values[4:]))


# ------------------------------------------------------------------------------- scores at one draw


def _score_within_columns(
    parameters: Parameters, latent: Any, seen: Channel, block: Block, directions: Array
) -> Scores:
    """Return the complete data's scores at one draw, for changes within the columns of A."""
    prior = parameters.prior
    beta, offset = prior.coefficients(latent), prior.offset(latent)
    u = seen.c - seen.c_one[:, None] * offset - seen.G @ beta
    if prior.has_offset:
        u = jnp.concatenate([u, (seen.x_one - seen.c_one @ beta - seen.one_one * offset)[None]])
    return _score(parameters, latent, block, directions, u)


def _score_of_full_change(
    parameters: Parameters, latent: Any, seen: Channel, block: Block, directions: Array
) -> Scores:
    """Return the complete data's scores at one draw, for a full change of (mean, A)."""
    return _score(parameters, latent, block, directions, None)


def _score(
    parameters: Parameters, latent: Any, block: Block, directions: Array, u: Array | None
) -> Scores:
    """Return the complete data's scores at one draw; ``u`` is None for a full change."""
    prior, noise = parameters.prior, parameters.sigma2
    beta, offset = prior.coefficients(latent), prior.offset(latent)
    weight = block.weight.astype(beta.dtype)
    b = jnp.concatenate([jnp.ones_like(beta[:1]), beta])
    residual = block.x - fitted(parameters, beta, offset, block.x.dtype)
    if u is None:
        u = (residual / noise[..., None]).astype(beta.dtype)
    square = 0.5 * (residual * residual / noise[..., None] - 1)
    of_noise = square if noise.ndim else square.sum(0, keepdims=True)
    of_prior = _prior_score(prior, beta, offset, directions.astype(beta.dtype)) * (weight > 0)
    return Scores(
        C=u[:, None] * b,
        noise=of_noise.astype(beta.dtype),
        prior=of_prior,
        b=b,
        bb=(b * weight) @ b.T,
        squares=(of_prior * weight) @ of_prior.T,
    )


def _prior_score(prior: Any, beta: Array, offset: Array, directions: Array) -> Array:
    """Return derivatives (k, n) of each row's log density in the prior's directions."""
    if not directions.size:
        return jnp.zeros((0, beta.shape[1]), beta.dtype)

    def along(direction: Array) -> Array:
        return jax.jvp(
            lambda step: moved(prior, step * direction).log_density(beta, offset),
            (jnp.zeros((), beta.dtype),),
            (jnp.ones((), beta.dtype),),
        )[1]

    return jax.vmap(along, in_axes=1)(directions)


# --------------------------------------------------------- the directions of the prior's parameters


def prior_directions(prior: Prior, p: int) -> np.ndarray:
    """Return orthonormal directions (leaves, k) in which the prior's parameters can move.

    They span the range of the derivative of its M-step.
    """
    prior = cast(prior, float)
    if not len(_flat(prior)):
        return np.zeros((0, 0))
    jacobian = np.asarray(jax.jit(_mstep_jacobian, static_argnames="p")(prior, p=p))
    U, values, _ = np.linalg.svd(jacobian, full_matrices=False)
    return np.asarray(U[:, values > 1e-8])


def moved(prior: Any, change: Any) -> Any:
    """Return the prior with ``change`` added to its leaves."""
    leaves, structure = jax.tree.flatten(prior)
    parts = jnp.split(jnp.asarray(change), np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
    new_leaves = [
        leaf + part.reshape(jnp.shape(leaf)).astype(leaf.dtype)
        for leaf, part in zip(leaves, parts, strict=True)
    ]
    return jax.tree.unflatten(structure, new_leaves)


def _mstep_jacobian(prior: Prior, p: int) -> Array:
    """Return derivatives (leaves, statistics) of the M-step, at statistics of draws from the prior.

    The statistics are in units of the largest of them.
    """
    n = 1000
    statistics = prior.statistics(
        prior.sample_prior(jax.random.key(0), p, n, float), jnp.full((n,), 1 / n)
    )
    flat, restore = jax.flatten_util.ravel_pytree(statistics)
    if not flat.size:
        return jnp.zeros((len(_flat(prior)), 1))
    return jax.jacfwd(lambda x: _flat(prior.mstep(restore(x))))(flat) * jnp.abs(flat).max()


def _flat(prior: Prior) -> Array:
    """Return all leaves of the prior, its parameters, as one vector."""
    leaves = jax.tree.leaves(prior)
    if not leaves:
        return jnp.zeros(0)
    return jnp.concatenate([jnp.ravel(jnp.asarray(leaf, float)) for leaf in leaves])
