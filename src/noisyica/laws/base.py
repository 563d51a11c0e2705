"""The base of all laws: the class :class:`Law` and its questions, and the decorator :func:`law`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.randomness import Key, uniforms
from noisyica._jax.special import LOG_2
from noisyica.laws import integration
from noisyica.laws.grids import grid_choice
from noisyica.laws.integration import derivative

Array = jax.Array
Uniforms = tuple[Array, ...]
"""Arrays of uniform random numbers in (0, 1), from which a law makes its draws."""
LawType = TypeVar("LawType", bound="Law")

REGISTRY: dict[str, type[Law]] = {}
"""All laws by the name of their class, which is how files name them."""


@dataclass_transform(frozen_default=True)
def law(*static: str) -> Callable[[type[LawType]], type[LawType]]:
    """Make a class of laws an immutable dataclass, a pytree, and known to files by its name.

    The fields named ``static`` are part of the law's structure; all others are parameters: numbers
    or arrays, which may be learnt. The page docs/extending.md has examples.
    """

    def decorate(cls: type[LawType]) -> type[LawType]:
        _check(cls)
        new = dataclasses.dataclass(frozen=True)(cls)
        fields = [field.name for field in dataclasses.fields(new)]  # type: ignore[arg-type]
        names = [name for name in fields if name not in static]

        # Not jax.tree_util.register_dataclass: the structures of two such classes with as many
        # fields compare equal (jaxlib 0.10), and jax.jit may then answer for one law with what it
        # compiled for another. The class is part of the structure here.
        def flatten(law: LawType) -> tuple[list[Any], Any]:
            keys = [(jax.tree_util.GetAttrKey(name), getattr(law, name)) for name in names]
            return keys, (new, *(getattr(law, name) for name in static))

        def unflatten(structure: Any, leaves: Iterable[Any]) -> LawType:
            law = object.__new__(new)
            for name, value in [
                *zip(static, structure[1:], strict=True),
                *zip(names, leaves, strict=True),
            ]:
                object.__setattr__(law, name, value)
            return law

        jax.tree_util.register_pytree_with_keys(new, flatten, unflatten)
        REGISTRY[new.__name__] = new
        return new

    return decorate


def _check(cls: type[Law]) -> None:
    """Raise an error if a class of laws is not complete, or has the name of one of noisyica's."""
    own = __name__.partition(".")[0] + "."
    known = REGISTRY.get(cls.__name__)
    if known and known.__module__.startswith(own) and not cls.__module__.startswith(own):
        raise ValueError(
            f"There is a law {cls.__name__} in noisyica already, and files know laws by their "
            "names: choose another name."
        )
    learns = {name: _is_own(cls, name) for name in ("statistics", "mstep")}
    if any(learns.values()) and not all(learns.values()):
        missing = next(name for name, given in learns.items() if not given)
        raise TypeError(
            f"The law {cls.__name__} has no method {missing}: a law whose parameters are learnt "
            "has both statistics and mstep."
        )


def _is_own(cls: type[Law], name: str) -> bool:
    """Whether a class of laws gives a method itself, rather than having the default of Law."""
    return getattr(cls, name) is not getattr(Law, name)


class Piece(NamedTuple):
    """A part of a penalty: a quadratic, or a point.

    The quadratic is precision t^2/2 - slope t, up to a constant. Where the piece is not ``free``,
    it is the point ``location``.
    """

    precision: ArrayLike = 0.0
    slope: ArrayLike = 0.0
    location: ArrayLike = 0.0
    free: ArrayLike = True


class Classes(NamedTuple):
    """A finite mixture of normals and atoms (normals of scale 0): what each of its classes is."""

    log_weights: Array  # (K,)
    means: Array  # (K,)
    scales: Array  # (K,)


