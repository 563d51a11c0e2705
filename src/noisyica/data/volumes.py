"""Reading volumes in NIfTI: one file with several of them, or a folder with one per file.

The volumes of a folder are the rows. One file with several volumes is taken for a series in time:
its voxels are the rows (spatial ICA), or its time points are (temporal ICA).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from noisyica.data.files import BadFile, check_size, members, need, parsing
from noisyica.data.layout import Lines, Volume
from noisyica.data.rows import BLOCK, Data, make

SUFFIXES = (".nii", ".nii.gz")
ICA = ("spatial", "temporal")
"""Whether the rows are the voxels of a series of volumes, or its time points."""


def read_volumes(path: Path, *, mask: str | Path | None = None, ica: str | None = None) -> Data:
    """Read volumes as rows of the voxels in the mask, or the voxels of a series as rows.

    Without a mask, the voxels are those that are not the same in all volumes.
    """
    files = [path]
    if path.is_dir():
        files = [
            file
            for file in members(path, SUFFIXES)
            if mask is None or file.resolve() != Path(mask).resolve()
        ]
        if not files:
            raise BadFile(f"There are no volumes in the folder {path} but the mask.")
    images = [_opened(file, keep_open=not path.is_dir()) for file in files]
    if path.is_dir():
        _check_alike(files, images)
    series = not path.is_dir() and math.prod(images[0].shape[3:]) > 1
    if ica is not None and not series:
        raise BadFile(
            f'{path} is not one file with several volumes: a volume is a row, and ica="{ica}" '
            "has to be left out."
        )
    shape, affine = images[0].shape[:3], images[0].affine
    inside = _changing(files, images) if mask is None else _mask(Path(mask), shape, affine)
    if not inside.any():
        raise BadFile(
            f"{path}: no voxel differs between the volumes. Give a mask to read them nevertheless."
        )
    count = sum(math.prod(image.shape[3:]) for image in images)
    dtype = np.result_type(*(_precision(image) for image in images))
    check_size(
        path, int(count * inside.sum() * dtype.itemsize), sum(file.stat().st_size for file in files)
    )
    X = np.empty((count, int(inside.sum())), dtype)
    for row, volume in zip(X, _volumes(files, images), strict=True):
        row[:] = volume[inside]
    ids = np.array([file.name for file in files]) if path.is_dir() else None
    places = Volume(inside, np.asarray(affine, float))
    data = make(path, X, ids, layout=places)
    return _voxels_as_rows(data, places) if series and ica != "temporal" else data


def _voxels_as_rows(data: Data, places: Volume) -> Data:
    """Turn a series of volumes into one row per voxel, of mean 0 and in units of its noise.

    What a voxel is at rest is no part of a map, and voxels with more noise count for less.
    """
    step = max(1, BLOCK // (8 * len(data.X)))
    for start in range(0, places.size, step):
        data.X[:, start : start + step] = _in_units_of_noise(data.X[:, start : start + step])
    ids = np.array([":".join(map(str, voxel)) for voxel in np.argwhere(places.mask)])
    times = Lines(np.arange(len(data.X)).astype(str))
    return Data(data.X.T, {}, ids, times, places)


def _in_units_of_noise(X: np.ndarray) -> np.ndarray:
    """Return columns less their mean, over the standard deviation of their noise; NaN stays.

    The latter is that of white noise with the same steps from each time to the next: activity is
    slow beside noise, and adds little to them. Columns that are constant are 0.
    """
    mean = _known_mean(X)
    steps = np.diff(X.astype(float), axis=0)
    noise = np.sqrt(_known_mean(np.square(steps)) / 2)
    # of voxels that are never known twice in a row, their own spread takes its place
    noise = np.where(np.isnan(steps).all(0), np.sqrt(_known_mean(np.square(X - mean))), noise)
    varies = noise > np.finfo(np.float32).eps * np.abs(mean)
    return (X - mean) / np.where(varies, noise, np.inf)


def _known_mean(X: np.ndarray) -> np.ndarray:
    """Return the mean of each column without what is missing; it is 0 where all is."""
    known = ~np.isnan(X)
    return np.sum(X, 0, float, where=known) / np.maximum(known.sum(0), 1)


def _opened(file: Path, keep_open: bool = False) -> Any:
    """Open a file without reading its voxels, and check what its header says.

    A compressed file that is kept open is not read again from its beginning for each volume.
    """
    nibabel = need("nibabel", "neuro")
    with parsing(file):
        image = nibabel.load(file, keep_file_open=keep_open)
        if image.get_data_dtype().kind not in "fiu":
            raise BadFile(f"{file} holds {image.get_data_dtype()}, not numbers.")
        if len(image.shape) not in (3, 4) or 0 in image.shape:
            raise BadFile(
                f"{file} has shape {image.shape}: "
                "volumes have three axes, or four if a file has several of them."
            )
        if image.affine is None or not np.isfinite(image.affine).all():
            raise BadFile(f"{file} has an affine that is not finite.")
        check_size(
            file, math.prod(image.shape) * image.get_data_dtype().itemsize, file.stat().st_size
        )
    return image


def _check_alike(files: list[Path], images: list[Any]) -> None:
    """Refuse the files of a folder unless each holds one volume, all on the same grid."""
    first = images[0]
    for file, image in zip(files, images, strict=True):
        if math.prod(image.shape[3:]) != 1:
            raise BadFile(
                f"{file} has shape {image.shape}: in a folder, every file must hold one volume."
            )
        if image.shape[:3] != first.shape[:3]:
            raise BadFile(
                f"{file} has shape {image.shape}, {files[0].name} has {first.shape}: "
                "bring them to one grid."
            )
        if not _same_place(image.affine, first.affine):
            raise BadFile(
                f"{file} has another affine than {files[0].name}: bring them to one grid."
            )


def _same_place(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two affines are the same but for rounding."""
    return np.allclose(one, other, rtol=1e-4, atol=1e-3)


