"""Numerical integration where nothing is known of a density but its values.

A density of one variable v is given by its logarithm, the *log weight*, which must be smooth and
have one peak. The window in which it matters is found by magnification; an even grid over that
window gives integrals, and shifted by a random part of its step it gives exact draws
(:func:`noisyica.laws.grids.grid_choice` explains why).

All is done in double precision (where JAX has it); of log weights beyond 1e15, no digits are left.
In the functions below, ``like`` is an array of
the shape of the answer, and log weights take an array v with one more leading axis, for the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import jax
import jax.numpy as jnp

Array = jax.Array
LogWeight = Callable[[Array], Array]

NODES = 160
"""Number of nodes of a grid."""
SINGLE_NODES = 64
"""Number of nodes of a grid for draws in single precision."""
SINGLE_DEPTH = 18.0
"""How far below its peak a log weight ends that is drawn from in single precision."""
LIMIT = 45.0
"""The window is looked for between -LIMIT and LIMIT."""
_DEPTH = 40.0  # the window ends where the log weight is this far below its peak
_MAGNIFICATIONS = 24  # at most
_FIRST_CELLS = 24  # into which the first look divides the window: few, and it may see nothing
_CELLS = 8  # into which each magnification after it does


def window(
    log_weight: LogWeight, low: float, high: float, shape: tuple[int, ...], depth: float = _DEPTH
) -> tuple[Array, Array]:
    """The ends of the window outside which a log weight with one peak is far below that peak.

    The search begins with the interval from ``low`` to ``high``, and goes on with the part of it
    that matters until that is most of it: at least six cells of eight.
    """

    def magnify(low: Array, high: Array, cells: int) -> tuple[Array, Array, Array]:
        fractions = jnp.arange(cells + 1).reshape((-1,) + (1,) * len(shape)) / cells
        step = (high - low) / cells
        # the integral over a window does not depend on its ends: they need no derivatives
        values = jax.lax.stop_gradient(log_weight(low + (high - low) * fractions))
        values = jnp.where(jnp.isnan(values), -jnp.inf, values)
        high_enough = values >= values.max(0) - depth
        first = jnp.maximum(jnp.argmax(high_enough, 0) - 1, 0)
        last = jnp.minimum(cells - jnp.argmax(high_enough[::-1], 0) + 1, cells)
        new_high = jnp.where(last < cells, low + step * last, high)
        return ((first > 0) | (last < cells)).any(), low + step * first, new_high

    def unfinished(position: tuple[Array, Array, Array, Array]) -> Array:
        i, changed, _, _ = position
        return changed & (i < _MAGNIFICATIONS)

    def more(position: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        i, _, low, high = position
        return i + 1, *magnify(low, high, _CELLS)

    first_look = magnify(jnp.full(shape, low), jnp.full(shape, high), _FIRST_CELLS)
    _, _, first, last = jax.lax.while_loop(unfinished, more, (jnp.array(0), *first_look))
    return first, last


def weighted_nodes(
    log_weight: LogWeight, like: Array, shift: Array | float = 0.5
) -> tuple[Array, Array, Array]:
    """The nodes of a grid, the weights there, and the log of what the weights have to be scaled by.

    ``shift`` moves the grid, in units of its step. The largest weight is 1; the integral is the sum
    of the weights times the exponential of the third answer.
    """
    shape = jax.eval_shape(log_weight, like).shape
    low, high = window(log_weight, -LIMIT, LIMIT, shape)
    step = (high - low) / NODES
    k = jnp.arange(NODES, dtype=like.dtype).reshape((-1,) + (1,) * len(shape))
    v = low + (k + shift) * step
    logs = log_weight(v)
    logs = jnp.where(jnp.isnan(logs), -jnp.inf, logs)
    top = logs.max(0)
    return v, jnp.exp(logs - top), top + jnp.log(step)


def log_integral(log_weight: LogWeight, like: Array) -> Array:
    """The log of the integral of a density over v, by the trapezoid rule."""
    _, weights, log_scale = weighted_nodes(log_weight, like)
    return jnp.log(weights.sum(0)) + log_scale


def draw_node(log_weight: LogWeight, like: Array, u: tuple[Array, ...]) -> Array:
    """An exact draw of v, made of two uniforms: the shift of the grid, and the choice of a node."""
    v, weights, _ = weighted_nodes(log_weight, like, u[0].astype(like.dtype))
    cumulative = jnp.cumsum(weights, 0)
    chosen = (cumulative[:-1] < u[1] * cumulative[-1]).sum(0)
    return jnp.take_along_axis(v, chosen[None], 0)[0]


def minimum(objective: Callable[[Array], Array], like: Array) -> Array:
    """The minimiser of a function of v with one valley: a window about it, and then bisection.

    The bisection looks at the sign of the derivative, so that the answer has all the digits that
    the derivative has; the minimum may be at a kink.
    """
    shape = jax.eval_shape(objective, like).shape
    low, high = window(lambda v: -1e6 * objective(v), -30.0, 30.0, shape)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = 0.5 * (ends[0] + ends[1])
        rising = derivative(objective, middle) > 0
        return jnp.where(rising, ends[0], middle), jnp.where(rising, middle, ends[1])

    low, high = jax.lax.fori_loop(0, 60, halve, (low, high))
    return 0.5 * (low + high)


def derivative(function: Callable[[Array], Array], x: Array) -> Array:
    """The derivative of a function that acts on each element of an array."""
    return cast(Array, jax.jvp(function, (x,), (jnp.ones_like(x),))[1])
