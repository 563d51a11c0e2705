"""A random offset on all of x, new for each row, beside any prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jax.typing import ArrayLike

from noisyica import laws
from noisyica._jax.randomness import Key, split, uniforms
from noisyica._jax.special import LOG_2
from noisyica.laws import Law
from noisyica.priors.base import Channel, Expansion, OffsetState, Prior, as_pytree

Array = jax.Array
OffsetType = TypeVar("OffsetType", bound="Offset")

LEAST_SCALE = 1e-10
"""The minimum scale that is learnt, in units of the rows' root mean square.

Smaller offsets are lost in the rounding of single precision, and the inverse of their scale's
square has to stay within its range."""


class OffsetLaw(NamedTuple):
    """A law of offsets whose mean size is known, and how that is learnt."""

    of: Callable[[Any], Law]
    """The law whose mean of ``|mu|`` is the argument."""
    size: Callable[[Array, Any], Array]
    """Of offsets and their scale: terms of the statistic, whose mean says the scale."""
    scale: Callable[[Array], Array]
    """The scale that the mean of these terms says."""
    cdf: Callable[[Any, float], Any]
    """The law's cumulative distribution at some offsets, given the scale, by NumPy."""


def _logistic(scale: Any) -> laws.Scaled:
    """Return the logistic law whose mean size is ``scale``: that of laws.Logistic is log 2."""
    return laws.Scaled(laws.Logistic(), scale / LOG_2)


def _squared(mu: Array, scale: Any) -> Array:
    """Return scale^2 z psi(z), z = mu log 2 / scale: E[z psi(z)] = 1 at the maximum likelihood."""
    z = mu * LOG_2 / scale
    return jnp.square(scale) * z * laws.Logistic().score(z)


OFFSET_LAWS: dict[str, OffsetLaw] = {
    "laplace": OffsetLaw(
        laws.Laplace,
        lambda mu, _: jnp.abs(mu),
        lambda mean: mean,
        lambda mu, scale: scipy.stats.laplace.cdf(mu, scale=scale),
    ),
    "logistic": OffsetLaw(
        _logistic,
        _squared,
        jnp.sqrt,
        lambda mu, scale: scipy.stats.logistic.cdf(mu, scale=0.5 * scale / LOG_2),
    ),
}
"""The laws that offsets may have."""


