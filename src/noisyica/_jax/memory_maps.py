"""Room for compiled code in a process that compiles a great deal.

Linux grants a process 65,530 maps of memory (``vm.max_map_count``). XLA takes hundreds of them for
what a new number of components needs, never gives them back while the code is kept, and ends with a
segmentation fault when there are none left.
"""

from __future__ import annotations

import time
from pathlib import Path

import jax

MAPS = Path("/proc/self/maps")
LIMIT = Path("/proc/sys/vm/max_map_count")
SHARE = 0.5
"""The share of all maps from which on compiled code is dropped."""
INTERVAL = 1.0
"""Seconds between two looks, each of which takes up to 30 ms.

In a second, XLA adds some hundreds of maps, also where it reads code from its cache."""
_last_look = -INTERVAL


def make_room() -> bool:
    """Drop all compiled code if it takes many maps of memory, and return whether it was dropped.

    It looks at most once in ``INTERVAL`` seconds, so that it may be called at any rate. What is
    needed again is compiled again. On systems that do not count maps nothing happens.
    """
    global _last_look
    now = time.monotonic()
    if now - _last_look < INTERVAL:
        return False
    _last_look = now
    try:
        maps, limit = MAPS.read_bytes().count(b"\n"), int(LIMIT.read_text())
    except (OSError, ValueError):
        return False
    if maps <= SHARE * limit:
        return False
    jax.clear_caches()
    return True
