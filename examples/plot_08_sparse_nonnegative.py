"""
Spectra of a mixture, and genes that do nothing
===============================================

**The question.** In some data the components themselves are known to be special:
spectra are never negative, and a biological programme concerns a few genes only. What
is gained if the model knows?

``mixing_prior`` is the law of the components' entries. It is the counterpart of
``prior``, the law of the coefficients. Its scale, and the share of entries that are
zero, are learnt for each component.
"""

# %%
# Spectra: nothing is negative
# ----------------------------
#
# A hundred samples are mixtures of four substances. Their spectra have lines that
# overlap, and the detector is noisy. The amounts are never negative either, and there
# is no mean: where nothing is, nothing is measured.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF, SparsePCA

from noisyica import NoisyICA, laws

rng = np.random.default_rng(3)
wavelength = np.linspace(400, 800, 200)
spectra = np.zeros((4, 200))
for spectrum in spectra:
    for centre in rng.uniform(420, 780, size=4):
        width = rng.uniform(5, 18)
        spectrum += rng.uniform(0.3, 1) / (1 + np.square((wavelength - centre) / width))
spectra[spectra < 0.05] = 0.0
amounts = rng.exponential(size=(100, 4))
noise = {"weak": 0.4, "strong": 1.2}
samples = {
    k: amounts @ spectra + sigma * rng.normal(size=(100, 200))
    for k, sigma in noise.items()
}

settings = {"noise": "isotropic", "n_init": 1, "max_iter": 600, "random_state": 0}
of_spectra = {
    "prior": laws.Exponential(),
    "mixing_prior": "nonnegative",
    "mean": "zero",
}

# %%
# NMF needs data without negative values, which noise has made. They are set to zero
# for it.


def matched(truth, found):
    """Return components in the true ones' order and with their signs, and cosines."""
    units = [a / np.linalg.norm(a, axis=1, keepdims=True) for a in (truth, found)]
    table = units[0] @ units[1].T
    rows, order = linear_sum_assignment(-np.abs(table))
    cosines = table[rows, order]
    return units[1][order] * np.sign(cosines)[:, None], np.abs(cosines)


for strength, X in samples.items():
    ica = NoisyICA(4, **of_spectra, **settings).fit(X)
    nmf = NMF(4, init="nndsvda", max_iter=2000, random_state=0).fit(np.maximum(X, 0))
    learnt_spectra = {"noisyica": matched(spectra, ica.components_)}
    learnt_spectra["NMF"] = matched(spectra, nmf.components_)
    for name, (_, cosines) in learnt_spectra.items():
        print(f"{strength} noise, {name:8}: cosines with the spectra", cosines.round(3))

# %%
# Sparse components
# -----------------
#
# Sixty samples of 400 genes: each of three programmes raises or lowers some tenth of
# the genes. The entries of the components are now zero or normal,
# ``mixing_prior="sparse"``.

programmes = rng.normal(size=(3, 400)) * (rng.random((3, 400)) < 0.1)
genes = rng.laplace(size=(60, 3)) @ programmes + 1.5 * rng.normal(size=(60, 400))

sparse = NoisyICA(3, mixing_prior="sparse", **settings).fit(genes)
dense = NoisyICA(3, **settings).fit(genes)

# %%
# Sparse PCA has a penalty that somebody has to choose. It gets the one that is best
# by the truth, of six.

candidates = [
    SparsePCA(3, alpha=alpha, random_state=0, max_iter=200).fit(genes).components_
    for alpha in (1.0, 2.0, 4.0, 8.0, 12.0, 16.0)
]
candidates = [rows for rows in candidates if np.all(np.linalg.norm(rows, axis=1) > 0)]
best = max(candidates, key=lambda rows: matched(programmes, rows)[1].mean())
learnt_genes = {
    'mixing_prior="sparse"': matched(programmes, sparse.components_),
    'mixing_prior="normal"': matched(programmes, dense.components_),
    "sparse PCA, best penalty": matched(programmes, best),
}
for name, (_, cosines) in learnt_genes.items():
    print(f"{name:24} cosines with the programmes", cosines.round(3))

# %%
# Which genes belong to a programme, and how surely?
# --------------------------------------------------
#
# ``components_probability_`` is the probability that an entry of a component is not
# zero. If all genes with a probability above 0.9 are called, the model expects a
# share of false calls that is their mean probability of being zero.

units = programmes / np.linalg.norm(programmes, axis=1, keepdims=True)
own = np.abs(units @ sparse.components_.T).argmax(1)
probability = sparse.components_probability_[own]
called = probability > 0.9
true = programmes != 0
print(f"{called.sum()} entries called of {true.sum()} that are not zero")
print(f"false among them: {(called & ~true).sum() / called.sum():.1%}", end="; ")
print(f"expected by the model: {(1 - probability[called]).mean():.1%}")

# %%
# The picture
# -----------

figure = plt.figure(figsize=(11, 6.5), layout="constrained")
left, right = figure.subfigures(1, 2)
for k, axes in enumerate(left.subplots(4, 1, sharex=True)):
    truth = spectra[k] / np.linalg.norm(spectra[k])
    axes.fill_between(wavelength, truth, color="0.85", label="true")
    for (name, (rows, _)), colour in zip(
        learnt_spectra.items(), ("C0", "C1"), strict=True
    ):
        axes.plot(wavelength, rows[k], color=colour, linewidth=1, label=name)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_yticks([])
    if k == 0:
        axes.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
        axes.set_title("spectra, strong noise", loc="left")
axes.set_xlabel("wavelength (nm)")

grid = right.subplots(3, 1, sharex=True)
for axes, (name, (rows, cosines)) in zip(grid, learnt_genes.items(), strict=True):
    size = true[0].sum() + 60
    order = np.argsort(~true[0], kind="stable")[:size]
    axes.bar(np.arange(size), units[0][order], width=1, color="0.8", label="true")
    axes.plot(np.arange(size), rows[0][order], ".", markersize=4, label="learnt")
    axes.axvline(true[0].sum() - 0.5, color="C3", linewidth=0.8)
    axes.set_title(f"{name}: cosine {cosines[0]:.2f}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
grid[0].legend(ncols=2, loc="upper right", frameon=False)
grid[-1].set_xlabel(
    "genes of the first programme, and right of the line 60 that are not"
)
plt.show()

# %%
# Conclusion
# ----------
#
# Where the noise is weak, NMF learns spectra as well as the model does. Where it is
# strong, NMF makes noise above zero a part of its spectra, and the model does not.
#
# Of few samples of many genes, components are learnt better if the model knows that
# most entries are zero. Sparse PCA comes close to that with the right penalty, which
# was chosen here by the truth; in the model nothing has to be chosen. Genes are
# called with a probability, and the share of false calls that it promises can be
# compared with that of the truth above.
