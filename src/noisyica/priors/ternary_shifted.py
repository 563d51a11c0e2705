"""The prior of a shifted TE-ICA: signs and a common location, times one scale per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.randomness import Key
from noisyica.laws import FIRST_LOCATION, keep_inside
from noisyica.priors.base import Channel, Expansion, as_pytree, probability
from noisyica.priors.shifted import ShiftedState, ShiftSums, learnt_location, no_sums
from noisyica.priors.ternary import SignsAndScale

Array = jax.Array

SHORTEST = 0.3
"""The least scale of a row in looking for a first A: rows that are shorter are mostly noise."""


@as_pytree("_gamma", "_shift")
class ShiftedSingleScaleTernary(SignsAndScale):
    """TE-ICA with a shift inside the scale: beta_j = s (mu + Y_j), s and Y_j as in TE-ICA.

    The shift mu is the same for all components and is learnt, and there is no mean mu0 beside it.
    With u = mu + y, P(y | x) is proportional to prior(y) I(u'Gu, u'c - 1): signs are drawn as they
    are without a shift. Given s and y, the rows see mu through exp(b mu - a mu^2 / 2) with
    a = s^2 1'G1 and b = s 1'(c - s G y), and the M-step is sum b / sum a.

    Parameters
    ----------
    gamma : float
        P(Y_j = 1) = P(Y_j = -1).
    shift : float
        The shift mu with which learning begins.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.ShiftedSingleScaleTernary(0.2, 2.0)
    ShiftedSingleScaleTernary(gamma=0.2, shift=2)
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("gamma", "shift")
    takes_mean: ClassVar[bool] = False
    # rows divided by their scale have independent coefficients; if mu is small, it is not known
    starts: ClassVar[tuple[str, ...]] = (
        *("fastica", "directions", "clusters", "fastica, scaled", "directions, scaled"),
        *("rotation", "rotation, scaled"),
    )
    _shift: ArrayLike

    def __init__(self, gamma: float = 0.25, shift: float = FIRST_LOCATION) -> None:
        if not np.isfinite(shift):
            raise ValueError(f"shift must be a finite number; got {shift!r}.")
        self._gamma, self._shift = probability("gamma", gamma, 0.5), float(shift)

    @property
    def shift(self) -> float:
        """The shift mu, in units of a row's scale."""
        return float(self._shift)  # type: ignore[arg-type]

    def _with(self, gamma: ArrayLike, shift: ArrayLike) -> ShiftedSingleScaleTernary:
        new = object.__new__(type(self))
        new._gamma, new._shift = gamma, shift
        return new

    def plain_fields(self) -> dict[str, Any]:
        return {"gamma": self.gamma, "shift": self.shift}

    @classmethod
    def from_plain_fields(cls, fields: dict[str, Any]) -> ShiftedSingleScaleTernary:
        return cls(**fields)

    # ---------------------------------------------------------------------------------- its sampler

    def sample_prior(self, key: Key, p: int, n: int, dtype: Any) -> Any:
        return ShiftedState(super().sample_prior(key, p, n, dtype), no_sums(n, dtype))

    def zeros(self, p: int, n: int, dtype: Any) -> Any:
        return ShiftedState(super().zeros(p, n, dtype), no_sums(n, dtype))

    def gibbs(self, key: Key, latent: Any, channel: Channel) -> Any:
        return self._state(super().gibbs(key, latent.inner, channel), channel)

    def metropolis(self, key: Key, latent: Any, channel: Channel) -> Any:
        return self._state(super().metropolis(key, latent.inner, channel), channel)

    def _state(self, inner: Any, channel: Channel) -> ShiftedState:
        """Return the state with what the rows say of the shift."""
        y, s, of_each = inner.y, inner.s, channel.G.sum(1)
        b = s * (channel.c.sum(0) - s * (of_each @ y))
        return ShiftedState(inner, ShiftSums(*channel.weighted(s * s * of_each.sum(), b)))

    def _more_cross(self, G: Array) -> tuple[Array, ...]:
        return (jnp.asarray(self._shift, G.dtype) * G.sum(1),)

    def _forms(self, y: Array, G: Array, c: Array) -> tuple[Array, Array]:
        return super()._forms(y + jnp.asarray(self._shift, y.dtype), G, c)

    def _guess(self, beta: Array) -> tuple[Array, Array]:
        """Return about what s y is, and s, for the likeliest value of the largest coefficient."""
        values = self._shift + jnp.arange(-1.0, 2.0, dtype=beta.dtype)  # of u
        scales = jnp.abs(beta).max(0) / jnp.maximum(jnp.abs(values), 1e-3)[:, None]  # (3, n)
        misfit = jnp.abs(beta - scales[:, None, None] * values[:, None, None])  # (3, 3, p, n)
        best = jnp.argmin(jnp.square(misfit.min(1)).sum(1), 0)
        scale = jnp.take_along_axis(scales, best[None], 0)[0]
        return beta - scale * self._shift, scale

    def coefficients(self, latent: Any) -> Array:
        inner = latent.inner
        return inner.s * (inner.y + jnp.asarray(self._shift, inner.y.dtype))

    def transform(self, latent: Any, W: Array, shift: Array) -> Any:
        return latent._replace(inner=super().transform(latent.inner, W, shift))

    # --------------------------------------------------------------------------------- its learning

    def statistics(self, latent: Any, weight: Array) -> Any:
        return super().statistics(latent.inner, weight), latent.sums.totals(weight)

    def mstep(self, statistics: Any) -> ShiftedSingleScaleTernary:
        signs, totals = statistics
        return self._with(keep_inside(signs)[1] / 2, learnt_location(totals, self._shift))

    def rows_to_start_from(self, X: np.ndarray, scaled: bool) -> tuple[np.ndarray, float]:
        if not scaled:
            return X - X.mean(0), self.variance()
        # the mean row is mu A1: a row's length along it is about s, by which the row is divided
        mean = X.mean(0)
        scale = np.maximum(X @ mean / max(float(mean @ mean), 1e-300), SHORTEST)
        signs = X / scale[:, None]
        return signs - signs.mean(0), 2 * self.gamma

    def begun(self, means: Callable[[], np.ndarray]) -> ShiftedSingleScaleTernary:
        return self._with(self._gamma, float(means().mean()))

    def expansion(self, latent: Any, weight: Array) -> Expansion:
        # the scale of a row is exponential of mean 1
        s, p = latent.inner.s, latent.inner.y.shape[0]
        ones = jnp.ones((p,), s.dtype)
        return Expansion(
            products=jnp.eye(p, dtype=s.dtype) * (s @ weight),
            squares=ones * weight.sum(),
            rows=ones * weight.sum(),
            scores=0 * ones,
        )

    # ----------------------------------------------------------------------- what is known about it

    @property
    def symmetric(self) -> bool:
        return False

    def variance(self) -> float:
        return self.shift**2 + 4 * self.gamma

    def mean(self) -> float:
        return self.shift

    def mean_square(self) -> Array:
        return 2 * (jnp.square(self._shift) + 2 * jnp.asarray(self._gamma))
