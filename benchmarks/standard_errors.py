"""How often intervals of 1.96 standard errors hold the truth, where the model is right or wrong.

    python benchmarks/standard_errors.py --replicates 200

The model has Bernoulli-Gaussian coefficients and normal noise. The data have them, too, or: noise
with a t law of 5 degrees of freedom; sources that are on together (in a share of the rows, one draw
decides for all); Laplace sources; Bernoulli-Laplace sources that are on together, with t noise.
Where the model is wrong, the truth is what a fit to very many rows gives.

Other cases have a model of their own, which SAEM fits: "student" (the noise of rows has a t law of
5 degrees of freedom, and the model noise="student"), "auto" (the same with more noise in some
columns than in others, and noise="auto"), "adaptive" and "shared" (data as in the first case, and
prior="adaptive" with weights of each component, or with common ones).

Printed are the share of intervals that hold the truth, for robust errors and for those by the
model, each with its Monte-Carlo error (that of independent replicates); the spread of estimates
over replicates in units of the two errors; and the ratio of robust errors to those by the model.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from noisyica import NoisyICA
from noisyica.priors import Adaptive

ALPHA, SIGMA, DOF = 0.4, 0.5, 5
NAMES = ("mixing", "mean", "noise_variance", "noise_dof", "alpha")
CASES = ("right", "t5 noise", "on together", "laplace", "all three")
MODELS = {
    "student": {"noise": "student"},
    "auto": {"noise": "auto"},
    "adaptive": {"prior": "adaptive"},
    "shared": {"prior": Adaptive(shared=True)},
}


def options():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=CASES, choices=(*CASES, *MODELS))
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--components", type=int, default=2)
    parser.add_argument("--together", type=float, default=0.5, help="the share of such rows")
    parser.add_argument("--many", type=int, default=200_000, help="rows for the truth")
    parser.add_argument("--algorithm", default="em")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--noise", default="isotropic")
    parser.add_argument("--hidden", action="store_true", help="give A a prior (not with em)")
    return parser.parse_args()


def mixing(chosen):
    """Return the mixing matrix of all cases, (d, p)."""
    return np.random.default_rng(0).normal(size=(chosen.columns, chosen.components))


def rows(case, n, seed, chosen):
    """Return n rows of a case."""
    rng = np.random.default_rng([(*CASES, *MODELS).index(case), seed])
    shape = (n, chosen.components)
    on = rng.random(shape) < ALPHA
    if case in ("on together", "all three"):
        on = np.where(rng.random((n, 1)) < chosen.together, on[:, :1], on)
    if case == "laplace":
        on = np.ones(shape)
    size = rng.laplace(size=shape) if case in ("laplace", "all three") else rng.normal(size=shape)
    noise = rng.normal(size=(n, chosen.columns))
    if case in ("t5 noise", "all three"):
        noise = rng.standard_t(5, size=noise.shape) * np.sqrt(3 / 5)
    if case in ("student", "auto"):
        noise /= np.sqrt(rng.chisquare(DOF, size=(n, 1)) / DOF)
    if case == "auto":
        noise *= np.linspace(0.5, 1.5, chosen.columns)
    return (on * size) @ mixing(chosen).T + SIGMA * noise + 1.0


def fit(case, X, chosen, seed, init):
    """Fit the model from a start that is near the maximum, as replicates are not about starts."""
    settings = {
        "algorithm": "saem" if case in MODELS else chosen.algorithm,
        "mixing_prior": "normal" if chosen.hidden else None,
        "noise": chosen.noise,
        "max_iter": chosen.iterations,
    }
    settings |= MODELS.get(case, {})
    ica = NoisyICA(chosen.components, init=init, tol=0, n_init=1, random_state=seed, **settings)
    return ica.fit(X)


def estimates(ica, reference):
    """Return what was learnt by name, and which of its components match a reference (d, p).

    The components are in the order and have the signs of the reference.
    """
    A = ica.mixing_
    cosine = (A / np.linalg.norm(A, axis=0)).T @ (reference / np.linalg.norm(reference, axis=0))
    _, order = linear_sum_assignment(-np.abs(cosine.T))
    signs = np.sign(cosine[order, np.arange(len(order))])
    values = {
        "mixing": A[:, order] * signs,
        "mean": ica.mean_,
        "noise_variance": ica.noise_variance_,
    }
    if hasattr(ica, "noise_dof_"):
        values["noise_dof"] = ica.noise_dof_
    if hasattr(ica.prior_, "alpha"):
        values["alpha"] = ica.prior_.alpha
    return values, order


def replicates(case, chosen):
    """Return the truth by name, and estimates, robust errors and errors by the model of each."""
    start = mixing(chosen)
    truth, _ = estimates(fit(case, rows(case, chosen.many, 10**6, chosen), chosen, 0, start), start)
    results = []
    for seed in range(chosen.replicates):
        X = rows(case, chosen.rows, seed, chosen)
        ica = fit(case, X, chosen, seed, truth["mixing"])
        values, order = estimates(ica, truth["mixing"])
        both = [dict(ica.standard_errors(X, robust=robust)) for robust in (True, False)]
        for errors in both:
            errors["mixing"] = errors["mixing"][:, order]
        results.append((values, *both))
    return truth, results


def show(case, truth, results):
    """Print a line for each kind of parameter."""
    for name in (name for name in NAMES if name in truth):
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
    chosen = options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("coverage by robust errors, by the model's; spread over error for both; robust / model")
    for case in chosen.cases:
        begun = time.perf_counter()
        show(case, *replicates(case, chosen))
        print(f"{case:>12}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
