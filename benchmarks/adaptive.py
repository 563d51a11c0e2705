"""The prior whose law is learnt, "adaptive", against the right prior of simulated sources.

    python benchmarks/adaptive.py [--quick] [--sets 10] [--rows 1500 100] [--sigmas 0.5 2]
    python benchmarks/adaptive.py --known [--sets 10] [--rows 1500 100] [--sigmas 0.5 2]

Sources have the laws of "bg", "lap", "log" and "eg", a Student law of 3 degrees of freedom, or are
rare (on with probability .05). Of each kind there are several sets of data; from each of them every
prior learns, and held-out rows, the same for all priors, tell log p. Where no prior is the right
one, the best of bg, lap, log and eg takes its place, for each measure. Prints by how much adaptive
is better (+) or worse (-), with standard errors over the sets, and whether bounds are met: no more
than .03 nats per row below, and a mean cosine with the true components no more than .003 below
(.01 for logistic sources in much noise, which are nearly normal).

With --known, the components and the noise are known, so that each coefficient of "eg" sources is
seen with normal noise: prints what is lost, per row, by weights of the grid of scales that have
the greatest likelihood, and by those under the weak prior of adaptive.
"""

import argparse
import itertools
import time
import warnings

import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from noisyica import NoisyICA
from noisyica.laws.normal_scales import weights_of
from noisyica.priors.adaptive import FIRST, SCALES

NAMED = ("bg", "lap", "log", "eg")
KINDS = (*NAMED, "student", "rare")
RIGHT = {"bg": ("bg",), "lap": ("lap",), "log": ("log",), "eg": ("eg",)}
COLUMNS, COMPONENTS = 40, 6
LEAST_LOG_P, LEAST_COSINE, LEAST_COSINE_OF_LOG = -0.03, -0.003, -0.01


def sources(kind, rng, n):
    """Return sources (n, p) of a kind."""
    shape = (n, COMPONENTS)
    normal = rng.normal(size=shape)
    return {
        "bg": lambda: normal * (rng.random(shape) < 0.3),
        "rare": lambda: 3 * normal * (rng.random(shape) < 0.05),
        "lap": lambda: rng.laplace(size=shape),
        "log": lambda: rng.logistic(size=shape) / 2,
        "eg": lambda: rng.exponential(size=shape) * normal,
        "student": lambda: rng.standard_t(3, size=shape),
    }[kind]()


def cosine(A, B):
    """Return the mean |cosine| of the columns after the best matching."""
    unit = [M / np.linalg.norm(M, axis=0) for M in (A, B)]
    cosines = np.abs(unit[0].T @ unit[1])
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def measure(kind, n, sigma, seed, held_out):
    """Return by how much adaptive is better on one set of data: log p per row, and cosine."""
    rng = np.random.default_rng([seed, KINDS.index(kind), n])
    A = rng.normal(size=(COLUMNS, COMPONENTS))
    beta = sources(kind, rng, n + held_out)
    X = beta @ A.T + sigma * rng.normal(size=(n + held_out, COLUMNS))
    answers = []
    for prior in ("adaptive", *RIGHT.get(kind, NAMED)):
        options = {"noise": "isotropic", "n_init": 1, "random_state": seed, "verbose": False}
        ica = NoisyICA(COMPONENTS, prior=prior, **options).fit(X[:n])
        answers.append((ica.score(X[n:]), cosine(A, ica.mixing_)))
    return np.array(answers[0]) - np.max(answers[1:], axis=0)


def eg_log_density(y, noise):
    """Return the log density of s Y plus normal noise of some variance, s exponential, Y normal."""
    logs = np.linspace(np.log(1e-6), np.log(60), 2001)
    weights = np.exp(logs - np.exp(logs))  # of s = exp(logs)
    variances = np.exp(2 * logs) + noise
    terms = np.exp(-0.5 * y[:, None] ** 2 / variances) / np.sqrt(2 * np.pi * variances)
    return np.log(terms @ (weights / weights.sum()))


