"""Finite mixtures of any laws, whose weights are learnt, and the algebra of mixtures."""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.xla import once
from noisyica.laws.atoms import Dirac
from noisyica.laws.base import Classes, Law, Piece, Uniforms, law
from noisyica.laws.together import weights_together

Array = jax.Array
WeightedType = TypeVar("WeightedType", bound="Weighted")


class Weighted(Law, abc.ABC):
    """A law that mixes others by its ``weights``: what follows from that for all such laws.

    The weights of several components have an axis more, which is the first one where the laws are
    learnt, and comes after that of the weights where they act on rows of coefficients.
    """

    weights: Any

    @abc.abstractmethod
    def _mixed(self) -> tuple[Law, ...]:
        """The laws that are mixed."""

    def _check_weights(self) -> None:
        """Raise an error unless there are as many weights as laws."""
        shape, count = np.shape(self.weights), len(self._mixed())
        if not shape or count not in (shape[0], shape[-1]):
            found = f"an array of shape {shape}" if len(shape) > 1 else sum(shape)
            raise ValueError(
                f"{type(self).__name__} needs as many weights as it has laws, {count}; got {found}."
            )

    def _atoms(self) -> list[bool]:
        """Of each law, whether it is an atom."""
        return [isinstance(x, Dirac) for x in self._mixed()]

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return all(x.smooth for x in self._mixed())

    def parts(self) -> list[tuple[ArrayLike, Law]]:
        return [
            (self.weights[k] * weight, part)
            for k, law in enumerate(self._mixed())
            for weight, part in law.parts()
        ]

    def _log_weights(self) -> list[Array]:
        """The log of each law's weight."""
        logs = jnp.log(jnp.asarray(self.weights))
        return [logs[k] for k in range(len(self._mixed()))]

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        minima = []
        for x, w in zip(self._mixed(), self._log_weights(), strict=True):
            t, value = x.best(a, b)
            minima.append((t, value - w))
        return functools.reduce(lower, minima)

    def penalty(self, t: ArrayLike) -> Array:
        terms = [x.penalty(t) - w for x, w in zip(self._mixed(), self._log_weights(), strict=True)]
        return functools.reduce(jnp.minimum, terms)

    def pieces(self) -> list[Piece]:
        kinks = not any(self._atoms())  # where there is an atom, zero is taken care of
        return [
            x
            for law in self._mixed()
            for x in law.pieces()
            if kinks or x.free or isinstance(law, Dirac)
        ]

    def classes(self) -> Classes | None:
        known = [part for part in (x.classes() for x in self._mixed()) if part is not None]
        logs = jnp.log(jnp.asarray(self.weights))
        if len(known) < len(self._mixed()) or logs.ndim > 1:
            return None
        weighted = [
            part._replace(log_weights=part.log_weights + logs[k]) for k, part in enumerate(known)
        ]
        return Classes(*(jnp.concatenate(values) for values in zip(*weighted, strict=True)))

    def guarded(self: WeightedType) -> WeightedType:
        if not any(self._atoms()):
            return self
        inside: Any = keep_inside(jnp.asarray(self.weights), 0.02)
        return dataclasses.replace(self, weights=inside)  # type: ignore[type-var]

    def log_guard_ratio(self, t: Array, guarded: Any) -> Array:
        if not any(self._atoms()):
            return jnp.zeros_like(t)
        return self.log_density(t) - guarded.log_density(t)


