"""The images of subjects, checked, and the voxels of each in a mask: all of it by nilearn."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from noisyica.data.files import need


def opened(imgs: Any) -> list[Any]:
    """Return one image, or one path, or several of them, as a list of images of four axes.

    All must be on one grid. Voxels are not read yet.
    """
    need("nilearn", "nilearn")
    from nilearn.image import load_img

    one = isinstance(imgs, (str, os.PathLike)) or hasattr(imgs, "affine")
    listed = [imgs] if one else list(imgs)
    for img in listed:  # nilearn would put all files of a pattern together as one subject
        if (
            isinstance(img, (str, os.PathLike))
            and glob.has_magic(str(img))
            and not Path(img).exists()
        ):
            raise ValueError(
                f"{img} is a pattern, not a file: give one file of each subject, in a list, as "
                f"sorted(glob.glob({str(img)!r})) does."
            )
    images = [load_img(img) for img in listed]
    if not images:
        raise ValueError("There are no images: give one of each subject, in a list.")
    for number, image in enumerate(images):
        if len(image.shape) != 4 or image.shape[3] < 2:
            raise ValueError(
                f"Image {number} has shape {image.shape}, but a series of volumes has four axes, "
                "the last of which is time. Volumes of one subject are put together by "
                "nilearn.image.concat_imgs."
            )
        check_grid(image, images[0], f"Image {number}", "image 0")
    return images


def check_grid(image: Any, other: Any, name: str, other_name: str) -> None:
    """Raise a ValueError unless two images have the same voxels in the same places."""
    same_shape = image.shape[:3] == other.shape[:3]
    if not (same_shape and np.allclose(image.affine, other.affine, rtol=1e-4, atol=1e-3)):
        of = "another shape" if not same_shape else "another affine"
        raise ValueError(
            f"{name} has {of} than {other_name} ({image.shape[:3]} and {other.shape[:3]} voxels): "
            "bring them to one grid, as nilearn.image.resample_to_img does."
        )


def fitted_masker(mask: Any, images: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Return a fitted masker: a copy of the one that is given, or one with these settings.

    A masker that is given keeps its own settings, and may resample images. Of a mask image, or
    without any mask, the voxels are those of the images.
    """
    from nilearn.maskers import MultiNiftiMasker

    if hasattr(mask, "inverse_transform"):
        masker = clone(mask)
        if getattr(mask, "mask_img_", None) is not None:  # it has been fitted: its mask stays
            masker.set_params(mask_img=mask.mask_img_)
    else:
        if mask is not None:
            from nilearn.image import load_img

            mask = load_img(mask)
            check_grid(mask, images[0], "The mask", "the images")
        masker = MultiNiftiMasker(mask_img=mask, mask_strategy="epi", **settings)
    given = masker.mask_img is not None
    fitted = masker.fit() if given else masker.fit(list(images) if _several(masker) else images[0])
    if not np.any(np.asarray(fitted.mask_img_.dataobj)):
        raise ValueError("The mask has no voxel: do the images overlap?")
    return fitted


def _several(masker: Any) -> bool:
    """Whether a masker takes the images of several subjects."""
    return type(masker).__name__.startswith("Multi")


def masked(masker: Any, images: Sequence[Any], confounds: Any) -> Iterator[np.ndarray]:
    """Yield the voxels of each image in the mask, (time points, voxels), each of mean 0."""
    given = [None] * len(images) if confounds is None else list(confounds)
    if len(given) != len(images):
        raise ValueError(
            f"There are {len(given)} confounds for {len(images)} images: give one for each."
        )
    for number, (image, confound) in enumerate(zip(images, given, strict=True)):
        if masker.target_affine is None:
            check_grid(image, masker.mask_img_, f"Image {number}", "the mask")
        listed = [confound] if _several(masker) and confound is not None else confound
        Y = np.asarray(masker.transform(image, confounds=listed))
        Y = (Y - Y.mean(0, dtype=float)).astype(np.float32)
        if not np.square(Y, dtype=float).sum() > 0:
            raise ValueError(
                f"Image {number} does not change in time in any voxel of the mask: does the mask "
                "overlap with it?"
            )
        yield Y
