"""A file from which an interrupted fit goes on as if nothing had happened.

Random numbers are keyed by (seed, iteration, block of rows), so where a run stands is its state and its history, and no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from noisyica.data import storage
from noisyica.data.rows import fingerprint
from noisyica.engine.convergence import Monitor
from noisyica.engine.learning import Run, State

INTERVAL, SHARE = 0.5, 0.05
"""Seconds between two writings, at least; and the share of the time that they may take."""


def identity(settings: dict[str, Any], *arrays: np.ndarray | None) -> str:
    """A digest of what decides a fit: settings and data. A fit goes on from a checkpoint with the same one only."""
    prints = [None if array is None else fingerprint(array) for array in arrays]
    return hashlib.sha256(
        json.dumps([version("noisyica"), settings, prints], sort_keys=True).encode()
    ).hexdigest()


class Checkpoint:
    """Where the runs of a fit stand, in a file that is replaced as a whole."""

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        self.path, self._identity = Path(path), identity
        self._next = time.monotonic() + INTERVAL

    def restore(self, blank: Callable[[], State]) -> tuple[list[Run], list[Monitor]] | None:
        """The runs and their monitors where the file has them; ``blank`` makes a state of the same kind, before the first iteration."""
        if not self.path.exists():
            return None
        arrays, description = storage.read(self.path)
        if description.get("checkpoint") != self._identity:
            raise ValueError(
                f"{self.path} belongs to a fit of other data, or with other settings: remove it, or name another file."
            )
        leaves, structure = jax.tree.flatten(blank())
        runs = []
        for i in range(len(description["monitors"])):
            state = jax.tree.unflatten(
                structure, [arrays[f"{i}/state/{k}"] for k in range(len(leaves))]
            )
            start = f"{i}/history/"
            history = {
                name.removeprefix(start): values
                for name, values in arrays.items()
                if name.startswith(start)
            }
            runs.append(Run(state, history))
        return runs, [Monitor(**one) for one in description["monitors"]]

    def save(self, runs: list[Run], monitors: list[Monitor], now: bool = False) -> None:
        """Write where the runs stand, unless it was done a moment ago."""
        begun = time.monotonic()
        if begun < self._next and not now:
            return
        arrays: dict[str, np.ndarray] = {}
        for i, run in enumerate(runs):
            arrays |= {
                f"{i}/state/{k}": np.asarray(leaf)
                for k, leaf in enumerate(jax.tree.leaves(run.state))
            }
            arrays |= {f"{i}/history/{name}": values for name, values in run.history.items()}
        storage.write(
            self.path,
            arrays,
            {"checkpoint": self._identity, "monitors": [vars(one) for one in monitors]},
        )
        end = time.monotonic()
        self._next = end + max(INTERVAL, (end - begun) / SHARE)
