"""A guard against computing in a forked process, where JAX would wait for ever.

A fork copies the memory of a process but not its threads. Once JAX has computed anything it relies
on threads of its own, so what is compiled or run in the copy never comes to an end.
"""

from __future__ import annotations

import os

_used = False
"""Whether this process, or one that it was forked from, has computed anything."""
_forked = False
"""Whether this process was forked after that."""


def _note_fork() -> None:
    global _forked
    _forked = _used


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_note_fork)


def refuse_after_fork() -> None:
    """Raise RuntimeError in a process that was forked after the library had computed anything."""
    global _used
    if _forked:
        raise RuntimeError(
            "This process was forked from one that had used noisyica already (by os.fork, or by "
            "multiprocessing with the method 'fork'). JAX's threads do not survive that: the "
            "computation would never end. Start processes with "
            "multiprocessing.get_context('spawn') or 'forkserver', or with joblib, whose default "
            "does the same."
        )
    _used = True
