"""Fits of many kinds after five iterations: those of one version of the library against another's.

    python benchmarks/same_fits.py record FILE [--part K/N]
    python benchmarks/same_fits.py compare OLD NEW

A change that only moves code leaves every number as it was; one that changes how the same
arithmetic is compiled leaves them within rounding. The comparison prints the largest relative
difference of each kind of fit, and the names of those that differ at all.
"""

import argparse
import itertools
import sys
import time

import numpy as np

from noisyica import Model, NoisyICA, priors

ALGORITHMS = {
    "saem": {},
    "saem-metropolis": {"sampler": "metropolis"},
    "mcem": {"algorithm": "mcem", "n_draws": (1, 3)},
    "sem": {"algorithm": "sem"},
    "fam-em": {"algorithm": "fam-em"},
    "em": {"algorithm": "em"},
}
EXACT = ("ifa", "bg", "te")


def rows(prior, n=150, d=12, p=3, seed=0):
    """Rows that the model with this prior made."""
    rng = np.random.default_rng(seed)
    mean = None if priors.get(prior).has_offset else rng.normal(size=d)
    model = Model(rng.normal(size=(d, p)), mean, 0.25, prior)
    return model.sample(n, random_state=seed)[0]


def with_holes(X):
    """The rows with a tenth of their entries missing."""
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X


def cases():
    """(name, data, settings of the estimator, arguments of fit) of every fit."""
    weight = np.random.default_rng(2).integers(0, 4, 150).astype(float)
    for prior, (name, how), mixing in itertools.product(
        priors.TABLE, ALGORITHMS.items(), ("normal", None)
    ):
        if name == "em" and prior not in EXACT:
            continue
        for dtype in ("float64", "float32") if name in ("saem", "em") else ("float64",):
            yield (
                f"{prior} {name} {mixing} {dtype}",
                rows(prior),
                how | {"prior": prior, "mixing_prior": mixing, "dtype": dtype},
                {},
            )
    for prior, mixing, dtype in itertools.product(
        ("log", "bg", "te"), ("normal", None), ("float64", "float32")
    ):
        how = {"prior": prior, "mixing_prior": mixing, "dtype": dtype}
        end = f"{prior} {mixing} {dtype}"
        X = rows(prior)
        yield f"missing {end}", with_holes(X), how, {}
        yield f"weights {end}", X, how, {"sample_weight": weight}
        yield f"diagonal {end}", X, how | {"noise": "diagonal"}, {}
        yield f"zero {end}", X, how | {"mean": "zero"}, {}
        yield f"boundaries {end}", X, how | {"boundaries": True, "max_iter": 12}, {}
        yield f"several starts {end}", X, how | {"n_init": 5}, {}
        if prior != "te":
            yield f"shift {end}", X, how | {"mean": "shift"}, {}
            yield f"offset {end}", X, how | {"mean": "offset"}, {}
    for dtype in ("float64", "float32"):
        own = priors.GaussianMixture((2.0,), (0.5, 0.5), shared=False)
        yield f"own laws {dtype}", rows("ifa"), {"prior": own, "dtype": dtype}, {}
        yield (
            f"auto {dtype}",
            rows("bg"),
            {"prior": "bg", "dtype": dtype, "n_components": "auto", "max_iter": 12},
            {},
        )
        yield (
            f"best of the starts {dtype}",
            rows("te"),
            {"prior": "te", "dtype": dtype, "init": "auto"},
            {},
        )
        yield (
            f"more than dimensions {dtype}",
            rows("bg"),
            {"prior": "bg", "dtype": dtype, "n_components": 15},
            {},
        )
        yield (
            f"many rows {dtype}",
            rows("bg", 40_000, 6, 2),
            {"prior": "bg", "dtype": dtype, "n_components": 2},
            {},
        )


def record(path, part):
    """Fit everything and write the parameters and histories to a file."""
    k, n = part
    found, begun = {}, time.perf_counter()
    for name, X, how, arguments in itertools.islice(cases(), k, None, n):
        settings = {
            "n_components": 3,
            "init": "pca",
            "max_iter": 5,
            "tol": 0,
            "random_state": 0,
            "verbose": False,
        } | how
        ica = NoisyICA(**settings).fit(X, **arguments)
        values = {
            "mixing": ica.mixing_,
            "mean": ica.mean_,
            "noise": ica.noise_variance_,
        } | ica.prior_.parameters
        values |= {f"history {key}": value for key, value in ica.history_.items()}
        found |= {f"{name}|{key}": np.asarray(value) for key, value in values.items()}
        print(f"{time.perf_counter() - begun:6.1f} s  {name}", file=sys.stderr, flush=True)
    np.savez(path, **found)


def compare(old, new):
    """Print the largest difference of each fit, relative to the largest entry of the array."""
    with np.load(old) as before, np.load(new) as after:
        missing = set(before.files) ^ set(after.files)
        worst = {}
        for key in sorted(set(before.files) & set(after.files)):
            a, b = before[key].astype(float), after[key].astype(float)
            name = key.split("|")[0]
            difference = (
                np.inf if a.shape != b.shape else np.abs(a - b).max() / max(np.abs(a).max(), 1e-300)
            )
            worst[name] = max(worst.get(name, 0.0), float(difference))
    differing = {name: value for name, value in worst.items() if value > 0}
    for name, value in sorted(differing.items(), key=lambda item: -item[1]):
        print(f"{value:9.2g}  {name}")
    print(f"{len(worst)} fits, {len(worst) - len(differing)} bit-identical")
    print(f"recorded by one version only: {sorted(missing) or 'none'}")
    for dtype in ("float64", "float32"):
        largest = max(value for name, value in worst.items() if name.endswith(dtype))
        print(f"largest relative difference in {dtype}: {largest:.2g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("files", nargs="+")
    parser.add_argument(
        "--part", default="0/1", help="K/N: of every N fits the K-th, to run in several processes"
    )
    options = parser.parse_args()
    if options.action == "record":
        record(options.files[0], [int(x) for x in options.part.split("/")])
    else:
        compare(*options.files)
