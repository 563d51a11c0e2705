"""What all experiments share: the options of a run, and the parts of a result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from noisyica.priors import Prior, SingleScaleTernaryOffset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
Record = Mapping[str, Any]
"""One case of an experiment and its result, by name (see :func:`noisyica.paper.tasks.run`)."""


def papers_prior(name: str) -> str | Prior:
    """Return a prior as the paper has it: in "teoff" the scale of the offset is 1, not learnt."""
    return SingleScaleTernaryOffset(offset_scale=1.0) if name == "teoff" else name


@dataclass(frozen=True)
class Options:
    """How an experiment is to be run: the options of ``noisyica reproduce``.

    Attributes
    ----------
    quick : bool
        Take minutes instead of hours, with fewer repeats, iterations and sizes.
    data : Path, optional
        The folder with the real data. Stand-ins are used for what it lacks.
    repeats : int, optional
        The number of repeats of each case. Each experiment has its own default.
    jobs : int
        The number of processes. Times are always measured in a single one.
    seed : int
        The random seed of the first repeat; the next repeats have the numbers that follow.
    cache : Path, optional
        The folder that keeps the results of finished cases for later runs.
    verbose : bool
        Whether progress is shown on a terminal.
    """

    quick: bool = False
    data: Path | None = None
    repeats: int | None = None
    jobs: int = 1
    seed: int = 0
    cache: Path | None = None
    verbose: bool = True

    def choose(self, quick: T, full: T) -> T:
        """Return the first value in a quick run, and the second in a full one."""
        return quick if self.quick else full

    def seeds(self, quick: int, full: int) -> list[int]:
        """Return a random seed for each repeat; the arguments are the experiment's own numbers."""
        return [self.seed + i for i in range(self.repeats or self.choose(quick, full))]


@dataclass(frozen=True)
class Entry:
    """One of our numbers with its place in a table, and the paper's number where there is one."""

    table: str
    row: str
    column: str
    ours: float
    spread: float = math.nan
    paper: float = math.nan

    @property
    def ratio(self) -> float:
        """Our number over the paper's."""
        return self.ours / self.paper if self.paper else math.nan


@dataclass(frozen=True)
class Claim:
    """A sentence about the result, and whether it agrees with what the paper says.

    ``holds`` is None where the paper says nothing. If ``target``, it is not the paper that says
    it: it is a target of ours, and ``holds`` says whether we meet it.
    """

    text: str
    holds: bool | None = None
    target: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure with its name within the experiment and its caption."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class Reading:
    """What is read off the numbers of an experiment: all of its page that needs no run.

    ``charts`` are the pictures that are drawn from the entries alone.
    """

    claims: list[Claim]
    notes: list[str]
    charts: list[Picture] = field(default_factory=list)


@dataclass
class Result:
    """The result of an experiment, of which :func:`noisyica.paper.page.write` makes a page."""

    title: str
    question: str
    data: str
    settings: dict[str, Any]
    entries: list[Entry] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    legend: str = "Each cell has our mean, plus or minus its standard error over the repeats."
    seconds: float = math.nan  # computing time, summed over all cases


def rows(entries: Iterable[Entry], table: str) -> dict[str, dict[str, Entry]]:
    """Return the entries of a table by their rows, and then by their columns."""
    found: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        if entry.table == table:
            found.setdefault(entry.row, {})[entry.column] = entry
    return found


def numbers(row: Mapping[str, Entry]) -> np.ndarray:
    """Return our numbers in a row of a table."""
    return np.array([entry.ours for entry in row.values()])


def listed(values: Iterable[float], shape: str = ".2g") -> str:
    """Return numbers as people list them, such as "1.5, 2 and 2.5"."""
    *first, last = (format(value, shape) for value in values)
    return f"{', '.join(first)} and {last}" if first else last


def summary(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean of the finite values and its standard error (NaN where there is none)."""
    finite = np.array([value for value in values if np.isfinite(value)])
    mean = float(finite.mean()) if len(finite) else math.nan
    error = float(finite.std(ddof=1) / np.sqrt(len(finite))) if len(finite) > 1 else math.nan
    return mean, error


def where(records: Sequence[Record], **wanted: Any) -> list[Record]:
    """Return the records that have these values."""
    return [
        record for record in records if all(record[name] == value for name, value in wanted.items())
    ]


def column(records: Sequence[Record], name: str, **wanted: Any) -> list[float]:
    """Return one number of each record that has these values."""
    return [record[name] for record in where(records, **wanted)]


def computing_time(*records: Sequence[Record]) -> float:
    """Return the seconds that all cases together have taken."""
    return float(sum(record["spent"] for group in records for record in group))
