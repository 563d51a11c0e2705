"""Held-out likelihood on real data: the default beside all priors with either noise.

    python benchmarks/real_data.py [FOLDER] [--sets NAME ...] [--models "bg, auto" ...]

Of each set the rows that are held out tell log p per row of our models and of scikit-learn's
FactorAnalysis: `bg, auto` (the default, ``NoisyICA(p)``), `adaptive, auto`, and each of the nine
priors with isotropic and with diagonal noise. Sets of less than 1,000 rows are learnt from in three
folds, and each row is held out once; of the larger ones some rows are held out. Differences are
paired, with standard errors over rows: against FactorAnalysis, and against the best other model
among the nine priors with either noise and FactorAnalysis. What is more than two standard errors
below that is marked with "<<".

Digits, breast cancer, wine, diabetes and iris are scikit-learn's (tables are standardised by all
rows). In FOLDER are looked for, and skipped where they are absent: ``usps.npz`` (X_train),
``hippocampus_spharm_left.npz`` (log_jacobian), ``golub_leukemia.npz`` (X), and the folder
``caltech_faces``, of which 13 x 13 patches are cut, each less its mean. Columns that are constant
in the rows learnt from, which have any density, are left out.

Priors with one scale per row ("te", "teoff") take long to start and to score: they are left out
where there are more than ``--most-of-te`` components.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.decomposition import FactorAnalysis
from sklearn.preprocessing import scale

from noisyica import NoisyICA
from noisyica.paper import inputs
from noisyica.priors import TABLE

DEFAULT = "bg, auto"
OURS = {DEFAULT: ("bg", "auto"), "adaptive, auto": ("adaptive", "auto")}
OURS |= {
    f"{prior}, {noise}": (prior, noise)
    for prior in TABLE
    if prior != "adaptive"
    for noise in ("isotropic", "diagonal")
}
OF_ROWS = ("te", "teoff")
FACTOR_ANALYSIS = "FactorAnalysis"
FEW_ROWS, FOLDS = 1000, 3
QUICK = {"max_iter": 30}


def array(name):
    """Return a function that reads rows from a file of the folder, or None where it is absent."""
    path, _, key = name.partition(":")

    def read(folder):
        if folder is None or not (folder / path).is_file():
            return None
        with np.load(folder / path) as file:
            X = np.asarray(file[key], float)
            X = X * file["scale"] if "scale" in file else X / X.std()
        return X[np.random.default_rng(0).permutation(len(X))]

    return read


def faces(folder):
    """Return patches of faces, or None where there are none."""
    if folder is None or not (folder / "caltech_faces").is_dir():
        return None
    X = np.asarray(inputs.faces(folder, 10_500).X, float)
    return (X / X.std())[np.random.default_rng(0).permutation(len(X))]


def table(load, standardised=True):
    """Return a function that returns one of scikit-learn's tables, its rows in a random order."""

    def read(folder):
        X = load().data
        X = scale(X) if standardised else X
        return X[np.random.default_rng(0).permutation(len(X))]

    return read


SETS = {
    "iris": (table(load_iris), 2, 0, 0),
    "wine": (table(load_wine), 4, 0, 0),
    "diabetes": (table(load_diabetes), 4, 0, 0),
    "breast cancer": (table(load_breast_cancer), 6, 0, 0),
    "digits": (table(load_digits, standardised=False), 20, 1297, 500),
    "leukaemia": (array("golub_leukemia.npz:X"), 5, 0, 0),
    "hippocampi": (array("hippocampus_spharm_left.npz:log_jacobian"), 5, 0, 0),
    "USPS": (array("usps.npz:X_train"), 20, 4000, 500),
    "faces": (faces, 20, 10_000, 500),
}
"""How rows are had, the number of components, and rows learnt from and held out (0: folds)."""


def splits(n, rows, held_out):
    """Return pairs of the numbers of rows that are learnt from and held out."""
    if rows:
        return [(np.arange(rows), np.arange(rows, rows + held_out))]
    folds = np.arange(n // FOLDS * FOLDS).reshape(FOLDS, -1)  # of one size: one compilation
    return [(np.delete(folds, k, 0).ravel(), folds[k]) for k in range(FOLDS)]


def score(name, X, p, parts, quick):
    """Return log p of each row held out, by one model, in the order of the splits."""
    found = []
    for train, test in parts:
        if name == FACTOR_ANALYSIS:
            estimator = FactorAnalysis(p, random_state=0)
        else:
            prior, noise = OURS[name]
            options = {"n_init": 1, "verbose": False, "random_state": 0} | (QUICK if quick else {})
            estimator = NoisyICA(p, prior=prior, noise=noise, **options)
        found.append(estimator.fit(X[train]).score_samples(X[test]))
    return np.concatenate(found)


def difference(values, others):
    """Return the mean difference and its standard error over rows."""
    less = values - others
    return less.mean(), less.std(ddof=1) / np.sqrt(len(less))


def show(found):
    """Print a line for each model, the best first."""
    for name in sorted(found, key=lambda name: -found[name].mean()):
        rivals = (other for other in found if other != name and not other.endswith("auto"))
        others = max(rivals, key=lambda other: found[other].mean(), default=name)
        factor = "{:+12.3f} ± {:<8.3f}".format(*difference(found[name], found[FACTOR_ANALYSIS]))
        mean, error = difference(found[name], found[others])
        best = f"{mean:+12.3f} ± {error:<8.3f}"
        mark = "<<" if mean < -2 * error else ""
        print(f"  {name:18} {found[name].mean():12.3f} {factor} {best} {mark}", flush=True)


def measure(title, folder, chosen):
    """Compare the models on one set."""
    read, p, rows, held_out = SETS[title]
    X = read(folder)
    if X is None:
        print(f"\n{title}: not there, skipped", flush=True)
        return
    parts = splits(len(X), rows, held_out)
    X = X[:, np.all([X[train].std(0) > 0 for train, _ in parts], 0)]
    models = [
        name for name in chosen.models if p <= chosen.most_of_te or OURS[name][0] not in OF_ROWS
    ]
    learnt, test = len(parts[0][0]), sum(len(test) for _, test in parts)
    print(f"\n{title}: {learnt} x {X.shape[1]}, {p} components, {test} rows held out", flush=True)
    found = {}
    for name in (FACTOR_ANALYSIS, *models):
        begun = time.perf_counter()
        try:
            found[name] = score(name, X, p, parts, chosen.quick)
        except ValueError as error:
            print(f"  {name}: {error}")
        print(f"  ({name}: {time.perf_counter() - begun:.0f} s)", flush=True)
    show(found)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="where data sets are")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--models", nargs="+", choices=OURS, default=list(OURS))
    parser.add_argument("--most-of-te", type=int, default=5, help="components of te and teoff")
    parser.add_argument("--quick", action="store_true", help="30 iterations: it runs, no more")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for title in chosen.sets:
        measure(title, chosen.folder, chosen)


if __name__ == "__main__":
    main()
