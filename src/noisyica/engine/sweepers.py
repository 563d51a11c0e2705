"""Sweepers: where the blocks of rows are held, and how they are swept.

:func:`sweep_block` is the only part of the loop whose cost grows with the number of rows. A sweeper
calls it for all blocks, and adds up what comes back in the order of the blocks: so neither threads
nor workers change the sums.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from threadpoolctl import threadpool_limits

from noisyica._jax.arrays import cast, choose, to_numpy, zeros_like_shapes
from noisyica._jax.device import platform
from noisyica._jax.xla import empty_for_device
from noisyica.engine.state import Broadcast, Chain, Plan, Totals
from noisyica.posterior.parameters import Parameters
from noisyica.priors import EXPANSION
from noisyica.rows.block import Block

Array = jax.Array


def sweep_block(
    plan: Plan, sent: Broadcast, block_and_chain: tuple[Block, Chain]
) -> tuple[Chain, Totals]:
    """Apply the last iteration's move to a block of rows, then do its part of this iteration."""
    block, chain = block_and_chain
    chain = _up_to_date(plan, sent, chain)
    return plan.algorithm.expectation(plan, sent, block, chain)


def _up_to_date(plan: Plan, sent: Broadcast, chain: Chain) -> Chain:
    """Return the chain after the move of the coefficients, or at its restart point."""
    prior: Any = sent.parameters.prior

    def moved(latent: Any) -> Any:
        return prior.transform(latent, *cast(sent.move, plan.dtype))

    if EXPANSION.of(prior):
        latent = lax.cond(
            plan.algorithm.moves(sent.t - 1), moved, lambda latent: latent, chain.latent
        )
        chain = chain._replace(latent=latent)
    if not plan.truncate:
        return chain
    here = (chain.latent, chain.x, chain.weight)
    restart_point = choose(sent.t == 1, here, chain.restart_point)
    latent, x, weight = choose(sent.restart, restart_point, here)
    return Chain(latent, x, restart_point, weight, chain.mean_weight)


class Sweeper(Protocol):
    """What the loop needs of whoever holds the rows.

    Where they are ``in_memory`` on one device, the sweeper is a tree of arrays, and the loop is
    compiled around it.
    """

    @property
    def in_memory(self) -> bool:
        """Whether the loop can be compiled around the rows."""

    def numbers(self) -> np.ndarray:
        """Return the numbers of the rows that are swept, in the order in which chains have them."""

    def first_chains(self, plan: Plan, parameters: Parameters) -> Any:
        """Return the chains of the rows before the first iteration with these parameters."""

    def joined(self, plan: Plan, parameters: Parameters, chains: Any, before: Sweeper) -> Any:
        """Return the chains with those of rows that join, if ``before`` swept so far."""

    def sweep(self, plan: Plan, sent: Broadcast, chains: Any) -> tuple[Any, Totals]:
        """Call :func:`sweep_block` for all blocks; return the new chains and the added sums."""

    def collected(self, chains: Any) -> Any:
        """Return the chains as arrays that are here, for a file."""

    def placed(self, chains: Any) -> Any:
        """Return chains from a file as the sweeps take them."""


