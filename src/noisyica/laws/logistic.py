"""The logistic law, on a grid that the Laplace law around it places."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import LOG_2
from noisyica._jax.xla import once, ratio
from noisyica.laws.atoms import quotient
from noisyica.laws.base import Law, Uniforms, law
from noisyica.laws.grids import Grid, cut_depth, grid_choice, grid_size
from noisyica.laws.shift import FIRST_LOCATION, Located

Array = jax.Array

LOCATION_INFORMATION = 4 / 3
"""E[(2 tanh t)^2]."""
THIRD = 1 / 3


@law()
class Logistic(Law):
    """The logistic law of parameter 1/2: density sech(t)^2 / 2, variance pi^2 / 12.

    Its normaliser has no closed form. It is the Laplace law of scale 1/2 times
    ``4 / (1 + exp(-2 |t|))^2``, which is between 1 and 4: so the tilted Laplace law, which has a
    closed form, says where the grid has to be.
    """

    n_uniforms: ClassVar[int] = 2
    compiles_fast: ClassVar[bool] = True
    _shared_uniform: ClassVar[int] = 1

    def log_density(self, t: ArrayLike) -> Array:
        size = jnp.abs(jnp.asarray(t))
        return LOG_2 - 2 * size - 2 * jnp.log1p(jnp.exp(-2 * size))

    @staticmethod
    def _grid(a: Array, b: Array) -> Grid:
        """The grid of the tilt with b >= 0; its centre is the mode of the tilted Laplace law.

        The grid is even in v, t = base + v + v^3 / 6: fine near 0, where the density bends, and
        coarse in wide Gaussian tails. All distances are from that mode, so that nothing cancels
        where b^2 / a is huge.
        """
        depth = cut_depth(b.dtype) + 2 * LOG_2
        mode = quotient(jnp.maximum(b - 2, 0.0), a)
        peak = 0.5 * jnp.maximum(b - 2, 0.0) * mode
        slope = jnp.minimum(b, 2.0)  # b - a mode
        # edges, relative to the mode, where the envelope has fallen by ``depth``
        right = once(2 * depth / ((2 - slope) + jnp.sqrt(jnp.square(2 - slope) + 2 * a * depth)))
        flat = once(jnp.where(b > 2, jnp.sqrt(2 * depth / jnp.maximum(a, 1e-30)), jnp.inf))
        rest = jnp.maximum(depth - jnp.where(b > 2, 0.5 * a * mode * mode, 0.0), 0.0)
        beyond = ratio(2 * rest, (2 + b) + jnp.sqrt(jnp.square(2 + b) + 2 * a * rest))
        left = once(jnp.where(flat < mode, -flat, -mode - beyond))
        base = once(jnp.clip(-mode, left, right))  # the window's point that is nearest to t = 0
        low, high = -_inverse_cubic(once(base - left)), _inverse_cubic(once(right - base))
        size = grid_size(b.dtype)
        step = once((high - low) * (1 / size))

        def offset(k: Array) -> tuple[Array, Array]:
            v = once(low + k * step)
            half = once(0.5 * v * v)
            return once(base + v * (1 + THIRD * half)), 1 + half

        def node(k: Array) -> Array:
            delta, jacobian = offset(k)
            t = once(mode + delta)
            inside = slope * delta + jnp.where(t > 0, -2 * delta, 2 * (t + mode))
            fold = 1 + jnp.exp(-2 * jnp.abs(t))
            return once(jnp.exp(inside - 0.5 * a * delta * delta) * jacobian * (1 / (fold * fold)))

        def walk(shift: Array) -> list[Array]:
            return [node(shift + k) for k in range(size)]

        return Grid(size, step, node, lambda k: offset(k)[0], mode, peak + LOG_2, walk)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return self._grid(a, jnp.abs(b)).log_integral()

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        grid = self._grid(a, jnp.abs(b))
        mean, variance = grid.moments(grid.place)
        return _sign(b) * (grid.centre + mean), variance

    def _weigh_and_draw(
        self, u: Uniforms, a: Array, b: Array
    ) -> tuple[Array, Callable[[Array], Array]]:
        grid = self._grid(a, jnp.abs(b))
        cumulative = grid.cumulate(u[0])

        def finish(v: Array) -> Array:
            return _sign(b) * (grid.centre + grid.place(grid_choice(cumulative, u[0], v)))

        return grid.top + jnp.log(grid.step * cumulative[-1]), finish

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        return self._weigh_and_draw(u, *floating(a, b))[1](u[1])

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        size = jnp.abs(b)
        # b - a t = 2 tanh t has its root between (|b| - 2)+ / a and |b| / a: bisect
        low, high = (
            quotient(jnp.maximum(size - 2, 0.0), a),
            jnp.where(a > 0, size / jnp.maximum(a, 1e-30), jnp.inf),
        )
        high = jnp.minimum(high, low + jnp.arctanh(jnp.minimum(size / 2, 1 - 1e-7)) + 1e-3)

        def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = 0.5 * (bounds[0] + bounds[1])
            rising = size - a * middle - 2 * jnp.tanh(middle) > 0
            return jnp.where(rising, middle, bounds[0]), jnp.where(rising, bounds[1], middle)

        low, high = jax.lax.fori_loop(0, 60, halve, tuple(jnp.broadcast_arrays(low, high)))
        t = 0.5 * (low + high)
        value = 0.5 * a * t * t - size * t + self.penalty(t)
        return jnp.sign(b) * t, value

    def penalty(self, t: ArrayLike) -> Array:
        size = jnp.abs(jnp.asarray(t))
        return 2 * (size + jnp.log1p(jnp.exp(-2 * size)) - LOG_2)

    @property
    def convex(self) -> bool:
        return True

    def score(self, t: Array) -> Array:
        return 2 * jnp.tanh(t)

    def location_statistics(self, t: Array) -> tuple[Array, Array]:
        return self.score(t), jnp.full_like(t, LOCATION_INFORMATION)

    def located(self) -> Located:
        return Located(self, FIRST_LOCATION, LOCATION_INFORMATION)


def _sign(b: Array) -> Array:
    """-1 where b < 0, else 1."""
    return jnp.where(b < 0, -1.0, 1.0).astype(b.dtype)


def _inverse_cubic(y: Array) -> Array:
    """A v >= 0 with v + v^3 / 6 >= y >= 0, and nearly equal.

    It is found by Newton's method, which stays on the right of a convex function's root.
    """
    v = jnp.minimum(y, jnp.exp(jnp.log(6 * y) / 3))
    for _ in range(2):
        v = once(v - (v * (1 + v * v / 6) - y) * (1 / (1 + 0.5 * v * v)))
    return jnp.maximum(v, 0.0)
