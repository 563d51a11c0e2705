"""The M-step: from statistics to parameters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica.engine.regression import equations, least_squares, residual
from noisyica.engine.state import Constants, Plan
from noisyica.engine.statistics import Statistics
from noisyica.laws.together import scales_together
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.student import solve_dof
from noisyica.priors import Prior

Array = jax.Array

BESIDE_OTHERS = 0.03
"""The minimum share of noise in a column, in units of the others', that is no Heywood case."""
LEAST_OF_ALL = 1e-4
"""How far below its usual floor the noise of a column may be where that of all others is, too."""


def mstep(statistics: Statistics, old: Parameters, plan: Plan, constants: Constants) -> Parameters:
    """Return the parameters of maximum likelihood given the complete data's average statistics.

    They are A and the mean, by regression of x on beta, the noise variance (never below its floor,
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
        pull, mixing = A @ s.b, None
    else:
        A, mixing = s.mixing.mean, plan.mixing.mstep(s.mixing, old.mixing, constants.floor)
        pull = s.mixing.shift
    left = left_of_columns(s, A, prior, plan.free_mean)
    mean = s.x - s.m - pull if plan.free_mean else jnp.zeros_like(s.x)
    dof = None
    if s.weights is not None:
        mean = mean / s.weights.total
        dof = solve_dof(s.weights.mean, s.weights.log, old.dof)
    if plan.pooled_noise:
        positive = jnp.maximum(left, LEAST_OF_ALL * constants.floor)
        left = scales_together(positive, constants.total_weight / 2)
    left = left if plan.diagonal else left.mean()
    sigma2 = jnp.maximum(left, least_noise(left, plan, constants.floor))
    # a prior may ask of how many rows it learns: its statistics are sums over them
    sums = jax.tree.map(lambda average: average * constants.total_weight, s.prior)
    return Parameters(A, mean, sigma2, prior.mstep(sums), mixing, dof)


def left_of_columns(statistics: Statistics, A: Array, prior: Prior, free_mean: bool) -> Array:
    """Return the mean square (d,) of what the components leave of each column of x."""
    s = statistics
    if s.mixing is None:
        left = residual(A, equations(s, prior, free_mean))
    else:
        left = s.mixing.residual
    return left if s.weights is None else left / s.weights.total


def least_noise(sigma2: ArrayLike, plan: Plan, floor: ArrayLike) -> Array:
    """Return the minimum noise variance: of all columns, or of each where they have their own.

    It is ``floor``. Where columns have noise of their own it is less if the noise of the other
    columns is as low, each in units of its own floor: then there is hardly any noise, and no
    component has taken a single column over. (Coefficients at their mode fit anything.)
    """
    floor = jnp.asarray(floor)
    if not plan.diagonal or plan.algorithm.at_mode:
        return floor
    least = LEAST_OF_ALL * floor
    in_floors = jnp.exp(jnp.log(jnp.maximum(sigma2, least) / floor).mean())
    return jnp.maximum(floor * jnp.minimum(1.0, BESIDE_OTHERS * in_floors), least)
