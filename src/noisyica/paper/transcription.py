"""The paper's algorithm (SAEM) in plain NumPy, as the paper writes it.

It is here to be read, and to have something to measure the library's speed against. The model is
x = mean + A beta + sigma eps for each row x of n, with d numbers per row and p components. Each
iteration has three steps:

1. *Simulation.* The hidden variables behind beta (beta itself, and switches or classes where the
   prior has them) are drawn by Metropolis steps: the variables of one component are proposed from
   the prior, and accepted with the ratio of the likelihoods of x (the paper's Section 3.3). The
   components take turns; the rows are independent and move all at once.
2. *Stochastic approximation.* The sufficient statistics of the completed data are mixed into their
   running averages. The weight of the newest is the step size.
3. *Maximisation.* The parameters become those that maximise the likelihood of the completed data
   for these averages. They have a closed form (the paper's appendix).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

Hidden = dict[str, np.ndarray]
"""Hidden variables by name, (n,) for one component or (n, p) for all; "beta" is always there."""

SMALLEST_SHARE = 0.01
"""Probabilities are kept this far from 0 and 1, so that no state is ruled out for ever."""


# ------------------------------------------------------------------------------------- priors


class Prior(Protocol):
    """What the algorithm needs to know of the law of the coefficients."""

    def draw(self, rng: np.random.Generator, n: int) -> Hidden:
        """Draw the hidden variables of one component from the prior, for n rows."""

    def statistics(self, hidden: Hidden) -> np.ndarray:
        """Compute the sufficient statistics of the prior's own parameters."""

    def maximised(self, averages: np.ndarray) -> Prior:
        """Return the prior with its most likely parameters, given averages of its statistics."""


@dataclass(frozen=True)
class Logistic:
    """The logistic law of scale 1/2, which has no parameters to learn."""

    def draw(self, rng: np.random.Generator, n: int) -> Hidden:
        return {"beta": rng.logistic(scale=0.5, size=n)}

    def statistics(self, hidden: Hidden) -> np.ndarray:
        return np.empty(0)

    def maximised(self, averages: np.ndarray) -> Logistic:
        return self


@dataclass(frozen=True)
class BernoulliGaussian:
    """A coefficient is standard normal ("on") with probability alpha, and 0 otherwise."""

    alpha: float = 0.5

    def draw(self, rng: np.random.Generator, n: int) -> Hidden:
        on = rng.random(n) < self.alpha
        return {"beta": on * rng.normal(size=n), "on": on}

    def statistics(self, hidden: Hidden) -> np.ndarray:
        return np.array([hidden["on"].mean()])

    def maximised(self, averages: np.ndarray) -> BernoulliGaussian:
        (share_on,) = averages
        return BernoulliGaussian(_inside(share_on))


@dataclass(frozen=True)
class Mixture:
    """The paper's IFA law with three normal classes, of variance 1 and centres -c, 0 and c.

    A coefficient is of one of the two outer classes, equally probable, with probability ``weight``.
    """

    weight: float = 0.5
    centre: float = 2.0

    def draw(self, rng: np.random.Generator, n: int) -> Hidden:
        outer = rng.random(n) < self.weight
        sign = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        beta = rng.normal(size=n) + outer * sign * self.centre
        return {"beta": beta, "outer": outer, "sign": sign}

    def statistics(self, hidden: Hidden) -> np.ndarray:
        outer, signed = hidden["outer"], hidden["sign"] * hidden["beta"]
        return np.array([outer.mean(), (outer * signed).mean()])

    def maximised(self, averages: np.ndarray) -> Mixture:
        share_outer, sum_outer = averages
        return Mixture(_inside(share_outer), float(sum_outer / max(share_outer, 1e-6)))


def _inside(share: np.floating) -> float:
    return float(share.clip(SMALLEST_SHARE, 1 - SMALLEST_SHARE))


PRIORS: dict[str, Prior] = {"log": Logistic(), "bg": BernoulliGaussian(), "ifa": Mixture()}
"""The priors by their short names, with the parameters that they start from."""


# -------------------------------------------------------------------------------- the algorithm


