"""The base of all algorithms: expectation, steps, and the moves of the coefficients."""

from __future__ import annotations

import abc
from typing import ClassVar

import jax
import jax.numpy as jnp

from noisyica.engine.expansion import Move, no_move
from noisyica.engine.state import Broadcast, Chain, Constants, Plan, Schedule, State, Totals
from noisyica.priors import Prior
from noisyica.rows.block import Block

Array = jax.Array


class Algorithm(abc.ABC):
    """An algorithm as a value: a frozen dataclass, compared and hashed by its fields.

    It is compiled in: each value is compiled once.

    The loop asks it for everything in which algorithms differ. A new one is a subclass, and a line
    in ``noisyica.engine.algorithms.TABLE``; ``expectation`` is all that it has to give.
    """

    name: ClassVar[str]
    stochastic: ClassVar[bool] = True
    """Whether coefficients are drawn, rather than integrated out or set to their mode."""
    at_mode: ClassVar[bool] = False
    """Whether coefficients are set to their mode, which knows nothing of how uncertain they are."""
    several_draws: ClassVar[bool] = False
    """Whether the setting ``n_draws`` applies: iterations may have more than one sweep."""
    stops_by_itself: ClassVar[bool] = False
    """Whether the stopping rule applies (:class:`noisyica.engine.convergence.Monitor`).

    It needs falling steps, and draws whose summaries come to rest."""

    @classmethod
    def from_settings(cls, sampler: str, draws: tuple[int, int]) -> Algorithm:
        """Make the algorithm that an estimator's settings stand for."""
        return cls()

    def check(self, prior: Prior, p: int, missing: bool) -> None:  # noqa: B027
        """Raise an error where the algorithm cannot learn p components with this prior."""

    @abc.abstractmethod
    def expectation(
        self, plan: Plan, sent: Broadcast, block: Block, chain: Chain
    ) -> tuple[Chain, Totals]:
        """Return the chain of a block after this iteration, and the sums of its statistics."""

    def step_size(self, t: Array, schedule: Schedule) -> Array:
        """Return how far the statistics move towards this iteration's, from 0 to 1."""
        return jnp.ones(())

    def moves(self, t: Array) -> Array:
        """Return whether the coefficients move after iteration t."""
        return jnp.zeros((), bool)

    def shifts(self, plan: Plan, prior: Prior) -> bool:
        """Return whether a move may shift the coefficients, and the mean with them."""
        return False

    def move(
        self, plan: Plan, constants: Constants, state: State, averages: Totals, step: Array
    ) -> Move:
        """Return the move of the coefficients, which is used where ``moves`` is true."""
        return no_move(len(averages.statistics.b))
