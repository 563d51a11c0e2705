"""Blocks of rows on the device, as the engine and the posterior take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from noisyica._jax.device import platform
from noisyica._jax.xla import empty_for_device, padded_rows
from noisyica.rows.source import NUMBERS_AT_A_TIME, Rows

Array = jax.Array

ROWS_ON_CPU = 16_384
"""The number of rows per block on the CPU: few enough for its arrays to stay in the cache."""
ROWS_ON_GPU = 524_288
"""The number of rows per block on a GPU, which needs many rows to be busy."""


class Block(NamedTuple):
    """A block of rows, transposed, with the rows' weights and the weighted sums of its columns."""

    x: Array  # (d, n)
    weight: Array  # (n,)  relative weights, 1 on average; 0 for rows that only fill the block up
    sum_x: Array  # (d,)  weighted sum of the rows, in float64
    sum_xx: Array  # (d,)  weighted sum of the squares of their entries, in float64
    observed: Any  # (d, n) booleans, where entries are missing; None where none is
    first: Array  # ()  the number of the block's first row
    squares: Any = None  # (1, n)  the sum of the squares of each row, or (d, n)  all of them


def block_rows() -> int:
    """Return the number of rows per block on the device that is used."""
    return ROWS_ON_CPU if platform() == "cpu" else ROWS_ON_GPU


def device_blocks(rows: Rows, dtype: str) -> Block:
    """Put all rows into blocks on the device, stacked along a leading axis.

    The last block is filled up with rows of weight 0. Missing entries are 0, and ``observed`` says
    which they are.
    """
    full = block_rows()
    count = max(1, -(-rows.n // full))
    size = padded_rows(rows.n) if count == 1 else full
    x = empty_for_device((count, rows.d, size), dtype)
    weight, sums = np.zeros((count, size)), np.zeros((2, count, rows.d))
    observed = None
    for first, end, i, at in _parts(rows, size):
        part, part_weight = rows.standardised(first, end), rows.relative_weight(first, end)
        missing = np.isnan(part)
        if missing.any():
            if observed is None:
                observed = np.ones((count, rows.d, size), bool)
            observed[i, :, at] = ~missing.T
            part[missing] = 0.0
        x[i, :, at], weight[i, at] = part.T, part_weight
        # not by BLAS, whose last bits depend on the number of threads
        sums[0, i] += np.einsum("nd,n->d", part, part_weight)
        sums[1, i] += np.einsum("nd,nd,n->d", part, part, part_weight)
    x[-1, :, rows.n - (count - 1) * size :] = 0.0
    return Block(
        x=jax.device_put(x),  # jnp.asarray would copy it, or compile a conversion
        weight=jax.device_put(weight.astype(dtype)),
        sum_x=jax.device_put(sums[0]),
        sum_xx=jax.device_put(sums[1]),
        observed=None if observed is None else jax.device_put(observed),
        first=jax.device_put((np.arange(count) * size).astype(np.uint32)),
    )


def _parts(rows: Rows, size: int) -> Iterator[tuple[int, int, int, slice]]:
    """Split the rows into parts that are small enough for the memory of the host.

    Each part is given by its first row, its end, the number of its block, and its place there.
    """
    step = min(size, max(1, NUMBERS_AT_A_TIME // rows.d))
    for begin in range(0, rows.n, size):
        for first in range(begin, min(begin + size, rows.n), step):
            end = min(first + step, begin + size, rows.n)
            yield first, end, begin // size, slice(first - begin, end - begin)
