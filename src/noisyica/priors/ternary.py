"""The prior of TE-ICA: signs times one scale per row, with a collapsed sampler."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from noisyica._jax.arrays import all_states, choose
from noisyica._jax.randomness import Key, split, uniforms
from noisyica._jax.sites import sweep_sites
from noisyica._jax.special import half_line_draw, log_half_line
from noisyica._jax.xla import once
from noisyica.laws import Classes, Law, keep_inside
from noisyica.priors.base import (
    Channel,
    Expansion,
    OffsetState,
    Prior,
    Self,
    as_pytree,
    probability,
)
from noisyica.priors.ridge import ridge, ridge_factor
from noisyica.priors.ternary_sites import draw, draw_sign, visit, with_new

Array = jax.Array

TERNARY_STATES = 60_000
"""The largest number of sign patterns that are enumerated."""

SURE = 5.0
"""The largest log odds of a sign in a proposal."""


class TernaryState(NamedTuple):
    """Signs y (p, n) in {-1, 0, 1} and the rows' scales s (n,)."""

    y: Array
    s: Array


def _uniforms(keys: tuple[Key, Key], like: Array) -> Array:
    """Draw uniforms of the shape and type of an array from each of two keys, by one kernel.

    The hash that makes them is a long kernel: two of them would take twice as long to compile.
    """
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *keys)
    return jax.vmap(lambda key: uniforms(key, 1, like.shape, like.dtype)[0])(stacked)


