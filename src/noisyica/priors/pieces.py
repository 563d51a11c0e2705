r"""Starts for the most probable coefficients: all combinations of pieces of their penalties.

The objective of a row is beta' G beta / 2 - c . beta + sum_j penalty(beta_j). Each penalty is the
least of a few pieces, quadratics and points (:class:`noisyica.laws.Piece`); once a piece is chosen
for each coefficient, a *state*, the minimum is the solution of a linear system whose matrix is the
same for all rows. For mixtures of normals and atoms, and for Laplace laws once their signs are
right, the best of these minima is the answer; for others it is close to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import all_states
from noisyica._jax.special import eliminate
from noisyica.laws import Piece

Array = jax.Array

MAX_STATES = 4096
"""The maximum number of states that are enumerated."""

STARTS_PER_ROW = 32
"""The number of starts that are kept for each row.

States are enumerated in chunks. Chunk k belongs to start k % ``STARTS_PER_ROW``, which is the best
minimum in its chunks."""

_NUMBERS_IN_CHUNK = 2**21
"""The approximate number of entries of the arrays of one chunk of states."""


def count_states(pieces: Sequence[Sequence[Piece]]) -> int:
    """Return the number of states of coefficients whose penalties have these pieces."""
    return int(np.prod([float(len(choices)) for choices in pieces]))


def best_minima(
    G: Array, c: Array, pieces: Sequence[Sequence[Piece]], objective: Callable[[Array], Array]
) -> Array:
    """Return the best minima of each row among those of all states, (STARTS_PER_ROW, q, n).

    The best are those of least ``objective``, a function of coefficients (q, n). ``pieces`` has the
    pieces of each coefficient's penalty.
    """
    q, n = c.shape
    most = max(len(choices) for choices in pieces)
    states = all_states(most, q)
    states = states[(states < [len(choices) for choices in pieces]).all(1)]

    def field(i: int) -> Array:
        """Return one field of all pieces, (q, most); coefficients with fewer pieces repeat them."""
        return jnp.stack(
            [
                jnp.asarray([choices[k % len(choices)][i] for k in range(most)], float)
                for choices in pieces
            ]
        )

    fields = [field(i) for i in range(4)]
    largest = max(1, len(states) // STARTS_PER_ROW)
    size = int(np.clip(_NUMBERS_IN_CHUNK // (q * n + 4 * q * q), 1, largest))
    count = -(-len(states) // size)
    states = states[np.arange(count * size) % len(states)].reshape(count, size, q)

    def improve(
        best_so_far: tuple[Array, Array], chunk: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], None]:
        slot, states = chunk
        values, beta = best_so_far
        state_pieces = Piece(*(field[jnp.arange(q), states] for field in fields))
        minima = _minima(G, c, state_pieces)  # (size, q, n)
        costs = jax.vmap(objective)(minima)
        best = jnp.argmin(costs, 0)
        cost = jnp.take_along_axis(costs, best[None], 0)[0]
        minimum = jnp.take_along_axis(minima, best[None, None], 0)[0]
        better = cost < values[slot]
        return (
            values.at[slot].set(jnp.where(better, cost, values[slot])),
            beta.at[slot].set(jnp.where(better, minimum, beta[slot])),
        ), None

    nothing = (jnp.full((STARTS_PER_ROW, n), jnp.inf), jnp.zeros((STARTS_PER_ROW, q, n)))
    chunks = (jnp.arange(count) % STARTS_PER_ROW, jnp.asarray(states))
    return lax.scan(improve, nothing, chunks)[0][1]


def _minima(G: Array, c: Array, state: Piece) -> Array:
    """Return the minimum of each of m states, whose fields are (m, q), for each row: (m, q, n).

    Coefficients at points are not free: in the linear system they have a 1 on the diagonal, and
    zeros otherwise.
    """
    precision, slope, location, free = (jnp.asarray(part).T for part in state)  # (q, m)
    q = len(G)
    at = location * (1 - free)
    ridge = 1e-10 * (jnp.trace(G) / q + 1)  # components may be dependent
    matrix = free[:, None] * G[:, :, None] * free + jnp.eye(q)[:, :, None] * (
        free * (precision + ridge) + 1 - free
    )
    identity = jnp.broadcast_to(jnp.eye(q)[:, :, None], matrix.shape)
    inverse = eliminate(jnp.concatenate([matrix, identity], 1))[:, q:]  # of the factor L
    inverse = jnp.einsum("kim,kjm->mij", inverse, inverse) * free.T[:, :, None] * free.T[:, None, :]
    constant = jnp.einsum("mij,jm->mi", inverse, slope - G @ at) + at.T
    return inverse @ c + constant[:, :, None]
