"""The paper's SAEM as it is written there, in plain NumPy: what the library's speed is measured against.

Hidden variables are moved one component after the other by Metropolis steps with proposals from the prior (the paper's Section 3.3),
vectorised over rows; then come the sufficient statistics, their stochastic approximation, and the M-step of the appendix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

State = dict[str, Any]


class Sampler(NamedTuple):
    """A prior: its parameters, draws of the hidden variables of one component, and the statistics and M-step of its parameters."""

    start: State
    propose: Callable[
        [np.random.Generator, int, State], dict[str, np.ndarray]
    ]  # "beta", and others where needed
    statistics: Callable[[dict[str, np.ndarray]], np.ndarray]
    maximise: Callable[[np.ndarray], State]


def _logistic(rng: np.random.Generator, n: int, _: State) -> dict[str, np.ndarray]:
    return {"beta": rng.logistic(scale=0.5, size=n)}


def _censored(rng: np.random.Generator, n: int, state: State) -> dict[str, np.ndarray]:
    on = rng.random(n) < state["alpha"]
    return {"beta": on * rng.normal(size=n), "on": on}


def _mixture(rng: np.random.Generator, n: int, state: State) -> dict[str, np.ndarray]:
    outer = rng.random(n) < state["weight"]
    sign = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return {
        "beta": rng.normal(size=n) + outer * sign * state["centre"],
        "outer": outer,
        "sign": sign,
    }


def _mixture_statistics(hidden: dict[str, np.ndarray]) -> np.ndarray:
    return np.array(
        [hidden["outer"].mean(), (hidden["outer"] * hidden["sign"] * hidden["beta"]).mean()]
    )


SAMPLERS = {
    "log": Sampler({}, _logistic, lambda hidden: np.zeros(1), lambda s: {}),
    "bg": Sampler(
        {"alpha": 0.5},
        _censored,
        lambda h: np.array([h["on"].mean()]),
        lambda s: {"alpha": float(s[0].clip(0.01, 0.99))},
    ),
    "ifa": Sampler(
        {"weight": 0.5, "centre": 2.0},
        _mixture,
        _mixture_statistics,
        lambda s: {"weight": float(s[0].clip(0.01, 0.99)), "centre": float(s[1] / max(s[0], 1e-6))},
    ),
}


def saem(
    X: np.ndarray, A: np.ndarray, prior: str, iterations: int, seed: int
) -> tuple[np.ndarray, float]:
    """A (d, p) and the noise variance after so many iterations from a start; the step is 1 in the first half, then (t - t0)^-0.9."""
    rng, sampler = np.random.default_rng(seed), SAMPLERS[prior]
    (n, d), p = X.shape, A.shape[1]
    state, mean, sigma2 = dict(sampler.start), X.mean(0), float(X.var())
    parts = [sampler.propose(rng, n, state) for _ in range(p)]
    hidden = {name: np.stack([part[name] for part in parts], 1) for name in parts[0]}
    averages: list[np.ndarray] = []
    for t in range(iterations):
        _sweep(rng, sampler, state, hidden, X - mean - hidden["beta"] @ A.T, A, sigma2)
        beta = np.column_stack([np.ones(n), hidden["beta"]])
        now = [beta.T @ beta / n, X.T @ beta / n, sampler.statistics(hidden)]
        step = 1.0 if t <= iterations // 2 else (t - iterations // 2) ** -0.9
        averages = [old + step * (new - old) for old, new in zip(averages or now, now, strict=True)]
        both = np.linalg.solve(averages[0], averages[1].T).T
        sigma2 = float(
            (
                np.square(X).sum() / n
                - 2 * (both * averages[1]).sum()
                + ((both.T @ both) * averages[0]).sum()
            )
            / d
        )
        mean, A, state = both[:, 0], both[:, 1:], sampler.maximise(averages[2])
    return A, sigma2


def _sweep(
    rng: np.random.Generator,
    sampler: Sampler,
    state: State,
    hidden: dict[str, np.ndarray],
    residual: np.ndarray,
    A: np.ndarray,
    sigma2: float,
) -> None:
    n = len(residual)
    for j in range(A.shape[1]):
        proposed = sampler.propose(rng, n, state)
        moved = residual - np.outer(proposed["beta"] - hidden["beta"][:, j], A[:, j])
        log_ratio = (np.square(residual).sum(1) - np.square(moved).sum(1)) / (2 * sigma2)
        accepted = np.log(rng.random(n)) < log_ratio
        for name, values in proposed.items():
            hidden[name][accepted, j] = values[accepted]
        residual[accepted] = moved[accepted]
