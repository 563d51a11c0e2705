"""Precision and randomness: the two things about arrays on which every other module agrees.

Double precision is switched on inside the library's own calls, never globally, so that importing noisyica changes
nothing for the other users of JAX in a process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

P = ParamSpec("P")
R = TypeVar("R")
Tree = TypeVar("Tree")


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run ``function`` with JAX's 64-bit types available (arrays keep the dtype that they are given)."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def cast(tree: Tree, dtype: Any) -> Tree:
    """Return ``tree`` (a law, a prior, a tuple of arrays) with all its leaves as arrays of ``dtype``."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)


def to_numpy(tree: Tree) -> Tree:
    """Return ``tree`` with all its leaves as float64 NumPy arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def floating(*values: ArrayLike) -> tuple[jax.Array, ...]:
    """Return the values as floating arrays of one dtype (that of the arrays among them)."""
    dtype = jnp.result_type(*values)
    if not jnp.issubdtype(dtype, jnp.floating):
        dtype = jnp.result_type(float)
    return tuple(jnp.asarray(value, dtype) for value in values)


def uniforms(key: jax.Array, count: int, shape: tuple[int, ...], dtype: Any) -> tuple[jax.Array, ...]:
    """Draw ``count`` independent arrays of uniforms on the open interval (0, 1).

    They come as separate arrays, not as one stacked array: XLA vectorises a kernel that reads whole vectors about
    five times better than one that reads slices. ``key`` may be an array of keys, one for each element of the last axis
    (the rows): each row's numbers then depend on its own key alone.
    """
    if count == 0:
        return ()
    word = _WORD[jnp.dtype(dtype)]
    if key.ndim:  # one key for each element of the last axis
        bits = jax.vmap(lambda k: jax.random.bits(k, (count, *shape[:-1]), word), out_axes=-1)(key)
    else:
        bits = jax.random.bits(key, (count, *shape), word)
    return tuple(open_unit(bits[i], dtype) for i in range(count))


def split(key: jax.Array, count: int) -> list[jax.Array]:
    """``count`` new keys, or arrays of keys where ``key`` is an array of keys (see :func:`uniforms`)."""
    if key.ndim:
        new = jax.vmap(lambda k: jax.random.split(k, count), out_axes=1)(key)
    else:
        new = jax.random.split(key, count)
    return [new[i] for i in range(count)]


_WORD = {jnp.dtype("float32"): jnp.uint32, jnp.dtype("float64"): jnp.uint64}


def open_unit(bits: jax.Array, dtype: Any) -> jax.Array:
    """Map random words to (0, 1), ends excluded, keeping the full resolution of the word near 0.

    Kernels that use one uniform twice (first to choose, then rescaled) put the rarer, continuous case near 0.
    """
    width = 32 if jnp.dtype(dtype) == jnp.float32 else 64
    top = 1.0 - float(np.finfo(dtype).epsneg)
    return jnp.minimum((bits.astype(dtype) + 0.5) * (2.0**-width), top)
