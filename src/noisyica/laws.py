r"""Scalar laws: how one coefficient behaves when the likelihood multiplies its prior by a Gaussian factor.

Given all the other coefficients, the data see coefficient j of a row only through ``exp(-a t^2 / 2 + b t)``. A *law* is a
distribution on the line that can answer every question about itself after such a *tilt*:

==================================  ==================================================================================
``law.log_normaliser(a, b)``        log of  int exp(-a t^2 / 2 + b t) law(dt)
``law.moments(a, b)``               mean and variance of the tilted law (the derivatives in b of the above)
``law.draw(u, a, b)``               an exact draw, a deterministic function of ``law.n_uniforms`` uniforms
``law.sample(key, a, b)``           the same from a JAX key
``law.mode(a, b)``                  the most probable value of the hidden variables, as in the paper's reconstruction
==================================  ==================================================================================

``a = b = 0`` is the law itself. Atoms: :class:`Dirac`, :class:`Normal`, :class:`Laplace`, :class:`Exponential`,
:class:`Logistic`, :class:`ExponentialNormal`, :class:`SymmetricNormals`, and :class:`LogDensity` for a density given as a
function. Combinators: :class:`Shift`, :class:`Mixture`, :class:`ScaleMixture`. They are immutable, and pytrees whose leaves
are the parameters.

Examples
--------
A spike at zero and a Laplace slab, its weight to be learnt:

>>> from noisyica.laws import Dirac, Laplace, Mixture
>>> law = Mixture((Dirac(), Laplace()), weights=(0.7, 0.3))
>>> mean, variance = law.moments(4.0, 2.0)
>>> print(f"{float(mean):.3f}")
0.074
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar, cast, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._array import floating, uniforms
from noisyica.special import (
    LOG_2,
    LOG_2PI,
    half_line_draw,
    half_line_moments,
    log_half_line,
    normal_quantile,
    once,
    ratio,
)

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
            for name, value in [*zip(static, structure[1:], strict=True), *zip(names, leaves, strict=True)]:
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


class Law:
    """A distribution on the line, closed under questions about its Gaussian tilts. See the module."""

    n_uniforms: ClassVar[int] = 1
    smooth: ClassVar[bool] = False
    plain: ClassVar[bool] = False  # see noisyica.priors.Prior

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

    def sample(self, key: Array, a: ArrayLike = 0.0, b: ArrayLike = 0.0, shape: tuple[int, ...] | None = None) -> Array:
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
        raise ValueError(f"The location of {self!r} cannot be learnt: choose mean='free', 'zero' or 'offset' instead of 'shift'.")

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


# ------------------------------------------------------------------------------------------------------------ atoms


@law()
class Dirac(Law):
    """All the mass at one point."""

    location: ArrayLike = 0.0
    n_uniforms: ClassVar[int] = 0
    plain: ClassVar[bool] = True

    def log_density(self, t: ArrayLike) -> Array:
        return jnp.where(jnp.asarray(t) == self.location, 0.0, -jnp.inf)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return (b - 0.5 * a * self.location) * self.location

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        zero = jnp.zeros_like(sum(floating(a, b)))
        return zero + self.location, zero

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        return self.moments(a, b)[0]

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        return self.moments(a, b)[0], -self.log_normaliser(a, b)

    def penalty(self, t: ArrayLike) -> Array:
        return -self.log_density(t)

    def pieces(self) -> list[Piece]:
        return [Piece(location=self.location, free=False)]

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        return jnp.zeros_like(t), jnp.zeros_like(t)


@law()
class Normal(Law):
    """The normal law N(mean, scale^2)."""

    mean: ArrayLike = 0.0
    scale: ArrayLike = 1.0
    smooth: ClassVar[bool] = True
    plain: ClassVar[bool] = True

    def log_density(self, t: ArrayLike) -> Array:
        z = (jnp.asarray(t) - self.mean) / self.scale
        return -0.5 * (z * z + LOG_2PI) - jnp.log(self.scale)

    def _posterior(self, a: Array, b: Array) -> tuple[Array, Array]:
        variance = jnp.square(self.scale)
        shrink = 1 / (1 + a * variance)
        return (self.mean + variance * b) * shrink, variance * shrink  # type: ignore[return-value]

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        variance = jnp.square(self.scale)
        spread = 1 + a * variance
        exponent = 0.5 * b * b * variance + (b - 0.5 * a * self.mean) * self.mean
        return exponent / spread - 0.5 * jnp.log(spread)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        mean, variance = self._posterior(a, b)
        return mean, variance + jnp.zeros_like(mean)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        mean, variance = self._posterior(*floating(a, b))
        return mean + jnp.sqrt(variance) * normal_quantile(u[0])

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        variance = jnp.square(self.scale)
        return self._posterior(a, b)[0], 0.5 * (jnp.log(variance) - jnp.log1p(a * variance)) - self.log_normaliser(a, b)

    def penalty(self, t: ArrayLike) -> Array:
        return 0.5 * jnp.square((jnp.asarray(t) - self.mean) / self.scale) + jnp.log(self.scale)

    def pieces(self) -> list[Piece]:
        precision = 1 / jnp.square(self.scale)
        return [Piece(precision, precision * self.mean)]

    @property
    def convex(self) -> bool:
        return True

    def located(self) -> FreeNormal:
        return FreeNormal(np.where(self.mean == 0, START, self.mean), self.scale)


START = 1.0
"""Where a location that is learnt begins: off zero, so that the signs of components are decided from the start."""


@law()
class FreeNormal(Normal):
    """The normal law N(mean, scale^2), its mean to be learnt."""

    @property
    def location(self) -> ArrayLike | None:
        return self.mean

    @property
    def n_parameters(self) -> int:
        return 1

    def statistics(self, t: Array) -> Any:
        return t, jnp.ones_like(t)

    def mstep(self, statistics: Any) -> FreeNormal:
        total, count = statistics
        return FreeNormal(jnp.where(count > 0, total / jnp.where(count > 0, count, 1.0), self.mean), self.scale)


@law()
class Exponential(Law):
    """The exponential law of mean ``scale``, on the positive half-line."""

    scale: ArrayLike = 1.0

    def log_density(self, t: ArrayLike) -> Array:
        t = jnp.asarray(t)
        return jnp.where(t >= 0, -t / self.scale - jnp.log(self.scale), -jnp.inf)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return log_half_line(a, b - 1 / self.scale) - jnp.log(self.scale)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        return half_line_moments(a, b - 1 / self.scale)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return half_line_draw(u[0], a, b - 1 / self.scale)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        excess = jnp.maximum(b - 1 / self.scale, 0.0)
        t = _quotient(excess, a)
        return t, jnp.log(self.scale) - 0.5 * excess * t

    def penalty(self, t: ArrayLike) -> Array:
        t = jnp.asarray(t)
        return jnp.where(t >= 0, t / self.scale + jnp.log(self.scale), jnp.inf)

    def pieces(self) -> list[Piece]:
        return [Piece(slope=-1 / self.scale), Piece(free=False)]

    @property
    def convex(self) -> bool:
        return True


@law()
class Laplace(Law):
    """The Laplace law, density exp(-|t| / scale) / (2 scale)."""

    scale: ArrayLike = 1.0
    n_uniforms: ClassVar[int] = 2
    smooth: ClassVar[bool] = True

    def log_density(self, t: ArrayLike) -> Array:
        return -jnp.abs(jnp.asarray(t)) / self.scale - jnp.log(2 * self.scale)

    def _sides(self, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """Slopes on t > 0 and on t < 0, and the log odds of t > 0."""
        up, down = b - 1 / self.scale, -b - 1 / self.scale
        return up, down, log_half_line(a, up) - log_half_line(a, down)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        up, down = b - 1 / self.scale, -b - 1 / self.scale
        return jnp.logaddexp(log_half_line(a, up), log_half_line(a, down)) - jnp.log(2 * self.scale)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        up, down, odds = self._sides(a, b)
        p, q = jax.nn.sigmoid(odds), jax.nn.sigmoid(-odds)
        (m_up, v_up), (m_down, v_down) = half_line_moments(a, up), half_line_moments(a, down)
        mean = p * m_up - q * m_down
        return mean, p * v_up + q * v_down + p * q * jnp.square(m_up + m_down)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        up, down, odds = self._sides(a, b)
        positive = once(jax.nn.sigmoid(odds) - u[0]) > 0
        size = once(half_line_draw(u[1], a, once(jnp.where(positive, up, down))))
        return jnp.where(positive, size, -size)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        excess = jnp.maximum(jnp.abs(b) - 1 / self.scale, 0.0)
        t = jnp.sign(b) * _quotient(excess, a)
        return t, jnp.log(2 * self.scale) - 0.5 * excess * jnp.abs(t)

    def penalty(self, t: ArrayLike) -> Array:
        return jnp.abs(jnp.asarray(t)) / self.scale + jnp.log(2 * self.scale)  # its sign is a hidden variable, too

    def pieces(self) -> list[Piece]:
        return [Piece(slope=-1 / self.scale), Piece(slope=1 / self.scale), Piece(free=False)]

    @property
    def convex(self) -> bool:
        return True

    def score(self, t: Array) -> Array:
        return jnp.sign(t) / self.scale

    def located(self) -> Located:
        return Located(self, START, float(1 / np.square(self.scale)))


def _quotient(x: Array, a: Array) -> Array:
    """x / a, with 0 / 0 = 0: the minimiser of a t^2 / 2 - x t over t >= 0."""
    return once(jnp.where(x > 0, x * (1 / a), 0.0))


# ------------------------------------------------------------------------- laws without a closed form: random grids


def _nodes(dtype: Any) -> int:
    """Size of a grid: in float32, more would not show."""
    return 24 if dtype == jnp.float32 else 96


def _depth(dtype: Any) -> float:
    """How many nats below its peak a density is cut off."""
    return 16.0 if dtype == jnp.float32 else 37.0


class _Grid(NamedTuple):
    """An even grid in some variable over the window where a density lives."""

    size: int
    step: Array
    node: Callable[[Array], Array]  # weight at a position, counted in steps
    place: Callable[[Array], Array]  # the value that a position stands for, as a distance from ``centre``
    centre: Array
    top: Array  # log of what the weights are relative to
    walk: Callable[[Array], list[Array]]  # the weights at shift + 0, 1, 2, ...

    def positions(self, shift: ArrayLike, like: Array) -> Array:
        """shift + 0, 1, 2, ... along a new leading axis."""
        return jnp.arange(self.size, dtype=like.dtype).reshape((-1,) + (1,) * like.ndim) + shift

    def log_integral(self) -> Array:
        """By the trapezoid rule."""
        return self.top + jnp.log(self.step * self.node(self.positions(0.5, self.step)).sum(0))

    def moments(self, value: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Mean and variance of ``value`` (of positions), by the trapezoid rule."""
        k = self.positions(0.5, self.step)
        weights, values = self.node(k), value(k)
        weights = weights / weights.sum(0)
        mean = (weights * values).sum(0)
        return mean, (weights * jnp.square(values - mean)).sum(0)

    def cumulate(self, shift: Array) -> Any:
        """Running sums of the weights at shift + 0, 1, 2, ...: unrolled in float32, where XLA makes one fast kernel of them."""
        if shift.dtype == jnp.float32:
            return list(itertools.accumulate(self.walk(shift), jnp.add))
        return jnp.cumsum(self.node(self.positions(shift, shift)), axis=0)


