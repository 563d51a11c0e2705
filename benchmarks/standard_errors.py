"""How often intervals of 1.96 standard errors hold the truth, where the model is right or wrong.

    python benchmarks/standard_errors.py --replicates 200

The model has Bernoulli-Gaussian coefficients and normal noise. The data have them, too, or: noise
with a t law of 5 degrees of freedom; sources that are on together; Laplace sources; three of these
at once. Where the model is wrong, the truth is what a fit to very many rows gives. Printed are the
share of intervals that hold it (and its Monte-Carlo error, replicates being independent), for
robust errors and for those by the model; the spread of estimates over replicates in units of the
error; and the ratio of robust errors to those by the model.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from noisyica import NoisyICA

D, P, ALPHA, SIGMA = 6, 2, 0.4, 0.5
NAMES = ("mixing", "mean", "noise_variance", "alpha")
CASES = ("right", "t5 noise", "on together", "laplace", "all three")


def mixing():
    """Return the mixing matrix of all cases, (D, P)."""
    return np.random.default_rng(0).normal(size=(D, P))


def rows(case, n, seed, together):
    """Return n rows of a case; in ``together`` of them one draw decides whether sources are on."""
    rng = np.random.default_rng([CASES.index(case), seed])
    on = rng.random((n, P)) < ALPHA
    if case in ("on together", "all three"):
        on = np.where(rng.random((n, 1)) < together, on[:, :1], on)
    size = rng.normal(size=(n, P))
    if case == "laplace":
        on, size = np.ones_like(on), rng.laplace(size=(n, P))
    if case == "all three":
        size = rng.laplace(size=(n, P))
    noise = rng.normal(size=(n, D))
    if case in ("t5 noise", "all three"):
        noise = rng.standard_t(5, size=(n, D)) * np.sqrt(3 / 5)
    return (on * size) @ mixing().T + SIGMA * noise + 1.0


def fit(X, chosen, seed, init):
    """Fit the model from a start that is near the maximum, as replicates are not about starts."""
    prior = "normal" if chosen.hidden else None
    settings = {"algorithm": chosen.algorithm, "mixing_prior": prior, "noise": chosen.noise}
    ica = NoisyICA(P, init=init, max_iter=chosen.iterations, tol=0, random_state=seed, **settings)
    return ica.fit(X)


def estimates(ica, reference):
    """Return what was learnt by name, components in the order and signs of a reference (D, P)."""
    A = ica.mixing_
    cosine = (A / np.linalg.norm(A, axis=0)).T @ (reference / np.linalg.norm(reference, axis=0))
    _, order = linear_sum_assignment(-np.abs(cosine.T))
    signs = np.sign(cosine[order, np.arange(P)])
    values = {
        "mixing": A[:, order] * signs,
        "mean": ica.mean_,
        "noise_variance": ica.noise_variance_,
        "alpha": ica.prior_.alpha,
    }
    return values, order


def replicates(case, chosen):
    """Return estimates, robust errors and errors by the model, and the truth, each by name."""
    whole = fit(rows(case, chosen.many, 10**6, chosen.together), chosen, 0, mixing())
    truth, _ = estimates(whole, mixing())
    results = []
    for seed in range(chosen.replicates):
        X = rows(case, chosen.rows, seed, chosen.together)
        ica = fit(X, chosen, seed, truth["mixing"])
        values, order = estimates(ica, truth["mixing"])
        both = [dict(ica.standard_errors(X, robust=robust)) for robust in (True, False)]
        for errors in both:
            errors["mixing"] = errors["mixing"][:, order]
        results.append((values, *both))
    return truth, results


def show(case, truth, results):
    """Print a line for each kind of parameter."""
    for name in NAMES:
        value, robust, model = (
            np.array([np.ravel(result[i][name]) for result in results]) for i in range(3)
        )
        line = f"{case:>12} {name:>15}:"
        for errors in (robust, model):
            inside = (np.abs(value - np.ravel(truth[name])) < 1.96 * errors).mean(1)
            line += f"  {inside.mean():.3f} +- {inside.std() / np.sqrt(len(inside)):.3f}"
        for errors in (robust, model):
            line += f"  {np.mean(value.std(0) / np.sqrt(np.square(errors).mean(0))):.2f}"
        print(f"{line}  {np.mean(robust / model):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=CASES, choices=CASES)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--together", type=float, default=0.5)
    parser.add_argument("--many", type=int, default=200_000, help="rows for the truth")
    parser.add_argument("--algorithm", default="em")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--noise", default="isotropic")
    parser.add_argument("--hidden", action="store_true", help="whether A has a prior")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("coverage by robust errors, by the model's; spread over error for both; robust / model")
    for case in chosen.cases:
        begun = time.perf_counter()
        show(case, *replicates(case, chosen))
        print(f"{case:>12}: {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
