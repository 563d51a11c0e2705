"""Finite mixtures, whose weights are learnt: of any laws, or of normals in pairs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import LOG_2, once
from noisyica.laws.atoms import Dirac, Normal
from noisyica.laws.base import Law, Piece, Uniforms, law
from noisyica.laws.shift import FIRST_LOCATION, Located

Array = jax.Array


@law()
class Mixture(Law):
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
        object.__setattr__(self, "weights", _as_vector(self.weights))

    def _atoms(self) -> list[bool]:
        """Of each law, whether it is an atom."""
        return [isinstance(x, Dirac) for x in self.laws]

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
    def smooth(self) -> bool:  # type: ignore[override]
        return all(x.smooth for x in self.laws)

    @property
    def n_parameters(self) -> int:
        return len(self.laws) - 1 + sum(law.n_parameters for law in self.laws)

    @property
    def compiles_fast(self) -> bool:  # type: ignore[override]
        return all(x.compiles_fast for x in self.laws)

    @property
    def location(self) -> ArrayLike | None:
        return None if self._slab is None else self.laws[self._slab].location

    def located(self) -> Mixture:
        if self._slab is None:
            return super().located()  # type: ignore[return-value]
        return Mixture(
            tuple(x if isinstance(x, Dirac) else x.located() for x in self.laws), self.weights
        )

    def _log_weights(self) -> list[Array]:
        """The log of each law's weight."""
        logs = jnp.log(jnp.asarray(self.weights))
        return [logs[k] for k in range(len(self.laws))]

    def _log_terms(self, terms: list[Array]) -> tuple[Array, list[Array]]:
        """The log of the weighted sum of the laws' terms, given by their logs, and their shares."""
        return _normalise([w + x for w, x in zip(self._log_weights(), terms, strict=True)])

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
        return _mix(weights, [x.moments(a, b) for x in self.laws])

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

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        minima = []
        for x, w in zip(self.laws, self._log_weights(), strict=True):
            t, value = x.best(a, b)
            minima.append((t, value - w))
        return functools.reduce(_better, minima)

    def penalty(self, t: ArrayLike) -> Array:
        terms = [x.penalty(t) - w for x, w in zip(self.laws, self._log_weights(), strict=True)]
        return functools.reduce(jnp.minimum, terms)

    def pieces(self) -> list[Piece]:
        kinks = not any(self._atoms())  # where there is an atom, zero is taken care of
        return [
            x
            for law in self.laws
            for x in law.pieces()
            if kinks or x.free or isinstance(law, Dirac)
        ]

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

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        terms = [
            (m, *x.scale_statistics(t))
            for x, m in zip(self.laws, self._memberships(t), strict=True)
        ]
        return _total(m * x for m, x, _ in terms), _total(m * one for m, _, one in terms)

    def guarded(self) -> Mixture:
        if not any(self._atoms()):
            return self
        weights = jnp.asarray(self.weights)
        return Mixture(self.laws, keep_inside(weights, 0.02))

    def log_guard_ratio(self, t: Array, guarded: Mixture) -> Array:
        if not any(self._atoms()):
            return jnp.zeros_like(t)
        change = jnp.log(jnp.asarray(self.weights)) - jnp.log(jnp.asarray(guarded.weights))
        if self._slab is None:
            return self.log_density(t) - guarded.log_density(t)
        return _total(m * change[k] for k, m in enumerate(self._memberships(t)))


