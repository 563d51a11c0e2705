"""Checks of arguments that methods have in common: counts and random seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

RandomState = int | np.integer[Any] | np.random.RandomState | None


def check_counts(**counts: tuple[Any, int]) -> None:
    """Raise ValueError unless each value is an integer, and at least its minimum."""
    for name, (value, minimum) in counts.items():
        if not (isinstance(value, (int, np.integer)) and value >= minimum):
            raise ValueError(f"{name} must be an integer of at least {minimum}; got {value!r}.")


def seed_of(random_state: RandomState) -> int:
    """Return the random seed that ``random_state`` stands for."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def result(out: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array that a result of this shape is written to: ``out``, or a new one.

    Raise ValueError if ``out`` cannot hold it.
    """
    if out is None:
        return np.empty(shape)
    right = isinstance(out, np.ndarray) and out.shape == shape and out.dtype.kind == "f"
    if not right or not out.flags.writeable:
        raise ValueError(
            f"out must be an array of floating numbers of shape {shape} that can be written to; "
            f"got {getattr(out, 'dtype', type(out).__name__)} of shape {np.shape(out)}."
        )
    return out
