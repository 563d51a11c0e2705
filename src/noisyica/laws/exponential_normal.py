"""The paper's EG law, an exponential scale times a normal variable.

Beside the law itself: the grid over its scale, and the table of its score.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import LOG_2PI, normal_quantile
from noisyica._jax.xla import once
from noisyica.laws.atoms import Exponential, Normal
from noisyica.laws.base import Law, Piece, Uniforms, broadcast_double, law
from noisyica.laws.grids import Grid, cut_depth, grid_choice, grid_size
from noisyica.laws.numerical import ScaleMixture

Array = jax.Array


@law()
class ExponentialNormal(Law):
    r"""The law of s Y, s exponential of mean 1 and Y standard normal, independent (the paper's EG).

    Given s, the tilted Y is normal; s has the one-dimensional density e^g with, in u = log s and
    r = 1 / (1 + a s^2),

        g(u) = u - s + log(r) / 2 + b^2 s^2 r / 2,        g'(u) = r - s + b^2 s^2 r^2.

    It equals ``ScaleMixture(Exponential(), Normal())``; the window of the grid in u is found in
    closed form here, which makes it fast.
    """

    n_uniforms: ClassVar[int] = 3
    smooth: ClassVar[bool] = False
    _shared_uniform: ClassVar[int] = 1

    def log_density(self, t: ArrayLike) -> Array:
        t, _, dtype = broadcast_double(t, 0.0)
        # int exp(-s - t^2 / 2 s^2) ds / s over u = log s, from where t^2 / 2 s^2 is so large that
        # nothing is left, to where s is
        size = jnp.maximum(jnp.abs(t), 1e-30)
        low = jnp.minimum(jnp.log(size) - 2.2, 2 * jnp.log(size) / 3 - 1)
        high = jnp.maximum(2 * jnp.log(size) / 3 + 0.6, 0.0) + 3.7
        u = low + (high - low) * ((jnp.arange(200) + 0.5) / 200).reshape((-1,) + (1,) * t.ndim)
        logs = -jnp.exp(u) - 0.5 * jnp.square(size * jnp.exp(-u))
        value = (
            jax.scipy.special.logsumexp(logs, axis=0) + jnp.log((high - low) / 200) - 0.5 * LOG_2PI
        )
        return jnp.where(t == 0, jnp.inf, value).astype(dtype)

    @staticmethod
    def _grid(a: Array, b: Array) -> Grid:
        """The grid of the scale s. Its places are s / centre - 1.

        The centre is any point near the mode of g, and ``top`` is g there. Where b^2 / a is large,
        so is g, and a difference of two of its values would cancel: differences are computed
        directly.
        """
        tiny = 1e-30
        # powers of b are only computed of products that are small where b is large: in single
        # precision b * b overflows for rows far out under a model with little noise
        q = once(0.5 * jnp.square(b * jax.lax.rsqrt(jnp.maximum(a, tiny))))
        # The rightmost critical point of g is left of s0; beyond s0, with v = u - u0,
        # g(u) <= g(u0) - s0 (e^v - 1 - v).
        far = jnp.exp(jnp.log((2 * q + 1) * (1 / jnp.maximum(a, tiny))) / 3)
        s0 = once(jnp.minimum(far, 1 + 0.5 * q))
        kappa = once(a * s0 * s0)
        start = _Start(s0, once(1 / s0), kappa, once(jax.lax.rsqrt(1 + kappa)))
        m, rise = _near_mode(start, once(0.5 * jnp.square(b * (s0 * start.root * start.root))))
        fall = once(cut_depth(b.dtype) - rise)  # from g(s0) to the level where the window ends
        left, right = _edges(start, b, q, fall)
        width = once(s0 * start.root)
        top = once(jnp.log(width) - s0 + 0.5 * jnp.square(b * width) + rise)
        log_m = once(jnp.log(m))
        return _bent_grid(a, b, once(s0 * m), top, once(left - log_m), once(right - log_m))

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

    def _weigh_and_draw(
        self, u: Uniforms, a: Array, b: Array
    ) -> tuple[Array, Callable[[Array], Array]]:
        grid = self._grid(a, b)
        cumulative = grid.cumulate(u[0])

        def finish(v: Array) -> Array:
            s = once(grid.centre * (1 + grid.place(grid_choice(cumulative, u[0], v))))
            root = once(jax.lax.rsqrt(1 + a * s * s))
            return s * root * (b * s * root + normal_quantile(u[2]))

        return grid.top + jnp.log(grid.step * cumulative[-1]), finish

    def draw(self, u: Uniforms, a: ArrayLike, b: ArrayLike) -> Array:
        return self._weigh_and_draw(u, *floating(a, b))[1](u[1])

    def best(self, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
        a, b = floating(a, b)
        size = jnp.abs(b)
        # stationary points of a t^2/2 - |b| t + 1.5 t^(2/3): with t = w^3, a w^4 - |b| w + 1 = 0;
        # the larger root is the minimum
        w = jnp.where(a > 0, jnp.cbrt(size / jnp.maximum(a, 1e-30)), 0.0)

        def newton(_: int, w: Array) -> Array:  # from the right of a convex function
            w = w - (a * w**4 - size * w + 1) / jnp.where(
                a * w**3 > 0, 4 * a * w**3 - size, jnp.inf
            )
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

    def located(self) -> Law:
        """The law of s (mu + Y): the location is inside the scale."""
        return ScaleMixture(Exponential(), Normal().located())


class _Start(NamedTuple):
    """A scale s0 that is right of the mode of g, and what depends on it."""

    s0: Array
    inverse: Array  # 1 / s0
    kappa: Array  # a s0^2
    root: Array  # sqrt(r0), r0 being r at s0


def _near_mode(start: _Start, lift: Array) -> tuple[Array, Array]:
    """A point near the mode of g, in units of s0, and g there less g(s0).

    ``lift`` is (b s0 r0)^2 / 2.
    """
    s0 = start.s0
    r0 = once(start.root * start.root)
    rest = once(start.kappa * r0)  # 1 - r0

    def rise(m: Array) -> Array:
        """g(s0 m) - g(s0)."""
        e1, square = once(m - 1), once(m * m)
        gain = once(1 / (r0 + rest * square))
        return once(e1 * (lift * gain * (e1 + 2) - s0) + 0.5 * jnp.log(gain * square))

    # a step of Newton's method; any point will do as a reference, a good one gives a tight window
    slope = once(r0 - s0 + 2 * lift)
    curvature = s0 + 2 * rest * r0 - 4 * lift * (2 * r0 - 1)
    move = slope * (1 / jnp.maximum(curvature, jnp.abs(slope) + 0.5 * s0))
    m = once(jnp.clip(1 + move, 0.1, 1.0))
    small = once(jnp.minimum(start.inverse, 1.0))
    high, low = rise(m), rise(small)
    return once(jnp.where(low > high, small, m)), once(jnp.maximum(high, low))


def _edges(start: _Start, b: Array, q: Array, fall: Array) -> tuple[Array, Array]:
    """Return log(s / s0) left and right of which g is below its level g(s0) - ``fall``."""
    s0, inverse, kappa, root0 = start
    beyond = once(jnp.maximum(fall, 0.0))
    drop = once(beyond * inverse)
    spread = once(jnp.sqrt(2 * drop))
    right = once(jnp.log(1 + drop + spread))
    r0 = once(root0 * root0)
    below = once(s0 + q * r0 + fall)  # log(s0 sqrt(r0)) + q - level
    # (i) log(s sqrt(r)) <= log s and q (1 - r) <= min(q, b^2 s^2 / 2); known is s / s0
    known = root0 * jnp.exp(jnp.clip(q - below - jnp.minimum(q, 0.5), -80.0, 80.0))
    known = once(jnp.minimum(known, 1 / jnp.maximum(jnp.abs(b * s0), 1e-15)))
    # (ii) right of what is known already, g <= log(s0 sqrt(r0)) - s + q (1 - r): solve for r
    for _ in range(2):
        room = once(below - s0 * known)
        gained = once(q - room)
        bound = once(gained * jax.lax.rsqrt(jnp.maximum(gained * kappa * room, 1e-30)))
        better = jnp.maximum(known, jnp.minimum(bound, 1.0))
        known = once(jnp.where((gained > 0) & (room > 0), better, known))
    # (iii) close to the mode of a sharp peak: with w = (s0 / s)^2 - 1,
    # g <= g0 - c w / (1 + kappa + w) + s0 log(1 + w) / 2. It is enough that this is below the level
    # at both ends, w = sharp and s = known s0.
    c, sharp = once(q * r0 * kappa), once(2.6 * drop + 1.84 * spread + 1e-6)
    square, log_sharp = once(known * known), once(jnp.log(1 + sharp))
    log_known = once(jnp.log(known))
    proved = (
        (square * (1 + sharp) < 1)
        & (c * sharp > (0.5 * s0 * log_sharp + beyond) * (1 + kappa + sharp))
        & (c * (1 - square) > (beyond - s0 * log_known) * (1 + kappa * square))
    )
    return jnp.where(proved, -0.5 * log_sharp, log_known), right


_BEND = 0.1  # how far left of the centre the EG grid turns coarse: smaller is farther


def _bent_grid(a: Array, b: Array, centre: Array, top: Array, left: Array, right: Array) -> Grid:
    """The grid from log(s / centre) = ``left`` to ``right``, coarse where the density falls slowly.

    The density of log s falls slowly to the left, like s. So the grid is even in v, with y = e^v
    and s / centre = (1 + c) y^4 / (c + y^3), c being ``bend``: like y on the right, and like y^4 on
    the left.
    """
    root_c = once(jax.lax.rsqrt(1 + a * centre * centre))
    r_c = once(root_c * root_c)
    rest = once(a * centre * centre * r_c)  # 1 - r_c
    lift = once(0.5 * jnp.square(b * (centre * r_c)))
    # the bend is where the slow fall begins: left of the centre, and of 1 / sqrt(a), where r turns
    bend = once(jnp.maximum(_BEND * r_c * root_c, 1e-24))
    # log(s / centre) is concave in v: it is below its tangent at 0 and below both of its asymptotes
    tangent = left * (1 + bend) * (1 / (1 + 4 * bend))
    asymptote = 0.25 * (left - _BEND + jnp.log(bend))
    low = once(jnp.maximum(jnp.maximum(tangent, asymptote), left - _BEND))
    size = grid_size(centre.dtype)
    step = once((right - low) * (1 / size))
    # with z = (1 + c) y and C = c (1 + c)^3, s / centre = z^4 / (C + z^3), and its slope in v is
    # itself times 1 + 3 C / (C + z^3)
    most = once(1 + bend)
    turn = once(bend * (most * most * most))
    turn3 = once(3 * turn)

    def weight(z: Array) -> Array:
        """e^g ds / dv relative to the centre.

        It is exact even where b^2 / a is enormous, since lift is not.
        """
        square = z * z
        inverse = once(1 / (turn + square * z))
        scale = once(square * square * inverse)  # s / centre
        e1 = scale - 1
        e2 = e1 * (scale + 1)  # (s / centre)^2 - 1
        root = once(jax.lax.rsqrt(1 + rest * e2))  # sqrt(r / r_c)
        slope = scale * (1 + turn3 * inverse)
        return once(jnp.exp(lift * (root * root) * e2 - centre * e1) * root * slope)

    def at(k: Array) -> Array:
        return once(most * jnp.exp(low + k * step))

    def place(k: Array) -> Array:
        z = at(k)
        cube = once(z * z * z)
        return cube * z * (1 / (turn + cube)) - 1

    def walk(shift: Array) -> list[Array]:
        z, growth = at(shift), once(jnp.expm1(step))
        result = []
        for _ in range(size):
            result.append(weight(z))
            z = z + z * growth
        return result

    return Grid(size, step, lambda k: weight(at(k)), place, centre, top, walk)


_TABLE = (-30.0, 12.0, 4096)  # of log |t|: the first, the last, how many


@functools.cache
def _mean_scale_table() -> np.ndarray:
    """E[s | s Y = t] = t psi(t) at equal steps of log |t| from -30 to 12."""
    log_t = np.linspace(*_TABLE)[:, None]
    low, high = np.minimum(log_t - 2.2, 2 * log_t / 3 - 1), np.maximum(2 * log_t / 3, 0) + 4.0
    u = low + (high - low) * np.arange(1500) / 1500
    exponent = -np.exp(u) - 0.5 * np.exp(2 * (log_t - u))
    weight = np.exp(exponent - exponent.max(1, keepdims=True))
    return np.asarray((weight * np.exp(u)).sum(1) / weight.sum(1))


def _mean_scale(t: Array) -> Array:
    """E[s | s Y = t], interpolated in its table."""
    low, high, size = _TABLE
    values = jnp.asarray(_mean_scale_table(), t.dtype)
    position = (jnp.log(jnp.abs(t) + 1e-13) - low) * ((size - 1) / (high - low))
    index = jnp.clip(position, 0, size - 2).astype(jnp.int32)
    fraction = position - index
    return values[index] * (1 - fraction) + values[index + 1] * fraction
