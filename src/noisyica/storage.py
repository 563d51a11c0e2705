"""Fitted estimators in one .npz file: plain arrays and one JSON text, never a pickle."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1


def write(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], description: dict[str, Any]) -> None:
    """Write all of it or nothing: to a temporary file beside the target, then renamed."""
    target = Path(path)
    text = json.dumps({"format": FORMAT, **description})
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, description=np.array(text), **arrays)  # type: ignore[arg-type]
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the description of a file that :func:`write` made; a ValueError that says what is wrong otherwise."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        description = json.loads(str(arrays.pop("description")))
    except FileNotFoundError:
        raise
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise ValueError(f"{os.fspath(path)} is not a model saved by noisyica, or is damaged ({error}).") from error
    if not isinstance(description, dict) or description.get("format", FORMAT + 1) > FORMAT:
        raise ValueError(f"{os.fspath(path)} was saved by a newer version of noisyica than this one: upgrade to read it.")
    return arrays, description