@law()
class Mixture(Weighted):
    """A finite mixture of laws; its weights are learnt. Atoms (:class:`Dirac`) may be among them.

    Parameters
    ----------
    laws : tuple of Law
    weights : sequence of float, summing to one
    """

    laws: tuple[Law, ...]
    weights: ArrayLike | Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "laws", tuple(self.laws))
        object.__setattr__(self, "weights", as_vector(self.weights))
        self._check_weights()

    def _mixed(self) -> tuple[Law, ...]:
        return self.laws

    @property
    def _slab(self) -> int | None:
        """The index of the one law that is not an atom, if there is just one."""
        rest = [k for k, atom in enumerate(self._atoms()) if not atom]
        return rest[0] if len(rest) == 1 else None

    @property
    def n_uniforms(self) -> int:  # type: ignore[override]
        most = max(x.n_uniforms for x in self.laws)
        return max(most, 1) if self._slab is not None else most + 1

    @property
    def n_parameters(self) -> int:
        return len(self.laws) - 1 + sum(law.n_parameters for law in self.laws)

    @property
    def compiles_fast(self) -> bool:  # type: ignore[override]
        return all(x.compiles_fast for x in self.laws)

    @property
    def scale_power(self) -> float:  # type: ignore[override]
        return max(x.scale_power for x in self.laws if not isinstance(x, Dirac))

    @property
    def location(self) -> ArrayLike | None:
        return None if self._slab is None else self.laws[self._slab].location

    def located(self) -> Mixture:
        if self._slab is None:
            return super().located()  # type: ignore[return-value]
        return Mixture(
            tuple(x if isinstance(x, Dirac) else x.located() for x in self.laws), self.weights
        )

    def _log_terms(self, terms: list[Array]) -> tuple[Array, list[Array]]:
        """The log of the weighted sum of the laws' terms, given by their logs, and their shares."""
        return normalise([w + x for w, x in zip(self._log_weights(), terms, strict=True)])

    def _two_weights(self, logs: list[Array]) -> list[Array]:
        """The posterior weights of two laws from their log normalisers, by a logistic function."""
        prior = self._log_weights()
        second = once(jax.nn.sigmoid((logs[1] - logs[0]) + (prior[1] - prior[0])))
        return [1 - second, second]

    def _at_atom(self, t: Array) -> Array:
        """Whether each value is that of an atom."""
        at = [t == x.location for x in self.laws if isinstance(x, Dirac)]
        return functools.reduce(jnp.logical_or, at, jnp.zeros(t.shape, bool))

    def _given_value(self, t: Array) -> tuple[Array, list[Array]]:
        """Log density, and the probability of each law given the value.

        The point of an atom belongs to the atom.
        """
        at_atom = self._at_atom(t)
        densities = [x.log_density(t) for x in self.laws]
        return self._log_terms(
            [
                f if atom else jnp.where(at_atom, -jnp.inf, f)
                for f, atom in zip(densities, self._atoms(), strict=True)
            ]
        )

    def _memberships(self, t: Array) -> list[Array]:
        """The probability of each law given the value."""
        if self._slab is not None:
            return [
                (t == x.location if isinstance(x, Dirac) else ~self._at_atom(t)).astype(t.dtype)
                for x in self.laws
            ]
        return self._given_value(t)[1]

    def log_density(self, t: ArrayLike) -> Array:
        t = jnp.asarray(t)
        if self._slab is None:
            return self._given_value(t)[0]
        # written as a choice: its derivative in the weights then leaves the slab's density alone
        logs = self._log_weights()
        value = logs[self._slab] + self.laws[self._slab].log_density(t)
        for x, log_weight in zip(self.laws, logs, strict=True):
            if isinstance(x, Dirac):
                value = jnp.where(t == x.location, log_weight, value)
        return value

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return self._log_terms([x.log_normaliser(a, b) for x in self.laws])[0]

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        _, weights = self._log_terms([x.log_normaliser(a, b) for x in self.laws])
        return mixed_moments(weights, [x.moments(a, b) for x in self.laws])

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        if self._slab is None:
            order = list(range(len(self.laws)))
            switch = u[0]
            logs, draws = (
                [x.log_normaliser(a, b) for x in self.laws],
                [x.draw(u[1:], a, b) for x in self.laws],
            )
            weights = self._log_terms(logs)[1]
        else:
            # The slab comes first, on [0, w): u / w is then a fresh uniform, at full resolution.
            slab = self.laws[self._slab]
            order = [self._slab] + [k for k in range(len(self.laws)) if k != self._slab]
            switch = u[slab._shared_uniform]
            log_slab, draw_slab = slab._weigh_and_draw(u, a, b)
            logs = [
                log_slab if k == self._slab else x.log_normaliser(a, b)
                for k, x in enumerate(self.laws)
            ]
            weights = (
                self._two_weights(logs)
                if len(logs) == 2
                else [once(w) for w in self._log_terms(logs)[1]]
            )
            fresh = jnp.clip(
                switch * (1 / jnp.maximum(weights[self._slab], 1e-30)),
                1e-30,
                1 - np.finfo(b.dtype).epsneg,
            )
            draws = [draw_slab(once(fresh))] + [self.laws[k].draw((), a, b) for k in order[1:]]
        result = draws[-1]
        bounds = list(itertools.accumulate((weights[k] for k in order[:-1]), jnp.add))
        for value, bound in reversed(list(zip(draws[:-1], bounds, strict=True))):
            result = jnp.where(switch < bound, value, result)
        return result

    def statistics(self, t: Array) -> Any:
        shares = tuple(self._memberships(t))
        inner = tuple(
            jax.tree.map(functools.partial(jnp.multiply, m), x.statistics(t))
            for x, m in zip(self.laws, shares, strict=True)
        )
        return shares, inner

    def mstep(self, statistics: Any) -> Mixture:
        counts, inner = statistics
        laws = tuple(x.mstep(s) for x, s in zip(self.laws, inner, strict=True))
        return Mixture(laws, keep_inside(jnp.stack(counts, -1)))

    def mstep_of_each(self, statistics: Any) -> Mixture:
        """The mixtures of several components, their weights drawn towards each other.

        That is so where the laws in them are the same for all components, so that their weights can
        be compared.
        """
        counts, inner = statistics
        laws = tuple(x.mstep_of_each(s) for x, s in zip(self.laws, inner, strict=True))
        weights = jnp.stack(counts, -1)
        if not any(x.n_parameters for x in self.laws):
            weights = weights_together(weights)
        return Mixture(laws, keep_inside(weights))

    def class_statistics(self, counts: Array, sums: Array) -> Any:
        known = (x.classes() for x in self.laws)
        sizes = [len(part.means) for part in known if part is not None]
        ends = list(itertools.accumulate(sizes))
        slices = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        inner = [
            x.class_statistics(counts[s], sums[s]) for x, s in zip(self.laws, slices, strict=True)
        ]
        return tuple(counts[s].sum() for s in slices), tuple(inner)

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        terms = [
            (m, *x.scale_statistics(t))
            for x, m in zip(self.laws, self._memberships(t), strict=True)
        ]
        return add(m * x for m, x, _ in terms), add(m * one for m, _, one in terms)

    def location_statistics(self, t: Array) -> tuple[Array, Array]:
        if self._slab is None:
            return super().location_statistics(t)
        on = self._memberships(t)[self._slab]
        score, information = self.laws[self._slab].location_statistics(t)
        return on * score, on * information

    def log_guard_ratio(self, t: Array, guarded: Mixture) -> Array:
        if self._slab is None or not any(self._atoms()):
            return super().log_guard_ratio(t, guarded)
        change = jnp.log(jnp.asarray(self.weights)) - jnp.log(jnp.asarray(guarded.weights))
        return add(m * change[k] for k, m in enumerate(self._memberships(t)))


