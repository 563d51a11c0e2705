"""Blocks of rows on the device, as the engine and the posterior take them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding

from noisyica._jax.device import devices_in_use, platform
from noisyica._jax.xla import empty_for_device, padded_rows
from noisyica.rows import threads
from noisyica.rows.source import NUMBERS_AT_A_TIME, Rows

Array = jax.Array

ROWS_ON_CPU = 16_384
"""The number of rows per block on the CPU: few enough for its arrays to stay in the cache."""
ROWS_ON_GPU = 524_288
"""The number of rows per block on a GPU, which needs many rows to be busy."""

MOST_ROWS = 2**32 - ROWS_ON_GPU
"""How many rows have random numbers of their own: the number of a row has 32 bits."""


class Block(NamedTuple):
    """A block of rows, transposed, with the rows' weights and the weighted sums of its columns."""

    x: Array  # (d, n)
    weight: Array  # (n,)  relative weights, 1 on average; 0 for rows that only fill the block up
    sum_x: Array  # (d,)  weighted sum of the rows, in float64
    sum_xx: Array  # (d,)  weighted sum of the squares of their entries, in float64
    observed: Any  # (d, n) booleans, where entries are missing; None where none is
    rows: Array  # (n,)  the numbers of the rows, or () that of the first of consecutive rows
    squares: Any = None  # (1, n)  the sum of the squares of each row, or (d, n)  all of them


def block_rows() -> int:
    """Return the number of rows per block on the device that is used."""
    return ROWS_ON_CPU if platform() == "cpu" else ROWS_ON_GPU


def count_blocks(n: int) -> tuple[int, int]:
    """Return the number of blocks that n rows make, and the number of rows of each."""
    full = block_rows()
    count = max(1, -(-n // full))
    if platform() == "gpu" and n >= full // 4:
        count = max(count, len(devices_in_use()))
        full = min(full, padded_rows(-(-n // count)))
    return count, padded_rows(n) if count == 1 else full


def device_blocks(
    rows: Rows, dtype: str, order: np.ndarray | None = None, place: NamedSharding | None = None
) -> Block:
    """Put rows into blocks on the device, stacked along a leading axis.

    The rows come in their own order, or they are those of the numbers ``order``. The last block is
    filled up with rows of weight 0, whose numbers no other row has. Missing entries are 0, and
    ``observed`` says which they are. ``place`` spreads the blocks over several devices, all of
    which have the same number of blocks.
    """
    n = rows.n if order is None else len(order)
    size = count_blocks(rows.n)[1]
    filled = -(-n // size)
    count = filled if place is None else filled + -filled % place.num_devices
    x = empty_for_device((count, rows.d, size), dtype)
    weight, sums = np.zeros((count, size)), np.zeros((2, count, rows.d))
    observed = None

    def put_part(part: _Part) -> tuple[_Part, np.ndarray | None, np.ndarray]:
        first, end, i, at = part
        if order is None:
            values, weights = rows.standardised(first, end), rows.relative_weight(first, end)
        else:
            values, weights = rows.chosen(order[first:end]), rows.weights_of(order[first:end])
        missing = np.isnan(values)
        if missing.any():
            values[missing] = 0.0
        x[i, :, at], weight[i, at] = values.T, weights
        # not by BLAS, whose last bits depend on the number of threads
        first_sums = np.einsum("nd,n->d", values, weights)
        square_sums = np.einsum("nd,nd,n->d", values, values, weights)
        return part, missing if missing.any() else None, np.stack([first_sums, square_sums])

    parts = _parts(n, rows.d, size)
    for (_, _, i, at), missing, part_sums in threads.each(put_part, parts, not rows.in_memory):
        sums[:, i] += part_sums
        if missing is None:
            continue
        if observed is None:
            observed = np.ones((count, rows.d, size), bool)
        observed[i, :, at] = ~missing.T
    x[filled - 1, :, n - (filled - 1) * size :] = 0.0
    x[filled:] = 0.0
    numbers = np.arange(count * size)
    if order is not None:
        numbers = np.concatenate([order, rows.n + numbers[: count * size - n]])
    put = functools.partial(jax.device_put, device=place)
    return Block(
        x=put(x),  # jnp.asarray would copy it, or compile a conversion
        weight=put(weight.astype(dtype)),
        sum_x=put(sums[0]),
        sum_xx=put(sums[1]),
        observed=None if observed is None else put(observed),
        rows=put(numbers.reshape(count, size).astype(np.uint32)),
    )


_Part = tuple[int, int, int, slice]


def _parts(n: int, d: int, size: int) -> Iterator[_Part]:
    """Split n rows into parts that are small enough for the memory of the host.

    Each part is given by its first row, its end, the number of its block, and its place there.
    """
    step = min(size, max(1, NUMBERS_AT_A_TIME // d))
    for begin in range(0, n, size):
        for first in range(begin, min(begin + size, n), step):
            end = min(first + step, begin + size, n)
            yield first, end, begin // size, slice(first - begin, end - begin)
