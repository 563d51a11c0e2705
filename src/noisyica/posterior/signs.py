"""Joint draws of signs times one scale per row (TE-ICA), and their weights.

Signs are the classes of :mod:`noisyica.posterior.sequential`. Independent laws guide them, with
parts near 0, s and -s, for several values of the scale s: each value that expectation propagation
finds likely for a row has its share of the draws. Given the signs, the scale and the offset are all
that is left, and are drawn as values are there.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from noisyica._jax.randomness import Key, fold_in
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


def guide(prior: Any, seen: Target) -> Guide:
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


def draw(prior: Any, guide: Guide, keys: Key) -> Draw:
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
                jnp.concatenate([row[None], jnp.broadcast_to(own[p:], (len(rest), y.shape[1]))])
                for row, own in zip(rest, seen.G[p:], strict=True)
            ),
        ]
    )
    return Target(G, jnp.concatenate([(y * seen.c[:p]).sum(0)[None], seen.c[p:]]))
