"""What tests share: laws and priors to test, simulated data, matching of components, quadrature."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from noisyica import Model, laws, priors
from noisyica._jax.compiling import Compiled
from noisyica.laws import (
    Dirac,
    Exponential,
    Law,
    LogDensity,
    Mixture,
    Normal,
    Scaled,
    ScaleMixture,
    Shift,
)
from tests.own_laws import ClosedNormal, SkewSecant


def _quartic(t):
    return -(t**4)


PRIOR_LAWS: dict[str, Law] = {
    name: cls().law for name, cls in priors.TABLE.items() if issubclass(cls, priors.Independent)
}
LAWS: dict[str, Law] = PRIOR_LAWS | {
    "normal": Normal(0.7, 1.3),
    "exponential": Exponential(1.5),
    "ifa-two": laws.SymmetricNormals((1.5, 3.0), (0.3, 0.4, 0.3)),
    "bg-shift": Mixture((Dirac(), Normal(2.0)), (0.6, 0.4)),
    # the quadrature of the tests cannot integrate over kinks off zero: these two have none there
    "shift": Shift(laws.Logistic(), 1.2),
    "two-slabs": Mixture((laws.Laplace(), Shift(laws.Logistic(), 2.0)), (0.5, 0.5)),
    "two-atoms": Mixture((Dirac(), Dirac(1.0), Normal()), (0.5, 0.2, 0.3)),
    "scale-mixture": ScaleMixture(Exponential(), Normal(0.5)),
    "log-density": LogDensity(_quartic),
    "scaled": Scaled(laws.Laplace(), 0.3),
    "normal-scales": laws.NormalScales((0.0, 0.2, 1.0, 3.0), (0.3, 0.3, 0.3, 0.1)),
    "smooth-scales": laws.NormalScales((0.1, 1.0, 4.0), (0.3, 0.5, 0.2)),
    "own": SkewSecant(0.4),
    "own-closed": ClosedNormal(),
}
"""All laws under test; the law of a new prior of the table is among them."""

TRUE_PRIORS = {
    "log": priors.Logistic(),
    "lap": priors.Laplace(),
    "eg": priors.ExponentialGaussian(),
    "ifa": priors.GaussianMixture((3.0,), (0.4, 0.6)),
    "bg": priors.BernoulliGaussian(0.3),
    "ebg": priors.ExponentialBernoulliGaussian(0.4),
    "et": priors.ExponentialTernary(0.2),
    "te": priors.SingleScaleTernary(0.2),
    "teoff": priors.SingleScaleTernaryOffset(0.2),
    "adaptive": priors.Adaptive(),
}
"""One prior of each kind of the table, to simulate from."""


def some_slow(names, *slow):
    """Names to parametrise a test by; the ``slow`` ones run with ``make test-all`` only."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in names]


def simulate(
    name: str, n: int = 1500, d: int = 48, p: int = 4, sigma: float = 0.3, seed: int = 0
) -> tuple[Model, np.ndarray]:
    rng = np.random.default_rng(seed)
    prior = TRUE_PRIORS.get(name) or priors.get(name)
    mixing = rng.normal(size=(d, p))
    mean = None if prior.has_offset else rng.normal(size=d)
    model = Model(mixing=mixing, mean=mean, noise_variance=sigma**2, prior=prior)
    return model, model.sample(n, random_state=seed)[0]


def matched_cosine(A: np.ndarray, B: np.ndarray) -> float:
    """Mean |cosine| of the columns after the best matching."""
    unit = [M / np.linalg.norm(M, axis=0) for M in (A, B)]
    cosine = np.abs(unit[0].T @ unit[1])
    return float(cosine[linear_sum_assignment(-cosine)].mean())


def _compiled(name):
    """A method of laws, compiled once for each structure of a law, not for each law and test.

    In single precision it is compiled as fits compile it.
    """
    method = Compiled(lambda law, *args: getattr(law, name)(*args))

    def ask(law, *args):
        fast_compile = law.compiles_fast or jnp.result_type(*jax.tree.leaves(args)) != jnp.float32
        return method.compiled(fast_compile)(law, *args)

    return ask


log_normaliser, moments, best, draw, log_density, penalty = map(
    _compiled, ("log_normaliser", "moments", "best", "draw", "log_density", "penalty")
)


def tilt_exists(law: Law, a: float, b: float) -> bool:
    """Whether exp(-a t^2/2 + b t) has a finite integral: for a = 0 that depends on the tails."""
    if a > 0 or b == 0:
        return True
    inner = {
        type(x).__name__
        for x in jax.tree.leaves(law, is_leaf=lambda x: isinstance(x, Law) and x is not law)
    } | {type(law).__name__}
    if inner & {"ExponentialNormal", "ScaleMixture"}:
        return False
    exponential_tails = {"Laplace", "Exponential", "Logistic", "Shift", "SkewSecant"}
    return abs(b) < 0.6 or not inner & exponential_tails


def quadrature(law: Law, a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and log masses of the tilted law, and its atoms.

    It is the trapezoid rule in log |t| on each half-line, with 2,501 nodes where the mass is. It
    uses log_density alone, and is independent of the laws' own integration.
    """

    def log_mass(w, sign):
        t = sign * np.exp(w)
        with np.errstate(all="ignore"):
            value = np.asarray(log_density(law, jnp.asarray(t)), float) + (b - 0.5 * a * t) * t + w
        return np.where(np.isnan(value), -np.inf, value)

    points, masses = [], []
    for sign in (1.0, -1.0):
        low, high = -60.0, 60.0
        for _ in range(12):
            w = np.linspace(low, high, 801)
            value = log_mass(w, sign)
            if value.max() == -np.inf:
                break
            inside = np.flatnonzero(value > value.max() - 45)
            low, high = w[max(inside[0] - 1, 0)], w[min(inside[-1] + 1, 800)]
        w = np.linspace(low, high, 2501)
        points.append(sign * np.exp(w))
        masses.append(log_mass(w, sign) + np.log(w[1] - w[0]))
    for weight, part in law.parts():
        if part.atom is not None:
            x = float(part.atom)
            points.append(np.array([x]))
            masses.append(np.array([np.log(float(weight)) + (b - 0.5 * a * x) * x]))
    return np.concatenate(points), np.concatenate(masses)


def atoms_of(law: Law) -> np.ndarray:
    """The points that have mass."""
    return np.array([float(part.atom) for _, part in law.parts() if part.atom is not None])


def quadrature_moments(law: Law, a: float, b: float) -> tuple[float, float, float]:
    """Log normaliser, mean and variance."""
    t, logs = quadrature(law, a, b)
    top = logs.max()
    weight = np.exp(logs - top)
    total = weight.sum()
    mean = (weight * t).sum() / total
    return float(top + np.log(total)), float(mean), float((weight * (t - mean) ** 2).sum() / total)
