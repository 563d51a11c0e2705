"""Streams: rows that come block by block, of which nothing is kept but their sums.

In each iteration the sums over the rows of the present block and those over all past rows make up
the statistics, as if the past rows were one more block that is not swept. Each block takes several
iterations, and the averages over the later of them are the new past. The past was swept with older
parameters, and counts for less the older it is: the k-th of equal blocks has the share k^-kappa,
which is SAEM's step, over blocks instead of iterations.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax

from noisyica.engine.expansion import Move, no_move
from noisyica.engine.growth import Stage
from noisyica.engine.loop import learn_stage
from noisyica.engine.state import Broadcast, Constants, Plan, Run, Totals
from noisyica.engine.statistics import Statistics, rotate, shift
from noisyica.engine.sweepers import InMemory
from noisyica.engine.task import Task
from noisyica.posterior.parameters import Parameters

ITERATIONS = 20
"""The number of iterations that each block takes, apart from the first; half of them count."""


class Past(NamedTuple):
    """The rows that are gone: average statistics, and for how many rows they count."""

    weight: Any
    statistics: Statistics


class WithPast(NamedTuple):
    """Rows in memory beside rows that are gone. Their chains are a pair: chains, and the past."""

    rows: InMemory

    @property
    def in_memory(self) -> bool:
        """Whether the loop can be compiled around the rows."""
        return True

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of rows that are swept, that of rows that are held, and that of columns."""
        return self.rows.shape

    def prepared(self, plan: Plan, parameters: Parameters) -> WithPast:
        """Return the same with what all iterations of a compiled call share."""
        return WithPast(self.rows.prepared(plan, parameters))

    def sweep(self, plan: Plan, sent: Broadcast, chains: Any) -> tuple[Any, Totals]:
        """Sweep the rows, and add the sums of those that are gone."""
        chain, past = chains
        shifts = plan.algorithm.shifts(plan, sent.parameters.prior)
        moved = functools.partial(_moved, sent.move, shifts)
        past = lax.cond(plan.algorithm.moves(sent.t - 1), moved, lambda same: same, past)
        chain, totals = self.rows.sweep(plan, sent, chain)
        statistics = jax.tree.map(
            lambda new, old: new + past.weight * old, totals.statistics, past.statistics
        )
        totals = totals._replace(weight=totals.weight + past.weight, statistics=statistics)
        return (chain, past), totals


def _moved(move: Move, shifts: bool, past: Past) -> Past:
    """Return the past after the coefficients of its rows have moved with those of all others."""
    statistics = rotate(past.statistics, move.W)
    return past._replace(statistics=shift(statistics, move.shift) if shifts else statistics)


class Stream(NamedTuple):
    """Where a stream stands."""

    run: Run
    past: Past
    seen: float  # how many rows there were so far
    centre: np.ndarray  # of the first block, with which all are centred and scaled
    unit: float


def first_block(task: Task, start: Parameters) -> Stream:
    """Learn from the first block of a stream: burn-in, and as many iterations as later ones."""
    constants, stage = task.constants, task.stages[-1]
    burn_in = int(constants.schedule.burn_in)
    run = _learnt(task, stage, task.begun(0, start), burn_in + ITERATIONS // 2)
    return _stream(task, run, float(task.rows.total_weight))


def next_block(task: Task, stream: Stream, kappa: float) -> Stream:
    """Learn from a further block, whose rows are those of the task."""
    n, state = task.rows.total_weight, stream.run.state
    seen = stream.seen + n
    past = stream.past._replace(weight=np.asarray(n * ((seen / n) ** kappa - 1)))
    t = int(state.t)
    schedule = task.constants.schedule._replace(burn_in=t + ITERATIONS // 2, kappa=1.0, coarse=1)
    constants: Constants = task.constants._replace(
        total_weight=np.asarray(n + past.weight), schedule=schedule
    )
    rows: Any = task.stages[-1].sweeper
    chains = rows.first_chains(task.plan, state.parameters)
    sweeper: Any = WithPast(rows)
    begun: Any = (state._replace(move=no_move(task.p)), (chains, past), {})
    run = _learnt(task, Stage(t, sweeper, constants), Run(*begun), t + ITERATIONS)
    run = run._replace(chains=run.chains[0])
    return _stream(task, run, seen)


def _learnt(task: Task, stage: Stage, run: Run, end: int) -> Run:
    """Return the run after iteration ``end``."""
    *_, runs = learn_stage(stage, [run], task.key, task.plan, end)
    return runs[0]


def _stream(task: Task, run: Run, seen: float) -> Stream:
    """Return where a stream stands after a run on one of its blocks."""
    past = Past(np.asarray(seen), run.state.statistics._replace(mixing=None))
    return Stream(run, past, seen, task.rows.centre, task.rows.unit)
