"""Rows with their coefficients: how they are drawn, and how likely both are together."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from noisyica._jax.special import LOG_2PI
from noisyica.posterior import student
from noisyica.priors import Prior


@functools.partial(jax.jit, static_argnames=("n", "d", "p"))
def draw(
    prior: Prior, keys: jax.Array, n: int, d: int, p: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draw coefficients (p, n), offsets (n,) and standard noise (d, n)."""
    latent = prior.sample_prior(keys[0], p, n, float)
    noise = jax.random.normal(keys[1], (d, n), float)
    return prior.coefficients(latent), prior.offset(latent), noise


def draw_weights(key: jax.Array, dof: float, n: int) -> np.ndarray:
    """Draw the weights of n rows, by which Student noise divides their noise variance."""
    return np.asarray(jax.random.gamma(key, 0.5 * dof, (n,), float)) / (0.5 * dof)


def log_noise_density(residual: np.ndarray, variance: Any, dof: float | None) -> np.ndarray:
    """Return the log density of the noise of each row, (n,). Missing entries (NaN) have none."""
    terms = np.square(residual) / variance
    if dof is None:
        return np.asarray(-0.5 * np.nansum(terms + LOG_2PI + np.log(variance), 1))
    seen = ~np.isnan(residual)
    logs = (seen * np.log(variance)).sum(1)
    return np.asarray(student.log_likelihood(dof, seen.sum(1), np.nansum(terms, 1), logs))


def misfit_cost(residual: np.ndarray, variance: Any, dof: float | None) -> np.ndarray:
    """Return what the noise costs in the objective of the mode, of each row (n,)."""
    q = np.nansum(np.square(residual) / variance, 1)
    if dof is None:
        return np.asarray(0.5 * q)
    return np.asarray(0.5 * (dof + (~np.isnan(residual)).sum(1)) * np.log1p(q / dof))


@jax.jit
def log_density(prior: Any, beta: jax.Array, offset: jax.Array) -> jax.Array:
    """Return the log density of coefficients (p, n) and offsets (n,) under the prior."""
    return prior.log_density(beta, offset)


@jax.jit
def penalty(prior: Any, beta: jax.Array, offset: jax.Array) -> jax.Array:
    """Return what coefficients (p, n) and offsets (n,) cost in the objective of the mode."""
    return prior.penalty(beta, offset)
