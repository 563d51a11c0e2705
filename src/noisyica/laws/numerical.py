"""Laws by numerical integration: a given function, :class:`LogDensity`, its table,
:class:`Tabulated`, and random scales, :class:`ScaleMixture`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy.interpolate import CubicSpline

from noisyica._jax.arrays import floating
from noisyica.laws import integration
from noisyica.laws.base import Law, Uniforms, broadcast_double, law

Array = jax.Array


@law("function")
class LogDensity(Law):
    """A law given by its log density, a JAX function of an array (not necessarily normalised).

    The density must be smooth, and have one peak after any Gaussian tilt (log-concave is enough);
    make others as a :class:`Mixture`. A law with parameters is a subclass of
    :class:`~noisyica.laws.Law` instead. Files hold it as a :class:`Tabulated` law.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from noisyica.laws import LogDensity
    >>> quartic = LogDensity(lambda t: -t**4)
    >>> bool(abs(quartic.moments(0.0, 0.0)[1] - 0.3379891) < 1e-6)
    True
    """

    function: Callable[[Array], Array]

    def log_unnormalised(self, t: ArrayLike) -> Array:
        return self.function(jnp.asarray(t))

    def saved(self) -> Tabulated:
        with jax.enable_x64(True):
            return tabulate(self)


@law("centre", "scale", "low", "high", "values")
class Tabulated(Law):
    """A law given by its log density at even steps of v = asinh((t - centre) / scale).

    It is what files hold of a :class:`LogDensity`. Between the steps the log density is a cubic
    spline; beyond them it goes on as a straight line in v.
    """

    centre: float
    scale: float
    low: float
    high: float
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        # a part of the law's structure, which must be hashable: files give an array
        object.__setattr__(self, "values", tuple(float(value) for value in self.values))

    def log_unnormalised(self, t: ArrayLike) -> Array:
        (t,) = floating(t)
        coefficients = jnp.asarray(_spline(self.low, self.high, self.values), t.dtype)
        v = jnp.arcsinh((t - self.centre) / self.scale)
        inside = jnp.clip(v, self.low, self.high)
        step = (self.high - self.low) / (len(self.values) - 1)
        cell = jnp.clip(jnp.floor((inside - self.low) / step), 0, len(self.values) - 2)
        x = inside - (self.low + cell * step)
        c3, c2, c1, c0 = (row[cell.astype(int)] for row in coefficients)
        slope = c1 + x * (2 * c2 + x * 3 * c3)  # at the ends, where v is beyond them
        return c0 + x * (c1 + x * (c2 + x * c3)) + slope * (v - inside)

    def __repr__(self) -> str:
        return f"Tabulated(centre={self.centre:.6g}, scale={self.scale:.6g}, ...)"


TABLE_SIZE = 4001
"""The number of values of a :class:`Tabulated` law."""
TABLE_DEPTH = 1e6
"""How far below its peak a tabulated log density ends."""
TABLE_LIMIT = 30.0
"""The largest |v| at which a tabulated log density ends."""


def tabulate(law: Law) -> Tabulated:
    """Return a law as a table of its log density, to about six digits of it."""
    low, high = (
        float(jnp.sinh(end))
        for end in integration.window(
            lambda v: law.log_unnormalised(jnp.sinh(v)), -TABLE_LIMIT, TABLE_LIMIT, (), 2.0
        )
    )
    centre, scale = 0.5 * (low + high), 0.25 * (high - low)
    v = np.linspace(-TABLE_LIMIT, TABLE_LIMIT, 60_001)
    logs = np.asarray(law.log_unnormalised(centre + scale * np.sinh(v)), float)
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    peak = int(logs.argmax())
    top = logs[peak]
    if not np.isfinite(top):
        raise ValueError(f"The log density of {law!r} is nowhere finite, so it cannot be saved.")
    fails = np.flatnonzero(~(logs >= top - TABLE_DEPTH))
    first = int(fails[fails < peak].max(initial=-1)) + 1
    last = int(fails[fails > peak].min(initial=len(v))) - 1
    grid = np.linspace(v[first], v[last], TABLE_SIZE)
    values = np.asarray(law.log_unnormalised(centre + scale * np.sinh(grid)), float) - top
    return Tabulated(centre, scale, float(grid[0]), float(grid[-1]), tuple(values))


@functools.lru_cache(maxsize=8)
def _spline(low: float, high: float, values: tuple[float, ...]) -> np.ndarray:
    """Return the coefficients of a cubic spline through the values, (4, values - 1)."""
    return np.asarray(CubicSpline(np.linspace(low, high, len(values)), values).c)


@law()
class ScaleMixture(Law):
    """The law of S T, where S > 0 and T are independent.

    S has the law ``scale``, which must have a density, and T has the law ``base``. Where the base
    learns a location, it is learnt inside the scale: the base's statistics are averaged over S
    given the value of S T.
    """

    scale: Law
    base: Law
    smooth: ClassVar[bool] = False

    @property
    def n_uniforms(self) -> int:  # type: ignore[override]
        return 2 + self.base.n_uniforms

    @property
    def n_parameters(self) -> int:
        return 0 if self.location is None else self.base.n_parameters

    @property
    def location(self) -> ArrayLike | None:
        return self.base.location

    def located(self) -> ScaleMixture:
        return ScaleMixture(self.scale, self.base.located())

    def statistics(self, t: Array) -> Any:
        if self.location is None:
            return ()
        z, _, _ = broadcast_double(t, 0.0)
        log_weight = self._log_weight_given(z)
        v, weights, _ = integration.weighted_nodes(log_weight, z)
        weights = weights / weights.sum(0)
        terms = self.base.statistics(z * jnp.exp(-v))
        return jax.tree.map(lambda term: (weights * term).sum(0).astype(t.dtype), terms)

    def mstep(self, statistics: Any) -> ScaleMixture:
        if self.location is None:
            return self
        return ScaleMixture(self.scale, self.base.mstep(statistics))

    def _log_weight_given(self, t: Array) -> integration.LogWeight:
        """The log density of v = log S and S T = t, up to what does not depend on v."""

        def weight(v: Array) -> Array:
            s = jnp.exp(v)
            return self.scale.log_density(s) + self.base.log_density(t / s)

        return weight

    def _scale_log_weight(self, a: Array, b: Array) -> integration.LogWeight:
        """The log density of v = log S after the tilt, T being integrated out."""

        def log_weight(v: Array) -> Array:
            s = jnp.exp(v)
            return v + self.scale.log_density(s) + self.base.log_normaliser(a * s * s, b * s)

        return log_weight

    def log_density(self, t: ArrayLike) -> Array:
        t, _, dtype = broadcast_double(t, 0.0)
        weight = self._log_weight_given(t)
        low, high = integration.window(weight, -integration.LIMIT, integration.LIMIT, t.shape)
        count = 4 * integration.NODES
        k = (jnp.arange(count) + 0.5).reshape((-1,) + (1,) * t.ndim) / count
        logs = weight(low + k * (high - low))
        return (jax.scipy.special.logsumexp(logs, axis=0) + jnp.log((high - low) / count)).astype(
            dtype
        )

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = broadcast_double(a, b)
        return integration.log_integral(self._scale_log_weight(a, b), b).astype(dtype)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = broadcast_double(a, b)
        v, weights, _ = integration.weighted_nodes(self._scale_log_weight(a, b), b)
        s, weights = jnp.exp(v), weights / weights.sum(0)
        means, variances = self.base.moments(a * s * s, b * s)
        mean = (weights * s * means).sum(0)
        variance = (weights * (s * s * variances + jnp.square(s * means - mean))).sum(0)
        return mean.astype(dtype), variance.astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = broadcast_double(a, b)
        s = jnp.exp(integration.draw_node(self._scale_log_weight(a, b), b, u))
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

        # golden section about the best node
        def narrow(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
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
        # a scale of zero leaves the base free
        nothing = self.scale.penalty(0.0) + self.base.best(0.0, 0.0)[1]
        return jnp.where(t == 0, jnp.minimum(value, nothing), value).astype(dtype)
