"""The one loop: S <- S + step (S_hat - S), theta <- mstep(S).

Each turn sends the parameters to all blocks of rows (:class:`~noisyica.engine.state.Broadcast`),
gets sums over the rows back (:class:`~noisyica.engine.state.Totals`), and updates the parameters.
The algorithm (:mod:`noisyica.engine.algorithms`) computes the sums and says how far a step goes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from noisyica import interruption
from noisyica._jax.arrays import choose, zeros_like_shapes
from noisyica._jax.compiling import Compiled
from noisyica._jax.device import default_device, platform
from noisyica._jax.precision import double_precision
from noisyica._jax.xla import always
from noisyica.engine.expansion import no_move
from noisyica.engine.growth import WINDOW, Stage
from noisyica.engine.mstep import mstep
from noisyica.engine.regression import undo
from noisyica.engine.runs import Group, grouped, keys_of_runs
from noisyica.engine.state import (
    MIXING,
    Broadcast,
    Chain,
    Constants,
    Plan,
    Run,
    Schedule,
    State,
    Totals,
    drift,
    trace,
)
from noisyica.engine.statistics import Statistics, rotate, shift
from noisyica.engine.sweepers import InMemory, Sweeper
from noisyica.engine.truncation import truncate

Array = jax.Array

WORK_PER_CHUNK, WORK_ON_GPU = 2e9, 2e12
"""About how many multiplications a chunk of iterations takes: half a second between two looks."""
LONGEST_CHUNK = 50
"""The maximum number of iterations of a chunk, for whose traces there is room."""
COST_OF_A_DRAW = 30.0
"""About how many multiplications a draw of a coefficient takes as long as."""
FEW_COEFFICIENTS = 2048
"""The number of coefficients up to which code is compiled fast rather than to run fast.

