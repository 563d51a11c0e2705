"""Matched cosine of the components with the truth: FastICA and noisyica from the same data (BG sources, dense A), as noise grows.

python benchmarks/against_fastica.py
"""

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from noisyica import Model, NoisyICA, priors


def matched_cosine(A, B):
    """Mean |cosine| of the columns after the best matching."""
    unit = [M / np.linalg.norm(M, axis=0) for M in (A, B)]
    cosine = np.abs(unit[0].T @ unit[1])
    return cosine[linear_sum_assignment(-cosine)].mean()


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    n, d, p, seeds = 1000, 64, 10, 3
    print(f"n = {n}, d = {d}, p = {p}, alpha = 0.3, mean of {seeds} seeds")
    for sigma in (0.1, 0.5, 1.0, 2.0, 4.0):
        results = []
        for seed in range(seeds):
            A = np.random.default_rng(seed).normal(size=(d, p))
            X, _ = Model(A, noise_variance=sigma**2, prior=priors.BernoulliGaussian(0.3)).sample(
                n, random_state=seed
            )
            fast = (
                FastICA(p, whiten="unit-variance", random_state=seed, max_iter=1000).fit(X).mixing_
            )
            row = [matched_cosine(A, fast)]
            for init in ("auto", "pca", "random"):
                ica = NoisyICA(p, prior="bg", init=init, tol=0, random_state=seed).fit(X)
                row.append(matched_cosine(A, ica.mixing_))
            results.append([*row, ica.noise_variance_ / sigma**2, ica.prior_.alpha])
        mean = np.mean(results, axis=0)
        print(
            f"sigma {sigma:3.1f}: FastICA {mean[0]:.4f}; noisyica from auto {mean[1]:.4f}, pca {mean[2]:.4f}, random {mean[3]:.4f}; "
            f"noise variance / true {mean[4]:.3f}, alpha {mean[5]:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
