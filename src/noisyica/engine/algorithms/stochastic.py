"""Algorithms that draw the coefficients: SEM, SAEM and MCEM."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from noisyica._jax.arrays import cast, zeros_like_shapes
from noisyica.engine.algorithms.base import Algorithm
from noisyica.engine.expansion import (
    LEAST_STEP,
    Move,
    MoveSums,
    location_step,
    newton_rotation,
    no_move,
)
from noisyica.engine.state import (
    IMPUTATION,
    SWEEPS,
    WEIGHTS,
    Broadcast,
    Chain,
    Constants,
    Plan,
    Schedule,
    State,
    Totals,
)
from noisyica.engine.statistics import collect
from noisyica.posterior.parameters import channel, impute
from noisyica.posterior.student import RowWeights, draw_weights, misfit, observed_entries
from noisyica.priors import EXPANSION, METROPOLIS, Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array


@dataclasses.dataclass(frozen=True)
class StochasticEM(Algorithm):
    """SEM: the statistics are those of this iteration's draw alone."""

    sampler: str = "gibbs"
    name: ClassVar[str] = "sem"

    @classmethod
    def from_settings(cls, sampler: str, draws: tuple[int, int]) -> Algorithm:
        return cls(sampler)

    def check(self, prior: Prior, p: int, missing: bool) -> None:
        if self.sampler == "metropolis":
            METROPOLIS.require(prior)

    def expectation(
        self, plan: Plan, sent: Broadcast, block: Block, chain: Chain, sweep: Any = 0
    ) -> tuple[Chain, Totals]:
        prior: Any = cast(sent.parameters.prior, plan.dtype)
        draw = prior.metropolis if self.sampler == "metropolis" else prior.gibbs
        rows = chain.fill(block)
        seen = channel(sent.parameters, rows.x, block.squares)._replace(weight=chain.weight)
        latent = draw(sent.row_keys(block, SWEEPS, sweep), chain.latent, seen)
        own = None
        if chain.weight is not None:
            own = self._weights(sent, block, latent, seen, sweep)
            share = jnp.asarray(sent.share, plan.dtype)
            mean = chain.mean_weight + share * (own.mean - chain.mean_weight)
            chain = chain._replace(weight=own.draw, mean_weight=mean)
        if chain.x is not None:
            keys = sent.row_keys(block, IMPUTATION, sweep)
            rows = impute(keys, sent.parameters, latent, block, chain.weight)
            chain = chain._replace(x=rows.x)
        statistics = collect(prior, latent, rows, own)
        totals = Totals(block.weight.sum(dtype=float), statistics)
        if EXPANSION.of(prior):
            sums = self._expansion(prior, sent, latent, block, own is not None)
            totals = totals._replace(expansion=sums)
        return chain._replace(latent=latent), totals

    @staticmethod
    def _weights(
        sent: Broadcast, block: Block, latent: Any, seen: Channel, sweep: Any
    ) -> RowWeights:
        """Draw the rows' weights (Student noise), before their missing entries are drawn anew."""
        parameters = sent.parameters
        prior = parameters.prior
        beta, offset = prior.coefficients(latent), prior.offset(latent)
        q = misfit(parameters, beta, offset, seen, block)
        keys, count = sent.row_keys(block, WEIGHTS, sweep), observed_entries(block)
        return draw_weights(keys, parameters.dof, count, q, seen.weight)

    def _expansion(
        self, prior: Any, sent: Broadcast, latent: Any, block: Block, student: bool
    ) -> MoveSums:
        """Return the sums that the move needs, or zeros in iterations without a move.

        Every other iteration has a move: it is damped in any case, and its sums cost as much as the
        products with x.
        """

        def sums() -> MoveSums:
            # the statistics have squares, too: but weighted by the rows' w, if these have any
            squares = jnp.square(prior.coefficients(latent)) @ block.weight if student else None
            return cast(MoveSums(prior.expansion(latent, block.weight), squares), float)

        nothing = cast(zeros_like_shapes(jax.eval_shape(sums)), float)
        return lax.cond(self.moves(sent.t), sums, lambda: nothing)

    def moves(self, t: Array) -> Array:
        return t % 2 == 0

    def shifts(self, plan: Plan, prior: Prior) -> bool:
        return plan.free_mean and prior.smooth and EXPANSION.of(prior)

    def move(
        self, plan: Plan, constants: Constants, state: State, averages: Totals, step: Array
    ) -> Move:
        statistics, expansion = averages.statistics, averages.expansion
        parameters, p = state.parameters, len(statistics.b)
        prior = parameters.prior
        if expansion is None:
            return no_move(p)
        squares = expansion.squares
        squares = jnp.diag(statistics.bb) if squares is None else squares
        expansion = prior.expansion_from_sums(expansion.prior)
        shift = location_step(expansion, step) if self.shifts(plan, prior) else jnp.zeros(p)
        pull, curvature, smooth = jnp.zeros((p, p)), jnp.zeros((p, p)), prior.smooth
        if plan.mixing is not None:
            # without a force the draws of A would wander about where their average is sought
            step = jnp.maximum(step, LEAST_STEP)
            pull, curvature = plan.mixing.pull(parameters, constants.total_weight)
            smooth = smooth and plan.mixing.smooth
        if smooth:
            rotation = jnp.minimum(step, 0.4)
        elif self.sampler == "metropolis":
            # zeros that a rotation destroys would stay destroyed where the next proposal is refused
            rotation = jnp.zeros(())
        else:
            rotation = constants.schedule.coarse_rotation(state.t)
            if plan.mixing is None or plan.mixing.smooth:
                rotation = jnp.maximum(rotation, prior.rotation_trust * jnp.minimum(step, 0.4))
        W = newton_rotation(expansion, pull, squares, step, rotation, curvature)
        if prior.single_scale:  # signs cannot turn: all coefficients of a row move with its scale
            W = jnp.diag(W).mean() * jnp.eye(p)
        return Move(W, shift)


@dataclasses.dataclass(frozen=True)
class Saem(StochasticEM):
    """SAEM: one draw per iteration, averaged over iterations with falling steps after burn-in."""

    name: ClassVar[str] = "saem"
    stops_by_itself: ClassVar[bool] = True

    def step_size(self, t: Array, schedule: Schedule) -> Array:
        return schedule.step_size(t)


@dataclasses.dataclass(frozen=True)
class MonteCarloEM(StochasticEM):
    """MCEM: the average over several draws per iteration."""

    multi_sweep: bool = True  # whether any iteration has more than one sweep
    name: ClassVar[str] = "mcem"
    several_draws: ClassVar[bool] = True

    @classmethod
    def from_settings(cls, sampler: str, draws: tuple[int, int]) -> Algorithm:
        return cls(sampler, max(draws) > 1)

    def expectation(
        self, plan: Plan, sent: Broadcast, block: Block, chain: Chain, sweep: Any = 0
    ) -> tuple[Chain, Totals]:
        if not self.multi_sweep:  # then no loop has to be compiled
            return super().expectation(plan, sent, block, chain)
        one_sweep = functools.partial(super().expectation, plan, sent, block)

        def again(k: Array, carry: tuple[Chain, Totals]) -> tuple[Chain, Totals]:
            chain, total = carry
            chain, new = one_sweep(chain, k)
            return chain, jax.tree.map(jnp.add, total, new)

        nothing = zeros_like_shapes(jax.eval_shape(one_sweep, chain)[1])
        chain, total = lax.fori_loop(0, sent.n_sweeps, again, (chain, nothing))
        return chain, jax.tree.map(lambda leaf: leaf / sent.n_sweeps, total)
