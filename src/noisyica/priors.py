"""Priors on the coefficients of a row, and the table of the paper's nine.

Most priors are :class:`Independent`: every coefficient has the same scalar law (:mod:`noisyica.laws`). The ternary priors with one
scale a row are not; they bring their own latent variables and their own collapsed sampler.

A prior is immutable, a pytree whose leaves are its parameters, and knows how to draw its latent variables given the data (through a
:class:`Channel`), to summarise them in sufficient statistics, and to re-estimate itself from those.

Examples
--------
>>> from noisyica import priors
>>> priors.get("bg")
BernoulliGaussian(alpha=0.5)
>>> from noisyica.laws import Dirac, Laplace, Mixture
>>> priors.get(Mixture((Dirac(), Laplace()), weights=(0.7, 0.3)))
Independent(law=Mixture(laws=(Dirac(location=0.0), Laplace(scale=1.0)), weights=array([0.7, 0.3])))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from noisyica import laws, pieces
from noisyica._array import all_states, split, uniforms
from noisyica.laws import Dirac, ExponentialNormal, FreeNormal, Law, Mixture, Normal, SymmetricNormals, keep_inside
from noisyica.special import eliminate, half_line_draw, log_half_line, once

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


class Prior:
    """Base of all priors. ``parameter_names`` are the attributes that are learnt."""

    parameter_names: ClassVar[tuple[str, ...]] = ()
    has_offset: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    plain: ClassVar[bool] = False  # whether its kernels are simple enough to be compiled quickly (noisyica._array.Compiled)
    starts: ClassVar[tuple[str, ...]] = ("fastica",)  # what init="auto" tries

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

    def with_offset(self, latent: Any, offset: Array) -> Any:
        """The latent variables with other offsets, for priors that have them."""
        raise NotImplementedError

    def log_density(self, beta: Array, offset: Array) -> Array:
        """Log density of each row's coefficients (p, n) and offset (n,); log probability where they are at atoms."""
        raise NotImplementedError

    def statistics(self, latent: Any, weight: Array) -> Any:
        """Sufficient statistics for the prior's parameters, summed over rows with weights."""
        raise NotImplementedError

    def mstep(self: Self, statistics: Any) -> Self:
        """The prior with its parameters at their maximum likelihood given the statistics."""
        raise NotImplementedError

    def expansion(self, latent: Any, weight: Array) -> tuple[Array, Array, Array]:
        """What parameter expansion needs: sums of psi(beta) beta' (p, p), of psi(beta)^2 (p,), and the count (p,)."""
        raise NotImplementedError

    def transform(self, latent: Any, W: Array) -> Any:
        """The latent variables after beta -> W beta."""
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
        raise ValueError(f"mean='shift' is not for {self!r}, whose coefficients have no location: choose 'free', 'zero' or 'offset'.")

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
    return f"{value:.4g}" if value.ndim == 0 else "(" + ", ".join(f"{x:.4g}" for x in value) + ("," if value.size == 1 else "") + ")"


def _as_pytree(*fields: str, static: str | None = None) -> Any:
    """Register a prior class as a pytree of the named attributes; ``static`` names one that is structure."""

    def decorate(cls: type[Prior]) -> type[Prior]:
        def flatten(prior: Prior) -> tuple[tuple[Any, ...], Any]:
            return tuple(getattr(prior, f) for f in fields), getattr(prior, static) if static else None

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


# ------------------------------------------------------------------------------------------- independent coefficients


MEAN_FIELD_SWEEPS, MEAN_FIELD_ROUNDS = 10, 3
"""Sweeps of the means, and how often they are done anew for another offset."""


