r"""The likelihood of rows, the coefficients integrated out: exact, or by annealed sampling.

A path of channels (G_t, c_t) leads from one whose normaliser is known (t = 0) to that of the data
(t = 1), linearly in t: between lie laws of beta proportional to prior(beta) exp(c_t . beta - beta'
G_t beta / 2), for each of which the exact Gibbs sweep serves. A particle that starts with an exact
draw at t = 0 and takes one sweep at each of the others has the weight

    log w = log Z_0 + sum_k (t_{k+1} - t_k) (L_1 - L_0)(beta_k),        E[w] = p(x),

with L the exponent above (Neal, 2001): the average of a few weights estimates p(x) without bias.

The path starts at the *mean field*, heated: G_0 is a tenth of the diagonal of G, and c_0 a tenth of
what each coefficient sees of the data when the others are at their means. That is near the
posterior and wide enough, so that a short path does. From the prior, where it starts for priors
without a mean field, such as those with one scale per row, it takes many times as many sweeps.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import cast
from noisyica._jax.compiling import Compiled
from noisyica._jax.randomness import fold_in
from noisyica._jax.special import LOG_2PI
from noisyica.posterior import enumeration
from noisyica.posterior.chains import blocks, row_keys
from noisyica.posterior.parameters import Parameters, channel, row_channel
from noisyica.priors import MEAN_FIELD, Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array
FROM_MEAN_FIELD = 80
"""The default number of temperatures of a path that starts at the mean field."""
FROM_PRIOR = 200
"""The default number of temperatures of a path that starts at the prior."""
FEW_COEFFICIENTS = 16384
"""The number of coefficients of all particles up to which compiling takes longer than sampling."""
MEAN_FIELD_POWER = 0.1
"""The power to which the mean field's likelihood is raised.

The mean field knows one mode only, and has to be wide enough to reach the others."""


def by_enumeration(prior: Prior, p: int, X: np.ndarray, method: str) -> bool:
    """Return whether the likelihood of X is computed by enumeration: "exact", or "auto" if it can.

    It can be where the discrete variables have few states and nothing is missing.
    """
    if method not in ("auto", "exact", "annealed"):
        raise ValueError(f"method={method!r} is not known. Choose 'auto', 'exact' or 'annealed'.")
    most = enumeration.LIKELIHOOD_STATES
    states = enumeration.count_states(prior, p)
    possible = states is not None and states <= most and not np.isnan(X).any()
    if method == "exact" and not possible:
        here = "no closed form" if states is None else f"{states:,}"
        raise ValueError(
            "method='exact' needs a prior whose discrete variables leave a closed form (mixtures "
            f"of normals and atoms, 'te'), at most {most:,} states of them (here {here}), and no "
            "missing values: choose 'auto' or 'annealed'."
        )
    return possible and method != "annealed"


def exact_log_likelihood(parameters: Parameters, X: np.ndarray, verbose: bool) -> np.ndarray:
    """Return log p(x) of each row by enumeration, (n,)."""
    values = [
        np.asarray(enumeration.log_likelihood(parameters, block.x))[: len(part)]
        for block, part in blocks(X, verbose)
    ]
    return np.concatenate(values)


def annealed_log_likelihood(
    parameters: Parameters,
    X: np.ndarray,
    n_temperatures: int | None = None,
    n_particles: int = 1,
    seed: int = 0,
    verbose: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(x) of each row by annealed importance sampling, (n,), and its standard error."""
    log_weights = []
    few = len(X) * parameters.A.shape[1] * n_particles <= FEW_COEFFICIENTS
    compiled = annealed_weights.compiled(parameters.prior.compiles_fast or few)
    for block, part in blocks(X, verbose):
        keys = row_keys(part, seed, block.x.shape[1])
        weights = compiled(parameters, block, keys, n_temperatures, n_particles)
        log_weights.append(np.asarray(weights)[:, : len(part)])
    return log_mean_exp(np.concatenate(log_weights, 1))


