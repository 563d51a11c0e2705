"""The M-step: from statistics to parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisyica.engine.regression import equations, least_squares, residual
from noisyica.engine.state import Plan
from noisyica.engine.statistics import Statistics
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.student import solve_dof

Array = jax.Array


def mstep(statistics: Statistics, old: Parameters, plan: Plan, floor: Array) -> Parameters:
    """Return the parameters of maximum likelihood given the complete data's average statistics.

    They are A and the mean, by regression of x on beta, the noise variance (never below ``floor``,
    which diagonal noise has for each column), and the priors' own parameters.

    With Student noise the weights are free to have any mean at first, which then becomes a factor
    of the noise variance (PX-EM; Liu, Rubin and Wu, 1998). At the maximum of the likelihood that
    mean is one, whatever the degrees of freedom (Kent, Tyler and Vardi, 1994), and the way there is
    shorter.
    """
    s, prior = statistics, old.prior
    if plan.mixing is None:
        regression = equations(s, prior, plan.free_mean)
        A = least_squares(regression.covariance, regression.cross, jnp.diag(s.bb))
        left, pull, mixing = residual(A, regression), A @ s.b, None
    else:
        A, mixing = s.mixing.mean, plan.mixing.mstep(s.mixing, old.mixing, floor)
        left, pull = s.mixing.residual, s.mixing.shift
    mean = s.x - s.m - pull if plan.free_mean else jnp.zeros_like(s.x)
    dof = None
    if s.weights is not None:
        mean, left = mean / s.weights.total, left / s.weights.total
        dof = solve_dof(s.weights.mean, s.weights.log, old.dof)
    sigma2 = jnp.maximum(left if plan.diagonal else left.mean(), floor)
    return Parameters(A, mean, sigma2, prior.mstep(s.prior), mixing, dof)
