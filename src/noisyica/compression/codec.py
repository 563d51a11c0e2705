"""Lossy compression: the coefficients of each row, quantised and entropy-coded.

Whoever has the model gets mean + A beta back from the symbols of beta. With one scale a row (TE-ICA) those are p signs in {-1, 0, 1} and a
scale, as the paper remarks; with the other priors, each coefficient is a multiple of a step.

Which symbols? The MAP estimate minimises ``|x - A beta|^2 / (2 sigma^2) - log prior(beta)``, and ``-log prior`` is what beta costs in nats:
MAP is the best trade of distortion for rate at one price. The encoder minimises the same sum, at a price that goes with the step and with
the code lengths as they are, over the symbols: by a beam search through a triangular form of A (the sphere decoding of communications),
and coordinate descent.

The bytes are a header, the words of a range coder (the package constriction), and check sums. They hold a fingerprint of the model, not
the model.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg
import scipy.stats

from noisyica import priors
from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.precision import double_precision
from noisyica.laws import Dirac, Law, Mixture, Shift
from noisyica.model import Model
from noisyica.priors import Independent, Offset, Prior, SingleScaleTernary

MAGIC = b"NICA"
VERSION = 1
HEADER = struct.Struct(
    "<4sB3I8s"
)  # magic, version, rows, columns, components, the model's fingerprint
STREAM = struct.Struct(
    "<BdiI"
)  # where the probabilities come from, step, least symbol, number of symbols
CHECK = struct.Struct("<I")
PRIOR, POOLED, EACH = range(3)
"""Where probabilities come from: the model's prior, one histogram, or one for each column of symbols."""
MOST_SYMBOLS = 1 << 14
RESOLUTION = 1 << 16
"""Most that the frequencies of a table sum to."""
LEAST_PROBABILITY = 2.0**-24
"""Of a symbol, in constriction's models."""
MOST_ROUNDS, TOLERANCE = 10, 0.002
"""Of the search, which ends when a round gains less than this share; code lengths are brought up to date before each."""
BLOCK = 1024
"""Rows whose candidates are in memory at a time."""
BINS = 128
"""Bins whose probabilities are computed at a time."""


@dataclasses.dataclass(frozen=True, repr=False)
class Compressed:
    """Rows as bytes, and what they cost.

    Attributes
    ----------
    data : bytes
        All that :func:`decompress` needs besides the model.
    shape : tuple (n, d)
    distortion : float
        Mean squared error of the observed entries.
    n_bytes : int
        Length of ``data``.
    rate, rate_per_entry : float
        Bits for each row and for each entry of X, with the header and the tables.
    """

    data: bytes
    shape: tuple[int, int]
    distortion: float

    @property
    def n_bytes(self) -> int:
        """Length of ``data``."""
        return len(self.data)

    @property
    def rate(self) -> float:
        """Bits for each row."""
        return 8 * self.n_bytes / self.shape[0]

    @property
    def rate_per_entry(self) -> float:
        """Bits for each entry of X."""
        return self.rate / self.shape[1]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"Compressed({n} x {d} in {self.n_bytes} bytes, {self.rate:.4g} bits a row, distortion={self.distortion:.4g})"


@double_precision()
def compress(model: Any, X: Any, step: float = 2.0, width: int = 16) -> Compressed:
    """Encode rows as the quantised, entropy-coded coefficients of a model.

    Parameters
    ----------
    model : Model or fitted NoisyICA
    X : array (n, d)
        Missing entries (NaN) are allowed; they come back filled in.
    step : float, default=2.0
        How coarse: from one value of a coefficient to the next, x moves by ``step`` standard deviations of the noise. That adds about
        ``p / d * step**2 / 12`` of the noise variance to the mean squared error. It is also the price of a bit: at ``sqrt(12)`` = 3.5,
        bits are spent as in the model's MAP estimate, and fewer above.
    width : int, default=16
        Candidates that the search keeps for each row: more take longer, and find better symbols.

    Returns
    -------
    Compressed

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, compress, decompress, priors
    >>> A = np.random.default_rng(0).normal(size=(64, 10))
    >>> model = Model(mixing=A, noise_variance=0.01, prior=priors.SingleScaleTernary(gamma=0.1))
    >>> X, _ = model.sample(1000, random_state=0)
    >>> small = compress(model, X)
    >>> print(f"{small.rate_per_entry:.2f} bits an entry, error {small.distortion:.3f}")
    0.28 bits an entry, error 0.010
    >>> decompress(model, small).shape
    (1000, 64)
    """
    _coder()
    model = _as_model(model)
    X = model.check(X)
    if not (isinstance(step, (int, float, np.number)) and np.isfinite(step) and step > 0):
        raise ValueError(
            f"step must be a positive number, in standard deviations of the noise; got {step!r}."
        )
    if not (isinstance(width, (int, np.integer)) and width >= 1):
        raise ValueError(f"width must be an integer of at least 1; got {width!r}.")
    if len(X) >= 1 << 32:
        raise ValueError(f"X has {len(X)} rows; compress fewer than {1 << 32} at a time.")
    code = _search(model, X, float(step), int(width))
    data = _pack(model, code)
    error = X - _reconstruct(model, code)
    return Compressed(data, (X.shape[0], X.shape[1]), float(np.nanmean(np.square(error))))


