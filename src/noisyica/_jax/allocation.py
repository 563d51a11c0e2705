"""How the C library gives memory back to the system, where a setting makes that slow."""

from __future__ import annotations

import contextlib
import ctypes
import os

VARIABLE = "MALLOC_TRIM_THRESHOLD_"
"""The variable by which glibc is told how much free memory it may keep.

Dask sets it to 64 KiB for the processes of workers. Whatever its value, glibc then no longer learns
from what is freed which sizes are used again and again."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""The numbers of two settings in glibc's malloc.h."""
LARGEST = 2**25
"""The number of bytes up to which glibc, left to itself, keeps memory that is freed, for reuse."""


def keep_freed_memory() -> bool:
    """Have the C library of this process keep arrays of a few MiB that are freed, for reuse.

    That is what glibc does by itself. If the variable keeps it from that, each call of compiled
    code gets new memory for its intermediate results, page by page, and sweeps take twice as long.
    Up to 64 MiB of free memory are then kept. Return whether anything was changed.
    """
    if VARIABLE not in os.environ:
        return False
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other systems
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(M_MMAP_THRESHOLD, LARGEST) and mallopt(M_TRIM_THRESHOLD, 2 * LARGEST))
    return False
