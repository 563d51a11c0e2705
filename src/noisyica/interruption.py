"""Ctrl-C while JAX traces, compiles or computes.

Python raises KeyboardInterrupt wherever the main thread stands. Inside a function that JAX's
compiler or the garbage collector has called, the exception is swallowed, or the process crashes. So
while a fit runs, Ctrl-C is only noted, and the fit asks for it where it can stop without a loss.

Nothing here imports JAX: the command line needs it before it imports anything else.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

LOCK = threading.Lock()
"""Who holds it is not interrupted by the command line: a moment in which nothing must be torn.

It guards the two variables below, too."""
_noted = False  # whether Ctrl-C was pressed, and nobody has asked for it yet
_answering = False  # whether a fit has learnt something, and asks for Ctrl-C at every look


def note() -> bool:
    """Note Ctrl-C if a fit is going to ask for it, and return whether that is so.

    The second time it is not, so that there is a way out. The caller holds ``LOCK``.
    """
    global _noted
    noted_before, _noted = _noted, _noted or _answering
    return _answering and not noted_before


def answer(answering: bool) -> None:
    """Say whether a fit has something to lose, so that Ctrl-C has to wait until it asks for it."""
    global _answering
    with LOCK:
        _answering = answering


def waiting() -> bool:
    """Return whether Ctrl-C was pressed, and nobody has asked for it yet."""
    return _noted


def pressed() -> bool:
    """Return whether Ctrl-C was pressed since it was last asked for.

    As everywhere in Python, the main thread alone is interrupted.
    """
    global _noted
    if not _noted or threading.current_thread() is not threading.main_thread():
        return False
    _noted = False
    return True


def check() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed since it was last asked for."""
    if pressed():
        raise KeyboardInterrupt


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C back until :func:`check` asks for it, or until the ``with`` block ends.

    A second Ctrl-C is not held back. Nor is anything where Ctrl-C does not mean KeyboardInterrupt:
    in other threads, and in programs that handle it themselves.
    """
    usual = signal.default_int_handler
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    signal.signal(signal.SIGINT, _hold)
    try:
        yield
    except BaseException:
        pressed()  # the error ends what Ctrl-C was meant to end
        raise
    finally:
        signal.signal(signal.SIGINT, usual)
    check()


def _hold(number: int, frame: FrameType | None) -> None:
    """Note Ctrl-C the first time, and raise KeyboardInterrupt the second time."""
    global _noted
    if _noted:
        signal.default_int_handler(number, frame)
    _noted = True
