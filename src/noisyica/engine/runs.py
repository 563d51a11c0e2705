"""Runs: how they begin, how several advance in one compiled call, and what they recorded."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisyica._jax.arrays import to_numpy, zeros_like_shapes
from noisyica._jax.device import platform
from noisyica.engine.expansion import no_move
from noisyica.engine.state import Chain, Constants, Plan, RestartPoint, Run, State, drift
from noisyica.engine.statistics import Statistics, collect
from noisyica.engine.sweepers import Sweeper
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.student import RowWeights
from noisyica.rows.block import Block

Array = jax.Array


def begin(sweeper: Sweeper, parameters: Parameters, plan: Plan, constants: Constants) -> Run:
    """Return a run before its first iteration. Where rows are in memory, nothing is compiled."""
    d, p = parameters.A.shape
    parameters = to_numpy(parameters)
    chains = sweeper.first_chains(plan, parameters)
    if plan.mixing is not None:
        mixing = plan.mixing.begin(parameters, constants.floor, constants.total_weight)
        parameters = parameters._replace(mixing=mixing)
    if plan.diagonal:
        noise: Any = np.broadcast_to(parameters.sigma2, (d,))
        parameters = parameters._replace(sigma2=noise)
    shapes = _statistics.eval_shape(parameters, plan)
    statistics, no_drift = zeros_like_shapes(shapes)
    zero: Any = np.zeros((), int)
    state = State(
        t=zero,
        parameters=parameters,
        statistics=statistics,
        move=no_move(p),
        drift=no_drift,
        restart=np.zeros((), bool),  # type: ignore[arg-type]
    )
    if plan.truncate:
        state = state._replace(restart_point=RestartPoint(zero, parameters, statistics))
    return Run(state, chains, {})


def _statistics_and_drift(parameters: Parameters, plan: Plan) -> tuple[Statistics, Array]:
    """Return statistics as iterations make them. It is only asked for shapes, and never run."""
    (d, p), n = parameters.A.shape, 32
    weight, sums = jnp.zeros(n, plan.dtype), jnp.zeros(d)
    block = Block(jnp.zeros((d, n), plan.dtype), weight, sums, sums, None, jnp.zeros(n))
    own = None if parameters.dof is None else RowWeights(weight, weight, weight)
    latent = parameters.prior.zeros(p, n, plan.dtype)
    statistics = collect(parameters.prior, latent, block, own)
    if plan.mixing is not None:
        count = jnp.ones(())
        draw = plan.mixing.draw(jax.random.key(0), statistics, parameters, count, plan.free_mean)
        statistics = statistics._replace(mixing=draw[1])
    return statistics, drift(statistics, parameters, plan.free_mean)


_statistics = jax.jit(_statistics_and_drift, static_argnames="plan")  # jit remembers the shapes


def keys_of_runs(key: Array, count: int) -> list[Array]:
    """Return the keys of several runs; the first has the key of a run that is alone."""
    if count == 1:
        return [key]
    return [key, *jax.random.split(jax.random.fold_in(key, 1), count - 1)]


def grouped(begun: list[Run], key: Array) -> list[Group]:
    """Put runs into groups, each of which advances in one compiled call.

    On the CPU four runs or more are made in two calls at the same time, since small arrays keep one
    core busy at best. This does not depend on the number of cores, since rounding may depend on the
    grouping. Both groups have the same number of runs, so that one compilation serves: the last run
    may be there twice.
    """
    count, keys = len(begun), keys_of_runs(key, len(begun))
    parts = [list(range(count))]
    if count >= 4 and platform() == "cpu":
        half = (count + 1) // 2
        parts = [list(range(half)), [*range(half, count), *(count % 2) * [count - 1]]]
    return [Group([begun[i] for i in part], [keys[i] for i in part]) for part in parts]


class Group:
    """Runs that advance in one compiled call, and what they recorded."""

    def __init__(self, begun: list[Run], keys: list[Array]) -> None:
        self.count = len(begun)
        self.keys = keys[0] if len(keys) == 1 else jnp.stack(keys)
        self.position = _stacked(begun)
        self._history: dict[str, np.ndarray] = {}
        self._done = 0
        past = begun[0].history
        if past:
            record = {name: np.stack([run.history[name] for run in begun]) for name in past}
            self._record(record, len(past["drift"]))

    def note(self, state: State, chains: Chain, traces: dict[str, Array], count: int) -> None:
        """Take note of where the runs stand after ``count`` iterations, and of these iterations."""
        self.position = (state, chains)
        record = {name: np.asarray(trace) for name, trace in traces.items()}
        if self.count == 1:
            record = {name: trace[None] for name, trace in record.items()}
        self._record(record, count)

    def _record(self, record: dict[str, np.ndarray], count: int) -> None:
        """Add the first ``count`` iterations of a record (runs, iterations, ...) to the history."""
        done = self._done
        for name, new in record.items():
            kept = self._history.get(name, new[:, :0])
            if done + count > kept.shape[1]:  # room for as many again: it is copied seldom
                room = np.empty((len(new), max(count, done), *new.shape[2:]), new.dtype)
                kept = np.concatenate([kept[:, :done], room], axis=1)
            kept[:, done : done + count] = new[:, :count]
            self._history[name] = kept
        self._done += count

    def runs(self) -> list[Run]:
        """Return the runs one by one."""

        def history(i: int) -> dict[str, np.ndarray]:
            return {name: values[i, : self._done] for name, values in self._history.items()}

        return [Run(*position, history(i)) for i, position in enumerate(self._positions())]

    def _positions(self) -> list[tuple[State, Chain]]:
        """Return the state and the chains of each run."""
        state, chains = self.position
        if self.count == 1:
            return [(state, chains)]
        t: Any = ()  # common to all runs
        stacked = jax.tree.map(np.asarray, (state._replace(t=t), chains))
        parts = [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(self.count)]
        return [(run_state._replace(t=state.t), run_chains) for run_state, run_chains in parts]


def _stacked(begun: list[Run]) -> tuple[State, Chain]:
    """Return the states and chains of several runs along a leading axis; t is common to all runs.

    Where there is one run, there is no such axis.
    """
    first = begun[0]
    if len(begun) == 1:
        return first.state, first.chains
    positions = [(run.state, run.chains) for run in begun]
    state, chains = jax.tree.map(lambda *leaves: np.stack(leaves), *positions)
    return state._replace(t=first.state.t), chains
