"""Randomly shifted grids, on which laws without a closed form are drawn exactly and integrated.

A law says where its grid has to be (:class:`Grid`); :func:`grid_choice` explains why a draw is
exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica._jax.xla import once

Array = jax.Array


def grid_size(dtype: Any) -> int:
    """The number of nodes of a grid: in float32, the effect of more would be below rounding."""
    return 24 if dtype == jnp.float32 else 96


def cut_depth(dtype: Any) -> float:
    """How many nats below its peak a density is cut off."""
    return 16.0 if dtype == jnp.float32 else 37.0


class Grid(NamedTuple):
    """An even grid in some variable over the window where a density lives."""

    size: int
    step: Array
    node: Callable[[Array], Array]  # weight at a position, counted in steps
    # the value that a position stands for, as a distance from ``centre``
    place: Callable[[Array], Array]
    centre: Array
    top: Array  # log of what the weights are relative to
    walk: Callable[[Array], list[Array]]  # the weights at shift + 0, 1, 2, ...

    def positions(self, shift: ArrayLike, like: Array) -> Array:
        """The positions shift + 0, 1, 2, ... along a new leading axis."""
        return jnp.arange(self.size, dtype=like.dtype).reshape((-1,) + (1,) * like.ndim) + shift

    def log_integral(self) -> Array:
        """The log of the integral of the density, by the trapezoid rule."""
        return self.top + jnp.log(self.step * self.node(self.positions(0.5, self.step)).sum(0))

    def moments(self, value: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Mean and variance of ``value``, a function of positions, by the trapezoid rule."""
        k = self.positions(0.5, self.step)
        weights, values = self.node(k), value(k)
        weights = weights / weights.sum(0)
        mean = (weights * values).sum(0)
        return mean, (weights * jnp.square(values - mean)).sum(0)

    def cumulate(self, shift: Array) -> Any:
        """Running sums of the weights at shift + 0, 1, 2, ...

        They are unrolled in float32, where XLA makes one fast kernel of them.
        """
        if shift.dtype == jnp.float32:
            return list(itertools.accumulate(self.walk(shift), jnp.add))
        return jnp.cumsum(self.node(self.positions(shift, shift)), axis=0)


def grid_choice(cumulative: Any, shift: Array, u: Array) -> Array:
    r"""An exact draw from a smooth density by a randomly shifted grid: the position k + shift.

    Shift the grid (k + u_0) h by a uniform u_0, then choose node k with probability proportional to
    the density there. The result has density f(t) / (h sum_k f(t_k)), and for an analytic f that
    falls off at both ends the trapezoid sum in the denominator does not depend on the shift (its
    error is exponentially small in 1 / h): so the draw has density f, with no table, no rejection
    and no interpolation.
    """
    threshold = u * cumulative[-1]
    if not isinstance(cumulative, list):
        return shift + (cumulative[:-1] < threshold).sum(0)
    chosen = jnp.zeros_like(threshold)
    for k, c in enumerate(cumulative[:-1]):
        chosen = jnp.where(c < threshold, k + 1.0, chosen)
    return once(shift + chosen)
