"""What the setting of the mean makes of a prior: a shift of its coefficients, or random offsets."""

from __future__ import annotations

from collections.abc import Callable

from noisyica.priors import Offset, Prior, Shifted

SHIFTS: dict[str, Callable[[Prior], Prior]] = {
    "shift": lambda prior: prior.shifted(),
    # nothing comes between a smooth law and its coefficients: it has one shift only
    "shift-after": lambda prior: prior.shifted() if prior.smooth else Shifted(prior),
}
"""Settings with which the coefficients have a location that is learnt."""
OFFSETS: dict[str, str] = {"offset": "laplace", "offset-logistic": "logistic"}
"""Settings with which each row has a random offset, and the law of the offsets."""
MEANS: tuple[str, ...] = ("free", "zero", *SHIFTS, *OFFSETS)
"""What the setting may be."""


def shifted(prior: Prior, mean: str) -> Prior:
    """Return the prior with the shift that the setting stands for, if it does for one."""
    return SHIFTS[mean](prior) if mean in SHIFTS else prior


def with_offset(prior: Prior, mean: str, scale: float) -> Prior:
    """Return the prior with the offset that the setting stands for, unless it has one already."""
    if mean not in OFFSETS or prior.has_offset:
        return prior
    return Offset(prior, scale, OFFSETS[mean])
