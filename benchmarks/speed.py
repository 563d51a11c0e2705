"""Speed, side by side in one run: one SAEM iteration of each prior against NumPy's two products of
the same sizes, and small problems.

    python benchmarks/speed.py [--small]

Prints a table. Times are the best of several repeats; ratios matter, not milliseconds.
"""

import argparse
import subprocess
import sys
import time

import jax
import numpy as np

from noisyica import NoisyICA, priors
from noisyica._jax.precision import double_precision
from noisyica.engine.loop import _chunk, advance
from noisyica.engine.runs import begin
from noisyica.engine.task import prepare
from noisyica.posterior.parameters import Parameters
from noisyica.rows.source import Rows


def best(function, repeats=7):
    """Return the least time of several calls, after one that compiles."""
    function()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)


@double_precision()
def iteration_time(X, p, name, iterations):
    """Return the seconds that one iteration inside a compiled chunk takes."""
    task = prepare(
        NoisyICA(p, prior=name, noise="isotropic", init="random", random_state=0), Rows(X)
    )
    A = np.random.default_rng(1).normal(size=(X.shape[1], p)) * X.std()
    start = Parameters(A, np.zeros(X.shape[1]), np.asarray(X.var()), task.prior)
    rows = task.stages[-1].sweeper
    run = begin(rows, start, task.plan, task.constants)
    compiled = advance.compiled(_chunk(rows, [run], task.plan, task.constants.schedule)[1])
    given = (task.key, rows, iterations, task.constants, task.plan, iterations)
    return best(lambda: jax.block_until_ready(compiled(run.state, run.chains, *given))) / iterations


def numpy_time(X, p):
    """Return the seconds that X A and X' beta take in float32."""
    X = X.astype(np.float32)
    A, beta = np.ones((X.shape[1], p), np.float32), np.ones((X.shape[0], p), np.float32)
    return best(lambda: (X @ A, X.T @ beta), 30)


NEW_PROCESS = """
import numpy as np
from noisyica import NoisyICA
rng = np.random.default_rng(0)
X = rng.laplace(size=(100, 2)) @ rng.normal(size=(2, 256)) + rng.normal(size=(100, 256))
NoisyICA(2, prior="{prior}", noise="isotropic", tol=0, random_state=0).fit(X)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="the small problems only")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    if not arguments.small:
        n, d, p = 7291, 256, 20
        X = rng.laplace(size=(n, p)) @ rng.normal(size=(p, d)) + rng.normal(size=(n, d))
        X /= X.std()
        base = numpy_time(X, p)
        print(f"{n} x {d}, p = {p}, float32: NumPy's X A and X' beta {1e3 * base:.2f} ms")
        for name in priors.TABLE:
            seconds = iteration_time(X, p, name, 20)
            base = min(base, numpy_time(X, p))
            ratio = f"{seconds / base:5.2f} times NumPy's products"
            print(f"  {name:6s} {1e3 * seconds:7.2f} ms per iteration, {ratio}", flush=True)
        print(f"  (NumPy's products at their best: {1e3 * base:.2f} ms)")
    X = rng.laplace(size=(100, 2)) @ rng.normal(size=(2, 256)) + rng.normal(size=(100, 256))
    for name in ("bg", "log"):
        seconds = 1000 * iteration_time(X, 2, name, 1000)
        print(f"100 x 256, p = 2: 1,000 iterations of {name} in {seconds:.3f} s", flush=True)
    for name in ("bg", "log"):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", NEW_PROCESS.format(prior=name)], check=True)
        seconds = time.perf_counter() - begun
        print(f"new process: import, compile and fit {name} in {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
