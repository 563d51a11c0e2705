"""What goes to every block of rows, what comes back from it, and where a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisyica._jax.randomness import RowKeys
from noisyica.engine.expansion import Move
from noisyica.engine.regression import equations, residual
from noisyica.engine.statistics import Statistics
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import Block

if TYPE_CHECKING:
    from noisyica.engine.algorithms.base import Algorithm
    from noisyica.engine.mixing import MixingPrior

Array = jax.Array


class Plan(NamedTuple):
    """The algorithm and the kind of model, for which code is compiled. It is fixed during a run."""

    algorithm: Algorithm
    free_mean: bool  # whether the mean is learnt
    mixing: MixingPrior | None  # the prior of A, where A is hidden and drawn
    diagonal: bool  # whether each column of x has a noise variance of its own
    automatic_noise: bool  # whether it is learnt how much columns and rows differ
    truncate: bool  # whether statistics are truncated on random boundaries
    dtype: str  # of the sampler
    student: bool = False  # whether each row has a weight of its own

    @property
    def pooled_noise(self) -> bool:
        """Whether columns have noise variances of their own that have a common law."""
        return self.diagonal and self.automatic_noise


class Schedule(NamedTuple):
    """The size of SAEM's steps and the number of MCEM's sweeps, as functions of the iteration.

    SAEM's step is 1 for ``burn_in`` iterations and then (t - burn_in + 1)^-kappa. The number of
    sweeps per iteration of MCEM grows evenly from the first of ``draws`` to the last, at iteration
    ``end``. What is coarse about the first iterations ends with iteration ``coarse``, or else with
    burn-in: where data grow, burn-in has more than one stage.
    """

    burn_in: int
    kappa: float
    draws: tuple[int, int] = (1, 1)
    end: int = 1
    coarse: Any = None

    def step_size(self, t: Array) -> Array:
        """Return SAEM's step in iteration t."""
        return jnp.maximum(t - self.burn_in + 1.0, 1.0) ** -self.kappa

    def n_sweeps(self, t: Array) -> Array:
        """Return the number of sweeps in iteration t."""
        first, last = self.draws
        grown = first + (last - first) * t / jnp.maximum(self.end - 1, 1)
        return jnp.round(grown).astype(int)

    def share(self, t: Array) -> Array:
        """Return the share of iteration t in the average over iterations since burn-in."""
        return 1 / jnp.maximum(t - self.burn_in + 1.0, 1.0)

    def coarse_rotation(self, t: Array) -> Array:
        """Return the share to take of a rotation that does not follow the likelihood itself.

        It falls to zero by the end of the coarse iterations.
        """
        return 0.4 * jnp.maximum(1 - t / jnp.maximum(self._coarse, 1), 0.0)

    def early(self, t: Array) -> Array:
        """Return whether t is among the first iterations, in which A turns most."""
        return t < self._coarse / 4

    @property
    def _coarse(self) -> Any:
        return self.burn_in if self.coarse is None else self.coarse


class Constants(NamedTuple):
    """Numbers that are fixed during a run; the compiled code serves for any values of them."""

    total_weight: Any  # the sum of the rows' weights: how many rows they count for
    floor: Any  # the minimum noise variance: () or, for diagonal noise, (d,)
    schedule: Schedule


SWEEPS, IMPUTATION, MIXING, WEIGHTS = range(4)
"""What the random numbers of an iteration are for.

The rows' latent variables are drawn in sweeps; their missing entries are drawn, and so are A and,
with Student noise, the rows' weights."""


class Broadcast(NamedTuple):
    """What is sent to every block of rows: O(d p + p^2) numbers, whatever the number of rows."""

    t: Array  # the iteration
    key: Array  # the random key of the iteration
    n_sweeps: Array
    parameters: Parameters
    move: Move  # of the coefficients: the last iteration decided it, and the sweep begins with it
    restart: Array  # whether the chains return to their restart points (truncation)
    share: Any = 1.0  # of this iteration in averages over the iterations since burn-in

    def row_keys(self, block: Block, role: int, sweep: Any = 0) -> RowKeys:
        """Return the randomness of the rows of a block for one role, in one sweep of the iteration.

        Each role and sweep has a key of its own, since ``jax.random.split(key, n)[i]`` is
        ``fold_in(key, i)``: a key that a prior may split must have no other descendants.
        """
        key = jax.random.fold_in(jax.random.fold_in(self.key, role), sweep)
        return RowKeys(key, block.rows)


