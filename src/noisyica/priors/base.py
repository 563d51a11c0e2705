"""What every prior has: the class :class:`Prior`, what it sees of the data (:class:`Channel`), and how a class becomes a pytree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica import laws
from noisyica._jax.special import eliminate

Array = jax.Array
Self = TypeVar("Self", bound="Prior")


class Channel(NamedTuple):
    """All that the likelihood says about a block of rows, divided by the noise variance.

    With ``beta`` of shape (p, n), the log likelihood is ``sum_n(c . beta - beta' G beta / 2)`` up to a constant; an offset mu on
    all of x replaces c by ``c - mu * c_one`` and adds ``mu * x_one - mu^2 * one_one / 2``.
    """

    G: Array  # (p, p)  A'A
    c: Array  # (p, n)  A'(x - mu0)
    c_one: Array  # (p,)    A'1
    x_one: Array  # (n,)    1'(x - mu0)
    one_one: Array  # ()      d


class OffsetState(NamedTuple):
    """The latent variables of the prior inside, and the rows' offsets mu (n,)."""

    inner: Any
    mu: Array


class Prior:
    """Base of all priors. ``parameter_names`` are the attributes that are learnt."""

    parameter_names: ClassVar[tuple[str, ...]] = ()
    has_offset: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    plain: ClassVar[bool] = (
        False  # whether its kernels are simple enough to be compiled quickly (noisyica._jax.arrays.Compiled)
    )
    starts: ClassVar[tuple[str, ...]] = ("fastica",)  # what init="auto" tries
    single_scale: ClassVar[bool] = False
    """Whether the coefficients of a row are signs times one common scale."""
    offset_scale: ArrayLike = 0.0
    """The mean size of a row's random offset; 0 for priors without one."""

    @property
    def without_offset(self) -> Prior:
        """The prior of the coefficients alone."""
        return self

    def law_of(self, j: int) -> laws.Law | None:
        """The law of coefficient j if the coefficients are independent of each other, else None."""
        return None

    def log_marginal(self, p: int, points: np.ndarray) -> np.ndarray | None:
        """Log density of each of p coefficients by itself at the points (m,), as an array (p, m).

        Where a point is an atom, it is the log probability. None where no closed form is known.
        """
        return None

    def start(self, key: Array, p: int, n: int, dtype: Any) -> Any:
        """Latent variables of n rows drawn from the prior."""
        raise NotImplementedError

    def blank(self, p: int, n: int, dtype: Any) -> Any:
        """Latent variables of n rows to begin sweeping from, as NumPy arrays."""
        raise NotImplementedError

    def gibbs(self, key: Array, latent: Any, channel: Channel) -> Any:
        """One sweep of exact conditional draws over the latent variables of a block of rows."""
        raise NotImplementedError

    def metropolis(self, key: Array, latent: Any, channel: Channel) -> Any:
        """One sweep of the paper's sampler: a proposal from the prior at each site, accepted on the likelihood ratio."""
        raise NotImplementedError

    def ascend(self, latent: Any, channel: Channel) -> Any:
        """One sweep that sets each latent variable to its most probable value given the others: coordinate ascent towards the mode."""
        raise NotImplementedError

    def penalty(self, beta: Array, offset: Array) -> Array:
        """What each row's coefficients (p, n) and offset (n,) cost: the paper's MAP objective less the likelihood, constants left out."""
        raise NotImplementedError

    def candidates(self, channel: Channel, offset: laws.Laplace | None = None) -> tuple[Any, bool]:
        """Latent variables (a leading axis) from which to look for the mode, and whether they are the best of all discrete states.

        Where there is an ``offset`` of that law on all of x, they are :class:`OffsetState`.
        """
        raise NotImplementedError

    @property
    def convex(self) -> bool:
        """Whether the penalty is convex, so that any local minimum is the mode."""
        return False

    def factorised(self, channel: Channel) -> tuple[Channel, Array] | None:
        """A channel of diagonal G through which the posterior is close to that of ``channel``, and its mean (p, n); None if none is known.

        Its coefficients are independent: one Gibbs sweep draws them exactly.
        """
        return None

    def log_normaliser(self, channel: Channel) -> Array:
        """Log of the integral of the likelihood (n,), for a channel that :meth:`factorised` gave."""
        raise NotImplementedError

    def mean_square(self) -> Array:
        """E[beta_j^2] under the prior."""
        raise NotImplementedError

    def coefficients(self, latent: Any) -> Array:
        """beta, of shape (p, n)."""
        raise NotImplementedError

    def offset(self, latent: Any) -> Array:
        """The random offset of each row, (n,); zero for most priors."""
        return jnp.zeros(self.coefficients(latent).shape[-1:], self.coefficients(latent).dtype)

    def with_offset(self, latent: Any, offset: Any) -> Any:
        """The latent variables with other offsets, for priors that have them."""
        raise NotImplementedError

    def with_coefficients(self, latent: Any, beta: Any) -> Any:
        """The latent variables with these coefficients where they can have any, to begin sweeping from."""
        return latent

    def log_density(self, beta: Array, offset: Array) -> Array:
        """Log density of each row's coefficients (p, n) and offset (n,); log probability where they are at atoms."""
        raise NotImplementedError

    def statistics(self, latent: Any, weight: Array) -> Any:
        """Sufficient statistics for the prior's parameters, summed over rows with weights."""
        raise NotImplementedError

    def mstep(self: Self, statistics: Any) -> Self:
        """The prior with its parameters at their maximum likelihood given the statistics."""
        raise NotImplementedError

    def expansion(self, latent: Any, weight: Array) -> tuple[Array, Array, Array, Array]:
        """What parameter expansion needs: sums of psi(beta) beta' (p, p), of psi(beta)^2 (p,), the count (p,), and sums of psi(beta) (p,).

        The last are 0 where there is no score for locations.
        """
        raise NotImplementedError

    def transform(self, latent: Any, W: Array, shift: Array) -> Any:
        """The latent variables after beta -> W beta + shift."""
        raise NotImplementedError

    def variance(self) -> float:
        """Variance of one coefficient under the prior."""
        raise NotImplementedError

    def mean(self) -> float:
        """Mean of one coefficient under the prior."""
        return 0.0

    @property
    def symmetric(self) -> bool:
        """Whether the sign of a coefficient may be changed."""
        return True

    def shifted(self: Self) -> Self:
        """The prior with a common location of its coefficients (where they are on), to be learnt."""
        raise ValueError(
            f"mean='shift' is not for {self!r}, whose coefficients have no location: choose 'free', 'zero' or 'offset'."
        )

    def for_components(self: Self, p: int) -> Self:
        """The prior of p components (of which only those with parameters for each component depend on p)."""
        return self

    def reordered(self: Self, order: np.ndarray) -> Self:
        """The prior of the components ``order``."""
        return self

    def rescaled(self: Self, factor: float) -> Self:
        """The same prior when x is measured in units ``factor`` times as large (only an offset has units)."""
        return self

    @property
    def n_parameters(self) -> int:
        """How many free numbers are learnt: of weights that sum to one, one less."""
        return len(self.parameter_names)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The learnt parameters by name."""
        return {name: np.asarray(getattr(self, name), float) for name in self.parameter_names}

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self.parameters.items())
        return f"{type(self).__name__}({inside})"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        REGISTRY[cls.__name__] = cls


REGISTRY: dict[str, type[Prior]] = {}


def _short(value: np.ndarray) -> str:
    if value.ndim > 1:
        return f"array of shape {value.shape}"
    return (
        f"{value:.4g}"
        if value.ndim == 0
        else "(" + ", ".join(f"{x:.4g}" for x in value) + ("," if value.size == 1 else "") + ")"
    )


def as_pytree(*fields: str, static: str | None = None) -> Any:
    """Register a prior class as a pytree of the named attributes; ``static`` names one that is structure."""

    def decorate(cls: type[Prior]) -> type[Prior]:
        def flatten(prior: Prior) -> tuple[tuple[Any, ...], Any]:
            return tuple(getattr(prior, f) for f in fields), getattr(
                prior, static
            ) if static else None

        def unflatten(structure: Any, children: Sequence[Any]) -> Prior:
            prior = object.__new__(cls)
            for name, child in zip(fields, children, strict=True):
                object.__setattr__(prior, name, child)
            if static:
                object.__setattr__(prior, static, structure)
            return prior

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)
        return cls

    return decorate


def ridge_factor(G: Array) -> Array:
    """F (p, p) with F'F the inverse of G, slightly shrunk."""
    p = len(G)
    shrunk = G + jnp.eye(p, dtype=G.dtype) * (1e-3 * jnp.trace(G) / p + 1e-12)
    return eliminate(jnp.concatenate([shrunk, jnp.eye(p, dtype=G.dtype)], 1))[:, p:]


def ridge(channel: Channel) -> tuple[Array, Array]:
    """Coefficients (p, n) that fit by least squares, slightly shrunk, and the offsets (n,) that are taken off before."""
    mu = channel.x_one / jnp.where(channel.one_one > 0, channel.one_one, 1.0)
    factor = ridge_factor(channel.G)
    return factor.T @ (factor @ (channel.c - channel.c_one[:, None] * mu)), mu


def probability(name: str, value: float, top: float) -> float:
    """The value as a float, if it is a number from 0 to ``top``."""
    if not (isinstance(value, (int, float, np.floating, np.integer)) and 0 <= value <= top):
        raise ValueError(f"{name} must be a number from 0 to {top:g}; got {value!r}.")
    return float(value)
