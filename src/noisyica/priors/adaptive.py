"""A prior whose law is learnt from the data: :class:`Adaptive`."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica.laws import Law, NormalScales
from noisyica.laws.together import together
from noisyica.priors.base import Expansion, as_pytree
from noisyica.priors.independent import Independent

SCALES = (0.0, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
"""The grid: an atom at 0, and normals whose scales double."""
FIRST = (0.25, 0.1, 0.2, 0.2904, 0.14, 0.0191, 0.00045, 0.00005)
"""The weights to begin with: those of a sparse law with heavy tails, at the centre of its grid."""
COARSE = 0.25
"""The scale that rotations see in the place of the atom and of all that is narrower."""
MOST_NARROW = 0.05
"""The weight of what is narrower from which on rotations end with burn-in."""

Array = jax.Array


class RotationSums(NamedTuple):
    """Sums over rows for parameter expansion; psi is the score that rotations follow."""

    weight: Array  # ()  of the rows
    products: Array  # (p, p)  psi(beta) beta'
    scores: Array  # (p,)  psi(beta)
    squares: Array  # (p,)  psi(beta)^2
    values: Array  # (p,)  beta
    scale: Array  # (p,)  beta times the law's own score, of those that are on
    on: Array  # (p,)  the number of those that are on
    logs: Array  # (p,)  log s of the classes, of which each counts for its variance
    variance: Array  # (p,)  of the classes


@as_pytree("law", "pooling", static="components")
class Adaptive(Independent):
    """Independent coefficients whose law is learnt: zeros, and normals of many scales.

    Each component has weights of its own for an atom at 0 and for normals on a fixed grid of
    scales (:class:`noisyica.laws.NormalScales`). These come close to any symmetric law with one
    peak, at 0, whose tails are normal or heavier, with zeros or without. The weights of the
    components have a common Dirichlet law, whose mean and concentration are learnt, so that
    components learn from each other as much as they are alike.

    Parameters
    ----------
    scales : sequence of float
        The grid, in increasing order; 0 is an atom at 0. Its other scales begin at 1 or below and
        end at 1 or above.
    shared : bool, default=False
        Whether the weights are the same for all components.

    Examples
    --------
    >>> from noisyica.priors import Adaptive
    >>> prior = Adaptive()
    >>> prior.scales
    (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    """

    law: NormalScales
    pooling: Any
    """The share that the common weights have in those of each component, from 0 to 1."""
    parameter_names: ClassVar[tuple[str, ...]] = ("weights",)

    def __init__(self, scales: Any = SCALES, shared: bool = False) -> None:
        scales = _checked(scales)
        weights = np.interp(scales, SCALES, FIRST)
        super().__init__(NormalScales(scales, weights / weights.sum()), shared)
        self.pooling = np.zeros(())

    def _with(self, law: Law, components: int | None) -> Adaptive:
        new: Any = super()._with(law, components)
        new.pooling = self.pooling
        return new

    @property
    def scales(self) -> tuple[float, ...]:
        """The grid of scales."""
        return self.law.scales

    @property
    def weights(self) -> np.ndarray:
        """The weight of each scale, of each component (a leading axis) once these are known."""
        return np.asarray(self.law.weights, float)

    @property
    def n_parameters(self) -> int:
        """The number of free weights, of which pooled ones count once.

        A law has K - 2 of them: they sum to one, and the scale is fixed. p components have p laws
        if nothing is pooled, one law if all is, and in between as many as the shares that are not.
        """
        laws = 1 + ((self.components or 1) - 1) * (1 - float(np.asarray(self.pooling)))
        return round(self.law.n_parameters * laws)

    @property
    def kurtosis(self) -> np.ndarray:
        """The excess kurtosis of each component's law (or of the one law): 0 if it is normal."""
        squares = np.square(self.scales)
        return np.asarray(3 * (self.weights @ squares**2) / (self.weights @ squares) ** 2 - 3)

    @property
    def probability_zero(self) -> np.ndarray:
        """The probability of an exact zero, of each component's law (or of the one law)."""
        zero = self.weights[..., 0]
        return zero if self.scales[0] == 0 else np.zeros_like(zero)

    @property
    def in_brief(self) -> dict[str, np.ndarray]:
        return {"probability of 0": self.probability_zero, "excess kurtosis": self.kurtosis}

    def density(self, t: Any) -> np.ndarray:
        """Return the density at the points t (m,) of each component's law, (p, m).

        At 0 it is the probability of a zero, where zeros have one.
        """
        points = np.atleast_1d(np.asarray(t, float))
        return np.exp(self.log_marginal(self.components or 1, points))

    def __repr__(self) -> str:
        p = f"{self.components} components, " if self.components else ""
        values = f"P(0)={_range(self.probability_zero)}, kurtosis={_range(self.kurtosis)}"
        return f"Adaptive({p}{len(self.scales)} scales, {values})"

    def mstep(self, statistics: Any) -> Adaptive:
        new: Any = super().mstep(statistics)
        if self.components:
            share = together(jnp.stack(statistics, -1))[1]
            new.pooling = lax.stop_gradient(share)
        return new

    def held(self) -> Array:
        """Return how far each component's law, or the one law, is from the centre of its grid.

        Its scale is that of the column of A.
        """
        squares = np.square(self.scales)
        logs = np.log(np.where(squares > 0, self.scales, 1.0))
        weights = jnp.atleast_2d(jnp.asarray(self.law.weights))
        return (weights @ (squares * logs)) / (weights @ squares)

    def log_weak_prior(self, rows: float) -> Array:
        """Return what is known of the weights beside the rows.

        All components together have one value more of each class than the rows show, as one law has
        under a flat law of its weights: as a weight is never below 0, the error of one near 0 is
        then not much larger than itself. And weights
        of components are alike as much as they are pooled: they learn from each other as from
        ``pooling / (1 - pooling)`` times their own values.
        """
        weights = jnp.atleast_2d(jnp.asarray(self.law.weights))
        common = weights.mean(0)
        alike = lax.stop_gradient(rows * jnp.asarray(self.pooling) / (1 - self.pooling) / common)
        return jnp.log(weights).mean(0).sum() - 0.5 * (alike * jnp.square(weights - common)).sum()

    @property
    def learns_late(self) -> bool:
        return True

    def _rotation_score(self, beta: Array) -> Array:
        """Return the score that rotations follow while burn-in lasts.

        It is that of the law without what is narrower than ``COARSE``, which has this scale
        instead. The more there is of it, the more the score of a Laplace law takes its place: of
        values off zero a normal slab says nothing.
        """
        law: Any = self.law_of_rows()
        weights = jnp.asarray(law.weights)
        narrow = sum(s < COARSE for s in self.scales)
        off = weights[:narrow].sum(0)
        rest = weights[narrow:].at[0].add(off)
        size = np.sqrt(2 / np.pi) * sum(w * s for w, s in zip(weights, self.scales, strict=True))
        coarse = NormalScales(self.scales[narrow:], rest)
        return (1 - off) * coarse.score(beta) + off * jnp.sign(beta) / size

    @property
    def rotation_trust(self) -> Array:  # type: ignore[override]
        """How far rotations go on after burn-in: to the end where next to nothing is narrow.

        The score above is then the law's own. Without it the directions of components that are
        nearly normal would stay where burn-in happened to leave them.
        """
        weights = jnp.asarray(self.law.weights)
        off = weights[..., : sum(s < COARSE for s in self.scales)].sum(-1)
        trust = jnp.maximum(1 - off / MOST_NARROW, 0.0)
        return jnp.minimum(trust[:, None], trust) if self.components else trust

    def expansion(self, latent: Array, weight: Array) -> Any:
        if self.smooth:
            return super().expansion(latent, weight)
        law: Any = self.law_of_rows()
        scale, on = (terms @ weight for terms in law.scale_statistics(latent))
        counts = jnp.stack([terms @ weight for terms in law.shares(latent)], -1)
        squares = np.square(np.asarray(self.scales, latent.dtype))
        logs = np.log(np.where(squares > 0, np.asarray(self.scales, latent.dtype), 1.0))
        score = self._rotation_score(latent)
        weighted = score * weight
        return RotationSums(
            weight=weight.sum(),
            products=weighted @ latent.T,
            scores=weighted.sum(-1),
            squares=(weighted * score).sum(-1),
            values=latent @ weight,
            scale=scale,
            on=on,
            logs=counts @ (squares * logs),
            variance=counts @ squares,
        )

    def expansion_from_sums(self, sums: Any) -> Expansion:
        if self.smooth:
            return super().expansion_from_sums(sums)
        # a location is not a dependence
        centred = sums.products - jnp.outer(sums.scores, sums.values) / sums.weight
        # Weights learn any scale by moving along the grid. So the scales of A are free to bring the
        # laws back to the centre: one law where weights are common, each one where they are not.
        off_centre = sums.logs / jnp.maximum(sums.variance, 1e-12)
        common = self.pooling if self.components else 1.0
        off_centre = common * off_centre.mean() + (1 - common) * off_centre
        of_scale = sums.weight * (sums.scale / jnp.maximum(sums.on, 1e-12) + off_centre)
        diagonal = jnp.eye(len(sums.scores), dtype=bool)
        return Expansion(
            products=jnp.where(diagonal, of_scale, centred),
            squares=sums.squares,
            rows=jnp.full_like(sums.scores, sums.weight),
            scores=jnp.zeros_like(sums.scores),
        )


def _checked(scales: Any) -> tuple[float, ...]:
    """Return the scales as numbers, or raise an error if they are no grid around 1."""
    try:
        values = tuple(float(s) for s in scales)
    except TypeError:
        raise TypeError(
            f"scales must be a sequence of numbers, such as (0, 0.5, 1, 2); got {scales!r}."
        ) from None
    positive = [s for s in values if s > 0]
    if not np.isfinite(values).all() or not positive or not min(positive) <= 1 <= max(positive):
        raise ValueError(
            "The scales of Adaptive must be finite, and apart from 0 begin at 1 or below and end "
            f"at 1 or above; got {values}."
        )
    return values


def _range(values: np.ndarray) -> str:
    """Return the value, or the least and the greatest where they differ."""
    ends = [f"{x:.2g}" for x in (np.min(values), np.max(values))]
    return ends[0] if ends[0] == ends[1] else "..".join(ends)
