"""What all readers share: errors that name the file, and sizes that are checked before anything is allocated."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RATIO = 1000
"""Compression better than this, of more than `LARGE` bytes, is taken for an attack or for damage."""
LARGE = 2**30
LISTED = 20
"""How many names an error lists."""


class BadFile(ValueError):
    """A ValueError that already says which file is wrong, and how."""


@contextlib.contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Whatever a library raises while it reads a damaged file becomes one line that names the file.

    All exceptions are meant: the libraries for a dozen formats have no errors in common, and damage comes out as any of them.
    """
    try:
        yield
    except (BadFile, ImportError):
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0][:200] or type(error).__name__
        raise BadFile(
            f"{path} cannot be read ({reason}): is it damaged, or of another format than its name says?"
        ) from error


def need(module: str, extra: str) -> Any:
    """The optional library, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ImportError(
            f"Files of this kind need {library}, which is not installed: pip install 'noisyica[{extra}]'"
        ) from error


def check_size(path: Path | str, needed: int, stored: int) -> None:
    """Refuse to allocate what a file of ``stored`` bytes claims to hold where that is absurd, or more than there is memory."""
    if needed > max(RATIO * stored, LARGE):
        raise BadFile(
            f"{path} claims to hold {_bytes(needed)} in {_bytes(stored)}: it is damaged, or made to fill the memory."
        )
    memory = (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if hasattr(os, "sysconf")
        else needed
    )
    if needed > memory:
        raise BadFile(
            f"{path} would take {_bytes(needed)}, but this machine has {_bytes(memory)} of memory."
        )


def _bytes(count: int) -> str:
    power = min(max(count.bit_length() - 1, 0) // 10, 4)
    return f"{count / 1024**power:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def stored_size(path: Path) -> int:
    """The bytes of a file, or of all files in a folder and below it."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def members(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The files of a folder (not below it) with one of these endings, by name; hidden files are left out."""
    files = (file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return sorted(file for file in files if file.name.lower().endswith(suffixes))


def listed(names: Any) -> str:
    """Names for an error: the first of them, where they are many."""
    names = [str(name) for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