def _grid_choice(cumulative: Any, shift: Array, u: Array) -> Array:
    r"""Exact draw from a smooth density by a randomly shifted grid; returns the grid position k + shift.

    Shift the grid (k + u_0) h by a uniform u_0, then choose node k with probability proportional to the density there.
    The result has density f(t) / (h sum_k f(t_k)), and for an analytic f that falls off at both ends the trapezoid sum
    in the denominator does not depend on the shift (its error is exponentially small in 1 / h): so the draw has
    density f, with no table, no rejection and no interpolation.
    """
    threshold = u * cumulative[-1]
    if not isinstance(cumulative, list):
        return shift + (cumulative[:-1] < threshold).sum(0)
    chosen = shift
    for c in cumulative[:-1]:
        chosen = chosen + (c < threshold)
    return once(chosen)


@law()
class Logistic(Law):
    """The logistic law of parameter 1/2: density sech(t)^2 / 2, variance pi^2 / 12.

    No closed normaliser: it is the Laplace law of scale 1/2 times 4 / (1 + exp(-2 |t|))^2, which is between 1 and 4, so the
    Laplace law's tilt (closed) says where the grid has to be.
    """

    n_uniforms: ClassVar[int] = 2
    smooth: ClassVar[bool] = True
    plain: ClassVar[bool] = True
    _switch: ClassVar[int] = 1

    def log_density(self, t: ArrayLike) -> Array:
        size = jnp.abs(jnp.asarray(t))
        return LOG_2 - 2 * size - 2 * jnp.log1p(jnp.exp(-2 * size))

    @staticmethod
    def _grid(a: Array, b: Array) -> _Grid:
        """For b >= 0. The centre is the mode of the enveloping Laplace tilt.

        The grid is even in v, t = base + v + v^3 / 6: fine near 0, where the density bends, coarse in wide Gaussian tails.
        All distances are from the envelope's mode, so that nothing cancels where b^2 / a is huge.
        """
        depth = _depth(b.dtype) + 2 * LOG_2
        mode = _quotient(jnp.maximum(b - 2, 0.0), a)
        peak = 0.5 * jnp.maximum(b - 2, 0.0) * mode
        slope = jnp.minimum(b, 2.0)  # b - a mode
        # edges, relative to the mode, where the envelope has fallen by ``depth``
        right = once(2 * depth / ((2 - slope) + jnp.sqrt(jnp.square(2 - slope) + 2 * a * depth)))
        flat = once(jnp.where(b > 2, jnp.sqrt(2 * depth / jnp.maximum(a, 1e-30)), jnp.inf))
        rest = jnp.maximum(depth - jnp.where(b > 2, 0.5 * a * mode * mode, 0.0), 0.0)
        beyond = ratio(2 * rest, (2 + b) + jnp.sqrt(jnp.square(2 + b) + 2 * a * rest))
        left = once(jnp.where(flat < mode, -flat, -mode - beyond))
        base = once(jnp.clip(-mode, left, right))  # the point of the window that is nearest to t = 0
        low, high = -_inverse_cubic(once(base - left)), _inverse_cubic(once(right - base))
        size = _nodes(b.dtype)
        step = once((high - low) * (1 / size))

        def offset(k: Array) -> tuple[Array, Array]:
            v = once(low + k * step)
            return once(base + v * (1 + v * v / 6)), 1 + 0.5 * v * v

        def node(k: Array) -> Array:
            delta, jacobian = offset(k)
            t = once(mode + delta)
            inside = slope * delta + jnp.where(t > 0, -2 * delta, 2 * (t + mode))
            fold = 1 + jnp.exp(-2 * jnp.abs(t))
            return once(jnp.exp(inside - 0.5 * a * delta * delta) * jacobian * (1 / (fold * fold)))

        def walk(shift: Array) -> list[Array]:
            return [node(shift + k) for k in range(size)]

        return _Grid(size, step, node, lambda k: offset(k)[0], mode, peak + LOG_2, walk)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b = floating(a, b)
        return self._grid(a, jnp.abs(b)).log_integral()

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        grid = self._grid(a, jnp.abs(b))
        mean, variance = grid.moments(grid.place)
        return _sign(b) * (grid.centre + mean), variance

    def _weigh(self, u: Uniforms, a: Array, b: Array) -> tuple[Array, Callable[[Array], Array]]:
        grid = self._grid(a, jnp.abs(b))
        cumulative = grid.cumulate(u[0])

        def finish(v: Array) -> Array:
            return _sign(b) * (grid.centre + grid.place(_grid_choice(cumulative, u[0], v)))

        return grid.top + jnp.log(grid.step * cumulative[-1]), finish

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        return self._weigh(u, *floating(a, b))[1](u[1])

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        size = jnp.abs(b)
        # b - a t = 2 tanh t has its root between (|b| - 2)+ / a and |b| / a: bisect
        low, high = _quotient(jnp.maximum(size - 2, 0.0), a), jnp.where(a > 0, size / jnp.maximum(a, 1e-30), jnp.inf)
        high = jnp.minimum(high, low + jnp.arctanh(jnp.minimum(size / 2, 1 - 1e-7)) + 1e-3)

        def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = 0.5 * (bounds[0] + bounds[1])
            rising = size - a * middle - 2 * jnp.tanh(middle) > 0
            return jnp.where(rising, middle, bounds[0]), jnp.where(rising, bounds[1], middle)

        low, high = jax.lax.fori_loop(0, 60, halve, tuple(jnp.broadcast_arrays(low, high)))
        t = 0.5 * (low + high)
        value = 0.5 * a * t * t - size * t + self.penalty(t)
        return jnp.sign(b) * t, value

    def penalty(self, t: ArrayLike) -> Array:
        size = jnp.abs(jnp.asarray(t))
        return 2 * (size + jnp.log1p(jnp.exp(-2 * size)) - LOG_2)

    @property
    def convex(self) -> bool:
        return True

    def score(self, t: Array) -> Array:
        return 2 * jnp.tanh(t)

    def located(self) -> Located:
        return Located(self, START, 4 / 3)  # E[(2 tanh t)^2]


