"""Reading images: one file or a folder of them, whole or cut into patches."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from noisyica.data.files import BadFile, check_size, members, need, parsing
from noisyica.data.layout import Images
from noisyica.data.rows import Data, make

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".pgm", ".ppm")


def read_images(
    path: Path,
    *,
    patch_size: int | None = None,
    stride: int | None = None,
    colour: bool = False,
    size: tuple[int, int] | None = None,
    centre_patches: bool = False,
) -> Data:
    """Read images, or patches of them, as rows of grey values or colours in [0, 1].

    The rows are in single precision.
    """
    files = members(path, SUFFIXES) if path.is_dir() else [path]
    stored = [_shape(file) for file in files]
    check_size(path, 4 * sum(h * w for h, w in stored), sum(file.stat().st_size for file in files))
    shapes = stored if size is None else [size] * len(files)
    if patch_size is None:
        _check_equal(files, shapes)
        patch, step = shapes[0], shapes[0]
    else:
        patch, step = (patch_size, patch_size), (stride or patch_size,) * 2
    grids = [_grid(file, shape, patch, step) for file, shape in zip(files, shapes, strict=True)]
    layout = Images(np.array((*patch, 3) if colour else patch))
    ends = np.cumsum([rows * columns for rows, columns in grids])
    needed = int(ends[-1]) * layout.size * 4
    check_size(path, needed, needed)
    X = np.empty((int(ends[-1]), layout.size), np.float32)
    for file, grid, end in zip(files, grids, ends, strict=True):
        rows = X[end - grid[0] * grid[1] : end]
        rows.reshape(*grid, *layout.shape)[...] = _patches(_pixels(file, colour, size), patch, step)
        if centre_patches:
            rows -= rows.mean(axis=1, keepdims=True)
    names = [
        _ids(file.name, grid, step, patch_size is not None)
        for file, grid in zip(files, grids, strict=True)
    ]
    return make(path, X, np.concatenate(names), layout=layout)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Open an image without reading its pixels.

    Pillow's warning about a suspicious size is made an error; its other warnings are ignored.
    """
    image = need("PIL.Image", "images")
    with parsing(file), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", image.DecompressionBombWarning)
        with image.open(file) as opened:
            yield opened


def _shape(file: Path) -> tuple[int, int]:
    """Return the height and the width of the image in a file, which must be the only one in it."""
    with _opened(file) as image:
        # MPO is what Pillow calls the JPEG of some cameras, which has a preview as a second frame.
        if getattr(image, "n_frames", 1) > 1 and image.format != "MPO":
            raise BadFile(f"{file} has {image.n_frames} frames: give one file for each image.")
        return image.height, image.width


def _check_equal(files: list[Path], shapes: list[tuple[int, int]]) -> None:
    """Refuse images of different sizes."""
    for file, shape in zip(files, shapes, strict=True):
        if shape != shapes[0]:
            raise BadFile(
                f"{file} has {shape[0]} x {shape[1]} pixels, "
                f"{files[0].name} has {shapes[0][0]} x {shapes[0][1]}: "
                "give a size to bring them to, or cut patches."
            )


def _grid(
    file: Path, shape: tuple[int, int], patch: tuple[int, int], step: tuple[int, int]
) -> tuple[int, int]:
    """Return how many patches fit from top to bottom, and from left to right."""
    if shape[0] < patch[0] or shape[1] < patch[1]:
        raise BadFile(
            f"{file} has {shape[0]} x {shape[1]} pixels: "
            f"there is no patch of {patch[0]} x {patch[1]} in it."
        )
    return (shape[0] - patch[0]) // step[0] + 1, (shape[1] - patch[1]) // step[1] + 1


def _pixels(file: Path, colour: bool, size: tuple[int, int] | None) -> np.ndarray:
    """Read the pixels of an image, (height, width) or (height, width, 3), brought to [0, 1].

    Pixels that are stored as floating numbers are not scaled.
    """
    pillow = need("PIL.Image", "images")
    with _opened(file) as image:
        if image.mode[0] in "IF":  # 16 bits and more, which Pillow's conversion cuts off at 255
            scale = 1.0 if image.mode == "F" else 65535.0
            image = pillow.fromarray(np.asarray(image, np.float32))
        else:
            scale = 255.0
            image = image.convert("RGB" if colour else "L")
        if size is not None:
            image = image.resize(size[::-1], pillow.Resampling.BILINEAR)
        values = np.asarray(image, np.float32) / np.float32(scale)
    return np.repeat(values[..., None], 3, axis=2) if colour and values.ndim == 2 else values


def _patches(values: np.ndarray, patch: tuple[int, int], step: tuple[int, int]) -> np.ndarray:
    """Return a view of all patches on the grid, (rows, columns, *patch), with colours last."""
    every = np.lib.stride_tricks.sliding_window_view(values, patch, axis=(0, 1))
    windows = every[:: step[0], :: step[1]]
    return np.moveaxis(windows, 2, -1) if values.ndim == 3 else windows


def _ids(name: str, grid: tuple[int, int], step: tuple[int, int], patches: bool) -> np.ndarray:
    """Return the ids of the rows that an image gives: the name of its file.

    For patches, the row and the column of their first pixel are added.
    """
    if not patches:
        return np.array([name])
    row, column = (
        (np.arange(count) * size).astype(str) for count, size in zip(grid, step, strict=True)
    )
    return np.char.add(np.char.add(f"{name}:", row)[:, None], np.char.add(":", column)).reshape(-1)
