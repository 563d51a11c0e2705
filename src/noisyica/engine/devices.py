"""Rows on several devices of one machine, each of which sweeps its own blocks."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from noisyica._jax.arrays import zeros_like_shapes
from noisyica._jax.device import BLOCKS
from noisyica.engine.state import Broadcast, Chain, Plan, Totals
from noisyica.engine.sweepers import InMemory, sweep_block
from noisyica.posterior.parameters import Parameters

Array = jax.Array


@functools.partial(jax.tree_util.register_dataclass, data_fields=["rows"], meta_fields=["place"])
@dataclasses.dataclass(frozen=True)
class OnDevices:
    """Blocks of rows that are spread over several devices, with the chains of their rows.

    Neighbouring blocks are on the same device. The sums of all blocks are added in the order of
    the blocks, so that the number of devices does not change a fit, except for how a device rounds.
    Where only the first blocks take part, the other devices wait.
    """

    rows: InMemory
    place: NamedSharding

    @property
    def in_memory(self) -> bool:
        """Whether the loop can be compiled around the rows."""
        return True

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of rows that are swept, that of rows that are held, and that of columns."""
        return self.rows.shape

    def prepared(self, plan: Plan, parameters: Parameters) -> OnDevices:
        """Return the same with what all iterations of a compiled call share."""
        return dataclasses.replace(self, rows=self.rows.prepared(plan, parameters))

    def sweep(self, plan: Plan, sent: Broadcast, chains: Chain) -> tuple[Chain, Totals]:
        """Have each device sweep its blocks; return the new chains, and the sums over all rows."""
        count = len(self.rows.blocks.weight)
        each = count // self.place.num_devices
        active = jnp.asarray(count if self.rows.active is None else self.rows.active)

        def own(sent: Broadcast, active: Array, blocks: Any, chains: Any) -> tuple[Any, Any]:
            """Sweep the blocks of one device; return its chains and the sums of each block."""
            shapes = jax.eval_shape(
                functools.partial(sweep_block, plan, sent),
                jax.tree.map(lambda leaf: leaf[0], (blocks, chains)),
            )
            parts = jax.tree.map(lambda leaf: jnp.zeros((each, *leaf.shape), leaf.dtype), shapes[1])

            def one(i: Array, so_far: tuple[Any, Any]) -> tuple[Any, Any]:
                chains, parts = so_far
                pair = jax.tree.map(lambda leaf: leaf[i], (blocks, chains))
                new = sweep_block(plan, sent, pair)
                return jax.tree.map(lambda leaf, part: leaf.at[i].set(part), so_far, new)

            mine = jnp.clip(active - lax.axis_index(BLOCKS) * each, 0, each)
            return lax.fori_loop(0, mine, one, (chains, parts))

        chains, parts = jax.shard_map(
            own,
            mesh=self.place.mesh,
            in_specs=(PartitionSpec(), PartitionSpec(), self.place.spec, self.place.spec),
            out_specs=self.place.spec,
            check_vma=False,
        )(sent, active, self.rows.blocks, chains)
        first = zeros_like_shapes(jax.tree.map(lambda leaf: leaf[0], parts))

        def add(i: Array, totals: Totals) -> Totals:
            return jax.tree.map(lambda total, part: total + part[i], totals, parts)

        return chains, lax.fori_loop(0, active, add, first)

    def numbers(self) -> np.ndarray:
        """Return the numbers of the rows that are swept, in the order in which chains have them."""
        return self.rows.numbers()

    def collected(self, chains: Chain) -> Chain:
        """Return the chains as arrays that are here, for a file."""
        return jax.tree.map(np.asarray, chains)

    def placed(self, chains: Chain) -> Chain:
        """Return the chains where they are swept."""
        return jax.device_put(chains, self.place)

    def first_chains(self, plan: Plan, parameters: Parameters) -> Chain:
        """Return the chains before the first iteration; those of other blocks are zeros."""
        return self.joined(plan, parameters, None, None)

    def joined(self, plan: Plan, parameters: Parameters, chains: Any, before: Any) -> Chain:
        """Return the chains with those of blocks that were not swept before."""
        rows = before.rows if isinstance(before, OnDevices) else None
        return self.placed(self.rows.joined(plan, parameters, chains, rows))
