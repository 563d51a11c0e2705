"""
Rows on a cluster, with Dask
============================

**The question.** The rows are spread over the workers of a cluster and should stay
there. Can components be learnt from them, and is the result the same as on one
machine?

Each iteration sends the parameters to the workers. A worker draws the coefficients of
its own rows and sends back sums, whose size does not depend on the number of rows.
Random numbers belong to the seed, the iteration and the number of the row, so that it
makes no difference who draws them.
"""

# %%
# Half-hours of households
# ------------------------
#
# Forty thousand simulated days of households: electricity in each half-hour. Four
# habits are there on some days and not on others: breakfast, an evening at home, a
# car that charges at night, and air conditioning in the afternoon.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from noisyica import NoisyICA

hours = np.arange(0, 24, 0.5)


def bump(centre, width):
    """Return a smooth rise around a time of the day, also across midnight."""
    distance = np.abs(hours - centre)
    return np.exp(-0.5 * np.square(np.minimum(distance, 24 - distance) / width))


habits = np.stack(
    [
        bump(7, 0.7) + 0.4 * bump(12.5, 0.8),
        bump(19, 1.3) + 0.5 * bump(21.5, 1.5),
        2.0 * bump(1.5, 1.6),
        1.2 * bump(15.5, 2.5),
    ]
)
rng = np.random.default_rng(0)
n = 40_000
often = np.array([0.7, 0.6, 0.15, 0.25])
amounts = rng.exponential(size=(n, 4)) * (rng.random((n, 4)) < often)
X = 0.3 + amounts @ habits + 0.5 * rng.normal(size=(n, len(hours)))
X = X.astype(np.float32)

# %%
# A cluster
# ---------
#
# For this page two workers live in this process. On a real cluster the client is that
# of its scheduler (``dask-jobqueue`` and ``dask-kubernetes`` start one), the rows
# come from ``dask.array.from_zarr`` or the like, and the rest is as it is here.

settings = {
    "prior": "bg",
    "noise": "isotropic",
    "n_init": 1,
    "max_iter": 200,
    "random_state": 0,
}
with (
    LocalCluster(
        2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster),
):
    rows = da.from_array(X, chunks=(10_000, len(hours)))
    on_cluster = NoisyICA(4, **settings).fit(rows)
    beta = on_cluster.transform(rows)  # a Dask array: it is computed where the rows are
    print("coefficients:", type(beta).__name__, "of shape", beta.shape)
    largest = abs(beta).max(0).compute()
    print("largest coefficients:", largest.round(1))

here = NoisyICA(4, **settings).fit(X)

# %%
# Is it the same?
# ---------------

difference = np.abs(on_cluster.components_ - here.components_).max()
print(f"largest difference of an entry of the components: {difference:.1e}")
print(f"largest entry: {np.abs(here.components_).max():.2f}")

# %%
# The picture
# -----------

figure, grid = plt.subplots(2, 2, figsize=(10, 5.4), sharex=True, layout="constrained")
units = [
    a / np.linalg.norm(a, axis=1, keepdims=True) for a in (habits, here.components_)
]
order = np.abs(units[0] @ units[1].T).argmax(1)
names = ["breakfast", "an evening at home", "a car that charges", "air conditioning"]
for axes, truth, j, name in zip(grid.ravel(), units[0], order, names, strict=True):
    axes.fill_between(hours, truth, color="0.88", label="true")
    for ica, style, label in (
        (here, "-", "one machine"),
        (on_cluster, "--", "cluster"),
    ):
        component = ica.components_[j] / np.linalg.norm(ica.components_[j])
        axes.plot(hours, component * np.sign(component @ truth), style, label=label)
    axes.set_title(name, loc="left")
    axes.set(xticks=range(0, 25, 4), xlim=(0, 23.5), yticks=[])
    axes.spines[["top", "right", "left"]].set_visible(False)
grid[0, 1].legend(frameon=False, loc="upper left")
for axes in grid[1]:
    axes.set_xlabel("hour of the day")
plt.show()

# %%
# Conclusion
# ----------
#
# The rows stayed where they were, and the components are the same up to the order in
# which sums are rounded, and what a stochastic algorithm makes of this. The
# coefficients are a Dask array again and were never all in one place.
#
# On one machine a cluster is no faster: the workers share its cores, and there are
# messages to wait for. It is worth having where rows do not fit into one machine.
# (The page on sizes has measurements, and says what happens when a worker is lost.)
