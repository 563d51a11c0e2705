"""Smooth columns (``mixing_prior=Smooth(...)``), for rows over points that have neighbours.

In the eigenbasis of a graph's Laplacian isotropic noise stays isotropic, and smooth columns are
again independent entries: entry k of column j is N(0, tau_j^2 / (1 + lambda_j e_k)^2), e_k being
the eigenvalue, so that the rough entries are small. The rows are brought into that basis before
learning begins (:mod:`noisyica.rows.basis`), and the components are brought back at its end. With
lambda_j = 0 the column is that of ``mixing_prior="normal"``.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisyica._jax.arrays import to_numpy
from noisyica.engine.mixing.base import MixingPrior, unit_prior, with_scale
from noisyica.engine.mixing.by_law import draw_columns
from noisyica.engine.statistics import Mixing, Statistics
from noisyica.laws import Normal
from noisyica.posterior.parameters import Parameters
from noisyica.rows.basis import Basis

Array = jax.Array

TRIED = 256
"""The number of values of lambda among which the M-step begins to look."""


class Spectra(NamedTuple):
    """The parameters of smooth columns, and what does not change of them."""

    scale: Any  # (p,)  tau
    smoothness: Any  # (p,)  lambda
    eigenvalues: Any  # (d,)
    tried: Any  # (TRIED,)  values of lambda
    logs: Any  # (TRIED,)  the mean of log(1 + lambda e) over the eigenvalues, for each of these

    @property
    def symmetric(self) -> bool:
        """Whether the law of the entries is symmetric."""
        return True

    def deviations(self) -> Any:
        """Return the standard deviations (p, d) of the entries of the columns."""
        return self.scale[:, None] / (1 + self.smoothness[:, None] * self.eigenvalues)


class SmoothEntries(NamedTuple):
    """What was learnt of smooth components: their entries' standard deviations in the eigenbasis.

    They are ``scale / (1 + smoothness * e)``, e being the eigenvalues.
    """

    scale: np.ndarray  # (p,)  in the units of X
    smoothness: np.ndarray  # (p,)

    @property
    def length(self) -> np.ndarray:
        """About how many steps from point to point a component goes on as it is, (p,)."""
        return np.sqrt(self.smoothness)


def first_spectra(basis: Basis, d: int, p: int) -> Spectra:
    """Return the parameters of p columns of d entries in this basis before learning."""
    e = basis.eigenvalues(d)
    # from columns that are not smoothed at all to columns that hardly vary
    tried = np.geomspace(1e-6 / e.max(), 1e3 / e[e > 1e-9 * e.max()].min(), TRIED)
    logs = np.array([np.log1p(value * basis.values).mean() for value in tried])
    return Spectra(np.ones(p), np.zeros(p), e, tried, logs)


@dataclasses.dataclass(frozen=True)
class SmoothColumns(MixingPrior):
    """Normal entries in an eigenbasis, whose scale and smoothness are learnt for each column."""

    normal = True

    def begin(self, parameters: Parameters, floor: Any) -> Any:
        square = np.square(parameters.A) + np.min(floor)
        return learn_spectra(square, to_numpy(parameters.mixing), floor, np)

    def draw(
        self,
        key: Array,
        statistics: Statistics,
        parameters: Parameters,
        count: Array,
        free_mean: bool,
    ) -> tuple[Array, Mixing]:
        spectra = parameters.mixing
        prior = with_scale(unit_prior(Normal(), len(spectra.scale)), spectra.deviations())
        return draw_columns(key, statistics, parameters, prior, count, free_mean)

    def mstep(self, mixing: Mixing, old: Any, floor: Array) -> Any:
        return learn_spectra(mixing.square, old, floor, jnp)

    def pull(self, parameters: Parameters, count: Array) -> tuple[Array, Array]:
        A, variances = parameters.A, jnp.square(parameters.mixing.deviations()).T
        # the curvature is left out: it only shortens the steps
        return A.T @ (A / variances) / count, jnp.zeros((A.shape[1], A.shape[1]))

    def log_density(self, parameters: Parameters) -> float:
        deviations = to_numpy(parameters.mixing).deviations()
        terms = np.square(np.asarray(parameters.A).T / deviations) + 2 * np.log(deviations)
        return float(-0.5 * terms.sum())

    def learnt(self, parameters: Parameters, unit: float, order: np.ndarray) -> SmoothEntries:
        spectra: Any = to_numpy(parameters.mixing)
        return SmoothEntries(unit * spectra.scale[order], spectra.smoothness[order])


def learn_spectra(square: Any, old: Spectra, floor: Any, xp: Any) -> Spectra:
    """Return the parameters of maximum likelihood given the mean squares (d, p) of the entries.

    Given lambda, tau^2 is the mean of square (1 + lambda e)^2, a polynomial in lambda whose
    coefficients are three sums over the entries. What is left is a function of lambda alone. It is
    maximised over the values ``old.tried``, and between these by a parabola. ``xp`` is the module
    of arrays, NumPy or JAX's.
    """
    e = old.eigenvalues
    powers = xp.stack([xp.ones_like(e), 2 * e, e * e])
    sums = powers @ square / len(e)  # (3, p)

    def scale_squared(smoothness: Any) -> Any:
        return sums[0] + smoothness * (sums[1] + smoothness * sums[2])

    profile = old.logs[:, None] - 0.5 * xp.log(scale_squared(old.tried[:, None]))
    best = xp.clip(xp.argmax(profile, 0), 1, TRIED - 2)
    low, middle, high = (xp.take_along_axis(profile, best[None] + i, 0)[0] for i in (-1, 0, 1))
    bend = xp.maximum(2 * middle - low - high, 1e-300)
    step = xp.clip(0.5 * (high - low) / bend, -1.0, 1.0)
    smoothness = old.tried[best] * (old.tried[1] / old.tried[0]) ** step
    scale = xp.sqrt(xp.maximum(scale_squared(smoothness), xp.min(floor)))
    return old._replace(scale=scale, smoothness=smoothness)