class Totals(NamedTuple):
    """What comes back from a block of rows: sums over its rows. Those of blocks can be added."""

    weight: Array  # the sum of the rows' relative weights, by which sums become averages
    statistics: Statistics
    expansion: Any = None  # noisyica.priors.Expansion, where the algorithm asks for it

    def averages(self) -> Totals:
        """Return the averages over the rows."""
        return jax.tree.map(lambda total: total / self.weight, self)


class Chain(NamedTuple):
    """What a block of rows keeps from one sweep to the next."""

    latent: Any
    x: Any = None  # (d, n)  the rows with their missing entries filled in, where there are any
    restart_point: Any = None  # (latent, x, weight) to return to, where statistics are truncated
    weight: Any = None  # (n,)  of the rows, where the noise is Student's
    mean_weight: Any = None  # (n,)  its posterior mean: the average over iterations since burn-in

    def fill(self, block: Block) -> Block:
        """Return the block with its missing entries as they were last drawn."""
        return block if self.x is None else block._replace(x=self.x)


class RestartPoint(NamedTuple):
    """Where a truncated run returns to, and how often it has returned."""

    returns: Array
    parameters: Parameters
    statistics: Statistics


class State(NamedTuple):
    """Where a run stands, apart from the chains of its rows."""

    t: Array  # the number of iterations that are done
    parameters: Parameters
    statistics: Statistics  # averaged over iterations as the algorithm has it
    move: Move  # of the coefficients, with which the next sweep begins
    drift: Array  # a summary of this iteration's draws alone: stationary once the parameters are
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


def drift(statistics: Statistics, parameters: Parameters, free_mean: bool) -> Array:
    """Return a few numbers that summarise the draws of one iteration.

    First those of the components, then the prior's own statistics, and last what is left of x and,
    with Student noise, how much the rows' weights vary. (One is added to that: a change of the
    inverse degrees of freedom by a thousandth is none.)
    """
    parts: list[Any] = [jnp.diag(statistics.bb)]
    if statistics.mixing is None:
        parts.append(sketch(len(statistics.x)) @ statistics.xb)
        left = residual(parameters.A, equations(statistics, parameters.prior, free_mean))
    else:
        parts.append(sketch(len(statistics.x)) @ statistics.mixing.mean)
        left = statistics.mixing.residual
    weights = statistics.weights
    spread = None if weights is None else 1 + jnp.log(weights.mean) - weights.log
    leaves = jax.tree.leaves([parts, statistics.prior, left.mean(), spread])
    return jnp.concatenate([jnp.ravel(leaf) for leaf in leaves])


def drift_groups(run: Run) -> list[np.ndarray]:
    """Return what a run recorded of its draws: of the components, the prior and the noise."""
    of_prior = sum(np.size(leaf) for leaf in jax.tree.leaves(run.state.statistics.prior))
    record = run.history["drift"]
    end = record.shape[1] - (1 if run.state.parameters.dof is None else 2)
    return np.split(record, [end - of_prior, end], axis=1)


def sketch(d: int) -> np.ndarray:
    """Return four random directions, (4, d): projections on them tell cheaply how far A moves."""
    return np.random.RandomState(0).normal(size=(4, d))


def trace(state: State) -> dict[str, Array]:
    """Return what the history records of the iteration that has just ended, by name."""
    parameters = state.estimate
    values: dict[str, Any] = {
        "noise_variance": parameters.sigma2.mean(),
        "log_noise": jnp.log(parameters.sigma2).mean(),
        "column_norms": jnp.sqrt((parameters.A**2).sum(0)),
        "sketch": sketch(len(parameters.A)) @ parameters.A,
        "drift": state.drift,
    }
    values |= {f"prior{i}": leaf for i, leaf in enumerate(jax.tree.leaves(parameters.prior))}
    if parameters.dof is not None:
        values["noise_dof"] = parameters.dof
    if state.restart_point is not None:
        values["returns"] = state.restart_point.returns
    return values
