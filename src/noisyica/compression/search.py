"""The search for symbols of little squared error and short code.

The MAP estimate minimises ``|x - A beta|^2 / (2 sigma^2) - log prior(beta)``, and
``-log prior(beta)`` is what beta costs in nats: MAP is the best trade of distortion for rate at
one price. The encoder minimises the same sum over symbols, at a price that depends on the step
and with the code lengths of the entropy coder, by a beam search through a triangular form of A
(sphere decoding, as in communications) and by coordinate descent.

Here rows and columns are in units of the standard deviation of the noise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from noisyica.compression.probabilities import (
    Stream,
    Table,
    code_lengths,
    first_table,
    shortest_table,
    streams_of,
)
from noisyica.compression.symbols import (
    MOST_SYMBOLS,
    Code,
    column_units,
    columns_of,
    noise_scale,
    units_of,
)
from noisyica.model import Model

MOST_ROUNDS = 10
"""The maximum number of rounds of the search; code lengths are brought up to date before each."""
TOLERANCE = 0.002
"""The search ends when a round lowers the cost by less than this share of it."""
FILLING_ROUNDS = 30
"""How often missing entries are filled in before the search begins."""
BLOCK = 1024
"""The number of rows whose candidates are in memory at a time."""


class Triangle(NamedTuple):
    """A triangular form of the columns: Q (d, m), R (m, m) and the order of the columns (m,).

    ``|x - columns v|^2 + ridge v^2`` is ``|x Q - R v[order]|^2`` up to a constant, so that the
    entries of v can be decided one after the other, from the last one to the first.
    """

    Q: np.ndarray
    R: np.ndarray
    order: np.ndarray


class Rows(NamedTuple):
    """The rows x (n, d) to be encoded, and the columns (d, m) that they are made of.

    ``seen`` (n, d) is 1 where an entry is observed and 0 where it is missing; x is 0 there, too.
    If nothing is missing, ``seen`` has one row only.
    """

    x: np.ndarray
    seen: np.ndarray
    columns: np.ndarray
    triangle: Triangle


def search(model: Model, X: np.ndarray, step: float, width: int) -> Code:
    """Find symbols of little ``squared error / 2 + weight * code length``.

    A uniform quantiser of step D has the squared error D^2 / 12 and the code length -log D, so
    that D is the best step if the weight is D^2 / 12.
    """
    weight = step * step / 12
    rows = _prepare(model, X, weight)
    code = _quantise(model, rows, _first_values(model, rows, weight), step)
    choose, last = first_table, np.inf
    for _ in range(MOST_ROUNDS):
        code, total = _improve(model, rows, code, _prices(model, code, weight, choose), width)
        if total > (1 - TOLERANCE) * last:
            break
        choose, last = shortest_table, total
    return code


def _prepare(model: Model, X: np.ndarray, weight: float) -> Rows:
    """Return the rows in units of the noise, with the triangular form of the columns."""
    missing, noise = np.isnan(X), noise_scale(model)
    columns = columns_of(model) / noise[:, None]
    variance = np.full(columns.shape[1], model.prior.without_offset.variance())
    if model.prior.has_offset:
        variance[-1] = 2 * np.square(model.prior.offset_scale)
    # signs are coarse: they cannot make up for errors in the entries that are decided before them,
    # so these need at least the full ridge
    strength = max(1.0, weight) if model.prior.single_scale else min(1.0, weight)
    ridge = strength / np.maximum(variance, 1e-12)
    x = np.where(missing, 0.0, X - model.mean) / noise
    seen = (~missing).astype(float) if missing.any() else np.ones((1, X.shape[1]))
    return Rows(x, seen, columns, _triangle(columns, ridge))


def _triangle(columns: np.ndarray, ridge: np.ndarray) -> Triangle:
    """Return a triangular form of the columns.

    At each place, from the first one, stands the column of which the columns before it leave
    least; so the entries that are best determined are decided first.
    """
    extended = np.vstack([columns, np.diag(np.sqrt(ridge))])
    residual, order = extended.copy(), np.zeros(len(ridge), int)
    norms = np.square(residual).sum(0)
    for i in range(len(order)):
        order[i] = j = norms.argmin()
        residual -= np.outer(residual[:, j], residual[:, j] @ residual) / max(norms[j], 1e-300)
        norms = np.square(residual).sum(0)
        norms[order[: i + 1]] = np.inf
    Q, R = np.linalg.qr(extended[:, order])
    sign = np.where(np.diag(R) < 0, -1.0, 1.0)
    return Triangle((Q * sign)[: len(columns)], R * sign[:, None], order)


# ------------------------------------------------------------------------------ where it begins


def _first_values(model: Model, rows: Rows, weight: float) -> np.ndarray:
    """Return coefficients and offsets (n, m) to begin with.

    They are those of a ridge regression; if the prior has one scale per row, the coefficients are
    signs times a scale near these.
    """
    values = _ridge_regression(rows)
    if not model.prior.single_scale:
        return values
    p = model.mixing.shape[1]
    gamma = float(model.prior.without_offset.parameters["gamma"])
    # a scale s makes a mean square of 2 gamma s^2
    mean_squares = np.square(values[:, :p]).mean(1, keepdims=True)
    scale = np.sqrt(mean_squares / max(2 * gamma, 1 / p))
    signs = np.sign(values[:, :p]) * (np.abs(values[:, :p]) > scale / 2)
    direction = (signs @ rows.columns[:, :p].T) * rows.seen
    quadratic = np.square(direction).sum(1)
    linear = ((rows.x - values[:, p:] @ rows.columns[:, p:].T) * direction).sum(1)
    best_scale = np.divide(
        np.maximum(linear - weight, 0.0), quadratic, out=np.zeros(len(signs)), where=quadratic > 0
    )
    values[:, :p] = best_scale[:, None] * signs
    return values


def _ridge_regression(rows: Rows) -> np.ndarray:
    """Return the coefficients of a ridge regression of the rows on the columns, (n, m).

    Missing entries are filled in with what the coefficients say of them, again and again (EM).
    """
    Q, R, order = rows.triangle
    values = np.zeros((len(rows.x), len(order)))
    for _ in range(1 if rows.seen.all() else FILLING_ROUNDS):
        x = rows.x + (1 - rows.seen) * (values @ rows.columns.T)
        values[:, order] = scipy.linalg.solve_triangular(R, (x @ Q).T).T
    return values


def _quantise(model: Model, rows: Rows, values: np.ndarray, step: float) -> Code:
    """Return the symbols that are nearest to the coefficients and offsets (n, m)."""
    p, units = model.mixing.shape[1], column_units(model, step)
    if not model.prior.single_scale:
        return Code(p, step, _nearest(values, units))
    signs = np.sign(values[:, :p]).astype(np.int64)
    size = np.sqrt(np.square(signs @ rows.columns[:, :p].T).sum(1).mean())
    scale_step = step / size if size > 0 else 1.0
    scale = np.maximum(_nearest(np.abs(values[:, :p]).max(1), scale_step), 1)
    return Code(p, step, np.hstack([signs, _nearest(values[:, p:], units[p:])]), scale_step, scale)


def _nearest(values: np.ndarray, unit: Any) -> np.ndarray:
    """Return the values divided by the unit, rounded to integers."""
    unit = np.broadcast_to(unit, values.shape)
    ratio = np.divide(values, unit, out=np.zeros(values.shape), where=unit > 0)
    largest = np.abs(ratio).max(initial=0.0)
    if largest >= MOST_SYMBOLS / 2:
        raise ValueError(
            f"At this step a coefficient is {largest:.3g} steps from zero, and at most "
            f"{MOST_SYMBOLS // 2 - 1} can be coded: choose a larger step, or leave out rows that "
            "are far off."
        )
    return np.rint(ratio).astype(np.int64)


# --------------------------------------------------------------------------- what is minimised


class Price(NamedTuple):
    """The costs of the symbols low, low + 1, ... of one column."""

    low: int
    costs: np.ndarray

    def of(self, symbols: np.ndarray) -> np.ndarray:
        """Return the cost of each symbol, which is infinite if the symbol is not in the table."""
        index = symbols - self.low
        known = (index >= 0) & (index < len(self.costs))
        return np.where(known, self.costs[np.where(known, index, 0)], np.inf)

    def offers(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return symbols worth a look where real numbers are wanted, and their costs, (..., 4).

        They are the nearest symbol, its two neighbours, and zero. If zero is one of the first
        three, the fourth one costs infinitely much.
        """
        high = self.low + len(self.costs) - 1
        nearest = np.clip(np.rint(wanted), self.low, high).astype(np.int64)
        symbols = np.stack([nearest, nearest - 1, nearest + 1, np.zeros_like(nearest)], -1)
        costs = self.of(symbols)
        costs[..., 3] = np.where(np.abs(nearest) > 1, costs[..., 3], np.inf)
        return symbols, costs


