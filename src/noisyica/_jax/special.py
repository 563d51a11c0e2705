r"""The half-line channel: everything about exp(-a t^2 / 2 + c t) on t > 0.

Laplace, exponential and ternary laws all reduce to the integral

    I(a, c) = int_0^inf exp(-a t^2 / 2 + c t) dt,        a >= 0 (c < 0 where a = 0),

which is a normal cdf. The usual formula overflows, loses all digits for c / sqrt(a) << 0 and
divides by zero at a = 0. Here, for c <= 0, with tau = q sqrt(a) / (q sqrt(a) - c) in [0, 1],

    log I = P(tau) - log(q sqrt(a) - c),

where P is smooth with P(0) = 0: a polynomial to machine precision. Its derivatives in c give the
mean and the variance of the law with no cancellation at all, down to a = 0 (an exponential law).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import lax
from numpy.polynomial import Chebyshev, Polynomial, chebyshev, polynomial

from noisyica._jax.xla import once, ratio

Q = 3.5
"""The constant q, for which the polynomial is most accurate (scanned from 1.5 to 4.5)."""
_LOG_Q = float(np.log(Q))
LOG_2 = float(np.log(2.0))
LOG_2PI = float(np.log(2 * np.pi))
_DEGREE = {jnp.dtype("float32"): 11, jnp.dtype("float64"): 23}
"""The degree of the polynomial P, for machine precision."""
_TAIL = -4.0
"""The value of c / sqrt(a) below which draws solve for the tail, not invert the normal cdf."""


@functools.cache
def _coefficients(dtype: jnp.dtype, derivative: int = 0) -> tuple[float, ...]:
    """Return coefficients of P or a derivative in tau, in powers of y = 2 tau - 1, lowest first."""

    def log_scaled_mills(y: Any) -> Any:
        tau = (y + 1) / 2
        x = Q * (1 - tau) / np.maximum(tau, 1e-300)
        mills = np.sqrt(np.pi / 2) * scipy.special.erfcx(x / np.sqrt(2))
        return np.where(tau < 1e-14, 0.0, np.log(mills * (Q + x)))

    series = chebyshev.chebinterpolate(log_scaled_mills, _DEGREE[dtype] + 2 * derivative)
    power = polynomial.polyder(chebyshev.cheb2poly(series), derivative) * 2.0**derivative
    return tuple(float(c) for c in power)


def _polynomial(tau: jax.Array, derivative: int = 0) -> jax.Array:
    """Return P(tau), or a derivative in tau, by Horner's rule."""
    y = 2 * tau - 1
    coefficients = _coefficients(jnp.dtype(tau.dtype), derivative)
    value = jnp.full_like(y, coefficients[-1])
    for c in coefficients[-2::-1]:
        value = value * y + c
    return value


def _divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return x / y where y > 0, else 0.

    So the values that a caller's ``where`` will not use stay finite.
    """
    return once(jnp.where(y > 0, x * (1 / jnp.where(y > 0, y, 1.0)), 0.0))


def _below(a: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return what all answers share: sqrt(a), q sqrt(a) + |c|, and tau.

    They are written alike everywhere, so that a kernel with several answers computes them once.
    """
    root = jnp.sqrt(a)
    scale = once(Q * root + jnp.abs(c))
    return root, scale, _divide(Q * root, scale)


