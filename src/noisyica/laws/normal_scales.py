"""Mixtures of centred normals on a grid of scales, an atom at 0 being the scale 0."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import LOG_2PI, normal_quantile
from noisyica._jax.xla import once
from noisyica.laws.atoms import Dirac, Normal
from noisyica.laws.base import Law, Uniforms, law
from noisyica.laws.mixtures import Weighted, add, as_vector, mixed_moments, normalise
from noisyica.laws.together import weights_together

Array = jax.Array

SMOOTH, NORMAL, PSEUDO = 10.0, 20.0, 0.2
"""How many values, of all components together, parts of the weak prior of the weights count for.

``SMOOTH`` make weights of neighbouring scales alike, ``NORMAL`` are normal where there is no sign
of narrow classes, and ``PSEUDO`` keep weights off 0."""
DOUBT = 1.5
"""What the evidence for narrow classes, of all components together, has to exceed."""
LEAST_LOG = -80.0
"""The minimum log weight of a class where shares of values are worked out."""
NARROW = 0.4
"""The scale below which a class is narrow, the atom included."""


@law("scales")
class NormalScales(Weighted):
    """A mixture of normals of mean 0 on a grid of scales; 0 among them is an atom at 0.

    Its weights are learnt, and the scales are not. The more scales there are, the more symmetric
    laws with one peak at 0, and tails no lighter than normal ones, it comes close to.

    The scale of a coefficient is that of its column of A, but moving all weights along the grid is
    a change of scale, too.

    Parameters
    ----------
    scales : sequence of float
        The scales, in increasing order.
    weights : sequence of float, summing to one

    Examples
    --------
    >>> from noisyica.laws import NormalScales
    >>> law = NormalScales((0.0, 0.5, 1.0, 2.0), (0.4, 0.3, 0.2, 0.1))
    >>> mean, variance = law.moments(0.0, 0.0)
    >>> print(f"{float(variance):.3f}")
    0.675
    """

    scales: tuple[float, ...]
    weights: ArrayLike | Sequence[float]
    n_uniforms: ClassVar[int] = 2
    compiles_fast: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", tuple(float(s) for s in self.scales))
        object.__setattr__(self, "weights", as_vector(self.weights))
        if not all(low < high for low, high in itertools.pairwise(self.scales)):
            raise ValueError(f"The scales of NormalScales must increase; got {self.scales}.")
        if not self.scales or self.scales[0] < 0:
            raise ValueError(f"The scales of NormalScales must be 0 or more; got {self.scales}.")
        self._check_weights()

    def _mixed(self) -> tuple[Law, ...]:
        return tuple(Normal(scale=s) if s else Dirac() for s in self.scales)

    def _with(self, weights: Any) -> NormalScales:
        """The law with other weights."""
        return NormalScales(self.scales, weights)

    @property
    def _has_atom(self) -> bool:
        return self.scales[0] == 0

    @property
    def n_parameters(self) -> int:
        # weights sum to one, and moving them along the grid is a change of the column of A
        return max(len(self.scales) - 2, 0)

    # ------------------------------------------------------------------------------- tilted laws

    def _tilted(self, a: Array, b: Array) -> tuple[list[Array], list[Array]]:
        """The logs of the classes' masses under a tilt, and their variances.

        The tilt of N(0, v) is N(tau b, tau) with tau = v / (1 + a v), of mass
        exp(tau b^2 / 2) / sqrt(1 + a v). The atom has tau = 0. What depends on a alone is of one
        number where all rows have the same a.
        """
        variances = [s * s / (1 + a * (s * s)) for s in self.scales]
        constants = [
            w - 0.5 * jnp.log1p(a * (s * s))
            for w, s in zip(self._log_weights(), self.scales, strict=True)
        ]
        half = once(0.5 * b * b)
        return [c + tau * half for c, tau in zip(constants, variances, strict=True)], variances

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return normalise(self._tilted(*floating(a, b))[0])[0]

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        logs, variances = self._tilted(a, b)
        return mixed_moments(normalise(logs)[1], [(tau * b, tau) for tau in variances])

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        logs, variances = self._tilted(a, b)
        # one uniform chooses the class, and one normal value serves whichever it is
        top = once(functools.reduce(jnp.maximum, logs))
        bounds = list(itertools.accumulate((once(jnp.exp(x - top)) for x in logs), jnp.add))
        switch = once(u[0] * bounds[-1])
        chosen = variances[-1] + jnp.zeros_like(b)
        for tau, bound in reversed(list(zip(variances[:-1], bounds[:-1], strict=True))):
            chosen = jnp.where(switch < bound, tau, chosen)
        chosen = once(chosen)
        return chosen * b + jnp.sqrt(chosen) * normal_quantile(u[1])

    def class_statistics(self, counts: Array, sums: Array) -> Any:
        return tuple(counts)

    # ------------------------------------------------------------------------------ given a value

    def log_density(self, t: ArrayLike) -> Array:
        t = floating(t)[0]
        half, at_atom = -0.5 * t * t, t == 0
        logs = []
        for w, s in zip(self._log_weights(), self.scales, strict=True):
            if s == 0:
                logs.append(jnp.where(at_atom, w, -jnp.inf))
                continue
            value = half * (1 / s**2) + (w - float(np.log(s)) - 0.5 * LOG_2PI)
            logs.append(jnp.where(at_atom, -jnp.inf, value) if self._has_atom else value)
        return normalise(logs)[0]

    def _relative_densities(self, t: Array) -> tuple[list[Array], Array]:
        """The density of each normal times its weight, and their sum; all times a common factor.

        All are divided by what the widest one has of the value, so that they never all vanish,
        however large the value is.
        """
        half, s = once(-0.5 * (t * t)), [s for s in self.scales if s]
        logs = self._log_weights()[self._has_atom :]
        densities = [
            once(
                jnp.exp(jnp.maximum(w, LEAST_LOG) - float(np.log(x)) + half * (x**-2 - s[-1] ** -2))
            )
            for w, x in zip(logs, s, strict=True)
        ]
        return densities, add(densities)

    def score(self, t: Array) -> Array:
        densities, total = self._relative_densities(t)
        s = [s for s in self.scales if s]
        return t * add(f * x**-2 for f, x in zip(densities, s, strict=True)) * (1 / total)

    def shares(self, t: Array) -> list[Array]:
        """The probability of each class given the value."""
        densities, total = self._relative_densities(t)
        if not self._has_atom:
            return [f * (1 / total) for f in densities]
        at_atom = t == 0
        share = once(jnp.where(at_atom, 0.0, 1 / total))
        return [at_atom.astype(t.dtype), *(f * share for f in densities)]

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        on = (t != 0).astype(t.dtype) if self._has_atom else jnp.ones_like(t)
        return t * self.score(t), on

    def statistics(self, t: Array) -> Any:
        return tuple(self.shares(t))

    def mstep(self, statistics: Any) -> NormalScales:
        counts = jnp.stack(statistics, -1)
        return self._with(weights_of(counts[None], self.scales)[0])

    def mstep_of_each(self, statistics: Any) -> NormalScales:
        """The laws of several components, their weights drawn towards each other."""
        counts = jnp.stack(statistics, -1)
        drawn = counts.sum(-1, keepdims=True) * weights_together(counts)
        return self._with(weights_of(drawn, self.scales))


def weights_of(counts: Array, scales: Sequence[float]) -> Array:
    """Return the weights (p, K) of p components from their counts (p, K), under a weak prior.

    Where few rows are known, the prior keeps from the law what rows show by chance, and what the
    components turn to. Its parts are divided between the components.

    * Narrow classes are what chance shows first: a direction in which some values happen to be
      next to 0 looks like a peak there, and once the law has the peak, the component stays in that
      direction. Of N values of a smooth law about sqrt(N) can look narrow so. The square of the
      narrow count divided by N is therefore the evidence that narrow classes are real, and their
      counts are believed by the share evidence / (evidence + ``DOUBT``).
    * ``NORMAL`` values, times the share that is not believed, have the scale next to 1, if they
      are not zeros: of a law with zeros, their share stays what it is.
    * ``SMOOTH`` values are those of all components with half of each scale exchanged for its
      neighbours, since weights of neighbouring scales are hard to tell apart.
    * ``PSEUDO`` values are there for all classes, since one of weight 0 could never come back;
      scales above 1 have fewer of these, such that each adds the same to the variance.
    """
    s, p = np.asarray(scales, float), len(counts)
    narrow, atom, unit = s < NARROW, s == 0, np.arange(len(s)) == np.abs(s - 1).argmin()
    kept, doubted = _believed(counts, narrow)
    common = counts.sum(0)
    smooth = SMOOTH * (common @ _kernel(scales)) / jnp.maximum(common.sum(), 1e-9)
    off = _share(kept, atom)
    normal = NORMAL * doubted * (off * atom + (1 - off) * unit)
    pseudo = np.minimum(1.0, 1 / np.square(np.maximum(s, 1.0)))
    found = kept + (smooth + normal + PSEUDO * pseudo / pseudo.sum()) / p
    return found / found.sum(-1, keepdims=True)


def _believed(counts: Array, narrow: np.ndarray) -> tuple[Array, Array]:
    """Return the counts, narrow ones as far as they are believed, and the share (p, 1) in doubt."""
    evidence = _share(counts, narrow) * (counts * narrow).sum(-1, keepdims=True)
    doubt = DOUBT / len(counts)
    believed = evidence / (evidence + doubt)
    return counts * jnp.where(narrow, believed, 1.0), 1 - believed


def _share(counts: Array, classes: np.ndarray) -> Array:
    """Return the share (p, 1) that some classes have in the counts (p, K)."""
    total = jnp.maximum(counts.sum(-1, keepdims=True), 1e-9)
    return (counts * classes).sum(-1, keepdims=True) / total


def _kernel(scales: Sequence[float]) -> np.ndarray:
    """Return the matrix (K, K) that exchanges half of each scale for its neighbours; 0 has none."""
    K = len(scales)
    near = np.abs(np.subtract.outer(np.arange(K), np.arange(K))) == 1
    if scales[0] == 0:
        near[0] = near[:, 0] = False
    kernel = 0.25 * near
    return np.asarray(kernel + np.diag(1 - kernel.sum(1)))
