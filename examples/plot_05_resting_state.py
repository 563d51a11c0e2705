"""
Resting-state networks, with nilearn
====================================

**The question.** A few minutes of functional images of three subjects at rest: which
networks of voxels go up and down together, and which voxels belong to them?

This is spatial ICA: voxels are the rows, and the maps are independent and sparse.
:class:`noisyica.neuro.NoisyCanICA` is used like nilearn's CanICA. It has the noise in
its model, and the law of the maps is learnt with them, so that it can say with which
probability a voxel is on.
"""

# %%
# Three subjects
# --------------
#
# They are simulated: four networks of two regions each in a brain of some thousand
# voxels, slow time courses that are each subject's own, and noise that is stronger in
# some voxels than in others. A real study would begin with the paths of files.

import matplotlib.pyplot as plt
import nibabel
import numpy as np
from nilearn.decomposition import CanICA
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import linear_sum_assignment

from noisyica.neuro import NoisyCanICA

rng = np.random.default_rng(0)
shape, n_times, n_maps = (18, 22, 12), 80, 4
grid = np.stack(
    np.meshgrid(*(np.linspace(-1, 1, side) for side in shape), indexing="ij")
)
inside = np.square(grid).sum(0) < 1.0
voxels = np.argwhere(inside)

maps = np.zeros((n_maps, len(voxels)))
middle = shape[2] // 2
for k, network in enumerate(maps):
    angle = np.pi / 4 * k
    for turn in (0, np.pi):  # two regions, at opposite sides
        x = 8.5 + 5.5 * np.cos(angle + turn)
        y = 10.5 + 7 * np.sin(angle + turn)
        distance = np.square(voxels - [x, y, middle]).sum(1)
        network += np.exp(-distance / (2 * 1.7**2))
maps[maps < 0.1] = 0.0

images, courses = [], []
for _ in range(3):
    slow = gaussian_filter1d(rng.normal(size=(n_times + 20, n_maps)), 1.5, axis=0)[
        10:-10
    ]
    slow = (slow - slow.mean(0)) / slow.std(0)
    noise = rng.uniform(1.0, 3.0, size=len(voxels))
    signal = slow @ maps + noise * rng.normal(size=(n_times, len(voxels)))
    volumes = np.zeros((*shape, n_times), np.float32)
    volumes[inside] = (rng.normal(100, 10, size=len(voxels)) + signal).T
    images.append(nibabel.Nifti1Image(volumes, np.diag([3.0, 3.0, 3.0, 1.0])))
    courses.append(slow)
mask = nibabel.Nifti1Image(inside.astype(np.uint8), images[0].affine)
print(f"{len(voxels)} voxels, {len(images)} subjects with {n_times} volumes each")

# %%
# The maps
# --------
#
# Both are told that there are four maps, and neither smooths the images; CanICA has
# its other defaults.

ica = NoisyCanICA(n_maps, mask=mask, ica_settings={"n_init": 1}, random_state=0).fit(
    images
)
canica = CanICA(
    n_components=n_maps, mask=mask, smoothing_fwhm=None, random_state=0
).fit(images)


def matched(found):
    """Return the order and the signs of found maps, and correlations with true ones."""
    table = np.corrcoef(maps, found)[:n_maps, n_maps:]
    rows, order = linear_sum_assignment(-np.abs(table))
    return order, np.sign(table[rows, order]), np.abs(table[rows, order])


order, signs, correlations = matched(ica.components_)
of_canica, signs_of_canica, correlations_of_canica = matched(canica.components_)
print("correlations with the true maps, NoisyCanICA:", correlations.round(2))
print("correlations with the true maps, CanICA:     ", correlations_of_canica.round(2))

# %%
# Which voxels belong to a network?
# ---------------------------------
#
# A voxel is *on* in a map if its value there is not exactly zero.
# ``thresholded_img(0.9)`` keeps the voxels that are on with a probability of 0.9 or
# more. It is an image, to be saved or drawn with nilearn. Since neighbours are not
# independent in real images, take the probability for a way to rank voxels.

on = ica.probability_on_[order] > 0.9
core = maps > 0.3
right = (on & (maps > 0)).sum() / on.sum()
print(f"voxels called: {on.sum()}, of which in a network: {right:.0%}")
print(
    f"called of the {core.sum()} voxels above 0.3: {(on & core).sum() / core.sum():.0%}"
)
print("image with thresholds:", ica.thresholded_img(0.9).shape)

# %%
# The picture
# -----------
#
# A slice through the middle of the brain, and the time course of each network in the
# first subject.

figure = plt.figure(figsize=(10, 9.5), layout="constrained")
axes_of = figure.subplots(5, n_maps, height_ratios=[3, 3, 3, 3, 2])
rows = {
    "truth": (maps, "RdBu_r", 1.0),
    "CanICA": (
        canica.components_[of_canica] * signs_of_canica[:, None],
        "RdBu_r",
        None,
    ),
    "NoisyCanICA": (ica.components_[order] * signs[:, None], "RdBu_r", None),
    "probability on": (ica.probability_on_[order], "magma", 1.0),
}
for line, (name, (values, colours, top)) in zip(axes_of, rows.items(), strict=False):
    for k, axes in enumerate(line):
        volume = np.full(shape, np.nan)
        volume[inside] = values[k]
        high = top or np.nanquantile(np.abs(values[k]), 0.998)
        low = 0.0 if name == "probability on" else -high
        axes.imshow(
            volume[:, :, middle].T, origin="lower", cmap=colours, vmin=low, vmax=high
        )
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    line[0].set_ylabel(name)
for k in range(n_maps):
    axes_of[1, k].set_title(f"r = {correlations_of_canica[k]:.2f}", fontsize=10)
    axes_of[2, k].set_title(f"r = {correlations[k]:.2f}", fontsize=10)
    course = ica.time_courses_[0][:, order[k]] * signs[k]
    axes_of[4, k].plot(courses[0][:, k], color="0.6", linewidth=2.5, label="true")
    axes_of[4, k].plot(
        (course - course.mean()) / course.std(), color="C0", label="learnt"
    )
    axes_of[4, k].set(yticks=[], xlabel="volume")
    axes_of[4, k].spines[["top", "right", "left"]].set_visible(False)
axes_of[4, 0].set_ylabel("time course")
axes_of[4, 0].legend(
    fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False
)
plt.show()

# %%
# Conclusion
# ----------
#
# All four networks are found by both, and the maps of the noisy model are nearer to
# the true ones: away from the networks its values are nearly zero, since it knows how
# strong the noise is. Nearly all voxels that are called belong to the network. Those
# that are missed are at the rims, where the signal is below the noise.
#
# The simulated noise is white, as the model has it. That of real images is not, and
# the difference between the methods may be smaller there.