def _beyond(z: jax.Array, tau: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return phi(z), the normal density, and P(normal > |z|), where tau = q / (q + |z|).

    P(normal > |z|) = phi(z) sqrt(a) I(a, -|c|), and sqrt(a) / (q sqrt(a) + |c|) = tau / q.
    """
    density = once(jnp.exp(-0.5 * (z * z + LOG_2PI)))
    return density, once(density * tau * (1 / Q) * jnp.exp(_polynomial(tau)))


def log_half_line(a: jax.Array, c: jax.Array) -> jax.Array:
    """Return log I(a, c), which is infinite where the integral diverges (a = 0 and c >= 0)."""
    root, scale, tau = _below(a, c)
    z = _divide(c, root)
    log_lower = _polynomial(tau) - jnp.log(scale)  # log I(a, -|c|)
    # I(a, c) = sqrt(2 pi / a) exp(z^2 / 2) P(normal < z)
    log_whole = once(0.5 * (z * z + LOG_2PI) - jnp.log(root))
    log_upper = log_whole + jnp.log(1 - jnp.minimum(_beyond(z, tau)[1], 0.5))
    return once(jnp.where(c > 0, log_upper, log_lower))


def half_line_factors(a: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return e and f for which I(a, c) = f exp(e), f being about as large as one of the t.

    Whoever compares integrals takes the largest e off all of them, and needs no logs: here are
    four slow operations (roots, divisions, exponentials), where log I takes eight.
    """
    width = lax.rsqrt(jnp.maximum(a, 1e-30))
    root = a * width
    scale = once(Q * root + jnp.abs(c))
    inverse = once(1 / jnp.maximum(scale, 1e-30))
    tau = once(Q * root * inverse)
    power, z = once(_polynomial(tau)), c * width
    half = once(0.5 * z * z)
    # P(normal > |z|) (see _beyond), and I(a, c) = sqrt(2 pi / a) exp(z^2 / 2) P(normal < z)
    beyond = tau * jnp.exp(power - half - (0.5 * LOG_2PI + _LOG_Q))
    upper = np.sqrt(2 * np.pi).astype(a.dtype) * width * (1 - jnp.minimum(beyond, 0.5))
    positive = c > 0
    return once(jnp.where(positive, half, power)), once(jnp.where(positive, upper, inverse))


def half_line_moments(a: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the mean and variance of the density proportional to exp(-a t^2 / 2 + c t), t > 0."""
    root, scale, tau = _below(a, c)
    inverse = _divide(jnp.ones_like(scale), scale)
    first = tau * _polynomial(tau, 1)
    second = tau * tau * _polynomial(tau, 2)
    mean_lower, variance_lower = (1 + first) * inverse, (1 + 2 * first + second) * inverse * inverse
    z, width = _divide(c, root), _divide(jnp.ones_like(root), root)
    density, beyond = _beyond(z, tau)
    hazard = once(density / (1 - beyond))  # phi(z) / P(normal < z), for z > 0
    mean_upper = (z + hazard) * width
    variance_upper = (1 - hazard * (z + hazard)) * width * width
    return jnp.where(c > 0, mean_upper, mean_lower), jnp.where(
        c > 0, variance_upper, variance_lower
    )


def half_line_draw(u: jax.Array, a: jax.Array, c: jax.Array) -> jax.Array:
    """Return the draw whose survival function is ``u``: P(t > draw) = u."""
    root, scale, tau = _below(a, c)
    z = _divide(c, root)
    inside = once(c - _TAIL * root) > 0
    beyond = _beyond(z, tau)[1]
    below = once(jnp.where(inside, jnp.where(c > 0, 1 - beyond, beyond), 0.5))  # P(normal < z)
    bulk = _divide(jnp.maximum(z - normal_quantile(once(u * below)), 0.0), root)
    # Far in the tail, solve -log survival(t) = -log u by Newton's method, from the root of the
    # equation without its slow term.
    size, target = jnp.abs(c), -jnp.log(u)
    t = ratio(2 * target, size + jnp.sqrt(size * size + 2 * a * target))
    start = _polynomial(tau)
    for _ in range(2):
        slope = 1 / (scale + a * t)
        end = once(_polynomial(once(Q * root * slope)))
        excess = (
            size * t + 0.5 * a * t * t + start - end + jnp.log(1 + a * t * (1 / scale)) - target
        )
        t = once(t - excess * jnp.exp(end) * slope)
    return jnp.where(inside, bulk, t)


_BEND = 2.5
"""The constant for which the polynomial of the quantile is most accurate (scanned from -1 to 6)."""
_NEAREST, _FARTHEST = float(np.sqrt(2 * np.log(2.0))), float(np.sqrt(-2 * np.log(1e-38)))
"""The range of r = sqrt(-2 log P(normal > z)) in which the quantile is a polynomial."""


@functools.cache
def _quantile_coefficients(degree: int = 9) -> tuple[float, ...]:
    """Return coefficients, lowest first, of r - z in powers of tau = (r - r0) / (r + bend).

    Here z > 0 and P(normal > z) = exp(-r^2 / 2).
    """
    last = (_FARTHEST - _NEAREST) / (_FARTHEST + _BEND)

    def excess(y: Any) -> Any:
        tau = (y + 1) / 2 * last
        r = (_NEAREST + _BEND * tau) / (1 - tau)
        return r + scipy.special.ndtri_exp(-r * r / 2)

    series = Chebyshev(chebyshev.chebinterpolate(excess, degree), domain=[0, last])
    return tuple(float(c) for c in series.convert(kind=Polynomial).coef)


def normal_quantile(u: jax.Array) -> jax.Array:
    """Return the standard normal quantile of u.

    Unlike erf_inv(2 u - 1) it is finite, and exact, for the smallest u. In single precision it is a
    polynomial that is good to 1e-7, and takes a fifth of the time of ``ndtri``.
    """
    if u.dtype != jnp.float32:
        return jax.scipy.special.ndtri(u)
    tail = jnp.minimum(u, 1 - u)
    r = jnp.sqrt(-2 * jnp.log(jnp.maximum(tail, 1e-38)))
    tau = ratio(r - _NEAREST, r + _BEND)
    *lower, last = _quantile_coefficients()
    value = jnp.full_like(u, last)
    for c in reversed(lower):
        value = value * tau + c
    z = once(r - value)
    return jnp.where(u < 0.5, -z, z)


def eliminate(W: jax.Array) -> jax.Array:
    """Return L^-1 W, where the first p columns of W (p, q, ...) are L L'.

    Left of the diagonal of those columns, there is rounding error instead of zeros. This is not
    done by LAPACK: on XLA:CPU two batched calls at once can wait for ever, each for threads of the
    pool that the other one holds.
    """
    p = len(W)

    def step(W: jax.Array, j: jax.Array) -> tuple[jax.Array, jax.Array]:
        row = W[j] / jnp.sqrt(W[j, j])
        return W - row[:p, None] * row, row

    return lax.scan(step, W, jnp.arange(p))[1]
