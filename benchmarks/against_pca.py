"""Rate and distortion on digits: noisyica's models beside principal components with quantised, entropy-coded coefficients.

All learn on one half of scikit-learn's digits (8 x 8) and are measured on the other. For noisyica the rate is all the bytes, header and
tables included. PCA gets the entropy of its symbols (each component's own frequencies, for nothing), and at each rate the number of
components, the step and the dead zone that are best on the very images they are measured on.

python benchmarks/against_pca.py
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from noisyica import Model, NoisyICA, compress, laws

STEPS = (1.0, 1.4, 2.0, 2.8, np.sqrt(12), 4.0, 5.0, 6.0, 7.0, 8.5, 10.0)


def entropy(column):
    """Bits a symbol."""
    _, counts = np.unique(column, return_counts=True)
    share = counts / counts.sum()
    return -(share * np.log2(share)).sum()


def principal(train, test):
    """(rate, distortion, dead zone) of PCA with many numbers of components, steps and dead zones."""
    found = []
    for k in range(4, 61, 2):
        pca = PCA(k, svd_solver="full").fit(train)
        values = pca.transform(test)
        for step in np.geomspace(0.5, 40, 60):
            for dead in (0.0, 0.1, 0.2, 0.3):
                symbols = np.sign(values) * np.floor(np.abs(values) / step + 0.5 - dead).clip(0)
                error = np.square(test - pca.inverse_transform(step * symbols)).mean()
                found.append((sum(entropy(column) for column in symbols.T), error, dead))
    return np.array(found)


def at_rate(curve, rate):
    """The distortion at a rate, on the lower convex hull of a curve in (rate, log distortion)."""
    points = curve[np.argsort(curve[:, 0])][:, :2].copy()
    points[:, 1] = np.log(points[:, 1])
    hull: list = []
    for point in points:
        while len(hull) > 1 and np.linalg.det([hull[-1] - hull[-2], point - hull[-2]]) <= 0:
            hull.pop()
        hull.append(point)
    x, y = np.array(hull).T
    return np.exp(np.interp(rate, x, y))


def with_same_coder(train, test):
    """PCA through noisyica's own coder, bytes and all: orthogonal components with a Laplace law each, scaled to their spread."""
    found = []
    for k in (20, 40, 60):
        pca = PCA(k, svd_solver="full").fit(train)
        A = pca.components_.T * np.sqrt(pca.explained_variance_ / 2)
        model = Model(A, pca.mean_, 1.0, laws.Laplace())
        found += [
            (small.rate, small.distortion)
            for small in (compress(model, test, step) for step in np.geomspace(0.5, 25, 16))
        ]
    return np.array(found)


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = load_digits().data
    train, test = X[::2], X[1::2]
    curve, same = principal(train, test), with_same_coder(train, test)
    plain = curve[curve[:, 2] == 0]
    print(f"variance of the images: {np.square(test - train.mean(0)).mean():.2f}")
    print("model      step   bits/image  error   PCA: uniform  dead zone  same coder   seconds")
    for prior, sizes in {"te": (20, 40, 60), "bg": (20, 40), "lap": (20, 40)}.items():
        for p in sizes:
            ica = NoisyICA(p, prior=prior, max_iter=500, random_state=0).fit(train)
            for step in STEPS:
                start = time.perf_counter()
                small = compress(ica, test, step)
                seconds = time.perf_counter() - start
                others = "    ".join(f"{at_rate(c, small.rate):8.3f}" for c in (plain, curve, same))
                print(
                    f"{prior:4}{p:3}  {step:6.2f}   {small.rate:8.1f}  {small.distortion:7.3f}     {others}  {seconds:8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
