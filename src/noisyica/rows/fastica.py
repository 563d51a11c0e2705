"""FastICA: the rotation of white rows after which their columns are as far from normal as can be.

It is the symmetric algorithm with the contrast log cosh (Hyvarinen, Fast and robust fixed-point
algorithms for independent component analysis, 1999). With few rows and columns scikit-learn's takes
less time than compiling would. With many, the same steps are compiled, for all cores or the GPU.
"""

from __future__ import annotations

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from noisyica._jax.arrays import to_numpy
from noisyica._jax.precision import double_precision

Array = jax.Array

MOST_UNCOMPILED = 5e7
"""The number of multiplications, per step and product, up to which nothing is compiled."""
TOLERANCE = 1e-4
"""How far the cosines of the last two steps' directions are from 1, at most, at the end."""


def rotation(white: np.ndarray, rng: np.random.RandomState, max_iter: int) -> np.ndarray:
    """Return the orthogonal matrix (p, p) whose columns are FastICA's directions of white rows."""
    n, p = white.shape
    if n * p * p <= MOST_UNCOMPILED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not have converged
            ica = FastICA(whiten=False, max_iter=max_iter, tol=TOLERANCE, random_state=rng)
            return np.asarray(ica.fit(white).mixing_)
    left, _, right = np.linalg.svd(rng.normal(size=(p, p)))
    with double_precision():
        rows = white.T.astype(np.float32)
        return np.asarray(to_numpy(_directions(rows, left @ right, max_iter))).T


@functools.partial(jax.jit, static_argnames="max_iter")
def _directions(white: Array, first: Array, max_iter: int) -> Array:
    """Return the directions, the rows of an orthogonal matrix, from white rows (p, n)."""
    n = white.shape[1]

    def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, W, _ = carry
        y = jnp.tanh(W.astype(white.dtype) @ white)
        slopes = 1 - jnp.square(y).mean(1, dtype=float)
        new = _nearest_orthogonal((y @ white.T).astype(float) / n - slopes[:, None] * W)
        return t + 1, new, jnp.abs(jnp.abs((new * W).sum(1)) - 1).max()

    def goes_on(carry: tuple[Array, Array, Array]) -> Array:
        return (carry[0] < max_iter) & (carry[2] >= TOLERANCE)

    begun = (jnp.zeros((), int), jnp.asarray(first, float), jnp.asarray(jnp.inf, float))
    return lax.while_loop(goes_on, step, begun)[1]


def _nearest_orthogonal(M: Array) -> Array:
    """Return the orthogonal factor of the polar decomposition of a matrix.

    By Newton-Schulz steps, which are products only: a GPU takes milliseconds for eigenvectors. Each
    step takes a small singular value 1.5 times closer to 1, and those near 1 there.
    """
    bound = jnp.sqrt(jnp.abs(M).sum(0).max() * jnp.abs(M).sum(1).max())  # of the singular values

    def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, X, _ = carry
        square = X @ X.T
        off = jnp.abs(square - jnp.eye(len(M))).max()
        return t + 1, 1.5 * X - 0.5 * square @ X, off

    def goes_on(carry: tuple[Array, Array, Array]) -> Array:
        return (carry[0] < 100) & (carry[2] > 1e-10)

    return lax.while_loop(goes_on, step, (jnp.zeros((), int), M / bound, jnp.asarray(1.0)))[1]
