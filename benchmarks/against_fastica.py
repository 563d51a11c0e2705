"""FastICA and noisyica on the same data, as the noise grows.

Printed are the cosines of the learnt components with their matches among the true ones. The
sources are Bernoulli-Gaussian, and A is dense.

    python benchmarks/against_fastica.py
"""

import warnings

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from noisyica import Model, NoisyICA, priors
from noisyica.paper.measures import matched_cosines

N, D, P, ALPHA, SEEDS = 1000, 64, 10, 0.3, 3
SIGMAS = (0.1, 0.5, 1.0, 2.0, 4.0)
STARTS = ("auto", "pca", "random")


def compare(sigma, seed):
    """Return the mean cosines of FastICA and of noisyica from each start, the noise, and alpha.

    The noise is the estimated variance over the true one. It and alpha are of the last start.
    """
    A = np.random.default_rng(seed).normal(size=(D, P))
    model = Model(A, noise_variance=sigma**2, prior=priors.BernoulliGaussian(ALPHA))
    X, _ = model.sample(N, random_state=seed)
    fast = FastICA(P, whiten="unit-variance", random_state=seed, max_iter=1000).fit(X)
    cosines = [matched_cosines(A, fast.mixing_).mean()]
    for init in STARTS:
        ica = NoisyICA(P, prior="bg", init=init, tol=0, random_state=seed).fit(X)
        cosines.append(matched_cosines(A, ica.mixing_).mean())
    return [*cosines, ica.noise_variance_ / sigma**2, ica.prior_.alpha]


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"n = {N}, d = {D}, p = {P}, alpha = {ALPHA}, mean of {SEEDS} seeds")
    for sigma in SIGMAS:
        results = [compare(sigma, seed) for seed in range(SEEDS)]
        fast, auto, pca, random, noise, alpha = np.mean(results, axis=0)
        print(
            f"sigma {sigma:3.1f}: FastICA {fast:.4f}; noisyica from auto {auto:.4f}, "
            f"pca {pca:.4f}, random {random:.4f}; noise variance / true {noise:.3f}, "
            f"alpha {alpha:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
