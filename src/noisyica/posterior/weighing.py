r"""The likelihood of rows under Student noise: joint draws of a row's weight and coefficients.

The likelihood is an integral over the row's weight w (:mod:`noisyica.posterior.student`), too:
p(x) = E p(x | w). Each particle has a w of its own, drawn from a proposal for log w, and given w
the joint draws of :mod:`noisyica.posterior.sequential` serve as they are. The weight of the
particle is theirs times the prior of w over the proposal, and has mean p(x).

The proposal is a logistic law about the likeliest w, which is found by turns: draws of the
coefficients given w tell what is left of the row, and that tells w. A part of the draws comes from
a wide law, which reaches from there to the w of a row whose coefficients are all zero: it is for
rows that may be either outlying or well explained.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from noisyica._jax.randomness import Key, fold_in, uniforms
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.propagation import Target
from noisyica.posterior.sequential import Draw
from noisyica.posterior.student import log_prior, observed_entries
from noisyica.rows.block import Block

Array = jax.Array

TURNS = 3
"""The number of turns in which the likeliest weights are found, and ..."""
DRAWS = 4
"""... the number of draws of the coefficients in each."""
WIDE = 0.2
"""The share of the draws that come from the wide proposal."""
ROLE = 2**30
"""The number of the first key of a row's weights: the keys of particles have smaller numbers."""


class Proposal(NamedTuple):
    """A mixture of two logistic laws of log w, the second of which is wide."""

    location: Array  # (2, n)
    scale: Array  # (2, n)

    def draw(self, keys: Key) -> tuple[Array, Array]:
        """Draw weights (n,); return them, and the log density of their logarithms."""
        u, v = uniforms(keys, 2, self.location.shape[1:], float)
        wide = v < WIDE
        location, scale = (jnp.where(wide, part[1], part[0]) for part in self)
        log_w = location + scale * (jnp.log(u) - jnp.log1p(-u))
        z = (log_w - self.location) / self.scale
        logs = -jnp.abs(z) - 2 * jnp.log1p(jnp.exp(-jnp.abs(z))) - jnp.log(self.scale)
        shares = jnp.log(jnp.array([1 - WIDE, WIDE]))[:, None]
        return jnp.exp(log_w), jax.scipy.special.logsumexp(logs + shares, axis=0)


def log_weights(
    joint: Any, parameters: Parameters, block: Block, seen: Target, keys: Key, particles: Array
) -> Array:
    """Return the log weights (m, n) of particles.

    They are less the log likelihood of the rows, were all coefficients zero and all weights one.
    ``joint`` is the module that draws the coefficients, ``seen`` what the rows say of them with
    weights of one, and ``particles`` (m,) are the particles' numbers.
    """
    prior, dof = parameters.prior, parameters.dof
    count, squares = observed_entries(block), _squares(parameters, block)

    def better(turn: Array, log_w: Array) -> Array:
        return _likeliest(joint, parameters, seen, fold_in(keys, ROLE + 1 + turn), log_w, block)

    found = lax.fori_loop(0, TURNS, better, jnp.zeros(squares.shape))
    of_zeros = jnp.log((dof + count) / (dof + squares))
    location = jnp.stack([found, 0.5 * (found + of_zeros)])
    # a tail of the target has the rate (dof + count) / 2, and one coefficient takes a square from q
    free = jnp.maximum(count - len(seen.c), 0)
    narrow = jnp.maximum(2 / (dof + count), 0.8 * jnp.sqrt(2 / (dof + free)))
    narrow = jnp.broadcast_to(narrow, found.shape)
    proposal = Proposal(
        location, jnp.stack([narrow, jnp.maximum(2 * narrow, jnp.abs(found - of_zeros) / 3)])
    )
    guide = joint.guide(prior, _weighted(seen, jnp.exp(found)))
    of_weights = fold_in(keys, ROLE)

    def weigh(particle: Array) -> Array:
        w, log_density = proposal.draw(fold_in(of_weights, particle))
        given = guide.weighted(w / jnp.exp(found))
        drawn = joint.draw(prior, given, fold_in(keys, particle))
        gain = 0.5 * (count * jnp.log(w) - (w - 1) * squares)
        return drawn.log_weight + gain + log_prior(dof, w) - log_density

    return lax.map(weigh, particles)


def _likeliest(
    joint: Any, parameters: Parameters, seen: Target, keys: Key, log_w: Array, block: Block
) -> Array:
    """Return the logarithms of better weights, given what is left of the rows with these ones."""
    prior, dof, count = parameters.prior, parameters.dof, observed_entries(block)
    guide = joint.guide(prior, _weighted(seen, jnp.exp(log_w)))

    def look(number: Array) -> tuple[Array, Array]:
        drawn: Draw = joint.draw(prior, guide, fold_in(keys, number))
        offset = [drawn.offset[None]] if prior.has_offset else []
        t = jnp.concatenate([drawn.beta, *offset])
        return drawn.log_weight, (t * ((seen.G * t).sum(1) - 2 * seen.c)).sum(0)

    logs, fits = lax.map(look, jnp.arange(DRAWS))
    logs = jnp.where(jnp.isfinite(logs), logs, -1e300)
    q = _squares(parameters, block) + (jax.nn.softmax(logs, 0) * fits).sum(0)
    return jnp.log((dof + count) / (dof + jnp.maximum(q, 0.0)))


def _weighted(seen: Target, w: Array) -> Target:
    """Return what rows with these weights (n,) say of their coefficients."""
    return Target(seen.G * w, seen.c * w)


def _squares(parameters: Parameters, block: Block) -> Array:
    """Return the sum of squares of the observed entries less the mean, in units of the noise."""
    squares = jnp.square(block.x - parameters.mean[:, None]) / parameters.sigma2[..., None]
    return (squares if block.observed is None else jnp.where(block.observed, squares, 0.0)).sum(0)
