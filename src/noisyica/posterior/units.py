"""The unit in which posteriors are computed, so that they do not depend on the units of x."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.precision import double_precision
from noisyica.posterior.parameters import Parameters
from noisyica.priors import LEAST_SCALE
from noisyica.rows.source import InUnits

RANGE = 1e140
"""The largest size of rows, and the inverse of the smallest: their squares are within range."""
LEAST_RATIO = 1e-10
"""The minimum ratio of a column's noise, its standard deviation, to what the components give it.

With less, the sampler would compute beyond the range of single precision."""
MOST_DEVIATIONS = 1e17
"""The maximum number of standard deviations of the noise that rows may be away from the mean."""


@double_precision()
def in_standard_units(parameters: Parameters, X: Any) -> tuple[Parameters, Any, float]:
    """Return parameters and rows in a unit in which the rows are of order one, and the unit.

    The unit is a power of two, so that nothing is rounded. Coefficients have no units: they are the
    same. The density of a row is that in the units of X times the unit to the power of the number
    of its entries.
    """
    unit = _unit(parameters)
    theta = cast(in_units(parameters, unit), float)
    most = MOST_DEVIATIONS * np.sqrt(np.broadcast_to(theta.sigma2, theta.mean.shape))
    return theta, InUnits(X, unit, np.asarray(theta.mean), most), unit


def in_units(parameters: Parameters, unit: float) -> Parameters:
    """Return the parameters for x in units of ``unit``."""
    values: Any = to_numpy(parameters)
    A, mean, sigma2, prior, _, dof = values
    # not by the square of the unit, which may be beyond the range of floating point
    scaled = (A / unit, mean / unit, sigma2 / unit / unit, prior.rescaled(unit))
    converted: Any = (*scaled, None, dof)
    return Parameters(*converted)


def check_range(size: float, what: str) -> None:
    """Raise ValueError if squares of numbers of this size are beyond the range of floating point.

    ``what`` says of what it is the size.
    """
    if not 1 / RANGE <= size <= RANGE:
        raise ValueError(
            f"{what} are of size {size:.3g}, and squares of such numbers are beyond the range of "
            f"floating point: rescale the data, to numbers from {1 / RANGE:g} to {RANGE:g}."
        )


def _unit(parameters: Parameters) -> float:
    """Return the power of two that is nearest to the size of the rows of a model."""
    values: Any = to_numpy(parameters)
    noise, offset = np.sqrt(values.sigma2), np.asarray(values.prior.offset_scale)
    signal = np.abs(values.A).max(1, initial=0.0) + offset
    size = float(max(signal.max(), noise.max()))
    check_range(size, "The rows of this model")
    if (noise < LEAST_RATIO * signal).any():
        raise ValueError(
            "The noise is too small: in some column its standard deviation is less than "
            f"{LEAST_RATIO:g} times what the components give, and cannot be told from zero."
        )
    if values.prior.has_offset and offset < LEAST_SCALE * size:
        raise ValueError(
            f"offset_scale={offset:.3g} is too small beside rows of size {size:.3g}: it has their "
            "units."
        )
    return float(2.0 ** np.round(np.log2(size)))