@_as_pytree("law", static="components")
class Independent(Prior):
    """Independent coefficients, with one common law or with laws of the same kind whose parameters are each component's own.

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

    law: Law  # where parameters are not shared and p is known, its leaves have a leading axis of length p
    components: int | None  # None: shared; 0: not shared, p not known yet; else p
    known_variance: ClassVar[float | None] = None  # of a symmetric law without parameters: saves computing it

    def __init__(self, law: Law, shared: bool = True) -> None:
        if not isinstance(law, Law):
            raise TypeError(f"law must be an object of noisyica.laws, such as Laplace(); got {law!r}.")
        self.law = law
        self.components = None if shared or not jax.tree.leaves(law) else 0

    # ---- parameters shared or not: these four are all that makes the difference

    def for_components(self, p: int) -> Independent:
        if self.components == 0:
            return self._with(jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf, float)[None], p, 0), self.law), p)
        if self.components not in (None, p):
            raise ValueError(f"The prior has parameters for {self.components} components, but there are {p}.")
        return self

    def reordered(self, order: np.ndarray) -> Independent:
        if not self.components:
            return self
        return self._with(jax.tree.map(lambda leaf: np.asarray(leaf)[order], self.law), len(order))

    def _at(self, j: Array) -> Law:
        """The law of component j."""
        return jax.tree.map(lambda leaf: leaf[j], self.law) if self.components else self.law

    def _whole(self) -> Law:
        """The law whose answers to arrays (p, n) are those of each component's law to its row."""
        return jax.tree.map(lambda leaf: jnp.moveaxis(jnp.asarray(leaf), 0, -1)[..., None], self.law) if self.components else self.law

    def _each(self, ask: Any, *args: Any) -> Any:
        """``ask(law, *args)`` of the law, or of each component's law (a leading axis, of the arguments, too)."""
        return jax.vmap(ask)(self.law, *args) if self.components else ask(self.law, *args)

    def _with(self, law: Law, components: int | None) -> Independent:
        new = object.__new__(type(self))
        new.law, new.components = law, components
        return new

    # ----

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.law.smooth

    @property
    def plain(self) -> bool:  # type: ignore[override]
        return self.law.plain

    def start(self, key: Array, p: int, n: int, dtype: Any) -> Array:
        return self._whole().sample(key, jnp.zeros((), dtype), jnp.zeros((), dtype), (p, n))

    def blank(self, p: int, n: int, dtype: Any) -> Any:
        return np.zeros((p, n), dtype)

    def gibbs(self, key: Array, latent: Array, channel: Channel) -> Array:
        def site(beta: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c, u = x
            b = c - row @ beta + a * beta[j]
            return beta.at[j].set(_apart(j, self._at(j).draw, u, a, b)), None

        return _over_sites(site, key, self.law.n_uniforms, latent, channel)

    def ascend(self, latent: Array, channel: Channel) -> Array:
        def site(beta: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c, _ = x
            return beta.at[j].set(self._at(j).mode(a, c - row @ beta + a * beta[j])), None

        return _over_sites(site, jax.random.key(0), 0, latent, channel)

    def penalty(self, beta: Array, offset: Array) -> Array:
        return self._whole().penalty(beta).sum(0)

    @property
    def convex(self) -> bool:
        return self.law.convex

    def candidates(self, channel: Channel, offset: laws.Laplace | None = None) -> tuple[Any, bool]:
        G, c = channel.G, channel.c
        parts = [self._at(j).pieces() for j in range(len(c))]  # type: ignore[arg-type]
        if offset is not None:  # one more coefficient, that of a component of ones
            G = jnp.block([[G, channel.c_one[:, None]], [channel.c_one, channel.one_one]])
            c = jnp.concatenate([c, channel.x_one[None]])
            parts.append(offset.pieces())
        if pieces.count_states(parts) > pieces.STATES:
            beta, mu = _ridge(channel)
            return beta[None] if offset is None else OffsetState(beta[None], mu[None]), False

        def objective(t: Array) -> Array:
            beta, mu = (t, jnp.zeros_like(t[0])) if offset is None else (t[:-1], t[-1])
            cost = (t * (0.5 * (G @ t) - c)).sum(0) + self.penalty(beta, mu)
            return cost if offset is None else cost + offset.penalty(mu)

        found = pieces.best_minima(G, c, parts, objective)
        return found if offset is None else OffsetState(found[:, :-1], found[:, -1]), True

    def factorised(self, channel: Channel) -> tuple[Channel, Array] | None:
        """The mean field: each law sees the means of the others."""
        G, a = channel.G, jnp.diag(channel.G)

        def site(mean: Array, x: Any) -> tuple[Array, None]:
            j, row, c = x
            return mean.at[j].set(self._at(j).moments(a[j], c - row @ mean + a[j] * mean[j])[0]), None

        def sweep(_: int, mean: Array) -> Array:
            return lax.scan(site, mean, (jnp.arange(len(G)), G, channel.c))[0]

        mean = lax.fori_loop(0, MEAN_FIELD_SWEEPS, sweep, jnp.zeros_like(channel.c))
        blank = Channel(*(jnp.zeros_like(part) for part in channel))
        return blank._replace(G=jnp.diag(a), c=channel.c - G @ mean + a[:, None] * mean), mean

    def log_normaliser(self, channel: Channel) -> Array:
        return self._whole().log_normaliser(jnp.diag(channel.G)[:, None], channel.c).sum(0)

    def mean_square(self) -> Array:
        mean, variance = self._each(lambda law: law.moments(0.0, 0.0))
        return jnp.mean(variance + mean * mean)

    def metropolis(self, key: Array, latent: Array, channel: Channel) -> Array:
        zero = jnp.zeros((), latent.dtype)

        def site(beta: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c, u = x
            law, old = self._at(j), beta[j]
            proposal = law.guarded()
            new = proposal.draw(u[1:], zero, jnp.zeros_like(old))
            b = c - row @ beta + a * old
            gain = (new - old) * (b - 0.5 * a * (new + old))
            gain = gain + law.log_guard_ratio(new, proposal) - law.log_guard_ratio(old, proposal)
            return beta.at[j].set(jnp.where(jnp.log(u[0]) < gain, new, old)), None

        return _over_sites(site, key, 1 + self.law.n_uniforms, latent, channel)

    def coefficients(self, latent: Array) -> Array:
        return latent

    def log_density(self, beta: Array, offset: Array) -> Array:
        return self._whole().log_density(beta).sum(0)

    def statistics(self, latent: Array, weight: Array) -> Any:
        def total(terms: Array) -> Array:
            sums = jnp.broadcast_to(terms, latent.shape) @ weight
            return sums if self.components else sums.sum()

        return jax.tree.map(total, self._whole().statistics(latent))

    def mstep(self, statistics: Any) -> Independent:
        return self._with(self._each(lambda law, sums: law.mstep(sums), statistics), self.components)

    def expansion(self, latent: Array, weight: Array) -> tuple[Array, Array, Array]:
        law = self._whole()
        if self.smooth:
            score = law.score(latent)
            weighted = score * weight
            return weighted @ latent.T, (weighted * score).sum(-1), jnp.full(latent.shape[:1], weight.sum())
        # scales by the law's own score; rotations by that of a Laplace law with the coefficients' mean size
        scale, count = (terms @ weight for terms in law.scale_statistics(latent))
        signs = jnp.sign(latent) * weight
        total = weight.sum()
        H = signs @ latent.T
        size = jnp.diag(H) / total + 1e-12
        centred = H - jnp.outer(signs.sum(-1), latent @ weight) / total  # a location is not a dependence
        H = jnp.where(jnp.eye(len(size), dtype=bool), total * scale / jnp.maximum(count, 1e-12), centred / size[:, None])
        return H, total * (count / total) / (size * size), jnp.full_like(count, total)

    def transform(self, latent: Array, W: Array) -> Array:
        return W @ latent

    @property
    def n_parameters(self) -> int:
        return self.law.n_parameters * (self.components or 1)

    def _summary(self) -> tuple[float, float, float]:
        """Variance, asymmetry and mean of a coefficient: averages, and the largest asymmetry, where components have laws of their own."""
        variance, asymmetry, mean = self._each(_facts)
        return float(np.mean(variance)), float(np.abs(asymmetry).max()), float(np.mean(mean))

    def variance(self) -> float:
        return self.known_variance or self._summary()[0]

    def mean(self) -> float:
        return self._summary()[2]

    def shifted(self) -> Independent:
        return self._with(self.law.located(), self.components)

    @property
    def symmetric(self) -> bool:
        if self.law.location is not None:
            return False
        return self.known_variance is not None or self._summary()[1] < 1e-5

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        if type(self) is not Independent:
            location = self.law.location
            return super().parameters | ({} if location is None else {"shift": np.asarray(location, float)})
        return {
            "".join(str(k) for k in path).strip("."): np.asarray(leaf, float)
            for path, leaf in jax.tree_util.tree_flatten_with_path(self.law)[0]
        }

    def __repr__(self) -> str:
        own = "" if self.components is None else ", shared=False"
        return f"Independent(law={self.law!r}{own})" if type(self) is Independent else super().__repr__()


@jax.jit
def _facts(law: Law) -> tuple[Array, Array, Array]:
    """The law's variance, how different it is from its mirror image, and its mean (in one compiled call: eager ones take seconds)."""
    up, down = law.log_normaliser(1.0, jnp.array([0.7, -0.7]))
    mean, variance = law.moments(0.0, 0.0)
    return variance, up - down, mean


def _over_sites(site: Any, key: Array, n_uniforms: int, beta: Array, channel: Channel) -> Array:
    """Scan ``site`` over the components, each with its row of G, a = G_jj, its row of c and fresh uniforms."""
    p = beta.shape[0]
    u = uniforms(key, n_uniforms, beta.shape, beta.dtype)
    inputs = (jnp.arange(p), channel.G, jnp.diag(channel.G), channel.c, u)
    return lax.scan(site, beta, inputs)[0]


def _apart(j: Array, draw: Any, u: Any, a: Array, b: Array) -> Array:
    """``draw(u, a, b)``, in a branch that is always taken: XLA:CPU runs a kernel that ends in an update in place on one thread only, and
    would make one of the draw and its update; the branch keeps them apart, and the draw is split over the threads."""
    return lax.cond(j >= 0, draw, lambda u, a, b: jnp.zeros_like(b), u, a, b)


def _ridge(channel: Channel) -> tuple[Array, Array]:
    """Coefficients (p, n) that fit by least squares, slightly shrunk, and the offsets (n,) that are taken off before."""
    p = len(channel.G)
    mu = channel.x_one / jnp.where(channel.one_one > 0, channel.one_one, 1.0)
    factor = eliminate(jnp.concatenate([channel.G + jnp.eye(p) * (1e-3 * jnp.trace(channel.G) / p + 1e-12), jnp.eye(p)], 1))[:, p:]
    return factor.T @ (factor @ (channel.c - channel.c_one[:, None] * mu)), mu


class _Named(Independent):
    """An independent prior with a name of its own for its parameters."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _as_pytree("law", static="components")(cls)


class Logistic(_Named):
    """Log-ICA: the logistic law of parameter 1/2, density sech(t)^2 / 2."""

    known_variance: ClassVar[float | None] = np.pi**2 / 12

    def __init__(self) -> None:
        super().__init__(laws.Logistic())


class Laplace(_Named):
    """Lap-ICA: the Laplace law, density exp(-|t|) / 2."""

    known_variance: ClassVar[float | None] = 2.0

    def __init__(self) -> None:
        super().__init__(laws.Laplace())


class ExponentialGaussian(_Named):
    """EG-ICA: s Y with s exponential and Y standard normal, both new for each coefficient."""

    known_variance: ClassVar[float | None] = 2.0

    def __init__(self) -> None:
        super().__init__(ExponentialNormal())


class GaussianMixture(_Named):
    """IFA: N(0, 1) with weight w_0 and N(m_k, 1), N(-m_k, 1) with weight w_k / 2 each, k = 1..K.

    Parameters
    ----------
    means : sequence of K floats
        m_1 .. m_K.
    weights : sequence of K + 1 floats, summing to one
        w_0 .. w_K.
    shared : bool, default=True
        Whether means and weights are common to all components; otherwise they are where each component's begin.
    symmetric : bool, default=True
        If not, there are no classes at -m_k: N(m_k, 1) has weight w_k, and m_k may have any sign.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.GaussianMixture((-2.0, 3.0), (0.6, 0.2, 0.2), shared=False, symmetric=False).for_components(4).means.shape
    (4, 2)
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("means", "weights")

    def __init__(
        self, means: Sequence[float] = (2.0,), weights: Sequence[float] = (0.5, 0.5), shared: bool = True, symmetric: bool = True
    ) -> None:
        m, w = np.atleast_1d(np.asarray(means, float)), np.asarray(weights, float)
        if m.ndim != 1 or w.shape != (m.size + 1,):
            raise ValueError(
                f"GaussianMixture takes K means and K + 1 weights (the first for the class at 0); got {m.size} means and {w.size} weights."
            )
        if not (np.isfinite(m).all() and (w >= 0).all() and abs(w.sum() - 1) < 1e-6):
            raise ValueError(f"GaussianMixture needs finite means and weights >= 0 that sum to one; got means={means}, weights={weights}.")
        law = SymmetricNormals(m, w) if symmetric else Mixture((Normal(), *(FreeNormal(mean) for mean in m)), w)
        super().__init__(law, shared)

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        # with classes of their own, components lose them from a poor start
        return ("fastica",) if self.components is None else ("fastica", "pca", "rotation", "rotation")

    @property
    def means(self) -> np.ndarray:
        """m_1 .. m_K, of each component (a leading axis) where they are not shared."""
        law = self._normals
        return np.asarray(law.means if isinstance(law, SymmetricNormals) else np.stack([x.mean for x in law.laws[1:]], -1), float)

    @property
    def weights(self) -> np.ndarray:
        """w_0 .. w_K, of each component (a leading axis) where they are not shared."""
        return np.asarray(self._normals.weights, float)

    @property
    def _normals(self) -> Any:
        return self.law.law if isinstance(self.law, laws.Shift) else self.law


class _Censored(_Named):
    """A slab that is switched on with probability alpha, and zero otherwise."""

    parameter_names: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(self, slab: Law, alpha: float) -> None:
        alpha = _probability("alpha", alpha, 1.0)
        super().__init__(Mixture((Dirac(), slab), (1 - alpha, alpha)))

    @property
    def alpha(self) -> float:
        """Probability that a coefficient is on."""
        return float(np.asarray(self.law.weights)[1])  # type: ignore[attr-defined]


class BernoulliGaussian(_Censored):
    """BG-ICA: N(shift, 1) with probability alpha, 0 otherwise."""

    def __init__(self, alpha: float = 0.5, shift: float = 0.0) -> None:
        if not np.isfinite(shift):
            raise ValueError(f"shift must be a finite number; got {shift}.")
        super().__init__(Normal(float(shift)), alpha)

    @property
    def shift(self) -> float:
        """Mean of a coefficient that is on."""
        return float(self.law.laws[1].mean)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        fixed = f", shift={self.shift:.4g}" if self.components is None and self.law.location is None and self.shift else ""
        return super().__repr__()[:-1] + fixed + ")"


class ExponentialBernoulliGaussian(_Censored):
    """EBG-ICA: s Y as in EG-ICA with probability alpha, 0 otherwise."""

    def __init__(self, alpha: float = 0.5) -> None:
        super().__init__(ExponentialNormal(), alpha)


class ExponentialTernary(_Named):
    """ET-ICA: s Y with s exponential and P(Y = 1) = P(Y = -1) = gamma, P(Y = 0) = 1 - 2 gamma: zero or Laplace."""

    parameter_names: ClassVar[tuple[str, ...]] = ("gamma",)

    def __init__(self, gamma: float = 0.25) -> None:
        gamma = _probability("gamma", gamma, 0.5)
        super().__init__(Mixture((Dirac(), laws.Laplace()), (1 - 2 * gamma, 2 * gamma)))

    @property
    def gamma(self) -> float:
        """P(Y = 1) = P(Y = -1)."""
        return float(np.asarray(self.law.weights)[1]) / 2  # type: ignore[attr-defined]


def _probability(name: str, value: float, top: float) -> float:
    if not (isinstance(value, (int, float, np.floating, np.integer)) and 0 <= value <= top):
        raise ValueError(f"{name} must be a number from 0 to {top:g}; got {value!r}.")
    return float(value)


# --------------------------------------------------------------------------------------------- one scale for a whole row


class TernaryState(NamedTuple):
    """Signs y (p, n) in {-1, 0, 1} and the rows' scales s (n,)."""

    y: Array
    s: Array


TERNARY_STATES = 60_000
"""The most sign patterns that are gone through."""


@_as_pytree("_gamma")
class SingleScaleTernary(Prior):
    """TE-ICA: beta_j = s Y_j with one exponential s a row, P(Y_j = 1) = P(Y_j = -1) = gamma.

    Gibbs sampling integrates s out: P(y | x) is proportional to prior(y) I(y'Gy, y'c - 1), a normal cdf (see
    :func:`noisyica.special.log_half_line`), and then draws s given y. Alternating s | y and y | s would mix badly.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("gamma",)
    # rows that share a scale are not independent: FastICA fails on them, and each of the others has its range of gamma
    starts: ClassVar[tuple[str, ...]] = ("fastica", "directions", "sparse directions", "clusters") + 4 * ("rotation",)

    def __init__(self, gamma: float = 0.25) -> None:
        self._gamma: ArrayLike = _probability("gamma", gamma, 0.5)

    @property
    def gamma(self) -> float:
        """P(Y = 1) = P(Y = -1)."""
        return float(self._gamma)  # type: ignore[arg-type]

    def start(self, key: Array, p: int, n: int, dtype: Any) -> TernaryState:
        keys = split(key, 2)
        (u,), (v,) = uniforms(keys[0], 1, (p, n), dtype), uniforms(keys[1], 1, (n,), dtype)
        return TernaryState(self._ternary(u, self._gamma), -jnp.log(v))

    def blank(self, p: int, n: int, dtype: Any) -> Any:
        return TernaryState(np.zeros((p, n), dtype), np.ones(n, dtype))  # type: ignore[arg-type]

    @staticmethod
    def _ternary(u: Array, gamma: ArrayLike) -> Array:
        return (u < gamma).astype(u.dtype) - (u > 1 - jnp.asarray(gamma)).astype(u.dtype)

    def gibbs(self, key: Array, latent: TernaryState, channel: Channel) -> TernaryState:
        y, c = latent.y, channel.c
        log_odds = jnp.log(self._gamma) - jnp.log(1 - 2 * jnp.asarray(self._gamma))
        keys = split(key, 2)

        def site(carry: Any, x: Any) -> tuple[Any, None]:
            y, quadratic, linear, active = carry
            (j, again), row, a, c_j, (u,) = x
            old = y[j]
            cross = once(row @ y - a * old)
            others = active - jnp.abs(old)
            some = (others > 0).astype(u.dtype)
            q0 = once(some * jnp.maximum(quadratic - old * (2 * cross + a * old), 0.0))
            l0 = once(some * (linear - old * c_j))
            base = once(log_half_line(q0, l0 - 1) - log_odds)
            log_up = once(log_half_line(jnp.maximum(q0 + a + 2 * cross, 0.0), l0 + c_j - 1) - base)
            log_down = once(log_half_line(jnp.maximum(q0 + a - 2 * cross, 0.0), l0 - c_j - 1) - base)
            top = once(jnp.maximum(jnp.maximum(log_up, log_down), 0.0))
            up, off = once(jnp.exp(log_up - top)), once(jnp.exp(-top))
            mark = once(u * (up + jnp.exp(log_down - top) + off))
            y = y.at[j].set((mark < up).astype(u.dtype) - (mark > up + off).astype(u.dtype))
            # read back what was written, through an index that XLA cannot know to be the same: it would compute all of the above again
            new = y[again]
            quadratic = q0 + jnp.abs(new) * a + 2 * new * cross
            return (y, quadratic, l0 + new * c_j, others + jnp.abs(new)), None

        u = uniforms(keys[0], 1, y.shape, y.dtype)
        carry: Any = (y, *self._forms(y, channel.G, c), jnp.abs(y).sum(0))
        p = y.shape[0]
        indices = (jnp.arange(p), lax.optimization_barrier(jnp.arange(p)))
        inputs = (indices, channel.G, jnp.diag(channel.G), c, u)
        (y, *_), _ = lax.scan(site, carry, inputs)
        quadratic, linear = self._forms(y, channel.G, c)
        (v,) = uniforms(keys[1], 1, latent.s.shape, y.dtype)
        return TernaryState(y, half_line_draw(v, jnp.maximum(quadratic, 0.0), linear - 1))

    @staticmethod
    def _forms(y: Array, G: Array, c: Array) -> tuple[Array, Array]:
        """y'Gy and y'c of each row."""
        return (y * (G @ y)).sum(0), (y * c).sum(0)

    def metropolis(self, key: Array, latent: TernaryState, channel: Channel) -> TernaryState:
        y, s, c = latent.y, latent.s, channel.c
        guard = jnp.clip(jnp.asarray(self._gamma), 0.01, 0.49)
        change = jnp.log(self._gamma / guard) - jnp.log((1 - 2 * jnp.asarray(self._gamma)) / (1 - 2 * guard))
        keys = split(key, 2)

        def site(y: Array, x: Any) -> tuple[Array, None]:
            j, row, a, c_j, u = x
            old = y[j]
            new = self._ternary(u[1], guard)
            b = c_j - s * (row @ y - a * old)
            gain = s * (new - old) * (b - 0.5 * a * s * (new + old)) + (jnp.abs(new) - jnp.abs(old)) * change
            return y.at[j].set(jnp.where(jnp.log(u[0]) < gain, new, old)), None

        u = uniforms(keys[0], 2, y.shape, y.dtype)
        y = lax.scan(site, y, (jnp.arange(y.shape[0]), channel.G, jnp.diag(channel.G), c, u))[0]
        quadratic, linear = self._forms(y, channel.G, c)
        v = uniforms(keys[1], 2, s.shape, y.dtype)
        new = -jnp.log(v[0])
        gain = (new - s) * (linear - 0.5 * quadratic * (new + s))
        return TernaryState(y, jnp.where(jnp.log(v[1]) < gain, new, s))

    def coefficients(self, latent: TernaryState) -> Array:
        return latent.s * latent.y

    @staticmethod
    def _parts(beta: Array) -> tuple[Array, Array, Array]:
        """How many coefficients of each row are on, their scale, and whether it is one for all (as it has to be)."""
        s = jnp.abs(beta).max(0)
        return (beta != 0).sum(0), s, jnp.all((beta == 0) | (jnp.abs(jnp.abs(beta) - s) <= 1e-6 * s), axis=0)

    def log_density(self, beta: Array, offset: Array) -> Array:
        on, s, one_scale = self._parts(beta)
        signs = on * jnp.log(self._gamma) + (beta.shape[0] - on) * jnp.log(1 - 2 * jnp.asarray(self._gamma))
        return jnp.where(one_scale, signs - s, -jnp.inf)  # beta = 0 is an atom: its scale is integrated out

    def statistics(self, latent: TernaryState, weight: Array) -> Array:
        """How many signs are zero and how many are not."""
        on = (jnp.abs(latent.y) * weight).sum(-1).sum()
        return jnp.stack([latent.y.shape[0] * weight.sum() - on, on])

    def mstep(self: Self, statistics: Array) -> Self:
        return jax.tree.unflatten(jax.tree.structure(self), [keep_inside(statistics)[1] / 2])

    def expansion(self, latent: TernaryState, weight: Array) -> tuple[Array, Array, Array]:
        # the scale of a row is exponential of mean 1; rows with all signs zero say nothing of A
        p = latent.y.shape[0]
        active = weight * (jnp.abs(latent.y).sum(0) > 0)
        total, count = (active * latent.s).sum(), active.sum()
        return jnp.eye(p, dtype=latent.s.dtype) * total, jnp.ones((p,), latent.s.dtype), jnp.full((p,), count)

    def transform(self, latent: TernaryState, W: Array) -> TernaryState:
        return latent._replace(s=latent.s * W[0, 0])

    def variance(self) -> float:
        return 4 * self.gamma

    def mean_square(self) -> Array:
        return 4 * jnp.asarray(self._gamma)

    @property
    def _cost(self) -> Array:
        """Of a sign that is not zero, less that of one that is."""
        return jnp.log(1 - 2 * jnp.asarray(self._gamma)) - jnp.log(self._gamma)

    def penalty(self, beta: Array, offset: Array) -> Array:
        on, s, one_scale = self._parts(beta)
        # where all are zero the signs need not be: the scale may be
        cost = jnp.where(on > 0, on * self._cost + s, jnp.minimum(len(beta) * self._cost, 0.0))
        return jnp.where(one_scale, cost, jnp.inf)

    def ascend(self, latent: TernaryState, channel: Channel) -> TernaryState:
        """Each sign in turn, the scale being always at its best, max(y'c - 1, 0) / y'Gy."""

        def value(quadratic: Array, linear: Array) -> Array:
            return -0.5 * jnp.square(jnp.maximum(linear - 1, 0.0)) / jnp.where(quadratic > 0, quadratic, jnp.inf)

        def site(carry: Any, x: Any) -> tuple[Any, None]:
            y, quadratic, linear = carry
            j, row, a, c_j = x
            old = y[j]
            cross = row @ y - a * old
            q0, l0 = quadratic - old * (2 * cross + a * old), linear - old * c_j
            up, down = value(q0 + a + 2 * cross, l0 + c_j), value(q0 + a - 2 * cross, l0 - c_j)
            new = jnp.where(jnp.minimum(up, down) + self._cost < value(q0, l0), jnp.where(up <= down, 1.0, -1.0), 0.0).astype(y.dtype)
            return (y.at[j].set(new), q0 + jnp.abs(new) * a + 2 * new * cross, l0 + new * c_j), None

        y, G, c = latent.y, channel.G, channel.c
        carry: Any = (y, *self._forms(y, G, c))
        (y, *_), _ = lax.scan(site, carry, (jnp.arange(len(y)), G, jnp.diag(G), c))
        return TernaryState(y, self._best_scale(*self._forms(y, G, c)))

    @staticmethod
    def _best_scale(quadratic: Array, linear: Array) -> Array:
        return jnp.maximum(linear - 1, 0.0) / jnp.where(quadratic > 0, quadratic, jnp.inf)

    def candidates(self, channel: Channel, offset: laws.Laplace | None = None) -> tuple[Any, bool]:
        p, n = channel.c.shape
        if 3**p > TERNARY_STATES:  # the signs of the largest coefficients, 1 to p of them, when there is no prior
            beta, mu = _ridge(channel)
            rank = (-jnp.abs(beta)).argsort(0).argsort(0)
            some = TernaryState(jnp.sign(beta) * (rank <= jnp.arange(p)[:, None, None]), jnp.ones((p, n)))
            return some if offset is None else OffsetState(some, jnp.tile(mu, (p, 1))), False
        size = 3 ** max(k for k in range(p + 1) if k == 0 or 3**k * n <= 2**21)
        chunks = jnp.asarray(all_states(3, p) - 1.0).reshape(-1, size, p)

        def look(found: Any, y: Array) -> tuple[Any, None]:
            s, mu, cost = self._eliminated(y, channel, offset)
            best = jnp.argmin(cost, 0)
            pick = [jnp.take_along_axis(part, best[None], 0)[0] for part in (cost, s, mu)]
            new = (pick[0], y[best].T, *pick[1:])
            return jax.tree.map(lambda x, z: jnp.where(new[0] < found[0], x, z), new, found), None

        nothing = (jnp.full(n, jnp.inf), jnp.zeros((p, n)), jnp.zeros(n), jnp.zeros(n))
        (_, y, s, mu), _ = lax.scan(look, nothing, chunks)
        latent = TernaryState(y[None], s[None])
        return latent if offset is None else OffsetState(latent, mu[None]), True

    def _eliminated(self, y: Array, channel: Channel, offset: laws.Laplace | None) -> tuple[Array, Array, Array]:
        """The best scale and offset of each row for the signs y (m, p), and the objective: (m, n) each."""
        quadratic, linear = (y * (y @ channel.G)).sum(1)[:, None], y @ channel.c - 1
        q, signs = jnp.where(quadratic > 0, quadratic, jnp.inf), self._cost * jnp.abs(y).sum(1)[:, None]
        if offset is None:
            s = jnp.maximum(linear, 0.0) / q
            return s, jnp.zeros_like(s), signs - 0.5 * linear * s
        # with the scale at its best, even if that were negative, the offset sees another Laplace channel; the objective is convex in both,
        # so that where it wants a negative scale the best one is 0
        r = (y @ channel.c_one)[:, None]
        mu, value = offset.best(channel.one_one - r * r / q, channel.x_one - r * linear / q)
        s = (linear - r * mu) / q
        alone, lonely = offset.best(channel.one_one, channel.x_one)
        cost = jnp.where(s > 0, value - 0.5 * linear * linear / q, lonely)
        return jnp.maximum(s, 0.0), jnp.where(s > 0, mu, alone), signs + cost


# ------------------------------------------------------------------------------------------------- a random offset of rows


class OffsetState(NamedTuple):
    """The latent variables of the prior inside, and the rows' offsets mu (n,)."""

    inner: Any
    mu: Array


@_as_pytree("prior", "offset_scale")
class Offset(Prior):
    """Any prior plus a Laplacian offset mu on all of x, new for each row; there is no mu0 then.

    Given beta, mu is a Laplace channel with a = 1'Sigma^-1 1 and b = 1'Sigma^-1 (x - A beta); given mu, beta sees A'Sigma^-1 (x - mu).

    Parameters
    ----------
    prior : str, Prior or Law
        Of the coefficients.
    offset_scale : float
        Mean of |mu|, in the units of x; learnt.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.Offset("bg", 2.0)
    Offset(BernoulliGaussian(alpha=0.5), offset_scale=2)
    """

    has_offset: ClassVar[bool] = True
    prior: Prior
    offset_scale: ArrayLike

    def __init__(self, prior: str | Prior | Law, offset_scale: float = 1.0) -> None:
        self.prior = get(prior)
        if self.prior.has_offset:
            raise ValueError(f"{self.prior!r} has an offset already.")
        if not (np.isfinite(offset_scale) and offset_scale > 0):
            raise ValueError(f"offset_scale must be a positive number, in the units of x; got {offset_scale!r}.")
        self.offset_scale = float(offset_scale)

    def _with(self: OffsetType, prior: Prior, offset_scale: ArrayLike) -> OffsetType:
        new = object.__new__(type(self))
        new.prior, new.offset_scale = prior, offset_scale
        return new

    def for_components(self: OffsetType, p: int) -> OffsetType:
        return self._with(self.prior.for_components(p), self.offset_scale)

    def reordered(self: OffsetType, order: np.ndarray) -> OffsetType:
        return self._with(self.prior.reordered(order), self.offset_scale)

    def shifted(self: OffsetType) -> OffsetType:
        raise ValueError(f"mean='shift' is not for {self!r}, which has an offset: choose 'offset'.")

    def _law(self) -> laws.Laplace:
        return laws.Laplace(self.offset_scale)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.prior.smooth

    @property
    def plain(self) -> bool:  # type: ignore[override]
        return False

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.prior.starts

    @property
    def symmetric(self) -> bool:
        return self.prior.symmetric

    def start(self, key: Array, p: int, n: int, dtype: Any) -> OffsetState:
        keys, zero = split(key, 2), jnp.zeros((), dtype)
        return OffsetState(self.prior.start(keys[0], p, n, dtype), self._law().sample(keys[1], zero, zero, (n,)))

    def blank(self, p: int, n: int, dtype: Any) -> Any:
        return OffsetState(self.prior.blank(p, n, dtype), np.zeros(n, dtype))  # type: ignore[arg-type]

    @staticmethod
    def _inside(channel: Channel, mu: Array) -> Channel:
        """What is left for the coefficients."""
        return channel._replace(c=channel.c - channel.c_one[:, None] * mu)

    def gibbs(self, key: Array, latent: OffsetState, channel: Channel) -> OffsetState:
        keys, law = split(key, 2), self._law()
        inner = self.prior.gibbs(keys[0], latent.inner, self._inside(channel, latent.mu))
        u = uniforms(keys[1], law.n_uniforms, latent.mu.shape, latent.mu.dtype)
        return OffsetState(inner, law.draw(u, channel.one_one, channel.x_one - channel.c_one @ self.prior.coefficients(inner)))

    def metropolis(self, key: Array, latent: OffsetState, channel: Channel) -> OffsetState:
        keys, law, mu = split(key, 2), self._law(), latent.mu
        inner = self.prior.metropolis(keys[0], latent.inner, self._inside(channel, mu))
        v, *u = uniforms(keys[1], 1 + law.n_uniforms, mu.shape, mu.dtype)
        new = law.draw(tuple(u), jnp.zeros((), mu.dtype), jnp.zeros_like(mu))
        b = channel.x_one - channel.c_one @ self.prior.coefficients(inner)
        gain = (new - mu) * (b - 0.5 * channel.one_one * (new + mu))
        return OffsetState(inner, jnp.where(jnp.log(v) < gain, new, mu))

    def ascend(self, latent: OffsetState, channel: Channel) -> OffsetState:
        inner = self.prior.ascend(latent.inner, self._inside(channel, latent.mu))
        return OffsetState(inner, self._law().mode(channel.one_one, channel.x_one - channel.c_one @ self.prior.coefficients(inner)))

    def penalty(self, beta: Array, offset: Array) -> Array:
        return self.prior.penalty(beta, jnp.zeros_like(offset)) + self._law().penalty(offset)

    def candidates(self, channel: Channel, offset: laws.Laplace | None = None) -> tuple[Any, bool]:
        return self.prior.candidates(channel, self._law())

    @property
    def convex(self) -> bool:
        return self.prior.convex

    def factorised(self, channel: Channel) -> tuple[Channel, Array] | None:
        mu = channel.x_one / channel.one_one
        for _ in range(MEAN_FIELD_ROUNDS):
            found = self.prior.factorised(self._inside(channel, mu))
            if found is None:
                return None
            base, mean = found
            b = channel.x_one - channel.c_one @ mean
            mu = self._law().moments(channel.one_one, b)[0]
        return base._replace(x_one=b, one_one=channel.one_one), mean

    def log_normaliser(self, channel: Channel) -> Array:
        return self.prior.log_normaliser(channel) + self._law().log_normaliser(channel.one_one, channel.x_one)

    def coefficients(self, latent: OffsetState) -> Array:
        return self.prior.coefficients(latent.inner)

    def offset(self, latent: OffsetState) -> Array:
        return latent.mu

    def with_offset(self, latent: OffsetState, offset: Array) -> OffsetState:
        return latent._replace(mu=offset)

    def log_density(self, beta: Array, offset: Array) -> Array:
        return self.prior.log_density(beta, jnp.zeros_like(offset)) + self._law().log_density(offset)

    def statistics(self, latent: OffsetState, weight: Array) -> Any:
        """Those of the prior inside, the sum of |mu|, and the count."""
        return self.prior.statistics(latent.inner, weight), (jnp.abs(latent.mu) * weight).sum(), weight.sum()

    def mstep(self: OffsetType, statistics: Any) -> OffsetType:
        inner, size, count = statistics
        return self._with(self.prior.mstep(inner), jnp.maximum(size / count, 1e-30))

    def expansion(self, latent: OffsetState, weight: Array) -> tuple[Array, Array, Array]:
        return self.prior.expansion(latent.inner, weight)

    def transform(self, latent: OffsetState, W: Array) -> OffsetState:
        return latent._replace(inner=self.prior.transform(latent.inner, W))

    def variance(self) -> float:
        return self.prior.variance()

    def mean_square(self) -> Array:
        return self.prior.mean_square()

    def mean(self) -> float:
        return self.prior.mean()

    @property
    def n_parameters(self) -> int:
        return self.prior.n_parameters + 1

    def rescaled(self: OffsetType, factor: float) -> OffsetType:
        return self._with(self.prior, np.asarray(self.offset_scale, float) / factor)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {**self.prior.parameters, "offset_scale": np.asarray(self.offset_scale, float)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.prior!r}, offset_scale={float(self.offset_scale):.4g})"  # type: ignore[arg-type]


OffsetType = TypeVar("OffsetType", bound=Offset)


@_as_pytree("prior", "offset_scale")
class SingleScaleTernaryOffset(Offset):
    """TEoff-ICA: TE-ICA plus a Laplacian offset mu on all of x, and no mu0.

    Parameters
    ----------
    gamma : float
    offset_scale : float
        Mean of |mu|, in the units of x; fixed (the paper takes 1).
    """

    def __init__(self, gamma: float = 0.25, offset_scale: float = 1.0) -> None:
        super().__init__(SingleScaleTernary(gamma), offset_scale)

    @property
    def gamma(self) -> float:
        """P(Y = 1) = P(Y = -1)."""
        return self.prior.gamma  # type: ignore[attr-defined]

    def mstep(self, statistics: Any) -> SingleScaleTernaryOffset:
        return self._with(self.prior.mstep(statistics[0]), self.offset_scale)

    @property
    def n_parameters(self) -> int:
        return self.prior.n_parameters

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return self.prior.parameters

    def __repr__(self) -> str:
        return f"{type(self).__name__}(gamma={self.gamma:.4g}, offset_scale={float(self.offset_scale):.4g})"  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------- the table

TABLE: dict[str, type[Prior]] = {
    "log": Logistic,
    "lap": Laplace,
    "eg": ExponentialGaussian,
    "ifa": GaussianMixture,
    "bg": BernoulliGaussian,
    "ebg": ExponentialBernoulliGaussian,
    "et": ExponentialTernary,
    "te": SingleScaleTernary,
    "teoff": SingleScaleTernaryOffset,
}


def get(prior: str | Prior | Law) -> Prior:
    """The prior that a short name, a law or a prior stands for.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.get("te")
    SingleScaleTernary(gamma=0.25)
    """
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, Law):
        return Independent(prior)
    if isinstance(prior, str) and prior in TABLE:
        return TABLE[prior]()
    names = ", ".join(repr(name) for name in TABLE)
    if isinstance(prior, str):
        raise ValueError(f"Unknown prior {prior!r}. Choose one of {names}, or give an object of noisyica.priors or noisyica.laws.")
    raise TypeError(f"prior must be one of {names}, or an object of noisyica.priors or noisyica.laws; got {type(prior).__name__}.")


# ------------------------------------------------------------------------------------------- to and from plain data


def to_plain(value: Any) -> Any:
    """A prior or a law as nested dicts, lists and numbers (what is written to files)."""
    if isinstance(value, Law):
        if isinstance(value, laws.LogDensity):
            raise ValueError(
                "A prior with a LogDensity law holds a Python function and cannot be saved: save its model's arrays and rebuild it."
            )
        fields = {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}  # type: ignore[arg-type]
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Independent):
        return {"prior": type(value).__name__, "law": to_plain(value.law), "components": value.components}
    if isinstance(value, (SingleScaleTernary, SingleScaleTernaryOffset)):
        own = {"offset_scale": float(value.offset_scale)} if isinstance(value, Offset) else {}  # type: ignore[arg-type]
        return {"prior": type(value).__name__, "gamma": value.gamma, **own}
    if isinstance(value, Offset):
        return {"prior": type(value).__name__, "inner": to_plain(value.prior), "offset_scale": float(value.offset_scale)}  # type: ignore[arg-type]
    if isinstance(value, (tuple, list)):
        return [to_plain(v) for v in value]
    return np.asarray(value, float).tolist()


def from_plain(plain: Any) -> Any:
    """The inverse of :func:`to_plain`."""
    if isinstance(plain, dict) and "prior" in plain:
        cls = REGISTRY[plain["prior"]]
        if issubclass(cls, Independent):
            prior = object.__new__(cls)
            prior.law, prior.components = from_plain(plain["law"]), plain["components"]
            return prior
        if "inner" in plain:
            return cls(from_plain(plain["inner"]), plain["offset_scale"])  # type: ignore[call-arg]
        return cls(**{k: v for k, v in plain.items() if k != "prior"})
    if isinstance(plain, dict):
        return laws.REGISTRY[plain["type"]](**{k: from_plain(v) for k, v in plain.items() if k != "type"})
    if isinstance(plain, list):
        values = [from_plain(v) for v in plain]
        return tuple(values) if any(isinstance(v, Law) for v in values) else np.asarray(values, float)
    return plain
