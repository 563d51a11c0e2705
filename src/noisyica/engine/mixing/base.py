"""The base of all priors of a hidden mixing matrix."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import jax
import numpy as np

from noisyica._jax.arrays import to_numpy
from noisyica.engine.statistics import Mixing, Statistics
from noisyica.laws import Law, Scaled
from noisyica.posterior.parameters import Parameters
from noisyica.priors import Independent

Array = jax.Array


class MixingPrior(abc.ABC):
    """A prior of the mixing matrix A as a value: a frozen dataclass, compared by its fields.

    It is compiled in. What is learnt of it (scales and weights of A's columns) are parameters of
    the model, ``parameters.mixing``. A is then part of the complete data: it is drawn given the
    coefficients, and its moments are averaged over iterations.
    """

    smooth: ClassVar[bool] = True
    """Whether :meth:`pull` is the gradient of the prior's own log density."""
    normal: ClassVar[bool] = False
    """Whether entries are normal, so that the columns of A hardly tell rotations apart."""
    compiles_fast: ClassVar[bool] = True
    """Whether code that is compiled fast draws A as fast (:class:`noisyica._jax.compiling`)."""
    starts: ClassVar[tuple[str, ...]] = ()
    """Further starts of :mod:`noisyica.rows.starts` that suit this prior."""

    @abc.abstractmethod
    def begin(self, parameters: Parameters, floor: Any, count: Any) -> Any:
        """Return the parameters of the prior for a run that begins at ``parameters.A``.

        ``floor`` is the minimum noise variance, ``count`` the number of rows.
        """

    @abc.abstractmethod
    def draw(
        self,
        key: Array,
        statistics: Statistics,
        parameters: Parameters,
        count: Array,
        free_mean: bool,
    ) -> tuple[Array, Mixing]:
        """Draw A given the coefficients of ``count`` rows; return the draw and A's moments."""

    @abc.abstractmethod
    def mstep(self, mixing: Mixing, old: Any, floor: Array) -> Any:
        """Return the prior's parameters of maximum likelihood, given averages of A's moments."""

    @abc.abstractmethod
    def pull(self, parameters: Parameters, count: Array) -> tuple[Array, Array]:
        """Return what A's prior says of rotations beta -> W beta, A -> A W^-1, per row.

        They are the gradient and the curvature, (p, p), that parameter expansion adds to those of
        the coefficients' prior (:mod:`noisyica.engine.expansion`).
        """

    def log_density(self, parameters: Parameters, mixing: Mixing) -> float:
        """Return what A's prior says of a run, as far as it tells starts and runs apart.

        It is the log density of A or, where the moments of A tell it, a bound on the probability of
        what the rows say of A.
        """
        return 0.0

    @abc.abstractmethod
    def learnt(self, parameters: Parameters, unit: float, order: np.ndarray) -> Any:
        """Return the prior of the entries of the components of that order, in units of X."""


def unit_prior(law: Law, p: int) -> Independent:
    """Return the prior of p columns with this law, whose scales are to be learnt."""
    prior = Independent(Scaled(law), shared=False).for_components(p)
    return to_numpy(prior)


def with_scale(prior: Any, scale: Any) -> Any:
    """Return the prior with other scales (p,) of the columns."""
    return prior._with(dataclasses.replace(prior.law, scale=scale), prior.components)
