r"""Student noise: each row has a weight w of its own, by which its noise variance is divided.

With w ~ Gamma(nu / 2, rate nu / 2) the noise of a row is normal with variance sigma^2 / w given w,
and has a multivariate t law with nu degrees of freedom otherwise. Given a row's coefficients w has
the law Gamma((nu + d) / 2, rate (nu + q) / 2), d being the number of observed entries and q the sum
of their squared residuals in units of sigma^2: rows that do not fit get a small weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import lax
from jax.scipy.special import digamma, gammaln, polygamma

from noisyica._jax.randomness import Key, uniforms
from noisyica._jax.special import LOG_2PI, normal_quantile
from noisyica.posterior.parameters import Parameters, fitted
from noisyica.priors import ROW_WEIGHTS, Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array

LEAST_DOF, MOST_DOF = 0.5, 1000.0
"""The range in which the degrees of freedom are learnt.

With 1000 of them weights vary by 4.5 per cent: no likelihood tells that from normal noise. With 0.5
one row in a hundred has more than 1e8 times the noise variance of the others: fewer would only say
that some rows are not to be looked at."""
FIRST_DOF = 5.0
"""The degrees of freedom with which learning begins: outlying rows count for little at once."""
OUTLYING = 0.2
"""The weight below which a row is called outlying, as a share of the usual weight."""
SOLVER_STEPS = 12
"""The number of steps in which the degrees of freedom are solved for; each adds about a digit."""


class RowWeights(NamedTuple):
    """The weights w of rows: a draw, and their expectations given the coefficients, (n,) each."""

    draw: Array
    mean: Array  # E[w]
    log: Array  # E[log w]


def checked_dof(dof: Any, prior: Prior) -> float | None:
    """Return degrees of freedom as a float, if a model with this prior can have them, or None."""
    if dof is None:
        return None
    if not (np.isfinite(dof) and dof > 0):
        raise ValueError(
            f"noise_dof must be a positive number, or None for normal noise; got {dof!r}."
        )
    ROW_WEIGHTS.require(prior)
    return float(dof)


def outlying_below(dof: float) -> float:
    """Return the weight below which a row is outlying: it has five times the usual noise variance.

    The usual weight is the median, not the mean: where there are few degrees of freedom, a few rows
    with hardly any noise have most of the weight.
    """
    half = 0.5 * dof
    return OUTLYING * float(scipy.special.gammaincinv(half, 0.5)) / half


def observed_entries(block: Block) -> Any:
    """Return how many entries of the rows are observed: a number, or (n,) where some are not."""
    return len(block.x) if block.observed is None else block.observed.sum(0)


def misfit(
    parameters: Parameters, beta: Array, offset: Array, seen: Channel, block: Block
) -> Array:
    """Return q (n,), the squares of what is left of the observed entries, in units of sigma^2.

    Where all are observed, the channel knows it: that takes no further product with x. It is a
    difference of squares of x, which is as exact as the noise variance itself.
    """
    if block.observed is None:
        return seen.misfit(beta, offset)
    left = block.x - fitted(parameters, beta, offset, block.x.dtype)
    squares = left * left / parameters.sigma2.astype(left.dtype)[..., None]
    return jnp.where(block.observed, squares, 0.0).sum(0)


def draw_weights(key: Key, dof: Array, count: Any, q: Array, old: Array) -> RowWeights:
    """Draw the weights of rows given q, by a Metropolis step from the ``old`` ones.

    The proposal is that of Marsaglia and Tsang (2000), w = (k - 1/3) (1 + t)^3 / rate with a normal
    t of variance 1 / (9 k - 3), whose density differs from that of Gamma(k, rate) by a factor
    between 0.95 and 1 for k >= 1. So nearly all are accepted, no row has to wait for another one,
    and the step leaves the law of w exactly as it is.
    """
    dtype = q.dtype
    shape = 0.5 * (dof + count)  # k
    k = (shape - 1 / 3).astype(dtype)
    rate = 0.5 * (dof.astype(dtype) + q)
    u, v = uniforms(key, 2, q.shape, jnp.float32)
    t = normal_quantile(u).astype(dtype) / (3 * jnp.sqrt(k))
    now = jnp.expm1(jnp.log(old * rate / k) / 3)  # jnp.cbrt would take five times as long

    def log_ratio(t: Array) -> Array:
        """Return the log of target over proposal, up to a constant."""
        return k * (3 * jnp.log1p(t) - t * (3 + t * (t - 1.5)))

    possible = t > -1
    gain = log_ratio(jnp.where(possible, t, 0.0)) - log_ratio(now)
    accepted = possible & (jnp.log(v) < gain)
    draw = jnp.where(accepted, k / rate * (1 + t) * (1 + t) * (1 + t), old)
    mean = shape.astype(dtype) / rate
    return RowWeights(draw, mean, digamma(shape).astype(dtype) - jnp.log(rate))


def solve_dof(mean: Array, log: Array, start: Array) -> Array:
    """Return the degrees of freedom of maximum likelihood, given averages of E[w] and E[log w].

    They solve log(nu / 2) - digamma(nu / 2) = log E[w] - E[log w], the weights being divided by
    their mean (see :func:`noisyica.engine.mstep.mstep`). The logarithm of the left side falls with
    that of nu, with a slope near -1 everywhere.
    """
    spread = jnp.maximum(jnp.log(mean) - log, 1e-12)

    def improve(_: int, log_dof: Array) -> Array:
        half = 0.5 * jnp.exp(log_dof)
        step = jnp.log((jnp.log(half) - digamma(half)) / spread)
        return jnp.clip(log_dof + step, jnp.log(LEAST_DOF), jnp.log(MOST_DOF))

    return jnp.exp(lax.fori_loop(0, SOLVER_STEPS, improve, jnp.log(start)))


def dof_score(dof: Array, count: int, mean: Array) -> Array:
    """Return the score of log nu given the coefficients, of rows with the weights E[w] = ``mean``.

    With h = nu / 2 it is the mean of h (log h + 1 - digamma(h) + log w - w), w being Gamma with the
    shape k = (nu + count) / 2.
    """
    h, k = 0.5 * dof, 0.5 * (dof + count)
    constant = (jnp.log(h) - digamma(h)) - (jnp.log(k) - digamma(k))
    return h * (constant + jnp.log(mean) + 1 - mean)


def dof_information(dof: Any, count: int) -> Array:
    """Return the information that a row has on log nu, if w is known and log w is regressed on it.

    The weight w itself has h^2 (trigamma(h) - 1 / h). Given the coefficients, the part of log w
    that is not linear in w has the variance trigamma(k) - 1 / k, and is left out.
    """
    h, k = 0.5 * jnp.asarray(dof, float), 0.5 * (jnp.asarray(dof, float) + count)
    return h * h * ((polygamma(1, h) - 1 / h) - (polygamma(1, k) - 1 / k))


def log_likelihood(dof: Any, count: Any, q: Any, log_noise: Any) -> Array:
    """Return the log density of rows whose noise has the t law, the weights integrated out.

    ``count`` is the number of observed entries, and ``log_noise`` the sum of their log sigma^2.
    """
    half = 0.5 * (dof + count)
    constant = gammaln(half) - gammaln(0.5 * dof) - 0.5 * count * (LOG_2PI + jnp.log(0.5 * dof))
    return constant - 0.5 * log_noise - half * jnp.log1p(q / dof)


def log_prior(dof: Any, w: Any) -> Array:
    """Return the log density of the logarithm of a weight, before anything is seen."""
    half = 0.5 * dof
    return half * (jnp.log(half) + jnp.log(w) - w) - gammaln(half)
