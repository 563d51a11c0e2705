"""What a prior of A's entries is worth: errors of A, calibration, number of components, speed.

    python benchmarks/mixing.py images --repeats 50
    python benchmarks/mixing.py designs
    python benchmarks/mixing.py nonnegative
    python benchmarks/mixing.py calibration
    python benchmarks/mixing.py dimension
    python benchmarks/mixing.py speed
    python benchmarks/mixing.py high-noise --mixing-prior normal sparse --settings tol=0
    python benchmarks/mixing.py real --data usps.npz:X_train:20 hippocampus.npz:log_jacobian:5

Each part simulates ``--repeats`` data sets, measures them, prints a table of means with their
standard errors, and says of each bound whether it is met. ``--quick`` only shows that it runs.

images       The paper's two images, with 30 or 100 rows: mean square error of A.
designs      200 rows, 200 columns, 4 or 10 components. "blocks": each column of A is on in a block
             of its own, and the blocks cover all rows of A; "overlapping": each entry is on with
             probability .3; "dense": all entries are on. Entries that are on are N(0, 1).
nonnegative  300 rows, 100 columns, 6 components. Entries of A are exponential; those of a "sparse"
             A are on with probability .3. Coefficients are exponential, and there is no mean. NMF
             is given the data with negative entries set to zero.
calibration  200 rows, 200 columns, 4 components, whose entries are on with probability .1, .2, .4
             and .8 and then N(0, 1): the share of entries that are on against what
             ``components_probability_`` says of them, and the coverage of 95 % intervals of A.
dimension    ``n_components="auto"``: the paper's 8 intervals, its 2 images (100 rows, sigma = .8),
             and 20 components of a dense A (2,000 rows, 100 columns, sigma = .5).
speed        Seconds per iteration, and their ratio to those with "normal".
high-noise   1,000 rows, 64 columns, 10 components, dense A, sigma = 4: cosines of fits that
             begin at "auto" and at the true A, and of FastICA.
real         scikit-learn's tables, and arrays of files (FILE:ARRAY:COMPONENTS): log likelihood of
             held-out rows in folds, less that with "normal", and the cosines of components that
             are learnt from all rows with two random seeds, and from halves of the rows.

Coefficients are Bernoulli-Gaussian where nothing else is said, with alpha = .8 in the images, .5 in
the intervals, and .3 elsewhere. Errors and cosines are of columns matched with the true ones.
Methods that know no scale have coefficients of the true variance, as on the paper's page. The
penalty of SparsePCA and of NMF is the best of three by the truth, chosen for each data set.

Fits of our model have one start and 1,000 iterations; those of "high-noise" stop when the library
finds that they are at rest. ``--settings`` changes this for all fits of a run.
"""

import argparse
import ast
import time
import warnings
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import NMF, FactorAnalysis, FastICA, SparsePCA
from sklearn.model_selection import KFold
from sklearn.preprocessing import scale

from noisyica import Model, NoisyICA, laws, priors
from noisyica.paper import components, images
from noisyica.paper.images import _other
from noisyica.paper.measures import cosines, matched_cosines, mean_square_error

