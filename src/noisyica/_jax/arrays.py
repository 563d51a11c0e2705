"""Precision, compiling and randomness: the things about arrays on which every other module agrees.

Double precision is switched on inside the library's own calls, never globally, so that importing noisyica changes
nothing for the other users of JAX in a process.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

P = ParamSpec("P")
R = TypeVar("R")
Tree = TypeVar("Tree")


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run ``function`` with JAX's 64-bit types available (arrays keep the dtype that they are given), and products as exact as their type.

    On GPUs, products of float32 have 10 bits of precision by default (TF32), too few for residuals that are small beside the data.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True), jax.default_matmul_precision("float32"):
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


class Compiled:
    """A function compiled by ``jax.jit`` in one of two ways, told at each call.

    XLA:CPU's fusion emitters take half of the time to compile. They keep shared terms from being computed again and again in long
    kernels, such as draws on a grid; kernels without many of those run as fast without them. ``quick`` leaves them out.
    """

    def __init__(self, function: Callable[..., Any], static_argnames: tuple[str, ...] = ()) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.static_argnames = static_argnames

    @functools.cached_property
    def _full(self) -> Callable[..., Any]:
        return jax.jit(
            self.function, static_argnames=self.static_argnames, compiler_options=_accepted(_WIDE)
        )

    @functools.cached_property
    def _quick(self) -> Callable[..., Any]:
        return jax.jit(
            self.function,
            static_argnames=self.static_argnames,
            compiler_options=_accepted(_WIDE, _SHORT),
        )

    def __call__(self, *args: Any, quick: bool) -> Any:
        return (self._quick if quick else self._full)(*args)


_WIDE = ("xla_cpu_prefer_vector_width", 512)
"""Draws are up to a quarter faster with vectors of 512 bits, where there are such; XLA's own choice is 256."""

_SHORT = ("xla_cpu_use_fusion_emitters", False)


@functools.cache
def _accepted(*options: tuple[str, Any]) -> dict[str, Any]:
    """Those of the compiler's options that it knows: they come and go with its versions."""
    return {
        name: value
        for name, value in options
        if jax.default_backend() == "cpu" and _knows(name, value)
    }


@functools.cache
def _knows(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options={name: value})()
    except Exception:  # jaxlib's own error type has moved from one version to the next
        return False
    return True


def uniforms(
    key: jax.Array, count: int, shape: tuple[int, ...], dtype: Any
) -> tuple[jax.Array, ...]:
    """Draw ``count`` independent arrays of uniforms on the open interval (0, 1).

    They come as separate arrays, not as one stacked array: XLA vectorises a kernel that reads whole vectors about
    five times better than one that reads slices. ``key`` may be an array of keys, one for each element of the last axis
    (the rows): each row's numbers then depend on its own key alone.
    """
    if count == 0:
        return ()
    *lead, n = shape or (1,)
    width = math.prod(lead)
    words = count * width
    double = jnp.dtype(dtype) == jnp.float64
    rows = words if double else -(-words // 2)  # a hash makes 64 bits
    position = lax.broadcasted_iota(jnp.uint32, (rows, n), 0)
    row = jnp.zeros((), jnp.uint32) if key.ndim else lax.broadcasted_iota(jnp.uint32, (rows, n), 1)
    keys = jax.random.key_data(key)
    high, low = threefry(keys[..., 0], keys[..., 1], position, row)
    if double:
        bits = (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)
    else:
        bits = jnp.concatenate([high, low])
    return tuple(
        open_unit(bits[i * width : (i + 1) * width].reshape(shape), dtype) for i in range(count)
    )


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(
    key0: jax.Array, key1: jax.Array, x0: jax.Array, x1: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The Threefry-2x32 hash with 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011).

    It is what ``jax.random`` uses, but there as a loop over whole arrays, which on the CPU takes six times as long as one kernel.
    """
    keys = (key0, key1, key0 ^ key1 ^ jnp.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = ((x1 << jnp.uint32(r)) | (x1 >> jnp.uint32(32 - r))) ^ x0
        x0, x1 = x0 + keys[(i + 1) % 3], x1 + keys[(i + 2) % 3] + jnp.uint32(i + 1)
    return x0, x1


def split(key: jax.Array, count: int) -> list[jax.Array]:
    """``count`` new keys, or arrays of keys where ``key`` is an array of keys (see :func:`uniforms`)."""
    if key.ndim:
        new = jax.vmap(lambda k: jax.random.split(k, count), out_axes=1)(key)
    else:
        new = jax.random.split(key, count)
    return [new[i] for i in range(count)]


def open_unit(bits: jax.Array, dtype: Any) -> jax.Array:
    """Map random words to (0, 1), ends excluded, keeping the full resolution of the word near 0.

    Kernels that use one uniform twice (first to choose, then rescaled) put the rarer, continuous case near 0.
    """
    width = 32 if jnp.dtype(dtype) == jnp.float32 else 64
    top = 1.0 - float(np.finfo(dtype).epsneg)
    return jnp.minimum((bits.astype(dtype) + 0.5) * (2.0**-width), top)


def all_states(size: int, p: int) -> np.ndarray:
    """All ways to choose one of ``size`` classes for each of p components: (size^p, p)."""
    return np.arange(size**p)[:, None] // size ** np.arange(p) % size
