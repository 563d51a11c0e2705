"""FastICA with each of its contrasts and noisyica with several priors, on the same data.

Printed are tables of the cosines of the learnt components with their matches among the true ones
(mean over seeds, plus or minus its standard error), and of the median times of a fit. A is dense,
and all sources have the same variance. Some sources follow one of the priors, others none.

    python benchmarks/against_fastica.py
    python benchmarks/against_fastica.py --seeds 2 --sigmas 1 --sources uniform
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from noisyica import NoisyICA
from noisyica.paper import source
from noisyica.paper.common import summary
from noisyica.paper.measures import matched_cosines

N, D, P, ALPHA = 1000, 64, 10, 0.3
SIGMAS = (0.1, 1.0, 2.0, 4.0)
SHAPE = (N, P)
SOURCES = {
    "Bernoulli-Gaussian": lambda rng: rng.normal(size=SHAPE) * (rng.random(SHAPE) < ALPHA),
    "logistic": lambda rng: rng.logistic(size=SHAPE) * np.sqrt(3 * ALPHA) / np.pi,
    "Student, 5 degrees": lambda rng: rng.standard_t(5, size=SHAPE) * np.sqrt(ALPHA * 3 / 5),
    "uniform": lambda rng: rng.uniform(-1, 1, size=SHAPE) * np.sqrt(3 * ALPHA),
}
"""Sources of variance ALPHA by name. The uniform one has lighter tails than a normal law."""
METHODS = {
    **{
        f"FastICA, {fun}": lambda seed, fun=fun: FastICA(
            P, fun=fun, whiten="unit-variance", random_state=seed, max_iter=1000
        )
        for fun in ("logcosh", "exp", "cube")
    },
    **{
        f"noisyica, `{prior}`": lambda seed, prior=prior: NoisyICA(
            P, prior=prior, random_state=seed, verbose=False
        )
        for prior in ("bg", "log", "ifa", "adaptive")
    },
    "noisyica, `bg`, random start": lambda seed: NoisyICA(
        P, prior="bg", init="random", random_state=seed, verbose=False
    ),
}
"""The methods by name, as functions of the random seed."""


def compare(sources, sigma, seed):
    """Return the mean cosine and the seconds of each method on one data set."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(D, P))
    X = SOURCES[sources](rng) @ A.T + sigma * rng.normal(size=(N, D))
    outcomes = {}
    for name, make in METHODS.items():
        estimator = make(seed)
        begun = time.perf_counter()
        estimator.fit(X)
        seconds = time.perf_counter() - begun
        outcomes[name] = (matched_cosines(A, estimator.mixing_).mean(), seconds)
    return outcomes


def table(sources, sigmas, seeds):
    """Print the cosines with sources of one law, and return the seconds of all fits by method."""
    print(f"\n| {sources} | " + " | ".join(f"sigma {sigma:g}" for sigma in sigmas) + " |")
    print("|---" * (len(sigmas) + 1) + "|", flush=True)
    runs = {sigma: [compare(sources, sigma, seed) for seed in range(seeds)] for sigma in sigmas}
    seconds = {}
    for name in METHODS:
        cells = []
        for sigma in sigmas:
            mean, error = summary([run[name][0] for run in runs[sigma]])
            cells.append(f"{mean:.4f} ± {error:.4f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        seconds[name] = [run[name][1] for of_sigma in runs.values() for run in of_sigma]
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sigmas", type=float, nargs="+", default=SIGMAS)
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=list(SOURCES))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)  # noisyica doubts components, and says so
    # small products: on a busy machine several threads of BLAS wait for each other, and FastICA
    # takes a hundred times as long
    threadpool_limits(1, user_api="blas")
    print(f"n = {N}, d = {D}, p = {P}, {chosen.seeds} seeds; {source.described()}")
    times = [table(sources, chosen.sigmas, chosen.seeds) for sources in chosen.sources]
    print("\n| median seconds of a fit | " + " | ".join(chosen.sources) + " |")
    print("|---" * (len(chosen.sources) + 1) + "|")
    for name in METHODS:
        cells = (f"{np.median(seconds[name]):.2g}" for seconds in times)
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