OURS = {
    "normal": "normal",
    "sparse": "sparse",
    "nonnegative": "nonnegative",
    "laplace": laws.Laplace(),
    "none": None,
}
"""Mixing priors by their names on the command line."""
ALPHA = 0.3
"""The probability that a coefficient is on, in all parts but images and intervals."""
SPARSE_PCA, NMF_PENALTIES = (0.5, 1.0, 3.0), (0.0, 0.001, 0.01)
"""The penalties among which the truth chooses."""
IMAGES = dict(
    zip(
        product((30, 100), (0.1, 0.5, 0.8, 1.5)),
        (0.005, 0.006, 0.014, 0.09, 0.003, 0.0025, 0.004, 0.014),
        strict=True,
    )
)
"""The largest error of "sparse" on the images, by the number of rows and sigma."""
DESIGNS = {
    "blocks": (0.028, 0.053, 0.252),
    "overlapping": (0.049, 0.117, 0.450),
    "dense": (0.286, 0.317, 0.866),
}
"""The largest errors of "sparse" with 10 components at sigma = .5, 1 and 2."""
EDGES = (0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""The bins of stated probabilities."""
MOST_ROWS = 4000
"""The maximum number of rows of real data."""
SIZES = {(7291, 256, 20): 1.25, (100, 20_000, 10): 2.0}
"""Rows, columns and components of the measured times, and the largest ratio to "normal"."""


# ---------------------------------------------------------------------------------- what serves all


def options():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--repeats", type=int, help="data sets, or times that are measured")
    parser.add_argument("--seed", type=int, default=0, help="that of the first data set")
    parser.add_argument("--quick", action="store_true", help="few cells, short fits, one repeat")
    parser.add_argument("--data", nargs="*", default=[], help="FILE:ARRAY:COMPONENTS, for real")
    parser.add_argument("--mixing-prior", nargs="+", choices=OURS, help="those to measure")
    parser.add_argument(
        "--settings",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="of NoisyICA: tol=0 n_init=3",
    )
    chosen = parser.parse_args()
    _, repeats, names = PARTS[chosen.part]
    chosen.repeats = chosen.repeats or (1 if chosen.quick else repeats)
    chosen.names = chosen.mixing_prior or names
    chosen.seeds = range(chosen.seed, chosen.seed + chosen.repeats)
    chosen.settings = dict(setting(text) for text in chosen.settings)
    if chosen.quick:
        chosen.settings = {"max_iter": 50} | chosen.settings
    return chosen


def setting(text):
    """Return the name and the value of a setting; what is no Python literal is a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def fit(X, p, name, seed, chosen, **settings):
    """Fit our model with one start and, unless the settings say otherwise, all iterations."""
    settings = {"noise": "isotropic", "n_init": 1, "tol": 0, **settings, **chosen.settings}
    settings["verbose"] = False
    return NoisyICA(p, mixing_prior=OURS[name], random_state=seed, **settings).fit(X)


def simulate(A, sigma, n, seed, prior=None):
    """Return n rows of the model without a mean."""
    prior = prior or priors.BernoulliGaussian(ALPHA)
    return Model(A, noise_variance=sigma**2, prior=prior).sample(n, random_state=seed)[0]


def fastica(p, seed):
    """Return scikit-learn's FastICA as on the paper's page."""
    return FastICA(p, whiten="unit-variance", random_state=seed, max_iter=1000)


def others(X, truth, alpha, seed):
    """Return A by each method of scikit-learn, SparsePCA with the penalty best by the truth.

    The scale is such that coefficients have the true variance, alpha.
    """
    p = truth.shape[1]
    settings = {"method": "cd", "max_iter": 200, "random_state": seed}
    fits = {
        "varimax": FactorAnalysis(p, rotation="varimax", random_state=seed),
        "FastICA": fastica(p, seed),
        **{a: SparsePCA(p, alpha=a, **settings) for a in SPARSE_PCA},
    }
    scale = np.sqrt(images.ALPHA / alpha)
    found = {name: scale * _other(estimator, X)[0] for name, estimator in fits.items()}
    sparse = [found.pop(a) for a in SPARSE_PCA]
    return found | {"SparsePCA": min(sparse, key=lambda A: mean_square_error(A, truth))}


def mean_and_error(values):
    """Return the mean of some values and its standard error, which is nan for a single one."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return values.mean(), np.nan
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


def table(title, found, digits=4):
    """Print means and standard errors; ``found[cell][method]`` has a number for each data set."""
    methods = list(dict.fromkeys(method for values in found.values() for method in values))
    width = 2 * digits + 9
    print(f"\n{title}\n{'':12}" + "".join(f"{cell!s:>{width}}" for cell in found))
    for method in methods:
        line = f"{method:12}"
        for values in found.values():
            mean, error = mean_and_error(values[method])
            line += f"{mean:{width - digits - 4}.{digits}f} ±{error:<{digits + 2}.{digits}f}"
        print(line)


def judge(text, values, bound):
    """Print whether a mean is at most a bound: by itself, or within two standard errors."""
    mean, error = mean_and_error(values)
    if mean <= bound:
        verdict = "met"
    else:
        verdict = "met within 2 se" if mean - 2 * error <= bound else "NOT met"
    print(f"{verdict:>15}: {text}: {mean:.5f} ± {error:.5f}, at most {bound:g}")


def judge_difference(text, ours, theirs, bound=0.0):
    """Judge the mean difference of two methods on the same data sets."""
    judge(text, np.subtract(ours, theirs), bound)


def progress(text, begun):
    """Print what is done, and the seconds that it took."""
    print(f"{text} ({time.perf_counter() - begun:.0f} s)", flush=True)


# -------------------------------------------------------------------------------------- errors of A


def all_methods(X, truth, alpha, seed, chosen):
    """Return A by our model with each mixing prior, and by the methods of scikit-learn."""
    p = truth.shape[1]
    ours = {name: fit(X, p, name, seed, chosen).mixing_ for name in chosen.names}
    return ours | others(X, truth, alpha, seed)


def measure_images(chosen):
    """Measure the errors of A on the paper's images."""
    truth, found = images.truth(), {}
    for n, sigma in ((30, 0.5),) if chosen.quick else IMAGES:
        begun, found[n, sigma] = time.perf_counter(), defaultdict(list)
        for seed in chosen.seeds:
            X = images.sample(n, sigma, seed)
            for method, A in all_methods(X, truth, images.ALPHA, seed, chosen).items():
                found[n, sigma][method].append(mean_square_error(A, truth))
        progress((n, sigma), begun)
    table("Mean square error of A on the images (rows, sigma)", found)
    for (n, sigma), values in found.items():
        if "sparse" not in values:
            continue
        cell, ours = f"sparse at {n}, {sigma}", values["sparse"]
        judge(cell, ours, IMAGES[n, sigma])
        if (n, sigma) != (100, 0.1):
            judge_difference(f"{cell}, less varimax", ours, values["varimax"])
        if sigma >= 0.5:
            judge_difference(f"{cell}, less SparsePCA", ours, values["SparsePCA"])


def mixing(design, d, p, seed):
    """Return the A of a design."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, p))
    if design == "blocks":
        return A * np.kron(np.eye(p), np.ones((d // p, 1)))
    return A * (rng.random((d, p)) < 0.3) if design == "overlapping" else A


def measure_designs(chosen):
    """Measure the errors of A in the designs, and the cosines where it is dense."""
    cells = list(product(DESIGNS, (4, 10), (0.5, 1.0, 2.0)))
    found, cosine = {}, {}
    for cell in [("dense", 4, 1.0)] if chosen.quick else cells:
        design, p, sigma = cell
        begun, found[cell], cosine[cell] = time.perf_counter(), defaultdict(list), defaultdict(list)
        for seed in chosen.seeds:
            truth = mixing(design, 200, p, seed)
            X = simulate(truth, sigma, 200, seed)
            for method, A in all_methods(X, truth, ALPHA, seed, chosen).items():
                found[cell][method].append(mean_square_error(A, truth))
                cosine[cell][method].append(matched_cosines(truth, A).mean())
        progress(cell, begun)
    for design, p in dict.fromkeys(cell[:2] for cell in found):
        title = f"{design}, {p} components, by sigma: "
        for values, what in ((found, "mean square error of A"), (cosine, "cosine")):
            part = {cell[2]: values[cell] for cell in values if cell[:2] == (design, p)}
            table(title + what, part)
    for cell in found:
        if {"normal", "sparse"} <= set(found[cell]):
            judge_design(cell, found[cell], cosine[cell])


def judge_design(cell, found, cosine):
    """Judge the error of "sparse" with 10 components, and its cosine where A is dense."""
    design, p, sigma = cell
    if p == 10:
        judge(f"sparse at {cell}", found["sparse"], DESIGNS[design][(0.5, 1.0, 2.0).index(sigma)])
    if design == "dense":
        text = f"cosine of normal less that of sparse at {cell}"
        judge_difference(f"{text}, mean", cosine["normal"], cosine["sparse"], 0.001)
        worst = np.subtract(cosine["normal"], cosine["sparse"]).max()
        judge(f"{text}, largest of {len(cosine['sparse'])}", [worst], 0.001)


def measure_nonnegative(chosen):
    """Measure the cosines of non-negative factorisations."""
    found = {}
    for kind, sigma in product(
        ("sparse", "dense"), (1.0,) if chosen.quick else (0.1, 0.5, 1.0, 2.0)
    ):
        cell = kind, sigma
        begun, found[cell] = time.perf_counter(), defaultdict(list)
        for seed in chosen.seeds:
            X, truth = nonnegative_rows(kind, sigma, seed)
            for method, A in nonnegative_fits(X, truth, seed, chosen).items():
                found[cell][method].append(matched_cosines(truth, A).mean())
        progress(cell, begun)
    for kind in ("sparse", "dense"):
        part = {cell[1]: values for cell, values in found.items() if cell[0] == kind}
        table(f"Cosine, non-negative, A {kind}, by sigma", part, 5)
    for (kind, sigma), values in found.items():
        if "nonnegative" in values:
            ours, theirs = (1 - np.array(values[name]) for name in ("nonnegative", "NMF"))
            text = f"1 - cosine, A {kind}, sigma = {sigma}, less "
            judge_difference(text + "NMF's", ours, theirs)
            if kind == "sparse" and sigma >= 1:
                judge_difference(text + "half of NMF's", ours, theirs / 2)


def nonnegative_rows(kind, sigma, seed):
    """Return rows of the model with non-negative A and coefficients, and A."""
    rng = np.random.default_rng(seed)
    A = rng.exponential(size=(100, 6))
    if kind == "sparse":
        A *= rng.random(A.shape) < 0.3
    return rng.exponential(size=(300, 6)) @ A.T + sigma * rng.normal(size=(300, 100)), A


def nonnegative_fits(X, truth, seed, chosen):
    """Return A by our model with exponential coefficients, NMF and FastICA."""
    p = truth.shape[1]
    settings = {"prior": laws.Exponential(), "mean": "zero"}
    ours = {name: fit(X, p, name, seed, chosen, **settings).mixing_ for name in chosen.names}
    fits = [
        NMF(p, alpha_W=penalty, l1_ratio=1, init="nndsvda", max_iter=1000, random_state=seed)
        for penalty in NMF_PENALTIES
    ]
    theirs = [nmf.fit(np.maximum(X, 0)).components_.T for nmf in fits]
    best = max(theirs, key=lambda A: matched_cosines(truth, A).mean())
    return {**ours, "NMF": best, "FastICA": fastica(p, seed).fit(X).mixing_}


# -------------------------------------------------------------------------------------- calibration


def measure_calibration(chosen):
    """Measure how often entries are on that are said to be, and the coverage of intervals."""
    for name, sigma in product(chosen.names, (1.0,) if chosen.quick else (0.5, 1.0)):
        begun = time.perf_counter()
        sets = [calibration_set(name, sigma, seed, chosen) for seed in chosen.seeds]
        progress(f"\n{name}, sigma = {sigma}, {len(sets)} data sets", begun)
        worst = min(cosine.min() for *_, cosine in sets)
        print(f"least cosine of a component with the truth: {worst:.4f}")
        if sets[0][0] is not None:
            show_probabilities(sets)
        show_coverage(sets)


def calibration_set(name, sigma, seed, chosen):
    """Fit a data set; return what is said of the entries of A, in the order of the true ones.

    It is the probability that each is not zero (None where the prior has no such thing), whether it
    truly is not, whether its interval holds the truth, and the cosines of the columns.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(200, 4)) * (rng.random((200, 4)) < (0.1, 0.2, 0.4, 0.8))
    X = simulate(truth, sigma, 200, seed)
    ica = fit(X, 4, name, seed, chosen)
    cosine = cosines(truth, ica.mixing_)
    _, order = linear_sum_assignment(-cosine)
    A = ica.mixing_[:, order]
    A = A * np.sign((A * truth).sum(0))
    inside = np.abs(A - truth) <= half_widths(ica, X).T[:, order]
    probability = getattr(ica, "components_probability_", None)
    if probability is not None:
        probability = np.asarray(probability).T[:, order]
    return probability, truth != 0, inside, cosine[range(4), order]


