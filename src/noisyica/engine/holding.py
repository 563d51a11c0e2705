"""Where the rows of a fit are held while they are swept, and in which stages they take part."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import jax
import numpy as np

from noisyica._jax.device import devices_in_use, spread_over
from noisyica.data.held import Blocks, Held
from noisyica.engine import growth
from noisyica.engine.cluster import OnWorkers
from noisyica.engine.devices import OnDevices
from noisyica.engine.growth import Stage
from noisyica.engine.settings import Settings
from noisyica.engine.state import Constants, Plan, Schedule
from noisyica.engine.streamed import Streamed
from noisyica.engine.sweepers import InMemory, Sweeper
from noisyica.rows.block import MOST_ROWS, count_blocks, device_blocks
from noisyica.rows.source import Rows

Array = jax.Array

MOST_FROM_DISK = 2**30
"""The number of bytes up to which rows that are held elsewhere are put into memory."""
SHARE_OF_MEMORY = 0.5
"""The share of the memory that is free which rows that are in memory may take once more."""
MOST_EARLY = 2**29
"""The number of bytes of the rows of early stages, where all rows together are not in memory."""
_ROLE = 2**32 - 2
"""What the seed's key is folded with for the order of the rows: no iteration is that."""


class Holding(NamedTuple):
    """The rows as they are swept."""

    sizes: list[int]  # the number of blocks that take part in each stage
    sweepers: list[Sweeper]  # of each stage
    shares: list[float]  # of the total weight that the rows of each stage have
    squares: np.ndarray  # (d,)  the weighted sums of the squares of the columns, over all rows


def hold(
    settings: Settings, plan: Plan, rows: Rows, missing: bool, p: int, sample: Any, key: Array
) -> Holding:
    """Put the rows where they are swept, those first that take part first."""
    if rows.n > MOST_ROWS:
        raise ValueError(f"X has {rows.n:,} rows, and at most {MOST_ROWS:,} can be learnt from.")
    count, size = count_blocks(rows.n)
    early = _early_sizes(settings, plan, rows, count, size, p, sample)
    client = rows.X.client if isinstance(rows.X, Blocks) and rows.all_count else None
    streamed = client is not None or not fits_in_memory(rows, settings.dtype)
    if streamed:
        most = MOST_EARLY // (size * rows.d * np.dtype(settings.dtype).itemsize)
        early = [blocks for blocks in early if blocks <= max(most, 1)]
    counts = [blocks * size for blocks in early]
    order = None
    if early:
        seed = int(jax.random.bits(jax.random.fold_in(key, _ROLE)))
        order = growth.order_of_rows(rows.n, counts, seed, every=not streamed)
    shares = [1.0] * (len(early) + 1)
    if order is not None:
        weights = [rows.weights_of(order[:m]).sum() for m in counts]
        shares = [float(weight) / rows.n for weight in weights] + [1.0]
    sweepers: list[Sweeper] = []
    if early or not streamed:
        devices = devices_in_use()[:count]
        place = spread_over(devices) if len(devices) > 1 else None
        blocks = device_blocks(rows, settings.dtype, order, place)
        active = early if streamed else [*early, count]
        # one sweeper that says how many blocks take part serves all stages, compiled once
        held = [InMemory(blocks, np.asarray(k) if early else None) for k in active]
        sweepers = [one if place is None else OnDevices(one, place) for one in held]
    if streamed:
        last: Any = (
            Streamed(rows, settings.dtype, missing)
            if client is None
            else OnWorkers(rows, settings.dtype, client)
        )
        return Holding([*early, count], [*sweepers, last], shares, last.squares)
    return Holding([*early, count], sweepers, shares, np.asarray(blocks.sum_xx).sum(0))


def _early_sizes(
    settings: Settings, plan: Plan, rows: Rows, count: int, size: int, p: int, sample: Any
) -> list[int]:
    """Return the number of blocks that take part in each stage before the last."""
    if settings.grow is False or count == 1 or plan.truncate:
        return []
    first = growth.rows_needed(sample, p) / size
    burn_in = burn_in_of(settings)
    return growth.sizes(burn_in, plan.algorithm, settings.max_iter, count, first)[:-1]


def burn_in_of(settings: Settings) -> int:
    """Return the number of iterations of burn-in."""
    return round(settings.burn_in * settings.max_iter)


def stages(held: Holding, constants: Constants) -> tuple[Stage, ...]:
    """Return the stages of a fit, whose constants are these when all rows take part."""
    schedule: Schedule = constants.schedule
    begins = growth.first_iterations(schedule.burn_in, len(held.sizes))
    schedule = growth.growing_schedule(schedule, begins)
    return tuple(
        Stage(first, sweeper, growth.constants_of(constants, schedule, share))
        for first, sweeper, share in zip(begins, held.sweepers, held.shares, strict=True)
    )


def fits_in_memory(rows: Rows, dtype: str) -> bool:
    """Return whether the rows, in this precision, are put into memory as a whole."""
    size = rows.n * rows.d * np.dtype(dtype).itemsize
    if isinstance(rows.X, Held):
        return size <= MOST_FROM_DISK
    return size <= SHARE_OF_MEMORY * free_memory()


def free_memory() -> float:
    """Return the bytes of memory that are free, or infinity where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return float("inf")
