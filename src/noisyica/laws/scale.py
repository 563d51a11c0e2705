"""A law stretched by a factor that is learnt."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica.laws.base import Law, Piece, Uniforms, law
from noisyica.laws.mixtures import lower
from noisyica.laws.moved import Moved

Array = jax.Array

LEAST_CHANGE = 0.25
"""The minimum factor by which a scale may change in one step."""


@law()
class Scaled(Moved):
    """The law of ``scale`` times T, T having the law ``law``; the scale is learnt.

    It is for the entries of the mixing matrix. (The scale of a coefficient is that of its column.)

    The statistic of a value is scale^k t psi(t), t being the value in units of the scale, psi the
    law's score and k its ``scale_power``. Averaging it over values and iterations is stochastic
    approximation of the equation of maximum likelihood, E[t psi(t)] = 1. With the right k it does
    not depend on the scale at all, and is sufficient: for a normal law it is the square of the
    value, for an exponential law the value itself.

    Examples
    --------
    >>> from noisyica.laws import Normal, Scaled
    >>> float(Scaled(Normal()).mstep(((), 12.0, 3.0)).scale)  # squares of three values sum to 12
    2.0
    """

    law: Law
    scale: ArrayLike = 1.0

    @property
    def scale_power(self) -> float:  # type: ignore[override]
        return self.law.scale_power

    @property
    def n_parameters(self) -> int:
        return 1 + self.law.n_parameters

    @property
    def atom(self) -> ArrayLike | None:
        atom = self.law.atom
        return None if atom is None else atom * jnp.asarray(self.scale)

    def _with(self, law: Law) -> Scaled:
        return Scaled(law, self.scale)

    def _tilt(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        """The tilt of T."""
        a, b = floating(a, b)
        return a * jnp.square(self.scale), b * self.scale

    def log_density(self, t: ArrayLike) -> Array:
        density = self.law.log_density(jnp.asarray(t) / self.scale)
        atoms = [part.atom for _, part in self.parts() if part.atom is not None]
        at_atom = sum((jnp.asarray(t) == atom for atom in atoms), jnp.zeros(jnp.shape(t), bool))
        return density - jnp.where(at_atom, 0.0, jnp.log(self.scale))

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return self.law.log_normaliser(*self._tilt(a, b))

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        mean, variance = self.law.moments(*self._tilt(a, b))
        return mean * self.scale, variance * jnp.square(self.scale)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        return self.law.draw(u, *self._tilt(a, b)) * self.scale

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        tilt = self._tilt(a, b)
        minima = []
        for weight, part in self.law.parts():
            t, value = part.best(*tilt)
            minima.append((t * self.scale, value + self._cost(part) - jnp.log(weight)))
        return functools.reduce(lower, minima)

    def penalty(self, t: ArrayLike) -> Array:
        z = jnp.asarray(t) / self.scale
        terms = [
            part.penalty(z) + self._cost(part) - jnp.log(weight)
            for weight, part in self.law.parts()
        ]
        return functools.reduce(jnp.minimum, terms)

    def _cost(self, part: Law) -> Array:
        """What the scale adds to the penalty of a part: the density of an atom has no units."""
        return jnp.log(self.scale) if part.atom is None else jnp.zeros(())

    def pieces(self) -> list[Piece]:
        s = jnp.asarray(self.scale)
        return [
            Piece(x.precision / (s * s), x.slope / s, x.location * s, x.free)
            for x in self.law.pieces()
        ]

    def score(self, t: Array) -> Array:
        return self.law.score(t / self.scale) / self.scale

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        return self.law.scale_statistics(t / self.scale)

    def statistics(self, t: Array) -> Any:
        z = t / self.scale
        size, count = self.law.scale_statistics(z)
        return self.law.statistics(z), size * jnp.asarray(self.scale) ** self.scale_power, count

    def mstep(self, statistics: Any) -> Scaled:
        return self._learnt(statistics, self.law.mstep(statistics[0]))

    def mstep_of_each(self, statistics: Any) -> Scaled:
        return self._learnt(statistics, self.law.mstep_of_each(statistics[0]))

    def _learnt(self, statistics: Any, law: Law) -> Scaled:
        """The law with the scale that the statistics tell, ``law`` being learnt already."""
        _, total, count = statistics
        power, old = self.scale_power, jnp.asarray(self.scale)
        known = count > 1e-9
        mean = jnp.where(known, total / jnp.where(known, count, 1.0), old**power)
        scale = jnp.maximum(mean, (LEAST_CHANGE * old) ** power) ** (1 / power)
        return Scaled(law, scale)
