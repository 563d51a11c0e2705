"""What a user should know of a fit that cannot be read from its numbers alone."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import jax
import numpy as np

from noisyica.engine.mstep import least_noise
from noisyica.engine.state import Run
from noisyica.engine.task import LEAST_AT_MODE, LEAST_COLUMN, LEAST_OWN_NOISE, Task

_LOST = float(np.sqrt(LEAST_COLUMN / LEAST_OWN_NOISE))
NAMED = 5
"""The maximum number of columns that are named."""
_least_noise = jax.jit(least_noise, static_argnames="plan")


def doubts(task: Task, run: Run, kept: int, names: Any) -> list[str]:
    """Return what is doubtful about a fit, as texts.

    ``kept`` is the number of components of the result; ``names`` are those of the columns, or None.
    """
    n = task.rows.n
    said = [_noise_at_its_floor(task, run, names)]
    lost = _lost(task)
    if task.plan.diagonal and lost.any():
        said.append(
            f"{_columns(lost, names)} are less than {_LOST:.0g} times as large as the others: "
            "nothing can be learnt about them. Bring the columns to one scale."
        )
    if kept > n:
        said.append(
            f"{kept} components are more than {n} rows can determine: they depend mostly on the "
            "prior and the start. Use fewer components, or n_components='auto'."
        )
    own_noise = task.with_own_noise if task.rows.basis is None else None  # Smooth refuses it
    if own_noise is not None and kept > own_noise:
        said.append(
            f"{kept} components were found with equal noise in all columns, but with a noise "
            f"variance for each column there would be about {own_noise}, and that model fits "
            "better (by the BIC of normal components): many components may describe the noise of "
            "single columns. Use noise='diagonal', or bring the columns to one scale."
        )
    return [text for text in said if text]


def _noise_at_its_floor(task: Task, run: Run, names: Any) -> str:
    """Return what to say where the noise variance has run to its floor, or nothing."""
    sigma2 = np.asarray(run.state.parameters.sigma2)
    floor = task.constants.floor
    if task.plan.diagonal:
        floor = np.asarray(_least_noise(sigma2, task.plan, floor))
    met = sigma2 <= floor * (1 + 1e-9)
    if task.plan.diagonal:
        squares = task.squares
        met &= (squares > 0) & ~_lost(task)
        if not met.any():
            return ""
        return (
            f"The noise variance of {_columns(met, names)} ran to zero, and was held at "
            f"{LEAST_OWN_NOISE:g} of the column's own: either a component explains such a column "
            "completely (a Heywood case), or the column has hardly any noise. Use fewer "
            "components, or noise='isotropic'."
        )
    if met.all() and task.plan.algorithm.at_mode and task.p > task.rows.d:
        return (
            f"The noise variance ran to zero, and was held at {LEAST_AT_MODE:g} of the mean "
            f"square of X: at their mode, {task.p} components fit any row of {task.rows.d} "
            "columns exactly. Use algorithm='saem', or fewer components."
        )
    return ""


def _lost(task: Task) -> np.ndarray:
    """Return which columns vary, but too little beside the others to learn anything of them."""
    squares = task.squares / task.summary.observed
    return (squares > 0) & (squares < LEAST_COLUMN / LEAST_OWN_NOISE * squares.mean())


def _columns(which: np.ndarray, names: Any) -> str:
    """Return a text that says how many columns, and names the first of them."""
    numbers = np.flatnonzero(which)
    named = [str(i) if names is None else repr(str(names[i])) for i in numbers[:NAMED]]
    more = "" if numbers.size <= NAMED else f" and {numbers.size - NAMED} more"
    return f"{numbers.size} of {which.size} columns ({', '.join(named)}{more})"


def in_cross_validation() -> bool:
    """Return whether one of scikit-learn's searches or cross-validations called this fit.

    They fit many times, only to score what was learnt, and Python does not merge equal warnings
    there. The best settings of a search are fitted once more at its end, and that fit is kept: it
    does not count as one of these.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "sklearn.model_selection._validation":
            return True
        frame = frame.f_back
    return False
