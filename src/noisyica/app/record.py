"""What the folder of a run is known by: the names of its files, and ``run.json``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from noisyica.data import Data

RECORD, MODEL, HISTORY, REPORT, CHECKPOINT, COMPONENTS, COEFFICIENTS, MAPS = (
    "run.json", "model.npz", "history.csv", "report.html", "checkpoint.npz", "components",
    "coefficients", "maps.nii.gz",
)  # fmt: skip
TABLES = ("npz", "csv", "parquet")
"""The formats that coefficients can be written in; the ending of the file's name, too."""


class Source(NamedTuple):
    """A file or folder of data, and how it is to be read."""

    path: Path
    options: dict[str, Any]  # the arguments of noisyica.data.read

    def read(self) -> Data:
        """Read the data."""
        from noisyica import data

        return data.read(self.path, **self.options)

    def read_or_open(self) -> Data:
        """Read the data, or leave the rows in the file if they are large for the memory."""
        from noisyica.data import opening

        return opening.read_or_open(self.path, **self.options)


STATUSES = ("running", "interrupted", "fitted", "complete")
"""How far a run may have got."""


class Record(NamedTuple):
    """What ``run.json`` holds; its keys are the names of these fields."""

    status: str  # one of STATUSES
    source: Source
    settings: dict[str, Any]  # the arguments of NoisyICA
    table: str  # the format of the coefficients
    page: bool  # whether a report is to be made
    shape: tuple[int, int]
    fingerprint: str
    begun: str
    versions: dict[str, str]
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The record as a dictionary of what JSON can hold."""
        options = {
            name: os.fspath(value) if isinstance(value, Path) else value
            for name, value in self.source.options.items()
        }
        source = {"path": os.fspath(self.source.path), "options": options}
        return {**self._asdict(), "source": source}

    def for_report(self) -> dict[str, Any]:
        """The entries that a report shows; it gets the settings from the estimator instead."""
        entries = self.as_json()
        names = ("source", "begun", "seconds", "fingerprint", "versions")
        return {name: entries[name] for name in names}

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Read the record of a run's folder; a ValueError says what is wrong with it."""
        path = folder / RECORD
        if not path.is_file():
            raise ValueError(f"{folder} is not the folder of a run: it has no {RECORD}.")
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
            if entries["status"] not in STATUSES:
                raise ValueError(f"its status is {entries['status']!r}")
            source = Source(Path(entries["source"]["path"]), entries["source"]["options"])
            return cls(**{**entries, "source": source, "shape": tuple(entries["shape"])})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is damaged ({error}).") from error

    def write(self, folder: Path) -> None:
        """Write the record into the folder of the run: all of it, or nothing."""
        from noisyica.data import storage

        with storage.whole(folder / RECORD) as file:
            file.write(json.dumps(self.as_json(), indent=2).encode())
