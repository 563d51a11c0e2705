"""A GPU: SAEM iterations of each prior, what they reach of the card, and what is done with a model.

    python benchmarks/gpu.py [--rows N] [--priors bg,log] [--components 20,100] [--faces FOLDER]

Prints tables. Times of iterations are medians over chunks of twenty, once compiled. Bytes and
operations are the least that an iteration of "bg" needs, whose times they are compared with, and
the ceilings are measured in the same run. With a folder of images, the paper's patches (13 x 13,
step 12) are learnt with 100 components, too. It runs on a CPU as well, to be tried.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from noisyica import Model, NoisyICA, priors
from noisyica._jax.device import device_in_use, platform
from noisyica._jax.precision import double_precision
from noisyica.data import read
from noisyica.engine.loop import advance
from noisyica.engine.runs import begin
from noisyica.engine.task import prepare
from noisyica.posterior.parameters import Parameters
from noisyica.rows.source import Rows

CHUNK = 20


def seconds(function, repeats=5):
    """Return the median time of several calls, and the time of a first one, which compiles."""
    times = []
    for _ in range(1 + repeats):
        begun = time.perf_counter()
        jax.block_until_ready(function())
        times.append(time.perf_counter() - begun)
    return float(np.median(times[1:])), times[0]


def ceilings():
    """Return the bytes per second of a copy, and the operations per second of a float32 product."""
    size = 8192 if platform() == "gpu" else 1024
    x = jnp.ones((4 * size * size,), jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    y = jax.random.normal(jax.random.key(0), (size, size), jnp.float32)
    product = jax.jit(lambda y: jnp.matmul(y, y, precision="float32"))
    return 2 * x.nbytes / seconds(lambda: copy(x))[0], 2 * size**3 / seconds(lambda: product(y))[0]


def work(n, d, p):
    """Return the fewest bytes and operations of an iteration of "bg", averaged over two.

    Bytes: x is read for two products, coefficients are read and written. Operations: those
    products, the sweep, and beta beta'; every other iteration the coefficients move, which takes
    two more products of p x p numbers per row.
    """
    return 4 * n * (2 * d + 2 * p), 2 * n * (2 * d * p + 3 * p * p)


def iterations(n, d, components, names):
    """Print the time of an iteration of each prior."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X += rng.laplace(size=(n, 5)).astype(np.float32) @ rng.standard_normal((5, d), np.float32)
    bandwidth, rate = ceilings()
    print(f"copy {bandwidth / 1e12:.2f} TB/s, float32 product {rate / 1e12:.1f} TFLOP/s")
    print(f"{n:,} x {d}, float32, one SAEM iteration inside a chunk of {CHUNK}")
    for p in components:
        task = prepare(NoisyICA(p, noise="isotropic", init="random", random_state=0), Rows(X))
        rows = task.stages[-1].sweeper
        bytes_needed, operations = work(n, d, p)
        floor = max(bytes_needed / bandwidth, operations / rate)
        print(
            f"p = {p}: at least {bytes_needed / 1e9:.2f} GB ({1e3 * bytes_needed / bandwidth:.2f} "
            f"ms) and {operations / 1e9:.1f} GFLOP ({1e3 * operations / rate:.2f} ms)"
        )
        first = None
        for name in names:
            prior = priors.get(name).for_components(p)
            A = np.random.default_rng(1).normal(size=(d, p)) * 2
            plan = task.plan._replace(free_mean=not prior.has_offset)
            start = Parameters(A, np.zeros(d), np.asarray(4.0), prior)
            run = jax.device_put(begin(rows, start, plan, task.constants)[:2])
            given = (task.key, rows, CHUNK, task.constants, plan, CHUNK)
            compiled = advance.compiled(True)
            one, whole = seconds(lambda f=compiled, run=run, given=given: f(*run, *given))
            one /= CHUNK
            first = first or one
            print(
                f"  {name:8s} {1e3 * one:7.3f} ms  {one / first:5.2f} times {names[0]}  "
                f"{100 * floor / one:5.1f} % of the ceiling  (compiled in {whole:.1f} s)",
                flush=True,
            )


def with_a_model(n, d, p):
    """Print the times of transform and score, once compiled."""
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(d, p)), np.zeros(d), 1.0, priors.BernoulliGaussian(0.3))
    X = model.sample(n, random_state=0)[0]
    few = X[: n // 5]
    for text, rows, function in (
        ("transform", X, lambda: model.posterior_mean(X, verbose=False)),
        ("score", few, lambda: model.log_likelihood(few, verbose=False)),
    ):
        one, whole = seconds(function, 3)
        print(
            f"{text} of {len(rows):,} x {d}, p = {p}: {one:.3f} s (first {whole:.1f} s)", flush=True
        )


def moments():
    """Print what is learnt on the CPU, with two seeds, and on the device."""
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(40, 10)), np.zeros(40), 1.0, priors.BernoulliGaussian(0.3))
    X = model.sample(20_000, random_state=0)[0]
    for device, seed in (("cpu", 0), ("cpu", 1), ("auto", 0)):
        settings = {"init": model.mixing, "n_init": 1, "max_iter": 200, "tol": 0}
        settings |= {"noise": "isotropic"}
        ica = NoisyICA(10, device=device, random_state=seed, verbose=False, **settings).fit(X)
        print(
            f"learnt on {device_in_use(device)}, seed {seed}: noise variance "
            f"{ica.noise_variance_:.6f}, alpha {ica.prior_.alpha:.5f}, |A| "
            f"{np.linalg.norm(ica.mixing_):.4f}",
            flush=True,
        )


def faces(folder, p, held_out):
    """Print how long patches of faces take to learn, and how likely held-out ones are then."""
    X = read(folder, patch_size=13, stride=12, centre_patches=True).X
    X = X[np.random.default_rng(0).permutation(len(X))]
    X, rest = X[: len(X) - held_out], X[len(X) - held_out :]
    ica = NoisyICA(p, noise="isotropic", n_init=1, random_state=0, verbose=False)
    for text in ("first", "once compiled"):
        begun = time.perf_counter()
        ica.fit(X)
        print(
            f"faces {X.shape}, p = {p}, {text}: {time.perf_counter() - begun:.1f} s, "
            f"{ica.n_iter_} iterations, converged: {ica.converged_}, noise variance "
            f"{ica.noise_variance_:.6g}, {ica.prior_}",
            flush=True,
        )
    if held_out:
        values, errors = ica.model_.log_likelihood(rest, return_std=True)
        print(
            f"log p of {held_out} held-out patches: {values.mean():.3f} (Monte-Carlo error "
            f"{np.sqrt(np.square(errors).sum()) / held_out:.3f})",
            flush=True,
        )


@double_precision()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=499_697)
    parser.add_argument("--priors", default=",".join(["bg", *sorted({*priors.TABLE} - {"bg"})]))
    parser.add_argument("--components", default="20,100")
    parser.add_argument("--faces", metavar="FOLDER")
    parser.add_argument("--held-out", type=int, default=0, help="patches of faces to hold out")
    parser.add_argument("--only-faces", action="store_true")
    options = parser.parse_args()
    print(f"JAX {jax.__version__} on {device_in_use()}")
    if not options.only_faces:
        components = [int(p) for p in options.components.split(",")]
        iterations(options.rows, 169, components, options.priors.split(","))
        with_a_model(100_000 if platform() == "gpu" else 1000, 169, 20)
        moments()
    if options.faces:
        faces(options.faces, 100, options.held_out)


if __name__ == "__main__":
    main()
