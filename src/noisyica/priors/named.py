"""The paper's priors with independent coefficients: Log, Lap, EG, IFA, BG, EBG and ET."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from noisyica import laws
from noisyica.laws import (
    Dirac,
    ExponentialNormal,
    FreeNormal,
    Law,
    Mixture,
    Normal,
    SymmetricNormals,
)
from noisyica.priors.base import as_pytree, probability
from noisyica.priors.independent import Independent


class _Named(Independent):
    """The base of independent priors whose parameters have names."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        as_pytree("law", static="components")(cls)


class Logistic(_Named):
    """Log-ICA: the logistic law of parameter 1/2, density sech(t)^2 / 2."""

    known_variance: ClassVar[float | None] = np.pi**2 / 12

    def __init__(self) -> None:
        super().__init__(laws.Logistic())


class Laplace(_Named):
    """Lap-ICA: the Laplace law, density ``exp(-|t|) / 2``."""

    known_variance: ClassVar[float | None] = 2.0

    def __init__(self) -> None:
        super().__init__(laws.Laplace())


class ExponentialGaussian(_Named):
    """EG-ICA: s Y with s exponential and Y standard normal, both new for each coefficient."""

    @property
    def known_variance(self) -> float | None:  # type: ignore[override]
        return 2.0 if self.law.location is None else None

    def __init__(self) -> None:
        super().__init__(ExponentialNormal())


class GaussianMixture(_Named):
    """IFA: N(0, 1) with weight w_0 and N(m_k, 1), N(-m_k, 1) with weight w_k / 2 each, k = 1..K.

    Parameters
    ----------
    means : sequence of K floats
        m_1 .. m_K.
    weights : sequence of K + 1 floats, summing to one
        w_0 .. w_K.
    shared : bool, default=True
        Whether means and weights are common to all components. If not, each component learns its
        own, beginning with these.
    symmetric : bool, default=True
        If not, there are no classes at -m_k: N(m_k, 1) has weight w_k, and m_k may have any sign.

    Examples
    --------
    >>> from noisyica.priors import GaussianMixture
    >>> prior = GaussianMixture((-2.0, 3.0), (0.6, 0.2, 0.2), shared=False, symmetric=False)
    >>> prior.for_components(4).means.shape
    (4, 2)
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("means", "weights")

    def __init__(
        self,
        means: Sequence[float] = (2.0,),
        weights: Sequence[float] = (0.5, 0.5),
        shared: bool = True,
        symmetric: bool = True,
    ) -> None:
        m, w = np.atleast_1d(np.asarray(means, float)), np.asarray(weights, float)
        if m.ndim != 1 or w.shape != (m.size + 1,):
            raise ValueError(
                "GaussianMixture takes K means and K + 1 weights (the first for the class at 0); "
                f"got {m.size} means and {w.size} weights."
            )
        if not (np.isfinite(m).all() and (w >= 0).all() and abs(w.sum() - 1) < 1e-6):
            raise ValueError(
                "GaussianMixture needs finite means and weights >= 0 that sum to one; got "
                f"means={means}, weights={weights}."
            )
        law = (
            SymmetricNormals(m, w)
            if symmetric
            else Mixture((Normal(), *(FreeNormal(mean) for mean in m)), w)
        )
        super().__init__(law, shared)

    @property
    def starts(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.components is None:
            return ("fastica",)
        # from a poor start, components that have classes of their own lose some of them
        return ("fastica", "pca", "rotation", "rotation")

    @property
    def means(self) -> np.ndarray:
        """The means m_1 .. m_K, of each component (a leading axis) where they are not shared."""
        law = self._normals
        if isinstance(law, SymmetricNormals):
            return np.asarray(law.means, float)
        return np.asarray(np.stack([normal.mean for normal in law.laws[1:]], -1), float)

    @property
    def weights(self) -> np.ndarray:
        """The weights w_0 .. w_K, of each component (a leading axis) where they are not shared."""
        return np.asarray(self._normals.weights, float)

    @property
    def _normals(self) -> Any:
        """The mixture of normals, without its shift if it has one."""
        return self.law.law if isinstance(self.law, laws.Shift) else self.law


class _Censored(_Named):
    """The base of priors of coefficients that are on with probability alpha, and zero otherwise.

    ``slab`` is the law of a coefficient that is on.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(self, slab: Law, alpha: float) -> None:
        alpha = probability("alpha", alpha, 1.0)
        super().__init__(Mixture((Dirac(), slab), (1 - alpha, alpha)))

    @property
    def alpha(self) -> float:
        """The probability that a coefficient is on."""
        return float(np.asarray(self.law.weights)[1])  # type: ignore[attr-defined]


class BernoulliGaussian(_Censored):
    """BG-ICA: N(shift, 1) with probability alpha, 0 otherwise."""

    def __init__(self, alpha: float = 0.5, shift: float = 0.0) -> None:
        if not np.isfinite(shift):
            raise ValueError(f"shift must be a finite number; got {shift}.")
        super().__init__(Normal(float(shift)), alpha)

    @property
    def shift(self) -> float:
        """The mean of a coefficient that is on."""
        return float(self.law.laws[1].mean)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        fixed = (
            f", shift={self.shift:.4g}"
            if self.components is None and self.law.location is None and self.shift
            else ""
        )
        return super().__repr__()[:-1] + fixed + ")"


class ExponentialBernoulliGaussian(_Censored):
    """EBG-ICA: s Y as in EG-ICA with probability alpha, 0 otherwise."""

    def __init__(self, alpha: float = 0.5) -> None:
        super().__init__(ExponentialNormal(), alpha)


class ExponentialTernary(_Named):
    """ET-ICA: s Y with s exponential and Y ternary, P(Y = 1) = P(Y = -1) = gamma.

    A coefficient is zero with probability 1 - 2 gamma, and otherwise has the Laplace law.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ("gamma",)

    def __init__(self, gamma: float = 0.25) -> None:
        gamma = probability("gamma", gamma, 0.5)
        super().__init__(Mixture((Dirac(), laws.Laplace()), (1 - 2 * gamma, 2 * gamma)))

    @property
    def gamma(self) -> float:
        """The probability of each sign, P(Y = 1) = P(Y = -1)."""
        return float(np.asarray(self.law.weights)[1]) / 2  # type: ignore[attr-defined]
