"""Any other law, by numerical integration: a density given as a function, :class:`LogDensity`, and random scales, :class:`ScaleMixture`.

The window of the grid is found by zooming in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import LOG_2
from noisyica.laws.base import Law, Uniforms, broadcast_double, law

Array = jax.Array


def _zoom(
    log_weight: Callable[[Array], Array], low: float, high: float, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """The window outside which a unimodal log weight is 40 nats below its peak, found by repeated magnification."""
    count = 24
    fractions = jnp.arange(count + 1).reshape((-1,) + (1,) * len(shape)) / count

    def magnify(_: int, window: tuple[Array, Array]) -> tuple[Array, Array]:
        lo, hi = window
        step = (hi - lo) / count
        values = log_weight(lo + (hi - lo) * fractions)
        values = jnp.where(jnp.isnan(values), -jnp.inf, values)
        high_enough = values >= values.max(0) - 40.0
        first = jnp.argmax(high_enough, 0)
        last = count - jnp.argmax(high_enough[::-1], 0)
        return lo + step * jnp.maximum(first - 1, 0), lo + step * jnp.minimum(last + 1, count)

    start = (jnp.full(shape, low), jnp.full(shape, high))
    return cast("tuple[Array, Array]", jax.lax.fori_loop(0, 10, magnify, start))


class _Gridded(Law):
    """Laws that integrate one variable v numerically, in float64: ``log_weight(v, a, b)`` over ``[low, high]``.

    Nodes are a leading axis. Slower than a closed form by two orders of magnitude, and as exact:
    see :func:`~noisyica.laws.grids.grid_choice`.
    """

    count: ClassVar[int] = 160
    low: ClassVar[float] = -45.0
    high: ClassVar[float] = 45.0

    def _log_weight(self, v: Array, a: Array, b: Array) -> Array:
        raise NotImplementedError

    def _weights(self, shift: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """Positions (nodes first), weights scaled to a peak of one, and the log of what they were scaled by."""
        low, high = _zoom(lambda v: self._log_weight(v, a, b), self.low, self.high, b.shape)
        step = (high - low) / self.count
        k = jnp.arange(self.count, dtype=b.dtype).reshape((-1,) + (1,) * b.ndim)
        v = low + (k + shift) * step
        logs = self._log_weight(v, a, b)
        logs = jnp.where(jnp.isnan(logs), -jnp.inf, logs)
        top = logs.max(0)
        return v, jnp.exp(logs - top), top + jnp.log(step)

    def _log_integral(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = broadcast_double(a, b)
        _, weights, scale = self._weights(jnp.asarray(0.5), a, b)
        return (jnp.log(weights.sum(0)) + scale).astype(dtype)

    def _pick(self, u: Uniforms, a: Array, b: Array) -> Array:
        v, weights, _ = self._weights(u[0].astype(b.dtype), a, b)
        cumulative = jnp.cumsum(weights, 0)
        chosen = (cumulative[:-1] < u[1] * cumulative[-1]).sum(0)
        return jnp.take_along_axis(v, chosen[None], 0)[0]


@law("function")
class LogDensity(_Gridded):
    """A law given by its log density, a JAX function of an array (not necessarily normalised).

    The density must be smooth, and unimodal after any Gaussian tilt (log-concave is enough); make others as a :class:`Mixture`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from noisyica.laws import LogDensity
    >>> quartic = LogDensity(lambda t: -t**4)
    >>> bool(abs(quartic.moments(0.0, 0.0)[1] - 0.3379891) < 1e-6)
    True
    """

    function: Callable[[Array], Array]
    n_uniforms: ClassVar[int] = 2
    smooth: ClassVar[bool] = True

    def _log_weight(self, v: Array, a: Array, b: Array) -> Array:
        t = jnp.sinh(v)
        return self.function(t) + (b - 0.5 * a * t) * t + jnp.logaddexp(v, -v)

    def log_density(self, t: ArrayLike) -> Array:
        (t,) = floating(t)
        return self.function(t) - (self._log_integral(0.0, 0.0) - LOG_2).astype(t.dtype)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return (self._log_integral(a, b) - self._log_integral(0.0, 0.0)).astype(
            floating(a, b)[1].dtype
        )

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = broadcast_double(a, b)
        v, weights, _ = self._weights(jnp.asarray(0.5), a, b)
        t, weights = jnp.sinh(v), weights / weights.sum(0)
        mean = (weights * t).sum(0)
        return mean.astype(dtype), (weights * jnp.square(t - mean)).sum(0).astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = broadcast_double(a, b)
        return jnp.sinh(self._pick(u, a, b)).astype(dtype)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = broadcast_double(a, b)

        def objective(t: Array) -> Array:
            return self.penalty(t) - (b - 0.5 * a * t) * t

        low, high = _zoom(lambda v: -1e6 * objective(jnp.sinh(v)), -30.0, 30.0, b.shape)
        t = jnp.sinh(0.5 * (low + high))
        return t.astype(dtype), objective(t).astype(dtype)

    def penalty(self, t: ArrayLike) -> Array:
        return -self.function(jnp.asarray(t))


@law()
class ScaleMixture(_Gridded):
    """The law of S T, S > 0 of law ``scale`` (with a density) and T of law ``base``, independent."""

    scale: Law
    base: Law

    @property
    def n_uniforms(self) -> int:  # type: ignore[override]
        return 2 + self.base.n_uniforms

    def _log_weight(self, v: Array, a: Array, b: Array) -> Array:
        s = jnp.exp(v)
        return v + self.scale.log_density(s) + self.base.log_normaliser(a * s * s, b * s)

    def log_density(self, t: ArrayLike) -> Array:
        t, _, dtype = broadcast_double(t, 0.0)

        def weight(v: Array) -> Array:
            s = jnp.exp(v)
            return self.scale.log_density(s) + self.base.log_density(t / s)

        low, high = _zoom(weight, self.low, self.high, t.shape)
        k = (jnp.arange(4 * self.count) + 0.5).reshape((-1,) + (1,) * t.ndim) / (4 * self.count)
        logs = weight(low + k * (high - low))
        return (
            jax.scipy.special.logsumexp(logs, axis=0) + jnp.log((high - low) / (4 * self.count))
        ).astype(dtype)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return self._log_integral(a, b)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = broadcast_double(a, b)
        v, weights, _ = self._weights(jnp.asarray(0.5), a, b)
        s, weights = jnp.exp(v), weights / weights.sum(0)
        means, variances = self.base.moments(a * s * s, b * s)
        mean = (weights * s * means).sum(0)
        variance = (weights * (s * s * variances + jnp.square(s * means - mean))).sum(0)
        return mean.astype(dtype), variance.astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = broadcast_double(a, b)
        s = jnp.exp(self._pick(u, a, b))
        return (
            s * self.base.draw(tuple(x.astype(b.dtype) for x in u[2:]), a * s * s, b * s)
        ).astype(dtype)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = broadcast_double(a, b)

        def objective(v: Array) -> Array:
            s = jnp.exp(v)
            return self.scale.penalty(s) + self.base.best(a * s * s, b * s)[1]

        v = jnp.linspace(-45.0, 45.0, 721).reshape((-1,) + (1,) * b.ndim)
        coarse = v[jnp.argmin(objective(v), 0), ...].reshape(b.shape)

        def narrow(
            _: int, ends: tuple[Array, Array]
        ) -> tuple[Array, Array]:  # golden section about the best node
            low, high = ends
            left, right = low + 0.381966 * (high - low), low + 0.618034 * (high - low)
            down = objective(left) < objective(right)
            return jnp.where(down, low, left), jnp.where(down, right, high)

        low, high = jax.lax.fori_loop(0, 60, narrow, (coarse - 0.2, coarse + 0.2))
        s = jnp.exp(0.5 * (low + high))
        t = s * self.base.best(a * s * s, b * s)[0]
        value = objective(0.5 * (low + high))
        nothing = (
            self.scale.penalty(jnp.zeros_like(s))
            + self.base.best(jnp.zeros_like(a), jnp.zeros_like(b))[1]
        )
        return (
            jnp.where(value < nothing, t, 0.0).astype(dtype),
            jnp.minimum(value, nothing).astype(dtype),
        )

    def penalty(self, t: ArrayLike) -> Array:
        t, _, dtype = broadcast_double(t, 0.0)
        v = jnp.linspace(-45.0, 45.0, 7201).reshape((-1,) + (1,) * t.ndim)
        s = jnp.exp(v)
        value = (self.scale.penalty(s) + self.base.penalty(t / s)).min(0)
        nothing = (
            self.scale.penalty(0.0) + self.base.best(0.0, 0.0)[1]
        )  # a scale of zero leaves the base free
        return jnp.where(t == 0, jnp.minimum(value, nothing), value).astype(dtype)
