"""What all experiments share: their settings, and what they give."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """What the command line says.

    Attributes
    ----------
    quick : bool
        Minutes instead of hours: fewer repeats, iterations and sizes.
    data : Path, optional
        Folder with the real data; stand-ins are used without it.
    repeats : int, optional
        Of each case; by default what the experiment says.
    jobs : int
        Processes. Times are always measured in one.
    seed : int
        Added to the number of the repeat wherever something is random.
    cache : Path, optional
        Folder where finished cases are kept, and found by the next run.
    verbose : bool
        Show progress on a terminal.
    """

    quick: bool = False
    data: Path | None = None
    repeats: int | None = None
    jobs: int = 1
    seed: int = 0
    cache: Path | None = None
    verbose: bool = True

    def choose(self, quick: T, full: T) -> T:
        """The first for a quick run, the second for a full one."""
        return quick if self.quick else full

    def seeds(self, quick: int, full: int) -> list[int]:
        """A seed for each repeat, as many as asked for, or as the experiment says."""
        return [self.seed + i for i in range(self.repeats or self.choose(quick, full))]


@dataclass(frozen=True)
class Entry:
    """One number of ours, in the row and column of a table, and the paper's own where it has one."""

    table: str
    row: str
    column: str
    ours: float
    spread: float = math.nan
    paper: float = math.nan

    @property
    def ratio(self) -> float:
        """Ours over the paper's."""
        return self.ours / self.paper if self.paper else math.nan


@dataclass(frozen=True)
class Claim:
    """A sentence with its numbers, and whether it is what the paper says, or what is wanted; None: neither says anything."""

    text: str
    holds: bool | None = None


@dataclass(frozen=True)
class Picture:
    """A figure, its name within the experiment, and what it shows."""

    name: str
    figure: Figure
    caption: str


@dataclass
class Result:
    """What an experiment gives; :func:`noisyica.paper.page.write` makes a page of it."""

    title: str
    question: str
    data: str
    settings: dict[str, Any]
    entries: list[Entry] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    legend: str = "Cells: ours, plus or minus a standard error over the repeats."
    seconds: float = math.nan  # of computing, summed over all cases

    def find(self, table: str, row: str, column: str) -> Entry:
        """The entry at a place."""
        return next(e for e in self.entries if (e.table, e.row, e.column) == (table, row, column))


def summary(values: Iterable[float]) -> tuple[float, float]:
    """Mean and standard error."""
    found = np.array([v for v in values if np.isfinite(v)])
    if not len(found):
        return math.nan, math.nan
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found))) if len(
        found
    ) > 1 else math.nan


def where(records: Sequence[Mapping[str, Any]], **wanted: Any) -> list[Mapping[str, Any]]:
    """The records that have these values."""
    return [
        record for record in records if all(record[name] == value for name, value in wanted.items())
    ]


def column(records: Sequence[Mapping[str, Any]], name: str, **wanted: Any) -> list[float]:
    """One number of each of the records that have these values."""
    return [record[name] for record in where(records, **wanted)]
