"""Fitted estimators in one .npz file: plain arrays and one JSON text, never a pickle."""

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
TEMPORARY = ".tmp"


def write(
    path: str | os.PathLike[str], arrays: dict[str, np.ndarray], description: dict[str, Any]
) -> None:
    """Write arrays and a description, all of it or nothing."""
    text = json.dumps({"format": FORMAT, **description})
    with whole(path) as file:
        np.savez(file, description=np.array(text), **arrays)  # type: ignore[arg-type]


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name only when it is whole: whatever happens, the one before it stays readable till then."""
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
    """The arrays and the description of a file that :func:`write` made; a ValueError that says what is wrong otherwise."""
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
            f"{os.fspath(path)} was saved by a newer version of noisyica than this one: upgrade to read it."
        )
    return arrays, description