With so few of them, compiling takes longer than learning."""
FEW_ENTRIES = 4096
"""The same for the entries of A, where they are drawn by a law."""


def step(
    sweeper: Sweeper, plan: Plan, constants: Constants, key: Array, state: State, chains: Any
) -> tuple[State, Any]:
    """Take one turn of the loop: sweep all rows, then update the parameters."""
    sent = broadcast(constants, key, state)
    chains, totals = sweeper.sweep(plan, sent, chains)
    return update(plan, constants, sent.key, state, totals.averages()), chains


def broadcast(constants: Constants, key: Array, state: State) -> Broadcast:
    """Return what is sent to every block of rows in the next iteration."""
    t, schedule = state.t, constants.schedule
    return Broadcast(
        t=t,
        key=jax.random.fold_in(key, t + 1),
        n_sweeps=schedule.n_sweeps(t),
        parameters=state.parameters,
        move=state.move,
        restart=state.restart,
        share=schedule.share(t),
    )


def update(plan: Plan, constants: Constants, key: Array, state: State, averages: Totals) -> State:
    """Return the state after an iteration whose draws have these average statistics.

    Choose the move of the coefficients, draw A if it is hidden, take the step towards the new
    statistics, solve the M-step, and return to the restart point where the statistics are too far.
    """
    algorithm, t, parameters = plan.algorithm, state.t, state.parameters
    prior, old, new = parameters.prior, state.statistics, averages.statistics
    size = algorithm.step_size(t, constants.schedule)
    move = lax.cond(
        algorithm.moves(t),
        lambda: algorithm.move(plan, constants, state, averages, size),
        lambda: no_move(len(new.b)),
    )
    shifts = algorithm.shifts(plan, prior)
    # Where A is hidden it is drawn from this iteration's statistics, which move first. The average
    # of E[A] over iterations is not turned by a single move, but the mean is solved from the
    # averages: when the coefficients shift, these shift with them. Where A is not hidden, it is
    # solved from the averages, too, and these move.
    if plan.mixing is not None:
        new = rotate(new, move.W)
        if shifts:
            new, old = shift(new, move.shift), shift(old, move.shift)
        moved = parameters._replace(A=undo(move.W, parameters.A))
        mixing_key, count = jax.random.fold_in(key, MIXING), constants.total_weight
        A, mixing = plan.mixing.draw(mixing_key, new, moved, count, plan.free_mean)
        new = new._replace(mixing=mixing)
    statistics: Statistics = jax.tree.map(lambda s, s_new: s + size * (s_new - s), old, new)
    if plan.mixing is None:
        statistics = rotate(statistics, move.W)
        statistics = shift(statistics, move.shift) if shifts else statistics
    learnt = mstep(statistics, parameters, plan, constants)
    if prior.learns_late and algorithm.stochastic:
        # let A turn first: fitted to mixtures of components, a law looks normal
        early = constants.schedule.early(t)
        learnt = learnt._replace(prior=choose(early, prior, learnt.prior))
    learnt = learnt._replace(prior=learnt.prior.moved(move.W))
    if plan.mixing is not None:
        learnt = learnt._replace(A=A)
    after = State(
        t=t + 1,
        parameters=learnt,
        statistics=statistics,
        move=move,
        drift=drift(new, parameters, plan.free_mean),
        restart=state.restart,
        restart_point=state.restart_point,
    )
    return truncate(after, state.statistics, size) if plan.truncate else after


def _advance(
    state: State,
    chains: Chain,
    key: Array,
    rows: Any,
    count: Array,
    constants: Constants,
    plan: Plan,
    length: int,
) -> tuple[State, Chain, dict[str, Array]]:
    """Run ``count`` iterations; return the state, the chains and the trace of each iteration.

    The traces are in arrays of ``length`` >= ``count`` iterations, so that one compilation serves
    for any number of iterations.
    """
    # a trace is noted as one vector: each array by itself would be one more operation to run
    flat, unravel = ravel_pytree(zeros_like_shapes(jax.eval_shape(trace, state)))
    rows = rows.prepared(plan, state.parameters)
    turn = functools.partial(step, rows, plan, constants, key)

    def note(i: Array, state: State, record: Array) -> Array:
        return record.at[i].set(ravel_pytree(trace(state))[0])

    def body(i: Array, carry: tuple[State, Chain, Array]) -> tuple[State, Chain, Array]:
        state, chains, record = carry
        state, chains = lax.cond(always(i), turn, lambda *same: same, state, chains)
        record = lax.cond(always(i), note, lambda i, state, record: record, i, state, record)
        return state, chains, record

    record = jnp.zeros((length, len(flat)))
    state, chains, record = lax.fori_loop(0, count, body, (state, chains, record))
    return state, chains, jax.vmap(unravel)(record)


advance = Compiled(_advance, ("plan", "length"))


_RUNS_AXIS: Any = State(
    t=None,  # type: ignore[arg-type]  # common to all runs
    parameters=0,  # type: ignore[arg-type]
    statistics=0,  # type: ignore[arg-type]
    move=0,  # type: ignore[arg-type]
    drift=0,  # type: ignore[arg-type]
    restart=0,  # type: ignore[arg-type]
    restart_point=0,
)
"""The axis of the runs in a state that holds several runs, as ``jax.vmap`` takes it."""


def _advance_together(
    states: State,
    chains: Chain,
    keys: Array,
    rows: InMemory,
    count: Array,
    constants: Constants,
    plan: Plan,
    length: int,
) -> tuple[State, Chain, dict[str, Array]]:
    """Advance several runs in one call.

    The iteration is common to all runs, so that what is done in some iterations only stays a
    branch.
    """

    def advance_run(
        state: State, chain: Chain, key: Array
    ) -> tuple[State, Chain, dict[str, Array]]:
        return _advance(state, chain, key, rows, count, constants, plan, length)

    axes = (_RUNS_AXIS, 0, 0)
    together: Any = jax.vmap(advance_run, in_axes=axes, out_axes=axes)
    return together(states, chains, keys)


advance_together = Compiled(_advance_together, ("plan", "length"))


def learn(
    stages: Sequence[Stage], current: Callable[[], list[Run]], key: Array, plan: Plan, max_iter: int
) -> Iterator[list[Run]]:
    """Iterate until iteration ``max_iter``, stage after stage; yield as :func:`learn_stage` does.

    ``current`` returns where the runs stand: those that were yielded last, or begin.
    """
    ends = [stage.first for stage in stages[1:]] + [max_iter]

    def remaining() -> Iterator[Iterator[list[Run]]]:
        for i, (stage, end) in enumerate(zip(stages, ends, strict=True)):
            begun = current()
            done = int(begun[0].state.t)
            if done >= end:
                continue
            if i > 0 and done == stage.first:
                begun = [_joined(stage.sweeper, stages[i - 1].sweeper, plan, run) for run in begun]
            yield learn_stage(stage, begun, key, plan, min(end, max_iter))

    return itertools.chain.from_iterable(remaining())


def learn_stage(
    stage: Stage, begun: list[Run], key: Array, plan: Plan, end: int
) -> Iterator[list[Run]]:
    """Iterate from where the runs stand until iteration ``end``, all runs together.

    The runs are yielded after each chunk of iterations, which is about half a second of work. Only
    between two chunks is KeyboardInterrupt raised.
    """
    learn_where = _learn_in_memory if stage.sweeper.in_memory else _learn_outside
    return learn_where(stage, begun, key, plan, end)


def _joined(sweeper: Sweeper, before: Sweeper, plan: Plan, run: Run) -> Run:
    """Return the run with the chains of the rows that join it."""
    return run._replace(chains=sweeper.joined(plan, run.state.parameters, run.chains, before))


def _learn_in_memory(
    stage: Stage, begun: list[Run], key: Array, plan: Plan, end: int
) -> Iterator[list[Run]]:
    """Iterate until iteration ``end`` on rows in memory, many iterations in one compiled call."""
    rows: Any = stage.sweeper
    constants = stage.constants
    groups = grouped(begun, key)
    length, fast_compile = _chunk(rows, begun, plan, constants.schedule)
    if stage.first:  # rows have joined: it may end soon
        length = min(length, WINDOW // 4)
    compiled = (advance_together if groups[0].count > 1 else advance).compiled(fast_compile)
    done, count = int(begun[0].state.t), len(begun)
    del begun  # their chains are as large as the rows have coefficients
    while done < end:
        interruption.check()
        # a first look soon, to tell how long it will take
        now = min(length if done else min(length, 10), end - done)
        calls = [
            functools.partial(
                compiled, *group.position, group.keys, rows, now, constants, plan, LONGEST_CHUNK
            )
            for group in groups
        ]
        if len(calls) == 1:
            results = [jax.block_until_ready(calls[0]())]
        else:
            results = _in_threads(calls)
        for group, result in zip(groups, results, strict=True):
            state, chains, traces = result
            group.note(state, chains, traces, now)
        done += now
        yield [run for group in groups for run in group.runs()][:count]


def _learn_outside(
    stage: Stage, begun: list[Run], key: Array, plan: Plan, end: int
) -> Iterator[list[Run]]:
    """Iterate until iteration ``end`` on rows that are held elsewhere, block by block.

    The runs are yielded after each iteration, since sweeps may replace chains in place.
    """
    sweeper, constants = stage.sweeper, stage.constants
    begun = [run._replace(chains=sweeper.placed(run.chains)) for run in begun]
    groups = [
        Group([run], [own]) for run, own in zip(begun, keys_of_runs(key, len(begun)), strict=True)
    ]
    for _ in range(int(begun[0].state.t), end):
        interruption.check()
        for group in groups:
            state, chains = group.position
            sent = send(constants, group.keys, state)
            chains, totals = sweeper.sweep(plan, sent, chains)
            state, record = take(constants, sent.key, state, totals, plan)
            group.note(state, chains, record, 1)
        yield [group.runs()[0] for group in groups]


send = jax.jit(broadcast)


@functools.partial(jax.jit, static_argnames="plan")
def take(
    constants: Constants, key: Array, state: State, totals: Totals, plan: Plan
) -> tuple[State, dict[str, Array]]:
    """Return the state after an iteration whose sums are known, and its trace."""
    state = update(plan, constants, key, state, totals.averages())
    return state, jax.tree.map(lambda value: value[None], trace(state))


def _chunk(rows: Any, begun: list[Run], plan: Plan, schedule: Schedule) -> tuple[int, bool]:
    """Return the number of iterations per chunk, and whether to compile fast, not to run fast."""
    swept, held, d = rows.shape
    p = begun[0].state.parameters.A.shape[1]
    work = swept * max(schedule.draws) * len(begun) * (d + COST_OF_A_DRAW) * (p + 1)
    most = WORK_PER_CHUNK if platform() == "cpu" else WORK_ON_GPU
    length = int(np.clip(most / work, 5, LONGEST_CHUNK))
    return length, compiles_fast(begun[0], plan, d, held)


def compiles_fast(run: Run, plan: Plan, d: int, n: int) -> bool:
    """Return whether to compile fast, not to run fast, what sweeps n rows of d numbers."""
    p, prior = run.state.parameters.A.shape[1], run.state.parameters.prior
    few = prior.compiles_fast or n * p <= FEW_COEFFICIENTS
    few_entries = plan.mixing is None or plan.mixing.compiles_fast or d * p <= FEW_ENTRIES
    return few and few_entries


def _in_threads(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make the calls at the same time, each in a thread, and return their results."""
    device = default_device()

    @double_precision()  # a setting of each thread, as the device is
    def result_of(call: Callable[[], Any]) -> Any:
        with jax.default_device(device):
            return jax.block_until_ready(call())

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(result_of, calls))