def half_widths(ica, X):
    """Return half of the widths of 95 % intervals of ``components_``, (p, d).

    This is the only place that says where the intervals of A come from.
    """
    return 1.96 * ica.standard_errors(X)["components"]


def ratio(totals, counts):
    """Return the ratio of two sums over data sets, and its standard error."""
    totals, counts = np.array(totals, float), np.array(counts, float)
    value = totals.sum() / counts.sum()
    m = len(totals)
    if m < 2:
        return value, np.nan
    spread = np.square(totals - value * counts).sum() * m / (m - 1)
    return value, np.sqrt(spread) / counts.sum()


def show_probabilities(sets):
    """Print the share of entries that are on, and what was said, for each bin of probabilities."""
    print("stated       entries  mean stated  share on  difference")
    bins = [*pairwise(EDGES), (0.0, 1.0)]
    for low, high in bins:
        here = [(p >= low) & (p <= high if high == 1 else p < high) for p, *_ in sets]
        counts = [chosen.sum() for chosen in here]
        if not sum(counts):
            continue
        stated = [p[chosen].sum() for (p, *_), chosen in zip(sets, here, strict=True)]
        on = [true[chosen].sum() for (_, true, *_), chosen in zip(sets, here, strict=True)]
        difference, error = ratio(np.subtract(on, stated), counts)
        met = "" if abs(difference) <= 2 * error else "  NOT within 2 se"
        means = f"{ratio(stated, counts)[0]:12.4f}{ratio(on, counts)[0]:10.4f}"
        share = f"{difference:+12.4f} ± {error:.4f}{met}"
        print(f"{low:.2f}-{high:.2f} {sum(counts):10d} {means}{share}")


