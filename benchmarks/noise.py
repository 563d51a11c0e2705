"""What kinds of noise are worth: errors of A, outlying rows, held-out likelihood, speed.

    python benchmarks/noise.py images
    python benchmarks/noise.py rows
    python benchmarks/noise.py real --data usps.npz:X_train:20 hippocampus.npz:log_jacobian:5
    python benchmarks/noise.py dimension
    python benchmarks/noise.py speed

images     The paper's two images with 30 or 100 rows and equal noise: mean square error of A and
           the mean noise variance, and the ratio of the errors to those with "isotropic".
rows       1,000 rows, 64 columns, 10 components, ``bg`` with alpha = .3, sigma = 1: rows as the
           model has them; 5 % of them with ten times the noise; noise of Student's law with 3
           degrees of freedom per row. Matched cosine, noise variance, degrees of freedom, and the
           area under the curve of ``1 / row_weights_`` as a sign of outlying rows.
real       Standardised tables of scikit-learn, its digits, and arrays of files
           (FILE:ARRAY:COMPONENTS): log likelihood of held-out rows in folds, FactorAnalysis beside
           it, and the least noise variance of a column as a share of the column's variance.
dimension  ``n_components="auto"``: independent columns of unequal noise, and of heavy-tailed rows
           (Student, 2.1 degrees of freedom), where there is nothing to find, and the cases of
           benchmarks/mixing.py.
speed      Seconds per iteration (7,291 x 256, p = 20, ``bg``), and their ratio to "isotropic".

``--repeats`` sets the number of data sets, folds or times, ``--noise`` the kinds of noise.
``--quick`` only shows that it runs.
"""

import argparse
import time
import warnings
from collections import defaultdict
from itertools import product

import numpy as np
from mixing import dimension_rows, fastica, mean_and_error, real_sets, table
from sklearn.decomposition import FactorAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from noisyica import NoisyICA
from noisyica.paper import images
from noisyica.paper.measures import matched_cosines, mean_square_error

MOST_ROWS = 4000
"""The maximum number of rows of real data."""


def fit(X, p, noise, seed, chosen, **settings):
    """Fit our model with one start."""
    settings = {"n_init": 1, "verbose": False, **settings}
    if chosen.quick:
        settings["max_iter"] = 50
    return NoisyICA(p, noise=noise, prior=chosen.prior, random_state=seed, **settings).fit(X)


def measure_images(chosen):
    """Measure the errors of A on the paper's images, which have equal noise in all columns."""
    truth, found, variance = images.truth(), {}, {}
    for n, sigma in ((30, 0.5),) if chosen.quick else product((30, 100), (0.1, 0.5, 0.8, 1.5)):
        found[n, sigma], variance[n, sigma] = defaultdict(list), defaultdict(list)
        for seed, noise in product(range(chosen.repeats), chosen.noise):
            ica = fit(images.sample(n, sigma, seed), 2, noise, seed, chosen, tol=0)
            found[n, sigma][noise].append(mean_square_error(ica.mixing_, truth))
            variance[n, sigma][noise].append(np.mean(ica.noise_variance_) / sigma**2)
    table("Mean square error of A on the images (rows, sigma)", found, 5)
    table("Noise variance in units of the true one", variance)
    for cell, values in found.items():
        usual = np.array(values["isotropic"])
        for noise in chosen.noise[1:]:
            ratio = np.mean(values[noise]) / usual.mean()
            less, error = mean_and_error(np.array(values[noise]) - usual)
            print(f"{noise} at {cell}: {ratio:.3f} times isotropic ({less:+.5f} ± {error:.5f})")


