r"""The likelihood of x with the coefficients integrated out, by annealed importance sampling.

Between the prior (t = 0) and the posterior (t = 1) lie the laws p_t(beta) proportional to prior(beta) L(beta)^t, L being the likelihood of
x given beta. L is Gaussian in beta, so L^t only multiplies the channel by t, and the exact Gibbs sweep serves every temperature. A
particle that starts with a draw of the prior and takes one sweep at each temperature has the weight

    log w = sum_k (t_{k+1} - t_k) log L(beta_k),        E[w] = p(x)

(Neal, 2001): the average of a few weights estimates p(x) without bias.

Where entries of x are missing, L is that of the others. To sweep at temperature t they are first drawn from N(mean + A beta, sigma^2 / t):
given them, L^t times their density is again the channel times t, and integrating them out leaves p_t.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from noisyica._array import Compiled, cast
from noisyica.priors import Channel
from noisyica.special import LOG_2PI
from noisyica.statistics import Block, Parameters, channel, fitted, impute

Array = jax.Array


def _all_particles(parameters: Parameters, block: Block, keys: Array, n_temperatures: int, n_particles: int) -> Array:
    """The log weights of the particles (n_particles, n) of each row of the block; ``keys`` holds a key a row."""

    def one(i: Array) -> Array:
        return _weights(parameters, block, jax.vmap(lambda key: jax.random.fold_in(key, i))(keys), n_temperatures)

    return lax.map(one, jnp.arange(n_particles))


annealed_weights = Compiled(_all_particles, ("n_temperatures", "n_particles"))


def _weights(parameters: Parameters, block: Block, keys: Array, n_temperatures: int) -> Array:
    """The log weight of one particle for each row."""
    prior = cast(parameters.prior, "float32")
    p, (d, n) = parameters.A.shape[1], block.x.shape
    observed = jnp.ones((d, 1)) if block.observed is None else block.observed.astype(float)
    centred = (block.x - parameters.mean[:, None]) * observed
    noise = jnp.broadcast_to(parameters.sigma2, (d,))[:, None]
    constant = -0.5 * (centred * centred / noise + observed * (LOG_2PI + jnp.log(noise))).sum(0)
    whole = channel(parameters, block.x)
    # most of the change is near t = 0, where the likelihood first bites: temperatures grow like a power
    ladder = (jnp.arange(n_temperatures + 1) / n_temperatures) ** 4

    def log_likelihood(latent: object) -> Array:
        """Of the observed entries, less ``constant``."""
        beta, m = prior.coefficients(latent).astype(float), prior.offset(latent).astype(float)
        if block.observed is not None:
            fit = (fitted(parameters, beta, m, float) - parameters.mean[:, None]) * observed
            return (fit * (centred - 0.5 * fit) / noise).sum(0)
        c = whole.c - whole.c_one[:, None] * m
        return (beta * (c - 0.5 * (whole.G @ beta))).sum(0) + m * (whole.x_one - 0.5 * whole.one_one * m)

    def step(carry: tuple[object, Array], k: Array) -> tuple[tuple[object, Array], None]:
        latent, log_weight = carry
        log_weight = log_weight + (ladder[k + 1] - ladder[k]) * log_likelihood(latent)
        step_keys = jax.vmap(lambda key: jax.random.fold_in(key, k + 1))(keys)
        tilt = whole
        if block.observed is not None:
            hot = parameters._replace(sigma2=parameters.sigma2 / ladder[k + 1])
            tilt = channel(parameters, impute(jax.vmap(lambda key: jax.random.fold_in(key, 0))(step_keys), hot, latent, block).x)
        latent = prior.gibbs(step_keys, latent, cast(Channel(*(ladder[k + 1] * part for part in tilt)), "float32"))
        return (latent, log_weight), None

    start = (prior.start(jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys), p, n, "float32"), constant)
    (_, log_weight), _ = lax.scan(step, start, jnp.arange(n_temperatures))
    return log_weight