class InMemory(NamedTuple):
    """Blocks of rows on one device, stacked along a leading axis."""

    blocks: Block
    active: Any = None  # how many of the blocks are swept, the first ones; None if all are

    @property
    def in_memory(self) -> bool:
        """Whether the loop can be compiled around the rows."""
        return True

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of rows that are swept, that of rows that are held, and that of columns."""
        count, d, size = self.blocks.x.shape
        active = count if self.active is None else int(self.active)
        return active * size, count * size, d

    def prepared(self, plan: Plan, parameters: Parameters) -> InMemory:
        """Return the same with what all iterations of a compiled call share."""
        blocks = self.blocks
        if parameters.dof is None or blocks.observed is not None:
            return self
        return self._replace(blocks=blocks._replace(squares=_squares(blocks.x, plan.diagonal)))

    def sweep(self, plan: Plan, sent: Broadcast, chains: Chain) -> tuple[Chain, Totals]:
        """Sweep the blocks; return the new chains, and the sums over their rows."""
        sweep = functools.partial(sweep_block, plan, sent)
        count = len(self.blocks.weight)
        if count == 1:
            pairs = (self.blocks, chains)
            only_pair = jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[1:]), pairs)
            chain, totals = sweep(only_pair)
            return jax.tree.map(lambda leaf: leaf[None], chain), totals

        def one_block(i: Array, so_far: tuple[Chain, Totals]) -> tuple[Chain, Totals]:
            chains, totals = so_far
            chain, part = sweep(jax.tree.map(lambda leaf: leaf[i], (self.blocks, chains)))
            chains = jax.tree.map(lambda leaf, new: leaf.at[i].set(new), chains, chain)
            return chains, jax.tree.map(jnp.add, totals, part)

        shapes = jax.eval_shape(sweep, jax.tree.map(lambda leaf: leaf[0], (self.blocks, chains)))
        active = count if self.active is None else self.active
        return lax.fori_loop(0, active, one_block, (chains, zeros_like_shapes(shapes[1])))

    def numbers(self) -> np.ndarray:
        """Return the numbers of the rows that are swept, in the order in which chains have them."""
        return np.asarray(self.blocks.rows[: self.active]).reshape(-1)

    def collected(self, chains: Chain) -> Chain:
        """Return the chains: they are here."""
        return chains

    def placed(self, chains: Chain) -> Chain:
        """Return the chains: they are where they are swept."""
        return chains

    def first_chains(self, plan: Plan, parameters: Parameters) -> Chain:
        """Return the chains before the first iteration; those of other blocks are zeros."""
        return self.joined(plan, parameters, None, None)

    def joined(self, plan: Plan, parameters: Parameters, chains: Any, before: Any) -> Chain:
        """Return the chains with those of blocks that were not swept before."""
        count, blocks = len(self.blocks.weight), self.blocks
        end = count if self.active is None else int(self.active)
        same = isinstance(before, InMemory) and before.blocks.x is blocks.x
        first = int(before.active) if same else 0
        x = blocks.x if end - first == count else blocks.x[first:end]
        new = linear_chains(x, blocks.observed is not None, plan, to_numpy(parameters))
        if end - first == count:
            return new

        def put(leaf: Any, old: Any = None) -> np.ndarray:
            every = np.zeros((count, *leaf.shape[1:]), leaf.dtype) if old is None else np.array(old)
            every[first:end] = leaf
            return every

        return jax.tree.map(put, new, chains) if same else jax.tree.map(put, new)


def _squares(x: Array, diagonal: bool) -> Array | None:
    """Return the squares of x (blocks, d, n) that Student noise needs in each iteration, if any.

    They are the sums (blocks, 1, n) over columns, or all squares where columns have noise of their
    own: but not of several blocks, which are large, and for which they would take much memory.
    """
    squares = jnp.square(x)
    if not diagonal:
        return squares.sum(1, keepdims=True)
    return squares if len(x) == 1 else None


def linear_chains(x: Any, missing: bool, plan: Plan, parameters: Parameters) -> Chain:
    """Return the chains of blocks x (blocks, d, n) before their first sweep.

    Nothing here is compiled. They begin with the coefficients that a normal prior would give. Where
    columns of A are nearly parallel, as they are when one direction has most of the variance,
    sweeps from zeros would let the first components take what belongs to the others, and learning
    would go astray.
    """
    count, _, n = x.shape
    prior = parameters.prior
    latent = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (count, *leaf.shape)),
        prior.zeros(parameters.A.shape[1], n, plan.dtype),
    )
    offset = np.zeros((count, 1))
    if prior.has_offset:
        # the prior's offsets may be far from the data: begin with the rows' means
        offset = np.asarray(x).mean(1)
        latent = prior.with_offset(latent, offset)
    beta = _linear_estimate(x, parameters, offset, plan.dtype)
    latent = jax.device_put(prior.with_coefficients(latent, beta))
    weight = None
    if parameters.dof is not None:
        weight = jax.device_put(np.ones((count, n), plan.dtype))
    filled = x if missing else None
    point = (latent, filled, weight) if plan.truncate else None
    return Chain(latent, filled, point, weight, weight)


def _linear_estimate(
    blocks: Array, parameters: Parameters, offset: np.ndarray, dtype: str
) -> Array | np.ndarray:
    """Return the coefficients that a normal prior would give, (blocks, p, rows)."""
    A, weight = parameters.A, 1 / np.broadcast_to(parameters.sigma2, len(parameters.A))
    precision = (A.T * weight) @ A + np.eye(A.shape[1]) / parameters.prior.variance()
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        solve = np.linalg.solve(precision, A.T * weight).astype(dtype)
        centre = np.asarray(parameters.mean).astype(dtype)[:, None]
        if platform() != "cpu":  # the rows are there, where a product takes no time
            return jnp.matmul(solve, blocks - centre - offset[:, None].astype(dtype))
        x = np.asarray(blocks)  # on the CPU a view: slices of JAX's array would be copies
        beta = empty_for_device((len(x), A.shape[1], x.shape[2]), dtype)
        for i in range(len(x)):
            beta[i] = solve @ (x[i] - centre - offset[i].astype(dtype))
        return beta
