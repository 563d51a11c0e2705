"""How well the rows determine each component: a comparison with components of half of the rows.

Runs from several starts on the same rows may agree on components that other rows would not show;
and the information about A at the optimum describes its neighbourhood only, which is misleading
where the coefficients are nearly normal. Here the rows are split at random into two halves, several
times, and components are learnt from each half: from the first half beginning with what was learnt
from all rows, and from the second with a start of its own, which finds another optimum if there is
one.

The mean cosine of a component with its matches in the halves estimates its cosine with the truth.
For let v be the variance of its direction when it is learnt from all rows. Learnt from half of
them, it has variance 2 v; and to first order what is learnt from all rows is the mean of what is
learnt from the two halves, so that it differs from each of them by the variance v, as it does from
the truth. Further from this limit the halves that begin with what was learnt from all rows agree
with it too well, and those with a start of their own too little; ``benchmarks/reliability.py``
measures what is left of both.
"""

from __future__ import annotations

import jax
import numpy as np

from noisyica.engine.convergence import similarity
from noisyica.engine.loop import learn
from noisyica.engine.runs import begin
from noisyica.engine.starting import own_starts
from noisyica.engine.state import Schedule
from noisyica.engine.task import Task
from noisyica.posterior.parameters import Parameters
from noisyica.progress import Reporter
from noisyica.rows.block import block_rows
from noisyica.rows.starts import fill

RELIABLE = 0.95
"""The minimum reliability of a component that is called reliable."""
DOUBTFUL = 0.9
"""The reliability below which a component is called doubtful, and ``fit`` warns of it."""
SPLITS = 4
"""The number of times that the rows are split into halves."""
ITERATIONS = 50
"""The number of iterations for each half."""
SHORTEST_FIT = 200
"""Fits with at most this ``max_iter`` are not checked: that would take longer than they do."""
_ROLE = 2**32 - 1
"""What the seed's key is folded with, which no iteration is."""


def reliability(task: Task, learnt: Parameters, A: np.ndarray, verbose: bool) -> np.ndarray:
    """Return the absolute cosine that each column of A is expected to have with the truth, (k,).

    Halves of the rows have one block of them at most. For larger data they are less than halves,
    and the truth is nearer than they say.

    Parameters
    ----------
    task : Task
    learnt : Parameters
        What was learnt from all rows, in the units of the task.
    A : array (d, k)
        Those columns of its A that are reported, in any order and with any signs and units.
    verbose : bool
        Whether to show progress on a terminal when it takes more than a second.
    """
    n, k = task.rows.n, A.shape[1]
    size = min(n // 2, block_rows())
    if size < 2:
        return np.full(k, np.nan)
    rng = np.random.default_rng(int(jax.random.bits(jax.random.fold_in(task.key, _ROLE))))
    cosines: list[np.ndarray] = []
    with Reporter("noisyica halves", 2 * SPLITS * ITERATIONS, verbose) as reporter:
        for _ in range(SPLITS):
            chosen = rng.choice(n, 2 * size, replace=False)
            for rows, start in ((chosen[:size], learnt), (chosen[size:], None)):
                reporter.update(len(cosines) * ITERATIONS, "learning from halves of the rows")
                B = _learn_from(task, np.sort(rows), start, A, int(rng.integers(2**31)))
                cosines.append(np.nan_to_num(similarity(A, [B])[0]))  # NaN: learning broke down
    return np.asarray(np.mean(cosines, 0))


def _learn_from(
    task: Task, rows: np.ndarray, start: Parameters | None, A: np.ndarray, seed: int
) -> np.ndarray:
    """Return the mixing matrix that is learnt from some of the rows.

    Without a ``start``, that of the rows' own starts which is most similar to A is taken.
    """
    blocks, share = task.part(rows)
    old = task.constants
    schedule = Schedule(ITERATIONS // 2, old.schedule.kappa, old.schedule.draws, ITERATIONS)
    constants = old._replace(total_weight=old.total_weight * share, schedule=schedule)
    if start is None:
        rng = np.random.RandomState(seed)
        sample = task.rows.chosen(task.rows.drawn_by_weight(rows, rng))
        sample[:, np.isnan(sample).all(0)] = 0.0  # nothing is observed: the mean is as good as any
        starts = own_starts(task._replace(sample=fill(sample), rng=rng))
        start = max(starts, key=lambda start: similarity(A, [np.asarray(start.A)]).mean())
    begun = [begin(blocks, start, task.plan, constants)]
    *_, runs = learn(blocks, begun, jax.random.key(seed), task.plan, constants, ITERATIONS)
    return np.asarray(runs[0].state.estimate.A)


def doubtful(values: np.ndarray) -> np.ndarray:
    """Return the numbers of the components of these reliabilities that are doubtful."""
    return np.flatnonzero(~(values >= DOUBTFUL))


def listed(numbers: np.ndarray) -> str:
    """Return the numbers as a text, the first ten of them at most."""
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")


def in_words(values: np.ndarray) -> tuple[str, str]:
    """Return how many components are reliable, and which are doubtful, as two texts."""
    poor = doubtful(values)
    count = f"{(values >= RELIABLE).sum()} of {len(values)}"
    return count, f"doubtful: {listed(poor)}" if poor.size else "none is doubtful"
