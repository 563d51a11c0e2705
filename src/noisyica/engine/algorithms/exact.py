"""EM with the exact expectation, where the discrete variables can be enumerated."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from noisyica.engine.algorithms.base import Algorithm
from noisyica.engine.state import Broadcast, Chain, Plan, Totals
from noisyica.engine.statistics import without_offset
from noisyica.posterior import enumeration
from noisyica.priors import Prior
from noisyica.rows.block import Block


@dataclasses.dataclass(frozen=True)
class ExactEM(Algorithm):
    """EM: the expected statistics by enumeration, and steps that never lower the likelihood."""

    name: ClassVar[str] = "em"
    stochastic: ClassVar[bool] = False

    def check(self, prior: Prior, p: int, missing: bool) -> None:
        enumeration.check(prior, p)
        if missing:
            raise ValueError(
                "algorithm='em' takes no missing values: the others do ('saem', 'mcem', 'fam-em')."
            )

    def expectation(
        self, plan: Plan, sent: Broadcast, block: Block, chain: Chain
    ) -> tuple[Chain, Totals]:
        moments, _ = enumeration.expectation(sent.parameters, block.x, block.weight)
        statistics = without_offset(block, *moments)
        return chain, Totals(block.weight.sum(dtype=float), statistics)