def _prices(
    model: Model, code: Code, weight: float, choose: Callable[[Stream], Table]
) -> list[Price]:
    """Return the prices of the symbols of each column; those of scales, if any, come last."""
    of_columns: list[Price] = []
    of_scales: list[Price] = []
    for name, stream in streams_of(model, code).items():
        table = choose(stream)
        lengths = np.broadcast_to(
            code_lengths(table.frequencies), (stream.symbols.shape[1], table.size)
        )
        prices = [Price(table.low, weight * column) for column in lengths]
        (of_scales if name == "scale" else of_columns).extend(prices)
    return of_columns + of_scales


def _cost(rows: Rows, units: np.ndarray, symbols: np.ndarray, prices: list[Price]) -> np.ndarray:
    """Return what is minimised for each row, (n,); the cost of its scale is left out."""
    error = (rows.x - (units * symbols) @ rows.columns.T) * rows.seen
    return 0.5 * np.square(error).sum(1) + sum(
        price.of(column) for price, column in zip(prices, symbols.T, strict=False)
    )


# ---------------------------------------------------------------------------- one round


def _improve(
    model: Model, rows: Rows, code: Code, prices: list[Price], width: int
) -> tuple[Code, float]:
    """Return symbols that are better at these prices, and what they cost in all."""
    for method in (functools.partial(_beam, width=width), _sweep):
        units = units_of(model, code)
        proposed = method(rows, units, code.symbols, prices)
        old = _cost(rows, units, code.symbols, prices)
        new = _cost(rows, units, proposed, prices)
        code = code._replace(symbols=np.where((new < old)[:, None], proposed, code.symbols))
    if code.scale is not None:
        code = code._replace(scale=_best_scales(rows, code, units_of(model, code), prices[-1]))
    return code, float(np.minimum(old, new).sum())


