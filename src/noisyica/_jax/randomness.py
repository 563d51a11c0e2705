"""Random numbers that depend on a key and on the number of the row that they are for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.device import platform

Array = jax.Array


class RowKeys(NamedTuple):
    """The randomness of some rows.

    The random numbers of a row depend on ``key`` and on the number of the row alone, whatever the
    block that it is in.
    """

    key: Array
    rows: Array
    """The numbers of the rows (n,), or () that of the first of consecutive rows."""


Key = Array | RowKeys
"""The keys from which random numbers are made.

They are a single key, for rows that are numbered from 0; an array of keys, one per row; or
:class:`RowKeys`.
"""


def key_of(seed: int) -> Array:
    """Return the key that ``jax.random.key`` makes of a seed, without anything to compile."""
    words = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(jax.device_put(words), impl="threefry2x32")


def uniforms(key: Key, count: int, shape: tuple[int, ...], dtype: Any) -> tuple[Array, ...]:
    """Draw ``count`` independent arrays of uniforms on the open interval (0, 1).

    The last axis of ``shape`` is that of the rows. The arrays are separate and not one stacked
    array: XLA vectorises a kernel that reads whole vectors about five times better than one that
    reads slices.

    Examples
    --------
    >>> import jax
    >>> from noisyica.priors import uniforms
    >>> u, v = uniforms(jax.random.key(0), 2, (3, 100), "float32")  # for 100 rows
    >>> u.shape, bool((u > 0).all() and (u < 1).all())
    ((3, 100), True)
    """
    if count == 0:
        return ()
    *lead, n = shape or (1,)
    width = math.prod(lead)
    words = count * width
    double = jnp.dtype(dtype) == jnp.float64
    positions = words if double else -(-words // 2)  # a hash makes 64 bits
    position = lax.broadcasted_iota(jnp.uint32, (positions, n), 0)
    key, row = _rows(key, (positions, n))
    keys = jax.random.key_data(key)
    high, low = threefry(keys[..., 0], keys[..., 1], position, row)
    if double:
        bits = (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)
    else:
        bits = jnp.concatenate([high, low])
    if (
        platform() == "gpu" and not double
    ):  # one kernel: XLA joins operations before a concatenation
        units = jnp.concatenate([open_unit(high, dtype), open_unit(low, dtype)])
        return tuple(units[i * width : (i + 1) * width].reshape(shape) for i in range(count))
    return tuple(
        open_unit(bits[i * width : (i + 1) * width].reshape(shape), dtype) for i in range(count)
    )


def _rows(key: Key, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the key or keys, and the numbers that tell rows apart under the same key."""
    if isinstance(key, RowKeys):
        rows = key.rows.astype(jnp.uint32)
        if rows.ndim:
            return key.key, jnp.broadcast_to(rows, shape)
        return key.key, lax.broadcasted_iota(jnp.uint32, shape, 1) + rows
    if key.ndim:
        return key, jnp.zeros((), jnp.uint32)
    return key, lax.broadcasted_iota(jnp.uint32, shape, 1)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key0: Array, key1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Hash two words with two words of key by Threefry-2x32 with 20 rounds.

    (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011.) ``jax.random`` uses the same
    hash, but as a loop over whole arrays, which on the CPU takes six times as long as one kernel.
    """
    keys = (key0, key1, key0 ^ key1 ^ jnp.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = ((x1 << jnp.uint32(r)) | (x1 >> jnp.uint32(32 - r))) ^ x0
        x0, x1 = x0 + keys[(i + 1) % 3], x1 + keys[(i + 2) % 3] + jnp.uint32(i + 1)
    return x0, x1


def split(key: Key, count: int) -> list[Any]:
    """Return ``count`` new keys of the same kind as ``key``, independent of each other.

    Examples
    --------
    >>> import jax
    >>> from noisyica.priors import split
    >>> for_signs, for_scales = split(jax.random.key(0), 2)
    """
    if isinstance(key, RowKeys):
        return [RowKeys(new, key.rows) for new in split(key.key, count)]
    if key.ndim:
        new = jax.vmap(lambda k: jax.random.split(k, count), out_axes=1)(key)
    else:
        new = jax.random.split(key, count)
    return [new[i] for i in range(count)]


def fold_in(key: Key, number: Any) -> Any:
    """Return a new key of the same kind as ``key``, a different one for each ``number``."""
    if isinstance(key, RowKeys):
        return RowKeys(jax.random.fold_in(key.key, number), key.rows)
    if key.ndim:
        return jax.vmap(lambda k: jax.random.fold_in(k, number))(key)
    return jax.random.fold_in(key, number)


def open_unit(bits: Array, dtype: Any) -> Array:
    """Map random words to (0, 1), ends excluded, keeping the full resolution of the word near 0.

    Kernels that use one uniform twice (first to choose, then rescaled) put the rarer, continuous
    case near 0.
    """
    width = 32 if jnp.dtype(dtype) == jnp.float32 else 64
    top = 1.0 - float(np.finfo(dtype).epsneg)
    return jnp.minimum((bits.astype(dtype) + 0.5) * (2.0**-width), top)
