"""Truncation on random boundaries, which the theorem on SAEM's convergence asks for.

A run whose statistics leave a ball, or jump, returns to where its first iteration ended, and the
ball doubles (Allassonniere, Kuhn and Trouve, 2010). In practice the boundary is hardly ever met.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from noisyica._jax.arrays import choose
from noisyica.engine.expansion import no_move
from noisyica.engine.state import RestartPoint, State
from noisyica.engine.statistics import Statistics

Array = jax.Array


def truncate(state: State, before: Statistics, step: Array) -> State:
    """Return the state, or the restart point if the statistics left their ball or jumped.

    A jump is a change of more than ten times the statistics' size, times the square root of the
    step.
    """
    first = state.t == 1
    here = RestartPoint(state.restart_point.returns, state.parameters, state.statistics)
    point: RestartPoint = choose(first, here, state.restart_point)
    size = 1.0 + _norm(point.statistics)
    jump = _norm(jax.tree.map(jnp.subtract, state.statistics, before))
    outside = _norm(state.statistics) > 100 * size * 2.0**point.returns
    outside = ~first & (outside | (jump > 10 * size * jnp.sqrt(step)))
    return state._replace(
        parameters=choose(outside, point.parameters, state.parameters),
        statistics=choose(outside, point.statistics, state.statistics),
        move=choose(outside, no_move(len(state.statistics.b)), state.move),
        restart=outside,
        restart_point=point._replace(returns=point.returns + outside),
    )


def _norm(tree: Any) -> Array:
    """Return the Euclidean norm of all numbers of a tree of arrays."""
    squares = (jnp.square(leaf).sum() for leaf in jax.tree.leaves(tree))
    return jnp.sqrt(sum(squares, jnp.zeros(())))
