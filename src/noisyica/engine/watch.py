"""The watch over the runs of a fit: progress, convergence, the callback and the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from noisyica import interruption
from noisyica.engine.checkpoint import Checkpoint
from noisyica.engine.convergence import Monitor
from noisyica.engine.growth import WINDOW
from noisyica.engine.restarts import best_run
from noisyica.engine.state import Run, drift_groups
from noisyica.engine.task import Task
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.units import in_units
from noisyica.progress import Reporter


class Watch:
    """A context manager around the loop that watches over the runs of a fit.

    It ends an interrupted loop without an error where something was learnt already, and leaves the
    checkpoint up to date.
    """

    def __init__(
        self,
        task: Task,
        max_iter: int,
        tol: float,
        verbose: bool,
        callback: Callable[[int, Parameters], bool | None] | None,
        file: Checkpoint | None,
    ) -> None:
        algorithm = task.plan.algorithm
        self._task, self._callback, self._file = task._replace(sample=None), callback, file
        self._tol = tol if algorithm.stops_by_itself else 0.0
        self._reporter = Reporter(f"noisyica {algorithm.name}", max_iter, verbose)
        self._max_iter = max_iter
        self.runs: list[Run] = []
        self.monitors: list[Monitor] = []
        self.left_behind: list[np.ndarray] = []  # A of runs that did not go on, in units of X
        self.interrupted = False

    def __enter__(self) -> Watch:
        self._reporter.__enter__()
        self._reporter.update(0, "looking for a start")
        return self

    def begin(
        self,
        runs: list[Run],
        monitors: list[Monitor] | None = None,
        left_behind: list[np.ndarray] | None = None,
    ) -> None:
        """Watch over these runs, which have just begun or go on from a checkpoint."""
        last = self._task.stages[-1]
        window = Monitor.WINDOW if last.first == 0 else WINDOW
        burn_in = last.constants.schedule.burn_in
        self.runs, self.left_behind = runs, left_behind or []
        self.monitors = monitors or [Monitor(burn_in, self._tol, window) for _ in runs]

    def current(self) -> list[Run]:
        """Return where the runs stand that go on.

        Where data have grown, the best of several runs alone goes on to all rows.
        """
        first = self._task.stages[-1].first
        if len(self.runs) > 1 and int(self.runs[0].state.t) == first > 0:
            self.narrow()
        return self.runs

    def narrow(self) -> None:
        """Leave all runs behind but the best."""
        best = best_run(self.runs, self._task.score)
        others = [run for i, run in enumerate(self.runs) if i != best]
        found = [self._task.in_units_of_x(run.state.estimate).A for run in others]
        self.left_behind += [np.asarray(A) for A in found]
        self.runs, self.monitors = [self.runs[best]], [self.monitors[best]]

    def at_rest(self) -> bool:
        """Return whether all runs have converged. Asking twice changes nothing."""
        looks = [
            monitor.converged(drift_groups(run))
            for monitor, run in zip(self.monitors, self.runs, strict=True)
            if run.history
        ]
        return len(looks) == len(self.runs) and all(looks)

    def take_note(self, runs: list[Run]) -> bool:
        """Take note of where the runs stand, and return whether they need not go on.

        Show progress, tell the callback, look for convergence and write the checkpoint; raise
        ValueError if all runs broke down.
        """
        interruption.answer(True)
        self.runs = runs
        self._check_alive()
        state = runs[0].state
        self._reporter.update(self._done(int(state.t)), self._note)
        told = False
        if self._callback is not None:
            parameters = self._task.in_units_of_x(state.estimate)
            told = bool(self._callback(int(state.t), parameters))
        if told | self.at_rest():  # both: the monitors have to see every look
            return True
        if self._file is not None:
            self._file.save(self._collected, self.monitors, self.left_behind)
        return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        where: TracebackType | None,
    ) -> bool:
        self._reporter.__exit__(kind, value, where)
        interruption.answer(False)
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        if kind is not None and not (interrupted and self.runs and self.runs[0].history):
            return False  # an error, or nothing was learnt yet
        self.at_rest()  # the monitors have to see the last look
        self.interrupted = interrupted or interruption.pressed()
        if self._file is not None:
            self._file.save(self._collected, self.monitors, self.left_behind, now=True)
        return True

    def _collected(self) -> list[Run]:
        return [self._task.collected(run) for run in self.runs]

    def _done(self, iteration: int) -> int:
        """Return how much of the work is done, in iterations: where data grow, the first are short.

        The time left is told from it.
        """
        stages = self._task.stages
        shares = [float(stage.constants.total_weight) for stage in stages]
        ends = [stage.first for stage in stages[1:]] + [self._max_iter]

        def work(until: int) -> float:
            spans = zip(stages, ends, shares, strict=True)
            return sum(share * max(min(end, until) - stage.first, 0) for stage, end, share in spans)

        return round(self._max_iter * work(iteration) / work(self._max_iter))

    def _note(self) -> str:
        """Return a text on the first run: the noise, and the prior's scalar parameters."""
        parameters = in_units(self.runs[0].state.estimate, 1 / self._task.rows.unit)
        shown: dict[str, Any] = {"noise variance": np.mean(parameters.sigma2)}
        if parameters.dof is not None:
            shown["degrees of freedom"] = parameters.dof
        shown |= {k: v for k, v in parameters.prior.parameters.items() if np.size(v) == 1}
        return ", ".join(f"{name} {np.asarray(value).item():.4g}" for name, value in shown.items())

    def _check_alive(self) -> None:
        """Raise ValueError if learning broke down in all runs."""
        ends = [
            run.history["noise_variance"][-1] + run.history["column_norms"][-1].sum()
            for run in self.runs
        ]
        if np.isfinite(ends).any():
            return
        dtype, p = self._task.plan.dtype, self._task.p
        other = ", or dtype='float64'" if dtype == "float32" else ""
        raise ValueError(
            f"Learning broke down before iteration {int(self.runs[0].state.t)}: {p} components are "
            f"more than these data determine with dtype={dtype!r}, and became copies of each "
            f"other. Take fewer components{other}."
        )
