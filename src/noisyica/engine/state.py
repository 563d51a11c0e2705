"""What goes to every block of rows, what comes back from it, and where a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisyica.engine.expansion import Move
from noisyica.engine.statistics import Statistics
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import Block

if TYPE_CHECKING:
    from noisyica.engine.algorithms.base import Algorithm

Array = jax.Array


class Plan(NamedTuple):
    """What is compiled in: the algorithm and the kind of model. It does not change during a run."""

    algorithm: Algorithm
    free_mean: bool  # whether the mean is learnt
    sample_mixing: bool  # whether A is hidden and drawn
    diagonal: bool  # whether each column of x has a noise variance of its own
    truncate: bool  # whether statistics are truncated on random boundaries
    dtype: str  # of the sampler


class Schedule(NamedTuple):
    """How the steps of the iterations go.

    SAEM's step is 1 for ``burn_in`` iterations and then (t - burn_in + 1)^-kappa. The number of
    sweeps per iteration of MCEM grows evenly from the first of ``draws`` to the last, at iteration
    ``end``.
    """

    burn_in: int
    kappa: float
    draws: tuple[int, int] = (1, 1)
    end: int = 1

    def step(self, t: Array) -> Array:
        """Return SAEM's step in iteration t."""
        return jnp.maximum(t - self.burn_in + 1.0, 1.0) ** -self.kappa

    def n_sweeps(self, t: Array) -> Array:
        """Return the number of sweeps in iteration t."""
        first, last = self.draws
        grown = first + (last - first) * t / jnp.maximum(self.end - 1, 1)
        return jnp.round(grown).astype(int)

    def coarse_rotation(self, t: Array) -> Array:
        """Return how much to take of a rotation that is not the likelihood's own.

        It fades out by the end of burn-in.
        """
        return 0.4 * jnp.maximum(1 - t / jnp.maximum(self.burn_in, 1), 0.0)


class Constants(NamedTuple):
    """Numbers that do not change during a run and are not compiled in."""

    n_rows: Any  # how many rows the rows count for
    floor: Any  # the least noise variance that can be told from rounding
    schedule: Schedule


class Broadcast(NamedTuple):
    """What goes to every block of rows: O(d p + p^2), and never as much as the rows."""

    t: Array
    key: Array
    n_sweeps: Array
    parameters: Parameters
    move: Move  # of the coefficients, which the last iteration decided and the sweep begins with
    restart: Array  # whether the chains return to where the run began (truncation)


class Totals(NamedTuple):
    """What comes from every block of rows: raw sums, which add."""

    weight: Array  # of the rows
    statistics: Statistics
    expansion: Any = None  # noisyica.priors.Expansion, where the algorithm asks for it

    def averages(self) -> Totals:
        """Return the averages over the rows."""
        return jax.tree.map(lambda total: total / self.weight, self)


class Chain(NamedTuple):
    """What a block of rows keeps from one sweep to the next."""

    latent: Any
    x: Any = None  # (d, n)  the rows with their missing entries filled in, where there are any
    restart_point: Any = None  # (latent, x) to return to, where statistics are truncated

    def fill(self, block: Block) -> Block:
        """Return the block with its missing entries as they were last drawn."""
        return block if self.x is None else block._replace(x=self.x)


class RestartPoint(NamedTuple):
    """Where a truncated run returns to, and how often it did."""

    returns: Array
    parameters: Parameters
    statistics: Statistics


class State(NamedTuple):
    """Where a run stands, but for the chains of its rows."""

    t: Array
    parameters: Parameters
    statistics: Statistics
    move: Move
    drift: Array  # what this iteration's draws alone say: stationary once the parameters are
    restart: Array  # whether the last iteration ended outside of its boundary
    restart_point: Any = None  # RestartPoint, where statistics are truncated

    @property
    def estimate(self) -> Parameters:
        """The parameters to report: for a hidden A the average of its conditional mean."""
        mixing = self.statistics.mixing
        return self.parameters if mixing is None else self.parameters._replace(A=mixing.mean)


class Run(NamedTuple):
    """Where a run stands, and what it recorded of each iteration so far."""

    state: State
    chains: Chain  # of all blocks, along a leading axis
    history: dict[str, np.ndarray]


def drift(statistics: Statistics) -> Array:
    """Return a few numbers that summarise the draws of one iteration."""
    parts = [jnp.diag(statistics.bb), statistics.prior]
    if statistics.mixing is None:
        parts.append(sketch(len(statistics.x)) @ statistics.xb)
    else:
        mixing = statistics.mixing
        parts += [sketch(len(statistics.x)) @ mixing.mean, mixing.residual.mean()]
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(parts)])


def sketch(d: int) -> np.ndarray:
    """Return random directions (4, d): projections on them tell cheaply whether, and how far, A moves."""
    return np.random.RandomState(0).normal(size=(4, d))


def trace(state: State) -> dict[str, Array]:
    """Return what the history records of each iteration."""
    parameters = state.estimate
    values: dict[str, Any] = {
        "noise_variance": parameters.sigma2.mean(),
        "log_noise": jnp.log(parameters.sigma2).mean(),
        "column_norms": jnp.sqrt((parameters.A**2).sum(0)),
        "sketch": sketch(len(parameters.A)) @ parameters.A,
        "drift": state.drift,
    }
    values |= {f"prior{i}": leaf for i, leaf in enumerate(jax.tree.leaves(parameters.prior))}
    if state.restart_point is not None:
        values["returns"] = state.restart_point.returns
    return values
