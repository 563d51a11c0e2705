"""
How many components, and which prior?
=====================================

**The question.** Nobody has said how many components there are, nor what law their coefficients
have. What do the data say, and which components would be seen again in other data?

Four answers are at hand. ``n_components="auto"`` drops components that the data do not support.
:func:`noisyica.select` compares numbers of components and priors by BIC, or by the likelihood of
rows that were left out. ``prior="adaptive"`` learns the law. And ``reliability_`` says how well
more rows of the same kind would reproduce each component.
"""

# %%
# Data whose answer is known
# --------------------------
#
# There are five components in twenty columns. The coefficients of the first three are zero most
# of the time. Those of the last two are normal, and of two normal ones nobody can say how they
# are mixed: any rotation of them explains the data as well.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from noisyica import NoisyICA, plot, select

rng = np.random.default_rng(0)
n, d = 400, 20
sparse = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.25) * 2
beta = np.column_stack([sparse, rng.normal(size=(n, 2))])
A = rng.normal(size=(d, 5))
X = beta @ A.T + rng.normal(size=(n, d))

# %%
# Number and prior by BIC
# -----------------------
#
# BIC is minus twice the log likelihood at its maximum, with a penalty for each parameter: the
# lower, the better. ``"bg"`` has zeros, ``"lap"`` has none and heavy tails. Five numbers of
# components and two priors are ten fits.

settings = {"noise": "isotropic", "random_state": 0}
chosen = select(X, n_components=range(3, 8), priors=["bg", "lap"], max_iter=400, tol=0, **settings)
print(f"chosen: {chosen.best_.prior}, {len(chosen.best_.components_)} components")

# %%
# Automatically, with a law that is learnt
# ----------------------------------------
#
# The default prior of the components lets those vanish that the data do not support. A law that
# is learnt shows which coefficients are nearly normal: their excess kurtosis is about zero. The
# fit warns of components that the data hardly determine. Here we catch the warning to print it.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ica = NoisyICA("auto", prior="adaptive", **settings).fit(X)
print(f'"auto" keeps {len(ica.components_)} components')
for warning in caught:
    print("warning:", warning.message)

# %%
# Which components are real?
# --------------------------
#
# Since the truth is known here, each learnt component can be compared with the nearest true one.
# ``reliability_`` estimates this cosine without the truth, from components that are learnt from
# halves of the rows.

units = [a / np.linalg.norm(a, axis=1, keepdims=True) for a in (ica.components_, A.T)]
cosines = np.abs(units[0] @ units[1].T)
nearest = cosines.argmax(1)
weights = ica.prior_.weights
for j, k in enumerate(nearest):
    kind = "sparse" if k < 3 else "normal"
    print(
        f"component {j}: reliability {ica.reliability_[j]:.2f}, cosine {cosines[j, k]:.2f} with "
        f"the true component {k} ({kind})"
    )

# %%
# The picture
# -----------

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.selection(chosen, left)
left.set_title("BIC chooses number and prior")
left.spines[["top", "right"]].set_visible(False)
for kind, colour, marker in (("sparse", "C0", "o"), ("normal", "C1", "s")):
    mine = [j for j, k in enumerate(nearest) if (k < 3) == (kind == "sparse")]
    label = f"nearest true component: {kind}"
    right.plot(ica.reliability_[mine], cosines.max(1)[mine], marker, color=colour, label=label)
right.axvspan(0.96, 1.01, color="C2", alpha=0.15, linewidth=0)
right.axvspan(0.0, 0.8, color="C3", alpha=0.1, linewidth=0)
right.text(0.78, 0.02, "doubtful", ha="right", color="C3")
right.text(0.985, 0.02, "reliable", rotation=90, ha="center", va="bottom", color="C2")
right.plot([0, 1], [0, 1], color="0.7", linewidth=1, zorder=0)
right.set(xlim=(0, 1.01), ylim=(0, 1.03), xlabel="reliability_", ylabel="cosine with the truth")
right.legend(loc="upper left", frameon=False)
right.set_title("what is said of each component, and what is true")
right.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Conclusion
# ----------