@double_precision()
def decompress(model: Any, data: Any, max_entries: int = 10**8) -> np.ndarray:
    """The rows that :func:`compress` encoded, as mean + A beta.

    Parameters
    ----------
    model : Model or fitted NoisyICA
        The one that they were compressed with.
    data : Compressed or bytes
    max_entries : int, default=10**8
        A header that promises more entries than this is refused: bytes from strangers can promise any number of rows.

    Returns
    -------
    X_hat : array (n, d)

    Raises
    ------
    ValueError
        If the data are damaged, or were compressed with another model.
    """
    _coder()
    model = _as_model(model)
    if isinstance(data, Compressed):
        data = data.data
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes, or what compress returns; got {type(data).__name__}.")
    return _reconstruct(model, _unpack(model, bytes(data), max_entries))


def _as_model(model: Any) -> Model:
    model = getattr(model, "model_", model)
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be a noisyica.Model or a fitted NoisyICA; got {type(model).__name__}."
        )
    return model


# ------------------------------------------------------------------------------------------------- symbols, and what they stand for


class _Code(NamedTuple):
    """The symbols of rows, and their units. Those of the offset, where rows have one, follow those of the p coefficients."""

    p: int
    step: float
    symbols: np.ndarray  # (n, m) integers; with one scale a row, the coefficients' are signs
    scale_step: float = 0.0
    scale: np.ndarray | None = None  # (n,) positive integers, where there is one scale a row

    @property
    def active(self) -> np.ndarray:
        """The rows that have a coefficient: the others have no use for a scale."""
        return (self.symbols[:, : self.p] != 0).any(1)


def _inner(prior: Prior) -> Prior:
    """The prior of the coefficients alone."""
    return prior.prior if isinstance(prior, Offset) else prior


def _columns(model: Model) -> np.ndarray:
    """A, and a column of ones where rows have offsets, (d, m)."""
    return np.hstack([model.mixing, np.ones((len(model.mixing), int(model.prior.has_offset)))])


def _noise(model: Model) -> np.ndarray:
    """The noise's standard deviation, (d,)."""
    return np.sqrt(np.broadcast_to(model.noise_variance, len(model.mixing)))


def _column_units(model: Model, step: float) -> np.ndarray:
    """What moves x by ``step`` standard deviations of the noise, for each column, (m,)."""
    norms = np.sqrt(np.square(_columns(model) / _noise(model)[:, None]).sum(0))
    return np.divide(
        step, norms, out=np.zeros_like(norms), where=norms > 0
    )  # a component that is off stays at zero


def _units(model: Model, code: _Code) -> np.ndarray:
    """What a symbol counts for, (n, m)."""
    units = np.tile(_column_units(model, code.step), (len(code.symbols), 1))
    if code.scale is not None:
        units[:, : code.p] = code.scale_step * code.scale[:, None]
    return units


def _reconstruct(model: Model, code: _Code) -> np.ndarray:
    return model.mean + (_units(model, code) * code.symbols) @ _columns(model).T


# ------------------------------------------------------------------------------------------------------------ the search for symbols


class _Rows(NamedTuple):
    """Rows and columns in units of the noise's standard deviation; missing entries are zero, in ``x`` and in ``seen``."""

    x: np.ndarray  # (n, d)
    seen: np.ndarray  # (n, d), or (1, d) where nothing is missing
    columns: np.ndarray  # (d, m)
    triangle: _Triangle


class _Triangle(NamedTuple):
    """|x - columns v|^2 + ridge v^2 = |x Q - R v[order]|^2 + a constant: seen from the last, each entry of v has a term of its own."""

    Q: np.ndarray  # (d, m)
    R: np.ndarray  # (m, m)
    order: np.ndarray  # (m,)


