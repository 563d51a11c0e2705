"""A hidden mixing matrix (``mixing_prior="normal"``).

The entries of column j of A have the prior N(0, tau_j^2), and A is part of the complete data: it is
drawn given the coefficients, and its conditional mean and square, and the residual, are averaged
over iterations.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisyica._jax.randomness import uniforms
from noisyica._jax.special import normal_quantile
from noisyica.engine.regression import eigh, equations, residual
from noisyica.engine.statistics import Mixing, Statistics
from noisyica.posterior.parameters import Parameters

Array = jax.Array


def draw_mixing(
    key: Array, statistics: Statistics, parameters: Parameters, count: Array, free_mean: bool
) -> tuple[Array, Mixing]:
    """Draw A given the coefficients of ``count`` rows; return the draw and A's conditional moments.

    Row i of A has precision count * covariance / sigma_i^2 + diag(1 / tau^2). With T = diag(tau)
    and T covariance T = U diag(s) U', its inverse is T U diag(sigma_i^2 / (count s + sigma_i^2)) U'
    T: one decomposition serves all rows of A, whatever their noise.
    """
    regression = equations(statistics, parameters.prior, free_mean)
    tau = jnp.sqrt(parameters.tau2)
    s, U = eigh(tau[:, None] * regression.covariance * tau)
    s, turn = jnp.maximum(count * s, 0.0), tau[:, None] * U
    noise = jnp.broadcast_to(parameters.sigma2, regression.total.shape)[:, None]
    shrink = 1 / (s + noise)  # (d, p)
    mean = (count * (regression.cross @ turn) * shrink) @ turn.T
    spread = noise * shrink
    # the long axis comes last: it is the one that is vectorised
    (u,) = uniforms(key, 1, mean.T.shape, jnp.float32)
    draw = mean + (jnp.sqrt(spread) * normal_quantile(u).T) @ turn.T
    variance = spread @ jnp.square(turn).T
    # E[(x - mean - A beta)^2] given beta: the residual of the means, the variance of A beta, and
    # that of the mean
    left = residual(mean, regression) + ((spread * s).sum(1) + free_mean * noise[:, 0]) / count
    return draw, Mixing(mean, jnp.square(mean) + variance, mean @ statistics.b, left)
