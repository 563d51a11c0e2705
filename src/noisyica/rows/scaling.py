"""The centre and the unit of rows, and other summaries, from one pass over their blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class Summary(NamedTuple):
    """Summaries of all rows, in the units of X."""

    centre: np.ndarray  # (d,)  weighted mean of each column
    root_mean_square: float  # of the entries about zero
    deviation: float  # root mean square of the entries about ``centre``
    observed: np.ndarray  # (d,)  the share, by weight, of a column's entries that are not missing
    varies: np.ndarray  # (d,)  whether a column has two different values
    missing: bool  # whether any entry is missing
    largest: np.ndarray  # (d,)  the largest absolute entry of each column
    empty_rows: np.ndarray  # the numbers of the rows in which all entries are missing
    offset: float  # mean absolute value of the rows' means


class Part(NamedTuple):
    """Summaries of one block of rows, in units of ``size``, its largest absolute entry."""

    size: float
    n: int
    entries: np.ndarray  # (d,)  how many entries are not missing
    mean: np.ndarray  # (d,)  their mean
    scatter: np.ndarray  # (d,)  the sum of their squares about it
    weight: np.ndarray  # (d,)  the sum of the weights of these entries
    weighted: np.ndarray  # (d,)  their weighted sum
    low: np.ndarray  # (d,)  the smallest value, in the units of X
    high: np.ndarray  # (d,)  the largest value, in the units of X
    total_weight: float
    offset: float  # sum of the absolute values of the rows' means
    empty: np.ndarray  # the numbers, in the block, of rows whose entries are all missing


def summarise(blocks: Iterable[Part]) -> Summary:
    """Summarise rows by the summaries of blocks of them, in the order of the rows.

    Each block is summarised in units of its own largest entry, so that squares of huge and of tiny
    data stay within range, and the parts are put together by Chan's formula.
    """
    parts = list(blocks)
    size = max(part.size for part in parts)
    if size == 0 and any(part.entries.any() for part in parts):
        raise ValueError("All entries of X are zero: there is nothing to decompose.")
    units = [part.size / (size or 1.0) for part in parts]
    pairs = list(zip(parts, units, strict=True))
    weight = np.sum([part.weight for part in parts], 0)
    centre = np.sum([part.weighted * unit for part, unit in pairs], 0) / np.maximum(weight, 1e-300)
    low = np.fmin.reduce([part.low for part in parts])
    high = np.fmax.reduce([part.high for part in parts])
    centre = np.where(low == high, low / (size or 1.0), centre)  # a constant is not rounded
    entries = max(float(sum(part.entries.sum() for part in parts)), 1.0)
    firsts = np.cumsum([0, *(part.n for part in parts[:-1])])

    def squares_about(point: np.ndarray) -> float:
        return float(
            sum(
                (part.scatter * unit**2 + part.entries * np.square(part.mean * unit - point)).sum()
                for part, unit in pairs
            )
        )

    return Summary(
        centre=np.where(low == high, low, centre * size),  # where all are the same, to the last bit
        root_mean_square=size * np.sqrt(squares_about(np.zeros_like(centre)) / entries),
        deviation=size * np.sqrt(squares_about(centre) / entries),
        observed=weight / sum(part.total_weight for part in parts),
        varies=high > low,
        missing=bool(entries < sum(part.n for part in parts) * len(centre)),
        largest=np.maximum(np.abs(low), np.abs(high)),
        empty_rows=np.concatenate(
            [first + part.empty for first, part in zip(firsts, parts, strict=True)]
        ),
        offset=sum(part.offset * part.size for part in parts) / sum(part.n for part in parts),
    )


def summary_of(X: np.ndarray, weight: np.ndarray) -> Part:
    """Summarise one block of rows."""
    seen = ~np.isnan(X)
    complete = bool(seen.all())
    where: Any = True if complete else seen  # with a mask, NumPy takes several times as long
    size = float(np.max(np.abs(X), where=where, initial=0.0))
    scaled = (X if complete else np.where(seen, X, 0.0)) / (size or 1.0)
    count = seen.sum(0)
    low = np.min(X, axis=0, where=where, initial=np.inf)
    high = np.max(X, axis=0, where=where, initial=-np.inf)
    # the mean of a column that is constant is not rounded: others may be small beside it
    mean = np.where(low == high, low / (size or 1.0), scaled.sum(0) / np.maximum(count, 1))
    scatter = np.square(scaled - mean).sum(0, where=where)
    row_means = scaled.sum(1) / np.maximum(seen.sum(1), 1)
    return Part(
        size=size,
        n=len(X),
        entries=count,
        mean=mean,
        scatter=scatter,
        weight=np.einsum("n,nd->d", weight, seen),  # not by BLAS, whose last bits depend on threads
        weighted=np.einsum("n,nd->d", weight, scaled),
        low=low,
        high=high,
        total_weight=float(weight.sum()),
        offset=float(np.abs(row_means).sum()),
        empty=np.flatnonzero(~seen.any(1)),
    )
