"""The prior of TEoff-ICA: signs times one scale per row, and a random offset."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.typing import ArrayLike

from noisyica.priors.base import Prior, as_pytree
from noisyica.priors.offset import Offset
from noisyica.priors.ternary import SingleScaleTernary


@as_pytree("prior", "offset_scale", static="learns_offset")
class SingleScaleTernaryOffset(Offset):
    """TEoff-ICA: TE-ICA plus a Laplacian offset mu on all of x, and no mu0.

    Parameters
    ----------
    gamma : float
    offset_scale : float, optional
        The mean of ``|mu|``, in the units of x. By default it is learnt, beginning with the size of
        the rows' means (and it is 1 in a model that was not learnt). A number is kept as it is: the
        paper takes 1.
    """

    learns_offset: bool

    def __init__(self, gamma: float = 0.25, offset_scale: float | None = None) -> None:
        super().__init__(SingleScaleTernary(gamma), 1.0 if offset_scale is None else offset_scale)
        self.learns_offset = offset_scale is None

    def _with(self, prior: Prior, offset_scale: ArrayLike) -> SingleScaleTernaryOffset:
        new = super()._with(prior, offset_scale)
        new.learns_offset = self.learns_offset
        return new

    @property
    def begins_with_rows(self) -> bool:  # type: ignore[override]
        return self.learns_offset

    @property
    def gamma(self) -> float:
        """P(Y = 1) = P(Y = -1)."""
        return float(self.prior.gamma)

    def plain_fields(self) -> dict[str, Any]:
        scale = float(np.asarray(self.offset_scale))
        return {
            "gamma": self.gamma,
            "offset_scale": scale,
            "learns_offset": int(self.learns_offset),
        }

    @classmethod
    def from_plain_fields(cls, fields: dict[str, Any]) -> SingleScaleTernaryOffset:
        prior = cls(fields["gamma"], fields["offset_scale"])
        # files of earlier versions do not say: the scale was not learnt
        prior.learns_offset = bool(fields.get("learns_offset", False))
        return prior

    def mstep(self, statistics: Any) -> SingleScaleTernaryOffset:
        learnt = super().mstep(statistics)
        return learnt if self.learns_offset else self._with(learnt.prior, self.offset_scale)

    @property
    def n_parameters(self) -> int:
        return self.prior.n_parameters + self.learns_offset

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return super().parameters if self.learns_offset else self.prior.parameters

    def __repr__(self) -> str:
        scale = np.asarray(self.offset_scale).item()
        return f"{type(self).__name__}(gamma={self.gamma:.4g}, offset_scale={scale:.4g})"
