"""The memory that a fit to a sparse matrix takes: cells by genes, a tenth of the entries stored.

Printed is by how much the peak resident memory of the process exceeds what it had with the matrix,
before the fit. With --streamed, each sweep makes the rows dense anew, as beyond 1 GiB.

    python benchmarks/sparse_rows.py
    python benchmarks/sparse_rows.py --streamed
"""

import argparse
import resource
import time
import warnings

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from noisyica import NoisyICA
from noisyica.engine import holding


def resident(peak):
    """Return the mebibytes of memory that the process has, or had at its peak."""
    if peak:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def cells(n, d, share=0.1):
    """Return counts (n, d), a share of which is stored, with some structure."""
    rng = np.random.default_rng(0)
    stored = rng.poisson(d * share, size=n).clip(1, d)
    columns = rng.integers(d, size=stored.sum(), dtype=np.int32)
    values = rng.exponential(size=len(columns)).astype(np.float32) * (1 + (columns % 10 == 0))
    start = np.concatenate([[0], np.cumsum(stored)])
    return scipy.sparse.csr_matrix((values, columns, start), shape=(n, d))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=50_000)
    parser.add_argument("--genes", type=int, default=2_000)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--streamed", action="store_true")
    options = parser.parse_args()
    if options.streamed:
        holding.MOST_FROM_DISK = 0
    X = cells(options.cells, options.genes)
    settings = {"max_iter": options.iterations, "tol": 0, "n_init": 1, "init": "random"}
    settings |= {"noise": "isotropic", "random_state": 0, "verbose": False}
    jnp.zeros(9).sum().block_until_ready()  # the libraries are loaded
    before, begun = resident(False), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        NoisyICA(10, **settings).fit(X)
    stored = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) / 2**20
    dense = 4 * X.shape[0] * X.shape[1] / 2**20
    print(f"sparse matrix {stored:.0f} MiB, dense in single precision {dense:.0f} MiB")
    print(f"beyond the process before: {resident(True) - before:.0f} MiB", end="; ")
    print(f"{time.perf_counter() - begun:.0f} s for {options.iterations} iterations")


if __name__ == "__main__":
    main()
