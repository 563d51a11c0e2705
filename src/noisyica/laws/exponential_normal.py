"""The paper's EG law, an exponential scale times a normal variable.

Beside the law itself: the grid over its scale, and the table of its score.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from noisyica._jax.arrays import floating
from noisyica._jax.special import LOG_2PI
from noisyica._jax.xla import once, ratio
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
        far = jnp.exp(jnp.log((2 * q + 1) / jnp.maximum(a, tiny)) / 3)
        s0 = once(jnp.minimum(far, 1 + 0.5 * q))
        r0 = once(1 / (1 + a * s0 * s0))
        centre, rise = _near_mode(a, b, s0, r0)
        fall = once(cut_depth(b.dtype) - rise)  # from g(s0) to the level where the window ends
        drop = ratio(jnp.maximum(fall, 0.0), s0)
        right = jnp.log(s0 * (1 / centre) * (1 + drop + jnp.sqrt(2 * drop)))
        left = jnp.log(_left_edge(a, b, q, s0, r0, fall) * (1 / centre))
        width = once(s0 * jnp.sqrt(r0))
        top = once(jnp.log(width) - s0 + 0.5 * jnp.square(b * width) + rise)
        return _bent_grid(a, b, centre, top, left, right)

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
            return s * Normal().draw(u[2:], once(a * s * s), b * s)

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


def _near_mode(a: Array, b: Array, s0: Array, r0: Array) -> tuple[Array, Array]:
    """A point near the mode of g, and g there less g(s0)."""
    lift0 = once(0.5 * jnp.square(b * (s0 * r0)))

    def rise(s: Array) -> Array:
        """g(s) - g(s0)."""
        e1, square = once((s - s0) * (1 / s0)), jnp.square(ratio(s, s0))
        gain = once(1 / (r0 * (1 + a * s0 * s0 * square)))
        return once(e1 * (lift0 * gain * (e1 + 2) - s0) + 0.5 * jnp.log(gain * square))

    centre = s0
    # towards the mode; any point will do as a reference, a good one gives a tight window
    for _ in range(2):
        r = 1 / (1 + a * centre * centre)
        pull = once(jnp.square(b * (centre * r)))
        slope = once(r - centre + pull)
        curvature = centre + 2 * a * centre * centre * r * r - 2 * pull * (2 * r - 1)
        move = slope * (1 / jnp.maximum(curvature, jnp.abs(slope) + 0.5 * centre))
        centre = once(jnp.clip(centre * (1 + move), 0.1 * s0, s0))
    small = jnp.minimum(1.0, s0)
    high, low = rise(centre), rise(small)
    return once(jnp.where(low > high, small, centre)), jnp.maximum(high, low)


def _left_edge(a: Array, b: Array, q: Array, s0: Array, r0: Array, fall: Array) -> Array:
    """An s to the left of which g is below its level g(s0) - ``fall``."""
    log_width = 0.5 * jnp.log(s0 * s0 * r0)
    below = s0 + q * r0 + fall  # log_width + q - level
    # (i) log(s sqrt(r)) <= log s and q (1 - r) <= min(q, b^2 s^2 / 2)
    edge = jnp.minimum(
        jnp.exp(jnp.minimum(log_width + (q - below) - 0.5, 80.0)),
        1 / jnp.maximum(jnp.abs(b), 1e-15),
    )
    s_low = once(jnp.maximum(jnp.exp(log_width - below), edge))
    # (ii) right of any s_low already known, g <= log_width - s_low + q (1 - r): solve for r, and
    # improve s_low
    for _ in range(2):
        room = once(below - s_low)
        gained = once(q - room)
        bound = jnp.sqrt(jnp.maximum(gained, 0.0) * (1 / jnp.maximum(a * room, 1e-30)))
        s_low = once(
            jnp.where((gained > 0) & (room > 0), jnp.maximum(s_low, jnp.minimum(bound, s0)), s_low)
        )
    # (iii) close to the mode of a sharp peak: with w = (s0 / s)^2 - 1,
    # g <= g0 - c w / (1 + kappa + w) + s0 log(1 + w) / 2
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


_BEND = 0.1  # how far left of the centre the EG grid turns coarse: smaller is farther


def _bent_grid(a: Array, b: Array, centre: Array, top: Array, left: Array, right: Array) -> Grid:
    """The grid from log(s / centre) = ``left`` to ``right``, coarse where the density falls slowly.

    The density of log s falls slowly to the left, like s. So the grid is even in v, with y = e^v
    and s / centre = (1 + c) y^4 / (c + y^3), c being ``bend``: like y on the right, and like y^4 on
    the left.
    """
    r_c = 1 / (1 + a * centre * centre)
    rest = once(a * centre * centre * r_c)  # 1 - r_c
    lift = once(0.5 * jnp.square(b * (centre * r_c)))
    # the bend is where the slow fall begins: left of the centre, and of 1 / sqrt(a), where r turns
    bend = jnp.maximum(_BEND * r_c * jnp.sqrt(r_c), 1e-24)
    # log(s / centre) is concave in v: it is below its tangent at 0 and below both of its asymptotes
    tangent, asymptote = (
        left * (1 + bend) * (1 / (1 + 4 * bend)),
        0.25 * (left - _BEND + jnp.log(bend)),
    )
    low = once(jnp.maximum(jnp.maximum(tangent, asymptote), left - _BEND))
    size = grid_size(centre.dtype)
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

    return Grid(size, step, lambda k: weight(at(k)), lambda k: place(at(k))[0], centre, top, walk)


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
