"""What happens at one site of a row of signs that share a scale, which is integrated out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica._jax.special import half_line_factors
from noisyica._jax.xla import once

Array = jax.Array


def draw_sign(u: Array, plus: Array, minus: Array, off: ArrayLike) -> Array:
    """Draw 1, -1 or 0, whose weights are ``plus``, ``minus`` and ``off``."""
    mark = once(u * (plus + minus + off))
    return (mark < plus).astype(u.dtype) - (mark > plus + off).astype(u.dtype)


def draw(
    log_odds: Array, a: Array, old: Array, cross: Array, inputs: Any, carry: Any
) -> tuple[Array, Any]:
    """Draw a sign of some rows; return it, and the sums over the other signs.

    The sums that are carried are y'Gy, y'c and the number of signs that are not zero, and with them
    the weight of the rows, if they have one.
    """
    (c_j, u), (quadratic, linear, active, *weight) = inputs, carry

    def half_line(quadratic: Array, linear: Array) -> tuple[Array, Array]:
        if weight:
            quadratic, linear = quadratic * weight[0], linear * weight[0]
        return half_line_factors(quadratic, linear - 1)

    others = active - jnp.abs(old)
    some = (others > 0).astype(u.dtype)
    q0 = once(some * jnp.maximum(quadratic - old * (2 * cross + a * old), 0.0))
    l0 = once(some * (linear - old * c_j))
    up, f_up = half_line(jnp.maximum(q0 + a + 2 * cross, 0.0), l0 + c_j)
    down, f_down = half_line(jnp.maximum(q0 + a - 2 * cross, 0.0), l0 - c_j)
    base, f_base = half_line(q0, l0)
    up, down = once(up + log_odds), once(down + log_odds)
    top = once(jnp.maximum(jnp.maximum(up, down), base))
    plus, off = once(f_up * jnp.exp(up - top)), once(f_base * jnp.exp(base - top))
    minus = f_down * jnp.exp(down - top)
    return draw_sign(u, plus, minus, off), (q0, l0, others)


def with_new(
    new: Array, a: Array, cross: Array, c_j: Array, without: tuple[Array, ...]
) -> tuple[Array, ...]:
    """Return the sums over all signs: those over the others, and what a new sign adds."""
    q0, l0, others = without
    quadratic = q0 + jnp.abs(new) * a + 2 * new * cross
    return quadratic, l0 + new * c_j, others + jnp.abs(new)


def visit(
    site: tuple[Array, ...], a: Array, old: Array, cross: Array, inputs: Any, carry: Any
) -> tuple[Array, Any]:
    """Draw a sign of some rows; return it, and what is carried to the next one.

    ``site`` has its log odds, and what is to be added to the cross products, if anything is.
    """
    log_odds, *more = site
    cross = sum(more, cross)
    new, without = draw(log_odds, a, old, cross, inputs, carry)
    return new, (*with_new(new, a, cross, inputs[0], without), *carry[3:])