class SignsAndScale(Prior):
    """What the priors of signs times one scale per row share: their sampler.

    Gibbs sampling integrates s out: P(y | x) is proportional to prior(y) I(u'Gu, u'c - 1), a normal
    cdf (see :func:`noisyica._jax.special.log_half_line`), u being the coefficients in units of the
    scale, and then draws s given y. Alternating s | y and y | s would mix badly. The signs are
    drawn one by one; where the noise is low that cannot leave a wrong pattern, so each sweep ends
    with a Metropolis step on all signs of a row at once, whose proposal comes from least squares
    and not from where the row stands.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("gamma",)
    single_scale: ClassVar[bool] = True
    takes_row_weights: ClassVar[bool] = True
    # rows that share a scale are not independent: FastICA fails on them, and each of the others has
    # its range of gamma
    starts: ClassVar[tuple[str, ...]] = (
        *("fastica", "directions", "sparse directions", "clusters"),
        *4 * ("rotation",),
    )

    _gamma: ArrayLike

    @property
    def gamma(self) -> float:
        """P(Y = 1) = P(Y = -1)."""
        return float(self._gamma)  # type: ignore[arg-type]

    def sample_prior(self, key: Key, p: int, n: int, dtype: Any) -> TernaryState:
        keys = split(key, 2)
        (u,), (v,) = uniforms(keys[0], 1, (p, n), dtype), uniforms(keys[1], 1, (n,), dtype)
        return TernaryState(self._ternary(u, self._gamma), -jnp.log(v))

    def zeros(self, p: int, n: int, dtype: Any) -> Any:
        return TernaryState(np.zeros((p, n), dtype), np.ones(n, dtype))  # type: ignore[arg-type]

    @staticmethod
    def _ternary(u: Array, gamma: ArrayLike) -> Array:
        return (u < gamma).astype(u.dtype) - (u > 1 - jnp.asarray(gamma)).astype(u.dtype)

    def gibbs(self, key: Key, latent: TernaryState, channel: Channel) -> TernaryState:
        y, c = latent.y, channel.c
        log_odds = jnp.log(self._gamma) - jnp.log(1 - 2 * jnp.asarray(self._gamma))
        keys = split(key, 3)
        jump_keys = split(keys[2], 2)
        of_sites, of_proposals = _uniforms((keys[0], jump_keys[0]), y)
        of_scales, of_acceptance = _uniforms((keys[1], jump_keys[1]), latent.s)

        weight = () if channel.weight is None else (channel.weight,)
        more = self._more_cross(channel.G)

        def site(carry: Any, x: Any) -> tuple[Any, None]:
            y, *sums = carry
            (j, again), row, a, c_j, u, *more = x
            old = lax.dynamic_index_in_dim(y, j, keepdims=False)
            cross = once(sum(more, row @ y - a * old))
            new, without = draw(log_odds, a, old, cross, (c_j, u), (*sums, *weight))
            y = lax.dynamic_update_index_in_dim(y, new, j, 0)
            # read back what was written, through an index that XLA cannot know to be the same: it
            # would compute all of the above again
            new = lax.dynamic_index_in_dim(y, again, keepdims=False)
            return (y, *with_new(new, a, cross, c_j, without)), None

        # coefficients that are never zero count as one more sign that is not
        sums = (*self._forms(y, channel.G, c), jnp.abs(y).sum(0) + len(more))
        of_each = (jnp.broadcast_to(log_odds, (len(y),)), *more)
        swept = sweep_sites(visit, of_each, y, channel.G, (c, of_sites), (*sums, *weight))
        if swept is not None:
            y = swept[0]
        else:
            indices = (jnp.arange(len(y)), lax.optimization_barrier(jnp.arange(len(y))))
            inputs = (indices, channel.G, jnp.diag(channel.G), c, of_sites, *more)
            carry: Any = (y, *sums)
            (y, *_), _ = lax.scan(site, carry, inputs)
        y, quadratic, linear = self._jump((of_proposals, of_acceptance), y, channel, log_odds)
        quadratic, linear = channel.weighted(jnp.maximum(quadratic, 0.0), linear)
        return TernaryState(y, half_line_draw(of_scales, quadratic, linear - 1))

    def _jump(
        self, uniform: tuple[Array, Array], y: Array, channel: Channel, log_odds: Array
    ) -> tuple[Array, Array, Array]:
        """Take a Metropolis step on all signs of a row at once; return the signs, y'Gy and y'c.

        ``uniform`` holds the uniforms of the proposals (p, n) and of the acceptance (n,).

        The proposal takes a coefficient to be normal about its sign times the row's scale: with its
        variance by least squares, and a margin for the scale, which is the mean size of those that
        are more than half as large as the largest. It is never surer than ``SURE``: a row is kept
        from leaving a pattern that the proposal finds less likely than it is.
        """
        factor = ridge_factor(channel.G)
        beta, scale = self._guess((factor.T @ factor) @ channel.c)
        variance = jnp.square(factor).sum(0)[:, None]
        variance = variance if channel.weight is None else variance / channel.weight
        gain = once(scale / (variance + jnp.square(0.1 * scale) + 1e-30))
        up, down = (
            once(jnp.clip(log_odds + gain * (sign * beta - 0.5 * scale), -SURE, SURE))
            for sign in (1.0, -1.0)
        )
        new = draw_sign(uniform[0], once(jnp.exp(up)), jnp.exp(down), 1.0)

        def log_ratio(y: Array) -> tuple[Array, Array, Array]:
            """Return the log of posterior over proposal, up to a constant, y'Gy and y'c."""
            # anew, not as carried through the sweep: rounding errors of the sums of many signs
            # would be large beside the sums of few
            quadratic, linear = self._forms(y, channel.G, channel.c)
            q, c = channel.weighted(jnp.maximum(quadratic, 0.0), linear)
            posterior = log_half_line(q, c - 1)
            posterior = jnp.abs(y).sum(0) * log_odds + posterior
            proposal = jnp.where(y > 0, up, jnp.where(y < 0, down, 0.0)).sum(0)
            return posterior - proposal, quadratic, linear

        old, candidate = log_ratio(y), log_ratio(new)
        accepted = jnp.log(uniform[1]) < candidate[0] - old[0]
        return choose(accepted, (new, *candidate[1:]), (y, *old[1:]))

    def _guess(self, beta: Array) -> tuple[Array, Array]:
        """Return about what s y is, and s, from coefficients beta (p, n) by least squares."""
        size = jnp.abs(beta)
        large = (size > 0.5 * size.max(0)).astype(size.dtype)
        return beta, (size * large).sum(0) / jnp.maximum(large.sum(0), 1.0)

    def _more_cross(self, G: Array) -> tuple[Array, ...]:
        """Return what is to be added (p,) to the products of G with y, if anything is."""
        return ()

    def _forms(self, y: Array, G: Array, c: Array) -> tuple[Array, Array]:
        """Return u'Gu and u'c of each row, u being y here."""
        return (y * (G @ y)).sum(0), (y * c).sum(0)

    def metropolis(self, key: Key, latent: TernaryState, channel: Channel) -> TernaryState:
        y, s, c = latent.y, latent.s, channel.c
        guard = jnp.clip(jnp.asarray(self._gamma), 0.01, 0.49)
        zero = (1 - 2 * jnp.asarray(self._gamma)) / (1 - 2 * guard)
        change = jnp.log(self._gamma / guard) - jnp.log(zero)
        keys = split(key, 2)

        def site(y: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c_j, u, *more = x
            old = y[j]
            new = self._ternary(u[1], guard)
            a, b = channel.weighted(a, c_j - s * sum(more, row @ y - a * old))
            gain = s * (new - old) * (b - 0.5 * a * s * (new + old))
            gain = gain + (jnp.abs(new) - jnp.abs(old)) * change
            return y.at[j].set(jnp.where(jnp.log(u[0]) < gain, new, old)), None

        u = uniforms(keys[0], 2, y.shape, y.dtype)
        inputs = (jnp.arange(y.shape[0]), channel.G, jnp.diag(channel.G), c, u)
        y = lax.scan(site, y, (*inputs, *self._more_cross(channel.G)))[0]
        quadratic, linear = channel.weighted(*self._forms(y, channel.G, c))
        v = uniforms(keys[1], 2, s.shape, y.dtype)
        new = -jnp.log(v[0])
        gain = (new - s) * (linear - 0.5 * quadratic * (new + s))
        return TernaryState(y, jnp.where(jnp.log(v[1]) < gain, new, s))

    def coefficients(self, latent: TernaryState) -> Array:
        return latent.s * latent.y

    def statistics(self, latent: TernaryState, weight: Array) -> Array:
        """Return how many signs are zero and how many are not."""
        on = (jnp.abs(latent.y) * weight).sum(-1).sum()
        return jnp.stack([latent.y.shape[0] * weight.sum() - on, on])

    def transform(self, latent: TernaryState, W: Array, shift: Array) -> TernaryState:
        return latent._replace(s=latent.s * W[0, 0])


@as_pytree("_gamma")
class SingleScaleTernary(SignsAndScale):
    """TE-ICA: beta_j = s Y_j with one exponential s per row, P(Y_j = 1) = P(Y_j = -1) = gamma.

    Its sampler is that of :class:`SignsAndScale`.
    """

    def __init__(self, gamma: float = 0.25) -> None:
        self._gamma = probability("gamma", gamma, 0.5)

    def shifted(self) -> Prior:
        # imported here, since it is made of this module
        from noisyica.priors.ternary_shifted import ShiftedSingleScaleTernary

        return ShiftedSingleScaleTernary(self.gamma)

    def plain_fields(self) -> dict[str, Any]:
        return {"gamma": self.gamma}

    @classmethod
    def from_plain_fields(cls: type[Self], fields: dict[str, Any]) -> Self:
        return cls(**fields)

    @staticmethod
    def _parts(beta: Array) -> tuple[Array, Array, Array]:
        """Return how many coefficients of a row are not zero, their scale, and if all share it."""
        size = jnp.abs(beta)
        s = size.max(0)
        return (beta != 0).sum(0), s, jnp.all((beta == 0) | (jnp.abs(size - s) <= 1e-6 * s), axis=0)

    def log_density(self, beta: Array, offset: Array) -> Array:
        on, s, one_scale = self._parts(beta)
        gamma = jnp.asarray(self._gamma)
        signs = on * jnp.log(gamma) + (beta.shape[0] - on) * jnp.log(1 - 2 * gamma)
        # beta = 0 is an atom: its scale is integrated out
        return jnp.where(one_scale, signs - s, -jnp.inf)

    def mstep(self: Self, statistics: Array) -> Self:
        return jax.tree.unflatten(jax.tree.structure(self), [keep_inside(statistics)[1] / 2])

    def classes(self) -> Classes:
        """Return the signs as classes, whose "means" they are."""
        gamma = jnp.asarray(self._gamma)
        log_weights = jnp.log(jnp.stack([1 - 2 * gamma, gamma, gamma]))
        return Classes(log_weights, jnp.array([0.0, 1.0, -1.0]), jnp.zeros(3))

    def class_statistics(self, counts: Array, sums: Array) -> Array:
        return jnp.stack([counts[0], counts[1] + counts[2]])

    def expansion(self, latent: TernaryState, weight: Array) -> Expansion:
        # the scale of a row is exponential of mean 1; rows with all signs zero say nothing of A
        p = latent.y.shape[0]
        active = weight * (jnp.abs(latent.y).sum(0) > 0)
        total, count = (active * latent.s).sum(), active.sum()
        ones = jnp.ones((p,), latent.s.dtype)
        return Expansion(
            products=jnp.eye(p, dtype=latent.s.dtype) * total,
            squares=ones * weight.sum(),
            rows=count * ones,
            scores=0 * ones,
        )

    def scale_information(self, p: int) -> np.ndarray:
        # one exponential scale for all coefficients of a row, of those rows that have any
        return np.full(p, 1 - (1 - 2 * self.gamma) ** p)

    def variance(self) -> float:
        return 4 * self.gamma

    def mean_square(self) -> Array:
        return 4 * jnp.asarray(self._gamma)

    @property
    def _cost(self) -> Array:
        """What a sign that is not zero costs, less what a zero costs."""
        return jnp.log(1 - 2 * jnp.asarray(self._gamma)) - jnp.log(self._gamma)

    def penalty(self, beta: Array, offset: Array) -> Array:
        on, s, one_scale = self._parts(beta)
        # where all are zero the signs need not be: the scale may be
        cost = jnp.where(on > 0, on * self._cost + s, jnp.minimum(len(beta) * self._cost, 0.0))
        return jnp.where(one_scale, cost, jnp.inf)

    def ascend(self, latent: TernaryState, channel: Channel) -> TernaryState:
        """Set each sign in turn, with the scale always at its best, max(y'c - 1, 0) / y'Gy."""

        def value(quadratic: Array, linear: Array) -> Array:
            q = jnp.where(quadratic > 0, quadratic, jnp.inf)
            return -0.5 * jnp.square(jnp.maximum(linear - 1, 0.0)) / q

        def site(carry: Any, x: Any) -> tuple[Any, None]:
            y, quadratic, linear = carry
            j, row, a, c_j = x
            old = y[j]
            cross = row @ y - a * old
            q0, l0 = quadratic - old * (2 * cross + a * old), linear - old * c_j
            up, down = value(q0 + a + 2 * cross, l0 + c_j), value(q0 + a - 2 * cross, l0 - c_j)
            new = jnp.where(
                jnp.minimum(up, down) + self._cost < value(q0, l0),
                jnp.where(up <= down, 1.0, -1.0),
                0.0,
            ).astype(y.dtype)
            return (y.at[j].set(new), q0 + jnp.abs(new) * a + 2 * new * cross, l0 + new * c_j), None

        y, G, c = latent.y, channel.G, channel.c
        carry: Any = (y, *self._forms(y, G, c))
        (y, *_), _ = lax.scan(site, carry, (jnp.arange(len(y)), G, jnp.diag(G), c))
        return TernaryState(y, self._best_scale(*self._forms(y, G, c)))

    @staticmethod
    def _best_scale(quadratic: Array, linear: Array) -> Array:
        return jnp.maximum(linear - 1, 0.0) / jnp.where(quadratic > 0, quadratic, jnp.inf)

    def candidates(self, channel: Channel, offset: Law | None = None) -> tuple[Any, bool]:
        p, n = channel.c.shape
        if 3**p > TERNARY_STATES:
            # the signs of the 1 to p largest coefficients that least squares gives
            beta, mu = ridge(channel)
            rank = (-jnp.abs(beta)).argsort(0).argsort(0)
            y = jnp.sign(beta) * (rank <= jnp.arange(p)[:, None, None])
            latent = TernaryState(y, jnp.ones((p, n)))
            return latent if offset is None else OffsetState(latent, jnp.tile(mu, (p, 1))), False
        size = 3 ** max(k for k in range(p + 1) if k == 0 or 3**k * n <= 2**21)
        chunks = jnp.asarray(all_states(3, p) - 1.0).reshape(-1, size, p)

        def look(least: Any, y: Array) -> tuple[Any, None]:
            s, mu, cost = self._eliminated(y, channel, offset)
            best = jnp.argmin(cost, 0)
            pick = [jnp.take_along_axis(part, best[None], 0)[0] for part in (cost, s, mu)]
            new = (pick[0], y[best].T, *pick[1:])
            return choose(new[0] < least[0], new, least), None

        nothing = (jnp.full(n, jnp.inf), jnp.zeros((p, n)), jnp.zeros(n), jnp.zeros(n))
        (_, y, s, mu), _ = lax.scan(look, nothing, chunks)
        latent = TernaryState(y[None], s[None])
        return latent if offset is None else OffsetState(latent, mu[None]), True

    def _eliminated(
        self, y: Array, channel: Channel, offset: Law | None
    ) -> tuple[Array, Array, Array]:
        """Return the best scale and offset of each row for the signs y (m, p), and the objective.

        They are (m, n) each.
        """
        quadratic, linear = (y * (y @ channel.G)).sum(1)[:, None], y @ channel.c - 1
        q = jnp.where(quadratic > 0, quadratic, jnp.inf)
        signs = self._cost * jnp.abs(y).sum(1)[:, None]
        if offset is None:
            s = jnp.maximum(linear, 0.0) / q
            return s, jnp.zeros_like(s), signs - 0.5 * linear * s
        # with the scale at its best, even if that were negative, the offset sees another
        # channel; the objective is convex in both, so that where it wants a negative scale the best
        # one is 0
        r = (y @ channel.c_one)[:, None]
        mu, value = offset.best(channel.one_one - r * r / q, channel.x_one - r * linear / q)
        s = (linear - r * mu) / q
        alone, lonely = offset.best(channel.one_one, channel.x_one)
        cost = jnp.where(s > 0, value - 0.5 * linear * linear / q, lonely)
        return jnp.maximum(s, 0.0), jnp.where(s > 0, mu, alone), signs + cost
