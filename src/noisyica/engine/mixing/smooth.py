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
from noisyica.engine.regression import equations
from noisyica.engine.statistics import Mixing, Statistics
from noisyica.laws import Normal
from noisyica.posterior.parameters import Parameters
from noisyica.rows.basis import Basis
from noisyica.rows.starts import SMOOTHED

Array = jax.Array

TRIED = 256
"""The number of values of lambda from none to all that can be told apart."""
STEPS = 2
"""The number of steps of Fisher scoring in an M-step."""


class Spectra(NamedTuple):
    """The parameters of smooth columns, and what does not change of them."""

    scale: Any  # (p,)  tau
    smoothness: Any  # (p,)  lambda
    eigenvalues: Any  # (d,)
    tried: Any  # (TRIED,)  values of lambda, increasing

    @property
    def symmetric(self) -> bool:
        """Whether the law of the entries is symmetric."""
        return True

    def deviations(self) -> Any:
        """Return the standard deviations (p, d) of the entries of the columns."""
        return self.scale[:, None] / (1 + self.smoothness[:, None] * self.eigenvalues)

    def log_likelihood(self, square: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return that of estimates of entries, given by their squares (d, p), for each column.

        ``noise`` (p,) is the variance of their errors.
        """
        variance = np.square(self.deviations()).T + noise
        return -0.5 * np.sum(np.log(variance) + square / variance, 0)


class Seen(NamedTuple):
    """What the rows say of the entries of A by themselves, given the coefficients.

    Averages over iterations are weighted: squares and variances are multiplied by ``weight``.
    """

    square: Any  # (d, p)  squares of the entries' estimates by least squares, given other columns
    noise: Any  # (p,)  the variance of their errors
    weight: Any  # (p,)


class SmoothEntries(NamedTuple):
    """What was learnt of smooth components: their entries' standard deviations in the eigenbasis.

    They are ``scale / (1 + smoothness * e)``, e being the eigenvalues.
    """

    scale: np.ndarray  # (p,)  in the units of X
    smoothness: np.ndarray  # (p,)

    @property
    def length(self) -> np.ndarray:
        """The number of steps from point to point over which components stay nearly the same, (p,).

        A step is one from a point to a neighbour, of weight 1.
        """
        return np.sqrt(self.smoothness)


def first_spectra(basis: Basis, d: int, p: int) -> Spectra:
    """Return the parameters of p columns of d entries in this basis before learning."""
    e = basis.eigenvalues(d)
    # from columns that are not smoothed at all to columns that hardly vary
    tried = np.geomspace(1e-6 / e.max(), 1e3 / e[e > 1e-9 * e.max()].min(), TRIED)
    return Spectra(np.ones(p), np.full(p, tried[0]), e, tried)


@dataclasses.dataclass(frozen=True)
class SmoothColumns(MixingPrior):
    """Normal entries in an eigenbasis, whose scale and smoothness are learnt for each column."""

    normal = True
    starts = (f"{SMOOTHED}4", f"{SMOOTHED}40")

    def begin(self, parameters: Parameters, floor: Any, count: Any) -> Any:
        """Return the likeliest of several smoothnesses, A being known up to what noise makes of it.

        Given ``count`` rows, noise adds sigma^2 / (count E[beta^2]) to the square of an entry.
        """
        spectra, square = to_numpy(parameters.mixing), np.square(np.asarray(parameters.A))
        size = max(float(np.max(parameters.prior.variance())), 1e-3)
        noise = np.full(square.shape[1], np.mean(parameters.sigma2) / (count * size))
        square = square + noise + np.min(floor)
        best, most = spectra, np.full(square.shape[1], -np.inf)
        for value in spectra.tried[::8]:
            shrink = np.square(1 / (1 + value * spectra.eigenvalues))
            scale2 = shrink @ (square - noise) / np.square(shrink).sum()
            scale = np.sqrt(np.maximum(scale2, np.min(floor)))
            found = spectra._replace(scale=scale, smoothness=0 * scale + value)
            likelihood = found.log_likelihood(square, noise)
            better = likelihood > most
            best = best._replace(
                scale=np.where(better, found.scale, best.scale),
                smoothness=np.where(better, found.smoothness, best.smoothness),
            )
            most = np.maximum(likelihood, most)
        return best

    def draw(
        self,
        key: Array,
        statistics: Statistics,
        parameters: Parameters,
        count: Array,
        free_mean: bool,
    ) -> tuple[Array, Mixing]:
        spectra = parameters.mixing
        deviations = spectra.deviations()
        prior = with_scale(unit_prior(Normal(), len(spectra.scale)), deviations)
        A, found = draw_columns(key, statistics, parameters, prior, count, free_mean)
        # what the rows say of an entry by themselves: an estimate, and its variance; a component
        # that is off in all rows says what its prior says
        size = jnp.diag(equations(statistics, parameters.prior, free_mean).covariance)
        known = size > 1e-9
        noise = parameters.sigma2 / (count * jnp.where(known, size, 1e-9))
        own = jnp.square(deviations).T
        square = jnp.where(known, jnp.square(found.mean * (1 + noise / own)), own + noise)
        # iterations in which a component is hardly on say little, and should count as little
        weight = jnp.square(1 / (1 + noise / jnp.square(spectra.scale)))
        return A, found._replace(law=Seen(weight * square, weight * noise, weight))

    def mstep(self, mixing: Mixing, old: Any, floor: Array) -> Any:
        for _ in range(STEPS):
            old = learn_spectra(mixing.law, old, floor)
        return old

    def pull(self, parameters: Parameters, count: Array) -> tuple[Array, Array]:
        A, precision = parameters.A, jnp.square(1 / parameters.mixing.deviations()).T
        # a rough column weighs heavily on a smooth one, which the curvature knows
        return A.T @ (A * precision) / count, jnp.square(A).T @ precision / count

    def log_density(self, parameters: Parameters, mixing: Mixing) -> float:
        """Return less the divergence of A's posterior from its prior, both taken as normal."""
        variance = np.square(to_numpy(parameters.mixing).deviations()).T
        square, mean = np.asarray(mixing.square), np.asarray(mixing.mean)
        known = np.maximum((square - np.square(mean)) / variance, 1e-30)
        return float(-0.5 * (square / variance - 1 - np.log(known)).sum())

    def learnt(self, parameters: Parameters, unit: float, order: np.ndarray) -> SmoothEntries:
        spectra: Any = to_numpy(parameters.mixing)
        return SmoothEntries(unit * spectra.scale[order], spectra.smoothness[order])


def learn_spectra(seen: Seen, old: Spectra, floor: Array) -> Spectra:
    """Return likelier parameters, given what the rows say of the entries: a step of Fisher scoring.

    The likelihood is that of the estimates themselves, N(0, tau^2 / (1 + lambda e)^2 + noise). Were
    the entries taken as they are drawn, those of which the rows say little would tell what the
    prior has told them, and hundreds of iterations would pass before they are smooth.
    """
    e, (smoothness, scale) = old.eigenvalues, (old.smoothness[:, None], old.scale[:, None])
    shrink = 1 / (1 + smoothness * e)
    own = jnp.square(scale * shrink)  # (p, d)
    weight = jnp.maximum(seen.weight, 1e-300)
    variance = own + (seen.noise / weight)[:, None]
    # derivatives of the log of the variance along log tau^2 and log lambda
    along = own / variance
    slope = -2 * smoothness * e * shrink * along
    excess = (seen.square / weight).T / variance - 1
    score = (along * excess).sum(1), (slope * excess).sum(1)
    a, b, c = ((x * y).sum(1) for x, y in ((along, along), (along, slope), (slope, slope)))
    a, c = 1.01 * a + 1e-30, 1.01 * c + 1e-30
    step = (a * score[1] - b * score[0]) / (a * c - b * b)
    new = old.smoothness * jnp.exp(jnp.clip(step, -1.0, 1.0))
    new = jnp.clip(new, old.tried[0], old.tried[-1])
    # the scale that suits the smoothness, which may have gone less far
    step = (score[0] - b * jnp.log(new / old.smoothness)) / a
    scale = old.scale * jnp.exp(0.5 * jnp.clip(step, -1.0, 1.0))
    return old._replace(scale=jnp.maximum(scale, jnp.sqrt(jnp.min(floor))), smoothness=new)
