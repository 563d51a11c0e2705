"""The M-step: from statistics to parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisyica.engine.regression import equations, least_squares, residual
from noisyica.engine.state import Constants, Plan
from noisyica.engine.statistics import Statistics
from noisyica.posterior.parameters import Parameters

Array = jax.Array


def mstep(statistics: Statistics, old: Parameters, plan: Plan, constants: Constants) -> Parameters:
    """Return the parameters of maximum likelihood given the complete data's average statistics.

    They are A and the mean, by regression of x on beta, the noise variance (never below its floor,
    which diagonal noise has for each column), and the priors' own parameters.
    """
    s, prior, floor = statistics, old.prior, constants.floor
    if plan.mixing is None:
        regression = equations(s, prior, plan.free_mean)
        A = least_squares(regression.covariance, regression.cross, jnp.diag(s.bb))
        left, pull, mixing = residual(A, regression), A @ s.b, None
    else:
        A, mixing = s.mixing.mean, plan.mixing.mstep(s.mixing, old.mixing, floor)
        left, pull = s.mixing.residual, s.mixing.shift
    mean = s.x - s.m - pull if plan.free_mean else jnp.zeros_like(s.x)
    sigma2 = jnp.maximum(left if plan.diagonal else left.mean(), floor)
    # a prior may ask of how many rows it learns: its statistics are sums over them
    sums = jax.tree.map(lambda average: average * constants.total_weight, s.prior)
    return Parameters(A, mean, sigma2, prior.mstep(sums), mixing)