@as_pytree("prior", "offset_scale", static="law")
class Offset(Prior):
    """Any prior plus a random offset mu on all of x, new for each row; there is no mu0 then.

    Given beta, mu has the law of offsets after the tilt a = 1'Sigma^-1 1 (d / sigma^2 where columns
    have equal noise) and b = 1'Sigma^-1 (x - A beta); given mu, beta sees A'Sigma^-1 (x - mu).

    Parameters
    ----------
    prior : str, Prior or Law
        The law of the coefficients.
    offset_scale : float
        The mean of ``|mu|``, in the units of x, with which learning begins.
    law : {"laplace", "logistic"}, default="laplace"
        The law of the offsets.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.Offset("bg", 2.0)
    Offset(BernoulliGaussian(alpha=0.5), offset_scale=2)
    >>> priors.Offset("te", law="logistic")
    Offset(SingleScaleTernary(gamma=0.25), offset_scale=1, law='logistic')
    """

    has_offset: ClassVar[bool] = True
    takes_mean: ClassVar[bool] = False
    takes_row_weights: ClassVar[bool] = True  # if the prior inside does, which is asked, too
    prior: Any  # a Prior, with whatever capabilities it has
    offset_scale: ArrayLike
    law: str = "laplace"

    def __init__(
        self, prior: str | Prior | Law, offset_scale: float = 1.0, law: str = "laplace"
    ) -> None:
        # imported here, since priors with an offset are in the table, too
        from noisyica.priors.table import get

        self.prior = get(prior)
        if self.prior.has_offset:
            raise ValueError(f"{self.prior!r} has an offset already.")
        if not (np.isfinite(offset_scale) and offset_scale > 0):
            raise ValueError(
                f"offset_scale must be a positive number, in the units of x; got {offset_scale!r}."
            )
        if law not in OFFSET_LAWS:
            names = ", ".join(repr(name) for name in OFFSET_LAWS)
            raise ValueError(f"The law of an offset is one of {names}; got {law!r}.")
        self.offset_scale, self.law = float(offset_scale), law

    def _with(self: OffsetType, prior: Prior, offset_scale: ArrayLike) -> OffsetType:
        """Return a prior of the same kind with another prior inside, and another scale."""
        new = object.__new__(type(self))
        new.prior, new.offset_scale, new.law = prior, offset_scale, self.law
        return new

    def around(self, prior: Prior) -> Offset:
        """Return the same offset beside another prior."""
        new = object.__new__(Offset)
        new.prior, new.offset_scale, new.law = prior, self.offset_scale, self.law
        return new

    def plain_fields(self) -> dict[str, Any]:
        return {"inner": self.prior, "offset_scale": self.offset_scale, "law": self.law}

    @classmethod
    def from_plain_fields(cls: type[OffsetType], fields: dict[str, Any]) -> OffsetType:
        # files of earlier versions do not say: offsets were Laplacian
        return cls(fields["inner"], fields["offset_scale"], fields.get("law", "laplace"))

    def for_components(self: OffsetType, p: int) -> OffsetType:
        return self._with(self.prior.for_components(p), self.offset_scale)

    def reordered(self: OffsetType, order: np.ndarray) -> OffsetType:
        return self._with(self.prior.reordered(order), self.offset_scale)

    def shifted(self) -> Prior:
        raise ValueError(f"mean='shift' is not for {self!r}, which has an offset: choose 'offset'.")

    def offset_law(self) -> Law:
        """Return the law of a row's offset."""
        return OFFSET_LAWS[self.law].of(self.offset_scale)

    @property
    def without_offset(self) -> Prior:
        return self.prior

    @property
    def single_scale(self) -> bool:  # type: ignore[override]
        return self.prior.single_scale

    def law_of(self, j: int) -> Law | None:
        return self.prior.law_of(j)

    def log_marginal(self, p: int, points: np.ndarray) -> np.ndarray | None:
        return self.prior.log_marginal(p, points)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.prior.smooth

    @property
    def learns_late(self) -> bool:
        return self.prior.learns_late

    @property
    def rotation_trust(self) -> ArrayLike:  # type: ignore[override]
        return self.prior.rotation_trust

    @property
    def compiles_fast(self) -> bool:  # type: ignore[override]
        return False

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.prior.starts

    @property
    def symmetric(self) -> bool:
        return self.prior.symmetric

    def sample_prior(self, key: Key, p: int, n: int, dtype: Any) -> OffsetState:
        keys, zero = split(key, 2), jnp.zeros((), dtype)
        return OffsetState(
            self.prior.sample_prior(keys[0], p, n, dtype),
            self.offset_law().sample(keys[1], zero, zero, (n,)),
        )

    def zeros(self, p: int, n: int, dtype: Any) -> Any:
        mu: Any = np.zeros(n, dtype)
        return OffsetState(self.prior.zeros(p, n, dtype), mu)

    @staticmethod
    def _channel_given_offset(channel: Channel, mu: Array) -> Channel:
        """Return what the likelihood says of the coefficients given the offsets."""
        return channel._replace(c=channel.c - channel.c_one[:, None] * mu)

    def _offset_slope(self, channel: Channel, inner: Any) -> Array:
        """Return b, for which the log likelihood of offsets mu is b mu - one_one mu^2 / 2."""
        return channel.x_one - channel.c_one @ self.prior.coefficients(inner)

    def gibbs(self, key: Key, latent: OffsetState, channel: Channel) -> OffsetState:
        keys, law, mu = split(key, 2), self.offset_law(), latent.mu
        given_offset = self._channel_given_offset(channel, mu)
        inner = self.prior.gibbs(keys[0], latent.inner, given_offset)
        u = uniforms(keys[1], law.n_uniforms, mu.shape, mu.dtype)
        b = self._offset_slope(channel, inner)
        return OffsetState(inner, law.draw(u, *channel.weighted(channel.one_one, b)))

    def metropolis(self, key: Key, latent: OffsetState, channel: Channel) -> OffsetState:
        keys, law, mu = split(key, 2), self.offset_law(), latent.mu
        given_offset = self._channel_given_offset(channel, mu)
        inner = self.prior.metropolis(keys[0], latent.inner, given_offset)
        v, *u = uniforms(keys[1], 1 + law.n_uniforms, mu.shape, mu.dtype)
        new = law.draw(tuple(u), jnp.zeros((), mu.dtype), jnp.zeros_like(mu))
        b = self._offset_slope(channel, inner)
        a, b = channel.weighted(channel.one_one, b)
        gain = (new - mu) * (b - 0.5 * a * (new + mu))
        return OffsetState(inner, jnp.where(jnp.log(v) < gain, new, mu))

    def ascend(self, latent: OffsetState, channel: Channel) -> OffsetState:
        inner = self.prior.ascend(latent.inner, self._channel_given_offset(channel, latent.mu))
        b = self._offset_slope(channel, inner)
        return OffsetState(inner, self.offset_law().mode(channel.one_one, b))

    def penalty(self, beta: Array, offset: Array) -> Array:
        of_coefficients = self.prior.penalty(beta, jnp.zeros_like(offset))
        return of_coefficients + self.offset_law().penalty(offset)

    def candidates(self, channel: Channel, offset: Law | None = None) -> tuple[Any, bool]:
        return self.prior.candidates(channel, self.offset_law())

    @property
    def convex(self) -> bool:
        return self.prior.convex

    def law_at(self, j: Any) -> Law:
        law: Law = self.prior.law_at(j)
        return law

    def law_of_rows(self) -> Law:
        law: Law = self.prior.law_of_rows()
        return law

    def coefficients(self, latent: OffsetState) -> Array:
        return self.prior.coefficients(latent.inner)

    def offset(self, latent: OffsetState) -> Array:
        return latent.mu

    def with_offset(self, latent: OffsetState, offset: Array) -> OffsetState:
        return latent._replace(mu=offset)

    def with_coefficients(self, latent: Any, beta: Any) -> Any:
        return latent._replace(inner=self.prior.with_coefficients(latent.inner, beta))

    def log_density(self, beta: Array, offset: Array) -> Array:
        of_coefficients = self.prior.log_density(beta, jnp.zeros_like(offset))
        return of_coefficients + self.offset_law().log_density(offset)

    def statistics(self, latent: OffsetState, weight: Array) -> Any:
        """Return the statistics of the prior inside, the offsets' size, and the total weight."""
        return (
            self.prior.statistics(latent.inner, weight),
            (OFFSET_LAWS[self.law].size(latent.mu, self.offset_scale) * weight).sum(),
            weight.sum(),
        )

    def held(self) -> Array:
        return self.prior.held()

    def log_weak_prior(self, rows: float) -> Array:
        return self.prior.log_weak_prior(rows)

    def mstep(self: OffsetType, statistics: Any) -> OffsetType:
        inner, size, count = statistics
        scale = OFFSET_LAWS[self.law].scale(size / count)
        return self._with(self.prior.mstep(inner), jnp.maximum(scale, LEAST_SCALE))

    def expansion(self, latent: OffsetState, weight: Array) -> Any:
        return self.prior.expansion(latent.inner, weight)

    def expansion_from_sums(self, sums: Any) -> Expansion:
        return self.prior.expansion_from_sums(sums)

    def lacks(self, methods: Sequence[str]) -> list[str]:
        missing = super().lacks(methods)
        return missing + [name for name in self.prior.lacks(methods) if name not in missing]

    def transform(self, latent: OffsetState, W: Array, shift: Array) -> OffsetState:
        return latent._replace(inner=self.prior.transform(latent.inner, W, shift))

    def scale_information(self, p: int) -> np.ndarray:
        return self.prior.scale_information(p)

    def variance(self) -> float:
        return self.prior.variance()

    def mean_square(self) -> Array:
        return self.prior.mean_square()

    def mean(self) -> float:
        return self.prior.mean()

    @property
    def label(self) -> str:
        inner = f"{self.prior.label}, and an offset per row"
        return inner if type(self) is Offset else super().label  # "teoff" has a name of its own

    @property
    def n_parameters(self) -> int:
        return self.prior.n_parameters + 1

    def rescaled(self: OffsetType, factor: float) -> OffsetType:
        return self._with(self.prior, np.asarray(self.offset_scale, float) / factor)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {**self.prior.parameters, "offset_scale": np.asarray(self.offset_scale, float)}

    @property
    def in_brief(self) -> dict[str, np.ndarray]:
        return {**self.prior.in_brief, "offset_scale": np.asarray(self.offset_scale, float)}

    def __repr__(self) -> str:
        scale = np.asarray(self.offset_scale).item()
        law = "" if self.law == "laplace" else f", law={self.law!r}"
        return f"{type(self).__name__}({self.prior!r}, offset_scale={scale:.4g}{law})"
