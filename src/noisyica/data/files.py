"""What all readers share: errors that name the file, and sizes checked before memory is allocated.

A damaged or hostile file must end in one line that says what is wrong with it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RATIO = 1000
"""A file that claims to be compressed better than this is refused as damaged or hostile, if what it
claims to hold is larger than `LARGE` bytes."""
LARGE = 2**30
LISTED = 20
"""The largest number of names that an error message lists."""


class BadFile(ValueError):
    """A ValueError that already says which file is wrong, and how."""


@contextlib.contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Turn whatever is raised while a file is read into a `BadFile` of one line that names it.

    All exceptions are caught: the libraries for a dozen formats have no exceptions in common, and
    damage to a file may appear as any of them.
    """
    try:
        yield
    except (BadFile, ImportError):
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0][:200] or type(error).__name__
        raise BadFile(
            f"{path} cannot be read ({reason}): "
            "is it damaged, or of another format than its name says?"
        ) from error


def need(module: str, extra: str) -> Any:
    """Import an optional library, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ImportError(
            f"Files of this kind need {library}, which is not installed: "
            f"pip install 'noisyica[{extra}]'"
        ) from error


def check_size(path: Path | str, needed: int, stored: int) -> None:
    """Refuse to allocate ``needed`` bytes for what a file holds in ``stored`` bytes.

    That is refused if the claim is absurd, or if the machine has less memory than that.
    """
    check_claim(path, needed, stored)
    memory = _memory("SC_PHYS_PAGES")
    if memory is not None and needed > memory:
        raise BadFile(
            f"{path} would take {_bytes(needed)}, but this machine has {_bytes(memory)} of memory."
        )


def check_claim(path: Path | str, needed: int, stored: int) -> None:
    """Refuse a file that claims to hold far more bytes than it can in those that are stored."""
    if needed > max(RATIO * stored, LARGE):
        raise BadFile(
            f"{path} claims to hold {_bytes(needed)} in {_bytes(stored)}: "
            "it is damaged, or made to fill the memory."
        )


def available_memory() -> float:
    """Return how many bytes of memory are there to be used: infinitely many if it is not known.

    Memory that the system only keeps files in counts as available, where the system says so.
    """
    with contextlib.suppress(
        OSError, IndexError, ValueError, StopIteration
    ):  # there is no such file but on Linux
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * int(next(line for line in lines if "MemAvailable" in line).split()[1])
    memory = _memory("SC_AVPHYS_PAGES") or _memory("SC_PHYS_PAGES")
    return float("inf") if memory is None else float(memory)


def _memory(pages: str) -> int | None:
    """Return the bytes of memory of a kind that the system knows by this name, if it does."""
    known = getattr(os, "sysconf_names", {})
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf(pages) if pages in known else None


def _bytes(count: int) -> str:
    """Return a number of bytes as text with a unit that suits it."""
    power = min(max(count.bit_length() - 1, 0) // 10, 4)
    return f"{count / 1024**power:.4g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def stored_size(path: Path) -> int:
    """Return the number of bytes of a file, or of all files in a folder and below it."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def members(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder (not below it) with one of these endings, sorted by name.

    Hidden files are left out.
    """
    files = (file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    return sorted(file for file in files if file.name.lower().endswith(suffixes))


def listed(names: Any) -> str:
    """Return names as text for an error message: only the first of them if there are many."""
    names = [str(name) for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
