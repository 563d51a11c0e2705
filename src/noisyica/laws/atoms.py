"""Laws with answers in closed form: an atom, normal, exponential and Laplace laws."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import (
    LOG_2PI,
    half_line_draw,
    half_line_moments,
    log_half_line,
    normal_quantile,
)
from noisyica._jax.xla import once
from noisyica.laws.base import Classes, Law, Piece, Uniforms, law
from noisyica.laws.shift import FIRST_LOCATION, Located

Array = jax.Array


@law()
class Dirac(Law):
    """All the mass at one point."""

    location: ArrayLike = 0.0
    n_uniforms: ClassVar[int] = 0
    smooth: ClassVar[bool] = False
    compiles_fast: ClassVar[bool] = True

    @property
    def atom(self) -> ArrayLike:
        return self.location

    def log_density(self, t: ArrayLike) -> Array:
        return jnp.where(jnp.asarray(t) == self.location, 0.0, -jnp.inf)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return (b - 0.5 * a * self.location) * self.location

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        zero = jnp.zeros_like(sum(floating(a, b)))
        return zero + self.location, zero

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        return self.moments(a, b)[0]

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        return self.moments(a, b)[0], -self.log_normaliser(a, b)

    def penalty(self, t: ArrayLike) -> Array:
        return -self.log_density(t)

    def pieces(self) -> list[Piece]:
        return [Piece(location=self.location, free=False)]

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        return jnp.zeros_like(t), jnp.zeros_like(t)

    def classes(self) -> Classes:
        return _one_class(self.location, 0.0)


@law()
class Normal(Law):
    """The normal law N(mean, scale^2)."""

    mean: ArrayLike = 0.0
    scale: ArrayLike = 1.0
    n_uniforms: ClassVar[int] = 1
    compiles_fast: ClassVar[bool] = True

    def log_density(self, t: ArrayLike) -> Array:
        z = (jnp.asarray(t) - self.mean) / self.scale
        return -0.5 * (z * z + LOG_2PI) - jnp.log(self.scale)

    def _posterior(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Mean and variance of the tilted law, which is normal."""
        variance = jnp.square(self.scale)
        shrink = 1 / (1 + a * variance)
        return (self.mean + variance * b) * shrink, variance * shrink  # type: ignore[return-value]

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        variance = jnp.square(self.scale)
        spread = 1 + a * variance
        exponent = 0.5 * b * b * variance + (b - 0.5 * a * self.mean) * self.mean
        return exponent / spread - 0.5 * jnp.log(spread)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        mean, variance = self._posterior(a, b)
        return mean, variance + jnp.zeros_like(mean)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        mean, variance = self._posterior(*floating(a, b))
        return mean + jnp.sqrt(variance) * normal_quantile(u[0])

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        variance = jnp.square(self.scale)
        return self._posterior(a, b)[0], 0.5 * (
            jnp.log(variance) - jnp.log1p(a * variance)
        ) - self.log_normaliser(a, b)

    def penalty(self, t: ArrayLike) -> Array:
        return 0.5 * jnp.square((jnp.asarray(t) - self.mean) / self.scale) + jnp.log(self.scale)

    def pieces(self) -> list[Piece]:
        precision = 1 / jnp.square(self.scale)
        return [Piece(precision, precision * self.mean)]

    @property
    def convex(self) -> bool:
        return True

    def classes(self) -> Classes:
        return _one_class(self.mean, self.scale)

    def location_statistics(self, t: Array) -> tuple[Array, Array]:
        return self.score(t), jnp.zeros_like(t) + 1 / jnp.square(self.scale)

    def located(self) -> FreeNormal:
        return FreeNormal(np.where(self.mean == 0, FIRST_LOCATION, self.mean), self.scale)


@law()
class FreeNormal(Normal):
    """The normal law N(mean, scale^2), its mean to be learnt.

    Examples
    --------
    >>> from noisyica.laws import FreeNormal
    >>> float(FreeNormal().mstep((6.0, 3.0)).mean)  # three values whose sum is six
    2.0
    """

    @property
    def location(self) -> ArrayLike | None:
        return self.mean

    @property
    def n_parameters(self) -> int:
        return 1

    def statistics(self, t: Array) -> Any:
        return t, jnp.ones_like(t)

    def class_statistics(self, counts: Array, sums: Array) -> Any:
        return sums[0], counts[0]

    def mstep(self, statistics: Any) -> FreeNormal:
        total, count = statistics
        return FreeNormal(
            jnp.where(count > 0, total / jnp.where(count > 0, count, 1.0), self.mean), self.scale
        )


