"""Coefficients by class, where the rows have labels with few different values."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.data import Data
from noisyica.plot.classes import MOST, between
from noisyica.report.pack import json_numbers
from noisyica.report.sample import Sample

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def by_class(data: Data, sample: Sample) -> list[dict[str, Any]]:
    """Quantiles of the coefficients in each class, for each of the labels that are classes."""
    found = []
    for name, values in data.others.items():
        labels = class_names(np.asarray(values)[sample.rows])
        if labels is None:
            continue
        classes, index = np.unique(labels, return_inverse=True)
        groups = [sample.beta[index == k] for k in range(len(classes))]
        quantiles = np.array([np.quantile(group, LEVELS, axis=0) for group in groups])
        found.append(
            {
                "name": str(name),
                "classes": classes.tolist(),
                "sizes": [len(group) for group in groups],
                "quantiles": json_numbers(quantiles.transpose(2, 0, 1)),  # component, class, level
                "between": json_numbers([between(beta, index) for beta in sample.beta.T]),
            }
        )
    return found


def class_names(values: np.ndarray) -> np.ndarray | None:
    """The labels as text if they are classes, otherwise None.

    There are at least two classes, of two rows on average, and at most 30; numbers are whole.
    """
    if values.dtype.kind == "f":
        if not np.array_equal(values, np.round(values)):
            return None
        values = values.astype(np.int64)
    if values.dtype.kind not in "iubUSO":
        return None
    labels = values.astype(str)
    count = len(np.unique(labels))
    return labels if 2 <= count <= min(MOST, len(labels) // 2) else None
