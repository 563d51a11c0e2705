"""The choice between several starts, and between several runs, by the likelihood of some rows."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from noisyica.engine.algorithms import Saem
from noisyica.engine.convergence import similarity
from noisyica.engine.growth import Stage
from noisyica.engine.loop import learn_stage
from noisyica.engine.runs import begin
from noisyica.engine.state import Constants, Plan, Run, Schedule, State
from noisyica.engine.sweepers import InMemory
from noisyica.posterior.parameters import Parameters

Array = jax.Array
Score = Callable[[State], float]
"""A function that gives the mean log likelihood of some rows, up to a constant."""

SHORT_RUN = 60
"""The number of iterations of the short runs by which starts are compared."""

SAME_WAY = 0.98
"""The cosine of all components from which on short runs are on their way to the same place."""

SAME_PLACE = 0.999
"""The same for runs that have ended there. Their noise variances agree to a hundredth, too."""


def best_start(
    rows: InMemory,
    starts: list[Parameters],
    key: Array,
    plan: Plan,
    constants: Constants,
    score: Score,
) -> Parameters:
    """Return the start from which a short run on some rows has the best score.

    The runs go one after the other: what is compiled for them serves the fit, too. Where all of
    them lead the same way, no score is computed, and it is the first start: but not with a law of A
    that has zeros, which tells more of the starts than their directions do.
    """
    if len(starts) == 1:
        return starts[0]
    schedule = Schedule(SHORT_RUN // 2, 0.75)
    constants = constants._replace(schedule=schedule)
    sampler = getattr(plan.algorithm, "sampler", "gibbs")
    plan = plan._replace(algorithm=Saem(sampler), truncate=False)
    ends = []
    for start, own_key in zip(starts, jax.random.split(key, len(starts)), strict=True):
        begun = [begin(rows, start, plan, constants)]
        *_, runs = learn_stage(Stage(0, rows, constants), begun, own_key, plan, SHORT_RUN)
        ends.append(runs[0].state)
    smooth = plan.mixing is None or plan.mixing.smooth
    return starts[_best(ends, score, lambda a, b: smooth and _same_components(a, b, SAME_WAY))]


def best_run(runs: list[Run], score: Score) -> int:
    """Return the number of the run of greatest likelihood."""
    return _best([run.state for run in runs], score, _agree)


def _best(
    states: list[State], score: Score, agree: Callable[[Parameters, Parameters], bool]
) -> int:
    """Return the number of the state of the best score, the first of those that agree.

    The score is computed once for states that agree, and not at all where all agree: it takes as
    long as a tenth of a run, and some seconds to compile.
    """
    estimates = [state.estimate for state in states]
    twins = [
        next((j for j in range(i) if agree(estimates[j], estimate)), i)
        for i, estimate in enumerate(estimates)
    ]
    different = sorted(set(twins))
    if len(different) == 1:
        return different[0]
    return different[int(np.nanargmax([score(states[i]) for i in different]))]


def _agree(first: Parameters, second: Parameters) -> bool:
    """Return whether two runs have the same noise and the same components, up to order and sign."""
    if not _same_components(first, second, SAME_PLACE):
        return False
    return bool(np.abs(np.log(np.asarray(first.sigma2) / np.asarray(second.sigma2))).max() < 0.01)


def _same_components(first: Parameters, second: Parameters, least: float) -> bool:
    """Return whether all components of two runs, which broke down in none, have this cosine."""
    values = [np.asarray(value) for value in (first.A, second.A, first.sigma2, second.sigma2)]
    finite = all(np.isfinite(value).all() for value in values)
    return finite and bool(similarity(values[0], [values[1]]).min() > least)