def log_mean_exp(log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the log of the mean of weights along the first axis, and its standard error.

    The log is corrected for its bias.
    """
    m = len(log_weights)
    top = log_weights.max(0)
    weights = np.exp(log_weights - top)
    mean = weights.mean(0)
    # the squared standard error of the mean, relative to it
    relative = weights.var(0, ddof=1) / m / mean**2 if m > 1 else np.zeros_like(mean)
    return top + np.log(mean) + 0.5 * relative, np.sqrt(relative)


def _all_particles(
    parameters: Parameters, block: Block, keys: Array, n_temperatures: int | None, n_particles: int
) -> Array:
    """Return the log weights of each row's particles, (n_particles, n); each row has a key."""
    prior, options = parameters.prior, (n_temperatures, n_particles)
    if block.observed is None:
        log_weights = _log_weights(prior, channel(parameters, block.x), keys, *options)
        return log_weights + _constant(parameters, block)

    def of_row(row: tuple[Array, Array, Array]) -> Array:
        x, observed, key = row
        return _log_weights(prior, row_channel(parameters, x, observed), key[None], *options)[:, 0]

    rows = (block.x.T, block.observed.T, keys)  # each row has a channel of its own
    return lax.map(of_row, rows, batch_size=256).T + _constant(parameters, block)


annealed_weights = Compiled(_all_particles, ("n_temperatures", "n_particles"))


def _constant(parameters: Parameters, block: Block) -> Array:
    """Return the log likelihood of the observed entries of each row, were the coefficients zero."""
    noise = parameters.sigma2[..., None]
    squares = jnp.square(block.x - parameters.mean[:, None]) / noise
    terms = -0.5 * (squares + LOG_2PI + jnp.log(noise))
    return (terms if block.observed is None else jnp.where(block.observed, terms, 0.0)).sum(0)


def _start(prior: Prior, end: Channel, prior32: Any) -> tuple[Channel, Array, int, float]:
    """Return the start of a path to ``end``, its log normaliser, and the path's temperatures.

    These are given by their default number and a power, t_k = (k / number)^power: most of the
    change is near t = 0, where the likelihood first has an effect.
    """
    mean_field = prior32.factorised(cast(end, "float32")) if MEAN_FIELD.of(prior) else None
    if mean_field is None:
        nothing = Channel(*(jnp.zeros_like(part) for part in end))
        return nothing, jnp.zeros(end.c.shape[1:]), FROM_PRIOR, 4.0
    base = Channel(*(MEAN_FIELD_POWER * part.astype(float) for part in mean_field[0]))
    log_normaliser = prior.log_normaliser(base)  # type: ignore[attr-defined]
    return base, log_normaliser, FROM_MEAN_FIELD, 1.5


def _log_weights(
    prior: Prior, end: Channel, keys: Array, n_temperatures: int | None, n_particles: int
) -> Array:
    """Return the log weights of the particles of each row, (n_particles, n).

    ``end`` is the channel of the data, at which the path ends.
    """
    prior32 = cast(prior, "float32")
    base, log_normaliser, count, power = _start(prior, end, prior32)
    count = n_temperatures or count
    ladder = (np.arange(count + 1) / count) ** power
    change = Channel(*(last - first for last, first in zip(end, base, strict=True)))

    def difference(latent: Any) -> Array:
        """Return L_1 - L_0."""
        beta, m = prior32.coefficients(latent).astype(float), prior32.offset(latent).astype(float)
        c = change.c - change.c_one[:, None] * m
        of_offset = m * (change.x_one - 0.5 * change.one_one * m)
        return (beta * (c - 0.5 * (change.G @ beta))).sum(0) + of_offset

    def log_weights_of(particle: Array) -> Array:
        particle_keys = fold_in(keys, particle)

        def step(
            carry: tuple[Any, Array], x: tuple[Array, Array, Array]
        ) -> tuple[tuple[Any, Array], None]:
            latent, log_weight = carry
            k, t, rise = x
            between = Channel(*(first + t * part for first, part in zip(base, change, strict=True)))
            latent = prior32.gibbs(fold_in(particle_keys, k), latent, cast(between, "float32"))
            return (latent, log_weight + rise * difference(latent)), None

        # a draw of the prior, then a sweep at each t_k, then the step to t_{k+1}: where the path
        # starts at the mean field, whose coefficients are independent, the first sweep is an exact
        # draw
        p, n = end.c.shape
        start = prior32.sample_prior(fold_in(particle_keys, count), p, n, "float32")
        inputs = (jnp.arange(count), jnp.asarray(ladder[:-1]), jnp.asarray(np.diff(ladder)))
        return lax.scan(step, (start, log_normaliser), inputs)[0][1]

    return lax.map(log_weights_of, jnp.arange(n_particles))