def keep_inside(counts: Array, floor: float = 1e-3) -> Array:
    """Weights proportional to ``counts``, none of them below ``floor``.

    A class or a switch whose weight is 0 could never come back.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from noisyica.laws import keep_inside
    >>> print(keep_inside(jnp.array([3.0, 1.0, 0.0]), floor=0.125))
    [0.65625 0.21875 0.125  ]
    """
    weights = counts / jnp.maximum(counts.sum(-1, keepdims=True), 1e-30)
    low = weights < floor
    rest = jnp.where(low, 0.0, weights)
    rest = (
        rest
        * (1 - floor * low.sum(-1, keepdims=True))
        / jnp.maximum(rest.sum(-1, keepdims=True), 1e-30)
    )
    return jnp.where(low, floor, rest)


def as_vector(values: Any) -> Any:
    """A sequence of numbers as one array, so that learning keeps the structure of the pytree."""
    return np.asarray(values, float) if isinstance(values, (tuple, list)) else values


def normalise(logs: list[Array]) -> tuple[Array, list[Array]]:
    """Log of the sum of exponentials, and the exponentials divided by that sum.

    The latter sum to one to the last digit.
    """
    top = once(functools.reduce(jnp.maximum, logs))
    parts = [once(jnp.exp(x - jnp.where(jnp.isfinite(top), top, 0.0))) for x in logs]
    total = once(add(parts))
    return top + jnp.log(total), [once(part * (1 / total)) for part in parts]


def lower(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """The one of two pairs (minimiser, minimum) whose minimum is lower, element by element."""
    wins = second[1] < first[1]
    return jnp.where(wins, second[0], first[0]), jnp.where(wins, second[1], first[1])


def mixed_moments(
    weights: Sequence[Array], moments: Sequence[tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Mean and variance of a mixture.

    The variance is the one within the parts plus the one between them, so that nothing cancels.
    """
    pairs = list(zip(weights, moments, strict=True))
    mean = add(w * m for w, (m, _) in pairs)
    return mean, add(w * (v + jnp.square(m - mean)) for w, (m, v) in pairs)


def add(terms: Iterable[Array]) -> Array:
    """The sum of arrays, without the zero that ``sum`` begins with."""
    return functools.reduce(jnp.add, terms)
