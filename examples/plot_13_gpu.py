"""
On a GPU, if there is one
=========================

**The question.** Is the GPU used, what does it change, and does it pay?

``pip install 'noisyica[cuda]'`` installs what an NVIDIA GPU needs. ``device="auto"``,
the default, then takes it by itself. This page was built on whatever machine its
builder had; below it says which.
"""

# %%
# What would be used
# ------------------
#
# The command ``noisyica info`` says it. It is the first thing to look at when a fit
# is slower than expected.

import subprocess
import sys
import time

import jax
import matplotlib.pyplot as plt
import numpy as np

from noisyica import Model, NoisyICA

told = subprocess.run(
    [sys.executable, "-m", "noisyica", "info"], capture_output=True, text=True
)
for line in told.stdout.splitlines():
    if line.strip().startswith(("noisyica", "jax", "computes on")):
        print(line)

# %%
# The same fit on each device
# ---------------------------
#
# ``device="cpu"`` takes the CPU even where there is a GPU, and ``device="gpu"`` is an
# error of one line where there is none. Where there are both, both learn from the
# same rows here.

devices = ["cpu"] + (["gpu"] if jax.default_backend() == "gpu" else [])
rng = np.random.default_rng(0)
truth = Model(rng.normal(size=(50, 10)), noise_variance=1.0, prior="bg")
X, _ = truth.sample(32_000, random_state=0)
settings = {
    "prior": "bg",
    "noise": "isotropic",
    "n_init": 1,
    "tol": 0,
    "random_state": 0,
}
settings["grow"] = (
    False  # all rows take part in each iteration, so that times can be compared
)

fits = {}
for device in devices:
    fits[device] = NoisyICA(10, device=device, max_iter=100, **settings).fit(X)
    print(
        f"{device}: noise variance {fits[device].noise_variance_:.5f}",
        fits[device].prior_,
    )

# %%
# Time by the number of rows
# --------------------------
#
# A fit of 100 iterations is timed after compiling, with all that belongs to it. A GPU
# pays where rows are many: few rows take it nearly as long as many, until it is busy.

sizes = [2_000, 8_000, 32_000]
seconds = {device: [] for device in devices}
for device in devices:
    for n in sizes:
        times = []
        for _ in range(6):  # the first compiles
            begun = time.perf_counter()
            NoisyICA(10, device=device, max_iter=100, **settings).fit(X[:n])
            times.append(time.perf_counter() - begun)
        seconds[device].append(min(times[1:]))
        print(f"{device}: {n:6d} rows, {seconds[device][-1]:.2f} seconds")

# %%
# The picture
# -----------

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for device in devices:
    left.plot(sizes, seconds[device], "o-", label=device)
    right.plot(fits[device].history_["noise_variance"], label=device)
left.set(
    xlabel="rows",
    ylabel="seconds for 100 iterations",
    title="50 columns, 10 components",
)
left.set(xlim=(0, None), ylim=(0, None), xticks=sizes)
right.set(
    xlabel="iteration",
    ylabel="noise variance",
    title="32,000 rows: what is learnt",
    ylim=(0.99, 1.01),
)
right.axhline(1.0, color="0.7", linewidth=1, zorder=0, label="truth")
for axes in (left, right):
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
#
# Nothing in the code says which device it runs on, and files do not either: what was
# learnt on a GPU is loaded and used on any machine. The random numbers are the same
# on all devices and sums are rounded in another order, so that results agree within
# Monte-Carlo error and not in all digits. Times depend on the machine, and on what
# else it was doing when this page was built. If only one device is shown, this was a
# machine without a GPU; the page "On a GPU" of the documentation has measurements
# with one.
