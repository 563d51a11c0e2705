"""Rows that stay where they are: each sweep reads them anew, block by block.

The memory that a fit needs is then that of a few blocks and of the coefficients. These are kept in
a file where they are many.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import to_numpy
from noisyica._jax.compiling import Compiled
from noisyica._jax.device import default_device, platform
from noisyica._jax.precision import double_precision
from noisyica.data.held import give_back
from noisyica.engine.state import Broadcast, Chain, Plan, Totals
from noisyica.engine.sweepers import linear_chains, sweep_block
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import Block, count_blocks
from noisyica.rows.source import Rows

Array = jax.Array
Prepared = TypeVar("Prepared")

MOST_IN_MEMORY = 2**30
"""The number of bytes of coefficients beyond which they are kept in a file."""
TOGETHER = 32
"""The number of rows that are transposed at a time on the CPU."""


class Streamed:
    """Rows that are read block by block, whenever they are swept.

    Parameters
    ----------
    rows : Rows
        The rows, with their centre and unit.
    dtype : str
        The precision of the sampler.
    missing : bool
        Whether any entry is missing.
    """

    @property
    def in_memory(self) -> bool:
        """Whether the loop can be compiled around the rows."""
        return False

    def __init__(self, rows: Rows, dtype: str, missing: bool) -> None:
        self._rows, self._dtype, self._missing = rows, dtype, missing
        self.count, self.size = count_blocks(rows.n)
        self._scale = (rows.centre, np.asarray(rows.unit))
        if rows.basis is not None:  # rows are read in their basis, centred and scaled already
            self._scale = (np.zeros(rows.d), np.ones(()))
        sums = np.zeros((self.count, 2, rows.d))
        for i, part in enumerate(self._read(self._sums_of)):
            sums[i] = part
        self._sums = sums

    @property
    def squares(self) -> np.ndarray:
        """The weighted sums of the squares of each column (d,), over all rows."""
        return self._sums[:, 1].sum(0)

    def numbers(self) -> np.ndarray:
        """Return the numbers of the rows in the order in which chains have them."""
        return np.arange(self.count * self.size)

    def sweep(self, plan: Plan, sent: Broadcast, chains: Chain) -> tuple[Chain, Totals]:
        """Sweep all blocks: the chains, which are NumPy's, are replaced in place."""
        totals: Any = None
        # vectors of the sampler's precision, and double sums: the same as for rows in memory
        compiled = sweep_rows.compiled(sent.parameters.prior.compiles_fast)
        for i, block in enumerate(self._read(self._held)):
            chain = jax.tree.map(lambda leaf, i=i: leaf[i], chains)
            chain, part = compiled(block, chain, sent, plan)
            for leaf, new in zip(jax.tree.leaves(chains), jax.tree.leaves(chain), strict=True):
                leaf[i] = new
            part = jax.tree.map(np.asarray, part)
            totals = part if totals is None else jax.tree.map(np.add, totals, part)
        return chains, totals

    def collected(self, chains: Chain) -> Chain:
        """Return the chains: they are here."""
        return chains

    def placed(self, chains: Chain) -> Chain:
        """Return the chains: they are where they are swept."""
        return chains

    def first_chains(self, plan: Plan, parameters: Parameters) -> Chain:
        """Return the chains before the first iteration."""
        chains: Any = None
        parameters = to_numpy(parameters)
        for i, block in enumerate(self._read(self._held)):
            chain = linear_chains(np.asarray(block.x)[None], self._missing, plan, parameters)
            if chains is None:
                chains = self._room(chain)
            for leaf, new in zip(jax.tree.leaves(chains), jax.tree.leaves(chain), strict=True):
                leaf[i] = new[0]
        return chains

    def joined(self, plan: Plan, parameters: Parameters, chains: Any, before: Any) -> Chain:
        """Return the chains of all rows: what a few of them had before is not kept."""
        return self.first_chains(plan, parameters)

    def _room(self, chain: Chain) -> Chain:
        """Return room for the chains of all blocks, by that of one block (1, ...)."""
        in_memory = self.count * sum(leaf.nbytes for leaf in jax.tree.leaves(chain))

        def room(leaf: Any) -> np.ndarray:
            shape = (self.count, *leaf.shape[1:])
            if in_memory <= MOST_IN_MEMORY:
                return np.empty(shape, leaf.dtype)
            with tempfile.TemporaryFile() as file:  # it is there until the array is gone
                _allocate(file.fileno(), math.prod(shape) * leaf.dtype.itemsize)
                return np.memmap(file, leaf.dtype, "r+", shape=shape)

        return jax.tree.map(room, chain)

    def _read(self, prepare: Callable[[int], Prepared]) -> Iterator[Prepared]:
        """Prepare the blocks one after the other, each while the one before it is in use.

        To prepare is to read a block and to compute what is needed of its rows.
        """
        device = default_device()

        @double_precision()
        def ahead(i: int) -> Prepared:
            with jax.default_device(device):  # JAX's settings are those of a thread
                prepared = jax.block_until_ready(prepare(i))
            give_back(self._rows.X)
            return prepared

        with ThreadPoolExecutor(1) as pool:
            next_one = pool.submit(ahead, 0)
            for i in range(self.count):
                prepared = next_one.result()
                if i + 1 < self.count:
                    next_one = pool.submit(ahead, i + 1)
                yield prepared

    def _sums_of(self, i: int) -> Array:
        """Return the sums of the columns of block i, and of their squares."""
        raw, weight = self._block(i)
        return _sums(raw, *self._scale, weight)

    def _held(self, i: int) -> Block:
        """Return block i as sweeps take it."""
        raw, weight = self._block(i)
        compiled = standardise.compiled(fast_compile=True)  # it then runs faster, too
        x, observed = compiled(raw, *self._scale, weight, self._dtype, self._missing)
        return Block(
            x=x,
            weight=jnp.asarray(weight.astype(self._dtype)),
            sum_x=jnp.asarray(self._sums[i, 0]),
            sum_xx=jnp.asarray(self._sums[i, 1]),
            observed=observed,
            rows=jnp.asarray((i * self.size + np.arange(self.size)).astype(np.uint32)),
        )

    def _block(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        rows, first = self._rows, i * self.size
        end = min(first + self.size, rows.n)
        weight = np.zeros(self.size)
        weight[: end - first] = rows.relative_weight(first, end)
        part = rows.raw(first, end) if rows.basis is None else rows.standardised(first, end)
        if len(part) < self.size:  # rows of weight 0 fill the last block up
            part = np.concatenate([part, np.zeros((self.size - len(part), rows.d), part.dtype)])
        return part, weight


def _allocate(file: int, size: int) -> None:
    """Give a file its size on the disk: a disk that is full later would end the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.ftruncate(file, size)
    except OSError as error:
        raise OSError(
            f"The coefficients of all rows need a temporary file of {size / 2**30:.1f} GiB, but in "
            f"{tempfile.gettempdir()} it could not be made ({error.strerror}): name a folder with "
            "more room by the environment variable TMPDIR."
        ) from error


def _standardised(raw: Any, centre: Any, unit: Any, weight: Any) -> Array:
    """Return rows (n, d), centred and scaled in double precision; those of weight 0 are 0."""
    x = (jnp.asarray(raw, float) - centre) * (1 / unit)  # a product is faster than a quotient
    return jnp.where(weight[:, None] > 0, x, 0.0)


def _as_swept(
    raw: Any, centre: Any, unit: Any, weight: Any, dtype: str, missing: bool
) -> tuple[Array, Array | None]:
    """Return rows (n, d) as sweeps take them, (d, n), and where they are observed.

    On the CPU, a few rows at a time are transposed, which stay in the cache. To transpose all at
    once takes twice as long: entries of a row are then written at places that are as far apart as
    there are rows, a power of two, for which caches have few places.
    """
    raw, weight = jnp.asarray(raw), jnp.asarray(weight)
    n, d = raw.shape
    step = TOGETHER if platform() == "cpu" and not n % TOGETHER else n

    def put(i: Array, x: Array) -> Array:
        some, own = (lax.dynamic_slice_in_dim(part, i * step, step) for part in (raw, weight))
        columns = _standardised(some, centre, unit, own).astype(dtype).T
        return lax.dynamic_update_slice_in_dim(x, lax.optimization_barrier(columns), i * step, 1)

    x = lax.fori_loop(0, n // step, put, jnp.zeros((d, n), dtype))
    if not missing:
        return x, None
    observed = ~jnp.isnan(x)
    return jnp.where(observed, x, 0), observed


standardise = Compiled(_as_swept, ("dtype", "missing"))


@jax.jit
def _sums(raw: Any, centre: Any, unit: Any, weight: Any) -> Array:
    """Return the weighted sums (2, d) of the columns of rows, and of their squares."""
    x = jnp.nan_to_num(_standardised(raw, centre, unit, weight))
    return jnp.stack([(x * weight[:, None]).sum(0), (jnp.square(x) * weight[:, None]).sum(0)])


def _sweep_rows(block: Block, chain: Chain, sent: Broadcast, plan: Plan) -> tuple[Chain, Totals]:
    """Sweep a block of rows."""
    return sweep_block(plan, sent, (block, chain))


sweep_rows = Compiled(_sweep_rows, ("plan",))