@law()
class SymmetricNormals(Law):
    """The paper's IFA law, a mixture of normals of variance 1, in pairs of opposite means.

    N(0, 1) has weight w_0, and N(m_k, 1) and N(-m_k, 1) have weight w_k / 2 each. The means and
    weights are learnt.
    """

    means: ArrayLike | Sequence[float] = (2.0,)
    weights: ArrayLike | Sequence[float] = (0.5, 0.5)
    n_uniforms: ClassVar[int] = 2
    compiles_fast: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", _as_vector(self.means))
        object.__setattr__(self, "weights", _as_vector(self.weights))

    def _classes(self) -> list[tuple[Array, Array]]:
        """(mean, log weight) of each of the 2 K + 1 normals."""
        means, log_weights = jnp.asarray(self.means), jnp.log(jnp.asarray(self.weights))
        classes = [(jnp.zeros((), means.dtype), log_weights[0])]
        for k in range(means.shape[0]):
            half = log_weights[k + 1] - LOG_2
            classes += [(means[k], half), (-means[k], half)]
        return classes

    def log_density(self, t: ArrayLike) -> Array:
        t = jnp.asarray(t)
        return _normalise([w + Normal(m).log_density(t) for m, w in self._classes()])[0]

    def _tilted(self, a: Array, b: Array) -> tuple[Array, list[Array]]:
        """Log normaliser, and posterior weights of the classes.

        What the classes have in common is left out of the weights.
        """
        shrink = 1 / (1 + a)
        total, weights = _normalise(
            [w + (b - 0.5 * a * m) * m * shrink for m, w in self._classes()]
        )
        return total + 0.5 * b * b * shrink - 0.5 * jnp.log1p(a), weights

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return self._tilted(*floating(a, b))[0]

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        classes = self._classes()
        _, weights = self._tilted(a, b)
        return _mix(weights, [Normal(m).moments(a, b) for m, _ in classes])

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        classes = self._classes()
        _, weights = self._tilted(a, b)
        mean, below = classes[-1][0] * jnp.ones_like(b), jnp.ones_like(b)
        for (m, _), w in reversed(list(zip(classes[:-1], weights[1:], strict=True))):
            below = below - w
            mean = jnp.where(u[0] < below, m, mean)
        return Normal(mean).draw(u[1:], a, b)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        minima = []
        for m, w in self._labels():
            t, value = Normal(m).best(a, b)
            minima.append((t, value - w))
        return functools.reduce(_better, minima)

    def penalty(self, t: ArrayLike) -> Array:
        return functools.reduce(jnp.minimum, [Normal(m).penalty(t) - w for m, w in self._labels()])

    def pieces(self) -> list[Piece]:
        return [piece for m, _ in self._labels() for piece in Normal(m).pieces()]

    def _labels(self) -> list[tuple[Array, Array]]:
        """(mean, log weight of the label) of each normal.

        The sign is a hidden variable of its own, which costs the same whatever the label.
        """
        classes = self._classes()
        return [classes[0], *((m, w + LOG_2) for m, w in classes[1:])]

    @property
    def n_parameters(self) -> int:
        return 2 * int(np.shape(self.means)[-1])

    def _responsibilities(self, t: Array) -> list[Array]:
        """The probability of each class given the value."""
        return _normalise([w + Normal(m).log_density(t) for m, w in self._classes()])[1]

    def statistics(self, t: Array) -> Any:
        r = self._responsibilities(t)
        pairs = list(zip(r[1::2], r[2::2], strict=True))
        return (r[0], *(up + down for up, down in pairs)), tuple(
            (up - down) * t for up, down in pairs
        )

    def mstep(self, statistics: Any) -> SymmetricNormals:
        counts, sums = (jnp.stack(terms, -1) for terms in statistics)
        return SymmetricNormals(sums / jnp.maximum(counts[..., 1:], 1e-12), keep_inside(counts))

    def score(self, t: Array) -> Array:
        return _total(
            x * (t - m)
            for x, (m, _) in zip(self._responsibilities(t), self._classes(), strict=True)
        )

    def located(self) -> Located:
        # a mixture holds no more information than its classes: the step is on the safe side
        return Located(self, FIRST_LOCATION, 1.0)


def keep_inside(counts: Array, floor: float = 1e-3) -> Array:
    """Weights proportional to ``counts``, none of them below ``floor``.

    A class or a switch whose weight is 0 could never come back.
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


def _as_vector(values: Any) -> Any:
    """A sequence of numbers as one array, so that learning keeps the structure of the pytree."""
    return np.asarray(values, float) if isinstance(values, (tuple, list)) else values


def _normalise(logs: list[Array]) -> tuple[Array, list[Array]]:
    """Log of the sum of exponentials, and the exponentials divided by that sum.

    The latter sum to one to the last digit.
    """
    top = once(functools.reduce(jnp.maximum, logs))
    parts = [once(jnp.exp(x - jnp.where(jnp.isfinite(top), top, 0.0))) for x in logs]
    total = once(_total(parts))
    return top + jnp.log(total), [once(part * (1 / total)) for part in parts]


def _better(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """The one of two pairs (minimiser, minimum) whose minimum is lower, element by element."""
    wins = second[1] < first[1]
    return jnp.where(wins, second[0], first[0]), jnp.where(wins, second[1], first[1])


def _mix(weights: Sequence[Array], moments: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Mean and variance of a mixture.

    The variance is the one within the parts plus the one between them, so that nothing cancels.
    """
    pairs = list(zip(weights, moments, strict=True))
    mean = _total(w * m for w, (m, _) in pairs)
    return mean, _total(w * (v + jnp.square(m - mean)) for w, (m, v) in pairs)


def _total(terms: Iterable[Array]) -> Array:
    """The sum of arrays, without the zero that ``sum`` begins with."""
    return functools.reduce(jnp.add, terms)
