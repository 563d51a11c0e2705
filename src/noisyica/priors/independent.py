"""Independent coefficients of any scalar law, common to the components or each component's own."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.randomness import Key, uniforms
from noisyica._jax.sites import sweep_sites
from noisyica._jax.xla import always, product
from noisyica.laws import Classes, Law
from noisyica.priors import pieces
from noisyica.priors.base import Channel, Expansion, OffsetState, Prior, as_pytree
from noisyica.priors.ridge import ridge

Array = jax.Array


class SparseSums(NamedTuple):
    """Sums over rows for the parameter expansion of laws with atoms or an infinite peak."""

    weight: Array  # ()  of the rows
    products: Array  # (p, p)  sign(beta) beta'
    signs: Array  # (p,)  sign(beta)
    values: Array  # (p,)  beta
    scale: Array  # (p,)  beta psi(beta) of those that are on, psi being the law's own score
    on: Array  # (p,)  the number of those that are on


@as_pytree("law", static="components")
class Independent(Prior):
    """Independent coefficients of a scalar law.

    The law is common to all components, or each component has parameters of its own.

    Parameters
    ----------
    law : Law
        Any law of :mod:`noisyica.laws`, or one composed from them.
    shared : bool, default=True
        Whether the parameters are common to all components.

    Examples
    --------
    >>> from noisyica.laws import Laplace, Normal, Mixture
    >>> from noisyica.priors import Independent
    >>> prior = Independent(Mixture((Normal(scale=0.2), Laplace()), weights=(0.8, 0.2)))
    """

    law: Law
    """The law; its leaves have a leading axis (p,) where they are not shared and p is known."""
    components: int | None
    """p if parameters are not shared, or 0 while p is not known; None if they are shared."""
    takes_row_weights: ClassVar[bool] = True
    known_variance: ClassVar[float | None] = None
    """The variance of a symmetric law without parameters, which then need not be computed."""

    def __init__(self, law: Law, shared: bool = True) -> None:
        if not isinstance(law, Law):
            raise TypeError(
                f"law must be an object of noisyica.laws, such as Laplace(); got {law!r}."
            )
        self.law = law
        self.components = None if shared or not jax.tree.leaves(law) else 0

    # ---------------------------------------------------------------- whether parameters are shared

    def for_components(self, p: int) -> Independent:
        if self.components == 0:
            law = jax.tree.map(
                lambda leaf: np.repeat(np.asarray(leaf, float)[None], p, 0), self.law
            )
            return self._with(law, p)
        if self.components not in (None, p):
            raise ValueError(
                f"The prior has parameters for {self.components} components, but there are {p}."
            )
        return self

    def reordered(self, order: np.ndarray) -> Independent:
        if not self.components:
            return self
        return self._with(jax.tree.map(lambda leaf: np.asarray(leaf)[order], self.law), len(order))

    def law_at(self, j: Array) -> Law:
        """Return the law of component j, which may be traced by JAX."""
        return (
            jax.tree.map(lambda leaf: jnp.asarray(leaf)[j], self.law)
            if self.components
            else self.law
        )

    def law_of_rows(self) -> Law:
        """Return a law for arrays (p, n), which treats row j of them as the law of component j."""
        if not self.components:
            return self.law
        return jax.tree.map(
            lambda leaf: jnp.moveaxis(jnp.asarray(leaf), 0, -1)[..., None], self.law
        )

    def _law_of_sites(self, p: int) -> Law:
        """Return the laws of all components, whose leaves have a leading axis (p,)."""
        if self.components:
            return self.law
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (p, *jnp.shape(leaf))), self.law)

    def _for_each_law(self, function: Any, *args: Any) -> Any:
        """Return ``function(law, *args)`` for the law that is shared, or for each component's law.

        In the second case the arguments and the answer have a leading axis (p,).
        """
        return jax.vmap(function)(self.law, *args) if self.components else function(self.law, *args)

    def _with(self, law: Law, components: int | None) -> Independent:
        """Return a prior of the same kind with another law."""
        new = object.__new__(type(self))
        new.law, new.components = law, components
        return new

    def law_of(self, j: int) -> Law:
        return self.law_at(j)  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------ the prior

    def log_marginal(self, p: int, points: np.ndarray) -> np.ndarray:
        if not points.size:
            return np.zeros((p, 0))
        prior = self.for_components(p)
        density: Any = jax.vmap(_log_density, (0, None)) if prior.components else _log_density
        return np.broadcast_to(np.asarray(density(prior.law, points)), (p, points.size))

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.law.smooth

    @property
    def compiles_fast(self) -> bool:  # type: ignore[override]
        return self.law.compiles_fast

    def sample_prior(self, key: Key, p: int, n: int, dtype: Any) -> Array:
        return self.law_of_rows().sample(key, jnp.zeros((), dtype), jnp.zeros((), dtype), (p, n))

    def zeros(self, p: int, n: int, dtype: Any) -> Any:
        return np.zeros((p, n), dtype)

    def gibbs(self, key: Key, latent: Array, channel: Channel) -> Array:
        sites = _sites(key, self.law.n_uniforms, latent, channel)
        carry = () if channel.weight is None else (channel.weight,)
        _, G, _, c, u = sites
        of_sites = self._law_of_sites(len(latent))
        swept = sweep_sites(_draw, of_sites, latent, G, (c, *u), carry)
        if swept is not None:
            return swept[0]

        def site(beta: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c, u = x
            a, b = channel.weighted(a, c - row @ beta + a * beta[j])
            return beta.at[j].set(lax.cond(always(j), self.law_at(j).draw, _zeros, u, a, b)), None

        return lax.scan(site, latent, sites)[0]

    def ascend(self, latent: Array, channel: Channel) -> Array:
        def site(beta: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c, _ = x
            return beta.at[j].set(self.law_at(j).mode(a, c - row @ beta + a * beta[j])), None

        return lax.scan(site, latent, _sites(jax.random.key(0), 0, latent, channel))[0]

    def penalty(self, beta: Array, offset: Array) -> Array:
        return self.law_of_rows().penalty(beta).sum(0)

    @property
    def convex(self) -> bool:
        return self.law.convex

    def candidates(self, channel: Channel, offset: Law | None = None) -> tuple[Any, bool]:
        G, c = channel.G, channel.c
        parts = [self.law_at(j).pieces() for j in range(len(c))]  # type: ignore[arg-type]
        if offset is not None:  # one more coefficient, that of a component of ones
            G = jnp.block([[G, channel.c_one[:, None]], [channel.c_one, channel.one_one]])
            c = jnp.concatenate([c, channel.x_one[None]])
            parts.append(offset.pieces())
        if pieces.count_states(parts) > pieces.MAX_STATES:
            beta, mu = ridge(channel)
            return beta[None] if offset is None else OffsetState(beta[None], mu[None]), False

        def objective(t: Array) -> Array:
            beta, mu = (t, jnp.zeros_like(t[0])) if offset is None else (t[:-1], t[-1])
            cost = (t * (0.5 * (G @ t) - c)).sum(0) + self.penalty(beta, mu)
            return cost if offset is None else cost + offset.penalty(mu)

        minima = pieces.best_minima(G, c, parts, objective)
        return minima if offset is None else OffsetState(minima[:, :-1], minima[:, -1]), True

    def classes(self) -> Classes | None:
        return self.law.classes() if self.components is None else None

    def class_statistics(self, counts: Array, sums: Array) -> Any:
        return self.law.class_statistics(counts, sums)

    def mean_square(self) -> Array:
        mean, variance = self._for_each_law(lambda law: law.moments(0.0, 0.0))
        return jnp.mean(variance + mean * mean)

    def metropolis(self, key: Key, latent: Array, channel: Channel) -> Array:
        zero = jnp.zeros((), latent.dtype)

        def site(beta: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c, u = x
            law, old = self.law_at(j), beta[j]
            proposal = law.guarded()
            new = proposal.draw(u[1:], zero, jnp.zeros_like(old))
            a, b = channel.weighted(a, c - row @ beta + a * old)
            gain = (new - old) * (b - 0.5 * a * (new + old))
            gain = gain + law.log_guard_ratio(new, proposal) - law.log_guard_ratio(old, proposal)
            return beta.at[j].set(jnp.where(jnp.log(u[0]) < gain, new, old)), None

        return lax.scan(site, latent, _sites(key, 1 + self.law.n_uniforms, latent, channel))[0]

    def coefficients(self, latent: Array) -> Array:
        return latent

    def with_coefficients(self, latent: Any, beta: Any) -> Any:
        return beta

    def log_density(self, beta: Array, offset: Array) -> Array:
        return self.law_of_rows().log_density(beta).sum(0)

    def statistics(self, latent: Array, weight: Array) -> Any:
        def total(terms: Array) -> Array:
            sums = jnp.broadcast_to(terms, latent.shape) @ weight
            return sums if self.components else sums.sum()

        return jax.tree.map(total, self.law_of_rows().statistics(latent))

    def mstep(self, statistics: Any) -> Independent:
        learn = self.law.mstep_of_each if self.components else self.law.mstep
        return self._with(learn(statistics), self.components)

    def expansion(self, latent: Array, weight: Array) -> Any:
        law = self.law_of_rows()
        if self.smooth:
            score = law.score(latent)
            weighted = score * weight
            return Expansion(
                products=product(weighted, latent.T),
                squares=(weighted * score).sum(-1),
                rows=jnp.full(latent.shape[:1], weight.sum()),
                scores=weighted.sum(-1),
            )
        scale, on = (terms @ weight for terms in law.scale_statistics(latent))
        signs = jnp.sign(latent) * weight
        return SparseSums(
            weight=weight.sum(),
            products=product(signs, latent.T),
            signs=signs.sum(-1),
            values=latent @ weight,
            scale=scale,
            on=on,
        )

    def expansion_from_sums(self, sums: Any) -> Expansion:
        """Return what parameter expansion needs from averages over rows.

        For laws that are not smooth, scales follow the law's own score, and rotations the score of
        a Laplace law with the mean absolute value of the coefficients.
        """
        if self.smooth:
            return super().expansion_from_sums(sums)
        size = jnp.diag(sums.products) / sums.weight + 1e-12
        # a location is not a dependence
        centred = sums.products - jnp.outer(sums.signs, sums.values) / sums.weight
        of_scale = sums.weight * sums.scale / jnp.maximum(sums.on, 1e-12)
        diagonal = jnp.eye(len(size), dtype=bool)
        return Expansion(
            products=jnp.where(diagonal, of_scale, centred / size[:, None]),
            squares=sums.on / (size * size),
            rows=jnp.full_like(sums.on, sums.weight),
            scores=jnp.zeros_like(sums.on),
        )

    def transform(self, latent: Array, W: Array, shift: Array) -> Array:
        return W @ latent + shift[:, None]

    @property
    def label(self) -> str:
        return (
            f"independent, {type(self.law).__name__}"
            if type(self) is Independent
            else super().label
        )

    @property
    def n_parameters(self) -> int:
        return self.law.n_parameters * (self.components or 1)

    def _variance_asymmetry_mean(self) -> tuple[float, float, float]:
        """Return the variance, the asymmetry and the mean of a coefficient.

        Where components have parameters of their own, these are the average variance, the largest
        asymmetry and the average mean.
        """
        answers = self._for_each_law(_variance_asymmetry_mean)
        variance, asymmetry, mean = (np.asarray(answer) for answer in answers)
        return float(variance.mean()), float(np.abs(asymmetry).max()), float(mean.mean())

    def scale_information(self, p: int) -> np.ndarray:
        values = self._for_each_law(_scale_information)
        return np.broadcast_to(np.asarray(values), (p,))

    def variance(self) -> float:
        return self.known_variance or self._variance_asymmetry_mean()[0]

    def mean(self) -> float:
        return self._variance_asymmetry_mean()[2]

    def shifted(self) -> Independent:
        return self._with(self.law.located(), self.components)

    @property
    def symmetric(self) -> bool:
        if self.law.location is not None:
            return False
        return self.known_variance is not None or self._variance_asymmetry_mean()[1] < 1e-5

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        if type(self) is not Independent:
            location = self.law.location
            return super().parameters | (
                {} if location is None else {"shift": np.asarray(location, float)}
            )
        return {
            "".join(str(k) for k in path).strip("."): np.asarray(leaf, float)
            for path, leaf in jax.tree_util.tree_flatten_with_path(self.law)[0]
        }

    def __repr__(self) -> str:
        if type(self) is not Independent:
            return super().__repr__()
        shared = "" if self.components is None else ", shared=False"
        return f"Independent(law={self.law!r}{shared})"


@jax.jit
def _variance_asymmetry_mean(law: Law) -> tuple[Array, Array, Array]:
    """Return the law's variance, how different it is from its mirror image, and its mean.

    It is one compiled call, since calls that are not compiled would take seconds.
    """
    # behind a barrier: XLA's algebraic simplifier does not come to an end with these as constants
    # in a mixture of an atom and ExponentialNormal, and says so on the terminal
    tilt = lax.optimization_barrier((jnp.ones(()), jnp.array([0.7, -0.7])))
    up, down = law.log_normaliser(*tilt)
    mean, variance = law.moments(0.0, 0.0)
    return variance, up - down, mean


@jax.jit
def _scale_information(law: Law) -> Array:
    """Return the mean square of the score in the logarithm of the scale, from draws of the law."""
    scores, on = law.scale_statistics(law.sample(jax.random.key(0), shape=(4096,)))
    return jnp.square(scores - on).mean()


@jax.jit
def _log_density(law: Law, points: Any) -> Any:
    return law.log_density(points)


def _sites(key: Key, n_uniforms: int, beta: Array, channel: Channel) -> tuple[Any, ...]:
    """Return what a scan over the components needs of each, along a leading axis.

    These are the component j, its row of G, a = G_jj, its row of c, and fresh uniforms.
    """
    u = uniforms(key, n_uniforms, beta.shape, beta.dtype)
    return jnp.arange(beta.shape[0]), channel.G, jnp.diag(channel.G), channel.c, u


def _draw(
    law: Law, a: Array, old: Array, cross: Array, inputs: Any, carry: Any
) -> tuple[Array, Any]:
    """Draw a coefficient of some rows, whose weights are carried along, if there are any."""
    c, *u = inputs
    b = c - cross
    if carry:
        a, b = a * carry[0], b * carry[0]
    return law.draw(tuple(u), a, b), carry


def _zeros(u: Any, a: Array, b: Array) -> Array:
    """Return zeros in place of a draw, in a branch that is never taken.

    (See :func:`noisyica._jax.xla.always`.)
    """
    return jnp.zeros_like(b)
