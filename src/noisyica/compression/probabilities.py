"""The probabilities of symbols: those of the prior, or those of histograms that are written along.

Encoder and decoder have to agree on probabilities to the last digit, so these are integers in
tables, the frequencies of symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import scipy.stats

from noisyica._jax.arrays import cast, to_numpy
from noisyica.compression.symbols import Code, column_units
from noisyica.laws import Law
from noisyica.model import Model
from noisyica.priors import OFFSET_LAWS

PRIOR, POOLED, EACH = range(3)
"""Where the frequencies of a table come from: the model's prior, one histogram of all columns of
symbols, or a histogram of each column."""
RESOLUTION = 1 << 16
"""The maximum sum of the frequencies of a table."""
LEAST_PROBABILITY = 2.0**-24
"""The least probability that the entropy coder gives to a symbol."""
BINS = 128
"""The number of bins whose probabilities are computed at a time."""


class Stream(NamedTuple):
    """The symbols of one kind: those of the coefficients, of the scales or of the offsets.

    Attributes
    ----------
    symbols : array of int (rows, columns)
    step : float
        The step that the decoder needs to know.
    span : tuple (low, high)
        Tables have a place for these symbols and all between them, even if none occurs.
    prior : function
        ``prior(low, size)`` is the prior probabilities of the symbols low, low + 1, ..., of
        shape (columns, size), or None if they are not known.
    """

    symbols: np.ndarray
    step: float
    span: tuple[int, int]
    prior: Callable[[int, int], np.ndarray | None]


class Table(NamedTuple):
    """The frequencies of the symbols low, low + 1, ...

    ``frequencies`` has the shape (1, size) if they are those of all columns together, and
    (columns, size) if each column has its own.
    """

    source: int
    low: int
    size: int
    frequencies: np.ndarray


def streams_of(model: Model, code: Code) -> dict[str, Stream]:
    """Return the streams of symbols by name, in the order in which they are coded."""
    prior, p, units = model.prior.without_offset, code.p, column_units(model, code.step)

    def of_coefficients(low: int, size: int) -> np.ndarray | None:
        if prior.single_scale:
            gamma = float(prior.parameters["gamma"])
            return np.tile([gamma, 1 - 2 * gamma, gamma], (p, 1))[:, low + 1 : low + 1 + size]
        laws = [law for j in range(p) if (law := prior.law_of(j)) is not None]
        if len(laws) < p:
            return None
        return np.array(
            [_bin_masses(law, unit, low, size) for law, unit in zip(laws, units[:p], strict=True)]
        )

    def of_scale(low: int, size: int) -> np.ndarray:
        return np.diff(scipy.stats.expon.cdf(code.scale_step * _edges(low, size)))[None]

    def of_offset(low: int, size: int) -> np.ndarray:
        law = OFFSET_LAWS[getattr(model.prior, "law", "laplace")]
        scale = float(np.asarray(model.prior.offset_scale))
        return np.diff(law.cdf(units[p] * _edges(low, size), scale))[None]

    span = (0, 0) if code.scale is None else (-1, 1)
    streams = {"coefficients": Stream(code.symbols[:, :p], code.step, span, of_coefficients)}
    if code.scale is not None:
        scales = code.scale[code.active][:, None]
        streams["scale"] = Stream(scales, code.scale_step, (1, 1), of_scale)
    if model.prior.has_offset:
        streams["offset"] = Stream(code.symbols[:, p:], code.step, (0, 0), of_offset)
    return streams


# ---------------------------------------------------------------- probabilities under the prior


def _edges(low: int, size: int) -> np.ndarray:
    """Return the ends of the intervals that are rounded to low, low + 1, ..., (size + 1,)."""
    return low - 0.5 + np.arange(size + 1)


_GAUSS = np.polynomial.legendre.leggauss(4)
NODES = np.concatenate([_GAUSS[0] - 1, _GAUSS[0] + 1]) / 4
WEIGHTS = np.concatenate([_GAUSS[1], _GAUSS[1]]) / 4
"""Gauss' quadrature on each half of a bin: in the middle of a bin a law may have a kink."""


def _bin_masses(law: Law, unit: float, low: int, size: int) -> np.ndarray:
    """Return the probabilities of the bins unit (q - 1/2, q + 1/2), q = low, low + 1, ..., (size,).

    ``law`` is the law of one coefficient.
    """
    masses = _continuous_masses(cast(law, float), unit, low, size)
    for weight, part in to_numpy(law).parts():
        if part.atom is not None:
            location = float(np.asarray(part.atom))
            index = round(location / unit) - low if unit > 0 else -low
            if 0 <= index < size:
                masses[index] += float(np.asarray(weight))
    return masses