class Parameters(NamedTuple):
    """All that is learnt."""

    mean: np.ndarray  # (d,)
    A: np.ndarray  # (d, p)
    noise_variance: float
    prior: Prior


class Statistics(NamedTuple):
    """Averages over the rows, where (1, beta) is beta with a leading 1 for the mean."""

    moments: np.ndarray  # of (1, beta) (1, beta)', (1 + p, 1 + p)
    products: np.ndarray  # of x (1, beta)', (d, 1 + p)
    of_prior: np.ndarray


def saem(
    X: np.ndarray, A: np.ndarray, prior: str, iterations: int, seed: int
) -> tuple[np.ndarray, float]:
    """Learn the mixing matrix and the noise variance from the rows of X.

    Parameters
    ----------
    X : array (n, d)
    A : array (d, p)
        The mixing matrix to start from.
    prior : {"log", "bg", "ifa"}
    iterations : int
        The number of iterations. The first half is burn-in.
    seed : int
        The random seed.

    Returns
    -------
    A : array (d, p)
    noise_variance : float
    """
    rng = np.random.default_rng(seed)
    parameters = Parameters(X.mean(0), A, float(X.var()), PRIORS[prior])
    hidden = _drawn_from_prior(rng, len(X), parameters)
    averages: Statistics | None = None
    for t in range(iterations):
        simulate(rng, X, hidden, parameters)
        newest = statistics(X, hidden, parameters.prior)
        averages = approximate(averages or newest, newest, step_size(t, iterations // 2))
        parameters = maximise(X, averages, parameters.prior)
    return parameters.A, parameters.noise_variance


def step_size(t: int, burn_in: int) -> float:
    """Return the step size of iteration t: 1 in burn-in, then (t - burn_in)^-0.9."""
    return 1.0 if t <= burn_in else (t - burn_in) ** -0.9


def simulate(
    rng: np.random.Generator, X: np.ndarray, hidden: Hidden, parameters: Parameters
) -> None:
    """Move the hidden variables (in place) by one Metropolis step per component."""
    n = len(X)
    A, beta = parameters.A, hidden["beta"]
    residual = X - parameters.mean - beta @ A.T
    for j in range(A.shape[1]):
        proposed = parameters.prior.draw(rng, n)
        residual_proposed = residual - np.outer(proposed["beta"] - beta[:, j], A[:, j])
        gain = np.square(residual).sum(1) - np.square(residual_proposed).sum(1)
        accepted = np.log(rng.random(n)) < gain / (2 * parameters.noise_variance)
        for name, values in proposed.items():
            hidden[name][accepted, j] = values[accepted]
        residual[accepted] = residual_proposed[accepted]


def statistics(X: np.ndarray, hidden: Hidden, prior: Prior) -> Statistics:
    """Compute the sufficient statistics of the completed data."""
    n = len(X)
    with_one = np.column_stack([np.ones(n), hidden["beta"]])
    return Statistics(with_one.T @ with_one / n, X.T @ with_one / n, prior.statistics(hidden))


def approximate(averages: Statistics, newest: Statistics, step: float) -> Statistics:
    """Move the running averages towards the newest statistics by the step size."""
    return Statistics(
        *(old + step * (new - old) for old, new in zip(averages, newest, strict=True))
    )


def maximise(X: np.ndarray, averages: Statistics, prior: Prior) -> Parameters:
    """Compute the most likely parameters: a regression of x on (1, beta), and its residual."""
    n, d = X.shape
    moments, products, of_prior = averages
    coefficients = np.linalg.solve(moments, products.T).T
    residual = (
        np.square(X).sum() / n
        - 2 * (coefficients * products).sum()
        + ((coefficients.T @ coefficients) * moments).sum()
    )
    mean, A = coefficients[:, 0], coefficients[:, 1:]
    return Parameters(mean, A, float(residual / d), prior.maximised(of_prior))


def _drawn_from_prior(rng: np.random.Generator, n: int, parameters: Parameters) -> Hidden:
    """Draw the hidden variables of all components from the prior, where the chains begin."""
    components = [parameters.prior.draw(rng, n) for _ in range(parameters.A.shape[1])]
    return {name: np.stack([each[name] for each in components], 1) for name in components[0]}
