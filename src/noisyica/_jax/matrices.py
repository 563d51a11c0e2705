"""Small positive definite matrices: one for each row of data, (..., q, q, n), or just one.

LAPACK is not used for those of rows. On XLA:CPU two batched calls of LAPACK at the same time can
wait for ever, each for threads of the pool that the other one holds.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

Array = jax.Array


def inverse(P: Array) -> tuple[Array, Array]:
    """Return the inverses of matrices and the logs of their determinants, (..., n).

    By Gauss-Jordan elimination in place, which needs no pivoting for positive definite matrices.
    """
    q = P.shape[-2]

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        M, log_determinant = carry
        row, column = M[..., k, :, :], M[..., :, k, :]
        pivot = row[..., k, :]
        here = (jnp.arange(q) == k)[:, None]
        scaled = jnp.where(here, 1.0, row) / pivot[..., None, :]
        outer = jnp.where(here, 0.0, column)[..., None, :] * scaled[..., None, :, :]
        cleared = jnp.where(here, 0.0, M)  # its column k is replaced, and its row k
        M = jnp.where(here[:, None], scaled[..., None, :, :], cleared - outer)
        return M, log_determinant + jnp.log(pivot)

    return lax.fori_loop(0, q, eliminate, (P, jnp.zeros_like(P[..., 0, 0, :])))


def triangular(P: Array, h: Array) -> tuple[Array, Array, Array]:
    """Return B, D and z of P = B D B' and B z = h, for h and D of shape (..., q, n).

    B is upper triangular with ones on its diagonal.
    """
    q = P.shape[-2]

    def eliminate(i: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        M, B, D, z = carry
        j = q - 1 - i
        pivot = M[..., j, j, :]
        above = (jnp.arange(q) < j)[:, None]
        column = jnp.where(above, M[..., :, j, :] / pivot[..., None, :], 0.0)
        M = M - pivot[..., None, None, :] * column[..., None, :] * column[..., None, :, :]
        B = B.at[..., :, j, :].add(column)
        return M, B, D.at[..., j, :].set(pivot), z - column * z[..., j, :][..., None, :]

    ones = jnp.broadcast_to(jnp.eye(q, dtype=P.dtype)[:, :, None], P.shape)
    # behind a barrier: where q = 1 XLA would compute B while it compiles, which takes seconds
    begin = (P, lax.optimization_barrier(ones), jnp.zeros_like(h), h)
    _, B, D, z = lax.fori_loop(0, q, eliminate, begin)
    return B, D, z


def inverse_root(P: Array) -> Array:
    """Return F of F'F = P^-1, lower triangular, for one matrix P (q, q); NaN if it has no root."""
    L = lax.linalg.cholesky(P, symmetrize_input=False)
    return lax.linalg.triangular_solve(
        L, jnp.eye(len(P), dtype=P.dtype), left_side=True, lower=True
    )
