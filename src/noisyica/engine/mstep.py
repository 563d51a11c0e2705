"""The M-step: from statistics to parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisyica.engine.regression import equations, least_squares, residual
from noisyica.engine.statistics import Statistics
from noisyica.posterior.parameters import Parameters
from noisyica.priors import Prior

Array = jax.Array


def mstep(
    statistics: Statistics, prior: Prior, free_mean: bool, diagonal: bool, floor: Array
) -> Parameters:
    """Return the parameters of maximum likelihood given the complete data's average statistics.

    They are A and the mean, by regression of x on beta, the noise variance (never below ``floor``,
    which diagonal noise has for each column), and the prior's own parameters.
    """
    s = statistics
    if s.mixing is None:
        regression = equations(s, prior, free_mean)
        A = least_squares(regression.covariance, regression.cross, jnp.diag(s.bb))
        left, pull, tau2 = residual(A, regression), A @ s.b, None
    else:
        A, tau2 = s.mixing.mean, jnp.maximum(s.mixing.square.mean(0), jnp.min(floor))
        left, pull = s.mixing.residual, s.mixing.shift
    mean = s.x - s.m - pull if free_mean else jnp.zeros_like(s.x)
    sigma2 = jnp.maximum(left if diagonal else left.mean(), floor)
    return Parameters(A, mean, sigma2, prior.mstep(s.prior), tau2)
