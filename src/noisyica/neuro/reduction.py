"""A subject's voxels in units of their noise, and reduced to fewer columns than time points.

Both keep the noise of the model what it is taken to be: the same in all voxels and columns. Voxels
are divided by the standard deviation of what the subject's principal components leave of them.
Columns are then coordinates in an orthonormal basis, and not whitened: white noise stays white with
variance one, whatever the basis, and of all subjects. (Whitening would multiply the noise of weak
components.) But principal components are chosen where noise happens to be large, too: those beyond
the signal have more of it than one. Therefore as many are kept as there is room for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.fft import dct

from noisyica.rows.starts import count_above_noise

MOST_COLUMNS = 500
"""The number of columns of all subjects up to which none is left out."""


ROUNDING = 1e-6
"""What is less than this share of sums of squares may be nothing but rounding."""
REMOVED = 0.01
"""Directions in time with less than this share of the variance of noise are left out: a
filter, detrending or the regression on confounds has removed signal and noise from them."""


class Reduced(NamedTuple):
    """What is kept of a subject."""

    columns: np.ndarray  # (voxels, k), in units of the noise
    basis: np.ndarray  # (time points, k), orthonormal: columns are coordinates in it


def in_units_of_noise(Y: np.ndarray, p: int | str, each: bool, name: str) -> np.ndarray:
    """Return time courses of voxels, (time points, voxels), over their noise.

    That is what principal components leave, twice as many as there are components: of each voxel,
    or of all of them together. Constant voxels are 0.
    """
    T, voxels = Y.shape
    if p != "auto" and int(p) + 2 > T:
        raise ValueError(
            f"{name} has {T} time points: for {p} components it must have {int(p) + 2} or more."
        )
    squares = np.square(Y).sum(0, dtype=float)
    variances, U = _principal(Y)
    some = variances[variances > ROUNDING * variances[0]]
    q = 2 * (count_above_noise(some / voxels, voxels, len(some)) if p == "auto" else int(p))
    q = min(q, len(some) // 2)
    left = squares - np.square(U[:, :q].T.astype(np.float32) @ Y).sum(0, dtype=float)
    directions = int((some > REMOVED * some[q]).sum()) - q
    noise = np.sqrt(np.maximum(left, ROUNDING * squares) / directions)
    noise = noise if each else np.full(voxels, np.sqrt(np.square(noise).mean()))
    varies = squares > ROUNDING**2 * squares.max()  # regression leaves rounding of a constant
    return (Y / np.where(varies, noise, np.inf)).astype(np.float32)


def reduced(Y: np.ndarray, k: int) -> Reduced:
    """Reduce time courses in units of their noise to k coordinates, or as many as there are.

    Principal components would have noise of falling size: the basis mixes them evenly.
    """
    variances, U = _principal(Y)
    noisy = int((variances > REMOVED * Y.shape[1]).sum())  # noise in a voxel has variance one
    kept = U[:, : min(k, noisy)]
    basis = dct(kept, axis=1, norm="ortho")
    return Reduced((basis.T.astype(np.float32) @ Y).T, basis)


def columns_of_each(n_reduced: int | str, p: int | str, times: Sequence[int]) -> int:
    """Return how many columns each subject is reduced to, if it has so many time points."""
    if n_reduced != "auto":
        return int(n_reduced)
    if sum(times) <= MOST_COLUMNS:
        return max(times)
    return max(MOST_COLUMNS // len(times), 20 if p == "auto" else 2 * int(p))


def _principal(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of squares along principal directions in time, and these as columns."""
    values, directions = np.linalg.eigh((Y @ Y.T).astype(float))
    return np.maximum(values[::-1], 0.0), directions[:, ::-1]
