"""Whether the likelihood's stated error is right: easy and hard models of all nine priors.

    python benchmarks/likelihood.py [--models 200] [--rows 12] [--seed 0]

Each model has random components, a mean (or an offset per row), and noise whose variance differs
between columns by a factor of up to a million; scales of x lie between 1e-6 and 1e6. The answer of
``Model.log_likelihood`` is compared with the exact one where states can be enumerated; for TE-ICA
with an offset and eight components or fewer with the sum over all signs, the scale being integrated
out in closed form and the offset by quadrature; for coefficients with atoms and three components by
enumeration of the atoms, the other coefficients being integrated out by importance sampling; and
otherwise with a run of another random seed that has 16 times as many draws.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, logsumexp

from noisyica import Model, priors
from noisyica.posterior.enumeration import LIKELIHOOD_STATES, count_states

SHAPES = ((8, 3), (16, 8), (40, 20))
NAMES = ("log", "lap", "eg", "ifa", "bg", "ebg", "et", "te", "teoff")


def random_prior(name: str, rng: np.random.Generator) -> priors.Prior:
    """Return a prior with random parameters."""
    if name == "ifa":
        return priors.GaussianMixture((rng.uniform(1, 4),), (0.5, 0.5))
    if name == "bg":
        return priors.BernoulliGaussian(rng.uniform(0.1, 0.9))
    if name == "ebg":
        return priors.ExponentialBernoulliGaussian(rng.uniform(0.1, 0.9))
    if name == "et":
        return priors.ExponentialTernary(rng.uniform(0.05, 0.45))
    if name == "te":
        return priors.SingleScaleTernary(rng.uniform(0.05, 0.45))
    return priors.get(name)


def random_model(rng: np.random.Generator) -> tuple[str, Model]:
    """Return the name of a prior, and a model with it."""
    name = str(rng.choice(NAMES))
    d, p = SHAPES[rng.integers(len(SHAPES))]
    scale = 10 ** rng.uniform(-6, 6)
    ratio = 10 ** rng.choice([0.0, 2.0, 4.0, 6.0])
    sigma = rng.choice([0.2, 0.5, 1.0])
    noise = (
        sigma**2 * ratio ** -rng.uniform(0, 1, d) if rng.uniform() < 0.5 else np.full(d, sigma**2)
    )
    noise[: rng.integers(0, 3)] /= ratio
    prior = random_prior(name, rng)
    mean = None
    if name == "teoff":
        prior = priors.SingleScaleTernaryOffset(0.25, scale * 10 ** rng.uniform(-1, 1))
    elif rng.uniform() < 0.2:
        prior = priors.Offset(prior, scale * 10 ** rng.uniform(-1, 1))
    else:
        mean = scale * rng.normal(size=d)
    return name, Model(scale * rng.normal(size=(d, p)), mean, scale**2 * noise, prior)


def reference(model: Model, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """Return log p(x) of each row, its error, and how it was found."""
    p = model.mixing.shape[1]
    states = count_states(model.prior, p)
    if states is not None and states <= LIKELIHOOD_STATES:
        return model.log_likelihood(X, method="exact"), np.zeros(len(X)), "enumeration"
    if model.prior.single_scale and p <= 8:
        return over_signs(model, X), np.zeros(len(X)), "signs enumerated"
    law = model.prior.law_of(0)
    atoms = law is not None and any(part.atom is not None for _, part in law.parts())
    if atoms and p <= 3:
        return (*over_atoms(model, X), "atoms enumerated")
    value, error = model.log_likelihood(
        X, method="sequential", n_particles=1024, random_state=99, return_std=True, verbose=False
    )
    return value, error, "long run"


def over_signs(model: Model, X: np.ndarray) -> np.ndarray:
    """Return log p(x) under TE-ICA with an offset, all signs being enumerated.

    In extended precision, where the machine has it: terms may be 1e15 times their sum.
    """
    d, p = model.mixing.shape
    gamma, scale = model.prior.prior.gamma, float(model.prior.offset_scale)
    noise = np.broadcast_to(model.noise_variance, d).astype(np.longdouble)
    y = np.array(list(itertools.product((-1, 0, 1), repeat=p)))
    on = np.abs(y).sum(1)
    weights = on * np.log(gamma) + (p - on) * np.log(1 - 2 * gamma)
    mixed = y @ model.mixing.T  # what a scale of 1 adds to x, (patterns, d)
    a, slope, own = (mixed**2 / noise).sum(1), (mixed / noise).sum(1), (1 / noise).sum()

    def log_likelihood(x: np.ndarray) -> float:
        c, linear = (mixed / noise) @ x, (x / noise).sum()

        def log_term(mu: np.ndarray) -> np.ndarray:
            """Return the log of each pattern's integrand, the scale integrated out."""
            known = c - slope * mu - 1
            root = np.sqrt(np.where(a > 0, a, 1.0))
            integral = 0.5 * (known / root) ** 2 + log_ndtr((known / root).astype(float))
            integral = np.where(a > 0, integral + 0.5 * np.log(2 * np.pi) - np.log(root), 0.0)
            return integral + mu * (linear - 0.5 * own * mu) - np.abs(mu) / scale

        constant = -0.5 * (x**2 / noise + np.log(2 * np.pi * noise)).sum() - np.log(2 * scale)
        terms = weights + log_integrals(log_term, len(y), scale)
        return float(constant + terms.max() + np.log(np.exp(terms - terms.max()).sum()))

    return np.array([log_likelihood(x) for x in X.astype(np.longdouble)])


