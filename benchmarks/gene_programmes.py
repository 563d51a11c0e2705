"""Programmes of genes in simulated cells: noisyica beside NMF and PCA of scikit-learn.

Each programme has a tenth of the genes, whose weights are exponential; each cell uses each
programme with probability 0.3, exponentially much of it. Two kinds of data are made of them:

* ``normal``: usage times programmes, plus normal noise. Entries may be negative (for NMF they are
  set to zero).
* ``counts``: Poisson counts of a library size that varies, whose rates are a gene's own level plus
  what its programmes add; then log(1 + counts per 10,000), as is usual. This is not linear in the
  usages, and since counts are relative, a programme lowers all genes that it does not have. So
  there are two truths: the programmes themselves, and the "linear" one, what least squares of these
  numbers on the true usages gives, with an intercept.

The table has the mean absolute cosine of the true programmes with their matches, over several
seeds, with its standard error. NMF is also given one component more than there are programmes, for
the level of all genes; its best matches count.

    python benchmarks/gene_programmes.py --seeds 2
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
from sklearn.decomposition import NMF, PCA

from noisyica import NoisyICA, laws
from noisyica.engine.convergence import match

P = 6


def programmes(rng, n, d):
    """Return usages (n, P) and programmes (P, d)."""
    weights = rng.exponential(size=(P, d)) * (rng.random((P, d)) < 0.1)
    usage = rng.exponential(size=(n, P)) * (rng.random((n, P)) < 0.3)
    return usage, weights


def normal(seed, n=1000, d=300):
    """Return rows with normal noise, and the true programmes (P, d) by name."""
    rng = np.random.default_rng(seed)
    usage, weights = programmes(rng, n, d)
    return usage @ weights + rng.normal(size=(n, d)), {"normal": weights}


def counts(seed, n=1000, d=300):
    """Return log-normalised counts, and both truths (P, d) by name."""
    rng = np.random.default_rng(seed)
    usage, weights = programmes(rng, n, d)
    rates = rng.gamma(0.5, 1.0, size=d) + 0.5 * usage @ weights
    depth = 1000 * rng.lognormal(0, 0.3, size=(n, 1))
    drawn = rng.poisson(depth * rates / rates.sum(1, keepdims=True))
    X = np.log1p(1e4 * drawn / np.maximum(drawn.sum(1, keepdims=True), 1))
    design = np.column_stack([np.ones(n), usage])
    linear = np.linalg.lstsq(design, X, rcond=None)[0][1:]
    return X, {"counts, linear": linear, "counts, programmes": weights}


def noisy(prior, mixing_prior, mean):
    """Return a method that learns components with these settings."""

    def learnt(X, seed):
        ica = NoisyICA(
            P,
            prior=prior,
            mixing_prior=mixing_prior,
            mean=mean,
            n_init=1,
            random_state=seed,
            verbose=False,
        )
        return ica.fit(X).components_

    return learnt


def nmf(more):
    """Return a method that factorises non-negative rows with so many components more than P."""

    def learnt(X, seed):
        return NMF(P + more, max_iter=2000, random_state=seed).fit(np.maximum(X, 0)).components_

    return learnt


def methods(mean):
    """Return the methods of the table by name."""
    return {
        "noisyica, exponential, nonnegative": noisy(laws.Exponential(), "nonnegative", mean),
        "noisyica, `bg`, nonnegative": noisy("bg", "nonnegative", mean),
        "noisyica, `bg`, sparse": noisy("bg", "sparse", mean),
        "noisyica, default": noisy("bg", "normal", "free"),
        "NMF": nmf(0),
        "NMF, one component more": nmf(1),
        "PCA": lambda X, seed: PCA(P, random_state=seed).fit(X).components_,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--cells", type=int, default=1000)
    options = parser.parse_args()
    cosines = defaultdict(list)
    for seed in range(options.seeds):
        for simulate, mean in ((normal, "zero"), (counts, "free")):
            X, truths = simulate(seed, options.cells)
            for name, method in methods(mean).items():
                found = method(X, seed)
                for kind, truth in truths.items():
                    cosines[name, kind].append(np.abs(match(truth.T, found.T)[0]).mean())
                    print(f"{name}; {kind}; {seed}; {cosines[name, kind][-1]:.4f}", flush=True)
    kinds = list(dict.fromkeys(kind for _, kind in cosines))
    print(f"\n| | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for name in methods("free"):
        cells = [summary(cosines[name, kind]) for kind in kinds]
        print(f"| {name} | {' | '.join(cells)} |")


def summary(values):
    """Return the mean of values, and its standard error, as text."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


if __name__ == "__main__":
    main()
