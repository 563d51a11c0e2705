"""An algorithm written outside of the package: SAEM whose sampler is heated at first.

Draws at a temperature above 1 leave poor starts more easily (Allassonniere and Chevallier, A new
class of stochastic EM algorithms, 2021). Where the temperature reaches 1 it is SAEM, with SAEM's
limit.
"""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp

from noisyica.engine.algorithms import TABLE, Saem
from noisyica.engine.state import Broadcast, Chain, Plan, Totals
from noisyica.rows.block import Block


@dataclasses.dataclass(frozen=True)
class TemperedSaem(Saem):
    """SAEM that samples with a temperature that falls evenly from ``heat`` to 1."""

    heat: float = 4.0
    until: int = 50  # the iteration at which the temperature is 1
    name: ClassVar[str] = "tempered-saem"

    def expectation(
        self, plan: Plan, sent: Broadcast, block: Block, chain: Chain, sweep: Any = 0
    ) -> tuple[Chain, Totals]:
        temperature = 1 + (self.heat - 1) * jnp.maximum(1 - sent.t / self.until, 0.0)
        hot = sent.parameters._replace(sigma2=sent.parameters.sigma2 * temperature)
        return super().expectation(plan, sent._replace(parameters=hot), block, chain, sweep)


TABLE[TemperedSaem.name] = TemperedSaem