def show_coverage(sets):
    """Print the share of 95 % intervals that hold the truth, for entries on, off, and all.

    Only that of all is judged: a prior promises no coverage of the entries that are on.
    """
    for kind, chosen in (("on", lambda on: on), ("off", lambda on: ~on), ("all", np.ones_like)):
        pairs = [(inside[chosen(on)].sum(), chosen(on).sum()) for _, on, inside, _ in sets]
        share, error = ratio(*zip(*pairs, strict=True))
        met = "  met" if share + 2 * error >= 0.95 else "  NOT met"
        line = f"coverage of 95 % intervals, entries {kind:3}: {share:.4f} ± {error:.4f}"
        print(line + (met if kind == "all" else ""))


# ----------------------------------------------------------------------------- number of components


def dimension_rows(case, name, seed):
    """Return the rows of a case; where A is to be non-negative, the dense one is."""
    if case == "8 intervals":
        prior = priors.BernoulliGaussian(components.ALPHA, shift=components.SHIFT)
        return simulate(components.truth(), components.SIGMA, components.ROWS, seed, prior)
    if case == "2 images":
        return images.sample(100, 0.8, seed)
    A = mixing("dense", 100, 20, seed)
    return simulate(np.abs(A) if name == "nonnegative" else A, 0.5, 2000, seed)