class Law:
    """A distribution on the line that answers questions about its Gaussian tilts.

    A law of your own needs one method, :meth:`log_density`. All other questions are then answered
    by numerical integration, and draws are exact (:mod:`noisyica.laws.integration`), if the density
    is smooth and has one peak after any Gaussian tilt; a log-concave density is such a one. A law
    gives other methods where it knows better, or faster, answers; one that gives :meth:`draw` says
    of how many uniforms, ``n_uniforms``, a draw is made. A law whose parameters are learnt gives
    :meth:`statistics` and :meth:`mstep`, too.

    All methods act on arrays, element by element, and are made of JAX functions. The parameters may
    be arrays that are broadcast with the arguments.

    See :mod:`noisyica.laws` for the laws that there are, and docs/extending.md for how to write
    one.
    """

    n_uniforms: ClassVar[int] = 2
    """Number of uniforms that a draw is made of."""
    smooth: ClassVar[bool] = True
    """Whether it has a score for rotations: no atom or infinite peak, and the whole line."""
    compiles_fast: ClassVar[bool] = False
    """Whether the kernels are so simple that they run as fast when they are compiled fast."""
    scale_power: ClassVar[float] = 2.0
    """The k for which the mean of ``|t|^k`` tells the scale (:class:`noisyica.laws.Scaled`)."""

    # Which uniform of a draw a mixture may use before, to choose between this law and its atoms.
    _shared_uniform: ClassVar[int] = 0

    def log_density(self, t: ArrayLike) -> Array:
        """Log density at ``t`` (log probability where ``t`` is an atom), normalised."""
        (t,) = floating(t)
        return self.log_unnormalised(t) - (self._log_constant() - LOG_2).astype(t.dtype)

    def log_unnormalised(self, t: ArrayLike) -> Array:
        """Log density at ``t`` up to a constant.

        A law gives this method instead of :meth:`log_density` where the constant is not known.
        """
        if not _is_own(type(self), "log_density"):
            raise NotImplementedError(
                f"The law {type(self).__name__} has no method log_density, from which all "
                "answers are computed that the law has no method for."
            )
        return self.log_density(t)

    def _log_weight(self, a: Array, b: Array) -> integration.LogWeight:
        """The log of the tilted density of v, where t = sinh v, up to a constant."""

        def log_weight(v: Array) -> Array:
            t = jnp.sinh(v)
            return self.log_unnormalised(t) + (b - 0.5 * a * t) * t + jnp.logaddexp(v, -v)

        return log_weight

    def _log_integral(self, a: ArrayLike, b: ArrayLike) -> Array:
        """The log of twice the integral of the tilted density: weights have 2 cosh v for dt/dv."""
        a, b, dtype = broadcast_double(a, b)
        return integration.log_integral(self._log_weight(a, b), b).astype(dtype)

    def _log_constant(self) -> Array:
        """What :meth:`_log_integral` is of the law itself."""
        if _is_own(type(self), "log_unnormalised"):
            return self._log_integral(0.0, 0.0)
        return jnp.asarray(LOG_2)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Log of the integral of exp(-a t^2/2 + b t); infinite where it diverges."""
        dtype = floating(a, b)[1].dtype
        return (self._log_integral(a, b) - self._log_constant()).astype(dtype)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the tilted law."""
        a, b, dtype = broadcast_double(a, b)
        if _is_own(type(self), "log_normaliser"):

            def mean_at(b: Array) -> Array:
                return derivative(lambda b: self.log_normaliser(a, b), b)

            mean, variance = mean_at(b), jnp.maximum(derivative(mean_at, b), 0.0)
        else:
            v, weights, _ = integration.weighted_nodes(self._log_weight(a, b), b)
            t, weights = jnp.sinh(v), weights / weights.sum(0)
            mean = (weights * t).sum(0)
            variance = (weights * jnp.square(t - mean)).sum(0)
        return mean.astype(dtype), variance.astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        """A draw from the tilted law, made of ``n_uniforms`` independent uniforms on (0, 1)."""
        a, b, dtype = broadcast_double(a, b)
        if dtype != jnp.float32:
            return jnp.sinh(integration.draw_node(self._log_weight(a, b), b, u)).astype(dtype)
        return self._draw_in_single_precision(u, a, b)

    def _draw_in_single_precision(self, u: Uniforms, a: Array, b: Array) -> Array:
        """A draw as :meth:`draw` makes it, where float32 is precise enough for the nodes.

        The window is found in double precision. What is evaluated at the nodes are differences from
        the middle of the window, sinh v0, which lose no digits where the window is narrow: with v =
        v0 + w and s = sinh(w / 2), sinh v - sinh v0 = 2 s (s sinh v0 + sqrt(1 + s^2) cosh v0).
        """
        depth, nodes = integration.SINGLE_DEPTH, integration.SINGLE_NODES

        def nearly_log_weight(v: Array) -> Array:
            root = jnp.exp(v)
            t = 0.5 * (root - 1 / root)
            return self.log_unnormalised(t) + (b - 0.5 * a * t) * t + jnp.abs(v)

        ends = -integration.LIMIT, integration.LIMIT
        low, high = integration.window(nearly_log_weight, *ends, b.shape, depth)
        centre = jnp.sinh(0.5 * (low + high))
        slope, top = b - a * centre, self.log_unnormalised(centre)
        cosh = jnp.sqrt(1 + centre * centre)
        half, a, slope, top, t0, cosh = (
            x.astype(jnp.float32) for x in (0.5 * (high - low), a, slope, top, centre, cosh)
        )

        def distance(k: Array) -> Array:
            s = jnp.sinh(half * (k / nodes - 0.5))
            return 2 * s * (s * t0 + jnp.sqrt(1 + s * s) * cosh)

        k = jnp.arange(nodes, dtype=jnp.float32).reshape((-1,) + (1,) * b.ndim) + u[0]
        far = distance(k)
        t = t0 + far
        logs = self.log_unnormalised(t) - top + (slope - 0.5 * a * far) * far
        logs = jnp.where(jnp.isnan(logs), -jnp.inf, logs)
        weights = jnp.exp(logs - logs.max(0)) * jnp.sqrt(1 + t * t)  # the root is dt/dv
        chosen = grid_choice(list(itertools.accumulate(weights, jnp.add)), u[0], u[1])
        return (centre + distance(chosen)).astype(jnp.float32)

    @property
    def atom(self) -> ArrayLike | None:
        """The point that has all of the law's mass, or None if there is no such point."""
        return None

    def saved(self) -> Law:
        """The law as files hold it: itself, unless it holds a Python function."""
        return self

    def parts(self) -> list[tuple[ArrayLike, Law]]:
        """Pairs (weight, law) of which the law is the finite mixture; none of these is a mixture.

        A law that is not a mixture is its own only part, of weight 1.
        """
        return [(1.0, self)]

    def _weigh_and_draw(
        self, u: Uniforms, a: Array, b: Array
    ) -> tuple[Array, Callable[[Array], Array]]:
        """The log normaliser, and a function that draws; laws on grids share the work for both.

        The function takes the uniform that replaces ``u[_shared_uniform]``.
        """
        return self.log_normaliser(a, b), lambda v: self.draw((v, *u[1:]), a, b)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        """The minimiser of a t^2/2 - b t + penalty(t), and the minimum."""
        a, b, dtype = broadcast_double(a, b)

        def objective(t: Array) -> Array:
            return self.penalty(t) - (b - 0.5 * a * t) * t

        t = jnp.sinh(integration.minimum(lambda v: objective(jnp.sinh(v)), b))
        return t.astype(dtype), objective(t).astype(dtype)

    def penalty(self, t: ArrayLike) -> Array:
        """What the hidden variables behind ``t`` cost at their best, up to a constant.

        It is the paper's MAP objective. Without hidden variables it is minus the log density.
        """
        return -self.log_unnormalised(jnp.asarray(t))

    def pieces(self) -> list[Piece]:
        """Quadratics and points of which the penalty is made, roughly.

        A search for the mode of many coefficients starts from the minima of their combinations.
        """
        return [Piece(), Piece(free=False)]

    @property
    def convex(self) -> bool:
        """Whether the penalty is convex, so that a search for the mode needs one start only."""
        return False

    def mode(self, a: ArrayLike, b: ArrayLike) -> Array:
        """The most probable value of the tilted law.

        Hidden scales, classes and switches are maximised over, as in the paper.
        """
        return self.best(a, b)[0]

    def sample(
        self,
        key: Key,
        a: ArrayLike = 0.0,
        b: ArrayLike = 0.0,
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        """Draw from the tilted law, once for each element of ``a`` and ``b`` (or of ``shape``)."""
        a, b = floating(a, b)
        if shape is None:
            shape = jnp.broadcast_shapes(a.shape, b.shape)
        a, b = jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)
        return _sample(self, key, a, b)

    # ---- What learning needs of values of the law.

    def statistics(self, t: Array) -> Any:
        """Terms of the sufficient statistics for the law's parameters, shaped like ``t``.

        The answer is a pytree of arrays. Terms that depend on hidden classes are in expectation.
        """
        return ()

    def mstep(self: LawType, statistics: Any) -> LawType:
        """The law with its parameters at their maximum likelihood.

        ``statistics`` are sums of the terms of :meth:`statistics`, averaged over iterations.
        """
        return self

    def mstep_of_each(self: LawType, statistics: Any) -> LawType:
        """The laws of several components (a leading axis), which may learn from each other."""
        each: Callable[..., LawType] = jax.vmap(lambda law, sums: law.mstep(sums))
        return each(self, statistics) if jax.tree.leaves((self, statistics)) else self

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        """Terms t psi(t), psi = -(log density)', and 1; both are 0 at an atom.

        The ratio of their sums is 1 on average where ``t`` has the law's own scale: parameter
        expansion compares it with 1.
        """
        return t * self.score(t), jnp.ones_like(t)

    def score(self, t: Array) -> Array:
        """psi(t) = -(d/dt) log density."""
        return -derivative(self.log_unnormalised, t)

    def classes(self) -> Classes | None:
        """Return the classes of a mixture of normals and atoms; None for other laws."""
        return None

    def class_statistics(self, counts: Array, sums: Array) -> Any:
        """Return what :meth:`statistics` sums up to over values whose classes are known.

        ``counts`` (K,) holds the number of values in each class, and ``sums`` (K,) their sums.
        """
        return ()

    @property
    def n_parameters(self) -> int:
        """How many free numbers are learnt: by default all parameters, if the law has an mstep."""
        return len(jax.tree.leaves(self)) if _is_own(type(self), "mstep") else 0

    @property
    def location(self) -> ArrayLike | None:
        """The location, where it is learnt."""
        return None

    def located(self) -> Law:
        """The law with a location that is learnt (of what is not an atom), for ``mean="shift"``."""
        raise ValueError(
            f"The location of {self!r} cannot be learnt, since the law has no method located: "
            "choose mean='free', 'zero', 'shift-after' or 'offset' instead of 'shift'."
        )

    def location_statistics(self, t: Array) -> tuple[Array, Array]:
        """Terms psi(t) and the information on the location: 0 where infinite or not known."""
        return jnp.zeros_like(t), jnp.zeros_like(t)

    def guarded(self: LawType) -> LawType:
        """The law to propose from in Metropolis sampling: itself, kept off degenerate weights."""
        return self

    def log_guard_ratio(self, t: Array, guarded: Any) -> Array:
        """Log of law(dt) / guarded(dt), ``guarded`` being the answer of :meth:`guarded`."""
        return jnp.zeros_like(t)


@jax.jit
def _sample(law: Law, key: Key, a: Array, b: Array) -> Array:
    return law.draw(uniforms(key, law.n_uniforms, a.shape, a.dtype), a, b)


def broadcast_double(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, Any]:
    """Both arguments in float64 and of one shape, and the dtype that they had."""
    a, b = floating(a, b)
    dtype = b.dtype
    a, b = jnp.broadcast_arrays(a, b)
    return a.astype(float), b.astype(float), dtype
