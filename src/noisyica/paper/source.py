"""Which code computes: a digest of the package's source files, and the commit that they are of."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package's source files."""


@cache
def digest(folder: Path = PACKAGE) -> str:
    """Return a digest of the names and the contents of all Python files in a folder.

    Results are remembered by it: whoever edits the code gets new results, never old ones.
    """
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        for part in (path.relative_to(folder).as_posix().encode(), path.read_bytes()):
            whole.update(b"%d " % len(part) + part)
    return whole.hexdigest()


@cache
def described(folder: Path = PACKAGE) -> str:
    """Return the commit of the files in a folder, or the package's version if git has none."""
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")  # in a checkout, not just below
        commit = _git(folder, "rev-parse", "--short=10", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return f"version {version('noisyica')}"
    return f"commit {commit}{', with changes that are not committed' if changed else ''}"


def _git(folder: Path, *arguments: str) -> str:
    """Return what git says of a folder, which it leaves as it is."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return answer.stdout.strip()