def _precision(image: Any) -> np.dtype[Any]:
    """Return single precision, unless the file has numbers that this cannot hold."""
    dtype = image.get_data_dtype()
    return np.dtype(np.float64 if dtype.itemsize > (4 if dtype.kind == "f" else 2) else np.float32)


def _volumes(files: list[Path], images: list[Any]) -> Iterator[np.ndarray]:
    """Read all volumes, one at a time."""
    for file, image in zip(files, images, strict=True):
        for t in range(math.prod(image.shape[3:])):
            with parsing(file):
                voxels = image.dataobj[..., t] if len(image.shape) == 4 else image.dataobj
                volume = np.asarray(voxels, _precision(image))
            yield volume


def _changing(files: list[Path], images: list[Any]) -> np.ndarray:
    """Return the mask of the voxels that differ between rows.

    A voxel that is missing (NaN) in all rows does not differ.
    """
    volumes = _volumes(files, images)
    first = next(volumes)
    missing = np.isnan(first)
    changing = np.zeros(first.shape, bool)
    for volume in volumes:
        changing |= (volume != first) & ~(missing & np.isnan(volume))
    return changing


def _mask(path: Path, shape: tuple[int, ...], affine: np.ndarray) -> np.ndarray:
    """Read a mask, which must be on the grid of the volumes."""
    if not path.is_file():
        raise BadFile(f"There is no file {path} for the mask.")
    image = _opened(path)
    if image.shape[:3] != shape or math.prod(image.shape[3:]) != 1:
        raise BadFile(
            f"{path} has shape {image.shape}, but the volumes have {shape}: "
            "a mask needs the same grid."
        )
    if not _same_place(image.affine, affine):
        raise BadFile(f"{path} has another affine than the volumes: a mask needs the same grid.")
    (values,) = _volumes([path], [image])
    inside: np.ndarray = np.nan_to_num(values) != 0
    if not inside.any():
        raise BadFile(f"{path} is an empty mask.")
    return inside
