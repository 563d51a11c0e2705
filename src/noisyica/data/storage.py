"""The .npz files of fitted estimators and of checkpoints: arrays and one JSON text, no pickles.

Files are written beside their place and then renamed, so that a file is always whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

FORMAT = 1
"""The version of the format; files of a larger one are refused."""
TEMPORARY = ".tmp"
"""How the name of a file ends while it is being written."""


def write(
    path: str | os.PathLike[str], arrays: dict[str, np.ndarray], description: dict[str, Any]
) -> None:
    """Write arrays and a description, which JSON must be able to hold, as a whole or not at all."""
    text = json.dumps({"format": FORMAT, **description})
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
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        description = json.loads(str(arrays.pop("description")))
    except FileNotFoundError:
        raise
    except (
        KeyError,
        ValueError,
        OSError,
        EOFError,
        zipfile.BadZipFile,
        AttributeError,
        TypeError,
    ) as error:
        raise ValueError(
            f"{os.fspath(path)} is not a model saved by noisyica, or is damaged ({error})."
        ) from error
    if not isinstance(description, dict) or description.get("format", FORMAT + 1) > FORMAT:
        raise ValueError(
            f"{os.fspath(path)} was saved by a newer version of noisyica than this one: "
            "upgrade to read it."
        )
    return arrays, description
