"""FAM-EM: the paper's approximation of EM by the most probable coefficients."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from noisyica._jax.arrays import cast
from noisyica.engine.algorithms.base import Algorithm
from noisyica.engine.expansion import Move
from noisyica.engine.state import IMPUTATION, Broadcast, Chain, Constants, Plan, State, Totals
from noisyica.engine.statistics import collect
from noisyica.posterior.parameters import channel, impute
from noisyica.priors import EXPANSION, MODE, Prior
from noisyica.rows.block import Block

Array = jax.Array

MODE_SWEEPS = 5
"""The number of sweeps per iteration, each of which sets all coefficients to conditional modes.

They begin where the last iteration ended."""


@dataclasses.dataclass(frozen=True)
class ModeEM(Algorithm):
    """FAM-EM: the statistics at the mode, and the coefficients' mean square held at the prior's."""

    name: ClassVar[str] = "fam-em"
    stochastic: ClassVar[bool] = False
    at_mode: ClassVar[bool] = True

    def check(self, prior: Prior, p: int, missing: bool) -> None:
        MODE.require(prior)
        EXPANSION.require(prior)
        if prior.unshifted[0] is not prior:
            raise ValueError(
                f"algorithm='fam-em' does not learn {prior!r}: at the mode, all coefficients would "
                "be off its shift in the end. Take 'saem', 'mcem' or 'sem'."
            )

    def expectation(
        self, plan: Plan, sent: Broadcast, block: Block, chain: Chain
    ) -> tuple[Chain, Totals]:
        prior: Any = cast(sent.parameters.prior, plan.dtype)
        rows = chain.fill(block)
        seen = channel(sent.parameters, rows.x)
        latent = lax.fori_loop(
            0, MODE_SWEEPS, lambda _, latent: prior.ascend(latent, seen), chain.latent
        )
        if chain.x is not None:
            rows = impute(sent.row_keys(block, IMPUTATION), sent.parameters, latent, block)
            chain = chain._replace(x=rows.x)
        totals = Totals(block.weight.sum(dtype=float), collect(prior, latent, rows))
        return chain._replace(latent=latent), totals

    def moves(self, t: Array) -> Array:
        return jnp.ones((), bool)

    def move(
        self, plan: Plan, constants: Constants, state: State, averages: Totals, step: Array
    ) -> Move:
        # (A, beta) -> (c A, beta / c) with c > 1 always raises the joint density of x and beta: the
        # scale is not determined, and is held where the coefficients have the prior's mean square
        p, prior = len(averages.statistics.b), MODE.require(state.parameters.prior)
        total = jnp.maximum(jnp.trace(averages.statistics.bb), 1e-300)
        scale = jnp.sqrt(prior.mean_square() * p / total)
        return Move(jnp.eye(p) * scale, jnp.zeros(p))
