"""A small fit taken apart, for tests of the loop's pieces: its plan, blocks and first state."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from noisyica import priors
from noisyica._jax.arrays import cast
from noisyica.engine.algorithms import Saem
from noisyica.engine.runs import begin
from noisyica.engine.state import Broadcast, Constants, Plan, Schedule
from noisyica.engine.sweepers import InMemory
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import device_blocks
from noisyica.rows.source import Rows

D, P, N = 6, 3, 64


def plan_of(algorithm=None, **choices):
    """Return a plan of maximum likelihood in double precision, but for what is chosen otherwise."""
    usual = {
        "free_mean": True,
        "mixing": None,
        "diagonal": False,
        "automatic_noise": False,
        "truncate": False,
        "dtype": "float64",
    }
    return Plan(algorithm or Saem(), **(usual | choices))


def constants_of(n=N, schedule=None):
    return Constants(np.asarray(float(n)), np.asarray(1e-12), schedule or Schedule(20, 0.9))


def parameters_of(prior="log", d=D, p=P, sigma2=0.25, seed=0):
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=(d, p)), rng.normal(size=d), sigma2, priors.get(prior))
    return cast(Parameters(*values), float)


def rows_of(parameters, n=N, seed=1):
    """Return rows (n, d) drawn from the model."""
    rng, p = np.random.default_rng(seed), parameters.A.shape[1]
    prior = parameters.prior
    latent = prior.sample_prior(jax.random.key(seed), p, n, float)
    beta = np.asarray(prior.coefficients(latent))
    noise = np.sqrt(np.asarray(parameters.sigma2)) * rng.normal(size=(n, len(parameters.A)))
    return np.asarray(parameters.mean) + (np.asarray(parameters.A) @ beta).T + noise


def begun(parameters, X, plan, constants):
    """Return the blocks of these rows, and a run on them before its first iteration."""
    blocks = device_blocks(Rows(X), plan.dtype)
    return blocks, begin(InMemory(blocks), parameters, plan, constants)


def broadcast(state, t=None, seed=0, n_sweeps=1):
    """Return what a state sends to every block of rows."""
    return Broadcast(
        t=state.t if t is None else jnp.asarray(t),
        key=jax.random.key(seed),
        n_sweeps=jnp.asarray(n_sweeps),
        parameters=state.parameters,
        move=state.move,
        restart=state.restart,
    )
