"""The algorithms as values: their expectation, their steps, and the moves of the coefficients.

Examples
--------
>>> from noisyica.engine import algorithms
>>> algorithms.get("saem")
Saem(sampler='gibbs')
"""

from __future__ import annotations

from typing import Any

from noisyica.engine.algorithms.base import Algorithm
from noisyica.engine.algorithms.exact import ExactEM
from noisyica.engine.algorithms.mode import ModeEM
from noisyica.engine.algorithms.stochastic import MonteCarloEM, Saem, StochasticEM

TABLE: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm for algorithm in (Saem, MonteCarloEM, ExactEM, ModeEM, StochasticEM)
}
"""The algorithms by name."""

SAMPLERS = ("gibbs", "metropolis")
"""The samplers of the coefficients by name."""


def get(
    algorithm: str | Algorithm, sampler: str = "gibbs", draws: tuple[int, int] = (1, 1)
) -> Algorithm:
    """Return the algorithm that a name stands for, with its sampler and its numbers of draws."""
    if isinstance(algorithm, Algorithm):
        return algorithm
    if isinstance(algorithm, str) and algorithm in TABLE:
        return TABLE[algorithm].from_settings(sampler, draws)
    names = " or ".join(repr(name) for name in TABLE)
    raise ValueError(f"algorithm={algorithm!r} is not known. Choose {names}.")


def from_fields(name: str, fields: dict[str, Any]) -> Algorithm:
    """Return the algorithm of which a file holds the name and the fields."""
    if name not in TABLE:
        raise ValueError(
            f"The algorithm {name!r} is not known here: import the module that defines it, then "
            "load the file again."
        )
    return TABLE[name](**fields)


__all__ = [
    "SAMPLERS",
    "TABLE",
    "Algorithm",
    "ExactEM",
    "ModeEM",
    "MonteCarloEM",
    "Saem",
    "StochasticEM",
    "from_fields",
    "get",
]
