"""Normal columns (``mixing_prior="normal"``): the entries of column j of A are N(0, tau_j^2)."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.device import platform
from noisyica._jax.matrices import inverse_root
from noisyica._jax.randomness import uniforms
from noisyica._jax.special import normal_quantile
from noisyica.engine.mixing.base import MixingPrior, unit_prior, with_scale
from noisyica.engine.regression import eigh, equations, residual
from noisyica.engine.statistics import Mixing, Statistics
from noisyica.laws import Normal
from noisyica.laws.together import scales_together
from noisyica.posterior.parameters import Parameters
from noisyica.priors import Independent

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class NormalColumns(MixingPrior):
    """Normal entries, whose rows are drawn as a whole. The parameter is tau^2, (p,)."""

    normal = True

    def begin(self, parameters: Parameters, floor: Any, count: Any) -> Any:
        return np.square(parameters.A).mean(0) + np.min(floor)

    def draw(
        self,
        key: Array,
        statistics: Statistics,
        parameters: Parameters,
        count: Array,
        free_mean: bool,
    ) -> tuple[Array, Mixing]:
        """Draw A given the coefficients of ``count`` rows; return the draw and its moments.

        Row i of A has precision count * covariance / sigma_i^2 + diag(1 / tau^2). With T =
        diag(tau) and T covariance T = U diag(s) U', its inverse is T U diag(sigma_i^2 / (count s +
        sigma_i^2)) U' T: one decomposition serves all rows of A, whatever their noise.
        """
        regression = equations(statistics, parameters.prior, free_mean)
        tau = jnp.sqrt(parameters.mixing)
        scaled = tau[:, None] * regression.covariance * tau
        noise = jnp.broadcast_to(parameters.sigma2, regression.total.shape)[:, None]
        if platform() == "gpu" and parameters.sigma2.ndim == 0:
            s, U, shrink = _by_root(scaled, count, noise)
        else:
            s, U, shrink = _by_eigenvectors(scaled, count, noise)
        turn = tau[:, None] * U
        mean = (count * (regression.cross @ turn) * shrink) @ turn.T
        spread = noise * shrink
        # the long axis comes last: it is the one that is vectorised
        (u,) = uniforms(key, 1, mean.T.shape, jnp.float32)
        draw = mean + (jnp.sqrt(spread) * normal_quantile(u).T) @ turn.T
        variance = spread @ jnp.square(turn).T
        # E[(x - mean - A beta)^2] given beta: the residual of the means, the variance of A beta,
        # and that of the mean
        left = residual(mean, regression) + ((spread * s).sum(1) + free_mean * noise[:, 0]) / count
        return draw, Mixing(mean, jnp.square(mean) + variance, mean @ statistics.b, left)

    def mstep(self, mixing: Mixing, old: Any, floor: Array) -> Any:
        square = jnp.maximum(mixing.square.mean(0), jnp.min(floor))
        return scales_together(square, len(mixing.square) / 2)

    def pull(self, parameters: Parameters, count: Array) -> tuple[Array, Array]:
        A = parameters.A
        # the curvature is left out: it only shortens the steps
        return A.T @ A / (count * parameters.mixing), jnp.zeros((A.shape[1], A.shape[1]))

    def learnt(self, parameters: Parameters, unit: float, order: np.ndarray) -> Independent:
        tau = np.sqrt(np.asarray(parameters.mixing)) * unit
        prior: Independent = with_scale(unit_prior(Normal(), len(tau)), tau)
        return prior.reordered(order)


def _by_eigenvectors(scaled: Array, count: Array, noise: Array) -> tuple[Array, Array, Array]:
    """Return count times the eigenvalues, the eigenvectors, and 1 / (the former + noise)."""
    s, U = eigh(scaled)
    s = jnp.maximum(count * s, 0.0)
    return s, U, 1 / (s + noise)


@jax.custom_batching.sequential_vmap  # type: ignore[untyped-decorator]
def _by_root(scaled: Array, count: Array, noise: Array) -> tuple[Array, Array, Array]:
    """Return what serves as well as :func:`_by_eigenvectors` where all rows have the same noise.

    With F'F = (count scaled + noise)^-1 it is F' in place of U diag(shrink)^1/2, and s is the
    diagonal of F count scaled F', which is all that is asked of it. Eigenvectors take a GPU
    milliseconds; they are found where rounding leaves the matrix without a root.
    """
    p, same = len(scaled), noise[0, 0]
    root = inverse_root(count * scaled + same * jnp.eye(p))

    def of_root() -> tuple[Array, Array, Array]:
        ones = jnp.ones((len(noise), p))
        return jnp.maximum(1 - same * jnp.square(root).sum(1), 0.0), root.T, ones

    failed = ~jnp.isfinite(root).all()
    return lax.cond(failed, lambda: _by_eigenvectors(scaled, count, noise), of_root)
