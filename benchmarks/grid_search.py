"""The time of a small grid search in a new process, where compiling takes longer than learning.

    python benchmarks/grid_search.py [--jobs 2] [--keep FOLDER]

Scikit-learn's breast cancer table (569 rows, 30 columns) is standardised; two numbers of components
and two priors are compared in three folds. Prints the time, the processor time of all processes,
and how many lines of warnings there were. Without ``--keep`` no compiled code is kept or found.
"""

import argparse
import os
import resource
import subprocess
import sys
import time

SEARCH = """
from joblib.externals.loky import get_reusable_executor
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from noisyica import NoisyICA

X = StandardScaler().fit_transform(load_breast_cancer().data)
grid = {{"n_components": [3, 6], "prior": ["bg", "lap"]}}
search = GridSearchCV(NoisyICA(random_state=0), grid, cv=3, n_jobs={jobs}).fit(X)
results = search.cv_results_
for setting, score in zip(results["params"], results["mean_test_score"]):
    print(f"  {{setting}}: {{score:.3f}}")
get_reusable_executor().shutdown(wait=True)  # so that the workers' time is counted
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="the number of processes")
    parser.add_argument("--keep", help="a folder in which compiled code is kept and found")
    arguments = parser.parse_args()
    cached = ("JAX_COMPILATION_CACHE_DIR", "NOISYICA_CACHE")
    environment = {name: value for name, value in os.environ.items() if name not in cached}
    if arguments.keep:
        environment["NOISYICA_CACHE"] = arguments.keep
    begun = time.perf_counter()
    command = [sys.executable, "-c", SEARCH.format(jobs=arguments.jobs)]
    search = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(search.stdout + search.stderr, end="")
    lines = len(search.stderr.splitlines())
    print(
        f"3 folds of 4 settings, {arguments.jobs} processes: {seconds:.1f} s, "
        f"{used.ru_utime + used.ru_stime:.1f} s of processor time, {lines} lines of warnings"
    )


if __name__ == "__main__":
    main()
