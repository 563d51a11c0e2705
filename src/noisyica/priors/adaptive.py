"""A prior whose law is learnt from the data: :class:`Adaptive`."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica.laws import Law, NormalScales
from noisyica.laws.normal_scales import gauged
from noisyica.laws.together import together
from noisyica.priors.base import as_pytree
from noisyica.priors.independent import Independent

SCALES = (0.0, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
"""The grid: an atom at 0, and normals whose scales double."""
FIRST = (0.25, 0.05, 0.1, 0.2, 0.25, 0.1, 0.04, 0.01)
"""The weights to begin with, which are those of a sparse law with heavy tails, about."""


@as_pytree("law", "pooling", static="components")
class Adaptive(Independent):
    """Independent coefficients whose law is learnt: zeros, and normals of many scales.

    Each component has weights of its own for an atom at 0 and for normals on a fixed grid of
    scales (:class:`noisyica.laws.NormalScales`), which come close to any symmetric law that falls
    off from 0: normal or heavy-tailed, with zeros or without. The weights of the components have a
    common Dirichlet law, whose mean and concentration are learnt, so that components learn from
    each other as much as they are alike.

    Parameters
    ----------
    scales : sequence of float
        The grid, in increasing order; 0 is an atom at 0. It has 1 inside.
    shared : bool, default=False
        Whether the weights are the same for all components.

    Examples
    --------
    >>> from noisyica.priors import Adaptive
    >>> prior = Adaptive()
    >>> prior.scales
    (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    """

    law: NormalScales
    pooling: Any
    """The share that the common weights have in those of each component, from 0 to 1."""
    parameter_names: ClassVar[tuple[str, ...]] = ("weights",)

    def __init__(self, scales: Any = SCALES, shared: bool = False) -> None:
        weights = np.interp(scales, SCALES, FIRST)
        weights = np.asarray(gauged(jnp.asarray(weights), scales, 0.0), float)
        super().__init__(NormalScales(scales, weights), shared)
        self.pooling = np.zeros(())

    def _with(self, law: Law, components: int | None) -> Adaptive:
        new: Any = super()._with(law, components)
        new.pooling = self.pooling
        return new

    @property
    def scales(self) -> tuple[float, ...]:
        """The grid of scales."""
        return self.law.scales

    @property
    def weights(self) -> np.ndarray:
        """The weight of each scale, of each component (a leading axis) once these are known."""
        return np.asarray(self.law.weights, float)

    def mstep(self, statistics: Any) -> Adaptive:
        new: Any = super().mstep(statistics)
        if self.components:
            share = together(jnp.stack(statistics, -1))[1]
            new.pooling = lax.stop_gradient(share)
        return new
