"""Rate and distortion on digits: noisyica's models beside principal components.

All models learn from one half of scikit-learn's digits (8 x 8 pixels) and are measured on the
other. For noisyica the rate counts all bytes, header and tables included. PCA has quantised
coefficients and is given the entropy of its symbols (with the frequencies of each component, for
which it does not pay); and at each rate it has the number of components, the step and the dead
zone that are best on the very images they are measured on.

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
MODELS = {"te": (20, 40, 60), "bg": (20, 40), "lap": (20, 40)}


def entropy(symbols):
    """Return the entropy of the symbols in bits per symbol."""
    _, counts = np.unique(symbols, return_counts=True)
    share = counts / counts.sum()
    return -(share * np.log2(share)).sum()


def principal(train, test):
    """Return the rate, the distortion and the dead zone of PCA with many settings, as rows."""
    points = []
    for k in range(4, 61, 2):
        pca = PCA(k, svd_solver="full").fit(train)
        values = pca.transform(test)
        for step in np.geomspace(0.5, 40, 60):
            for dead in (0.0, 0.1, 0.2, 0.3):
                symbols = np.sign(values) * np.floor(np.abs(values) / step + 0.5 - dead).clip(0)
                error = np.square(test - pca.inverse_transform(step * symbols)).mean()
                points.append((sum(entropy(column) for column in symbols.T), error, dead))
    return np.array(points)


def at_rate(points, rate):
    """Return the distortion at a rate, on the lower convex hull of (rate, log distortion)."""
    points = points[np.argsort(points[:, 0])][:, :2].copy()
    points[:, 1] = np.log(points[:, 1])
    hull: list = []
    for point in points:
        while len(hull) > 1 and np.linalg.det([hull[-1] - hull[-2], point - hull[-2]]) <= 0:
            hull.pop()
        hull.append(point)
    x, y = np.array(hull).T
    return np.exp(np.interp(rate, x, y))


def with_same_coder(train, test):
    """Return the rate and the distortion of PCA with noisyica's own coder, which counts all bytes.

    Each component has a Laplace law with its own scale.
    """
    points = []
    for k in (20, 40, 60):
        pca = PCA(k, svd_solver="full").fit(train)
        A = pca.components_.T * np.sqrt(pca.explained_variance_ / 2)
        model = Model(A, pca.mean_, 1.0, laws.Laplace())
        for step in np.geomspace(0.5, 25, 16):
            compressed = compress(model, test, step)
            points.append((compressed.rate, compressed.distortion))
    return np.array(points)


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = load_digits().data
    train, test = X[::2], X[1::2]
    dead_zone, same_coder = principal(train, test), with_same_coder(train, test)
    uniform = dead_zone[dead_zone[:, 2] == 0]
    print(f"variance of the images: {np.square(test - train.mean(0)).mean():.2f}")
    print("model      step   bits/image  error   PCA: uniform  dead zone  same coder   seconds")
    for prior, p in ((prior, p) for prior, sizes in MODELS.items() for p in sizes):
        ica = NoisyICA(p, prior=prior, noise="isotropic", max_iter=500, random_state=0).fit(train)
        for step in STEPS:
            begun = time.perf_counter()
            compressed = compress(ica, test, step)
            seconds = time.perf_counter() - begun
            rate, distortion = compressed.rate, compressed.distortion
            others = (at_rate(points, rate) for points in (uniform, dead_zone, same_coder))
            print(
                f"{prior:4}{p:3}  {step:6.2f}   {rate:8.1f}  {distortion:7.3f}     "
                f"{'    '.join(f'{error:8.3f}' for error in others)}  {seconds:8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
