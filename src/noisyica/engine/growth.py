"""Growing data: burn-in on few rows, and only the last iterations on all of them.

Far from the maximum of the likelihood, the distance to it is much larger than what few rows leave
undetermined. So burn-in takes some rows, chosen at random. Then more rows join, and a few
iterations lead to what these say; all rows have the last word. As the data grow by a factor, the
distance to go shrinks by its root, and so does the number of iterations that is worth while.

Few rows would lead astray if they could not tell the components from noise: a component that is
lost among few rows does not come back when more join. By perturbation theory, m rows tell the
direction of a principal component of variance v + s, s that of the noise, to within the mean square
d s (v + s) / (m v^2). The first rows are so many that this is at most ``MOST_ANGLE`` for the
weakest of the p components, and ``PER_COMPONENT`` for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from noisyica.engine.algorithms import Algorithm
from noisyica.engine.state import Constants, Schedule
from noisyica.engine.sweepers import Sweeper
from noisyica.rows import starts

FACTOR = 4
"""By how much the rows grow from one stage to the next."""
ITERATIONS = (0.12, 0.06)
"""The iterations of the stages between the first and the last, in units of those of burn-in."""
SETTLING = 0.02
"""The iterations on all rows before the steps begin to fall, in the same units."""
LEAST_BURN_IN = 100
"""The minimum number of iterations of burn-in with which data grow."""
WINDOW = 40
"""The number of iterations on all rows that the stopping rule looks at, at least."""
MOST_ANGLE = 0.01
"""The maximum mean square error of the direction of the weakest component in the first stage."""
PER_COMPONENT = 50
"""The minimum number of rows per component in the first stage."""


class Stage(NamedTuple):
    """Iterations in which the same rows take part."""

    first: int  # the iteration with which the stage begins
    sweeper: Sweeper
    constants: Constants


def sizes(burn_in: int, algorithm: Algorithm, max_iter: int, count: int, first: float) -> list[int]:
    """Return the number of blocks that take part in each stage, ``count`` in the last.

    ``first`` is the number of blocks that the first stage needs. Where data do not grow, there is
    one stage.
    """
    growing: list[int] = []
    size = max(int(np.ceil(first)), 1) if np.isfinite(first) else count
    while 2 * size <= count:
        growing.append(size)
        size *= FACTOR
    begins = first_iterations(burn_in, len(growing) + 1)
    room = max_iter - begins[-1] - _settling(burn_in) >= 2 * WINDOW
    if burn_in < LEAST_BURN_IN or not room or not algorithm.stops_by_itself:
        return [count]
    return [*growing, count]


def first_iterations(burn_in: int, n_stages: int) -> list[int]:
    """Return the iteration with which each of the stages begins."""
    begins = [0]
    for i in range(n_stages - 1):
        share = 1.0 if i == 0 else ITERATIONS[min(i - 1, len(ITERATIONS) - 1)]
        begins.append(begins[-1] + round(share * burn_in))
    return begins


def growing_schedule(schedule: Schedule, begins: Sequence[int]) -> Schedule:
    """Return the schedule of a run whose stages begin with these iterations."""
    if len(begins) == 1:
        return schedule
    end = begins[-1] + _settling(schedule.burn_in)
    return schedule._replace(burn_in=end, coarse=schedule.burn_in)


def _settling(burn_in: int) -> int:
    return round(SETTLING * burn_in)


def rows_needed(sample: np.ndarray, p: int) -> float:
    """Return how many rows the first stage needs, by rows (n, d) without missing entries."""
    d = sample.shape[1]
    least = float(PER_COMPONENT * p)
    if p >= d:  # nothing is left by which the noise could be told
        return max(least, float(PER_COMPONENT * d))
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        variances = starts.principal(sample)[0]
    variances = np.append(variances, np.zeros(max(p + 1 - len(variances), 0)))
    noise = variances[p:].sum() / (d - p)
    signal = variances[p - 1] - noise
    if signal <= d * np.finfo(float).eps * variances[0]:  # there is none beyond rounding
        return np.inf
    return max(least, d * noise * (signal + noise) / (MOST_ANGLE * signal**2))


def order_of_rows(n: int, counts: Sequence[int], seed: int, every: bool) -> np.ndarray:
    """Return the numbers of n rows in the order in which they join.

    ``counts`` are the numbers of rows of the stages before the last. They are chosen at random, and
    sorted within each stage, since sorted rows are read faster. Unless ``every``, the rows that
    join in the last stage are left out.
    """
    most = counts[-1] if counts else 0
    chosen = np.random.default_rng(seed).choice(n, most, replace=False)
    parts = [np.sort(part) for part in np.split(chosen, counts[:-1])]
    if every:
        left = np.ones(n, bool)
        left[chosen] = False
        parts.append(np.flatnonzero(left))
    return np.concatenate(parts)


def constants_of(constants: Constants, schedule: Schedule, weight: float) -> Constants:
    """Return the constants of a stage whose rows have this share of the total weight."""
    return constants._replace(total_weight=constants.total_weight * weight, schedule=schedule)
