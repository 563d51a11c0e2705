"""The folder of a run as a place that one process writes to, and gives back as it was found.

A run that is replaced waits in a folder inside, ``.replaced``, until the new one has learnt
something. The folder itself is never moved or removed if it was there before, so that it may be a
link, a mount point, or the folder that the user is in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType

from noisyica import interruption
from noisyica.app import ctrl_c
from noisyica.app.locking import LOCK, lock, unlock
from noisyica.app.record import (
    CHECKPOINT,
    COEFFICIENTS,
    COMPONENTS,
    HISTORY,
    MAPS,
    MODEL,
    RECORD,
    REPORT,
    Record,
)
from noisyica.data import storage

REPLACED = ".replaced"
"""The folder in which an earlier run waits."""
OWN_FILES = (
    RECORD,
    MODEL,
    HISTORY,
    REPORT,
    CHECKPOINT,
    COMPONENTS,
    f"{COEFFICIENTS}.*",
    MAPS,
    MAPS.replace(".", "-mask.", 1),
    f".*{storage.TEMPORARY}",
    REPLACED,
    LOCK,
)
"""Patterns of the names of all files that a run leaves in its folder."""


class Place:
    """A context manager that holds the folder of a run, to which no other process may write.

    If a new run has learnt nothing by the end of the ``with`` block, the folder is left as it was
    found.
    """

    def __init__(self, folder: Path) -> None:
        if folder.is_symlink() and not folder.exists():
            raise ValueError(f"{folder} is a link to {os.readlink(folder)}, which does not exist.")
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: name a folder for the run.")
        self.folder = folder
        self._made = [path for path in (folder, *folder.parents) if not path.exists()]
        self._begun = self._continues = False  # whether a run is new here, or continues
        self._last_words = ctrl_c.last_words(self._end_at_once)

    def __enter__(self) -> Place:
        self._lock = lock(self.folder)
        self._last_words.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        with interruption.LOCK:
            self._last_words.__exit__(None, None, None)
            self._settle()
            unlock(self.folder, self._lock)
            self._remove_made()

    def resume(self) -> Record:
        """Return the record of the run that is here, and mend what a killed process has left."""
        self._continues = True
        _clean(self.folder)
        if not (self.folder / RECORD).exists():  # it was killed while it set a run aside
            _restore(self.folder)
        return Record.read(self.folder)

    def refuse_occupied(self, overwrite: bool) -> None:
        """Raise a ValueError if a new run cannot be written to the folder."""
        folder = self.folder
        if not _has_learnt(folder):  # a process was killed before its run could replace another
            _restore(folder)
        names = {path.name for path in folder.iterdir()} - {LOCK}
        if not all(any(fnmatch(name, pattern) for pattern in OWN_FILES) for name in names):
            raise ValueError(
                f"{folder} is not empty, and has files that no run wrote: name another folder."
            )
        if names and not overwrite:
            raise ValueError(
                f"{folder} holds a run already: name another folder, continue the run (--resume), "
                "or replace it (--overwrite)."
            )

    def begin(self, record: Record) -> None:
        """Set aside what is in the folder, and write the record of a new run."""
        with interruption.LOCK:
            self._begun = True
            _set_aside(self.folder)
            record.write(self.folder)

    def _settle(self) -> bool:
        """Let go of the run that was replaced, or put it back if the new one has learnt nothing.

        Return whether there is a run that can continue.
        """
        if _has_learnt(self.folder):
            if self._begun or self._continues:
                _remove(self.folder / REPLACED)
        elif self._begun:
            (self.folder / RECORD).unlink(missing_ok=True)
            _clean(self.folder)
            _restore(self.folder)
            return False
        return self._begun or self._continues

    def _remove_made(self) -> None:
        """Remove the folders that were made, unless there is something in them now."""
        for path in self._made:
            with contextlib.suppress(OSError):
                path.rmdir()

    def _end_at_once(self) -> str:
        """Settle while the main thread goes on, and return what can be done next."""
        if self._settle():
            return f"'noisyica fit --resume {self.folder}' continues the run."
        (self.folder / LOCK).unlink(missing_ok=True)
        self._remove_made()
        return "nothing was learnt yet."


def _has_learnt(folder: Path) -> bool:
    """Return whether the run in the folder has learnt anything."""
    learnt = (folder / CHECKPOINT).exists() or (folder / MODEL).exists()
    return learnt and (folder / RECORD).exists()


def _set_aside(folder: Path) -> None:
    """Move what is in the folder of a run to a folder inside it, the record first.

    If the process is killed on the way, a folder without a record tells of it.
    """
    replaced = folder / REPLACED
    _remove(replaced)
    paths = [path for path in folder.iterdir() if path.name != LOCK]
    if paths:
        replaced.mkdir()
        for path in sorted(paths, key=lambda path: path.name != RECORD):
            path.rename(replaced / path.name)


def _restore(folder: Path) -> None:
    """Move back what was set aside, if anything was, the record last."""
    replaced = folder / REPLACED
    paths = list(replaced.iterdir()) if replaced.is_dir() else []
    if paths:  # then a record beside it is that of the new run
        (folder / RECORD).unlink(missing_ok=True)
    for path in sorted(paths, key=lambda path: path.name == RECORD):
        path.rename(folder / path.name)
    _remove(replaced)


def _clean(folder: Path) -> None:
    """Remove what was being written when a process ended."""
    for path in list(folder.glob(f".*{storage.TEMPORARY}")):
        _remove(path)


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
