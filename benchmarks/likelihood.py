"""Whether the likelihood's stated error is right: easy and hard models of all nine priors.

    python benchmarks/likelihood.py [--models 200] [--rows 12] [--seed 0]

Each model has random components, a mean (or an offset per row), and noise whose variance differs
between columns by a factor of up to a million; scales of x lie between 1e-6 and 1e6. The answer of
``Model.log_likelihood`` is compared with the exact one where states can be enumerated; for
coefficients with atoms and eight components or fewer by enumeration of the atoms, the other
coefficients being integrated out by importance sampling; and otherwise with a run of another random
seed that has 64 times as many draws.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings

import numpy as np
from scipy.special import logsumexp

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
    law = model.prior.law_of(0)
    atoms = law is not None and any(part.atom is not None for _, part in law.parts())
    if atoms and p <= 3:
        return (*over_atoms(model, X), "atoms enumerated")
    value, error = model.log_likelihood(
        X, method="sequential", n_particles=4096, random_state=99, return_std=True, verbose=False
    )
    return value, error, "long run"


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