def _sweep(rows: Rows, units: np.ndarray, symbols: np.ndarray, prices: list[Price]) -> np.ndarray:
    """Return the symbols after one sweep of coordinate descent.

    One column after the other is set to its best symbols given those of the other columns.
    """
    symbols = symbols.copy()
    residual = (rows.x - (units * symbols) @ rows.columns.T) * rows.seen
    norms = np.broadcast_to(rows.seen @ np.square(rows.columns), units.shape)
    for j, column in enumerate(rows.columns.T):
        b = residual @ column + norms[:, j] * units[:, j] * symbols[:, j]
        best = _best_symbols(b, norms[:, j], units[:, j], prices[j])
        residual -= np.outer(units[:, j] * (best - symbols[:, j]), column) * rows.seen
        symbols[:, j] = best
    return symbols


def _best_scales(rows: Rows, code: Code, units: np.ndarray, price: Price) -> np.ndarray:
    """Return the best scales of the rows given their signs, (n,)."""
    p = code.p
    direction = (code.symbols[:, :p] @ rows.columns[:, :p].T) * rows.seen
    without_offset = rows.x - (units[:, p:] * code.symbols[:, p:]) @ rows.columns[:, p:].T
    unit = np.full(len(direction), code.scale_step)
    linear, quadratic = (without_offset * direction).sum(1), np.square(direction).sum(1)
    scales = _best_symbols(linear, quadratic, unit, price)
    return np.where(code.active, np.maximum(scales, 1), np.asarray(code.scale))


def _best_symbols(b: np.ndarray, h: np.ndarray, unit: np.ndarray, price: Price) -> np.ndarray:
    """Return the symbols q (n,) that minimise h (unit q)^2 / 2 - b unit q + price of q."""
    slope = h * unit
    symbols, costs = price.offers(np.divide(b, slope, out=np.zeros_like(b), where=slope > 0))
    values = unit[:, None] * symbols
    costs += (0.5 * h[:, None] * values - b[:, None]) * values
    return np.take_along_axis(symbols, costs.argmin(1)[:, None], 1)[:, 0]


def _beam(
    rows: Rows, units: np.ndarray, symbols: np.ndarray, prices: list[Price], width: int
) -> np.ndarray:
    """Return the symbols that a beam search finds (sphere decoding).

    Missing entries are filled in with what the present symbols say of them.
    """
    Q, R, order = rows.triangle
    x = rows.x + (1 - rows.seen) * ((units * symbols) @ rows.columns.T)
    ordered_prices = [prices[j] for j in order]
    proposed = np.empty_like(symbols)
    for i in range(0, len(x), BLOCK):
        block = slice(i, i + BLOCK)
        proposed[block, order] = _best_paths(
            x[block] @ Q, R, units[block][:, order], ordered_prices, width
        )
    return proposed


def _best_paths(
    target: np.ndarray, R: np.ndarray, units: np.ndarray, prices: list[Price], width: int
) -> np.ndarray:
    """Return symbols q (n, m) of little |target - R (units q)|^2 / 2 + price of q.

    The columns are decided one after the other, from the last one; for each row the ``width``
    best beginnings are kept.
    """
    n, m = target.shape
    symbols, cost = np.zeros((n, 1, m), np.int64), np.zeros((n, 1))
    for j in reversed(range(m)):
        decided = symbols[:, :, j + 1 :] @ (R[j, j + 1 :] * units[:, j + 1 :])[:, :, None]
        left = target[:, None, j] - decided[:, :, 0]
        unit = R[j, j] * units[:, j, None]
        offered, costs = prices[j].offers(
            np.divide(left, unit, out=np.zeros_like(left), where=unit > 0)
        )
        costs = (
            costs
            + cost[:, :, None]
            + 0.5 * np.square(left[:, :, None] - unit[:, :, None] * offered)
        ).reshape(n, -1)
        kept = np.argpartition(costs, min(width, costs.shape[1]) - 1, 1)[:, :width]
        symbols = np.take_along_axis(symbols, (kept // offered.shape[2])[:, :, None], 1)
        symbols[:, :, j] = np.take_along_axis(offered.reshape(n, -1), kept, 1)
        cost = np.take_along_axis(costs, kept, 1)
    return np.take_along_axis(symbols, cost.argmin(1)[:, None, None], 1)[:, 0]
