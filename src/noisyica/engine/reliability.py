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
of the variance are similar after any rotation. What determines a rotation is that coefficients are
not normal: with normal ones, of the same variances, all rotations are equally likely. So the rows'
log likelihood is compared with that under normal coefficients. Where there is nothing to be found,
the best of all rotations still gains about one nat per angle, of which there are p (p - 1) / 2.
With a gain of g nats per angle, the reliability is at most 1 - 1/g^2 of the way from the cosine
that rotations at random give to 1.
``benchmarks/reliability.py`` measures how good the result is.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from noisyica.engine.convergence import similarity
from noisyica.engine.growth import Stage
from noisyica.engine.loop import learn_stage
from noisyica.engine.runs import begin
from noisyica.engine.starting import own_starts
from noisyica.engine.state import Run, Schedule
from noisyica.engine.task import Task, on_host
from noisyica.laws import Normal
from noisyica.priors import Independent
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


def reliability(task: Task, run: Run, A: np.ndarray, verbose: bool) -> np.ndarray:
    """Return the absolute cosine that each column of A is expected to have with the truth, (k,).

    Halves of the rows have one block of them at most. For larger data they are less than halves,
    and the truth is nearer than they say.

    Parameters
    ----------
    task : Task
    run : Run
        The run that learnt from all rows.
    A : array (d, k)
        The components that are kept of it, in any order and with any signs and units.
    verbose : bool
        Whether to show progress on a terminal when it takes more than a second.
    """
    n, k = task.rows.n, A.shape[1]
    A = task.rows.to_basis(A.T).T
    size = min(n // 2, block_rows())
    if size < 2:
        return np.full(k, np.nan)
    rng = np.random.default_rng(int(jax.random.bits(jax.random.fold_in(task.key, _ROLE))))
    unit, most = _unit(A), np.ones(k)
    if 1 < k <= len(A):  # otherwise no rotation leaves the covariance as it is
        by_chance = _chance(A, rng)
        most = by_chance + (1 - by_chance) * _determined(
            gain(task, run, verbose) / (k * (k - 1) / 2)
        )
    cosines: list[np.ndarray] = []
    with Reporter("noisyica halves", SPLITS, verbose) as reporter:
        for split in range(SPLITS):
            reporter.update(split, "learning from halves of the rows")
            chosen = rng.choice(n, 2 * size, replace=False)
            for rows in (chosen[:size], chosen[size:]):
                B = _learn_from(task, np.sort(rows), A, int(rng.integers(2**31)))
                cosines.append(_cosines(unit, B))
            stated = np.minimum(np.mean(cosines, 0), most)
            if stated.min() >= ENOUGH:
                break
    return np.asarray(stated)


def gain(task: Task, run: Run, verbose: bool) -> float:
    """Return by how many nats all rows are likelier than if coefficients were normal.

    If only some rows are looked at, one standard error is subtracted. If there is no fast way to
    the likelihood, or a law of A's entries determines rotations, too, the gain is infinite.
    """
    learnt: Any = on_host(run.state.estimate)
    A, prior, n_scored = learnt.A, learnt.prior, len(task.scored)
    of_mixing = task.plan.mixing is not None and not task.plan.mixing.normal
    if task.scoring_method(prior) == "annealed" or of_mixing:
        return np.inf
    normal: Any = Independent(Normal())
    if prior.has_offset:
        normal = prior.around(normal)
    of_normal = learnt._replace(
        A=A * np.sqrt(prior.variance()), mean=learnt.mean + A.sum(1) * prior.mean(), prior=normal
    )
    gains = task.log_likelihood(learnt, verbose=verbose)
    gains = gains - task.log_likelihood(of_normal, verbose=verbose)
    left_out = max(1 - n_scored / task.rows.n, 0.0)
    error = gains.std() * np.sqrt(left_out / n_scored)
    return float(task.rows.total_weight * (gains.mean() - error))


def _determined(gain_per_angle: float) -> float:
    """Return how far rotations are determined, between 0 and 1."""
    return 1 - 1 / gain_per_angle**2 if gain_per_angle > 1 else 0.0


def _chance(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the mean cosines (k,) of the columns of A with their matches in random rotations."""
    k = A.shape[1]
    A = np.linalg.qr(A)[1]  # has the same angles, in k dimensions
    turns = (
        np.linalg.qr(rng.normal(size=(k, k)))[0] for _ in range(int(np.clip(4000 // k, 8, 400)))
    )
    return np.asarray(np.mean([_cosines(_unit(A), A @ turn) for turn in turns], 0))


def _unit(A: np.ndarray) -> np.ndarray:
    """Return the columns of A scaled to length one; a column of zeros stays as it is."""
    return np.asarray(A / np.maximum(np.linalg.norm(A, axis=0), 1e-300))


def _cosines(unit: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the absolute cosine of each unit column with its match among the columns of B.

    Where learning broke down, it is zero.
    """
    if not np.isfinite(B).all():
        return np.zeros(unit.shape[1])
    cosines = np.abs(unit.T @ _unit(B))
    return np.asarray(cosines[linear_sum_assignment(-cosines)])


def _learn_from(task: Task, rows: np.ndarray, A: np.ndarray, seed: int) -> np.ndarray:
    """Return the mixing matrix that is learnt from some of the rows.

    Of the starts that the prior proposes for these rows, that which is most similar to A is taken.
    """
    part, share = task.part(rows)
    old = task.constants
    schedule = Schedule(ITERATIONS // 2, old.schedule.kappa, old.schedule.draws, ITERATIONS)
    constants = old._replace(total_weight=old.total_weight * share, schedule=schedule)
    rng = np.random.RandomState(seed)
    sample = task.rows.chosen(task.rows.drawn_by_weight(rows, rng))
    sample[:, np.isnan(sample).all(0)] = 0.0  # nothing is observed: the mean is as good as any
    starts = own_starts(task._replace(sample=fill(sample), rng=rng))
    start = max(starts, key=lambda start: similarity(A, [np.asarray(start.A)]).mean())
    begun = [begin(part, start, task.plan, constants)]
    stage = Stage(0, part, constants)
    *_, runs = learn_stage(stage, begun, jax.random.key(seed), task.plan, ITERATIONS)
    return np.asarray(runs[0].state.estimate.A)


def doubtful(values: np.ndarray) -> np.ndarray:
    """Return the numbers of the components of these reliabilities that are doubtful."""
    return np.flatnonzero(~(values >= DOUBTFUL))


def warning(values: np.ndarray) -> str:
    """Return what to warn of with these reliabilities, or nothing if no component is doubtful."""
    poor = doubtful(values)
    if not poor.size:
        return ""
    return (
        f"{poor.size} of {len(values)} components are doubtful ({listed(poor)}): their "
        f"reliability_ is below {DOUBTFUL:g}. Other rows would probably show other components, "
        "because halves of these rows do, or because coefficients are nearly normal. More rows, "
        "fewer components or another prior may help; n_init=1 leaves this check out."
    )


def listed(numbers: np.ndarray) -> str:
    """Return the numbers as a text, the first ten of them at most."""
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")


def share_in_words(values: np.ndarray) -> tuple[str, str]:
    """Return how many components are reliable, and which are doubtful, as two texts."""
    poor = doubtful(values)
    count = f"{(values >= RELIABLE).sum()} of {len(values)}"
    return count, f"doubtful: {listed(poor)}" if poor.size else "none is doubtful"
