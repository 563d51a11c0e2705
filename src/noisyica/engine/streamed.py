"""Rows that stay where they are: each sweep reads them anew, block by block.

The memory that a fit needs is then that of a few blocks and of the coefficients. These are kept in
a file where they are many.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import to_numpy
from noisyica._jax.compiling import Compiled
from noisyica.data.held import give_back
from noisyica.engine.state import Broadcast, Chain, Plan, Totals
from noisyica.engine.sweepers import linear_chains, sweep_block
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import Block, count_blocks
from noisyica.rows.source import Rows

Array = jax.Array

MOST_IN_MEMORY = 2**30
"""The number of bytes of coefficients beyond which they are kept in a file."""


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
        for i, (raw, weight) in enumerate(self._read()):
            sums[i] = _sums(raw, *self._scale, weight)
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
        compiled = sweep_raw.compiled(sent.parameters.prior.compiles_fast)
        for i, (raw, weight) in enumerate(self._read()):
            chain = jax.tree.map(lambda leaf, i=i: leaf[i], chains)
            place = (np.asarray(i * self.size, np.uint32), self._sums[i])
            held = (raw, *self._scale, weight, *place)
            chain, part = compiled(held, chain, sent, plan, self._missing)
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
        for i, (raw, weight) in enumerate(self._read()):
            held = (raw, *self._scale, weight, np.zeros((), np.uint32), self._sums[i])
            x = np.asarray(_x_of(held, plan.dtype, self._missing))[None]
            chain = linear_chains(x, self._missing, plan, parameters)
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
                return np.memmap(file, leaf.dtype, "w+", shape=shape)

        return jax.tree.map(room, chain)

    def _read(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Read the blocks one after the other, each while the one before it is in use.

        They are given as they are held, (n, d), with the rows' weights.
        """
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(self._block, 0)
            for i in range(self.count):
                block = ahead.result()
                if i + 1 < self.count:
                    ahead = pool.submit(self._block, i + 1)
                yield block
                give_back(self._rows.X)

    def _block(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        rows, first = self._rows, i * self.size
        end = min(first + self.size, rows.n)
        weight = np.zeros(self.size)
        weight[: end - first] = rows.relative_weight(first, end)
        part = rows.raw(first, end) if rows.basis is None else rows.standardised(first, end)
        if len(part) < self.size:  # rows of weight 0 fill the last block up
            part = np.concatenate([part, np.zeros((self.size - len(part), rows.d), part.dtype)])
        return part, weight


Held = tuple[Any, Any, Any, Any, Any, Any]
"""A block as it is held: raw rows, centre, unit, weights, the first row's number, and sums."""


def _standardised(raw: Any, centre: Any, unit: Any, weight: Any) -> Array:
    """Return rows (n, d), centred and scaled in double precision; those of weight 0 are 0."""
    x = (jnp.asarray(raw, float) - centre) * (1 / unit)  # a product is faster than a quotient
    return jnp.where(weight[:, None] > 0, x, 0.0)


def _block_of(held: Held, dtype: str, missing: bool) -> Block:
    """Return a block of rows as all sweeps take them."""
    raw, centre, unit, weight, first, sums = held
    x, observed = _standardised(raw, centre, unit, weight), None
    if missing:
        observed = ~jnp.isnan(x).T
        x = jnp.where(observed.T, x, 0.0)
    rows = first + jnp.arange(len(x), dtype=np.uint32)
    # without a barrier the rows would be standardised anew for each product
    x = lax.optimization_barrier(x.astype(dtype).T)
    return Block(x, weight.astype(dtype), sums[0], sums[1], observed, rows)


@functools.partial(jax.jit, static_argnames=("dtype", "missing"))
def _x_of(held: Held, dtype: str, missing: bool) -> Array:
    """Return the rows (d, n) of a block."""
    return _block_of(held, dtype, missing).x


@jax.jit
def _sums(raw: Any, centre: Any, unit: Any, weight: Any) -> Array:
    """Return the weighted sums (2, d) of the columns of rows, and of their squares."""
    x = jnp.nan_to_num(_standardised(raw, centre, unit, weight))
    return jnp.stack([(x * weight[:, None]).sum(0), (jnp.square(x) * weight[:, None]).sum(0)])


def _sweep_raw(
    held: Held, chain: Chain, sent: Broadcast, plan: Plan, missing: bool
) -> tuple[Chain, Totals]:
    """Sweep a block of rows as it is held."""
    return sweep_block(plan, sent, (_block_of(held, plan.dtype, missing), chain))


sweep_raw = Compiled(_sweep_raw, ("plan", "missing"))
