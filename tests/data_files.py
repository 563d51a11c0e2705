"""Numbers that the tests of reading and writing share, and how some files of them are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel
import numpy as np

X = np.random.default_rng(0).normal(size=(6, 12))
VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.5]], np.float32)
FACES = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int32)
FIELDS = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
AFFINE = np.array([[2.0, 0, 0, -3], [0, 2, 0, 4], [0, 0, 2.5, 1], [0, 0, 0, 1]])
MASK = np.zeros((3, 4, 2), bool)
MASK[0, :2] = MASK[2, 3, 1] = True


def write_text(path: Path, text: str, encoding: str = "utf-8") -> Path:
    """Write text with the ends of lines that it has, and return the path."""
    path.write_bytes(text.encode(encoding))
    return path


def put(group: Any, name: str, values: np.ndarray, **options: Any) -> None:
    """Write an array into a group of a Zarr store, as all versions of zarr since 3.0 can."""
    group.create_array(name, shape=values.shape, dtype=values.dtype, **options)[...] = values


def write_gifti(path: Path, *arrays: tuple[np.ndarray, str, str]) -> Path:
    """Write a GIFTI file of arrays, each with its intent and its name, and return the path."""
    parts = [
        nibabel.gifti.GiftiDataArray(
            values,
            intent=f"NIFTI_INTENT_{intent}",
            meta=nibabel.gifti.GiftiMetaData({"Name": name} if name else {}),
        )
        for values, intent, name in arrays
    ]
    nibabel.gifti.GiftiImage(darrays=parts).to_filename(path)
    return path
