r"""The likelihood of x with the coefficients integrated out, by annealed importance sampling.

A path of channels (G_t, c_t) leads from one whose normaliser is known (t = 0) to that of the data (t = 1), linearly in t: between lie laws
of beta proportional to prior(beta) exp(c_t . beta - beta' G_t beta / 2), for each of which the exact Gibbs sweep serves. A particle that
starts with an exact draw at t = 0 and takes one sweep at each of the others has the weight

    log w = log Z_0 + sum_k (t_{k+1} - t_k) (L_1 - L_0)(beta_k),        E[w] = p(x),

with L the exponent above (Neal, 2001): the average of a few weights estimates p(x) without bias.

The path starts at the *mean field*, heated: G_0 is a tenth of the diagonal of G, and c_0 a tenth of what each coefficient sees of the data
when the others are at their means. That is near the posterior and wide enough, so that a short path does; from the prior, where it starts
for priors with one scale a row, it takes many times as many sweeps.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import Compiled, cast
from noisyica._jax.special import LOG_2PI
from noisyica.engine.statistics import Block, Parameters, channel, row_channel
from noisyica.priors import Channel, Prior

Array = jax.Array
FROM_MEAN_FIELD, FROM_PRIOR = 80, 200
"""Temperatures by default, by where the path starts."""
HEAT = 0.1
"""The mean field's likelihood is raised to this power: it knows one mode only, and has to be wide enough to reach the others."""


def _all_particles(
    parameters: Parameters, block: Block, keys: Array, n_temperatures: int | None, n_particles: int
) -> Array:
    """The log weights of the particles (n_particles, n) of each row of the block; ``keys`` holds a key a row."""
    if block.observed is None:
        return _weights(
            parameters.prior, channel(parameters, block.x), keys, n_temperatures, n_particles
        ) + _constant(parameters, block)

    def alone(row: tuple[Array, Array, Array]) -> Array:
        x, observed, key = row
        return _weights(
            parameters.prior,
            row_channel(parameters, x, observed),
            key[None],
            n_temperatures,
            n_particles,
        )[:, 0]

    rows = (block.x.T, block.observed.T, keys)
    return lax.map(alone, rows, batch_size=256).T + _constant(parameters, block)


annealed_weights = Compiled(_all_particles, ("n_temperatures", "n_particles"))


def _constant(parameters: Parameters, block: Block) -> Array:
    """The log likelihood of the observed entries of each row, were the coefficients zero."""
    noise = parameters.sigma2[..., None]
    terms = -0.5 * (
        jnp.square(block.x - parameters.mean[:, None]) / noise + LOG_2PI + jnp.log(noise)
    )
    return (terms if block.observed is None else jnp.where(block.observed, terms, 0.0)).sum(0)


def _weights(
    prior: Prior, whole: Channel, keys: Array, n_temperatures: int | None, n_particles: int
) -> Array:
    """The log weights of the particles of each row (n_particles, n)."""
    single = cast(prior, "float32")
    known = single.factorised(cast(whole, "float32"))
    # most of the change is near t = 0, where the likelihood first bites: temperatures grow like a power
    count, power = (FROM_PRIOR, 4.0) if known is None else (FROM_MEAN_FIELD, 1.5)
    count = n_temperatures or count
    ladder = (np.arange(count + 1) / count) ** power
    if known is None:
        base, log_normaliser = (
            Channel(*(jnp.zeros_like(part) for part in whole)),
            jnp.zeros(whole.c.shape[1:]),
        )
    else:
        base = Channel(*(HEAT * part.astype(float) for part in known[0]))
        log_normaliser = prior.log_normaliser(base)
    change = Channel(*(end - start for end, start in zip(whole, base, strict=True)))
    blank = jax.tree.map(jnp.asarray, single.blank(len(whole.G), whole.c.shape[1], "float32"))

    def difference(latent: object) -> Array:
        """L_1 - L_0."""
        beta, m = single.coefficients(latent).astype(float), single.offset(latent).astype(float)
        c = change.c - change.c_one[:, None] * m
        return (beta * (c - 0.5 * (change.G @ beta))).sum(0) + m * (
            change.x_one - 0.5 * change.one_one * m
        )

    def one(particle: Array) -> Array:
        own = jax.vmap(lambda key: jax.random.fold_in(key, particle))(keys)

        def sweep(latent: object, k: Array, t: Array) -> object:
            tilt = cast(
                Channel(*(start + t * part for start, part in zip(base, change, strict=True))),
                "float32",
            )
            return single.gibbs(jax.vmap(lambda key: jax.random.fold_in(key, k))(own), latent, tilt)

        def step(
            carry: tuple[object, Array], x: tuple[Array, Array, Array]
        ) -> tuple[tuple[object, Array], None]:
            latent, log_weight = carry
            k, t, rise = x
            latent = sweep(latent, k, t)
            return (latent, log_weight + rise * difference(latent)), None

        # a sweep at t_k, whose first one is the exact draw, then the step to t_{k+1}
        inputs = (jnp.arange(count), jnp.asarray(ladder[:-1]), jnp.asarray(np.diff(ladder)))
        return lax.scan(step, (blank, log_normaliser), inputs)[0][1]

    return lax.map(one, jnp.arange(n_particles))
