"""
How many components, and which prior?
=====================================

**The question.** Nobody has said how many components there are, nor what law their
coefficients have. What do the data say, and which components would be seen again in
other data?

Three answers are at hand. :func:`noisyica.select` compares numbers of components and
priors by BIC, or by the likelihood of rows that were left out.
``n_components="auto"`` drops components that the data do not support. And
``reliability_`` says how well more rows of the same kind would reproduce each
component.
"""

# %%
# Data whose answer is known
# --------------------------
#
# There are five components in twenty columns, twice. In the first table, coefficients
# are zero most of the time. In the second one they are normal, with the same
# variances. There, any rotation of the components explains the data as well, so that
# nobody can find them; only the space that they span can be found.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from noisyica import NoisyICA, plot, select

rng = np.random.default_rng(0)
n, d, p = 400, 20, 5
A = rng.normal(size=(d, p))
beta = {
    "sparse": 2 * rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.25),
    "normal": rng.normal(size=(n, p)),
}
tables = {kind: values @ A.T + rng.normal(size=(n, d)) for kind, values in beta.items()}

# %%
# Number and prior by BIC
# -----------------------
#
# BIC is minus twice the log likelihood at its maximum, with a penalty for each
# parameter: the lower, the better. ``"bg"`` has zeros, ``"lap"`` has none and heavy
# tails.

settings = {"noise": "isotropic", "random_state": 0}
of_select = {
    "n_components": [3, 4, 5, 6],
    "priors": ["bg", "lap"],
    "max_iter": 300,
    "tol": 0,
}
chosen = select(tables["sparse"], **of_select, **settings)
print(
    f"chosen: prior {chosen.best_.prior!r}, {len(chosen.best_.components_)} components"
)

# %%
# Automatically
# -------------
#
# One fit is enough: the default prior of the components lets those vanish that the
# data do not support. The fit also learns from halves of the rows, and warns of
# components that differ too much between them. Here the warning is caught and
# printed.

fits = {}
for kind, X in tables.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fits[kind] = NoisyICA("auto", prior="bg", max_iter=2000, **settings).fit(X)
    print(f'{kind}: "auto" keeps {len(fits[kind].components_)} components')
    for warning in caught:
        print("  warning:", warning.message)

# %%
# Which components are real?
# --------------------------
#
# ``reliability_`` estimates the cosine of each component with the true one. Since the
# truth is known here, it can be checked.

cosines = {}
for kind, ica in fits.items():
    units = [
        a / np.linalg.norm(a, axis=1, keepdims=True) for a in (ica.components_, A.T)
    ]
    cosines[kind] = np.abs(units[0] @ units[1].T).max(1)
    print(f"{kind}: reliability", ica.reliability_.round(2))
    print(f"{kind}: cosines    ", cosines[kind].round(2))

# %%
# The picture
# -----------

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.selection(chosen, left)
left.set_title("BIC chooses number and prior")
left.spines[["top", "right"]].set_visible(False)
for (kind, ica), marker in zip(fits.items(), "os", strict=True):
    right.plot(
        ica.reliability_, cosines[kind], marker, label=f"{kind} coefficients", alpha=0.7
    )
right.axvspan(0.96, 1.01, color="C2", alpha=0.15, linewidth=0)
right.axvspan(0.0, 0.8, color="C3", alpha=0.1, linewidth=0)
right.text(0.6, 0.42, "doubtful", ha="center", color="C3")
right.text(0.985, 0.42, "reliable", rotation=90, ha="center", va="bottom", color="C2")
right.plot([0, 1], [0, 1], color="0.7", linewidth=1, zorder=0)
right.set(
    xlim=(0.4, 1.01),
    ylim=(0.4, 1.03),
    xlabel="reliability",
    ylabel="cosine with the truth",
)
right.legend(loc="upper left", frameon=False)
right.set_title("what is said of each component, and what is true")
right.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
#
# On sparse coefficients all answers agree: BIC and ``"auto"`` find the true number,
# BIC finds the law, and all components are called reliable, which is true: they are
# near the components that made the data. With normal coefficients the number is still
# found, since it does not depend on the law. But which components span the space
# cannot be known, and a method that looks for independent components finds some all
# the same. The fit says so: it calls them doubtful, and they do differ from the true
# ones.
#
# BIC and ``"auto"`` both assume that rows are independent. Of rows that come one
# after the other in time they find more components than there are.