def _continuous_masses(law: Law, unit: float, low: int, size: int) -> np.ndarray:
    """Return the probabilities of the bins without those of the law's atoms, (size,)."""
    masses = np.zeros(size)
    for k in range(0, size, BINS):  # arrays always have the same shape, to be compiled for once
        t = unit * (low + k + np.arange(BINS)[:, None] + NODES)
        density = np.exp(np.asarray(_log_density(law, t)))
        integrals = unit * np.where(np.isfinite(density), density, 0.0) @ WEIGHTS
        masses[k : k + BINS] = integrals[: size - k]
    return masses


@jax.jit
def _log_density(law: Law, t: jax.Array) -> jax.Array:
    return law.log_density(t)


def frequencies_of(masses: np.ndarray) -> np.ndarray:
    """Return positive integers in proportion to the masses (columns, size)."""
    masses = np.where(masses.sum(1, keepdims=True) > 0, np.maximum(masses, 0.0), 1.0)
    scaled = (RESOLUTION - masses.shape[1]) * masses / masses.sum(1, keepdims=True)
    return 1 + np.floor(scaled).astype(np.int64)


# ---------------------------------------------------------------------------- histograms, tables


def histogram(counts: np.ndarray) -> np.ndarray:
    """Return counts (columns, size) that sum to at most ``RESOLUTION`` in each column.

    Larger ones are scaled down to that sum, which the decoder knows; positive ones stay positive.
    """
    total = int(counts[0].sum())
    if total <= RESOLUTION:
        return counts
    scaled = np.where(counts > 0, 1 + (RESOLUTION - counts.shape[1]) * counts // total, 0)
    scaled[np.arange(len(counts)), counts.argmax(1)] += RESOLUTION - scaled.sum(1)
    return scaled


def code_lengths(frequencies: np.ndarray) -> np.ndarray:
    """Return the code length of each symbol in nats, in the shape of the frequencies."""
    return -np.log(np.maximum(frequencies / frequencies.sum(1, keepdims=True), LEAST_PROBABILITY))


def candidate_tables(stream: Stream) -> list[Table]:
    """Return the tables to choose from; if the prior's probabilities are known, they come first."""
    symbols, (low, high) = stream.symbols, stream.span
    low, high = int(symbols.min(initial=low)), int(symbols.max(initial=high))
    size = high - low + 1
    masses = stream.prior(low, size)
    counts = _counts(symbols, low, size)
    tables = [] if masses is None else [Table(PRIOR, low, size, frequencies_of(masses))]
    if not symbols.size:
        return tables
    return [
        *tables,
        Table(POOLED, low, size, histogram(counts.sum(0, keepdims=True))),
        Table(EACH, low, size, histogram(counts)),
    ]


def first_table(stream: Stream) -> Table:
    """Return the table of the prior or, if its probabilities are not known, that of all columns."""
    return candidate_tables(stream)[0]


def shortest_table(stream: Stream) -> Table:
    """Return the table that makes the code shortest; its own length counts."""

    def length(table: Table) -> float:
        counts = _counts(stream.symbols, table.low, table.size)
        return float((counts * code_lengths(table.frequencies)).sum()) + _length_of_table(table)

    return min(candidate_tables(stream), key=length)


def _counts(symbols: np.ndarray, low: int, size: int) -> np.ndarray:
    """Return how often each column has the symbols low, low + 1, ..., (columns, size)."""
    return np.array([np.bincount(column - low, minlength=size) for column in symbols.T])


def written_order(low: int, size: int) -> np.ndarray:
    """Return the order in which the frequencies of low, low + 1, ... are written, (size,).

    It goes from zero outwards: frequencies near zero are large, and each one that is written
    bounds those that follow.
    """
    return np.argsort(np.abs(low + np.arange(size)), kind="stable")


def _length_of_table(table: Table) -> float:
    """Return the number of nats that it takes to write a table."""
    if table.source == PRIOR:
        return 0.0
    written = table.frequencies[:, written_order(table.low, table.size)]
    left = table.frequencies.sum(1, keepdims=True) - np.cumsum(written, 1) + written
    return float(np.log1p(left[:, :-1]).sum())