def measure_dimension(chosen):
    """Count how often "auto" finds the true number of components."""
    for case, name in product(("2 images", "8 intervals", "20 dense"), chosen.names):
        begun, true = time.perf_counter(), int(case.split()[0])
        found = [
            len(fit(dimension_rows(case, name, seed), "auto", name, seed, chosen).components_)
            for seed in chosen.seeds
        ]
        right = found.count(true)
        verdict = "met" if right >= 0.9 * len(found) else "NOT met"
        numbers = " ".join(map(str, found))
        progress(f"{case:12} {name:12} {right} of {len(found)}, {verdict}: {numbers}", begun)


# -------------------------------------------------------------------------------------------- speed


def seconds_per_iteration(X, A, name, counts, chosen):
    """Return the difference of the times of a long and a short fit, per iteration."""
    times = []
    for count in counts:
        begun = time.perf_counter()
        fit(X, A.shape[1], name, 0, chosen, init=A, max_iter=count)
        times.append(time.perf_counter() - begun)
    return (times[1] - times[0]) / (counts[1] - counts[0])


def measure_speed(chosen):
    """Measure iterations of all mixing priors in turn, so that the machine is the same for all."""
    chosen.settings.pop("max_iter", None)
    for (n, d, p), bound in SIZES.items():
        counts = (10, 60) if chosen.quick else (20, 200)
        rng = np.random.default_rng(chosen.seed)
        A, noise = rng.normal(size=(d, p)), rng.normal(size=(n, d))
        X = rng.laplace(size=(n, p)) @ A.T + noise
        names = list(dict.fromkeys(["normal", *chosen.names]))
        found = {name: [] for name in names}
        for turn in range(chosen.repeats + 1):
            for name in names if turn % 2 else names[::-1]:
                seconds = seconds_per_iteration(X, A, name, counts, chosen)
                if turn:  # the first turn compiles
                    found[name].append(seconds)
        print(f"\n{n:,} x {d:,}, p = {p}: medians of {chosen.repeats}")
        for name in names:
            quotient = np.median(np.divide(found[name], found["normal"]))
            verdict = "" if name == "normal" else "met" if 0 < quotient <= bound else "NOT met"
            line = f"  {name:12} {1e3 * np.median(found[name]):9.3f} ms per iteration"
            print(f"{line}, {quotient:.3f} times normal, at most {bound:g} {verdict}", flush=True)


# --------------------------------------------------------------------------------------- high noise


