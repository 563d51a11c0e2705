"""Columns of any law (``mixing_prior="sparse"``, ``"nonnegative"`` or a law).

The model is symmetric in A and beta. Given the coefficients, row i of A sees the data through the
same kind of channel through which a row of coefficients sees them, with G = sum_n beta beta' /
sigma_i^2 and c = sum_n beta (x_i - mu_i) / sigma_i^2. So a :class:`noisyica.priors.Independent`
serves as the prior of A's entries, each column with parameters of its own, and entries are drawn
one column after the other by the law's own ``draw``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.randomness import uniforms
from noisyica._jax.xla import always, once
from noisyica.engine.mixing.base import MixingPrior, with_scale
from noisyica.engine.regression import Equations, equations, residual
from noisyica.engine.statistics import Mixing, Statistics
from noisyica.laws import Law
from noisyica.laws.mixtures import mixed_moments
from noisyica.laws.together import scales_together
from noisyica.posterior.parameters import Parameters
from noisyica.priors import Independent

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class ColumnsByLaw(MixingPrior):
    """Independent entries of a law whose scale is learnt for each column, and its weights, too.

    The parameters are an :class:`noisyica.priors.Independent` for the p columns.
    """

    compiles_fast = False
    smooth: bool = False  # type: ignore[misc]
    """Whether the law has a score that columns may be rotated by."""

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.smooth else ("varimax",)

    def begin(self, parameters: Parameters, floor: Any, count: Any) -> Any:
        prior = parameters.mixing
        size = np.sqrt((np.square(parameters.A).mean(0) + np.min(floor)) / prior.mean_square())
        return to_numpy(with_scale(prior, np.asarray(size, float)))

    def draw(
        self,
        key: Array,
        statistics: Statistics,
        parameters: Parameters,
        count: Array,
        free_mean: bool,
    ) -> tuple[Array, Mixing]:
        A, found = draw_columns(key, statistics, parameters, parameters.mixing, count, free_mean)
        return A, found._replace(law=parameters.mixing.statistics(A.T, jnp.ones(len(A))))

    def mstep(self, mixing: Mixing, old: Any, floor: Array) -> Any:
        new = old.mstep(mixing.law)
        square = jnp.maximum(jnp.square(new.law.scale), jnp.min(floor))
        # of how many entries the scale is learnt, and what each says of the log of its square
        entries = len(mixing.mean) if mixing.on is None else jnp.maximum(mixing.on.sum(0), 1.0)
        together = scales_together(square, entries * old.law.scale_power / 4)
        return with_scale(new, jnp.sqrt(together))

    def pull(self, parameters: Parameters, count: Array) -> tuple[Array, Array]:
        entries, prior = parameters.A.T, parameters.mixing
        sums = prior.expansion(entries, jnp.ones(entries.shape[1]))
        products, squares, _, _ = prior.expansion_from_sums(sums)
        # psi(a_j) . a_i, and its derivative along a_j -> a_j + a_i
        curvature = jnp.outer(jnp.square(entries).mean(1), squares)
        return products.T / count, curvature / count

    def log_density(self, parameters: Parameters, mixing: Mixing) -> float:
        prior = cast(to_numpy(parameters.mixing), float)
        entries = jnp.asarray(np.asarray(parameters.A).T)
        return float(prior.log_density(entries, jnp.zeros(entries.shape[1])).sum())

    def learnt(self, parameters: Parameters, unit: float, order: np.ndarray) -> Independent:
        prior: Any = to_numpy(parameters.mixing)
        return with_scale(prior, np.asarray(prior.law.scale) * unit).reordered(order)


def draw_columns(
    key: Array,
    statistics: Statistics,
    parameters: Parameters,
    prior: Independent,
    count: Array,
    free_mean: bool,
) -> tuple[Array, Mixing]:
    """Draw the columns of A one after the other, given the coefficients of ``count`` rows.

    The entries have the law ``prior``. Moments are those of each entry given the others.
    """
    regression = equations(statistics, parameters.prior, free_mean)
    noise = parameters.sigma2
    A, (mean, variance, on) = _sweep(key, parameters, prior, regression, count / noise)
    left = residual(A, regression) + free_mean * noise / count
    square = jnp.square(mean) + variance
    return A, Mixing(mean, square, shift=mean @ statistics.b, residual=left, on=on)


def _sweep(
    key: Array, parameters: Parameters, prior: Any, regression: Equations, precision: Array
) -> tuple[Array, Any]:
    """Draw each column of A given the others; return A, and moments of each entry (d, p).

    These are its mean and variance given the others, and its probability not to be at an atom.
    """
    entries = parameters.A.T
    c = regression.cross.T * precision
    # the law's answers in single precision take a third of the time, and suffice unless columns
    # with hardly any noise make tilts whose squares are beyond its range
    dtype = "float64" if parameters.sigma2.ndim else "float32"
    u = uniforms(key, prior.law.n_uniforms, entries.shape, jnp.dtype(dtype))
    laws = cast(prior, dtype)

    def site(entries: Array, x: Any) -> tuple[Array, Any]:
        j, row, c, u = x
        a = row[j] * precision
        b = c - precision * (row @ entries) + a * entries[j]
        tilt = a.astype(dtype), b.astype(dtype)
        new, *moments = lax.cond(always(j), _draw_and_weigh, _nothing, laws.law_at(j), u, *tilt)
        return entries.at[j].set(new.astype(float)), moments

    inputs = (jnp.arange(len(entries)), regression.covariance, c, u)
    entries, moments = lax.scan(site, entries, inputs)
    return entries.T, jax.tree.map(lambda values: values.T.astype(float), moments)


def _draw_and_weigh(law: Law, u: Any, a: Array, b: Array) -> tuple[Array, Array, Array, Any]:
    """Return a draw from a tilted law, its mean and variance, and its probability to be on.

    The last one is None where the law has no atoms.
    """
    parts = law.parts()
    shares = _shares([jnp.log(weight) + part.log_normaliser(a, b) for weight, part in parts])
    mean, variance = mixed_moments(shares, [part.moments(a, b) for _, part in parts])
    on = None
    if any(part.atom is not None for _, part in parts):
        on = sum(share for share, (_, part) in zip(shares, parts, strict=True) if part.atom is None)
    return law.draw(u, a, b), mean, variance, on


def _shares(logs: list[Array]) -> list[Array]:
    """Return the shares of the parts of a law, given the logs of their weights."""
    if len(logs) == 1:
        return [jnp.ones_like(logs[0])]
    if len(logs) == 2:  # a third of the time of a softmax
        second = once(jax.nn.sigmoid(logs[1] - logs[0]))
        return [1 - second, second]
    return list(jax.nn.softmax(jnp.stack(logs), 0))


def _nothing(law: Law, u: Any, a: Array, b: Array) -> Any:
    """Return zeros in place of a draw, in a branch that is never taken."""
    shapes = jax.eval_shape(_draw_and_weigh, law, u, a, b)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
