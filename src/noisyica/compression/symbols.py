"""The symbols of rows, and the rows that they stand for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noisyica.model import Model

MOST_SYMBOLS = 1 << 14
"""The maximum number of different symbols of one kind."""


class Code(NamedTuple):
    """The symbols of n rows, and the units in which they count.

    Attributes
    ----------
    p : int
        The number of components.
    step : float
        The unit of a coefficient or an offset moves x by this many standard deviations of the
        noise.
    symbols : array of int (n, m)
        A column for each component, and one for the offset if the prior has one. If the rows have
        scales, the symbols of the components are signs.
    scale_step : float
        The unit of the scales.
    scale : array of int (n,), optional
        The scales of the rows in that unit, at least 1, if the prior has one scale per row.
    """

    p: int
    step: float
    symbols: np.ndarray
    scale_step: float = 0.0
    scale: np.ndarray | None = None

    @property
    def active(self) -> np.ndarray:
        """The rows in which some component is on, (n,): the scales of the others do not matter."""
        return (self.symbols[:, : self.p] != 0).any(1)


def columns_of(model: Model) -> np.ndarray:
    """Return A, with a column of ones beside it if the prior has an offset, (d, m)."""
    return np.hstack([model.mixing, np.ones((len(model.mixing), int(model.prior.has_offset)))])


def noise_scale(model: Model) -> np.ndarray:
    """Return the standard deviation of the noise in each dimension, (d,)."""
    return np.sqrt(np.broadcast_to(model.noise_variance, len(model.mixing)))


def column_units(model: Model, step: float) -> np.ndarray:
    """Return how much of each column moves x by ``step`` standard deviations of the noise, (m,).

    It is 0 for a column of zeros.
    """
    norms = np.sqrt(np.square(columns_of(model) / noise_scale(model)[:, None]).sum(0))
    return np.divide(step, norms, out=np.zeros_like(norms), where=norms > 0)


def units_of(model: Model, code: Code) -> np.ndarray:
    """Return the factors that turn symbols into coefficients and offsets, (n, m)."""
    units = np.tile(column_units(model, code.step), (len(code.symbols), 1))
    if code.scale is not None:
        units[:, : code.p] = code.scale_step * code.scale[:, None]
    return units


def reconstruct(model: Model, code: Code) -> np.ndarray:
    """Return the rows that the symbols stand for, mean + A beta, (n, d)."""
    return model.mean + (units_of(model, code) * code.symbols) @ columns_of(model).T
