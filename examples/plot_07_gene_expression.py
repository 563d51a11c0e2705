"""
Gene expression with an offset for each patient
===============================================

**The question.** Which groups of genes go up or down together in these patients, when
each patient's values are shifted as a whole?

The amount of material, the staining and the scanner shift all values of a patient's
sample by some amount, and there are patients in whom a disease is strong and others
in whom it is weak. The prior ``"teoff"`` was made for such data: in each patient a
component is raised, lowered or absent; all components that are present have one size,
which is the patient's own; and an offset is added to all genes together. Genes are
not measured equally well, so each has noise of its own.
"""

# %%
# Patients
# --------
#
# Here are 150 simulated patients with 200 genes. Four pathways have some 25 genes
# each. In each patient a pathway is raised or lowered with probability 0.15 each.
# Offsets are about as large as the effects.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FastICA

from noisyica import NoisyICA

rng = np.random.default_rng(1)
n, d, p = 150, 200, 4
pathways = np.abs(rng.normal(1.0, 0.3, size=(p, d))) * (rng.random((p, d)) < 0.12)
size = rng.exponential(size=(n, 1))
state = rng.choice([-1, 0, 1], p=[0.15, 0.7, 0.15], size=(n, p))
offset = rng.laplace(scale=0.7, size=n)
noise = rng.uniform(0.2, 0.8, size=d)
X = size * state @ pathways + offset[:, None] + noise * rng.normal(size=(n, d))

# %%
# The fits
# --------
#
# One has the prior with an offset, the other is the default prior ``"bg"``, which has
# a mean instead. The latter is also given one component more, which it may spend on
# the offset.

settings = {"noise": "diagonal", "n_init": 1, "max_iter": 1000, "random_state": 0}
with_offset = NoisyICA(p, prior="teoff", **settings).fit(X)
without = NoisyICA(p, prior="bg", **settings).fit(X)
one_more = NoisyICA(p + 1, prior="bg", **settings).fit(X)
print(with_offset.prior_)

# %%
# How near are the components to the pathways? FastICA, which has neither noise nor
# offsets, is asked as well. One may also subtract the mean of all genes from each
# patient beforehand, which takes a part of the pathways away with the offset.

centred = X - X.mean(1, keepdims=True)
found = {"teoff": with_offset.components_, "bg": without.components_}
found["bg, one component more"] = one_more.components_
for name, rows in {"FastICA": X, "FastICA, patients centred": centred}.items():
    fast = FastICA(
        p, whiten="unit-variance", max_iter=2000, tol=1e-3, random_state=0
    ).fit(rows)
    found[name] = fast.mixing_.T


def matched(components):
    """Return components in the pathways' order and with their signs, and cosines."""
    units = [
        a / np.linalg.norm(a, axis=1, keepdims=True) for a in (pathways, components)
    ]
    table = units[0] @ units[1].T
    rows, order = linear_sum_assignment(-np.abs(table))
    cosines = table[rows, order]
    return units[1][order] * np.sign(cosines)[:, None], np.abs(cosines)


for name, components in found.items():
    print(f"{name:26} cosines with the pathways", matched(components)[1].round(2))

# %%
# The offsets, and the noise of the genes
# ---------------------------------------
#
# ``map`` gives the most probable coefficients of each patient, and on request the
# offset.

beta, learnt_offset = with_offset.model_.map(X, return_offset=True)
error = np.sqrt(np.mean(np.square(learnt_offset - offset)))
print(f"offsets: standard deviation {offset.std():.2f}, error {error:.3f}")
learnt_noise = np.sqrt(with_offset.noise_variance_)
correlation = np.corrcoef(learnt_noise, noise)[0, 1]
print(f"noise of the genes: correlation {correlation:.2f} with the truth")

# %%
# The picture
# -----------

order = np.lexsort(pathways[::-1])[::-1]
figure = plt.figure(figsize=(11, 6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[2, 1])
shown = {"true pathways": pathways, "teoff": found["teoff"], "bg": found["bg"]}
shown["FastICA"] = found["FastICA"]
for axes, (name, components) in zip(
    left.subplots(4, 1, sharex=True), shown.items(), strict=True
):
    rows, cosines = matched(components)
    axes.imshow(rows[:, order], aspect="auto", cmap="RdBu_r", vmin=-0.3, vmax=0.3)
    score = "" if name == "true pathways" else f", mean cosine {cosines.mean():.2f}"
    axes.set_title(name + score, loc="left")
    axes.set(yticks=range(p), ylabel="component")
axes.set_xlabel("genes, sorted by pathway")
upper, lower = right.subplots(2, 1)
upper.axline((0, 0), slope=1, color="0.7", linewidth=1)
upper.plot(offset, learnt_offset, ".")
upper.set(xlabel="true offset of a patient", ylabel="learnt")
lower.axline((0.5, 0.5), slope=1, color="0.7", linewidth=1)
lower.plot(noise, learnt_noise, ".", color="C1")
lower.set(xlabel="true noise of a gene", ylabel="learnt")
plt.show()

# %%
# Conclusion
# ----------
#
# Without an offset in the model, one component is the offset itself, the same for all
# genes, and one of the pathways is lost to it. One component more brings the pathway
# back. ``"teoff"`` finds all pathways without it, about as well; besides, it says how
# far each patient is shifted. Both say how noisy each gene is, which FastICA does
# not.
#
# These patients were made as the model has them, with one size of all effects in a
# patient and the same offset for all genes. Where this is not so, ``"bg"`` with a
# component more asks for less. ``score`` on patients who were left out tells which of
# the two describes them better.