def rows_of(kind, seed):
    """Return rows, the true A, and which rows are outlying."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(64, 10))
    beta = rng.normal(size=(1000, 10)) * (rng.random((1000, 10)) < 0.3)
    size, outlying = np.ones(1000), np.zeros(1000, bool)
    if kind == "5 % outlying":
        outlying = rng.random(1000) < 0.05
        size = np.where(outlying, 10.0, 1.0)
    elif kind == "Student, 3":
        size = 1 / np.sqrt(rng.gamma(1.5, 1 / 1.5, 1000))
    return beta @ A.T + size[:, None] * rng.normal(size=(1000, 64)), A, outlying


def measure_rows(chosen):
    """Measure what outlying rows do to the components."""
    cosine, variance, dof, area = ({} for _ in range(4))
    for kind in ("clean", "5 % outlying", "Student, 3"):
        for values in (cosine, variance, dof, area):
            values[kind] = defaultdict(list)
        for seed in range(chosen.repeats):
            X, A, outlying = rows_of(kind, seed)
            found = matched_cosines(A, fastica(10, seed).fit(X).mixing_).mean()
            cosine[kind]["FastICA"].append(found)
            for noise in chosen.noise:
                ica = fit(X, 10, noise, seed, chosen)
                cosine[kind][noise].append(matched_cosines(A, ica.mixing_).mean())
                variance[kind][noise].append(np.mean(ica.noise_variance_))
                dof[kind][noise].append(getattr(ica, "noise_dof_", np.inf))
                if outlying.any() and hasattr(ica, "row_weights_"):
                    area[kind][noise].append(roc_auc_score(outlying, -ica.row_weights_))
        print(f"{kind}: done", flush=True)
    table("Matched cosine", cosine)
    for noise, kind in product(chosen.noise, cosine):
        least, at_most = min(cosine[kind][noise]), max(cosine[kind][noise])
        parts = [f"cosine {least:.4f} to {at_most:.4f}"]
        parts.append("noise {:.3f} ± {:.3f}".format(*mean_and_error(variance[kind][noise])))
        parts.append("degrees of freedom {:.3g} ± {:.2g}".format(*mean_and_error(dof[kind][noise])))
        if area[kind][noise]:
            parts.append(f"least area {min(area[kind][noise]):.4f}")
        print(f"{kind:14} {noise:10} {', '.join(parts)}")


def measure_real(chosen):
    """Compare held-out likelihoods."""
    for title, X, p in real_sets(chosen):
        X = X[:MOST_ROWS]
        folds = list(KFold(max(chosen.repeats, 2), shuffle=True, random_state=0).split(X))
        # a constant column has any density
        X = X[:, np.all([X[train].std(0) > 0 for train, _ in folds], 0)]
        score, least, begun = defaultdict(list), defaultdict(list), time.perf_counter()
        for noise, (seed, (train, test)) in product(chosen.noise, enumerate(folds)):
            ica = fit(X[train], p, noise, seed, chosen)
            score[noise].append(ica.score(X[test]))
            least[noise].append(np.min(ica.noise_variance_ / X[train].var(0)))
        for train, test in folds:
            fa = FactorAnalysis(p, random_state=0).fit(X[train])
            score["FA"].append(fa.score(X[test]))
        took = time.perf_counter() - begun
        print(f"\n{title}, {len(X)} x {X.shape[1]}, {p} components ({took:.0f} s)")
        for name, values in score.items():
            less, error = mean_and_error(np.subtract(values, score["FA"]))
            line = f"  {name:10} {np.mean(values):12.3f} ({less:+.3f} ± {error:.3f} of FA)"
            print(line + (f", least share {min(least[name]):.2g}" if least[name] else ""))


def measure_dimension(chosen):
    """Count components where there are none, and where their number is known."""
    for seed in range(chosen.repeats):
        rng = np.random.default_rng(seed)
        unequal = rng.normal(size=(500, 20)) * np.exp(rng.normal(size=20))
        heavy = rng.normal(size=(500, 20)) / np.sqrt(rng.gamma(1.05, 1 / 1.05, 500))[:, None]
        cases = {"unequal columns": unequal, "Student, 2.1": heavy}
        for case in ("2 images", "8 intervals", "20 dense"):
            cases[case] = dimension_rows(case, "normal", seed)
        for case, X in cases.items():
            counts = [
                len(fit(X, "auto", noise, seed, chosen).components_) for noise in chosen.noise
            ]
            shown = ", ".join(f"{n} {k}" for n, k in zip(chosen.noise, counts, strict=True))
            print(f"{case:16} {shown}", flush=True)


def measure_speed(chosen):
    """Measure iterations with all kinds of noise in turn, so that the machine is the same."""
    n, d, p = 7291, 256, 20
    rng = np.random.default_rng(0)
    A = rng.normal(size=(d, p))
    X = rng.laplace(size=(n, p)) @ A.T + rng.normal(size=(n, d))
    counts, found = (10, 60) if chosen.quick else (20, 200), defaultdict(list)
    for turn in range(chosen.repeats + 1):
        for noise in chosen.noise if turn % 2 else chosen.noise[::-1]:
            times = []
            for count in counts:
                begun = time.perf_counter()
                options = {"n_init": 1, "tol": 0, "verbose": False, "max_iter": count}
                NoisyICA(p, noise=noise, init=A, random_state=0, **options).fit(X)
                times.append(time.perf_counter() - begun)
            if turn:  # the first turn compiles
                found[noise].append((times[1] - times[0]) / (counts[1] - counts[0]))
    for noise in chosen.noise:
        ratio = np.median(np.divide(found[noise], found["isotropic"]))
        milliseconds = 1e3 * np.median(found[noise])
        print(f"{noise:10} {milliseconds:8.3f} ms per iteration, {ratio:.3f} times isotropic")


PARTS = {
    "images": (measure_images, 10),
    "rows": (measure_rows, 4),
    "real": (measure_real, 3),
    "dimension": (measure_dimension, 3),
    "speed": (measure_speed, 7),
}
"""The function of each part, and its number of repeats."""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--noise", nargs="+", default=["isotropic", "diagonal", "student", "auto"])
    parser.add_argument("--prior", default="bg")
    parser.add_argument("--data", nargs="*", default=[], help="FILE:ARRAY:COMPONENTS, for real")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    run, repeats = PARTS[chosen.part]
    chosen.repeats = chosen.repeats or (1 if chosen.quick else repeats)
    chosen.noise = ["isotropic", *(name for name in chosen.noise if name != "isotropic")]
    warnings.simplefilter("ignore")
    run(chosen)


if __name__ == "__main__":
    main()
