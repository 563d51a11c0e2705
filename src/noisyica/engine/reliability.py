"""How well the rows determine each component: a comparison with components of half of the rows.

Runs from several starts on the same rows may agree on components that other rows would not show;
and the information about A at the optimum describes its neighbourhood only, which is misleading
where the coefficients are nearly normal. Here the rows are split at random into two halves, several
times, and components are learnt from each half, from a start of its own.

The mean cosine of a component with its matches in the halves estimates its cosine with the truth.
For let v be the variance of its direction when it is learnt from all rows. Learnt from half of
them, it has variance 2 v; and to first order what is learnt from all rows is the mean of what is
learnt from the two halves, so that it differs from each of them by the variance v, as it does from
the truth.

Where the rows hardly determine how the components are rotated, this is too much: the components of
all rows are those of their halves in part, whatever the truth is, and components that explain much
of the variance are similar after any rotation. So the two halves of a split, which have no row in
common, are compared, too, in the coordinates of the coefficients. By how much they agree better
than rotations at random would (and one standard error of that), on average over the components, is
a number between 0 and 1. The reliability is at most that much of the way from the cosine that
rotations at random give to 1.
``benchmarks/reliability.py`` measures how good the result is.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from noisyica.engine.convergence import similarity
from noisyica.engine.loop import learn
from noisyica.engine.runs import begin
from noisyica.engine.starting import own_starts
from noisyica.engine.state import Schedule
from noisyica.engine.task import Task
from noisyica.progress import Reporter
from noisyica.rows.block import block_rows
from noisyica.rows.starts import fill

RELIABLE = 0.96
"""The minimum reliability of a component that is called reliable."""
DOUBTFUL = 0.8
"""The reliability below which a component is called doubtful, and ``fit`` warns of it."""
SPLITS = 4
"""The maximum number of times that the rows are split into halves."""
ENOUGH = 0.97
"""No further split is looked at when the reliabilities of all components are at least this."""
ITERATIONS = 200
"""The number of iterations for each half: with fewer, well-determined components seem doubtful."""
SHORTEST_FIT = 200
"""Fits with at most this ``max_iter`` are not checked: that would take longer than they do."""
_ROLE = 2**32 - 1
"""What the seed's key is folded with, which no iteration is."""


class Chance(NamedTuple):
    """How similar to the components rotations of them at random are."""

    cosines: np.ndarray  # (k,), their mean
    agreement: float  # of two such rotations, its mean
    deviation: float  # its standard deviation


def reliability(task: Task, A: np.ndarray, verbose: bool) -> np.ndarray:
    """Return the absolute cosine that each column of A is expected to have with the truth, (k,).

    Halves of the rows have one block of them at most. For larger data they are less than halves,
    and the truth is nearer than they say.

    Parameters
    ----------
    task : Task
    A : array (d, k)
        The components that were learnt from all rows, in any order and with any signs and units.
    verbose : bool
        Whether to show progress on a terminal when it takes more than a second.
    """
    n, k = task.rows.n, A.shape[1]
    size = min(n // 2, block_rows())
    if size < 2:
        return np.full(k, np.nan)
    rng = np.random.default_rng(int(jax.random.bits(jax.random.fold_in(task.key, _ROLE))))
    unit, inverse = _unit(A), np.linalg.pinv(A)
    chance = _chance(A, rng) if 1 < k <= len(A) else None  # else, no rotation keeps the covariance
    cosines, agreement = [], []
    with Reporter("noisyica halves", SPLITS, verbose) as reporter:
        for split in range(SPLITS):
            reporter.update(split, "learning from halves of the rows")
            chosen = rng.choice(n, 2 * size, replace=False)
            pair = [
                _matched(unit, _learn_from(task, np.sort(rows), A, int(rng.integers(2**31))))
                for rows in (chosen[:size], chosen[size:])
            ]
            cosines += [_cosine(unit, match) for match in pair]
            agreement.append(_agreement(inverse, *pair))
            stated = _beyond_chance(np.mean(cosines, 0), agreement, chance)
            if stated.min() >= ENOUGH:
                break
    return stated


def _beyond_chance(mean: np.ndarray, agreement: list[float], chance: Chance | None) -> np.ndarray:
    """Return mean cosines, at most as far from chance as the two halves of the splits agree."""
    if chance is None:
        return mean
    high = min(chance.agreement + chance.deviation / np.sqrt(len(agreement)), 0.999)
    excess = np.clip((np.mean(agreement) - high) / (1 - high), 0, 1)
    return np.asarray(np.minimum(mean, chance.cosines + (1 - chance.cosines) * excess))


def _agreement(inverse: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return how well the matches in two halves agree, on average over the components.

    Their angles are those in the coordinates of the coefficients, in which the columns of A are
    orthogonal; ``inverse`` is A's pseudo-inverse. The two halves are at the variance 4 v from each
    other, so tangents are halved.
    """
    square = np.square(np.minimum(_cosine(_unit(inverse @ first), _unit(inverse @ second)), 1.0))
    return float(np.sqrt(square / (square + (1 - square) / 4)).mean())


def _chance(A: np.ndarray, rng: np.random.Generator) -> Chance:
    """Return what random rotations of A would give."""
    k = A.shape[1]
    A = np.linalg.qr(A)[1]  # has the same angles, in k dimensions
    unit, inverse = _unit(A), np.linalg.pinv(A)
    cosines, agreement = [], []
    for _ in range(int(np.clip(2000 // k, 4, 200))):
        turns = [np.linalg.qr(rng.normal(size=(k, k)))[0] for _ in range(2)]
        pair = [_matched(unit, A @ turn) for turn in turns]
        cosines += [_cosine(unit, match) for match in pair]
        agreement.append(_agreement(inverse, *pair))
    return Chance(np.mean(cosines, 0), float(np.mean(agreement)), float(np.std(agreement)))


def _unit(A: np.ndarray) -> np.ndarray:
    """Return the columns of A scaled to length one; a column of zeros stays as it is."""
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


def _learn_from(task: Task, rows: np.ndarray, A: np.ndarray, seed: int) -> np.ndarray:
    """Return the mixing matrix that is learnt from some of the rows.

    Of the starts that the prior proposes for these rows, that which is most similar to A is taken.
    """
    blocks, share = task.part(rows)
    old = task.constants
    schedule = Schedule(ITERATIONS // 2, old.schedule.kappa, old.schedule.draws, ITERATIONS)
    constants = old._replace(total_weight=old.total_weight * share, schedule=schedule)
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


def share_in_words(values: np.ndarray) -> tuple[str, str]:
    """Return how many components are reliable, and which are doubtful, as two texts."""
    poor = doubtful(values)
    count = f"{(values >= RELIABLE).sum()} of {len(values)}"
    return count, f"doubtful: {listed(poor)}" if poor.size else "none is doubtful"
