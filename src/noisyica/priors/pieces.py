r"""Where to start looking for the most probable coefficients: all combinations of the pieces of their penalties.

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

STATES = 4096
"""The most states that are gone through."""

SLOTS = 32
"""How many starts are kept of each row: the best of every eighth chunk of states."""

_CHUNK = 2**21  # about how many numbers an array of one chunk has


def count_states(pieces: Sequence[Sequence[Piece]]) -> int:
    """The number of states of coefficients with these pieces."""
    return int(np.prod([float(len(one)) for one in pieces]))


def best_minima(
    G: Array, c: Array, pieces: Sequence[Sequence[Piece]], objective: Callable[[Array], Array]
) -> Array:
    """For each row the best minima of all states (SLOTS, q, n), by ``objective`` of coefficients (q, n)."""
    q, n = c.shape
    most = max(len(one) for one in pieces)
    states = all_states(most, q)
    states = states[(states < [len(one) for one in pieces]).all(1)]
    parts = [
        jnp.stack(
            [jnp.asarray([one[k % len(one)][i] for k in range(most)], float) for one in pieces]
        )
        for i in range(4)
    ]
    size = int(np.clip(_CHUNK // (q * n + 4 * q * q), 1, max(1, len(states) // SLOTS)))
    count = -(-len(states) // size)
    states = states[np.arange(count * size) % len(states)].reshape(count, size, q)

    def look(
        found: tuple[Array, Array], chunk: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], None]:
        slot, states = chunk
        values, beta = found
        minima = _minima(
            G, c, Piece(*(part[jnp.arange(q), states] for part in parts))
        )  # (size, q, n)
        costs = jax.vmap(objective)(minima)
        best = jnp.argmin(costs, 0)
        cost = jnp.take_along_axis(costs, best[None], 0)[0]
        minimum = jnp.take_along_axis(minima, best[None, None], 0)[0]
        better = cost < values[slot]
        return (
            values.at[slot].set(jnp.where(better, cost, values[slot])),
            beta.at[slot].set(jnp.where(better, minimum, beta[slot])),
        ), None

    nothing = (jnp.full((SLOTS, n), jnp.inf), jnp.zeros((SLOTS, q, n)))
    return lax.scan(look, nothing, (jnp.arange(count) % SLOTS, jnp.asarray(states)))[0][1]


def _minima(G: Array, c: Array, state: Piece) -> Array:
    """The minimum for each state (its parts are (m, q)) and row: (m, q, n). Points that are not free have a matrix of their own: 1."""
    precision, slope, location, free = (jnp.asarray(part).T for part in state)  # (q, m)
    q = len(G)
    at = location * (1 - free)
    ridge = 1e-10 * (jnp.trace(G) / q + 1)  # components may be dependent
    matrix = free[:, None] * G[:, :, None] * free + jnp.eye(q)[:, :, None] * (
        free * (precision + ridge) + 1 - free
    )
    one = jnp.broadcast_to(jnp.eye(q)[:, :, None], matrix.shape)
    inverse = eliminate(jnp.concatenate([matrix, one], 1))[:, q:]  # of the factor L
    inverse = jnp.einsum("kim,kjm->mij", inverse, inverse) * free.T[:, :, None] * free.T[:, None, :]
    constant = jnp.einsum("mij,jm->mi", inverse, slope - G @ at) + at.T
    return inverse @ c + constant[:, :, None]