def _sign(b: Array) -> Array:
    return jnp.where(b < 0, -1.0, 1.0).astype(b.dtype)


def _inverse_cubic(y: Array) -> Array:
    """A v >= 0 with v + v^3 / 6 >= y >= 0, and nearly equal: Newton's method from the right of a convex function."""
    v = jnp.minimum(y, jnp.exp(jnp.log(6 * y) / 3))
    for _ in range(2):
        v = once(v - (v * (1 + v * v / 6) - y) * (1 / (1 + 0.5 * v * v)))
    return jnp.maximum(v, 0.0)


_BEND = 0.1  # how far left of the centre the EG grid turns coarse: smaller is farther


@law()
class ExponentialNormal(Law):
    r"""The law of s Y, s exponential of mean 1 and Y standard normal, independent (the paper's EG).

    Given s, the tilted Y is normal; s has the one-dimensional density e^g with, in u = log s and r = 1 / (1 + a s^2),

        g(u) = u - s + log(r) / 2 + b^2 s^2 r / 2,        g'(u) = r - s + b^2 s^2 r^2.

    It equals ``ScaleMixture(Exponential(), Normal())``; the window of the grid in u is found in closed form here, which makes it fast.
    """

    n_uniforms: ClassVar[int] = 3
    _switch: ClassVar[int] = 1

    def log_density(self, t: ArrayLike) -> Array:
        t, _, dtype = _broadcast_double(t, 0.0)
        # int exp(-s - t^2 / 2 s^2) ds / s over u = log s, from where t^2 / 2 s^2 to where s is beyond the depth
        size = jnp.maximum(jnp.abs(t), 1e-30)
        low = jnp.minimum(jnp.log(size) - 2.2, 2 * jnp.log(size) / 3 - 1)
        high = jnp.maximum(2 * jnp.log(size) / 3 + 0.6, 0.0) + 3.7
        u = low + (high - low) * ((jnp.arange(200) + 0.5) / 200).reshape((-1,) + (1,) * t.ndim)
        logs = -jnp.exp(u) - 0.5 * jnp.square(size * jnp.exp(-u))
        value = jax.scipy.special.logsumexp(logs, axis=0) + jnp.log((high - low) / 200) - 0.5 * LOG_2PI
        return jnp.where(t == 0, jnp.inf, value).astype(dtype)

    @staticmethod
    def _grid(a: Array, b: Array) -> _Grid:
        """Places are s / centre - 1; the centre is any point near the mode of g, and ``top`` is g there.

        Where b^2 / a is large, g is too, and its differences would cancel: they are computed as such.

        The density of log s falls slowly to the left, like s. So the grid is even in v, with y = e^v and
        s / centre = (1 + c) y^4 / (c + y^3): like y on the right, like y^4 on the left.
        """
        dtype = b.dtype
        tiny = 1e-30
        b2 = b * b
        q = once(jnp.where(b2 > 0, b2 * (0.5 / jnp.maximum(a, tiny)), 0.0))
        # The rightmost critical point of g is left of s0; beyond it g(u) <= g(u0) - s0 (e^v - 1 - v), v = u - u0.
        far = jnp.exp(jnp.log((2 * q + 1) / jnp.maximum(a, tiny)) / 3)
        s0 = once(jnp.minimum(far, 1 + 0.5 * q))
        r0 = once(1 / (1 + a * s0 * s0))
        lift0 = once(0.5 * b2 * s0 * s0 * r0 * r0)

        def rise(s: Array) -> Array:
            """g(s) - g(s0)."""
            e1, square = once((s - s0) * (1 / s0)), jnp.square(ratio(s, s0))
            gain = once(1 / (r0 * (1 + a * s0 * s0 * square)))
            return once(e1 * (lift0 * gain * (e1 + 2) - s0) + 0.5 * jnp.log(gain * square))

        centre = s0
        for _ in range(2):  # towards the mode; any point will do as a reference, a good one gives a tight window
            r = 1 / (1 + a * centre * centre)
            pull = once(b2 * centre * centre * r * r)
            slope = once(r - centre + pull)
            curvature = centre + 2 * a * centre * centre * r * r - 2 * pull * (2 * r - 1)
            move = slope * (1 / jnp.maximum(curvature, jnp.abs(slope) + 0.5 * centre))
            centre = once(jnp.clip(centre * (1 + move), 0.1 * s0, s0))
        small = jnp.minimum(1.0, s0)
        high, low = rise(centre), rise(small)
        centre = once(jnp.where(low > high, small, centre))
        fall = once(_depth(dtype) - jnp.maximum(high, low))  # from g(s0) to the level where the window ends
        drop = ratio(jnp.maximum(fall, 0.0), s0)
        right = jnp.log(s0 * (1 / centre) * (1 + drop + jnp.sqrt(2 * drop)))
        left = jnp.log(ExponentialNormal._left_edge(a, b2, q, s0, r0, fall) * (1 / centre))
        top = once(0.5 * jnp.log(s0 * s0 * r0) - s0 + 0.5 * b2 * s0 * s0 * r0 + jnp.maximum(high, low))
        r_c = 1 / (1 + a * centre * centre)
        rest = once(a * centre * centre * r_c)  # 1 - r_c
        lift = once(0.5 * b2 * centre * centre * r_c * r_c)
        # the bend is where the slow fall begins: left of the centre, and of 1 / sqrt(a), where r turns
        bend = jnp.maximum(_BEND * r_c * jnp.sqrt(r_c), 1e-24)
        # log(s / centre) is concave in v: it is below its tangent at 0 and below both of its asymptotes
        tangent, asymptote = left * (1 + bend) * (1 / (1 + 4 * bend)), 0.25 * (left - _BEND + jnp.log(bend))
        low = once(jnp.maximum(jnp.maximum(tangent, asymptote), left - _BEND))
        size = _nodes(dtype)
        step = once((right - low) * (1 / size))

        def place(x: Array) -> tuple[Array, Array]:
            """s / centre - 1, with no cancellation, and its derivative in v, for y = 1 + x."""
            y = 1 + x
            y2 = y * y
            y3 = y * y2
            inverse = 1 / (bend + y3)
            slope = (1 + bend) * y * y3 * inverse * (4 * bend + y3) * inverse
            return once(x * (y3 + bend * ((1 + y) * (1 + y2))) * inverse), slope

        def weight(x: Array) -> Array:
            # e^g ds / dv relative to the centre: exact even where b^2 / a is enormous
            e1, slope = place(x)
            root = jax.lax.rsqrt(r_c + rest * jnp.square(1 + e1))  # sqrt(r / r_c)
            return once(jnp.exp(e1 * (lift * (root * root) * (e1 + 2) - centre)) * root * slope)

        def at(k: Array) -> Array:
            return jnp.expm1(once(low + k * step))

        def walk(shift: Array) -> list[Array]:
            x, growth = at(shift), jnp.expm1(step)
            result = []
            for _ in range(size):
                result.append(weight(x))
                x = once(x + (1 + x) * growth)
            return result

        return _Grid(size, step, lambda k: weight(at(k)), lambda k: place(at(k))[0], centre, top, walk)

    @staticmethod
    def _left_edge(a: Array, b2: Array, q: Array, s0: Array, r0: Array, fall: Array) -> Array:
        """An s to the left of which g is below its level g(s0) - ``fall``."""
        log_width = 0.5 * jnp.log(s0 * s0 * r0)
        below = s0 + q * r0 + fall  # log_width + q - level
        # (i) log(s sqrt(r)) <= log s and q (1 - r) <= min(q, b^2 s^2 / 2)
        edge = jnp.minimum(jnp.exp(jnp.minimum(log_width + (q - below) - 0.5, 80.0)), 1 / jnp.sqrt(jnp.maximum(b2, 1e-30)))
        s_low = once(jnp.maximum(jnp.exp(log_width - below), edge))
        # (ii) g <= log_width - s_low + q (1 - r) right of any s_low already known: solve for r, and improve s_low
        for _ in range(2):
            room = once(below - s_low)
            gained = once(q - room)
            bound = jnp.sqrt(jnp.maximum(gained, 0.0) * (1 / jnp.maximum(a * room, 1e-30)))
            s_low = once(jnp.where((gained > 0) & (room > 0), jnp.maximum(s_low, jnp.minimum(bound, s0)), s_low))
        # (iii) close to the mode of a sharp peak: with w = (s0 / s)^2 - 1, g <= g0 - c w / (1 + kappa + w) + s0 log(1 + w) / 2
        kappa = once(a * s0 * s0)
        c = once(q * r0 * kappa)
        fall = jnp.maximum(fall, 0.0)

        def surplus(w: Array) -> Array:
            return c * w * (1 / (1 + kappa + w)) - 0.5 * s0 * jnp.log(1 + w) - fall

        tau = ratio(2 * fall, s0)
        sharp = once(1.3 * (tau + jnp.sqrt(2 * tau)) + 1e-6)
        known = jnp.square(ratio(s0, s_low)) - 1
        proved = (sharp < known) & (surplus(sharp) > 0) & (surplus(known) > 0)
        return jnp.where(proved, s0 * (1 / jnp.sqrt(1 + sharp)), s_low)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return self._grid(*floating(a, b)).log_integral()

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        grid = self._grid(a, b)
        centre = grid.centre
        at_centre = centre * centre / (1 + a * centre * centre)

        def variance_given(k: Array) -> Array:
            """The variance given s, less that given s = centre."""
            e1 = grid.place(k)
            return at_centre * e1 * (e1 + 2) / (1 + a * jnp.square(centre * (1 + e1)))

        # the conditional mean is b times the conditional variance
        within, spread = grid.moments(variance_given)
        return b * (at_centre + within), at_centre + within + b * b * spread

    def _weigh(self, u: Uniforms, a: Array, b: Array) -> tuple[Array, Callable[[Array], Array]]:
        grid = self._grid(a, b)
        cumulative = grid.cumulate(u[0])

        def finish(v: Array) -> Array:
            s = once(grid.centre * (1 + grid.place(_grid_choice(cumulative, u[0], v))))
            return s * Normal().draw(u[2:], once(a * s * s), b * s)

        return grid.top + jnp.log(grid.step * cumulative[-1]), finish

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        return self._weigh(u, *floating(a, b))[1](u[1])

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        size = jnp.abs(b)
        # stationary points of a t^2/2 - |b| t + 1.5 t^(2/3): with t = w^3, a w^4 - |b| w + 1 = 0; the larger root is the minimum
        w = jnp.where(a > 0, jnp.cbrt(size / jnp.maximum(a, 1e-30)), 0.0)

        def newton(_: int, w: Array) -> Array:  # from the right of a convex function
            w = w - (a * w**4 - size * w + 1) / jnp.where(a * w**3 > 0, 4 * a * w**3 - size, jnp.inf)
            return jnp.maximum(w, jnp.cbrt(size / jnp.maximum(4 * a, 1e-30)))

        w = jax.lax.fori_loop(0, 60, newton, w)
        t = jnp.where(a > 0, w**3, 0.0)
        value = 0.5 * a * t * t - size * t + self.penalty(t)
        return jnp.where(value < 0, jnp.sign(b) * t, 0.0), jnp.minimum(value, 0.0)

    def penalty(self, t: ArrayLike) -> Array:
        return 1.5 * jnp.cbrt(jnp.square(jnp.asarray(t)))

    def pieces(self) -> list[Piece]:
        return [Piece(slope=-1.0), Piece(slope=1.0), Piece(free=False)]  # its slope where |t| = 1

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        return _mean_scale(t), jnp.ones_like(t)


