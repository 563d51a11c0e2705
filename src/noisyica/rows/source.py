"""Rows of data, through which learning reads all that it learns from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from noisyica.data.held import Blocks, Held, Mapped, give_back
from noisyica.rows import threads
from noisyica.rows.basis import Basis
from noisyica.rows.scaling import Part, Summary, summarise, summary_of

NUMBERS_AT_A_TIME = 2**22
"""The approximate number of entries of X that are held in float64 at a time."""


class Rows:
    """Rows of X, read block by block, centred and scaled on the way.

    X is never copied as a whole, so it may be larger than the memory, and held elsewhere.

    Parameters
    ----------
    X : array (n, d) or Held
        Floating numbers; missing entries are NaN. All that is asked of X is its shape, its length,
        rows by a slice, and rows by their numbers (:class:`noisyica.data.held.Held`).
    weight : array (n,), optional
        How many rows each row counts for. Rows of weight 0 are left out.
    """

    def __init__(self, X: Any, weight: np.ndarray | None = None) -> None:
        give_back(X)  # the checks before may have read all of it
        self.X, self.sample_weight, self.weight = X, weight, weight
        self._kept = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        if self._kept is not None:
            assert weight is not None
            self.weight = weight[self._kept]
        self.n = len(X) if self._kept is None else len(self._kept)
        self.d = X.shape[1]
        self.total_weight = float(self.n if self.weight is None else self.weight.sum())
        self.centre, self.unit = np.zeros(self.d), 1.0
        self.basis: Basis | None = None
        self._scale: tuple[np.ndarray, float] | None = None

    def centred(self, free_mean: bool) -> tuple[Rows, Summary]:
        """Return the rows, centred and scaled, and the summaries that this needed.

        They are centred on their mean if it is free, and then divided by their root mean square.
        """
        summary = summarise(self._summaries())
        empty = summary.empty_rows if self._kept is None else self._kept[summary.empty_rows]
        refuse_unobserved("rows", empty)
        new = object.__new__(Rows)
        new.__dict__.update(self.__dict__)
        if self._scale is not None:
            new.centre, new.unit = self._scale
            return new, summary
        refuse_unobserved("columns", np.flatnonzero(summary.observed == 0))
        unit = summary.deviation if free_mean else summary.root_mean_square
        largest = np.max(summary.largest, where=summary.varies, initial=0.0)
        if not summary.varies.any() or unit < 1e-13 * largest:
            raise ValueError(
                "X is constant: all its rows are the same, so there is nothing to decompose."
            )
        new.centre = summary.centre if free_mean else np.zeros(self.d)
        new.unit = unit
        return new, summary

    def _summaries(self) -> Iterable[Part]:
        """Return summaries of the blocks of rows, made where the rows are if that is possible."""
        if isinstance(self.X, Blocks) and self._kept is None and self.X.client is not None:
            weight = self.weight

            def part(rows: np.ndarray, first: int) -> Part:
                rows = refuse_infinite(np.asarray(rows, np.float64), first)
                own = np.ones(len(rows)) if weight is None else weight[first : first + len(rows)]
                return summary_of(rows, own)

            return self.X.each_block(part)

        def summary(first: int) -> Part:
            rows = self._read(first, first + self._rows_at_a_time)
            rows = refuse_infinite(rows, first, self._kept)
            return summary_of(rows, self._weight(first, len(rows)))

        firsts = range(0, self.n, self._rows_at_a_time)
        return threads.each(summary, firsts, alone=not self.in_memory)

    @property
    def in_memory(self) -> bool:
        """Whether X is an array in memory, not in a file or elsewhere."""
        return type(self.X) is np.ndarray

    def scaled_like(self, centre: np.ndarray, unit: float) -> Rows:
        """Return the same rows, to be centred and scaled as others were, whatever their own."""
        new = object.__new__(Rows)
        new.__dict__.update(self.__dict__, _scale=(centre, unit))
        return new

    @property
    def eigenvectors(self) -> np.ndarray | None:
        """The vectors of the basis of the rows, unless they follow from the settings to the bit."""
        return None if self.basis is None else self.basis.vectors

    def in_basis(self, basis: Basis) -> Rows:
        """Return the same rows, but whatever is centred and scaled is in this basis, too."""
        new = object.__new__(Rows)
        new.__dict__.update(self.__dict__, basis=basis)
        return new

    def to_basis(self, rows: np.ndarray) -> np.ndarray:
        """Return any rows (k, d) in the basis of the rows."""
        return rows if self.basis is None else self.basis.forward(rows)

    def from_basis(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (k, d) that are in the basis of the rows in that of X."""
        return rows if self.basis is None else self.basis.back(rows)

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the rows in order: the number of the first row of each block, and the block.

        The blocks are in float64 and in the units of X.
        """
        step = self._rows_at_a_time
        for first in range(0, self.n, step):
            yield first, self._read(first, first + step)

    def finite_blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Go through the rows as :meth:`blocks` does, and refuse infinite entries."""
        for first, rows in self.blocks():
            yield first, refuse_infinite(rows, first, self._kept)

    def standardised_blocks(self) -> Iterator[np.ndarray]:
        """Go through the rows in order, in blocks that are centred and scaled, in float64."""
        for _, rows in self.blocks():
            yield self._standardise(rows)

    def standardised(self, first: int, end: int) -> np.ndarray:
        """Return the rows from ``first`` up to ``end``, centred and scaled, in float64."""
        return self._standardise(self._read(first, end))

    def chosen(self, numbers: np.ndarray) -> np.ndarray:
        """Return some of the rows by their numbers, centred and scaled, in float64."""
        kept = numbers if self._kept is None else self._kept[numbers]
        if isinstance(self.X, Held):  # which reads one piece after the other itself
            return self._standardise(np.array(self.X[kept], np.float64))
        rows = np.empty((len(kept), self.d))
        region = kept // self._rows_at_a_time  # a memory map is read one region after the other
        for number in np.unique(region):
            part = np.flatnonzero(region == number)
            rows[part] = self.X[kept[part]]
            give_back(self.X)
        return self._standardise(rows)

    @property
    def scaled_by_others(self) -> bool:
        """Whether other rows decided the centre and the unit."""
        return self._scale is not None

    def part(self, numbers: np.ndarray) -> Rows:
        """Return some of the rows by their numbers, in order, with the same centre and unit."""
        mask = np.zeros(self.n)
        mask[numbers] = self._weight(0, self.n)[numbers]
        weight = mask
        if self._kept is not None:
            weight = np.zeros(len(self.X))
            weight[self._kept] = mask
        new = Rows(self.X, weight)
        new.centre, new.unit, new.basis = self.centre, self.unit, self.basis
        return new

    def drawn_by_weight(self, numbers: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return as many numbers of rows drawn from these by weight, or these where all are alike.

        It is for what takes no weights.
        """
        if self.weight is None:
            return numbers
        weight = self.weight[numbers]
        return rng.choice(numbers, len(numbers), p=weight / weight.sum())

    def relative_weight(self, first: int, end: int) -> np.ndarray:
        """Return the weights of the rows from ``first`` up to ``end``, which are 1 on average."""
        return self._weight(first, min(end, self.n) - first) * (self.n / self.total_weight)

    def weights_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the weights of some rows by their numbers, 1 on average over all."""
        if self.weight is None:
            return np.ones(len(numbers))
        return self.weight[numbers] * (self.n / self.total_weight)

    @property
    def all_count(self) -> bool:
        """Whether no row of X is left out, because its weight is 0."""
        return self._kept is None

    @property
    def share(self) -> np.ndarray | None:
        """The share of the total weight that each row has; None where all rows count alike."""
        return None if self.weight is None else self.weight / self.weight.sum()

    @property
    def _rows_at_a_time(self) -> int:
        return max(1, NUMBERS_AT_A_TIME // self.d)

    def _weight(self, first: int, n: int) -> np.ndarray:
        return np.ones(n) if self.weight is None else self.weight[first : first + n]

    def _read(self, first: int, end: int) -> np.ndarray:
        """Return a copy of the rows from ``first`` up to ``end``, in float64."""
        rows = np.array(self.raw(first, end), np.float64)
        give_back(self.X)
        return rows

    def raw(self, first: int, end: int) -> np.ndarray:
        """Return the rows from ``first`` up to ``end`` as X holds them, not copied if possible."""
        end = min(end, self.n)
        if self._kept is not None:
            return np.asarray(self.X[self._kept[first:end]])
        return self.X.view(first, end) if isinstance(self.X, Mapped) else self.X[first:end]

    def _standardise(self, rows: np.ndarray) -> np.ndarray:
        """Centre and scale the rows in place, and return them, in their basis."""
        rows -= self.centre
        rows /= self.unit
        return self.to_basis(rows)


class InUnits:
    """Rows of X in another unit, a power of two, as they are read: X itself is not copied.

    Entries farther than ``most`` (d,) from ``centre`` (d,), both in that unit, are refused.
    """

    def __init__(self, X: Any, unit: float, centre: np.ndarray, most: np.ndarray) -> None:
        self._X, self._unit, self._centre, self._most = X, unit, centre, most
        self.shape = X.shape

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, rows: Any) -> np.ndarray:
        with np.errstate(over="ignore"):
            values = np.asarray(self._X[rows], np.float64) / self._unit
        far = (np.abs(values - self._centre) > self._most).any(0)
        if far.any():
            raise ValueError(
                f"X has entries in column {int(np.argmax(far))} that are too far from what the "
                "model knows for any computation: are they in the units of the data that it was "
                "learnt from?"
            )
        return values


class Chosen:
    """Some of the rows of X, by their numbers, which are read when they are needed."""

    def __init__(self, X: Any, numbers: np.ndarray) -> None:
        self._X, self._numbers = X, numbers
        self.shape = (len(numbers), X.shape[1])

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return np.asarray(self._X[self._numbers[rows]])


def refuse_infinite(rows: np.ndarray, first: int, numbers: np.ndarray | None = None) -> np.ndarray:
    """Return the rows, or raise ValueError if any entry is infinite.

    They begin with row ``first``, whose number in X is ``numbers[first]``, if these are given.
    """
    infinite = np.isinf(rows)
    if not infinite.any():
        return rows
    i, column = np.argwhere(infinite)[0]
    row = first + i if numbers is None else numbers[first + i]
    raise ValueError(
        f"X has an infinite number in row {row}, column {column}: replace it, or mark it as "
        "missing (NaN)."
    )


def observed_entries(X: Any) -> np.ndarray:
    """Return how many entries of each row are not missing (NaN), from one pass over X.

    Rows of which nothing is observed are refused, and so are infinite entries.
    """
    count = np.zeros(len(X), np.int64)
    for first, rows in Rows(X).finite_blocks():
        count[first : first + len(rows)] = (~np.isnan(rows)).sum(1)
    refuse_unobserved("rows", np.flatnonzero(count == 0))
    return count


def refuse_unobserved(what: str, empty: np.ndarray) -> None:
    """Raise ValueError if all entries of any rows, or columns (``what``), are missing."""
    if empty.size:
        which = ", ".join(str(i) for i in empty[:5]) + (", ..." if empty.size > 5 else "")
        raise ValueError(
            f"Nothing is observed in {empty.size} of the {what} of X ({which}): all their entries "
            f"are NaN. Leave those {what} out."
        )
