"""
Parts of digits and of faces
============================

**The question.** Images are made of parts that are there or not. Can the parts be
learnt from the images alone?

Principal components of images are whole images: each has light and dark everywhere.
Parts only ever add something, and each of them is in one place. Both can be said to
the model: coefficients are zero or positive, and so are the components' pixels.
"""

# %%
# Digits
# ------
#
# These are the 1,797 handwritten digits of scikit-learn, with 8 by 8 pixels.
# ``laws.Exponential()`` is a law of coefficients that are never negative,
# ``mixing_prior="nonnegative"`` says that pixels of components are zero or positive,
# and ``mean="zero"`` that an image without any part is black. Pixels are alike, so
# ``noise="isotropic"``.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA

from noisyica import NoisyICA, laws

X = load_digits().data
settings = {
    "mixing_prior": "nonnegative",
    "mean": "zero",
    "noise": "isotropic",
    "n_init": 1,
}
parts = NoisyICA(
    16, prior=laws.Exponential(), max_iter=400, tol=0, random_state=0, **settings
)
parts.fit(X)
print(f"explained: {parts.explained_variance_ratio_.sum():.2f} of the variance")

components = {"PCA": PCA(16).fit(X).components_, "parts": parts.components_}
for name, rows in components.items():
    # as many equal pixels would be concentrated as much
    concentrated = np.square(rows).sum(1) ** 2 / np.sum(rows**4, 1)
    print(f"{name:6} a component covers some {concentrated.mean():.0f} pixels of 64")

figure, grid = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for axes, (name, rows) in zip(grid, components.items(), strict=True):
    images = (rows / np.abs(rows).max(1, keepdims=True)).reshape(4, 4, 8, 8)
    images = np.pad(images, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    axes.imshow(
        images.transpose(0, 2, 1, 3).reshape(36, 36), cmap="RdBu_r", vmin=-1, vmax=1
    )
    axes.set_title(
        {"PCA": "principal components", "parts": "parts: nothing is negative"}[name]
    )
    axes.set_axis_off()

# %%
# Which parts a digit is made of
# ------------------------------
#
# The coefficients of one image have a posterior, of which intervals can be taken:
# some parts are surely in it, of others the image does not say. Below are the five
# parts that add most to the image of a three, each with the posterior mean of its
# coefficient and the interval that holds it with probability 0.9.

digit = X[3]
posterior = parts.model_.posterior(digit[None], random_state=0)
mean = posterior.mean()[0]
lower, upper = posterior.interval(0.9)[0].T
order = np.argsort(-mean * np.abs(parts.components_).sum(1))[:5]

figure, grid = plt.subplots(1, 7, figsize=(11, 2.3), layout="constrained")
grid[0].imshow(digit.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
grid[0].set_title("the image")
for axes, j in zip(grid[1:6], order, strict=True):
    axes.imshow(
        (mean[j] * parts.components_[j]).reshape(8, 8), cmap="gray_r", vmin=0, vmax=16
    )
    axes.set_title(f"{mean[j]:.1f}\n[{lower[j]:.1f}, {upper[j]:.1f}]", fontsize=10)
grid[6].imshow(
    parts.inverse_transform(mean[None]).reshape(8, 8), cmap="gray_r", vmin=0, vmax=16
)
grid[6].set_title("all 16 parts")
for axes in grid:
    axes.set_axis_off()

# %%
# Faces, whose parts are known
# ----------------------------
#
# Photographs of faces would have to be downloaded. So here faces are drawn, which has
# an advantage: their parts are known. Each of 300 drawings has some of nine parts,
# more or less dark, and a lot of noise.

y, x = np.mgrid[-1:1:28j, -1:1:28j]
oval = np.hypot(x / 0.78, y / 0.95)
eyes = np.minimum(
    np.hypot((x - 0.32) / 0.9, y + 0.2), np.hypot((x + 0.32) / 0.9, y + 0.2)
)
drawn = {
    "outline": np.abs(oval - 0.95) < 0.06,
    "hair": (oval < 0.98) & (y < -0.58),
    "brows": (np.abs(np.abs(x) - 0.33) < 0.2) & (np.abs(y + 0.43) < 0.05),
    "eyes": eyes < 0.1,
    "glasses": (np.abs(eyes - 0.21) < 0.045)
    | ((np.abs(x) < 0.12) & (np.abs(y + 0.22) < 0.04)),
    "nose": (np.abs(x + 0.25 * (y - 0.05)) < 0.05) & (np.abs(y - 0.06) < 0.2),
    "smile": (np.abs(np.hypot(x, y - 0.2) - 0.38) < 0.05) & (y > 0.4),
    "moustache": (np.abs(x) < 0.26) & (np.abs(y - 0.33 - 0.2 * np.abs(x)) < 0.045),
    "beard": (oval < 0.93) & (y > 0.72),
}
truth = np.array([part.ravel() for part in drawn.values()], float)

rng = np.random.default_rng(0)
strength = rng.exponential(size=(300, len(truth))) * (
    rng.random((300, len(truth))) < 0.6
)
faces = strength @ truth + 1.0 * rng.normal(size=(300, truth.shape[1]))

faces_ica = NoisyICA(
    9, prior=laws.Exponential(), max_iter=400, tol=0, random_state=0, **settings
)
faces_ica.fit(faces)

# %%
# Negative pixels, which noise makes, are part of the model. NMF does not accept them:
# they are set to zero for it. What is then left of the noise has a mean above zero,
# and so NMF is also asked for one part more.

positive = np.maximum(faces, 0)
nmf = {
    p: NMF(p, init="nndsvda", max_iter=1000, random_state=0).fit(positive)
    for p in (9, 10)
}


def matched(found):
    """Return found parts in the order of the true ones, and their cosines with them."""
    units = [
        rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (truth, found)
    ]
    cosines = units[0] @ units[1].T
    rows, order = linear_sum_assignment(-cosines)
    return found[order], cosines[rows, order]


learnt = {"noisyica": matched(faces_ica.components_)}
learnt["NMF"] = matched(nmf[9].components_)
learnt["NMF, 10 parts"] = matched(nmf[10].components_)
for name, (_, cosines) in learnt.items():
    print(f"{name:14} cosines: mean {cosines.mean():.3f}, least {cosines.min():.3f}")

# %%
# The picture
# -----------

# sphinx_gallery_thumbnail_number = 3
figure, grid = plt.subplots(5, 9, figsize=(11, 6.7), layout="constrained")
rows = {"nine of the faces": faces[:9], "true parts": truth}
rows |= {name: found for name, (found, _) in learnt.items()}
for line, (name, images) in zip(grid, rows.items(), strict=True):
    for axes, image in zip(line, images, strict=True):
        axes.imshow(
            image.reshape(28, 28), cmap="gray_r", vmin=0, vmax=np.quantile(image, 0.995)
        )
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    line[0].set_ylabel(name)
for axes, name in zip(grid[1], drawn, strict=True):
    axes.set_title(name, fontsize=9)
plt.show()

# %%
# Conclusion
# ----------
#
# In the digits, a component of this model is a stroke or two, spread over few pixels,
# where a principal component has light and dark all over the image. The faces show
# that such parts can be the ones that the images were made of, though single images
# hardly show them: with the noise in the model, all nine are found and their
# surroundings are empty. NMF finds the parts, too, but one of them only if it is
# asked for one more than there are, and with noise around them; it has no place for
# noise but its parts.
#
# The faces were made as the model has it. Photographs of faces are not: their parts
# move and hide each other.
