"""
Taking the noise out of a photograph
====================================

**The question.** A photograph is noisy, and nobody knows how noisy. What did it look
like without the noise?

Small patches of a photograph are sums of a few patterns: edges, slopes, stripes.
Noise is not. A model that knows both can tell them apart: it learns the patterns, how
often each is there, and the strength of the noise, all from the noisy patches
themselves. The best guess of a clean patch, in the sense of least squares, is then
its posterior mean.
"""

# %%
# A photograph with noise
# -----------------------
#
# The picture of a flower that comes with scikit-learn is reduced to half of its size,
# and a part of it is taken, so that this page is built in little time. The noise has
# a standard deviation of 0.1, where black is 0 and white is 1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA, MiniBatchDictionaryLearning
from sklearn.feature_extraction.image import (
    extract_patches_2d,
    reconstruct_from_patches_2d,
)

from noisyica import NoisyICA

photograph = load_sample_image("flower.jpg") / 255.0
height, width = photograph.shape[0] // 2, photograph.shape[1] // 2
small = (
    photograph[: 2 * height, : 2 * width].reshape(height, 2, width, 2, 3).mean((1, 3))
)
clean = small[30:126, 140:268]

sigma = 0.1
noisy = clean + sigma * np.random.default_rng(0).normal(size=clean.shape)

# %%
# All patches of 5 by 5 pixels are the rows, and the colours of their pixels the
# columns.

side = 5
patches = extract_patches_2d(noisy, (side, side))
X = patches.reshape(len(patches), -1)
print(f"{X.shape[0]} patches with {X.shape[1]} columns")

# %%
# Learning the patterns
# ---------------------
#
# ``prior="adaptive"`` learns how the coefficients of each pattern are distributed,
# zeros included. The noise is that of a camera, equal for all pixels:
# ``noise="isotropic"``. How large it is, the model is not told.

ica = NoisyICA(
    30, prior="adaptive", noise="isotropic", n_init=1, max_iter=200, random_state=0
)
ica.fit(X)
print(f"noise deviation: learnt {np.sqrt(ica.noise_variance_):.4f}, true {sigma}")

# %%
# ``transform`` gives the posterior means of the coefficients, and
# ``inverse_transform`` makes patches of them. Each pixel is in up to 25 patches,
# whose guesses are averaged.


def photograph_of(rows):
    """Put patches that overlap together again."""
    return reconstruct_from_patches_2d(rows.reshape(patches.shape), noisy.shape)


results = {"noisyica": photograph_of(ica.inverse_transform(ica.transform(X)))}

# %%
# What others make of it
# ----------------------
#
# PCA keeps some directions of the patches and drops the others. Dictionary learning
# looks for patterns of which few are needed for each patch; for each patch it adds
# patterns until what is left over is as large as noise would be. Both have to be told
# where to stop. Here they get what one could not know: the best stop for this
# photograph, by the distance to the photograph without noise.


def psnr(found):
    """Return the peak signal-to-noise ratio in decibels: the more, the better."""
    return -10 * np.log10(np.mean(np.square(np.clip(found, 0, 1) - clean)))


def best(candidates):
    """Return the candidate that is nearest to the photograph without noise."""
    return max(candidates, key=psnr)


fits = [PCA(p).fit(X) for p in (4, 6, 8, 12, 16, 24)]
results["PCA"] = best(
    [photograph_of(pca.inverse_transform(pca.transform(X))) for pca in fits]
)

centres = X.mean(1, keepdims=True)
dictionary = MiniBatchDictionaryLearning(
    100, batch_size=256, max_iter=3, random_state=0
)
dictionary.fit(X - centres)
candidates = []
for factor in (1.1, 1.2, 1.3):
    tolerance = X.shape[1] * (factor * sigma) ** 2
    dictionary.set_params(transform_algorithm="omp", transform_alpha=tolerance)
    codes = dictionary.transform(X - centres)
    candidates.append(photograph_of(codes @ dictionary.components_ + centres))
results["dictionary learning"] = best(candidates)

decibels = {"noisy": psnr(noisy)} | {
    name: psnr(found) for name, found in results.items()
}
for name, value in decibels.items():
    print(f"{name:20} {value:.2f} dB")

# %%
# The pictures
# ------------

figure, grid = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
shown = {"photograph": clean, "noisy": noisy} | results
for axes, (name, picture) in zip(grid.ravel(), shown.items(), strict=False):
    axes.imshow(np.clip(picture, 0, 1))
    axes.set_title(f"{name}, {decibels[name]:.1f} dB" if name in decibels else name)
for axes in grid.ravel():
    axes.set_axis_off()

patterns = ica.components_ / np.abs(ica.components_).max(1, keepdims=True)
mosaic = np.ones((5 * (side + 1), 6 * (side + 1), 3))
for j, pattern in enumerate(patterns):
    y, x = (side + 1) * (j // 6), (side + 1) * (j % 6)
    mosaic[y : y + side, x : x + side] = 0.5 + 0.5 * pattern.reshape(side, side, 3)
grid[1, 2].imshow(mosaic)
grid[1, 2].set_title("the patterns that were learnt")
plt.show()

# %%
# Conclusion
# ----------
#
# The posterior mean is closer to the photograph than PCA and dictionary learning are,
# although these two were told where to stop and the model was told nothing: not how
# strong the noise is, nor how many patterns a patch may need. (The number of all
# patterns was chosen without trying others.) The noise that it learnt is a little
# more than what was added, since fine detail that the patterns do not explain counts
# as noise.
#
# What this does not show: methods that are made for photographs, such as BM3D or
# neural networks that have seen many of them, were not tried here, and can be
# expected to do better. This model has seen no other picture than the noisy one.