def _triangle(columns: np.ndarray, ridge: np.ndarray) -> _Triangle:
    """The columns in an order that leaves to the last, which are decided first, those that the rest says least about."""
    tall = np.vstack([columns, np.diag(np.sqrt(ridge))])
    left, order = tall.copy(), np.zeros(len(ridge), int)
    norms = np.square(left).sum(0)
    for i in range(len(order)):
        order[i] = j = norms.argmin()
        left -= np.outer(left[:, j], left[:, j] @ left) / max(norms[j], 1e-300)
        norms = np.square(left).sum(0)
        norms[order[: i + 1]] = np.inf
    Q, R = np.linalg.qr(tall[:, order])
    sign = np.where(np.diag(R) < 0, -1.0, 1.0)
    return _Triangle((Q * sign)[: len(columns)], R * sign[:, None], order)


def _rows(model: Model, X: np.ndarray, weight: float) -> _Rows:
    missing, noise = np.isnan(X), _noise(model)
    columns = _columns(model) / noise[:, None]
    variance = np.full(columns.shape[1], _inner(model.prior).variance())
    if isinstance(model.prior, Offset):
        variance[-1] = 2 * np.square(model.prior.offset_scale)
    # signs are coarse: they cannot make up for what the noise says of those that are decided before them
    ridge = (max if isinstance(_inner(model.prior), SingleScaleTernary) else min)(
        1.0, weight
    ) / np.maximum(variance, 1e-12)
    x = np.where(missing, 0.0, X - model.mean) / noise
    seen = (~missing).astype(float) if missing.any() else np.ones((1, X.shape[1]))
    return _Rows(x, seen, columns, _triangle(columns, ridge))


def _search(model: Model, X: np.ndarray, step: float, width: int) -> _Code:
    """Symbols of little squared error / 2 + weight * code length.

    A uniform quantiser of step D has the squared error D^2 / 12 and the code length -log D, so weight D^2 / 12 is where D is the best step.
    """
    weight = step * step / 12
    rows = _rows(model, X, weight)
    code = _quantise(model, rows, _coefficients(model, rows, weight), step)
    last = np.inf
    for _ in range(MOST_ROUNDS):
        prices = _prices(
            model, code, weight, _table if last < np.inf else lambda stream: _tables(stream)[0]
        )
        code, total = _improve(model, rows, code, prices, width)
        if total > (1 - TOLERANCE) * last:
            break
        last = total
    return code


def _improve(
    model: Model, rows: _Rows, code: _Code, prices: list[_Price], width: int
) -> tuple[_Code, float]:
    """Better symbols at these prices, and what they cost."""
    for better in (functools.partial(_beam, width=width), _sweep):
        units = _units(model, code)
        found = better(rows, units, code.symbols, prices)
        costs = _cost(rows, units, code.symbols, prices), _cost(rows, units, found, prices)
        code = code._replace(symbols=np.where((costs[1] < costs[0])[:, None], found, code.symbols))
    if code.scale is not None:
        code = code._replace(scale=_rescaled(rows, code, _units(model, code), prices[-1]))
    return code, float(np.minimum(*costs).sum())


def _coefficients(model: Model, rows: _Rows, weight: float) -> np.ndarray:
    """Coefficients and offsets (n, m) to begin with: ridge regression, or signs and scales near it."""
    values = _ridge(rows)
    prior, p = _inner(model.prior), model.mixing.shape[1]
    if isinstance(prior, SingleScaleTernary):
        # a scale s makes a mean square of 2 gamma s^2
        size = np.sqrt(
            np.square(values[:, :p]).mean(1, keepdims=True) / max(2 * prior.gamma, 1 / p)
        )
        y = np.sign(values[:, :p]) * (np.abs(values[:, :p]) > size / 2)
        direction = (y @ rows.columns[:, :p].T) * rows.seen
        quadratic, linear = (
            np.square(direction).sum(1),
            ((rows.x - values[:, p:] @ rows.columns[:, p:].T) * direction).sum(1),
        )
        s = np.divide(
            np.maximum(linear - weight, 0.0), quadratic, out=np.zeros(len(y)), where=quadratic > 0
        )
        values[:, :p] = s[:, None] * y
    return values


def _ridge(rows: _Rows) -> np.ndarray:
    """Ridge regression of the rows on the columns, (n, m)."""
    Q, R, order = rows.triangle
    values = np.zeros((len(rows.x), len(order)))
    for _ in range(
        1 if rows.seen.all() else 30
    ):  # EM: missing entries are filled in with what is found
        x = rows.x + (1 - rows.seen) * (values @ rows.columns.T)
        values[:, order] = scipy.linalg.solve_triangular(R, (x @ Q).T).T
    return values


