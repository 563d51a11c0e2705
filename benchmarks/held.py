"""How much memory the posterior of rows takes that are larger than memory may be.

Rows are written to a .npy and to an HDF5 file, block by block, and then ``transform`` and
``score_samples`` are applied to each file in a process of its own. It reports by how many MB the
resident memory of that process grew at most, from where it stood once the code was compiled by a
few rows. Pages of files that are mapped are left out (they are the system's to drop), and are
reported in a column of their own.

    python benchmarks/held.py --gigabytes 2 --columns 1000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import h5py
import numpy as np

FEW = 5000


def write(folder: Path, gigabytes: float, d: int) -> int:
    """Write rows in single precision to both files; return their number."""
    n = int(gigabytes * 1e9 / (4 * d))
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, d)).astype(np.float32)
    mapped = np.lib.format.open_memmap(folder / "rows.npy", "w+", "f4", (n, d))
    with h5py.File(folder / "rows.h5", "w") as file:
        stored = file.create_dataset("rows", (n, d), "f4", chunks=(1000, min(d, 100)))
        for first in range(0, n, 20_000):
            k = min(20_000, n - first)
            B = rng.normal(size=(k, 5)) * (rng.random((k, 5)) < 0.3)
            part = B.astype(np.float32) @ A + rng.standard_normal((k, d), np.float32)
            mapped[first : first + k], stored[first : first + k] = part, part
    mapped.flush()
    return n


def memory() -> tuple[float, float]:
    """Return the MB of memory that are the process's own, and those of files that are mapped."""
    values = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.startswith("Rss"):
            values[name] = int(value.split()[0]) * 1024 / 1e6
    return values["RssAnon"] + values["RssShmem"], values["RssFile"]


def measure(path: str, method: str) -> None:
    """Apply a method to the rows of a file, and print what it took as JSON."""
    from noisyica import Model, NoisyICA, data

    rows = data.open(path).X
    few = rows[:FEW]
    ica = NoisyICA(5, prior="bg", max_iter=60, tol=0, n_init=1, random_state=0, verbose=False)
    ica.fit(few)
    model: Model = ica.model_
    call = model.posterior_mean if method == "transform" else model.log_likelihood
    call(few)
    del few
    begun, most, done = memory(), [0.0, 0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            for i, value in enumerate(memory()):
                most[i] = max(most[i], value - begun[i])

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    result = (ica.transform if method == "transform" else ica.score_samples)(rows)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    known = {"own": most[0], "mapped": most[1], "result": result.nbytes / 1e6, "seconds": seconds}
    print(json.dumps(known))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--measure", nargs=2, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(*given.measure)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        n = write(Path(folder), given.gigabytes, given.columns)
        size = n * given.columns * 4 / 1e6
        print(f"{n:,} x {given.columns} in float32: {size:,.0f} MB")
        print("| file | method | own memory, MB | mapped, MB | result, MB | seconds |")
        print("|---|---|---|---|---|---|")
        for name in ("rows.npy", "rows.h5"):
            for method in ("transform", "score_samples"):
                command = [sys.executable, __file__, "--measure", f"{folder}/{name}", method]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                found = json.loads(said.splitlines()[-1])
                numbers = (found[key] for key in ("own", "mapped", "result", "seconds"))
                print(f"| {name} | {method} |", " | ".join(f"{x:,.1f}" for x in numbers), "|")


if __name__ == "__main__":
    main()