@functools.cache
def _mean_scale_table() -> np.ndarray:
    """E[s | s Y = t] = t psi(t) at equal steps of log |t| from -30 to 12."""
    log_t = np.linspace(*_TABLE)[:, None]
    low, high = np.minimum(log_t - 2.2, 2 * log_t / 3 - 1), np.maximum(2 * log_t / 3, 0) + 4.0
    u = low + (high - low) * np.arange(1500) / 1500
    exponent = -np.exp(u) - 0.5 * np.exp(2 * (log_t - u))
    weight = np.exp(exponent - exponent.max(1, keepdims=True))
    return np.asarray((weight * np.exp(u)).sum(1) / weight.sum(1))


_TABLE = (-30.0, 12.0, 4096)


def _mean_scale(t: Array) -> Array:
    """E[s | s Y = t], interpolated in its table."""
    low, high, size = _TABLE
    values = jnp.asarray(_mean_scale_table(), t.dtype)
    position = (jnp.log(jnp.abs(t) + 1e-13) - low) * ((size - 1) / (high - low))
    index = jnp.clip(position, 0, size - 2).astype(jnp.int32)
    fraction = position - index
    return values[index] * (1 - fraction) + values[index + 1] * fraction


# ------------------------------------------------------------------------------------------- finite normal mixtures