def _quantise(model: Model, rows: _Rows, values: np.ndarray, step: float) -> _Code:
    """The nearest symbols."""
    p, units = model.mixing.shape[1], _column_units(model, step)
    if not isinstance(_inner(model.prior), SingleScaleTernary):
        return _Code(p, step, _nearest(values, units))
    signs = np.sign(values[:, :p]).astype(np.int64)
    size = np.sqrt(np.square(signs @ rows.columns[:, :p].T).sum(1).mean())
    scale_step = step / size if size > 0 else 1.0
    scale = np.maximum(_nearest(np.abs(values[:, :p]).max(1), scale_step), 1)
    return _Code(p, step, np.hstack([signs, _nearest(values[:, p:], units[p:])]), scale_step, scale)


def _nearest(values: np.ndarray, unit: Any) -> np.ndarray:
    unit = np.broadcast_to(unit, values.shape)
    ratio = np.divide(values, unit, out=np.zeros(values.shape), where=unit > 0)
    if np.abs(ratio).max(initial=0.0) >= MOST_SYMBOLS / 2:
        raise ValueError(
            f"At this step a coefficient is {np.abs(ratio).max():.3g} steps from zero, and at most {MOST_SYMBOLS // 2 - 1} can be coded: "
            "choose a larger step, or leave out rows that are far off."
        )
    return np.rint(ratio).astype(np.int64)


