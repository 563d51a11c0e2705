"""How well the rows determine each component: the components of halves of the rows.

Runs from several starts on the same rows may agree on a component that another sample would not
show, and the information at the optimum describes its neighbourhood only. Here the rows are split
at random into two halves, and components are learnt from each: from the first half beginning with
what was learnt from all rows, and from the second half beginning with a start of its own, which
finds another optimum if there is one.

Let v be the variance of a component's direction, as the square of the tangent of its angle with the
truth, when it is learnt from all rows. The direction learnt from half of them has variance 2 v, and
that learnt from all rows is (to first order) the mean of those of the two halves: so it is at
variance v from each of them, which are at variance 4 v from each other. Hence the cosine of a
component with its match in a half is about what its cosine with the truth is, and so is the cosine
of the two halves' matches after the tangent is halved. The second comparison is between independent
rows; the lower of both is taken.
"""

from __future__ import annotations

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from noisyica.engine.loop import learn
from noisyica.engine.runs import begin
from noisyica.engine.starting import own_starts
from noisyica.engine.state import Schedule
from noisyica.engine.task import Task
from noisyica.posterior.parameters import Parameters
from noisyica.progress import Reporter
from noisyica.rows.block import block_rows
from noisyica.rows.starts import fill

RELIABLE = 0.9
"""The minimum reliability of a component that is called reliable."""
SPLITS = 2
"""The number of times that the rows are split into halves."""
ITERATIONS = 100
"""The number of iterations for each half."""
SHORTEST_FIT = 200
"""Fits with at most this ``max_iter`` are not checked: that would take longer than they do."""
_ROLE = 2**32 - 1
"""What the seed's key is folded with, which no iteration is."""


def reliability(task: Task, learnt: Parameters, A: np.ndarray, verbose: bool) -> np.ndarray:
    """Return the cosine that each column of A is expected to have with the truth, (k,).

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
    n = task.rows.n
    size = min(n // 2, block_rows())
    if size < 2:
        return np.full(A.shape[1], np.nan)
    rng = np.random.default_rng(int(jax.random.bits(jax.random.fold_in(task.key, _ROLE))))
    unit = _unit(A)
    with_all, with_each_other = [], []
    with Reporter("noisyica halves", 2 * SPLITS * ITERATIONS, verbose) as reporter:
        for split in range(SPLITS):
            chosen = rng.choice(n, 2 * size, replace=False)
            pair = []
            for half, rows in enumerate((chosen[:size], chosen[size:])):
                reporter.update((2 * split + half) * ITERATIONS, "learning from halves of the rows")
                start = None if half else learnt
                found = _learn_from(task, np.sort(rows), start, A, rng.integers(2**31))
                pair.append(_matched(unit, found))
            with_all += [_cosine(unit, match) for match in pair]
            with_each_other.append(_nearer(_cosine(*pair)))
    return np.minimum(np.mean(with_all, 0), np.mean(with_each_other, 0))


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
        sample[:, np.isnan(sample).all(0)] = 0.0  # the mean
        starts = own_starts(task._replace(sample=fill(sample), rng=rng))
        start = max(starts, key=lambda start: _cosine(_unit(A), _matched(_unit(A), start.A)).mean())
    begun = [begin(blocks, start, task.plan, constants)]
    *_, runs = learn(blocks, begun, jax.random.key(seed), task.plan, constants, ITERATIONS)
    return np.asarray(runs[0].state.estimate.A)


def _unit(A: np.ndarray) -> np.ndarray:
    """Return the columns of A scaled to length one; a column of zeros stays as it is."""
    A = np.asarray(A, float)
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=0), 1e-300))


def _matched(unit: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return for each unit column its match among the columns of B, scaled to length one.

    Where learning broke down, the matches are zeros, whose cosine with anything is zero.
    """
    if not np.isfinite(B).all():
        return np.zeros_like(unit)
    other = _unit(B)
    return np.asarray(other[:, linear_sum_assignment(-np.abs(unit.T @ other))[1]])


def _cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the absolute cosine of each unit column with the one at the same place."""
    return np.abs((first * second).sum(0))


def _nearer(cosine: np.ndarray) -> np.ndarray:
    """Return the cosines of the angles whose tangents are half of those of the given angles."""
    square = np.square(np.minimum(cosine, 1.0))
    return np.asarray(np.sqrt(square / (square + (1 - square) / 4)))
