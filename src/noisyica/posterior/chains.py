"""Markov chains of the coefficients, one for each row, given the model's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import cast, zeros_like_shapes
from noisyica._jax.compiling import Compiled
from noisyica._jax.randomness import Key, RowKeys, fold_in, key_of
from noisyica.posterior.parameters import Parameters, channel, impute
from noisyica.priors import METROPOLIS, Channel
from noisyica.progress import Reporter
from noisyica.rows.block import Block

Array = jax.Array

SIZES = (128, 512, 4096)
"""The numbers of rows that are sampled at a time: few, since each is compiled for."""
SWEEP = "float32"
"""The dtype of the posterior's sweeps."""

Summary = Callable[[Parameters, Any, Channel, Block, Any], Any]
"""A function that is summed over draws.

Its arguments are the parameters, the latent variables, the channel, the rows, and what else it
needs.
"""


def posterior_sample(
    parameters: Parameters,
    X: np.ndarray,
    n_draws: int,
    n_warmup: int,
    thin: int,
    sampler: str,
    seed: int,
    verbose: bool,
) -> np.ndarray:
    """Draw from the posterior of the coefficients: (n_draws, n, p)."""
    key = key_of(seed)
    draws = []
    for block, part in blocks(X, verbose):
        keys = RowKeys(key, block.first)
        options = (n_warmup, thin, None, n_draws, sampler, True, coefficients)
        kept = _compiled(parameters)(parameters, block, keys, *options)[1]
        draws.append(np.asarray(kept)[:, :, : len(part)].transpose(0, 2, 1))
    return np.concatenate(draws, axis=1)


def posterior_mean(
    parameters: Parameters, X: np.ndarray, n_draws: int, n_warmup: int, seed: int, verbose: bool
) -> np.ndarray:
    """Return the posterior mean of the coefficients, (n, p).

    That of a row is a function of the row and the seed alone.
    """
    means = []
    for block, part in blocks(X, verbose):
        keys = row_keys(part, seed, block.x.shape[1])
        options = (n_warmup, 1, None, n_draws, "gibbs", False, coefficients)
        total = _compiled(parameters)(parameters, block, keys, *options)[0]
        means.append(np.asarray(total)[:, : len(part)].T / n_draws)
    return np.concatenate(means)


def _compiled(parameters: Parameters) -> Callable[..., tuple[Any, Any]]:
    return chain.compiled(parameters.prior.compiles_fast)


def blocks(X: np.ndarray, verbose: bool) -> Iterator[tuple[Block, np.ndarray]]:
    """Yield X in blocks of one of ``SIZES`` rows: the block, and its rows of X.

    Blocks are filled up with rows of weight 0.
    """
    with Reporter("noisyica rows", len(X), verbose) as reporter:
        first = 0
        while first < len(X):
            size = block_size(len(X), first)
            part = np.asarray(X[first : first + size], np.float64)
            x = np.zeros((X.shape[1], size))
            x[:, : len(part)] = part.T
            missing = np.isnan(x)
            x[missing] = 0.0
            # of NumPy: what is compiled takes it as it is, and JAX would compile each conversion
            arrays: Any = {
                "x": x,
                "weight": (np.arange(size) < len(part)).astype(float),
                "sum_x": x.sum(1),
                "sum_xx": x.sum(1),
                "observed": ~missing if missing.any() else None,
                "first": np.asarray(first, np.uint32),
            }
            yield Block(**arrays), part
            first += size
            if first < len(X):
                reporter.update(first)


def block_size(n: int, first: int) -> int:
    """Return the number of rows of the block of n rows that begins with row ``first``.

    A few rows make one small block. What is left of many rows is cut into blocks of the middle size
    where these are at most half of a large one, so that at most half of the rows only fill up.
    """
    small, middle, large = SIZES
    if n <= small:
        return small
    return middle if n - first <= large // 2 else large


def row_keys(X: np.ndarray, seed: int, size: int) -> Array:
    """Return a random key for each row, a hash of its values and the seed.

    Further keys fill them up to ``size``.
    """
    words = np.where(np.isnan(X), np.nan, X + 0.0).view(np.uint64)  # -0.0 and 0.0 become alike
    numbers = np.random.RandomState(20120301).randint(0, 2**62, X.shape[1], dtype=np.uint64)
    factors = numbers * np.uint64(2) + np.uint64(1)
    words = words ^ (words >> np.uint64(29))
    mixed = (words * factors).sum(1, dtype=np.uint64)
    mixed = mixed ^ np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    mixed = np.append(mixed, np.zeros(size - len(X), np.uint64))
    return jax.random.wrap_key_data(jax.device_put(mixed.view(np.uint32).reshape(-1, 2)))


def coefficients(
    parameters: Parameters, latent: Any, seen: Channel, block: Block, extra: Any
) -> Array:
    """Return the coefficients (p, n): the :data:`Summary` whose mean is the posterior mean."""
    return parameters.prior.coefficients(latent).astype(float)


def _sweep_rows(
    parameters: Parameters,
    block: Block,
    keys: Key,
    n_warmup: int,
    thin: int,
    extra: Any,
    n_draws: int,
    sampler: str,
    keep: bool,
    summary: Summary,
) -> tuple[Any, Any]:
    """Sweep from a draw of the prior; return the sum of the summaries of the draws.

    If ``keep``, the coefficients of the draws (n_draws, p, n) are returned, too.
    """
    # products are in double precision, sweeps in single: so the rounding of a row's draws does not
    # depend on the rows beside it
    prior: Any = cast(parameters.prior, SWEEP)
    if sampler == "metropolis":
        METROPOLIS.require(prior)
    parameters = parameters._replace(prior=prior)
    latent = prior.sample_prior(fold_in(keys, 0), parameters.A.shape[1], block.x.shape[1], SWEEP)
    sweep = prior.gibbs if sampler == "gibbs" else prior.metropolis
    first_seen: Channel = cast(channel(parameters, block.x), SWEEP)

    def seen(block: Block) -> Channel:
        # where entries are missing, they and the channel change from sweep to sweep
        return first_seen if block.observed is None else cast(channel(parameters, block.x), SWEEP)

    def step(i: Array, carry: tuple[Any, Block]) -> tuple[Any, Block]:
        latent, block = carry
        # the start has the key 0; a key that a prior may split has no other descendants
        latent = sweep(fold_in(keys, 2 * i + 1), latent, seen(block))
        if block.observed is not None:
            block = impute(fold_in(keys, 2 * i + 2), parameters, latent, block)
        return latent, block

    def to_next_draw(carry: Any, i: Array) -> tuple[Any, Any]:
        position, total = carry
        first = jnp.where(i == 0, 0, n_warmup + i * thin)  # the first kept draw ends the warm-up
        position = lax.fori_loop(first, n_warmup + (i + 1) * thin, step, position)
        latent, block = position
        new = summary(parameters, latent, seen(block), block, extra)
        draw = coefficients(parameters, latent, first_seen, block, None) if keep else None
        return (position, jax.tree.map(jnp.add, total, new)), draw

    shapes = jax.eval_shape(
        lambda latent: summary(parameters, latent, first_seen, block, extra), latent
    )
    start = ((latent, block), zeros_like_shapes(shapes))
    (_, total), draws = lax.scan(to_next_draw, start, jnp.arange(n_draws))
    return total, draws


chain = Compiled(_sweep_rows, ("n_draws", "sampler", "keep", "summary"))
