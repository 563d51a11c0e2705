"""Large data: growing rows against all rows, streamed rows against rows in memory, workers, blocks.

    python benchmarks/scale.py growth [--rows 500000] [--columns 100] [-p 20] [--prior bg]
    python benchmarks/scale.py streamed FOLDER [--rows 5000000] [--columns 169] [-p 20]
    python benchmarks/scale.py workers [--rows 1000000] [--columns 100] [-p 20] [--kill 10]
    python benchmarks/scale.py traffic
    python benchmarks/scale.py blocks [--sigma 1]
    python benchmarks/scale.py sizes FOLDER [--figure sizes.png]

``streamed`` and ``sizes`` write a file of rows into FOLDER, and remove it. Times are of one run
each: compare those of one call. ``sizes`` starts a new process for each fit.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from noisyica import Model, NoisyICA, priors
from noisyica.engine.convergence import similarity

TRUE = {
    "bg": priors.BernoulliGaussian(0.3),
    "rare": priors.BernoulliGaussian(0.02),
    "log": priors.Logistic(),
    "lap": priors.Laplace(),
    "et": priors.ExponentialTernary(0.15),
    "te": priors.SingleScaleTernary(0.15),
}
PART = 50_000
"""The number of rows that are simulated at a time."""


def truth(columns, p, prior="bg", sigma=1.0):
    """Return a model with dense normal components."""
    mixing = np.random.default_rng(0).normal(size=(columns, p))
    return Model(mixing, None, sigma**2, TRUE[prior])


def simulate(model, X):
    """Fill X with rows of the model."""
    for k, first in enumerate(range(0, len(X), PART)):
        n = min(PART, len(X) - first)
        X[first : first + n] = model.sample(n, random_state=k)[0]
    return X


def estimator(p, prior, **chosen):
    name = {"rare": "bg"}.get(prior, prior)
    usual = {"prior": name, "noise": "isotropic", "n_init": 1, "random_state": 0, "verbose": False}
    return NoisyICA(p, **usual | chosen)


def compiled(ica, X):
    """Return the estimator, after a fit that ends at its first look."""
    with warnings.catch_warnings(action="ignore"):
        ica.set_params(callback=lambda *_: True).fit(X)
    return ica.set_params(callback=None)


def timed(ica, X):
    begun = time.perf_counter()
    ica.fit(X)
    return time.perf_counter() - begun


def growth(arguments):
    """The same fit with growing rows and with all rows: time, cosines, held-out likelihood.

    Times are those of compiled code.
    """
    model = truth(arguments.columns, arguments.p, arguments.prior, arguments.sigma)
    X = simulate(model, np.empty((arguments.rows, arguments.columns), np.float32))
    held_out = model.sample(2000, random_state=10**6)[0]
    found = {}
    for grow in ("auto", False):
        ica = compiled(estimator(arguments.p, arguments.prior, grow=grow), X)
        seconds = timed(ica, X)
        score, cosines = ica.score_samples(held_out), similarity(model.mixing, [ica.mixing_])
        found[grow] = ica, seconds, score
        print(
            f"grow={grow!s:5} {seconds:7.1f} s, {ica.n_iter_} iterations, cosine "
            f"{cosines.mean():.6f} (least {cosines.min():.6f}), noise variance "
            f"{ica.noise_variance_:.5f}, {ica.prior_}, held-out log p {score.mean():.4f}",
            flush=True,
        )
    (grown, short, first), (whole, long, second) = found["auto"], found[False]
    difference = first - second
    errors, in_order = apart(grown, whole)
    print(
        f"time {short / long:.3f} of that of all rows; held-out log p {difference.mean():+.4f} "
        f"+- {difference.std() / np.sqrt(len(difference)):.4f}; components differ by "
        f"{errors:.2f} standard errors ({in_order} in order)"
    )


def apart(one, other):
    """Return by how many standard errors the components of two fits differ, and how many match.

    It is the root mean square over the entries of those that are the same in both, up to the sign.
    """
    products = (one.components_ * other.components_).sum(1)
    same = np.abs(products) > 0.9 * np.square(other.components_).sum(1)
    errors = one.components_ * np.sign(products)[:, None] - other.components_
    errors /= other.components_std_
    return np.sqrt(np.square(errors[same]).mean()), same.sum()


class Memory(threading.Thread):
    """The largest memory of this process, apart from pages of files, in MB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most = 0

    def run(self):
        while True:
            lines = Path("/proc/self/status").read_text().splitlines()
            now = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.most = max(self.most, now // 1024)
            time.sleep(0.05)


def streamed(arguments):
    """Iterations on a file that is not put into memory, and on its first 500,000 rows that are."""
    path = Path(arguments.folder) / "rows.npy"
    shape = (arguments.rows, arguments.columns)
    simulate(
        truth(arguments.columns, arguments.p),
        np.lib.format.open_memmap(path, "w+", np.float32, shape),
    )
    memory = Memory()
    memory.start()
    try:
        for n, iterations in ((500_000, 20), (arguments.rows, 6)):
            looks = []
            ica = estimator(arguments.p, "bg", grow=False, max_iter=iterations, tol=0)
            ica.callback = lambda t, _, looks=looks: looks.append((time.perf_counter(), t))
            seconds = timed(ica, np.load(path, mmap_mode="r")[:n])
            when, t = np.array(looks).T
            each = np.median((np.diff(when) / np.diff(t))[-4:])
            print(
                f"{n} rows: {seconds:.1f} s in all; {1e6 * each / n:.3f} microseconds per row and "
                f"iteration; {memory.most} MB so far",
                flush=True,
            )
    finally:
        path.unlink()


def workers(arguments):
    """A fit in this process and on two workers; then with a worker killed at a random moment."""
    import dask.array
    from distributed import Client, LocalCluster

    model = truth(arguments.columns, arguments.p)
    X = simulate(model, np.empty((arguments.rows, arguments.columns), np.float32))
    local = estimator(arguments.p, "bg")
    seconds = timed(local, X)
    print(f"in this process {seconds:.1f} s, {local.n_iter_} iterations", flush=True)
    chunks = (max(arguments.rows // 8, 1000), arguments.columns)
    with (
        LocalCluster(2, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        rows = client.persist(dask.array.from_array(X, chunks=chunks))
        there = estimator(arguments.p, "bg")
        on_workers = timed(there, rows)
        print(f"on two workers {on_workers:.1f} s, {on_workers / seconds:.2f} times", flush=True)
        rng = np.random.default_rng(0)
        if arguments.kill:  # all rows are on the workers from the first iteration on
            there = estimator(arguments.p, "bg", grow=False).fit(rows)
        for _ in range(arguments.kill):
            rows = dask.array.from_array(X, chunks=chunks)
            when = int(rng.integers(1, there.n_iter_))
            pids = list(client.run(os.getpid).values())

            def kill(t, model, when=when, pids=pids):
                if t >= when and pids:
                    os.kill(pids.pop(), signal.SIGKILL)
                    pids.clear()

            ica = estimator(arguments.p, "bg", grow=False, callback=kill)
            ended = timed(ica, rows)
            errors, in_order = apart(ica, there)
            noise = ica.noise_variance_ / there.noise_variance_ - 1
            print(
                f"worker killed at iteration {when} of {ica.n_iter_}: {ended:.1f} s; components "
                f"differ by {errors:.2f} standard errors from those of the undisturbed fit "
                f"({in_order} in order), the noise variance by {noise:+.1e}",
                flush=True,
            )
            client.wait_for_workers(2)


def traffic(arguments):
    """Bytes that an iteration moves between two workers and this process, against n, d and p.

    They are counted at the loopback interface, and divided by d p.
    """
    import dask.array
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for n, d, p in ((40_000, 50, 10), (160_000, 50, 10), (40_000, 200, 10), (40_000, 200, 40)):
            X = simulate(truth(d, p), np.empty((n, d), np.float32))
            rows = client.persist(dask.array.from_array(X, chunks=(n // 8, d)))
            moved = []
            for iterations in (50, 50, 150):  # the first one sends the code, too
                before = through_loopback()
                estimator(p, "bg", grow=False, max_iter=iterations, tol=0).fit(rows)
                moved.append(through_loopback() - before)
            each = (moved[2] - moved[1]) / 100
            print(
                f"{n} x {d}, p = {p}: {each / 1000:.1f} kB per iteration, {each / (d * p):.0f} "
                "bytes per entry of A",
                flush=True,
            )


def through_loopback():
    """Return how many bytes have gone through the loopback interface so far."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))


def blocks(arguments):
    """partial_fit over 25 blocks against fit, n = 25,000, d = 50, p = 10."""
    model = truth(50, 10, "bg", arguments.sigma)
    X = simulate(model, np.empty((25_000, 50)))
    whole, parts = estimator(10, "bg").fit(X), estimator(10, "bg")
    for part in np.array_split(X, 25):
        parts.partial_fit(part)
    for name, ica in (("fit", whole), ("25 blocks", parts)):
        cosines = similarity(model.mixing, [ica.mixing_])
        print(
            f"{name}: cosine {cosines.mean():.5f} (least {cosines.min():.5f}), noise variance "
            f"{ica.noise_variance_:.4f}, {ica.prior_}"
        )


USUAL = {"rows": 10_000, "columns": 64, "p": 10}
"""What the other two sizes are where one of them is varied."""
SIZES = {
    "rows": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "columns": (16, 64, 256, 1_024, 4_096, 10_000),
    "p": (2, 5, 10, 20, 50, 100, 200),
}
NAMES = {"rows": "n (rows)", "columns": "d (columns)", "p": "p (components)"}
MOST_IN_MEMORY = 3_000_000
"""The number of rows from which on they are left in a file."""


def sizes(arguments):
    """Time of an iteration and of a whole fit, and memory, against each of n, d and p."""
    measured = {}
    for axis, values in SIZES.items():
        for value in values:
            size = USUAL | {axis: value}
            if axis == "p":
                size["columns"] = 256
            measured[axis, value] = one = in_new_process(size, arguments.folder)
            print(
                f"{size}: {1e3 * one['iteration']:.2f} ms per iteration, fit {one['fit']:.1f} s "
                f"({one['n_iter']} iterations), {one['memory']} MB",
                flush=True,
            )
    draw_sizes(measured, arguments.figure)


def in_new_process(size, folder):
    """Return what :func:`one_size` prints in a process of its own."""
    words = [f"--rows={size['rows']}", f"--columns={size['columns']}", f"-p={size['p']}"]
    command = [sys.executable, __file__, "one", folder, *words]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def one_size(arguments):
    """Print the time of an iteration on all rows and of a whole fit, once compiled, and memory.

    The memory is the largest of the process less what it had with the rows before it began.
    """
    shape, path = (arguments.rows, arguments.columns), Path(arguments.folder) / "rows.npy"
    on_disk = arguments.rows >= MOST_IN_MEMORY
    X = np.empty(shape, np.float32)
    if on_disk:
        X = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    try:
        simulate(truth(arguments.columns, arguments.p), X)
        if on_disk:
            X = np.load(path, mmap_mode="r")
        memory = Memory()
        memory.start()
        time.sleep(0.2)
        before, looks, iterations = memory.most, [], 30 if arguments.rows < 10**6 else 12
        ica = estimator(arguments.p, "bg", grow=False, max_iter=iterations, tol=0)
        ica.callback = lambda t, _: looks.append((time.perf_counter(), t))
        ica.fit(X)
        when, t = np.array(looks).T
        seconds = np.median((np.diff(when) / np.diff(t))[-4:])
        whole = estimator(arguments.p, "bg")
        took = {"iteration": seconds, "fit": timed(whole, X), "n_iter": whole.n_iter_}
        print(json.dumps(took | {"memory": memory.most - before}))
    finally:
        path.unlink(missing_ok=True)


def draw_sizes(measured, path):
    """Draw what was measured on logarithmic axes, with the exponents of the largest three sizes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = {"iteration": "ms per iteration", "fit": "seconds per fit", "memory": "MB beyond X"}
    figure, axes = plt.subplots(3, 3, figsize=(9, 7.5), layout="constrained", sharex="col")
    for column, (axis, values) in zip(axes.T, SIZES.items(), strict=True):
        for panel, (name, label) in zip(column, rows.items(), strict=True):
            y = np.array([measured[axis, value][name] for value in values], float)
            y = np.maximum(1e3 * y if name == "iteration" else y, 1e-3)
            exponent = np.polyfit(np.log(values[-3:]), np.log(y[-3:]), 1)[0]
            panel.loglog(values, y, "o-")
            panel.set_title(f"exponent {exponent:.2f}", fontsize="medium", loc="right")
            panel.grid(alpha=0.3)
            if axis == "rows":
                panel.set_ylabel(label)
            print(f"{label} against {NAMES[axis]}: exponent {exponent:.2f}")
        column[-1].set_xlabel(NAMES[axis])
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=WAYS)
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    parser.add_argument("-p", type=int, default=20)
    parser.add_argument("--prior", choices=TRUE, default="bg")
    parser.add_argument("--sigma", type=float, default=1.0)
    parser.add_argument("--kill", type=int, default=10)
    parser.add_argument("--figure", default="sizes.png")
    arguments = parser.parse_args()
    rows, columns = {"streamed": (5_000_000, 169), "workers": (1_000_000, 100)}.get(
        arguments.what, (500_000, 100)
    )
    arguments.rows, arguments.columns = arguments.rows or rows, arguments.columns or columns
    WAYS[arguments.what](arguments)


WAYS = {
    "growth": growth,
    "streamed": streamed,
    "workers": workers,
    "traffic": traffic,
    "blocks": blocks,
    "sizes": sizes,
    "one": one_size,
}


if __name__ == "__main__":
    main()
