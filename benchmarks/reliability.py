"""What ``reliability_`` says of components, against their cosine with the true ones.

Thirty kinds of simulated data, from well to hardly determined: sparse to normal coefficients, few
to many rows, little to much noise. Printed are, for each, the true matched cosines and the stated
reliabilities; and of all components together, the rank correlation, how the stated values compare
with the true ones, and how many components were called reliable that are not.

    python benchmarks/reliability.py            # one data set of each kind, about two minutes
    python benchmarks/reliability.py --seeds 5
"""

import argparse
import itertools
import warnings

import numpy as np
from scipy.stats import spearmanr

from noisyica import Model, NoisyICA, laws, priors
from noisyica.engine.convergence import similarity
from noisyica.engine.reliability import DOUBTFUL, RELIABLE

WRONG = 0.8
"""A component with a lower true cosine must not be called reliable."""

PRIORS = {
    "bg .1": priors.BernoulliGaussian(0.1),
    "bg .5": priors.BernoulliGaussian(0.5),
    "bg .8": priors.BernoulliGaussian(0.8),
    "bg .95": priors.BernoulliGaussian(0.95),
    "bg .99": priors.BernoulliGaussian(0.99),
    "log": priors.Logistic(),
    "lap": priors.Laplace(),
    "eg": priors.ExponentialGaussian(),
    "ifa": priors.GaussianMixture((3.0,), (0.4, 0.6)),
    "ebg": priors.ExponentialBernoulliGaussian(0.4),
    "et": priors.ExponentialTernary(0.3),
    "te": priors.SingleScaleTernary(0.2),
    "bg normal": priors.Independent(laws.Normal()),  # fitted as bg
    "log normal": priors.Independent(laws.Normal()),
}
"""The laws to simulate from; the first word of the name is the prior that is fitted."""
KINDS = [  # the coefficients' law, the numbers of rows, columns and components, the noise
    ("bg .1", 100, 20, 3, 0.5),
    ("bg .1", 400, 20, 5, 1.0),
    ("bg .1", 100, 20, 5, 1.5),
    ("bg .5", 100, 50, 3, 0.5),
    ("bg .5", 400, 20, 5, 1.5),
    ("bg normal", 400, 20, 6, 0.3),
    ("bg .8", 100, 20, 3, 0.5),
    ("bg .8", 400, 20, 5, 0.5),
    ("bg .8", 100, 50, 10, 0.3),
    ("log normal", 150, 12, 4, 0.2),
    ("bg .95", 400, 20, 3, 0.5),
    ("bg .95", 1600, 20, 5, 0.3),
    ("bg .95", 100, 20, 10, 0.5),
    ("bg .95", 100, 8, 2, 0.5),
    ("bg .99", 400, 20, 4, 0.5),
    ("bg .99", 100, 8, 4, 0.3),
    ("log", 100, 20, 3, 0.5),
    ("log", 400, 20, 5, 0.5),
    ("log", 1600, 50, 5, 0.5),
    ("log", 1600, 20, 10, 2.0),
    ("lap", 100, 20, 3, 0.5),
    ("lap", 400, 20, 10, 1.0),
    ("lap", 100, 8, 2, 1.0),
    ("lap", 100, 8, 6, 0.5),
    ("ifa", 400, 20, 5, 0.5),
    ("ifa", 100, 20, 3, 0.5),
    ("ebg", 400, 20, 4, 1.0),
    ("et", 100, 20, 3, 0.5),
    ("te", 400, 20, 4, 0.5),
    ("eg", 400, 20, 5, 0.5),
]


def simulated(law, n, d, p, sigma, seed):
    """Return rows, and the mixing matrix that they were made with, whose columns differ in size."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, p)) * np.sqrt(rng.uniform(0.2, 0.8, p))
    X, _ = Model(A, noise_variance=sigma**2, prior=PRIORS[law]).sample(n, random_state=seed)
    return X, A


def measure(kind, seed):
    """Return the true cosines of a fit's components, and the reliabilities that it states."""
    X, A = simulated(*kind, seed)
    prior = kind[0].split()[0]
    ica = NoisyICA(kind[3], prior=prior, noise="isotropic", random_state=seed, verbose=False).fit(X)
    return similarity(ica.mixing_, [A])[0], ica.reliability_


def summarise(true, stated):
    """Print how well the stated reliabilities of all components predict their true cosines."""
    called, wrong = stated >= RELIABLE, true < WRONG
    print(f"\n{len(true)} components, {wrong.sum()} of them with a true cosine below {WRONG}")
    print(f"rank correlation {spearmanr(true, stated)[0]:.3f}")
    print(f"called reliable: {called.sum()}, of these wrong {(called & wrong).sum()}")
    print(f"least true cosine of a component called reliable: {true[called].min():.3f}")
    print(f"true cosine above 0.95, not called reliable: {((true > 0.95) & ~called).sum()}")
    warned = stated < DOUBTFUL
    print(f"called doubtful: {warned.sum()}, of these with a true cosine", end=" ")
    print(f"below {WRONG} {(warned & wrong).sum()}, above 0.95 {(warned & (true > 0.95)).sum()}")
    edges = [0, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 1.01]
    print("\nstated      components  mean stated  mean true  least true")
    for low, high in itertools.pairwise(edges):
        here = (stated >= low) & (stated < high)
        if here.any():
            numbers = (stated[here].mean(), true[here].mean(), true[here].min())
            columns = "".join(f"{number:12.3f}" for number in numbers)
            print(f"{low:.2f}-{min(high, 1):.2f} {here.sum():10d}{columns}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1, help="data sets of each kind")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for i, kind in enumerate(KINDS):
        for seed in range(i, 1000 * arguments.seeds + i, 1000):
            true, stated = measure(kind, seed)
            found.append((true, stated))
            print(*kind, "seed", seed)
            print("   true  ", *(f"{value:.2f}" for value in true))
            print("   stated", *(f"{value:.2f}" for value in stated), flush=True)
    summarise(*(np.concatenate(values) for values in zip(*found, strict=True)))


if __name__ == "__main__":
    main()
