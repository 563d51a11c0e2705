"""Joint draws of signs times one scale per row (TE-ICA), and their weights.

Given the signs, the scale and the offset are all that is left, and are drawn as the values of
:mod:`noisyica.posterior.sequential`. Where the signs have few patterns, all of them are enumerated,
each with a draw of its own: a weight is then a sum over the patterns, and none is overlooked.
Otherwise signs are drawn as the classes are there, guided by independent laws with parts near 0, s
and -s, for several values of the scale s: each value that expectation propagation finds likely for
a row has its share of the draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisyica._jax.arrays import all_states
from noisyica._jax.randomness import Key, fold_in, uniforms
from noisyica.laws import Dirac, Exponential, Law, Mixture, Normal
from noisyica.posterior import sequential
from noisyica.posterior.propagation import (
    Sites,
    Target,
    log_evidence,
    propagated_sites,
    wide_sites,
)
from noisyica.posterior.sequential import Draw, Guide, draw_states
from noisyica.priors import Independent, Prior

Array = jax.Array

ENUMERATED = 3**8
"""The maximum number of patterns of signs that are enumerated."""
SCALES = tuple(2.0**k for k in range(-4, 4))
"""The scales of a row for which its signs are guided, in units of the scale's mean."""
SPREAD = 0.35
"""The standard deviation of a coefficient that is on, in units of the scale, for these guides."""
DOUBT = 0.2
"""The share of the draws of signs that is spread evenly over the scales."""


def _independent(prior: Any, law: Law) -> Prior:
    """Return the prior of independent coefficients of a law, with the offset of ``prior``."""
    independent = Independent(law)
    return prior.around(independent) if prior.has_offset else independent


def _guiding(prior: Any, scale: Any) -> Prior:
    """Return the prior of independent coefficients that guides the signs, given the scale."""
    parts = (Dirac(), Normal(scale, SPREAD * scale), Normal(-scale, SPREAD * scale))
    weights = jnp.exp(prior.without_offset.classes().log_weights)  # of the signs 0, 1 and -1
    return _independent(prior, Mixture(parts, weights))


class Patterns(NamedTuple):
    """All patterns of a row's signs, and what all draws of scale and offset share given each."""

    signs: Array  # (patterns, p)
    log_probability: Array  # (patterns,)
    given: Guide  # with a leading axis: for each pattern

    def weighted(self, weight: Array) -> Patterns:
        """Return the guides of rows whose noise variance is divided by weights (n,)."""
        return self._replace(given=jax.vmap(lambda given: given.weighted(weight))(self.given))


def all_enumerated(p: int) -> bool:
    """Return whether all patterns of the signs of p components are enumerated."""
    return 3**p <= ENUMERATED


def guide(prior: Any, seen: Target) -> Guide | Patterns:
    """Return what all draws for these rows share: guides given each pattern, or each scale."""
    enumerated = all_enumerated(len(seen.c) - prior.has_offset)
    return _guide_patterns(prior, seen) if enumerated else _guide_scales(prior, seen)


def draw(prior: Any, guide: Guide | Patterns, keys: Key) -> Draw:
    """Draw signs, then the scale and the offset of each row, with their importance weights."""
    if isinstance(guide, Patterns):
        return _draw_patterns(prior, guide, keys)
    return _draw_scales(prior, guide, keys)


# ---------------------------------------------------------------------- all patterns of the signs


def _guide_patterns(prior: Any, seen: Target) -> Patterns:
    """Return all patterns of the signs, with the guides of scale and offset given each."""
    log_weights, values, _ = prior.without_offset.classes()
    states = all_states(len(values), len(seen.c) - prior.has_offset)
    left = _independent(prior, Exponential())

    def given_signs(y: Array) -> Guide:
        return sequential.guide(left, _given_signs(seen, y[:, None]))

    signs = values[states]
    return Patterns(signs, log_weights[states].sum(1), jax.vmap(given_signs)(signs))


def _draw_patterns(prior: Any, patterns: Patterns, keys: Key) -> Draw:
    """Draw a scale and an offset for each pattern, add their weights up, and keep one of them."""
    left = _independent(prior, Exponential())
    count = len(patterns.signs)

    def given_signs(number: Array, given: Guide) -> Draw:
        return sequential.draw(left, given, fold_in(keys, number))

    drawn = jax.vmap(given_signs)(jnp.arange(count), patterns.given)
    log_weights = drawn.log_weight + patterns.log_probability[:, None]  # (patterns, n)
    (u,) = uniforms(fold_in(keys, count), 1, log_weights.shape[1:], float)
    kept = sequential.choose(jax.nn.softmax(log_weights, 0), u)
    rows = jnp.arange(len(kept))
    return Draw(
        log_weight=jax.scipy.special.logsumexp(log_weights, 0),
        beta=patterns.signs[kept].T * drawn.beta[kept, 0, rows],
        offset=drawn.offset[kept, rows],
    )


# --------------------------------------------------------------------------- signs that are drawn


def _guide_scales(prior: Any, seen: Target) -> Guide:
    """Return what all draws for these rows share: one guide for each scale."""

    def of_scale(scale: Array) -> tuple[Sites, Array]:
        guiding = _guiding(prior, scale)
        sites = propagated_sites(guiding, seen, wide_sites(guiding, seen))
        return sites, log_evidence(guiding, seen, sites) - scale

    scales = jnp.asarray(SCALES)
    sites, logs = jax.vmap(of_scale)(scales)
    logs = logs + jnp.log(scales)[:, None]  # scales are equally spaced in their logarithm
    logs = jnp.where(jnp.isfinite(logs), logs, -1e300)
    trust = (1 - DOUBT) * jax.nn.softmax(logs, 0) + DOUBT / len(SCALES)
    return Guide(seen, sites, trust, None)


def _draw_scales(prior: Any, guide: Guide, keys: Key) -> Draw:
    """Draw signs, then the scale and the offset of each row, with their importance weights."""
    seen, guides, trust, _ = guide
    states = draw_states(_guiding(prior, jnp.asarray(SCALES)[:, None]), seen, guides, trust, keys)
    log_weights, signs, _ = prior.without_offset.classes()
    y = signs[states.part]
    values = _independent(prior, Exponential())
    drawn = sequential.draw(
        values, sequential.guide(values, _given_signs(seen, y)), fold_in(keys, 3)
    )
    log_weight = drawn.log_weight + log_weights[states.part].sum(0) - states.log_probability
    return Draw(log_weight, y * drawn.beta, drawn.offset)


def _given_signs(seen: Target, y: Array) -> Target:
    """Return what the likelihood says of the scale, and of the offset if there is one."""
    p = len(y)
    across = (seen.G[:, :p] * y).sum(1)  # (q, n)
    of_scale, rest = (y * across[:p]).sum(0)[None], across[p:]
    G = jnp.stack(
        [
            jnp.concatenate([of_scale, rest]),
            *(
                jnp.concatenate([row[None], jnp.broadcast_to(own[p:], rest.shape)])
                for row, own in zip(rest, seen.G[p:], strict=True)
            ),
        ]
    )
    return Target(G, jnp.concatenate([(y * seen.c[:p]).sum(0)[None], seen.c[p:]]))