@law()
class SymmetricNormals(Law):
    """The paper's IFA law: N(0, 1) with weight w_0, and N(m_k, 1), N(-m_k, 1) with weight w_k / 2 each."""

    means: ArrayLike | Sequence[float] = (2.0,)
    weights: ArrayLike | Sequence[float] = (0.5, 0.5)
    n_uniforms: ClassVar[int] = 2
    smooth: ClassVar[bool] = True
    plain: ClassVar[bool] = True

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
        """Log normaliser, and posterior weights of the classes; what classes have in common is left out of the latter."""
        shrink = 1 / (1 + a)
        total, weights = _normalise([w + (b - 0.5 * a * m) * m * shrink for m, w in self._classes()])
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
        found = []
        for m, w in self._labels():
            t, value = Normal(m).best(a, b)
            found.append((t, value - w))
        return functools.reduce(_better, found)

    def penalty(self, t: ArrayLike) -> Array:
        return functools.reduce(jnp.minimum, [Normal(m).penalty(t) - w for m, w in self._labels()])

    def pieces(self) -> list[Piece]:
        return [piece for m, _ in self._labels() for piece in Normal(m).pieces()]

    def _labels(self) -> list[tuple[Array, Array]]:
        """(mean, log weight of the label) of each normal: the sign, a hidden variable of its own, costs the same whatever the label."""
        classes = self._classes()
        return [classes[0], *((m, w + LOG_2) for m, w in classes[1:])]

    @property
    def n_parameters(self) -> int:
        return 2 * int(np.shape(self.means)[-1])

    def _responsibilities(self, t: Array) -> list[Array]:
        return _normalise([w + Normal(m).log_density(t) for m, w in self._classes()])[1]

    def statistics(self, t: Array) -> Any:
        r = self._responsibilities(t)
        pairs = list(zip(r[1::2], r[2::2], strict=True))
        return (r[0], *(up + down for up, down in pairs)), tuple((up - down) * t for up, down in pairs)

    def mstep(self, statistics: Any) -> SymmetricNormals:
        counts, sums = (jnp.stack(terms, -1) for terms in statistics)
        return SymmetricNormals(sums / jnp.maximum(counts[..., 1:], 1e-12), keep_inside(counts))

    def score(self, t: Array) -> Array:
        return _total(x * (t - m) for x, (m, _) in zip(self._responsibilities(t), self._classes(), strict=True))

    def located(self) -> Located:
        return Located(self, START, 1.0)  # a mixture holds no more information than its classes: the step is on the safe side


