"""A law moved along the line: by a given amount, or by one that is learnt."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica.laws.base import Law, Piece, Uniforms, broadcast_double, law
from noisyica.laws.moved import Moved

Array = jax.Array

FIRST_LOCATION = 1.0
"""Where a location that is learnt begins: off zero, so that the signs of components are decided
from the start."""


@law()
class Shift(Moved):
    """The law of ``by`` + T, T having the law ``law``.

    Its answers are computed in float64, since a large tilt nearly cancels a shift.
    """

    law: Law
    by: ArrayLike = 0.0

    @property
    def atom(self) -> ArrayLike | None:
        atom = self.law.atom
        return None if atom is None else atom + self.by

    def _with(self, law: Law) -> Shift:
        return Shift(law, self.by)

    def _tilt(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, Array, Any]:
        """The tilt of T, the log of the factor that it leaves out, and the dtype of the answer."""
        a, b, dtype = broadcast_double(a, b)
        return a, b - a * self.by, (b - 0.5 * a * self.by) * self.by, dtype

    def log_density(self, t: ArrayLike) -> Array:
        return self.law.log_density(jnp.asarray(t) - self.by)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, left, dtype = self._tilt(a, b)
        return (self.law.log_normaliser(a, b) + left).astype(dtype)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, _, dtype = self._tilt(a, b)
        mean, variance = self.law.moments(a, b)
        return (mean + self.by).astype(dtype), variance.astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, _, dtype = self._tilt(a, b)
        return (self.law.draw(tuple(x.astype(b.dtype) for x in u), a, b) + self.by).astype(dtype)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, left, dtype = self._tilt(a, b)
        t, value = self.law.best(a, b)
        return (t + self.by).astype(dtype), (value - left).astype(dtype)

    def penalty(self, t: ArrayLike) -> Array:
        return self.law.penalty(jnp.asarray(t) - self.by)

    def pieces(self) -> list[Piece]:
        return [
            x._replace(slope=x.slope + x.precision * self.by, location=x.location + self.by)
            for x in self.law.pieces()
        ]

    def statistics(self, t: Array) -> Any:
        return self.law.statistics(t - self.by)

    def mstep(self, statistics: Any) -> Shift:
        return Shift(self.law.mstep(statistics), self.by)

    def located(self) -> Located:
        inner = self.law.located()
        if not isinstance(inner, Located):
            return super().located()  # type: ignore[return-value]
        return Located(self.law, self.by, inner.information)


@law("information")
class Located(Shift):
    """A :class:`Shift` whose ``by`` is learnt.

    The statistic of a value t is ``by`` + psi(t - by) / information, one step of Fisher's scoring.
    Averaging it over values and iterations is stochastic approximation of the equation of maximum
    likelihood, E[psi(t - by)] = 0. The answer does not depend on ``information``, which only
    decides how long the steps are.

    Examples
    --------
    >>> from noisyica.laws import Laplace
    >>> Laplace().located()
    Located(law=Laplace(scale=1.0), by=1.0, information=1.0)
    """

    information: float = 1.0

    @property
    def location(self) -> ArrayLike | None:
        return self.by

    @property
    def n_parameters(self) -> int:
        return 1 + self.law.n_parameters

    def statistics(self, t: Array) -> Any:
        z = t - self.by
        return (
            self.law.statistics(z),
            self.by + self.law.score(z) / self.information,
            jnp.ones_like(t),
        )

    def mstep(self, statistics: Any) -> Located:
        inner, total, count = statistics
        by = jnp.where(count > 0, total / jnp.where(count > 0, count, 1.0), self.by)
        return Located(self.law.mstep(inner), by, self.information)
