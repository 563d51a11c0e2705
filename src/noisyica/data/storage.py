"""The .npz files of fitted estimators and of checkpoints: arrays and one JSON text, no pickles.

Files are written beside their place and then renamed, so that a file is always whole.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from noisyica.data.files import BadFile

FORMAT = 1
"""The version of the format; files of a larger one are refused."""
TEMPORARY = ".tmp"
"""How the name of a file ends while it is being written."""


def write(
    path: str | os.PathLike[str], arrays: dict[str, np.ndarray], description: dict[str, Any]
) -> None:
    """Write arrays and a description, which JSON must be able to hold, as a whole or not at all."""
    text = json.dumps({"format": FORMAT, "arrays": [*arrays], **description})
    with whole(path) as file:
        np.savez(file, description=np.array(text), **arrays)  # type: ignore[arg-type]


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes its name when the ``with`` block ends without an error.

    Until then a file of that name stays as it is. After an error the temporary file is removed.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the description of a file that :func:`write` made.

    Any other file is refused by a ValueError that says what is wrong with it.
    """
    with refusing(path):
        with zipfile.ZipFile(path) as archive:
            arrays = {
                item.filename.removesuffix(".npy"): _array(archive.read(item))
                for item in archive.infolist()
            }
        description = json.loads(str(arrays.pop("description")))
        version = description["format"]
        if version > FORMAT:
            raise BadFile(
                f"{os.fspath(path)} was saved by a newer version of noisyica than this one: "
                "upgrade to read it."
            )
        # A damaged directory may hide arrays. Files of the first versions have no list of them.
        missing = set(description.pop("arrays", ())) - set(arrays)
        if missing:
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    return arrays, description


@contextlib.contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is raised while a file is made use of into a ValueError that names the file.

    All exceptions are caught, since damage to a file may appear as any of them. Those of the
    operating system and those that name the file already stay as they are.
    """
    try:
        yield
    except (BadFile, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise BadFile(
            f"{os.fspath(path)} is not a model saved by noisyica, is damaged, or cannot be read "
            f"here ({reason or type(error).__name__})."
        ) from error


def _array(content: bytes) -> np.ndarray:
    """Return the array of a .npy file, of which nothing may be left over.

    ``np.load`` reads what the header says and no more, and so misses some damages to the header.
    """
    file = io.BytesIO(content)
    array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):
        raise ValueError(f"an array of shape {array.shape} has more entries than that")
    return array
