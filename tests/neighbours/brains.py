"""Functional images of simulated subjects, whose maps and time courses are known."""

from typing import NamedTuple

import nibabel
import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import linear_sum_assignment

SHAPE, AFFINE = (14, 16, 10), np.diag([3.0, 3.0, 3.0, 1.0])
MAPS, TIMES = 4, 80


class Brains(NamedTuple):
    """Subjects with the same maps, and time courses of their own."""

    maps: np.ndarray  # (MAPS, voxels)
    courses: list  # of each subject, (TIMES, MAPS)
    images: list  # of each subject, of four axes
    mask: nibabel.Nifti1Image  # the voxels, in a ball


def inside():
    """Return the voxels of the brain: a ball, as far as the grid has room for it."""
    grid = np.stack(np.meshgrid(*(np.linspace(-1, 1, side) for side in SHAPE), indexing="ij"))
    return np.square(grid).sum(0) < 1.05


def blobs(rng):
    """Return maps that are two blobs each, which may overlap: about an eighth of the voxels."""
    voxels = np.argwhere(inside())
    maps = np.zeros((MAPS, len(voxels)))
    for one in maps:
        for centre in voxels[rng.choice(len(voxels), 2)]:
            width = rng.uniform(1.0, 1.8)  # in voxels of 3 mm
            height = rng.uniform(0.7, 1.3) * (-1) ** (rng.random() < 0.2)
            one += height * np.exp(-np.square(voxels - centre).sum(1) / (2 * width**2))
    return np.where(np.abs(maps) < 0.1, 0.0, maps)


def brains(seed, sigma, subjects=1):
    """Simulate subjects: slow time courses of variance one, and more noise in some voxels.

    The standard deviation of white noise is uniform between half of sigma and one and a half of it.
    """
    rng = np.random.default_rng(seed)
    where, maps = inside(), blobs(rng)
    courses, images = [], []
    for _ in range(subjects):
        slow = gaussian_filter1d(rng.normal(size=(TIMES + 20, MAPS)), 1.5, axis=0)[10:-10]
        slow = (slow - slow.mean(0)) / slow.std(0)
        noise = sigma * rng.uniform(0.5, 1.5, size=maps.shape[1])
        Y = slow @ maps + noise * rng.normal(size=(TIMES, maps.shape[1]))
        volumes = np.zeros((*SHAPE, TIMES), np.float32)
        volumes[where] = (rng.normal(100, 10, size=maps.shape[1]) + Y).T
        courses.append(slow)
        images.append(nibabel.Nifti1Image(volumes, AFFINE))
    return Brains(maps, courses, images, nibabel.Nifti1Image(where.astype(np.uint8), AFFINE))


def pairs(truth, found):
    """Return the absolute correlations of matched vectors, and which of those found match."""
    varies = found.std(1) > 0  # a map that was thresholded away is like none
    table = np.zeros((len(truth), len(found)))
    table[:, varies] = np.abs(np.corrcoef(truth, found[varies])[: len(truth), len(truth) :])
    rows, matches = linear_sum_assignment(-table)
    return table[rows, matches], matches