def measure_high_noise(chosen):
    """Compare the start "auto" with the true A and with FastICA; ``tol`` is the library's."""
    settings = {"tol": NoisyICA().tol}
    found = defaultdict(list)
    heads = ["FastICA", *(f"{name} {at}" for name in chosen.names for at in ("auto", "truth"))]
    print("data set" + "".join(f"{head:>20}" for head in heads))
    for seed in chosen.seeds:
        A = mixing("dense", 64, 10, seed)
        X = simulate(A, 4.0, 1000, seed)
        found["FastICA"].append(matched_cosines(A, fastica(10, seed).fit(X).mixing_).mean())
        for name, (at, init) in product(chosen.names, (("auto", "auto"), ("truth", A))):
            ica = fit(X, 10, name, seed, chosen, init=init, **settings)
            found[f"{name} {at}"].append(matched_cosines(A, ica.mixing_).mean())
        print(f"{seed:8d}" + "".join(f"{found[head][-1]:20.4f}" for head in heads), flush=True)
    for name in chosen.names:
        auto, true = (np.array(found[f"{name} {at}"]) for at in ("auto", "truth"))
        judge_difference(f"{name}: from the truth less from auto, mean", true, auto, 0.001)
        judge(f"{name}: from the truth less from auto, largest", [(true - auto).max()], 0.01)
        judge(f"{name}: FastICA less auto, largest", [(found["FastICA"] - auto).max()], 0.0)


# -------------------------------------------------------------------------------------------- real


def real_sets(chosen):
    """Return rows and a number of components, by name; tables are standardised."""
    tables = {"digits": (load_digits, 10), "breast cancer": (load_breast_cancer, 6)}
    tables |= {"wine": (load_wine, 4), "diabetes": (load_diabetes, 4)}
    for name, (load, p) in tables.items():
        X = load().data
        yield name, X if name == "digits" else scale(X), p
    for text in chosen.data:
        path, array, p = text.rsplit(":", 2)
        with np.load(path) as file:
            X = np.asarray(file[array], float)
        yield f"{Path(path).stem} {array}", X / X.std(), int(p)


def measure_real(chosen):
    """Compare held-out likelihoods, and components between seeds and between halves."""
    for title, X, p in real_sets(chosen):
        begun, X = time.perf_counter(), X[:MOST_ROWS]
        folds = list(KFold(chosen.repeats, shuffle=True, random_state=0).split(X))
        found = {name: defaultdict(list) for name in chosen.names}
        for name, (seed, (train, test)) in product(chosen.names, enumerate(folds)):
            values = found[name]
            values["score"].append(fit(X[train], p, name, seed, chosen).score(X[test]))
            order = np.random.default_rng(seed).permutation(len(X))
            A, B = (fit(X, p, name, 2 * seed + i, chosen).mixing_ for i in range(2))
            values["seeds"].append(matched_cosines(A, B).mean())
            A, B = (fit(X[h], p, name, seed, chosen).mixing_ for h in np.array_split(order, 2))
            values["halves"].append(matched_cosines(A, B).mean())
        progress(f"\n{title}, {len(X)} x {X.shape[1]}, {p} components", begun)
        for name in chosen.names:
            less = {key: np.subtract(found[name][key], found["normal"][key]) for key in found[name]}
            shown = ", ".join(
                f"{key} {np.mean(found[name][key]):.4f} ({values.mean():+.4f} ± "
                f"{values.std(ddof=1) / np.sqrt(len(values)):.4f})"
                for key, values in less.items()
            )
            print(f"  {name:12} {shown}", flush=True)


PARTS = {
    "images": (measure_images, 50, ["normal", "sparse"]),
    "designs": (measure_designs, 15, ["normal", "sparse"]),
    "nonnegative": (measure_nonnegative, 15, ["nonnegative"]),
    "calibration": (measure_calibration, 50, ["sparse"]),
    "dimension": (measure_dimension, 10, ["normal", "sparse", "nonnegative", "laplace"]),
    "speed": (measure_speed, 7, ["normal", "sparse", "nonnegative"]),
    "high-noise": (measure_high_noise, 20, ["normal"]),
    "real": (measure_real, 4, ["normal", "sparse"]),
}
"""The function of each part, its number of repeats, and the mixing priors that it measures."""


def main():
    chosen = options()
    warnings.simplefilter("ignore")
    shown = " ".join(f"{name}={value}" for name, value in chosen.settings.items())
    print(f"{chosen.part}: {chosen.repeats} repeats from seed {chosen.seed} {shown}".rstrip())
    PARTS[chosen.part][0](chosen)


if __name__ == "__main__":
    main()
