"""A location that all coefficients have in common, beside any prior: the shift after all else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica import laws
from noisyica._jax.randomness import Key
from noisyica.laws import FIRST_LOCATION, Law
from noisyica.priors.base import Channel, Expansion, OffsetState, Prior, as_pytree
from noisyica.priors.capabilities import INDEPENDENCE

Array = jax.Array


class ShiftSums(NamedTuple):
    """What the rows say of a location mu, the rest being given: exp(b mu - a mu^2 / 2) of each.

    Elsewhere than at the present mu that may be an approximation, whose slope there is right.
    """

    a: Array  # (n,)
    b: Array  # (n,)

    def totals(self, weight: Array) -> tuple[Array, Array]:
        """Return the weighted sums over rows."""
        return self.a @ weight, self.b @ weight


def no_sums(n: int, dtype: Any) -> Any:
    """Return the sums of rows that were not swept yet, and say nothing."""
    nothing: Any = (np.zeros(n, dtype), np.zeros(n, dtype))
    return ShiftSums(*nothing)


def learnt_location(totals: tuple[Array, Array], old: ArrayLike) -> Array:
    """Return the location that the totals tell, or the old one where they say nothing."""
    a, b = totals
    return jnp.where(a > 0, b / jnp.where(a > 0, a, 1.0), old)


class ShiftedState(NamedTuple):
    """The latent variables of a prior with a shift: those of the prior inside, and the sums."""

    inner: Any
    sums: ShiftSums


@as_pytree("prior", "by")
class Shifted(Prior):
    """Any prior, all of whose coefficients are shifted: beta = mu + z, z having the prior inside.

    The shift comes after everything else, so that coefficients that are off have the value mu. It
    is the same for all components and is learnt, and there is no mean mu0 beside it.

    Given mu, z sees A'Sigma^-1 (x - mu A1) and is drawn as ever. For the M-step of mu, what is
    hidden is beta itself for coefficients whose law has a finite information J on its location,
    and z for the others, which are at an atom, say: with v = 1 for these and 0 otherwise, and psi
    the score of the law of z,

        mu + (sum of psi + v'r) / (sum of J + v'Gv),   r = A'Sigma^-1 (x - A beta), G = A'Sigma^-1 A

    is a step of scoring; where all v are 1, it is the exact maximum. By integration by parts the
    expectation of psi of a coefficient is that of r, so that the numerator is the score of mu.

    Parameters
    ----------
    prior : str, Prior or Law
        The law of the coefficients before they are shifted.
    by : float
        The shift mu with which learning begins.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.Shifted("bg", 2.0)
    Shifted(BernoulliGaussian(alpha=0.5), by=2)
    """

    takes_mean: ClassVar[bool] = False
    takes_row_weights: ClassVar[bool] = True  # if the prior inside does, which is asked, too
    prior: Any  # a Prior, with whatever capabilities it has
    by: ArrayLike

    def __init__(self, prior: str | Prior | Law, by: float = FIRST_LOCATION) -> None:
        # imported here, since the table knows of priors that are made of this module
        from noisyica.priors.table import get

        self.prior = get(prior)
        if self.prior.has_offset or not self.prior.takes_mean:
            raise ValueError(f"{self.prior!r} has an offset or a shift already.")
        if not np.isfinite(by):
            raise ValueError(f"by must be a finite number; got {by!r}.")
        self.by = float(by)

    def _with(self, prior: Prior, by: ArrayLike) -> Shifted:
        """Return the prior with another prior inside, and another shift."""
        new = object.__new__(type(self))
        new.prior, new.by = prior, by
        return new

    def plain_fields(self) -> dict[str, Any]:
        return {"inner": self.prior, "by": self.by}

    @classmethod
    def from_plain_fields(cls, fields: dict[str, Any]) -> Shifted:
        return cls(fields["inner"], float(fields["by"]))

    def for_components(self, p: int) -> Shifted:
        return self._with(self.prior.for_components(p), self.by)

    def reordered(self, order: np.ndarray) -> Shifted:
        return self._with(self.prior.reordered(order), self.by)

    def rescaled(self, factor: float) -> Shifted:
        return self._with(self.prior.rescaled(factor), self.by)

    # ---------------------------------------------------------------------------------- its sampler

    def sample_prior(self, key: Key, p: int, n: int, dtype: Any) -> ShiftedState:
        return ShiftedState(self.prior.sample_prior(key, p, n, dtype), no_sums(n, dtype))

    def zeros(self, p: int, n: int, dtype: Any) -> Any:
        return ShiftedState(self.prior.zeros(p, n, dtype), no_sums(n, dtype))

    def _inside(self, channel: Channel) -> Channel:
        """Return what the likelihood says of the coefficients of the prior inside."""
        pull = self.by * channel.G.sum(1)
        of_offset = self.by * channel.c_one.sum()
        return channel._replace(c=channel.c - pull[:, None], x_one=channel.x_one - of_offset)

    def _state(self, inner: Any, channel: Channel) -> ShiftedState:
        """Return the state with what the rows say of the shift."""
        inside = self.prior.coefficients(inner)
        by = jnp.asarray(self.by, inside.dtype)
        score, information = jnp.zeros_like(inside), jnp.zeros_like(inside)
        if INDEPENDENCE.of(self.prior):
            score, information = self.prior.law_of_rows().location_statistics(inside)
        fixed = (information == 0).astype(inside.dtype)
        left = channel.c - channel.G @ (inside + by)
        a, b = channel.weighted((fixed * (channel.G @ fixed)).sum(0), (fixed * left).sum(0))
        a, b = a + information.sum(0), b + score.sum(0)
        return ShiftedState(inner, ShiftSums(*(x.astype(inside.dtype) for x in (a, b + a * by))))

    def gibbs(self, key: Key, latent: ShiftedState, channel: Channel) -> ShiftedState:
        inner = self.prior.gibbs(key, latent.inner, self._inside(channel))
        return self._state(inner, channel)

    def metropolis(self, key: Key, latent: ShiftedState, channel: Channel) -> ShiftedState:
        inner = self.prior.metropolis(key, latent.inner, self._inside(channel))
        return self._state(inner, channel)

    def ascend(self, latent: ShiftedState, channel: Channel) -> ShiftedState:
        return self._state(self.prior.ascend(latent.inner, self._inside(channel)), channel)

    def candidates(self, channel: Channel, offset: Law | None = None) -> tuple[Any, bool]:
        found, exhaustive = self.prior.candidates(self._inside(channel), offset)
        inner = found if offset is None else found.inner
        count, n = jax.tree.leaves(inner)[0].shape[0], channel.c.shape[1]
        sums = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape)), no_sums(n, float))
        state = ShiftedState(inner, sums)
        return (state if offset is None else OffsetState(state, found.mu)), exhaustive

    def coefficients(self, latent: ShiftedState) -> Array:
        inside = self.prior.coefficients(latent.inner)
        return inside + jnp.asarray(self.by, inside.dtype)

    def with_coefficients(self, latent: Any, beta: Any) -> Any:
        inside = beta - np.asarray(self.by, beta.dtype)
        inner = self.prior.with_coefficients(latent.inner, inside)
        return latent._replace(inner=inner)

    # --------------------------------------------------------------------------------- its learning

    def statistics(self, latent: ShiftedState, weight: Array) -> Any:
        return self.prior.statistics(latent.inner, weight), latent.sums.totals(weight)

    def mstep(self, statistics: Any) -> Shifted:
        inner, totals = statistics
        return self._with(self.prior.mstep(inner), learnt_location(totals, self.by))

    @property
    def learns_late(self) -> bool:
        return bool(self.prior.learns_late)

    def held(self) -> Array:
        held: Array = self.prior.held()
        return held

    def expansion(self, latent: ShiftedState, weight: Array) -> Any:
        return self.prior.expansion(latent.inner, weight)

    def expansion_from_sums(self, sums: Any) -> Expansion:
        """Return the averages of the prior inside, the scale being that of all components.

        Where the scales of all components move together, x is the same if mu moves with them, and
        what it says of mu has mean zero at the maximum likelihood. One component's scale cannot
        move alone: where its coefficient is off, it is mu.
        """
        expansion: Expansion = self.prior.expansion_from_sums(sums)
        share = jnp.diag(expansion.products).sum() / jnp.maximum(expansion.rows.sum(), 1e-12)
        diagonal = jnp.eye(len(expansion.rows), dtype=bool)
        products = jnp.where(diagonal, share * expansion.rows, expansion.products)
        # the curvature has the mean square of coefficients, but it is the prior inside that moves
        inside = self.prior.mean_square() / jnp.maximum(self.mean_square(), 1e-12)
        return expansion._replace(
            products=products,
            squares=expansion.squares * jnp.minimum(inside, 1.0),
            scores=jnp.zeros_like(expansion.rows),
        )

    def moved(self, W: Array) -> Shifted:
        return self._with(self.prior, self.by * jnp.diag(W).mean())

    def rows_to_start_from(self, X: np.ndarray, scaled: bool) -> tuple[np.ndarray, float]:
        return X - X.mean(0), self.variance()

    def begun(self, means: Callable[[], np.ndarray]) -> Shifted:
        return self._with(self.prior, float(means().mean()) - self.prior.mean())

    def transform(self, latent: ShiftedState, W: Array, shift: Array) -> ShiftedState:
        return latent._replace(inner=self.prior.transform(latent.inner, W, shift))

    def lacks(self, methods: Sequence[str]) -> list[str]:
        missing = super().lacks(methods)
        return missing + [name for name in self.prior.lacks(methods) if name not in missing]

    # ----------------------------------------------------------------------- what is known about it

    def penalty(self, beta: Array, offset: Array) -> Array:
        penalty: Array = self.prior.penalty(beta - self.by, offset)
        return penalty

    @property
    def unshifted(self) -> tuple[Prior, Any]:
        return self.prior, self.by

    @property
    def convex(self) -> bool:
        return bool(self.prior.convex)

    def law_at(self, j: Any) -> Law:
        return laws.Shift(self.prior.law_at(j), self.by)

    def law_of_rows(self) -> Law:
        return laws.Shift(self.prior.law_of_rows(), self.by)

    def law_of(self, j: int) -> Law | None:
        law = self.prior.law_of(j)
        return None if law is None else laws.Shift(law, self.by)

    def log_marginal(self, p: int, points: np.ndarray) -> np.ndarray | None:
        inside = np.asarray(points) - np.asarray(self.by)
        marginal: np.ndarray | None = self.prior.log_marginal(p, inside)
        return marginal

    @property
    def single_scale(self) -> bool:  # type: ignore[override]
        return bool(self.prior.single_scale)

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        starts: tuple[str, ...] = self.prior.starts
        return starts

    def scale_information(self, p: int) -> np.ndarray:
        return np.asarray(self.prior.scale_information(p))

    def variance(self) -> float:
        return float(self.prior.variance())

    def mean(self) -> float:
        return float(self.prior.mean()) + float(np.asarray(self.by))

    def mean_square(self) -> Array:
        inside, by, law = self.prior.mean_square(), jnp.asarray(self.by), self.prior.law_of(0)
        if law is None:  # then its coefficients are signed alike
            return inside + by * by
        mean = jnp.mean(self.prior.law_of_rows().moments(0.0, 0.0)[0])
        return inside + by * (2 * mean + by)

    @property
    def label(self) -> str:
        return f"{self.prior.label}, shifted"

    @property
    def n_parameters(self) -> int:
        return int(self.prior.n_parameters) + 1

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {**self.prior.parameters, "shift": np.asarray(self.by, float)}

    @property
    def in_brief(self) -> dict[str, np.ndarray]:
        return {**self.prior.in_brief, "shift": np.asarray(self.by, float)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.prior!r}, by={np.asarray(self.by).item():.4g})"