def _as_vector(values: Any) -> Any:
    """Sequences of numbers as one array, so that learning does not change the structure of the pytree."""
    return np.asarray(values, float) if isinstance(values, (tuple, list)) else values


def _normalise(logs: list[Array]) -> tuple[Array, list[Array]]:
    """Log of the sum of exponentials, and the exponentials divided by it (so that they sum to one to the last digit)."""
    top = once(functools.reduce(jnp.maximum, logs))
    parts = [once(jnp.exp(x - jnp.where(jnp.isfinite(top), top, 0.0))) for x in logs]
    total = once(_total(parts))
    return top + jnp.log(total), [once(part * (1 / total)) for part in parts]


def keep_inside(counts: Array, floor: float = 1e-3) -> Array:
    """Weights proportional to ``counts``, none below ``floor``: a class or a switch that is never used could never come back."""
    weights = counts / jnp.maximum(counts.sum(-1, keepdims=True), 1e-30)
    low = weights < floor
    rest = jnp.where(low, 0.0, weights)
    rest = rest * (1 - floor * low.sum(-1, keepdims=True)) / jnp.maximum(rest.sum(-1, keepdims=True), 1e-30)
    return jnp.where(low, floor, rest)


def _better(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    wins = second[1] < first[1]
    return jnp.where(wins, second[0], first[0]), jnp.where(wins, second[1], first[1])


def _mix(weights: Sequence[Array], moments: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Mean and variance of a mixture; the variance as within plus between, so that it does not cancel."""
    pairs = list(zip(weights, moments, strict=True))
    mean = _total(w * m for w, (m, _) in pairs)
    return mean, _total(w * (v + jnp.square(m - mean)) for w, (m, v) in pairs)


def _total(terms: Iterable[Array]) -> Array:
    return functools.reduce(jnp.add, terms)


# ------------------------------------------------------------------------------------------------------ combinators


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
        return [isinstance(x, Dirac) for x in self.laws]

    @property
    def _slab(self) -> int | None:
        """The one law that is not an atom, if there is just one."""
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
    def plain(self) -> bool:  # type: ignore[override]
        return all(x.plain for x in self.laws)

    @property
    def location(self) -> ArrayLike | None:
        return None if self._slab is None else self.laws[self._slab].location

    def located(self) -> Mixture:
        if self._slab is None:
            return super().located()  # type: ignore[return-value]
        return Mixture(tuple(x if isinstance(x, Dirac) else x.located() for x in self.laws), self.weights)

    def _log_weights(self) -> list[Array]:
        logs = jnp.log(jnp.asarray(self.weights))
        return [logs[k] for k in range(len(self.laws))]

    def _log_terms(self, terms: list[Array]) -> tuple[Array, list[Array]]:
        return _normalise([w + x for w, x in zip(self._log_weights(), terms, strict=True)])

    def _two_weights(self, logs: list[Array]) -> list[Array]:
        """Posterior weights of two laws from their log normalisers: one logistic function."""
        prior = self._log_weights()
        second = once(jax.nn.sigmoid((logs[1] - logs[0]) + (prior[1] - prior[0])))
        return [1 - second, second]

    def _at_atom(self, t: Array) -> Array:
        at = [t == x.location for x in self.laws if isinstance(x, Dirac)]
        return functools.reduce(jnp.logical_or, at, jnp.zeros(t.shape, bool))

    def _given_value(self, t: Array) -> tuple[Array, list[Array]]:
        """Log density, and the probability of each law given the value: an atom's point belongs to the atom."""
        at_atom = self._at_atom(t)
        densities = [x.log_density(t) for x in self.laws]
        return self._log_terms([f if atom else jnp.where(at_atom, -jnp.inf, f) for f, atom in zip(densities, self._atoms(), strict=True)])

    def _memberships(self, t: Array) -> list[Array]:
        if self._slab is not None:
            return [(t == x.location if isinstance(x, Dirac) else ~self._at_atom(t)).astype(t.dtype) for x in self.laws]
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
            logs, draws = [x.log_normaliser(a, b) for x in self.laws], [x.draw(u[1:], a, b) for x in self.laws]
            weights = self._log_terms(logs)[1]
        else:
            # The slab comes first, on [0, w): u / w is then a fresh uniform, at full resolution.
            slab = self.laws[self._slab]
            order = [self._slab] + [k for k in range(len(self.laws)) if k != self._slab]
            switch = u[slab._switch]
            log_slab, finish = slab._weigh(u, a, b)
            logs = [log_slab if k == self._slab else x.log_normaliser(a, b) for k, x in enumerate(self.laws)]
            weights = self._two_weights(logs) if len(logs) == 2 else [once(w) for w in self._log_terms(logs)[1]]
            fresh = jnp.clip(switch * (1 / jnp.maximum(weights[self._slab], 1e-30)), 1e-30, 1 - np.finfo(b.dtype).epsneg)
            draws = [finish(once(fresh))] + [self.laws[k].draw((), a, b) for k in order[1:]]
        result = draws[-1]
        bounds = list(itertools.accumulate((weights[k] for k in order[:-1]), jnp.add))
        for value, bound in reversed(list(zip(draws[:-1], bounds, strict=True))):
            result = jnp.where(switch < bound, value, result)
        return result

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        found = []
        for x, w in zip(self.laws, self._log_weights(), strict=True):
            t, value = x.best(a, b)
            found.append((t, value - w))
        return functools.reduce(_better, found)

    def penalty(self, t: ArrayLike) -> Array:
        terms = [x.penalty(t) - w for x, w in zip(self.laws, self._log_weights(), strict=True)]
        return functools.reduce(jnp.minimum, terms)

    def pieces(self) -> list[Piece]:
        kinks = not any(self._atoms())  # where there is an atom, zero is taken care of
        return [x for law in self.laws for x in law.pieces() if kinks or x.free or isinstance(law, Dirac)]

    def statistics(self, t: Array) -> Any:
        shares = tuple(self._memberships(t))
        inner = tuple(jax.tree.map(functools.partial(jnp.multiply, m), x.statistics(t)) for x, m in zip(self.laws, shares, strict=True))
        return shares, inner

    def mstep(self, statistics: Any) -> Mixture:
        counts, inner = statistics
        laws = tuple(x.mstep(s) for x, s in zip(self.laws, inner, strict=True))
        return Mixture(laws, keep_inside(jnp.stack(counts, -1)))

    def scale_statistics(self, t: Array) -> tuple[Array, Array]:
        found = [(m, *x.scale_statistics(t)) for x, m in zip(self.laws, self._memberships(t), strict=True)]
        return _total(m * x for m, x, _ in found), _total(m * one for m, _, one in found)

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
class Shift(Law):
    """The law of ``by`` + T, T of law ``law``; in float64 inside, since a large tilt nearly cancels a shift."""

    law: Law
    by: ArrayLike = 0.0

    @property
    def n_uniforms(self) -> int:  # type: ignore[override]
        return self.law.n_uniforms

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.law.smooth

    @property
    def n_parameters(self) -> int:
        return self.law.n_parameters

    @property
    def plain(self) -> bool:  # type: ignore[override]
        return self.law.plain

    def _tilt(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, Array, Any]:
        """The tilt of T, the log of what it leaves out, and the dtype of the answer."""
        a, b, dtype = _broadcast_double(a, b)
        return a, b - a * self.by, (b - 0.5 * a * self.by) * self.by, dtype

    def log_density(self, t: ArrayLike) -> Array:
        return self.law.log_density(jnp.asarray(t) - self.by)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, left, dtype = self._tilt(a, b)
        return (self.law.log_normaliser(a, b) + left).astype(dtype)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, _, dtype = self._tilt(a, b)
        mean, variance = self.law.moments(a, b)
        return (mean + self.by).astype(dtype), variance.astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, _, dtype = self._tilt(a, b)
        return (self.law.draw(tuple(x.astype(b.dtype) for x in u), a, b) + self.by).astype(dtype)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, left, dtype = self._tilt(a, b)
        t, value = self.law.best(a, b)
        return (t + self.by).astype(dtype), (value - left).astype(dtype)

    def penalty(self, t: ArrayLike) -> Array:
        return self.law.penalty(jnp.asarray(t) - self.by)

    def pieces(self) -> list[Piece]:
        return [x._replace(slope=x.slope + x.precision * self.by, location=x.location + self.by) for x in self.law.pieces()]

    @property
    def convex(self) -> bool:
        return self.law.convex

    def statistics(self, t: Array) -> Any:
        return self.law.statistics(t - self.by)

    def mstep(self, statistics: Any) -> Shift:
        return Shift(self.law.mstep(statistics), self.by)

    def located(self) -> Located:
        inner = self.law.located()
        if not isinstance(inner, Located):
            return super().located()  # type: ignore[return-value]
        return Located(self.law, self.by, inner.information)


@law("information")
class Located(Shift):
    """A :class:`Shift` whose ``by`` is learnt.

    A value t says ``by`` + psi(t - by) / information of it: one step of Fisher's scoring. Averaging these over iterations is stochastic
    approximation of the equation E[psi(t - by)] = 0 of the maximum likelihood.
    """

    information: float = 1.0

    @property
    def location(self) -> ArrayLike | None:
        return self.by

    @property
    def n_parameters(self) -> int:
        return 1 + self.law.n_parameters

    def statistics(self, t: Array) -> Any:
        z = t - self.by
        return self.law.statistics(z), self.by + self.law.score(z) / self.information, jnp.ones_like(t)

    def mstep(self, statistics: Any) -> Located:
        inner, total, count = statistics
        by = jnp.where(count > 0, total / jnp.where(count > 0, count, 1.0), self.by)
        return Located(self.law.mstep(inner), by, self.information)


# ------------------------------------------------------------------- anything else: a window found by zooming, then a grid


def _zoom(log_weight: Callable[[Array], Array], low: float, high: float, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The window outside which a unimodal log weight is 40 nats below its peak, found by repeated magnification."""
    count = 24
    fractions = jnp.arange(count + 1).reshape((-1,) + (1,) * len(shape)) / count

    def magnify(_: int, window: tuple[Array, Array]) -> tuple[Array, Array]:
        lo, hi = window
        step = (hi - lo) / count
        values = log_weight(lo + (hi - lo) * fractions)
        values = jnp.where(jnp.isnan(values), -jnp.inf, values)
        high_enough = values >= values.max(0) - 40.0
        first = jnp.argmax(high_enough, 0)
        last = count - jnp.argmax(high_enough[::-1], 0)
        return lo + step * jnp.maximum(first - 1, 0), lo + step * jnp.minimum(last + 1, count)

    start = (jnp.full(shape, low), jnp.full(shape, high))
    return cast("tuple[Array, Array]", jax.lax.fori_loop(0, 10, magnify, start))


class _Gridded(Law):
    """Laws that integrate one variable v numerically, in float64: ``log_weight(v, a, b)`` over ``[low, high]``.

    Nodes are a leading axis. Slower than a closed form by two orders of magnitude, and as exact: see ``_grid_draw``.
    """

    count: ClassVar[int] = 160
    low: ClassVar[float] = -45.0
    high: ClassVar[float] = 45.0

    def _log_weight(self, v: Array, a: Array, b: Array) -> Array:
        raise NotImplementedError

    def _weights(self, shift: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """Positions (nodes first), weights scaled to a peak of one, and the log of what they were scaled by."""
        low, high = _zoom(lambda v: self._log_weight(v, a, b), self.low, self.high, b.shape)
        step = (high - low) / self.count
        k = jnp.arange(self.count, dtype=b.dtype).reshape((-1,) + (1,) * b.ndim)
        v = low + (k + shift) * step
        logs = self._log_weight(v, a, b)
        logs = jnp.where(jnp.isnan(logs), -jnp.inf, logs)
        top = logs.max(0)
        return v, jnp.exp(logs - top), top + jnp.log(step)

    def _log_integral(self, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = _broadcast_double(a, b)
        _, weights, scale = self._weights(jnp.asarray(0.5), a, b)
        return (jnp.log(weights.sum(0)) + scale).astype(dtype)

    def _pick(self, u: Uniforms, a: Array, b: Array) -> Array:
        v, weights, _ = self._weights(u[0].astype(b.dtype), a, b)
        cumulative = jnp.cumsum(weights, 0)
        chosen = (cumulative[:-1] < u[1] * cumulative[-1]).sum(0)
        return jnp.take_along_axis(v, chosen[None], 0)[0]


def _broadcast_double(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, Any]:
    a, b = floating(a, b)
    dtype = b.dtype
    a, b = jnp.broadcast_arrays(a, b)
    return a.astype(float), b.astype(float), dtype


@law("function")
class LogDensity(_Gridded):
    """A law given by its log density, a JAX function of an array (not necessarily normalised).

    The density must be smooth, and unimodal after any Gaussian tilt (log-concave is enough); make others as a :class:`Mixture`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from noisyica.laws import LogDensity
    >>> quartic = LogDensity(lambda t: -t**4)
    >>> bool(abs(quartic.moments(0.0, 0.0)[1] - 0.3379891) < 1e-6)
    True
    """

    function: Callable[[Array], Array]
    n_uniforms: ClassVar[int] = 2
    smooth: ClassVar[bool] = True

    def _log_weight(self, v: Array, a: Array, b: Array) -> Array:
        t = jnp.sinh(v)
        return self.function(t) + (b - 0.5 * a * t) * t + jnp.logaddexp(v, -v)

    def log_density(self, t: ArrayLike) -> Array:
        (t,) = floating(t)
        return self.function(t) - (self._log_integral(0.0, 0.0) - LOG_2).astype(t.dtype)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return (self._log_integral(a, b) - self._log_integral(0.0, 0.0)).astype(floating(a, b)[1].dtype)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = _broadcast_double(a, b)
        v, weights, _ = self._weights(jnp.asarray(0.5), a, b)
        t, weights = jnp.sinh(v), weights / weights.sum(0)
        mean = (weights * t).sum(0)
        return mean.astype(dtype), (weights * jnp.square(t - mean)).sum(0).astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = _broadcast_double(a, b)
        return jnp.sinh(self._pick(u, a, b)).astype(dtype)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = _broadcast_double(a, b)

        def objective(t: Array) -> Array:
            return self.penalty(t) - (b - 0.5 * a * t) * t

        low, high = _zoom(lambda v: -1e6 * objective(jnp.sinh(v)), -30.0, 30.0, b.shape)
        t = jnp.sinh(0.5 * (low + high))
        return t.astype(dtype), objective(t).astype(dtype)

    def penalty(self, t: ArrayLike) -> Array:
        return -self.function(jnp.asarray(t))


@law()
class ScaleMixture(_Gridded):
    """The law of S T, S > 0 of law ``scale`` (with a density) and T of law ``base``, independent."""

    scale: Law
    base: Law

    @property
    def n_uniforms(self) -> int:  # type: ignore[override]
        return 2 + self.base.n_uniforms

    def _log_weight(self, v: Array, a: Array, b: Array) -> Array:
        s = jnp.exp(v)
        return v + self.scale.log_density(s) + self.base.log_normaliser(a * s * s, b * s)

    def log_density(self, t: ArrayLike) -> Array:
        t, _, dtype = _broadcast_double(t, 0.0)

        def weight(v: Array) -> Array:
            s = jnp.exp(v)
            return self.scale.log_density(s) + self.base.log_density(t / s)

        low, high = _zoom(weight, self.low, self.high, t.shape)
        k = (jnp.arange(4 * self.count) + 0.5).reshape((-1,) + (1,) * t.ndim) / (4 * self.count)
        logs = weight(low + k * (high - low))
        return (jax.scipy.special.logsumexp(logs, axis=0) + jnp.log((high - low) / (4 * self.count))).astype(dtype)

    def log_normaliser(self, a: ArrayLike, b: ArrayLike) -> Array:
        return self._log_integral(a, b)

    def moments(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = _broadcast_double(a, b)
        v, weights, _ = self._weights(jnp.asarray(0.5), a, b)
        s, weights = jnp.exp(v), weights / weights.sum(0)
        means, variances = self.base.moments(a * s * s, b * s)
        mean = (weights * s * means).sum(0)
        variance = (weights * (s * s * variances + jnp.square(s * means - mean))).sum(0)
        return mean.astype(dtype), variance.astype(dtype)

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        a, b, dtype = _broadcast_double(a, b)
        s = jnp.exp(self._pick(u, a, b))
        return (s * self.base.draw(tuple(x.astype(b.dtype) for x in u[2:]), a * s * s, b * s)).astype(dtype)

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b, dtype = _broadcast_double(a, b)

        def objective(v: Array) -> Array:
            s = jnp.exp(v)
            return self.scale.penalty(s) + self.base.best(a * s * s, b * s)[1]

        v = jnp.linspace(-45.0, 45.0, 721).reshape((-1,) + (1,) * b.ndim)
        coarse = v[jnp.argmin(objective(v), 0), ...].reshape(b.shape)

        def narrow(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:  # golden section about the best node
            low, high = ends
            left, right = low + 0.381966 * (high - low), low + 0.618034 * (high - low)
            down = objective(left) < objective(right)
            return jnp.where(down, low, left), jnp.where(down, right, high)

        low, high = jax.lax.fori_loop(0, 60, narrow, (coarse - 0.2, coarse + 0.2))
        s = jnp.exp(0.5 * (low + high))
        t = s * self.base.best(a * s * s, b * s)[0]
        value = objective(0.5 * (low + high))
        nothing = self.scale.penalty(jnp.zeros_like(s)) + self.base.best(jnp.zeros_like(a), jnp.zeros_like(b))[1]
        return (
            jnp.where(value < nothing, t, 0.0).astype(dtype),
            jnp.minimum(value, nothing).astype(dtype),
        )

    def penalty(self, t: ArrayLike) -> Array:
        t, _, dtype = _broadcast_double(t, 0.0)
        v = jnp.linspace(-45.0, 45.0, 7201).reshape((-1,) + (1,) * t.ndim)
        s = jnp.exp(v)
        value = (self.scale.penalty(s) + self.base.penalty(t / s)).min(0)
        nothing = self.scale.penalty(0.0) + self.base.best(0.0, 0.0)[1]  # a scale of zero leaves the base free
        return jnp.where(t == 0, jnp.minimum(value, nothing), value).astype(dtype)