@law()
class Exponential(Law):
    """The exponential law of mean ``scale``, on the positive half-line."""

    scale: ArrayLike = 1.0
    n_uniforms: ClassVar[int] = 1
    smooth: ClassVar[bool] = False
    scale_power: ClassVar[float] = 1.0

    def log_density(self, t: ArrayLike) -> Array:
        t = jnp.asarray(t)
        return jnp.where(t >= 0, -t / self.scale - jnp.log(self.scale), -jnp.inf)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return log_half_line(a, b - 1 / self.scale) - jnp.log(self.scale)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        return half_line_moments(a, b - 1 / self.scale)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return half_line_draw(u[0], a, b - 1 / self.scale)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        excess = jnp.maximum(b - 1 / self.scale, 0.0)
        t = quotient(excess, a)
        return t, jnp.log(self.scale) - 0.5 * excess * t

    def penalty(self, t: ArrayLike) -> Array:
        t = jnp.asarray(t)
        return jnp.where(t >= 0, t / self.scale + jnp.log(self.scale), jnp.inf)

    def pieces(self) -> list[Piece]:
        return [Piece(slope=-1 / self.scale), Piece(free=False)]

    @property
    def convex(self) -> bool:
        return True


@law()
class Laplace(Law):
    """The Laplace law, density ``exp(-|t| / scale) / (2 scale)``."""

    scale: ArrayLike = 1.0
    n_uniforms: ClassVar[int] = 2
    scale_power: ClassVar[float] = 1.0

    def log_density(self, t: ArrayLike) -> Array:
        return -jnp.abs(jnp.asarray(t)) / self.scale - jnp.log(2 * self.scale)

    def _sides(self, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """The slopes of the log density away from 0, on t > 0 and t < 0; the log odds of t > 0."""
        up, down = b - 1 / self.scale, -b - 1 / self.scale
        return up, down, log_half_line(a, up) - log_half_line(a, down)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        up, down = b - 1 / self.scale, -b - 1 / self.scale
        return jnp.logaddexp(log_half_line(a, up), log_half_line(a, down)) - jnp.log(2 * self.scale)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        up, down, odds = self._sides(a, b)
        p, q = jax.nn.sigmoid(odds), jax.nn.sigmoid(-odds)
        (m_up, v_up), (m_down, v_down) = half_line_moments(a, up), half_line_moments(a, down)
        mean = p * m_up - q * m_down
        return mean, p * v_up + q * v_down + p * q * jnp.square(m_up + m_down)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        up, down, odds = self._sides(a, b)
        positive = once(jax.nn.sigmoid(odds) - u[0]) > 0
        size = once(half_line_draw(u[1], a, once(jnp.where(positive, up, down))))
        return jnp.where(positive, size, -size)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        excess = jnp.maximum(jnp.abs(b) - 1 / self.scale, 0.0)
        t = jnp.sign(b) * quotient(excess, a)
        return t, jnp.log(2 * self.scale) - 0.5 * excess * jnp.abs(t)

    def penalty(self, t: ArrayLike) -> Array:
        # its sign is a hidden variable, too
        return jnp.abs(jnp.asarray(t)) / self.scale + jnp.log(2 * self.scale)

    def pieces(self) -> list[Piece]:
        return [Piece(slope=-1 / self.scale), Piece(slope=1 / self.scale), Piece(free=False)]

    @property
    def convex(self) -> bool:
        return True

    def score(self, t: Array) -> Array:
        return jnp.sign(t) / self.scale

    def location_statistics(self, t: Array) -> tuple[Array, Array]:
        return self.score(t), jnp.zeros_like(t) + 1 / jnp.square(self.scale)

    def located(self) -> Located:
        return Located(self, FIRST_LOCATION, float(1 / np.square(self.scale)))


def _one_class(mean: ArrayLike, scale: ArrayLike) -> Classes:
    """Return a single class of weight 1."""
    return Classes(*(jnp.asarray(value, float)[None] for value in (0.0, mean, scale)))


def quotient(x: Array, a: Array) -> Array:
    """x / a where x > 0, else 0: the minimiser of a t^2 / 2 - x t over t >= 0."""
    return once(jnp.where(x > 0, x * (1 / a), 0.0))
