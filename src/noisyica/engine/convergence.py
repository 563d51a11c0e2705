"""Convergence: when a run can stop, when it had converged, and whether runs agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment


class Monitor:
    """A stopping rule for SAEM: the summaries of its draws no longer drift.

    Successive parameters say nothing: SAEM's steps make them move less and less whether or not they
    have arrived. The numbers that summarise each iteration's draws alone
    (:func:`noisyica.engine.state.drift`) are a Markov chain about what they settle at. Over the
    latter part of the run since burn-in, the means of its two halves are compared in units of the
    chain's own standard deviation, which is that of the posterior. A steady drift gives 1.7 (half
    its length over its length / sqrt(12)), a chain at rest less than 1 unless its memory is as long
    as the window. A run has converged when this is below 1 at several looks one after the other:
    for each group of numbers, in the root mean square. The prior's own statistics and the noise are
    groups by themselves, since they are few beside those of the components, and may be the last to
    settle.
    """

    WINDOW = 100
    """The minimum number of iterations that are looked at, unless fewer are asked for.

    Looks are a quarter of it apart."""
    PATIENCE = 3
    """The number of looks one after the other at which nothing drifts."""

    def __init__(
        self,
        burn_in: int,
        tol: float,
        window: int = WINDOW,
        agreed: int = 0,
        seen: int = 0,
        done: bool = False,
    ) -> None:
        self.burn_in, self.tol, self.window, self.agreed = burn_in, tol, window, agreed
        self.seen, self.done = seen, done

    def converged(self, summaries: Sequence[np.ndarray]) -> bool:
        """Return whether a run has converged.

        ``summaries`` are groups of numbers, each of them (iterations, numbers).
        """
        now = len(summaries[0])
        new = min(now - self.burn_in - self.window, now - self.seen - self.window // 4)
        if self.tol == 0 or new < 0:
            return self.done
        half = max(self.window, (now - self.burn_in) * 2 // 3) // 2
        drifts = [self._drift(group[-2 * half :]) for group in summaries if group.size]
        self.agreed = self.agreed + 1 if max(drifts) < 1 else 0
        self.done = self.agreed >= self.PATIENCE
        self.seen = now
        return self.done

    def _drift(self, numbers: np.ndarray) -> float:
        """Return by how much the means of the two halves differ, in units of the deviation."""
        first, second = (part.mean(0) for part in np.split(numbers, 2))
        size = np.maximum(np.abs(first), np.abs(second))
        unit = numbers.std(0) + self.tol * size + 1e-300
        return float(np.sqrt(np.square((second - first) / unit).mean()))


def convergence_time(sketch: np.ndarray) -> int:
    """Return the paper's t_conv, the first iteration after which A stays close to where it ends.

    Close is within a thousandth of its first distance from there. ``sketch`` (iterations, k, p)
    holds projections of A on k random directions, whose size estimates that of A's changes.
    """
    distance = np.sqrt(np.square(sketch - sketch[-1]).sum((1, 2)))
    farthest = np.maximum.accumulate(distance[::-1])[::-1]
    return int(np.argmax(farthest <= farthest[0] / 1000)) + 1


def similarity(A: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """Return |cosine| of each column of A with its match in each other matrix, (others, p)."""
    cosines = [
        # a run that broke down has none
        np.abs(match(A, B)[0]) if np.isfinite(B).all() else np.full(A.shape[1], np.nan)
        for B in others
    ]
    return np.array(cosines).reshape(len(others), A.shape[1])


def match(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Match the columns of B to those of A, so that the sum of their absolute cosines is largest.

    Return the cosine of each column of A with its match, (p,), and the number of that column of B.
    """
    unit = A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    cosines = unit.T @ (B / np.maximum(np.linalg.norm(B, axis=0), 1e-300))
    rows, columns = linear_sum_assignment(-np.abs(cosines))
    return cosines[rows, columns], columns
