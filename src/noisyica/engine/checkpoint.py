"""A file from which an interrupted fit goes on as if nothing had happened.

Random numbers are keyed by (seed, iteration, row), so where a run stands is its state, the chains
of its rows and its history, and no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any

import jax
import numpy as np

from noisyica.data import storage
from noisyica.data.rows import fingerprint
from noisyica.engine.convergence import Monitor
from noisyica.engine.settings import deciding_settings
from noisyica.engine.state import Run
from noisyica.rows.source import Rows

INTERVAL = 0.5
"""The minimum number of seconds from one writing of the file to the next."""
SHARE = 0.05
"""The maximum share of the time that may be spent on writing the file."""


def identity(settings: dict[str, Any], *arrays: np.ndarray | None) -> str:
    """Return a digest of the settings and the data, which together decide what a fit learns.

    A fit goes on only from a checkpoint with the same digest.
    """
    prints = [None if array is None else fingerprint(array) for array in arrays]
    text = json.dumps([version("noisyica"), settings, prints], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Checkpoint:
    """A file that says where the runs of a fit stand. Each writing replaces the whole file."""

    def __init__(self, path: str | os.PathLike[str], identity: str) -> None:
        self.path, self._identity = Path(path), identity
        self._next = time.monotonic() + INTERVAL

    def restore(
        self, begun: Callable[[int], Run]
    ) -> tuple[list[Run], list[Monitor], list[np.ndarray]] | None:
        """Return the runs, their monitors and A of others, or None if there is no file.

        ``begun`` makes a run that has the structure of one which has done so many iterations.
        """
        if not self.path.exists():
            return None
        arrays, description = storage.read(self.path)
        if description.get("checkpoint") != self._identity:
            raise ValueError(
                f"{self.path} belongs to a fit of other data, or with other settings: remove it, "
                "or name another file."
            )
        with storage.refusing(self.path):
            first = begun(int(description["iteration"]))
            monitors = [Monitor(**fields) for fields in description["monitors"]]
            runs = [_stored_run(arrays, i, first) for i in range(len(monitors))]
            others = [arrays[f"left behind/{i}"] for i in range(int(description["left behind"]))]
            return runs, monitors, others

    def save(
        self,
        where: Callable[[], list[Run]],
        monitors: list[Monitor],
        left_behind: list[np.ndarray],
        now: bool = False,
    ) -> None:
        """Write where the runs stand, unless this was done a moment ago; ``now`` always writes.

        ``left_behind`` are the A of runs that did not go on.
        """
        begun = time.monotonic()
        if begun < self._next and not now:
            return
        runs = where()
        arrays: dict[str, np.ndarray] = {}
        for i, run in enumerate(runs):
            position = jax.tree.leaves(run._replace(history={}))
            arrays |= {f"{i}/position/{k}": np.asarray(leaf) for k, leaf in enumerate(position)}
            arrays |= {f"{i}/history/{name}": values for name, values in run.history.items()}
        arrays |= {f"left behind/{i}": A for i, A in enumerate(left_behind)}
        fields = [vars(monitor) for monitor in monitors]
        iteration = int(runs[0].state.t)
        description = {
            "checkpoint": self._identity,
            "iteration": iteration,
            "monitors": fields,
            "left behind": len(left_behind),
        }
        storage.write(self.path, arrays, description)
        end = time.monotonic()
        self._next = end + max(INTERVAL, (end - begun) / SHARE)


def checkpoint_of(settings: Any, rows: Rows) -> Checkpoint | None:
    """Return the checkpoint of a fit of these rows, or None if the settings ask for none."""
    if settings.checkpoint is None:
        return None
    if not isinstance(settings.random_state, Integral):
        raise ValueError(
            "A checkpoint needs random_state to be an integer, to go on with the same draws; "
            f"got {settings.random_state!r}."
        )
    folder = Path(settings.checkpoint).parent
    if not folder.is_dir():
        raise ValueError(
            f"checkpoint={os.fspath(settings.checkpoint)!r}: there is no folder {folder}."
        )
    deciding, init = deciding_settings(settings)
    arrays = rows.X, rows.sample_weight, init, rows.eigenvectors
    return Checkpoint(settings.checkpoint, identity(deciding, *arrays))


def _stored_run(arrays: dict[str, np.ndarray], i: int, first: Run) -> Run:
    """Return the i-th run of a checkpoint, which has the structure of the run ``first``."""
    leaves, structure = jax.tree.flatten(first._replace(history={}))
    stored = [arrays[f"{i}/position/{k}"] for k in range(len(leaves))]
    for k, (leaf, array) in enumerate(zip(leaves, stored, strict=True)):
        if np.shape(leaf) != array.shape:
            raise ValueError(f"array {k} has shape {array.shape} instead of {np.shape(leaf)}")
    run: Run = jax.tree.unflatten(structure, stored)
    prefix = f"{i}/history/"
    history = {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }
    return run._replace(history=history)
