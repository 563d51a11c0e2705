"""What every law has: the class :class:`Law` and its questions, the decorator :func:`law`, and :class:`Piece`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, TypeVar, cast, dataclass_transform

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.randomness import uniforms

Array = jax.Array
Uniforms = tuple[Array, ...]
LawType = TypeVar("LawType", bound="Law")

REGISTRY: dict[str, type[Law]] = {}


@dataclass_transform(frozen_default=True)
def law(*static: str) -> Callable[[type[LawType]], type[LawType]]:
    """Make a class an immutable pytree; ``static`` fields are structure, all others are parameters."""

    def decorate(cls: type[LawType]) -> type[LawType]:
        new = dataclasses.dataclass(frozen=True)(cls)
        names = [field.name for field in dataclasses.fields(new) if field.name not in static]  # type: ignore[arg-type]

        # Not jax.tree_util.register_dataclass: the structures of two such classes with as many fields compare equal (jaxlib 0.10), and
        # jax.jit may then answer for one law with what it compiled for another. The class is part of the structure here.
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


class Piece(NamedTuple):
    """A penalty that is precision t^2/2 - slope t up to a constant, or a point ``location`` that is not ``free`` to move."""

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
    """A distribution on the line, closed under questions about its Gaussian tilts. See :mod:`noisyica.laws`."""

    n_uniforms: ClassVar[int] = 1
    smooth: ClassVar[bool] = False
    compiles_fast: ClassVar[bool] = False  # see noisyica.priors.Prior

    def log_density(self, t: ArrayLike) -> Array:
        """Log density at ``t`` (log probability where ``t`` is an atom)."""
        raise NotImplementedError

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Log of the integral of exp(-a t^2/2 + b t); infinite where it diverges."""
        raise NotImplementedError

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the tilted law."""
        raise NotImplementedError

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        """A draw from the tilted law, made of ``n_uniforms`` independent uniforms on (0, 1)."""
        raise NotImplementedError

    @property
    def atom(self) -> ArrayLike | None:
        """The point that has all of the law's mass, or None if there is no such point."""
        return None

    def parts(self) -> list[tuple[ArrayLike, Law]]:
        """Pairs (weight, law) of which the law is the finite mixture; none of these is a mixture.

        A law that is not a mixture is its own only part, of weight 1.
        """
        return [(1.0, self)]

    # Which of a draw's uniforms a mixture may use first, to choose between this law and its atoms.
    _switch: ClassVar[int] = 0

    def _weigh(self, u: Uniforms, a: Array, b: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Log normaliser, and the draw as a function of what replaces ``u[_switch]``: they share their work."""
        return self.log_normaliser(a, b), lambda v: self.draw((v, *u[1:]), a, b)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        """The minimiser of a t^2/2 - b t + penalty(t), and the minimum."""
        raise NotImplementedError

    def penalty(self, t: ArrayLike) -> Array:
        """What the hidden variables behind ``t`` cost at their best: the paper's MAP objective, constants left out."""
        raise NotImplementedError

    def pieces(self) -> list[Piece]:
        """Quadratics and points of which the penalty is made, roughly: where to start a search for the mode of several coefficients."""
        return [Piece(), Piece(free=False)]

    @property
    def convex(self) -> bool:
        """Whether the penalty is convex, so that a search for the mode needs one start only."""
        return False

    def mode(self, a: ArrayLike, b: ArrayLike) -> Array:
        """The most probable value; hidden scales, classes and switches are maximised over, as in the paper."""
        return self.best(a, b)[0]

    def sample(
        self,
        key: Array,
        a: ArrayLike = 0.0,
        b: ArrayLike = 0.0,
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        """Draw from the tilted law, one value for each element of ``a`` and ``b`` broadcast (or of ``shape``)."""
        a, b = floating(a, b)
        if shape is None:
            shape = jnp.broadcast_shapes(a.shape, b.shape)
        a, b = jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)
        return _sample(self, key, a, b)

    # What learning needs of values of the law: terms (shaped like the values) whose sums are statistics, and their M-step.

    def statistics(self, t: Array) -> Any:
        """Terms (a pytree) of sufficient statistics for the law's parameters, those of hidden classes in expectation."""
        return ()

    def mstep(self: LawType, statistics: Any) -> LawType:
        """The law with its parameters at their maximum likelihood, given sums of the terms of ``statistics``."""
        return self

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        """Terms t psi(t), psi = -(log density)', and 1; both 0 at an atom.

        The ratio of their sums is 1 on average where ``t`` has the law's own scale: what parameter expansion looks at.
        """
        return t * self.score(t), jnp.ones_like(t)

    def score(self, t: Array) -> Array:
        """psi(t) = -(d/dt) log density."""
        return -_derivative(self.log_density, t)

    def classes(self) -> Classes | None:
        """Return the classes of a mixture of normals and atoms; None for other laws."""
        return None

    def class_statistics(self, counts: Array, sums: Array) -> Any:
        """Return what :meth:`statistics` sums up to, from the number of values in each class (K,) and
        their sums (K,)."""
        return ()

    @property
    def n_parameters(self) -> int:
        """How many free numbers are learnt."""
        return 0

    @property
    def location(self) -> ArrayLike | None:
        """The location, where it is learnt."""
        return None

    def located(self) -> Law:
        """The law with a location that is learnt (of what is not an atom), for ``mean="shift"``."""
        raise ValueError(
            f"The location of {self!r} cannot be learnt: choose mean='free', 'zero' or 'offset' instead of 'shift'."
        )

    def guarded(self: LawType) -> LawType:
        """The law to propose from in Metropolis sampling: itself, kept off degenerate weights."""
        return self

    def log_guard_ratio(self, t: Array, guarded: Any) -> Array:
        """Log of law(dt) / guarded(dt), ``guarded`` being the proposal that :meth:`guarded` made."""
        return jnp.zeros_like(t)


@jax.jit
def _sample(law: Law, key: Array, a: Array, b: Array) -> Array:
    return law.draw(uniforms(key, law.n_uniforms, a.shape, a.dtype), a, b)


def _derivative(function: Callable[[Array], Array], t: Array) -> Array:
    return cast(Array, jax.jvp(function, (t,), (jnp.ones_like(t),))[1])


def broadcast_double(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, Any]:
    """Both in float64 and of one shape, and the dtype that they had."""
    a, b = floating(a, b)
    dtype = b.dtype
    a, b = jnp.broadcast_arrays(a, b)
    return a.astype(float), b.astype(float), dtype
