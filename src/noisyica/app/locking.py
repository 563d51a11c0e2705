"""A folder that one process at a time may write to.

The lock is one of the operating system, on a file in the folder. It ends with the process that has
it, however that ends, so that no lock is ever left behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import warnings
from datetime import datetime
from pathlib import Path
from typing import IO

LOCK = ".noisyica.lock"
"""The name of the file, which is removed when the lock is given back."""
ATTEMPTS = 100
_FAR = 2**30  # Windows locks bytes, which nobody else can read: this one is never written


def lock(folder: Path) -> IO[str]:
    """Lock a folder, which is made if it is missing, and return the open file of the lock.

    A ValueError says who has the lock if another process has it.
    """
    path = folder / LOCK
    for _ in range(ATTEMPTS):  # another process may remove the file, or the folder, meanwhile
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = path.open("a+", encoding="utf-8")
        except FileNotFoundError:
            continue
        try:
            if not _locked(file):
                raise ValueError(_who(folder, file))
            if _is_at(path, file):
                _sign(file)
                return file
        except BaseException:
            file.close()
            raise
        file.close()
    raise ValueError(f"{folder} cannot be locked: other processes make and remove it all the time.")


def unlock(folder: Path, file: IO[str]) -> None:
    """Give the lock back."""
    if os.name == "nt":  # an open file cannot be removed there
        file.close()
    with contextlib.suppress(OSError):
        (folder / LOCK).unlink()
    file.close()


def _locked(file: IO[str]) -> bool:
    """Lock an open file unless another process has locked it; return whether it is ours.

    Some file systems of clusters have no locks: there the user is told to take care.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        warnings.warn(
            f"{file.name} cannot be locked ({error.strerror}): take care that no other process "
            "writes to this folder.",
            stacklevel=2,
        )
    return True


def _is_at(path: Path, file: IO[str]) -> bool:
    """Return whether the open file is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _sign(file: IO[str]) -> None:
    """Write who has the lock."""
    file.truncate(0)
    file.write(
        f"process {os.getpid()} on {socket.gethostname()} since {datetime.now():%Y-%m-%d %H:%M:%S}"
    )
    file.flush()


def _who(folder: Path, file: IO[str]) -> str:
    """Return a message that says who has the lock."""
    file.seek(0)
    holder = " ".join(file.read(200).split()) or "another process"
    return f"{folder} is in use ({holder}): wait until that fit has ended, or name another folder."