class _Price(NamedTuple):
    """What the symbols low, low + 1, ... cost."""

    low: int
    costs: np.ndarray

    def of(self, symbols: np.ndarray) -> np.ndarray:
        """The cost of each symbol; infinite where it has none."""
        index = symbols - self.low
        known = (index >= 0) & (index < len(self.costs))
        return np.where(known, self.costs[np.where(known, index, 0)], np.inf)

    def offers(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Symbols worth looking at, (..., 4): the nearest, its neighbours, and zero; and their costs, infinite where one is there twice."""
        nearest = np.clip(np.rint(wanted), self.low, self.low + len(self.costs) - 1).astype(
            np.int64
        )
        symbols = np.stack([nearest, nearest - 1, nearest + 1, np.zeros_like(nearest)], -1)
        costs = self.of(symbols)
        costs[..., 3] = np.where(np.abs(nearest) > 1, costs[..., 3], np.inf)
        return symbols, costs


def _prices(
    model: Model, code: _Code, weight: float, choose: Callable[[_Stream], _Table]
) -> list[_Price]:
    """Of the symbols of each column, and of the scale where there is one."""
    found: list[_Price] = []
    scale: list[_Price] = []
    for name, stream in _streams(model, code).items():
        table = choose(stream)
        lengths = np.broadcast_to(
            _lengths(table.frequencies), (stream.symbols.shape[1], table.size)
        )
        (scale if name == "scale" else found).extend(
            _Price(table.low, weight * row) for row in lengths
        )
    return found + scale


def _cost(rows: _Rows, units: np.ndarray, symbols: np.ndarray, prices: list[_Price]) -> np.ndarray:
    """What is minimised, of each row; its scale is given."""
    error = (rows.x - (units * symbols) @ rows.columns.T) * rows.seen
    return 0.5 * np.square(error).sum(1) + sum(
        price.of(column) for price, column in zip(prices, symbols.T, strict=False)
    )


def _sweep(rows: _Rows, units: np.ndarray, symbols: np.ndarray, prices: list[_Price]) -> np.ndarray:
    """Coordinate descent: each symbol at its best given the others, once."""
    symbols = symbols.copy()
    left = (rows.x - (units * symbols) @ rows.columns.T) * rows.seen
    own = np.broadcast_to(rows.seen @ np.square(rows.columns), units.shape)
    for j, a in enumerate(rows.columns.T):
        b = left @ a + own[:, j] * units[:, j] * symbols[:, j]
        new = _best(b, own[:, j], units[:, j], prices[j])
        left -= np.outer(units[:, j] * (new - symbols[:, j]), a) * rows.seen
        symbols[:, j] = new
    return symbols


def _rescaled(rows: _Rows, code: _Code, units: np.ndarray, price: _Price) -> np.ndarray:
    """The best scales given the signs."""
    p = code.p
    direction = (code.symbols[:, :p] @ rows.columns[:, :p].T) * rows.seen
    left = (rows.x - (units[:, p:] * code.symbols[:, p:]) @ rows.columns[:, p:].T) * direction
    unit = np.full(len(left), code.scale_step)
    found = _best(left.sum(1), np.square(direction).sum(1), unit, price)
    return np.where(code.active, np.maximum(found, 1), np.asarray(code.scale))


def _best(b: np.ndarray, h: np.ndarray, unit: np.ndarray, price: _Price) -> np.ndarray:
    """The symbols q that minimise h (unit q)^2 / 2 - b unit q + price."""
    slope = h * unit
    q, costs = price.offers(np.divide(b, slope, out=np.zeros_like(b), where=slope > 0))
    values = unit[:, None] * q
    costs += (0.5 * h[:, None] * values - b[:, None]) * values
    return np.take_along_axis(q, costs.argmin(1)[:, None], 1)[:, 0]


def _beam(
    rows: _Rows, units: np.ndarray, symbols: np.ndarray, prices: list[_Price], width: int
) -> np.ndarray:
    """Decide one column after the other, keeping the ``width`` best beginnings of each row (sphere decoding)."""
    Q, R, order = rows.triangle
    x = rows.x + (1 - rows.seen) * (
        (units * symbols) @ rows.columns.T
    )  # missing entries: as they are decoded now
    found = np.empty_like(symbols)
    for i in range(0, len(x), BLOCK):
        part = slice(i, i + BLOCK)
        found[part, order] = _paths(
            x[part] @ Q, R, units[part][:, order], [prices[j] for j in order], width
        )
    return found


def _paths(
    target: np.ndarray, R: np.ndarray, units: np.ndarray, prices: list[_Price], width: int
) -> np.ndarray:
    """Symbols q of little |target - R (units q)|^2 / 2 + price."""
    n, m = target.shape
    symbols, cost = np.zeros((n, 1, m), np.int64), np.zeros((n, 1))
    for j in reversed(range(m)):
        decided = symbols[:, :, j + 1 :] @ (R[j, j + 1 :] * units[:, j + 1 :])[:, :, None]
        left = target[:, None, j] - decided[:, :, 0]
        unit = R[j, j] * units[:, j, None]
        q, costs = prices[j].offers(np.divide(left, unit, out=np.zeros_like(left), where=unit > 0))
        costs = (
            costs + cost[:, :, None] + 0.5 * np.square(left[:, :, None] - unit[:, :, None] * q)
        ).reshape(n, -1)
        keep = np.argpartition(costs, min(width, costs.shape[1]) - 1, 1)[:, :width]
        symbols = np.take_along_axis(symbols, (keep // q.shape[2])[:, :, None], 1)
        symbols[:, :, j] = np.take_along_axis(q.reshape(n, -1), keep, 1)
        cost = np.take_along_axis(costs, keep, 1)
    return np.take_along_axis(symbols, cost.argmin(1)[:, None, None], 1)[:, 0]


# ------------------------------------------------------------------------------------------------------------------- probabilities


class _Stream(NamedTuple):
    """Symbols of one kind, (rows, columns), those that always have a place in tables, and the prior as a function.

    ``prior(low, size)`` is the probabilities of the symbols low, low + 1, ... in each column.
    """

    symbols: np.ndarray
    step: float
    span: tuple[int, int]
    prior: Callable[[int, int], np.ndarray | None]


class _Table(NamedTuple):
    """The frequencies of the symbols low, low + 1, ... in all columns (1, size), or in each (columns, size)."""

    source: int
    low: int
    size: int
    frequencies: np.ndarray


def _streams(model: Model, code: _Code) -> dict[str, _Stream]:
    """The kinds of symbols, in the order in which they are coded."""
    prior, p, units = _inner(model.prior), code.p, _column_units(model, code.step)

    def of_coefficients(low: int, size: int) -> np.ndarray | None:
        if isinstance(prior, SingleScaleTernary):
            return np.tile([prior.gamma, 1 - 2 * prior.gamma, prior.gamma], (p, 1))[
                :, low + 1 : low + 1 + size
            ]
        return _bin_masses(prior, units[:p], low, size) if isinstance(prior, Independent) else None

    def of_scale(low: int, size: int) -> np.ndarray:
        return np.diff(scipy.stats.expon.cdf(code.scale_step * _edges(low, size)))[None]

    def of_offset(low: int, size: int) -> np.ndarray:
        scale = model.prior.offset_scale  # type: ignore[attr-defined]
        return np.diff(scipy.stats.laplace.cdf(units[p] * _edges(low, size), scale=scale))[None]

    span = (0, 0) if code.scale is None else (-1, 1)
    streams = {"coefficients": _Stream(code.symbols[:, :p], code.step, span, of_coefficients)}
    if code.scale is not None:
        streams["scale"] = _Stream(
            code.scale[code.active][:, None], code.scale_step, (1, 1), of_scale
        )
    if model.prior.has_offset:
        streams["offset"] = _Stream(code.symbols[:, p:], code.step, (0, 0), of_offset)
    return streams


def _edges(low: int, size: int) -> np.ndarray:
    """Where what is rounded to low, low + 1, ... begins and ends."""
    return low - 0.5 + np.arange(size + 1)


_GAUSS = np.polynomial.legendre.leggauss(4)
NODES = np.concatenate([_GAUSS[0] - 1, _GAUSS[0] + 1]) / 4
WEIGHTS = np.concatenate([_GAUSS[1], _GAUSS[1]]) / 4
"""Gauss' rule on each half of a bin: laws have kinks and atoms in the middle of one."""


def _bin_masses(prior: Independent, units: np.ndarray, low: int, size: int) -> np.ndarray:
    """Probabilities that component j is in units[j] (q - 1/2, q + 1/2), q = low, low + 1, ..., (components, size)."""
    found = []
    for j, unit in enumerate(units):
        law = jax.tree.map(lambda leaf: leaf[j], prior.law) if prior.components else prior.law  # noqa: B023
        masses = _law_masses(cast(law, float), unit, low, size)
        for location, mass in _atoms(to_numpy(law)):
            index = round(location / unit) - low if unit > 0 else -low
            if 0 <= index < size:
                masses[index] += mass
        found.append(masses)
    return np.array(found)


def _law_masses(law: Law, unit: float, low: int, size: int) -> np.ndarray:
    """Those of one component, atoms left out."""
    masses = np.zeros(size)
    for k in range(0, size, BINS):  # always as many, so that one compilation serves
        t = unit * (low + k + np.arange(BINS)[:, None] + NODES)
        density = np.exp(np.asarray(_log_density(law, t)))
        masses[k : k + BINS] = (unit * np.where(np.isfinite(density), density, 0.0) @ WEIGHTS)[
            : size - k
        ]
    return masses


@jax.jit
def _log_density(law: Law, t: jax.Array) -> jax.Array:
    return law.log_density(t)


def _atoms(law: Law) -> Iterator[tuple[float, float]]:
    """Locations and masses of a law's atoms."""
    if isinstance(law, Dirac):
        yield float(law.location), 1.0  # type: ignore[arg-type]
    elif isinstance(law, Mixture):
        for part, weight in zip(law.laws, np.asarray(law.weights), strict=True):
            yield from ((location, mass * float(weight)) for location, mass in _atoms(part))
    elif isinstance(law, Shift):
        yield from ((location + float(law.by), mass) for location, mass in _atoms(law.law))  # type: ignore[arg-type]


def _frequencies(masses: np.ndarray) -> np.ndarray:
    """Integers in proportion to masses (columns, size), none of them zero: encoder and decoder agree on those to the last digit."""
    masses = np.where(masses.sum(1, keepdims=True) > 0, np.maximum(masses, 0.0), 1.0)
    return 1 + np.floor(
        (RESOLUTION - masses.shape[1]) * masses / masses.sum(1, keepdims=True)
    ).astype(np.int64)


def _histogram(counts: np.ndarray) -> np.ndarray:
    """Counts (columns, size), scaled down where they are large; none that is positive becomes zero."""
    total = int(counts[0].sum())
    if total <= RESOLUTION:
        return counts
    scaled = np.where(counts > 0, 1 + (RESOLUTION - counts.shape[1]) * counts // total, 0)
    scaled[np.arange(len(counts)), counts.argmax(1)] += RESOLUTION - scaled.sum(
        1
    )  # the decoder knows the sum
    return scaled


def _lengths(frequencies: np.ndarray) -> np.ndarray:
    """Code lengths in nats; a symbol that was never seen has the coder's least probability."""
    return -np.log(np.maximum(frequencies / frequencies.sum(1, keepdims=True), LEAST_PROBABILITY))


def _tables(stream: _Stream) -> list[_Table]:
    """The tables to choose among: the prior's, if it has one, comes first."""
    symbols, (low, high) = stream.symbols, stream.span
    low, high = int(symbols.min(initial=low)), int(symbols.max(initial=high))
    size = high - low + 1
    masses = stream.prior(low, size)
    counts = _counts(symbols, low, size)
    found = [] if masses is None else [_Table(PRIOR, low, size, _frequencies(masses))]
    if not symbols.size:
        return found
    return [
        *found,
        _Table(POOLED, low, size, _histogram(counts.sum(0, keepdims=True))),
        _Table(EACH, low, size, _histogram(counts)),
    ]


def _counts(symbols: np.ndarray, low: int, size: int) -> np.ndarray:
    """How often each column has the symbols low, low + 1, ..., (columns, size)."""
    return np.array([np.bincount(column - low, minlength=size) for column in symbols.T])


def _table(stream: _Stream) -> _Table:
    """The table that makes the code shortest, its own length included."""

    def length(table: _Table) -> float:
        return float(
            (_counts(stream.symbols, table.low, table.size) * _lengths(table.frequencies)).sum()
        ) + _own_length(table)

    return min(_tables(stream), key=length)


def _order(low: int, size: int) -> np.ndarray:
    """The order in which frequencies are written: from zero outwards, the large ones first, since each bounds those that follow."""
    return np.argsort(np.abs(low + np.arange(size)), kind="stable")


def _own_length(table: _Table) -> float:
    """Nats that it takes to write a table."""
    if table.source == PRIOR:
        return 0.0
    written = table.frequencies[:, _order(table.low, table.size)]
    left = table.frequencies.sum(1, keepdims=True) - np.cumsum(written, 1) + written
    return float(np.log1p(left[:, :-1]).sum())


# -------------------------------------------------------------------------------------------------------------------------- bytes


def _coder() -> Any:
    """The library of entropy coders."""
    try:
        import constriction
    except ImportError as error:
        raise ImportError(
            "Compression needs the package constriction: pip install 'noisyica[compression]'."
        ) from error
    return constriction.stream


def _fingerprint(model: Model) -> bytes:
    """Eight bytes that another model would hardly have."""
    try:
        plain = priors.to_plain(model.prior)
    except (TypeError, ValueError):  # a prior that is made of Python functions
        plain = type(model.prior).__name__
    digest = hashlib.sha256(json.dumps(plain).encode())
    for part in (model.mixing, model.mean, model.noise_variance):
        values = np.ascontiguousarray(part, "<f8")
        digest.update(repr(values.shape).encode() + values.tobytes())
    return digest.digest()[:8]


def _pack(model: Model, code: _Code) -> bytes:
    encoder = _coder().queue.RangeEncoder()
    header = HEADER.pack(
        MAGIC, VERSION, len(code.symbols), *model.mixing.shape, _fingerprint(model)
    )
    for stream in _streams(model, code).values():
        table = _table(stream)
        header += STREAM.pack(table.source, stream.step, table.low, table.size)
        _write_table(encoder, table)
        columns = stream.symbols.reshape(1, -1) if table.source == POOLED else stream.symbols.T
        for column, frequencies in zip(columns, table.frequencies, strict=True):
            if table.size > 1 and column.size:  # a symbol that is alone needs no bits
                encoder.encode((column - table.low).astype(np.int32), _categorical(frequencies))
    body = (
        header + encoder.get_compressed().astype("<u4").tobytes() + CHECK.pack(_symbol_check(code))
    )
    return body + CHECK.pack(zlib.crc32(body))


def _symbol_check(code: _Code) -> int:
    """A check sum of the symbols: those of a prior that only looks the same, or of another machine's rounding, would differ."""
    scale = code.scale[code.active] if code.scale is not None else np.zeros(0)
    return zlib.crc32(
        scale.astype("<i4").tobytes(), zlib.crc32(code.symbols.astype("<i4").tobytes())
    )


def _categorical(frequencies: np.ndarray) -> Any:
    return _coder().model.Categorical(frequencies.astype(float), perfect=False)


def _write_table(encoder: Any, table: _Table) -> None:
    """Each frequency as one of the numbers from 0 to what is left of the sum."""
    if table.source == PRIOR:
        return
    for frequencies in table.frequencies[:, _order(table.low, table.size)]:
        left = int(frequencies.sum())
        for frequency in frequencies[:-1].tolist():
            if left > 0:
                encoder.encode(frequency, _coder().model.Uniform(left + 1))
            left -= frequency


def _read_table(
    decoder: Any, source: int, low: int, size: int, shape: tuple[int, int]
) -> np.ndarray:
    """The frequencies that :func:`_write_table` wrote, for symbols of a shape."""
    count, total = (1, shape[0] * shape[1]) if source == POOLED else (shape[1], shape[0])
    frequencies = np.zeros((count, size), np.int64)
    order = _order(low, size)
    for row in frequencies:
        left = min(total, RESOLUTION)
        for k in order[:-1]:
            if left > 0:
                row[k] = decoder.decode(_coder().model.Uniform(left + 1))
            left -= row[k]
        row[order[-1]] = left
    return frequencies


DAMAGED = "The compressed data are damaged: "


def _unpack(model: Model, data: bytes, max_entries: int) -> _Code:
    n = _check_header(model, data, max_entries)
    kinds = 1 + isinstance(_inner(model.prior), SingleScaleTernary) + model.prior.has_offset
    start, end = HEADER.size + kinds * STREAM.size, len(data) - 2 * CHECK.size
    if end < start or (end - start) % 4:
        raise ValueError(DAMAGED + "they end too soon.")
    heads = [STREAM.unpack_from(data, HEADER.size + i * STREAM.size) for i in range(kinds)]
    decoder = _coder().queue.RangeDecoder(np.frombuffer(data[start:end], "<u4").astype(np.uint32))
    try:
        code = _read_code(model, n, heads, decoder)
    except AssertionError as error:  # constriction's word for what no encoder writes
        raise ValueError(DAMAGED + str(error)) from error
    if _symbol_check(code) != CHECK.unpack_from(data, end)[0]:
        raise ValueError(
            DAMAGED
            + "the check sum of the symbols is wrong, or the model's prior is a function other than the one it was."
        )
    return code


def _check_header(model: Model, data: bytes, max_entries: int) -> int:
    """The number of rows, if all that can be checked before decoding is as it should be."""
    if len(data) < HEADER.size + 2 * CHECK.size or not data.startswith(MAGIC):
        raise ValueError(
            "These bytes are not what noisyica.compress makes, or only the beginning of it."
        )
    _, version, n, d, p, fingerprint = HEADER.unpack_from(data)
    if version != VERSION:
        raise ValueError(
            f"The compressed data have format {version}, and this version of noisyica reads format {VERSION} only: upgrade."
        )
    if zlib.crc32(data[: -CHECK.size]) != CHECK.unpack(data[-CHECK.size :])[0]:
        raise ValueError(
            DAMAGED + "their check sum is wrong. Something was changed or cut off on the way."
        )
    if (d, p) != model.mixing.shape or fingerprint != _fingerprint(model):
        raise ValueError(
            f"The data were compressed with another model (of {p} components in {d} dimensions) than {model!r}: decompress with the same, "
            "to the last digit."
        )
    if n < 1 or n * max(d, p) > max_entries:
        raise ValueError(
            f"The data promise {n} rows of {d} entries; max_entries={max_entries}. Raise it if you trust where they come from."
        )
    return int(n)


def _read_code(model: Model, n: int, heads: list[Any], decoder: Any) -> _Code:
    """The symbols, stream by stream: each tells how the next is to be read."""
    p = model.mixing.shape[1]
    code = _Code(p, heads[0][1], np.zeros((n, p + model.prior.has_offset), np.int64))
    code.symbols[:, :p] = _read_stream(_streams(model, code)["coefficients"], heads.pop(0), decoder)
    if isinstance(_inner(model.prior), SingleScaleTernary):
        if np.abs(code.symbols[:, :p]).max() > 1:
            raise ValueError(DAMAGED + "a sign is none of -1, 0, 1.")
        scale = np.ones(n, np.int64)
        code = code._replace(scale_step=heads[0][1], scale=scale)
        scale[code.active] = _read_stream(_streams(model, code)["scale"], heads.pop(0), decoder)[
            :, 0
        ]
    if model.prior.has_offset:
        code.symbols[:, p:] = _read_stream(_streams(model, code)["offset"], heads.pop(0), decoder)
    return code


def _read_stream(stream: _Stream, head: Any, decoder: Any) -> np.ndarray:
    """Symbols in the shape of those of ``stream``."""
    source, step, low, size = head
    if not (
        source <= EACH
        and 1e-100 < step < 1e100
        and 1 <= size <= MOST_SYMBOLS
        and abs(low) < MOST_SYMBOLS
    ):
        raise ValueError(DAMAGED + "a stream of symbols has an impossible header.")
    shape = stream.symbols.shape
    if not stream.symbols.size:
        return stream.symbols
    masses = stream.prior(low, size) if source == PRIOR else None
    if source == PRIOR and (masses is None or masses.shape != (shape[1], size)):
        raise ValueError(DAMAGED + "the prior has no such symbols.")
    frequencies = (
        _read_table(decoder, source, low, size, shape) if masses is None else _frequencies(masses)
    )
    if size == 1:
        return np.full(shape, low)
    if source == POOLED:
        return low + decoder.decode(_categorical(frequencies[0]), shape[0] * shape[1]).astype(
            np.int64
        ).reshape(shape)
    return (
        low
        + np.array([decoder.decode(_categorical(row), shape[0]) for row in frequencies], np.int64).T
    )
