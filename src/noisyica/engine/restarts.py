"""The choice between several starts, and between several runs, by the likelihood of some rows."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from noisyica.engine.algorithms import Saem
from noisyica.engine.convergence import similarity
from noisyica.engine.loop import learn
from noisyica.engine.runs import begin
from noisyica.engine.state import Constants, Plan, Run, Schedule, State
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import Block

Array = jax.Array
Score = Callable[[State], float]
"""A function that gives the mean log likelihood of some rows, up to a constant."""

SHORT_RUN = 60
"""The number of iterations of the short runs by which starts are compared."""


def best_start(
    blocks: Block,
    starts: list[Parameters],
    key: Array,
    plan: Plan,
    constants: Constants,
    score: Score,
) -> Parameters:
    """Return the start from which a short run on the rows of ``blocks`` has the best score.

    The runs go one after the other: what is compiled for them serves the fit, too.
    """
    if len(starts) == 1:
        return starts[0]
    schedule = Schedule(SHORT_RUN // 2, 0.75)
    constants = constants._replace(schedule=schedule)
    sampler = getattr(plan.algorithm, "sampler", "gibbs")
    plan = plan._replace(algorithm=Saem(sampler), truncate=False)
    scores = []
    for start, own_key in zip(starts, jax.random.split(key, len(starts)), strict=True):
        begun = [begin(blocks, start, plan, constants)]
        *_, runs = learn(blocks, begun, own_key, plan, constants, SHORT_RUN)
        scores.append(score(runs[0].state))
    return starts[int(np.nanargmax(scores))]


def best_run(runs: list[Run], score: Score) -> int:
    """Return the number of the run of greatest likelihood.

    The likelihood is computed once for runs that agree: it takes as long as a tenth of a run.
    """
    scores: list[float] = []
    for i, run in enumerate(runs):
        twins = (
            known
            for other, known in zip(runs[:i], scores, strict=True)
            if _agree(run.state.estimate, other.state.estimate)
        )
        twin = next(twins, None)
        scores.append(score(run.state) if twin is None else twin)
    return int(np.nanargmax(scores))


def _agree(first: Parameters, second: Parameters) -> bool:
    """Return whether two runs have the same noise and the same components, up to order and sign."""
    values = [np.asarray(value) for value in (first.A, second.A, first.sigma2, second.sigma2)]
    if not all(np.isfinite(value).all() for value in values):
        return False
    A, B, noise, second_noise = values
    close = np.abs(np.log(noise / second_noise)).max() < 0.01
    return bool(close) and bool(similarity(A, [B]).min() > 0.999)
