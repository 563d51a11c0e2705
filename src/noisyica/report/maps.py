"""The maps of a spatial run, whose rows are the voxels of a volume, and the spectra of its columns.

Such a run's coefficients are maps, and its components are time courses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.data import Data
from noisyica.estimator import NoisyICA
from noisyica.report import layouts
from noisyica.report.pack import json_numbers, pack

BUDGET = 3_000_000
"""Bytes for maps; as text they take a third more."""


def spatial(ica: NoisyICA, data: Data, coefficients: np.ndarray | None) -> dict[str, Any] | None:
    """Return the maps and the spectra, or None if rows are no voxels.

    Of maps that do not all fit, the first are shown. Their numbers are posterior means.
    """
    if data.places is None:
        return None
    layout = layouts.describe(data.places)
    found = np.asarray(ica.transform(data.X) if coefficients is None else coefficients, float)
    room = max(1, (BUDGET - layouts.size_in_bytes(layout)) // len(found))
    frequencies, power = spectra(ica.mixing_.T)
    return {
        "layout": layout,
        "values": pack(found.T[:room], 8),
        "frequencies": json_numbers(frequencies),
        "power": json_numbers(power),
    }


def spectra(courses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies, in cycles per volume, and the share of each in each course's power.

    The mean, which is no oscillation, is left out.
    """
    power = np.square(np.abs(np.fft.rfft(courses - courses.mean(1, keepdims=True), axis=1)))[:, 1:]
    total = power.sum(1, keepdims=True)
    shares = np.divide(power, total, where=total > 0, out=np.zeros_like(power))
    return np.fft.rfftfreq(courses.shape[1])[1:], shares
