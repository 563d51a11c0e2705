"""Rows on the workers of a cluster: only parameters and sums move.

A Dask array is cut into partitions, which stay on the workers of ``dask.distributed``, with the
chains of their rows. In each iteration every worker is sent the parameters, sweeps its partitions
and answers with their sums. Sums are added in pairs of neighbours, pairs of pairs and so on, as
far as that goes on each worker, and then here: always the same pairs, so that the number of workers
does not change a fit. Where a worker is lost, its partitions are loaded again by others, and their
chains begin anew from the current parameters.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from noisyica._jax.allocation import keep_freed_memory
from noisyica._jax.arrays import to_numpy
from noisyica._jax.compiling import Compiled
from noisyica._jax.precision import double_precision
from noisyica.engine.state import Broadcast, Chain, Plan, Totals
from noisyica.engine.sweepers import InMemory
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import block_rows, device_blocks
from noisyica.rows.source import Rows

LOOK = 1.0
"""Seconds between two looks at whether the workers that are waited for are still there."""
PATIENCE = 60.0
"""Seconds to wait for an answer that a worker has, before looking whether the worker is there."""


Node = tuple[int, int]
"""A sum over partitions: the node of a binary tree, as :func:`_added` has it."""


class Scale(NamedTuple):
    """What a worker has to know of rows to standardise them."""

    centre: np.ndarray
    unit: float
    basis: Any
    dtype: str


class OnWorkers:
    """Rows of a Dask array that stay on the workers of a cluster.

    Chains are on the workers, too: what the loop has of them is the number of their run.
    """

    @property
    def in_memory(self) -> bool:
        """Whether the loop can be compiled around the rows."""
        return False

    def __init__(self, rows: Rows, dtype: str, client: Any) -> None:
        self._client, self._token = client, uuid.uuid4().hex
        self._rows, self._runs = rows, itertools.count()
        self._scale = Scale(rows.centre, rows.unit, rows.basis, dtype)
        array = rows.X.partitioned(block_rows())
        self._parts = array.to_delayed().ravel()
        ends = np.cumsum(array.chunks[0])
        self._spans = list(zip([0, *ends[:-1]], ends, strict=True))
        workers = self._workers()
        # neighbours stay together
        self._owner = {i: workers[i * len(workers) // len(ends)] for i in range(len(ends))}
        self._load(range(len(ends)))
        self.squares: np.ndarray = np.sum(self._each(_squares), 0)
        weakref.finalize(self, _forget_everywhere, client, self._token, workers)

    def numbers(self) -> np.ndarray:
        """Return the numbers of the rows in the order in which chains have them."""
        return np.concatenate(self._each(_numbers))

    def first_chains(self, plan: Plan, parameters: Parameters) -> Any:
        """Have chains made on the workers, and return the number of their run."""
        return self.joined(plan, parameters, None, None)

    def joined(self, plan: Plan, parameters: Parameters, chains: Any, before: Any) -> Any:
        """Return the number of a new run, whose chains begin with these parameters."""
        run = next(self._runs)
        self._each(_begin, run, plan, to_numpy(parameters))
        return np.asarray(run)

    def sweep(self, plan: Plan, sent: Broadcast, chains: Any) -> tuple[Any, Totals]:
        """Sweep all partitions; return the number of the run, and the sums over all rows."""
        message = sent._replace(key=jax.random.key_data(sent.key))
        message = jax.tree.map(np.asarray, message)
        nodes = self._nodes(_sweep, int(chains), plan, message, added=True)
        (totals,) = _added(nodes, len(self._owner)).values()
        return chains, totals

    def collected(self, chains: Any) -> Any:
        """Return the chains of all partitions, for a file."""
        return self._each(_chains, int(chains))

    def placed(self, chains: Any) -> Any:
        """Have chains from a file put on the workers; return the number of their run."""
        if isinstance(chains, (np.ndarray, int)):
            return chains
        run = next(self._runs)
        self._each(_place, run, each=chains)
        return np.asarray(run)

    # ------------------------------------------------------------------------------- the workers

    def _workers(self) -> list[str]:
        """Return the addresses of the workers, in a fixed order; wait until there is one."""
        self._client.wait_for_workers(1)
        return sorted(self._client.nthreads())

    def _load(self, numbers: Sequence[int]) -> None:
        """Have partitions loaded by their owners."""
        futures = {}
        for i in numbers:
            first, end = map(int, self._spans[i])
            weight = None
            if self._rows.weight is not None:
                weight = self._rows.relative_weight(first, end)
            owner = {"workers": [self._owner[i]]}
            # A preference only. The key of these rows is always the same, and while anybody holds
            # it, the scheduler keeps to what was first asked for: it would wait for a lost worker.
            rows = self._client.compute(self._parts[i], allow_other_workers=True, **owner)
            futures[i] = self._client.submit(
                _hold, self._token, i, rows, first, weight, self._scale, pure=False, **owner
            )
        self._wait(futures, retry=self._load)

    def _each(self, function: Callable[..., Any], *args: Any, each: Any = None) -> list[Any]:
        """Call ``function`` for each partition where it is held; return the answers in order."""
        answers = self._nodes(function, *args, each=each)
        return [answers[0, i] for i in self._owner]

    def _nodes(
        self, function: Callable[..., Any], *args: Any, each: Any = None, added: bool = False
    ) -> dict[Node, Any]:
        """Call ``function`` for each partition where it is held; return the answers.

        They are those of single partitions, or, where they are to be ``added``, the sums that
        workers could make of them.
        """
        answers: dict[Node, Any] = {}
        count = len(self._owner)
        left = list(self._owner)
        while left:
            by_worker: dict[str, list[int]] = {}
            for i in left:
                by_worker.setdefault(self._owner[i], []).append(i)
            futures = {}
            for address, numbers in by_worker.items():
                own = None if each is None else [each[i] for i in numbers]
                futures[tuple(numbers)] = self._client.submit(
                    _on_worker, function, self._token, numbers, args, own, added and count,
                    workers=[address], allow_other_workers=False, pure=False,
                )  # fmt: skip
            for result in self._wait(futures).values():
                answers |= result
            known = {i for level, k in answers for i in range(k << level, (k + 1) << level)}
            left = [i for i in self._owner if i not in known]
            if left:  # they were lost with their workers
                self._load(left)
        return answers

    def _wait(self, futures: dict[Any, Any], retry: Any = None) -> dict[Any, Any]:
        """Return the results of futures; those of workers that are lost are left out.

        What these held is given to others.
        """
        import distributed

        wait: Any = distributed.wait
        results: dict[Any, Any] = {}
        while futures:
            with contextlib.suppress(TimeoutError):
                wait(list(futures.values()), timeout=LOOK)
            alive = set(self._workers())
            for name, future in list(futures.items()):
                numbers = name if isinstance(name, tuple) else (name,)
                if future.status == "finished":
                    try:
                        results[name] = future.result(timeout=PATIENCE)
                    except TimeoutError:  # perhaps the worker was lost with it: look again
                        continue
                elif self._owner[numbers[0]] in alive:
                    if future.status == "error":
                        future.result()  # raises
                    continue
                else:
                    future.cancel()
                    for i in numbers:
                        others = sorted(alive)
                        self._owner[i] = others[i % len(others)]
                    if retry is not None:
                        retry(numbers)
                del futures[name]
        return results


# ------------------------------------------------------------------------------ what workers do


class Partition(NamedTuple):
    """Rows that a worker holds, and the chains of each run."""

    rows: InMemory
    first: int  # the number of the first row
    n: int
    chains: dict[int, Chain]


_HELD: dict[str, dict[int, Partition]] = {}
"""What this process holds, if it is a worker: partitions by the token of a fit and their number."""


@double_precision()
def _hold(token: str, i: int, X: Any, first: int, weight: Any, scale: Scale) -> None:
    """Hold a partition, whose rows are put into blocks."""
    keep_freed_memory()
    rows = Rows(np.asarray(X), weight)
    rows.total_weight = float(rows.n)  # the weights are relative to all rows already
    rows.centre, rows.unit, rows.basis = scale.centre, scale.unit, scale.basis
    blocks = device_blocks(rows, scale.dtype)
    blocks = blocks._replace(rows=blocks.rows + np.uint32(first))
    held = _HELD.setdefault(token, {})
    held[i] = Partition(InMemory(blocks), first, rows.n, {})


@double_precision()
def _on_worker(
    function: Callable[..., Any], token: str, numbers: list[int], args: Any, each: Any, count: int
) -> dict[Node, Any]:
    """Call a function for each of some partitions, and return the answers of those that have one.

    Those are partitions that this worker holds. If there is a ``count`` of all partitions, answers
    are sums, which are added as far as they are here.
    """
    held = _HELD.get(token, {})
    answers: dict[Node, Any] = {}
    for k, i in enumerate(numbers):
        own = () if each is None else (each[k],)
        if i in held and (answer := function(held[i], *args, *own)) is not None:
            answers[0, i] = answer
    return _added(answers, count) if count else answers


def _added(sums: dict[Node, Any], count: int) -> dict[Node, Any]:
    """Add sums of neighbouring partitions, of which there are ``count``, wherever both are known.

    The node (level, k) of the tree is the sum of the partitions from k 2^level to (k + 1) 2^level.
    """
    sums = dict(sums)
    level, size = 0, count  # the number of nodes of a level
    while size > 1:
        for k in sorted(k for known, k in sums if known == level):
            if k % 2 == 0 and k + 1 == size:  # it has no neighbour
                sums[level + 1, k // 2] = sums.pop((level, k))
            elif k % 2 == 0 and (level, k + 1) in sums:
                pair = sums.pop((level, k)), sums.pop((level, k + 1))
                sums[level + 1, k // 2] = jax.tree.map(np.add, *pair)
        level, size = level + 1, (size + 1) // 2
    return sums


def _squares(part: Partition) -> np.ndarray:
    return np.asarray(part.rows.blocks.sum_xx).sum(0)


def _numbers(part: Partition) -> np.ndarray:
    """Return the numbers of the rows; those that fill the last block up have none of their own."""
    numbers = part.rows.numbers().astype(np.int64)
    numbers[part.n :] = np.iinfo(np.int64).max
    return numbers


def _begin(part: Partition, run: int, plan: Plan, parameters: Parameters) -> bool:
    part.chains[run] = part.rows.first_chains(plan, parameters)
    return True


def _sweep(part: Partition, run: int, plan: Plan, message: Broadcast) -> Any:
    sent = message._replace(key=jax.random.wrap_key_data(message.key, impl="threefry2x32"))
    if run not in part.chains:  # the worker that had them was lost
        _begin(part, run, plan, sent.parameters)
    compiled = sweep_rows.compiled(sent.parameters.prior.compiles_fast)
    part.chains[run], totals = compiled(sent, part.rows, part.chains[run], plan)
    return jax.tree.map(np.asarray, totals)


def _chains(part: Partition, run: int) -> Any:
    return jax.tree.map(np.asarray, part.chains[run]) if run in part.chains else None


def _place(part: Partition, run: int, chains: Any) -> bool:
    part.chains[run] = chains
    return True


def _sweep_rows(sent: Broadcast, rows: InMemory, chains: Chain, plan: Plan) -> Any:
    return rows.sweep(plan, sent, chains)


sweep_rows = Compiled(_sweep_rows, ("plan",))


def _forget(token: str) -> None:
    _HELD.pop(token, None)


def _forget_everywhere(client: Any, token: str, workers: list[str]) -> None:
    """Have workers forget what they hold of a fit; they, and the client, may be gone already."""
    import distributed

    unwatched: Any = distributed.fire_and_forget
    if client.status != "running":
        return
    with contextlib.suppress(Exception):
        for address in workers:
            place = {"workers": [address], "allow_other_workers": False}
            unwatched(client.submit(_forget, token, pure=False, **place))
