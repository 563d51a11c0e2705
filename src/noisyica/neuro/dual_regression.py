"""Dual regression: each subject's time courses by the maps of the group, and maps by these."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class DualRegression(NamedTuple):
    """The time courses and the maps of one subject.

    Attributes
    ----------
    time_courses : array (time points, p)
        Stage 1: the regression of each volume on the maps of the group.
    components : array (p, voxels)
        Stage 2: the regression of each voxel on these time courses, brought to variance one, in
        units of the voxel's noise.
    components_img : image
        The same as an image of four axes.
    """

    time_courses: np.ndarray
    components: np.ndarray
    components_img: Any


class Spectra(NamedTuple):
    """The spectra of time courses.

    Attributes
    ----------
    frequencies : array (f,)
        In hertz.
    power : array (subjects, p, f)
        The power density of each time course.
    """

    frequencies: np.ndarray
    power: np.ndarray


def time_courses(Y: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """Return the coefficients of volumes Y (time points, voxels) on maps (p, voxels).

    Each volume has a level of its own, too, which is left out.
    """
    design = np.column_stack([maps.T, np.ones(maps.shape[1])])
    found: np.ndarray = np.linalg.lstsq(design, Y.T.astype(float), rcond=None)[0]
    return found[:-1].T


def maps_of_subject(Y: np.ndarray, courses: np.ndarray) -> np.ndarray:
    """Return the coefficients of voxels Y (time points, voxels) on time courses, (p, voxels)."""
    centred = courses - courses.mean(0)
    scale = centred.std(0)
    found: np.ndarray = np.linalg.lstsq(
        centred / np.where(scale > 0, scale, 1.0), Y.astype(float), rcond=None
    )[0]
    return found


def spectra(courses: list[np.ndarray], t_r: float) -> Spectra:
    """Return the spectra of the time courses of subjects, at the same frequencies for all."""
    from scipy.signal import welch

    length = min(256, *(len(course) for course in courses))
    frequencies, power = zip(
        *(welch(course.T, fs=1 / t_r, nperseg=length) for course in courses), strict=True
    )
    return Spectra(frequencies[0], np.stack(power))
