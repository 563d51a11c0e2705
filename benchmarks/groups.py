"""The paper's tables of p-values on hippocampus surfaces: two groups compared by the coefficients of each prior.

python benchmarks/groups.py --data hippocampus_spharm_left.npz --field log_jacobian

The file holds a field (n, d), and the rows' labels under "label".
"""

import argparse
import time
import warnings

import numpy as np
import scipy.stats
from sklearn.exceptions import ConvergenceWarning

from noisyica import NoisyICA, compare_groups, priors
from noisyica.analysis.groups import hotelling


def null_p_values(coefficients, n_second, count, n_permutations):
    """p-values of coefficients whose labels are permuted, which should be uniform."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(count):
        labels = rng.permutation(np.arange(len(coefficients)) < n_second)
        found.append(hotelling([coefficients], labels, n_permutations, i).p_values[0])
    return np.array(found)


def main():
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
        help="times that labels are permuted to see whether p-values are uniform",
    )
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    with np.load(chosen.data) as file:
        X, label = file[chosen.field].astype(float), file["label"]
    mask = np.isin(label, chosen.groups)
    X, label = X[mask], label[mask]
    print(
        f"{chosen.field}: {X.shape[0]} rows, {X.shape[1]} columns, {chosen.components} components"
    )
    print(
        f"{'prior':>6} {'mean p':>9} {'sd draws':>9} {'sd refits':>9} {'p of mean':>9} {'median T2':>9} {'least adj':>9} {'s':>6}"
    )
    for name in chosen.priors:
        begun = time.perf_counter()
        estimator = NoisyICA(chosen.components, prior=name, random_state=0)
        how = {
            "n_draws": chosen.draws,
            "n_refits": chosen.refits,
            "n_permutations": chosen.permutations,
            "random_state": 0,
        }
        found = compare_groups(X, label, estimator, **how)
        seconds = time.perf_counter() - begun
        print(
            f"{name:>6} {found.p_value:9.2g} {found.p_value_std:9.2g} {found.p_value_std_refits:9.2g} {found.p_value_of_mean:9.2g} "
            f"{np.median(found.statistics):9.1f} {found.component_p_values_adjusted.min():9.2g} {seconds:6.1f}",
            flush=True,
        )
    begun = time.perf_counter()
    found = null_p_values(
        found.models[0].posterior_mean(X), found.sizes[1], chosen.nulls, chosen.permutations
    )
    print(
        f"labels permuted {chosen.nulls} times on the posterior means of {name}: K-S p-value "
        f"{scipy.stats.kstest(found, 'uniform').pvalue:.3f}, share of p <= 0.05 {np.mean(found <= 0.05):.3f} "
        f"({time.perf_counter() - begun:.1f} s)"
    )


if __name__ == "__main__":
    main()
