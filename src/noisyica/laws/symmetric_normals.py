"""The paper's IFA law: a mixture of normals in pairs of opposite means."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import LOG_2
from noisyica.laws.atoms import Normal
from noisyica.laws.base import Classes, Law, Piece, Uniforms, law
from noisyica.laws.mixtures import add, as_vector, keep_inside, lower, mixed_moments, normalise
from noisyica.laws.shift import FIRST_LOCATION, Located

Array = jax.Array


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
        object.__setattr__(self, "means", as_vector(self.means))
        object.__setattr__(self, "weights", as_vector(self.weights))

    def _normals(self) -> list[tuple[Array, Array]]:
        """(mean, log weight) of each of the 2 K + 1 normals."""
        means, log_weights = jnp.asarray(self.means), jnp.log(jnp.asarray(self.weights))
        classes = [(jnp.zeros((), means.dtype), log_weights[0])]
        for k in range(means.shape[0]):
            half = log_weights[k + 1] - LOG_2
            classes += [(means[k], half), (-means[k], half)]
        return classes

    def parts(self) -> list[tuple[ArrayLike, Law]]:
        return [(jnp.exp(log_weight), Normal(mean)) for mean, log_weight in self._normals()]

    def classes(self) -> Classes:
        means, log_weights = (jnp.stack(values) for values in zip(*self._normals(), strict=True))
        return Classes(log_weights, means, jnp.ones_like(means))

    def class_statistics(self, counts: Array, sums: Array) -> Any:
        pairs = counts[1::2] + counts[2::2]
        return (counts[0], *pairs), tuple(sums[1::2] - sums[2::2])

    def log_density(self, t: ArrayLike) -> Array:
        t = jnp.asarray(t)
        return normalise([w + Normal(m).log_density(t) for m, w in self._normals()])[0]

    def _tilted(self, a: Array, b: Array) -> tuple[Array, list[Array]]:
        """Log normaliser, and posterior weights of the classes.

        What the classes have in common is left out of the weights.
        """
        shrink = 1 / (1 + a)
        total, weights = normalise([w + (b - 0.5 * a * m) * m * shrink for m, w in self._normals()])
        return total + 0.5 * b * b * shrink - 0.5 * jnp.log1p(a), weights

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return self._tilted(*floating(a, b))[0]

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        classes = self._normals()
        _, weights = self._tilted(a, b)
        return mixed_moments(weights, [Normal(m).moments(a, b) for m, _ in classes])

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        classes = self._normals()
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
        return functools.reduce(lower, minima)

    def penalty(self, t: ArrayLike) -> Array:
        return functools.reduce(jnp.minimum, [Normal(m).penalty(t) - w for m, w in self._labels()])

    def pieces(self) -> list[Piece]:
        return [piece for m, _ in self._labels() for piece in Normal(m).pieces()]

    def _labels(self) -> list[tuple[Array, Array]]:
        """(mean, log weight of the label) of each normal.

        The sign is a hidden variable of its own, which costs the same whatever the label.
        """
        classes = self._normals()
        return [classes[0], *((m, w + LOG_2) for m, w in classes[1:])]

    @property
    def n_parameters(self) -> int:
        return 2 * int(np.shape(self.means)[-1])

    def _responsibilities(self, t: Array) -> list[Array]:
        """The probability of each class given the value."""
        return normalise([w + Normal(m).log_density(t) for m, w in self._normals()])[1]

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
        return add(
            x * (t - m)
            for x, (m, _) in zip(self._responsibilities(t), self._normals(), strict=True)
        )

    def location_statistics(self, t: Array) -> tuple[Array, Array]:
        return self.score(t), jnp.ones_like(t)  # as below

    def located(self) -> Located:
        # a mixture holds no more information than its classes: the step is on the safe side
        return Located(self, FIRST_LOCATION, 1.0)