def log_integrals(log_f: Callable, count: int, scale: float) -> np.ndarray:
    """Return the logs of the integrals of functions whose logs are concave, but for a kink at 0.

    Each is integrated over where it is more than exp(-45) of its maximum, in pieces that end at the
    kink and at the maximum.
    """
    low, high = np.full((2, count), [[-1e4 * scale], [1e4 * scale]], np.longdouble)
    for _ in range(150):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        rises = log_f(left) < log_f(right)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    mode = (low + high) / 2
    top = log_f(mode)
    ends = []
    for side in (-1e4 * scale, 1e4 * scale):
        inside, outside = mode, np.full(count, side, np.longdouble)
        for _ in range(100):
            middle = (inside + outside) / 2
            keeps = log_f(middle) > top - 45
            inside, outside = np.where(keeps, middle, inside), np.where(keeps, outside, middle)
        ends.append(outside)
    kink = np.clip(0.0, *ends)
    pieces = [ends[0], np.minimum(mode, kink), np.maximum(mode, kink), ends[1]]
    nodes, weights = np.polynomial.legendre.leggauss(60)
    total = np.zeros(count, np.longdouble)
    for begin, end in itertools.pairwise(pieces):
        half = (end - begin) / 2
        for node, weight in zip(nodes, weights, strict=True):
            total += weight * half * np.exp(log_f(begin + half * (1 + node)) - top)
    return top + np.log(total)


def over_atoms(model: Model, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(x), all patterns of atoms being enumerated, for an atom at 0 and one slab."""
    (off, _), (on, slab) = model.prior.law_of(0).parts()
    values, errors = [], []
    for pattern in itertools.product((False, True), repeat=model.mixing.shape[1]):
        k = sum(pattern)
        inner = priors.Independent(slab)
        if model.prior.has_offset:
            inner = priors.Offset(inner, float(model.prior.offset_scale))
        columns = list(pattern) if k else [True] + [False] * (len(pattern) - 1)
        A = model.mixing[:, columns] * (1.0 if k else 1e-30)
        part = Model(A, None if inner.has_offset else model.mean, model.noise_variance, inner)
        value, error = part.log_likelihood(
            X, method="sequential", n_particles=512, random_state=7, return_std=True, verbose=False
        )
        values.append(value + k * np.log(on) + (len(pattern) - k) * np.log(off))
        errors.append(error)
    total = logsumexp(values, axis=0)
    shares = np.exp(np.array(values) - total)
    return total, np.sqrt((np.square(shares * np.array(errors))).sum(0))


def main() -> None:
    """Print a line for each model, and how often the error was within what was stated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    warnings.simplefilter("ignore", RuntimeWarning)
    within, worst, infinite, rows = 0, 0.0, 0, 0
    for number in range(options.models):
        name, model = random_model(rng)
        X, _ = model.sample(options.rows, random_state=number)
        begin = time.perf_counter()
        value, error = model.log_likelihood(X, return_std=True, verbose=False, method="sequential")
        seconds = time.perf_counter() - begin
        truth, own, how = reference(model, X)
        off = np.abs(value - truth)
        stated = np.hypot(error, own)
        within += int((off <= 4 * stated + 1e-9 * np.abs(truth)).sum())
        infinite += int(np.isinf(stated).sum())
        rows += len(X)
        wrong = np.where(stated < 0.5, off, 0.0).max()
        worst = max(worst, wrong)
        d, p = model.mixing.shape
        print(
            f"{number:3d} {name:5s} d={d} p={p:2d} offset={model.prior.has_offset:d} "
            f"stated {np.median(error):.3f} (max {error.max():.2f}) off by at most {off.max():.3f} "
            f"({np.max(off / np.maximum(stated, 1e-6)):.1f} errors; {how}) {seconds:.1f} s",
            flush=True,
        )
    print(
        f"{rows} rows of {options.models} models: within 4 stated errors {within / rows:.4f}; "
        f"infinite {infinite}; largest deviation where less than .5 was stated {worst:.2f}"
    )


if __name__ == "__main__":
    main()