def learnt_weights(y, noise, mstep, turns=300):
    """Return the weights of the grid and its unit, learnt from values that are seen with noise."""
    scales, weights, unit = np.array(SCALES), np.array(FIRST), 1.0
    logs = np.log(np.where(scales > 0, scales, 1.0))
    for _ in range(turns):
        terms = mixture_terms(y, noise, weights, unit)
        weights = np.asarray(mstep((terms / terms.sum(1, keepdims=True)).sum(0)))
        share = weights * scales**2
        unit *= np.exp(np.clip(share @ logs / share.sum(), -0.2, 0.2))
    return weights, unit


def mixture_terms(y, noise, weights, unit):
    """Return the weighted densities of the classes at each value."""
    variances = (unit * np.array(SCALES)) ** 2 + noise
    return weights * np.exp(-0.5 * y[:, None] ** 2 / variances) / np.sqrt(2 * np.pi * variances)


def known(n, sigma, sets, held_out=20_000):
    """Print what learning the law of "eg" costs where everything else is known."""
    noise = sigma**2 / COLUMNS  # of a coefficient, by least squares on a component of COLUMNS
    msteps = {
        "greatest likelihood": lambda counts: (counts + 1e-9) / (counts + 1e-9).sum(),
        "weak prior": lambda counts: weights_of(jnp.asarray(counts[None]), SCALES)[0],
    }
    rng = np.random.default_rng(0)

    def seen(count):
        values = rng.exponential(size=count) * rng.normal(size=count)
        return values + np.sqrt(noise) * rng.normal(size=count)

    test = seen(held_out)
    best = eg_log_density(test, noise)
    data = [seen(n * COMPONENTS) for _ in range(sets)]
    for name, mstep in msteps.items():
        lost = []
        for y in data:
            found = mixture_terms(test, noise, *learnt_weights(y, noise, mstep)).sum(1)
            lost.append(COMPONENTS * float(np.mean(best - np.log(found))))
        error = np.std(lost, ddof=1) / np.sqrt(sets)
        print(f"n = {n:4d}, sigma = {sigma:g}, {name}: {np.mean(lost):.4f} +- {error:.4f} lost")


def verdict(mean, bound):
    """Return whether a mean difference is within its bound."""
    return "met" if mean >= bound else "NOT met"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one set of each kind, 1,500 rows")
    parser.add_argument("--sets", type=int, default=10, help="how many sets of data of each kind")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--rows", nargs="+", type=int, default=(1500, 100))
    parser.add_argument("--sigmas", nargs="+", type=float, default=(0.5, 2.0))
    parser.add_argument("--known", action="store_true", help="all but the law of eg is known")
    parser.add_argument("--held-out", type=int, default=500, help="how many held-out rows")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sets, arguments.rows = 1, (1500,)
    if arguments.known:
        for n, sigma in itertools.product(arguments.rows, arguments.sigmas):
            known(n, sigma, arguments.sets)
        return
    warnings.simplefilter("ignore")  # of components that the rows do not determine
    begun = time.perf_counter()
    for n in arguments.rows:
        for kind in arguments.kinds:
            for sigma in arguments.sigmas:
                differences = np.array(
                    [
                        measure(kind, n, sigma, seed, arguments.held_out)
                        for seed in range(arguments.sets)
                    ]
                )
                mean = differences.mean(0)
                error = differences.std(0, ddof=1) if len(differences) > 1 else np.full(2, np.nan)
                error = error / np.sqrt(len(differences))
                nearly_normal = kind == "log" and sigma >= 2
                least = LEAST_COSINE_OF_LOG if nearly_normal else LEAST_COSINE
                print(
                    f"n = {n:4d}, sigma = {sigma:g}, {kind:7s} "
                    f"log p {mean[0]:+.4f} +- {error[0]:.4f} ({verdict(mean[0], LEAST_LOG_P)}), "
                    f"cosine {mean[1]:+.4f} +- {error[1]:.4f} ({verdict(mean[1], least)})",
                    flush=True,
                )
    print(f"{arguments.sets} sets of each kind, in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
