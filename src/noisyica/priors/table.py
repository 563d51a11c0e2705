"""The short names of priors: the paper's nine, and the prior whose law is learnt."""

from __future__ import annotations

from noisyica.laws import Law
from noisyica.priors.adaptive import Adaptive
from noisyica.priors.base import Prior
from noisyica.priors.independent import Independent
from noisyica.priors.named import (
    BernoulliGaussian,
    ExponentialBernoulliGaussian,
    ExponentialGaussian,
    ExponentialTernary,
    GaussianMixture,
    Laplace,
    Logistic,
)
from noisyica.priors.ternary import SingleScaleTernary
from noisyica.priors.ternary_offset import SingleScaleTernaryOffset

TABLE: dict[str, type[Prior]] = {
    "log": Logistic,
    "lap": Laplace,
    "eg": ExponentialGaussian,
    "ifa": GaussianMixture,
    "bg": BernoulliGaussian,
    "ebg": ExponentialBernoulliGaussian,
    "et": ExponentialTernary,
    "te": SingleScaleTernary,
    "teoff": SingleScaleTernaryOffset,
    "adaptive": Adaptive,
}
"""The paper's nine priors by their short names, and the prior whose law is learnt."""
PAPER: tuple[str, ...] = tuple(name for name in TABLE if name != "adaptive")
"""The names of the paper's nine."""


def get(prior: str | Prior | Law) -> Prior:
    """Return the prior that a short name, a law or a prior stands for.

    Examples
    --------
    >>> from noisyica import priors
    >>> priors.get("te")
    SingleScaleTernary(gamma=0.25)
    """
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, Law):
        return Independent(prior)
    if isinstance(prior, str) and prior in TABLE:
        return TABLE[prior]()
    names = ", ".join(repr(name) for name in TABLE)
    if isinstance(prior, str):
        raise ValueError(
            f"Unknown prior {prior!r}. Choose one of {names}, or give an object of "
            "noisyica.priors or noisyica.laws."
        )
    raise TypeError(
        f"prior must be one of {names}, or an object of noisyica.priors or noisyica.laws; got "
        f"{type(prior).__name__}."
    )
