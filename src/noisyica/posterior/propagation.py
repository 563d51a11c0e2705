r"""Expectation propagation: a normal approximation of the posterior of a row's coefficients.

The posterior of the coefficients of a row is prod_j law_j(beta_j) exp(c . beta - beta' G beta / 2),
divided by its integral. Each law is replaced by a normal factor, its *site*,
exp(nu beta - tau beta^2 / 2), such that mean and variance of each coefficient are right given the
sites of the others (Minka, 2001). What is left is a normal law of all coefficients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from noisyica._jax import matrices
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import Block

Array = jax.Array

PROPAGATION_ROUNDS = 15
"""The number of rounds of expectation propagation."""
DAMPING = 0.7
"""The share of the way that sites go in each of these rounds."""


class Target(NamedTuple):
    """What the likelihood says of the coefficients of rows; a random offset is the last of them."""

    G: Array  # (q, q, n), or (q, q, 1) where all rows have the same
    c: Array  # (q, n)


class Sites(NamedTuple):
    """The normal factors exp(shift beta - precision beta^2 / 2) that stand for laws."""

    precision: Array  # (..., q, n)
    shift: Array

    @classmethod
    def stack(cls, *several: Sites) -> Sites:
        """Return several sites as one, with a new leading axis."""
        return cls(*(jnp.stack(values) for values in zip(*several, strict=True)))


def target(parameters: Parameters, block: Block) -> Target:
    """Return what the likelihood says of the coefficients of the block's rows.

    The noise of missing entries is infinite.
    """
    A, mean, sigma2, prior, *_ = parameters
    columns = [A, jnp.ones((len(A), 1))] if prior.has_offset else [A]
    A = jnp.concatenate(columns, 1)
    centred = block.x - mean[:, None]
    inverse = jnp.broadcast_to(1 / sigma2, mean.shape)
    if block.observed is None:
        scaled = A * inverse[:, None]
        return Target((A.T @ scaled)[:, :, None], scaled.T @ centred)
    precision = jnp.where(block.observed, inverse[:, None], 0.0)
    return Target(jnp.einsum("di,dn,dj->ijn", A, precision, A), A.T @ (precision * centred))


def wide_sites(prior: Any, seen: Target) -> Sites:
    """Return sites that have the mean and the variance of the prior."""
    # behind a barrier: with constants in some laws XLA's algebraic simplifier comes to no end
    zero = lax.optimization_barrier(jnp.zeros_like(seen.c))
    mean, variance = _moments(prior, zero, zero)
    known = jnp.isfinite(mean) & jnp.isfinite(variance) & (variance > 0)
    precision = 1 / jnp.where(known, variance, 1.0)
    return Sites(precision, precision * jnp.where(known, mean, 0.0))


def propagated_sites(prior: Any, seen: Target, wide: Sites) -> Sites:
    """Return the sites that expectation propagation finds, beginning with wide ones."""

    def improve(_: int, sites: Sites) -> Sites:
        covariance, mean = joint(seen, sites)
        variance = jnp.diagonal(covariance).T
        a, b = without_site(variance, mean, sites)
        new_mean, new_variance = _moments(prior, a, b)
        # a coefficient that is at an atom for sure has no variance
        least = 1e-8 / (a + wide.precision)
        precision = 1 / jnp.maximum(new_variance, least) - a
        # heavy tails ask for negative precisions, with which the normal law may not exist
        precision = jnp.clip(precision, 1e-3 * wide.precision, 1 / least)
        shift = (precision + a) * new_mean - b
        valid = jnp.isfinite(precision) & jnp.isfinite(shift)
        new = Sites(precision, shift)
        return Sites(
            *(
                jnp.where(valid, old + DAMPING * (better - old), old)
                for old, better in zip(sites, new, strict=True)
            )
        )

    return lax.fori_loop(0, PROPAGATION_ROUNDS, improve, wide)


def _moments(prior: Any, a: Array, b: Array) -> tuple[Array, Array]:
    """Return mean and variance of each coefficient (and offset) under its tilted law."""
    if not prior.has_offset:
        mean, variance = prior.law_of_rows().moments(a, b)
        return mean, variance
    inner = prior.law_of_rows().moments(a[:-1], b[:-1])
    offset = prior.offset_law().moments(a[-1:], b[-1:])
    mean, variance = (jnp.concatenate(pair) for pair in zip(inner, offset, strict=True))
    return mean, variance


def joint(seen: Target, sites: Sites) -> tuple[Array, Array]:
    """Return covariance (..., q, q, n) and mean (..., q, n) of the normal law with these sites."""
    return _joint(seen, sites)[:2]


def _joint(seen: Target, sites: Sites) -> tuple[Array, Array, Array]:
    """Return covariance, mean and the log of the covariance's determinant, (..., n)."""
    precision = seen.G + jnp.eye(len(seen.c))[:, :, None] * sites.precision[..., None, :]
    covariance, log_determinant = matrices.inverse(precision)
    mean = (covariance * (seen.c + sites.shift)[..., None, :, :]).sum(-2)
    return covariance, mean, -log_determinant


def without_site(variance: Array, mean: Array, sites: Sites) -> tuple[Array, Array]:
    """Return a and b of exp(b beta - a beta^2 / 2), what is known of beta apart from its site."""
    return jnp.maximum(1 / variance - sites.precision, 0.0), mean / variance - sites.shift


def log_evidence(prior: Any, seen: Target, sites: Sites) -> Array:
    """Return what expectation propagation says of the log likelihood (n,), up to a constant."""
    covariance, mean, log_determinant = _joint(seen, sites)
    variance = jnp.diagonal(covariance).T
    a, b = without_site(variance, mean, sites)
    p = len(a) - prior.has_offset
    logs = prior.law_of_rows().log_normaliser(a[:p], b[:p]).sum(0)
    if prior.has_offset:
        logs = logs + prior.offset_law().log_normaliser(a[-1], b[-1])
    of_sites = 0.5 * (jnp.log(variance) + mean * mean / variance).sum(0)
    whole = 0.5 * (log_determinant + ((seen.c + sites.shift) * mean).sum(0))
    return whole + logs - of_sites
