"""The paper's tables of p-values on hippocampi: two groups compared by each prior's coefficients.

    python benchmarks/groups.py --data hippocampus_spharm_left.npz --field log_jacobian

The file holds a field (n, d), and the labels of the rows under "label".
"""

import argparse
import time
import warnings

import numpy as np
import scipy.stats
from sklearn.exceptions import ConvergenceWarning

from noisyica import NoisyICA, compare_groups, priors
from noisyica.analysis.groups import hotelling

HEADS = "mean p", "sd draws", "sd refits", "p of mean", "median T2", "least adj"


def options():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--field", default="normal_displacement")
    parser.add_argument("--groups", nargs=2, default=["control", "tle_ipsilateral"])
    parser.add_argument("--priors", nargs="+", default=list(priors.TABLE))
    parser.add_argument("--components", type=int, default=5)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--refits", type=int, default=3)
    parser.add_argument("--permutations", type=int, default=1000)
    parser.add_argument(
        "--nulls",
        type=int,
        default=500,
        help="how often labels are permuted to see whether p-values are uniform",
    )
    return parser.parse_args()


def compare(X, labels, prior, chosen):
    """Compare the groups by the coefficients of one prior, print the p-values, and return them."""
    begun = time.perf_counter()
    comparison = compare_groups(
        X,
        labels,
        NoisyICA(chosen.components, prior=prior, random_state=0),
        n_draws=chosen.draws,
        n_refits=chosen.refits,
        n_permutations=chosen.permutations,
        random_state=0,
    )
    p_values = (
        f"{comparison.p_value:9.2g} {comparison.p_value_std:9.2g} "
        f"{comparison.p_value_std_refits:9.2g} {comparison.p_value_of_mean:9.2g}"
    )
    t_squared, least = (
        np.median(comparison.statistics),
        comparison.component_p_values_adjusted.min(),
    )
    seconds = time.perf_counter() - begun
    print(f"{prior:>6} {p_values} {t_squared:9.1f} {least:9.2g} {seconds:6.1f}", flush=True)
    return comparison


def null_p_values(coefficients, n_second, count, n_permutations):
    """Return p-values of coefficients whose labels are permuted, which should be uniform."""
    rng = np.random.default_rng(0)
    p_values = []
    for i in range(count):
        labels = rng.permutation(np.arange(len(coefficients)) < n_second)
        p_values.append(hotelling([coefficients], labels, n_permutations, i).p_values[0])
    return np.array(p_values)


def main():
    chosen = options()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with np.load(chosen.data) as file:
        X, labels = file[chosen.field].astype(float), file["label"]
    rows = np.isin(labels, chosen.groups)
    X, labels = X[rows], labels[rows]
    print(f"{chosen.field}: {len(X)} rows, {X.shape[1]} columns, {chosen.components} components")
    print(f"{'prior':>6} {' '.join(f'{head:>9}' for head in HEADS)} {'s':>6}")
    for prior in chosen.priors:
        comparison = compare(X, labels, prior, chosen)
    begun = time.perf_counter()
    coefficients = comparison.models[0].posterior_mean(X)
    nulls = null_p_values(coefficients, comparison.sizes[1], chosen.nulls, chosen.permutations)
    uniform = scipy.stats.kstest(nulls, "uniform").pvalue
    print(
        f"labels permuted {chosen.nulls} times on the posterior means of {prior}: "
        f"K-S p-value {uniform:.3f}, share of p <= 0.05 {np.mean(nulls <= 0.05):.3f} "
        f"({time.perf_counter() - begun:.1f} s)"
    )


if __name__ == "__main__":
    main()
