"""Workarounds for the habits of XLA, each with a name and a reason."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.device import platform

COLUMNS = 8
"""The minimum number of columns in a matrix product.

With fewer, the last bits of XLA:CPU's product depend on the number of threads."""


def always(index: jax.Array) -> jax.Array:
    """Return a condition that is always true, but that XLA cannot know to be true.

    ``lax.cond(always(i), work, skip, ...)`` puts ``work`` into a branch of its own, for two
    reasons. XLA:CPU hands the many small steps of a loop's body to several threads, which costs
    small problems up to a third of their time, but it leaves those of a branch together. And it
    runs a kernel that ends in an update in place on one thread only: a branch keeps a draw apart
    from the update that uses it, so that the draw is split over the threads.

    On a GPU, where branches take time, XLA sees that the condition is true.
    """
    return index >= 0 if platform() == "cpu" else jnp.ones((), bool)


def once(x: jax.Array) -> jax.Array:
    """Return x (no less than the least finite number) so that XLA:CPU computes it only once.

    It goes through an operation that has one array operand. XLA:CPU never fuses a many-operand
    operation that meets a reused exp, log or division further on: it cuts the kernel there instead,
    and writes the value out or recomputes it. A draw in which whatever is used twice goes through
    here is one vectorised kernel, several times as fast.

    On a GPU, where it would be one operation in ten, x is returned as it is.
    """
    if platform() == "gpu":
        return x
    return jnp.maximum(x, np.finfo(x.dtype).min)


def ratio(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return x / y, for a result that is used more than once (see :func:`once`)."""
    return once(x * (1 / y))


PRODUCT: Any = lax.DotAlgorithmPreset.TF32_TF32_F32_X3
"""How GPUs sum products of single precision over rows: to single precision, too.

Each number is split into two of 10 bits, whose products the tensor cores do."""


def product(x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the matrix product of two arrays, a sum over many rows."""
    if platform() != "gpu" or x.dtype != jnp.float32 or y.dtype != jnp.float32:
        return x @ y
    return jnp.matmul(x, y, precision=PRODUCT)


def apart(x: jax.Array) -> jax.Array:
    """Return x for one of several products with it, which XLA shall not merge on GPUs.

    It would first copy their other factors, such as all rows of x, into one array.
    """
    return lax.optimization_barrier(x) if platform() == "gpu" else x


def padded_rows(n: int) -> int:
    """Return the number of rows to compile for: n and a few per cent more.

    Data of nearly the same length, such as folds, then share what is compiled. It is a multiple of
    32, since XLA:CPU splits odd lengths over threads into loops that are not vectorised.
    """
    step = max(32, 1 << max(n.bit_length() - 5, 0))
    return -(-n // step) * step


def pad_columns(matrix: jax.Array, axis: int = -1) -> jax.Array:
    """Pad an axis of a matrix with zeros to a multiple of ``COLUMNS``, on the CPU."""
    if platform() != "cpu":
        return matrix
    widths = [(0, 0)] * matrix.ndim
    widths[axis] = (0, -matrix.shape[axis] % COLUMNS)
    return jnp.pad(matrix, widths)


def repeat_rows(vector: jax.Array) -> jax.Array:
    """Return a matrix of ``COLUMNS`` rows, all equal to the vector.

    Products with it, unlike those with the vector, do not depend on the number of threads.
    """
    return jnp.tile(vector, (COLUMNS, 1))


def empty_for_device(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return an uninitialised array that XLA:CPU takes as it is, without a copy.

    That needs a start on a boundary of 64 bytes, which NumPy does not promise.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)
