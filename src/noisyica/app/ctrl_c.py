"""What Ctrl-C does to a command: one line and the exit code 130, at any moment.

A thread waits for Ctrl-C, since the main thread may be inside the compiler for many seconds, where
nothing can be raised. If a fit has learnt something that is not written yet, it is asked to stop at
its next look (:mod:`noisyica.interruption`). Otherwise the process ends at once: files are written
as a whole or not at all, so that it may end at any moment. A second Ctrl-C always ends it at once.

This module is the first that a command imports, and imports nothing that takes long itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from noisyica import interruption

EXIT_CODE = 130
PATIENCE = 2.0
"""Seconds after which the user is told that a fit has not yet stopped."""
_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"  # clears the line of progress, too
_last_words: Callable[[], str] | None = None
"""What is still to be done if the process has to end now; it returns what to tell the user."""


def listen() -> None:
    """Answer Ctrl-C from now on, unless this process was started with Ctrl-C switched off."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which ends the process, until all is prepared
    reading, writing = os.pipe()
    if os.name == "posix":
        os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_answer, args=(reading,), name="ctrl-c", daemon=True).start()
    signal.signal(signal.SIGINT, _do_nothing)
    # when all is done, Python would give the signal its default back, which is to end by it
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def last_words(function: Callable[[], str]) -> Iterator[None]:
    """Call the function if the process has to end within the ``with`` block; it returns a line.

    It is called in another thread, while the main thread goes on. What must not be torn belongs
    under ``interruption.LOCK``.
    """
    global _last_words
    _last_words = function
    try:
        yield
    finally:
        _last_words = None


def _do_nothing(*_: object) -> None:
    """Stand in for Python's own handler, which would raise KeyboardInterrupt."""


def _answer(reading: int) -> None:
    """Wait for Ctrl-C, and pass it on to a fit or end the process."""
    while True:
        if os.read(reading, 1)[0] != signal.SIGINT:
            continue
        with interruption.LOCK:  # not given back before the end: the main thread must not go on
            if not interruption.note():
                _end()
        timer = threading.Timer(PATIENCE, _explain)
        timer.daemon = True
        timer.start()


def _explain() -> None:
    """Say what is going on, if a fit that was asked to stop has not yet done so."""
    if interruption.waiting():
        _say("The fit stops at its next look, and loses nothing; Ctrl-C again ends it at once.")


def _end() -> None:
    """End the process at once, whatever its other threads are doing."""
    try:
        _say("Interrupted." if _last_words is None else f"Interrupted: {_last_words()}")
    finally:
        os._exit(EXIT_CODE)


def _say(text: str) -> None:
    """Write a line to standard error, but not by sys.stderr, whose lock others may hold."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        number = sys.stderr.fileno()
        os.write(number, f"{_SHOW_CURSOR * os.isatty(number)}{text}\n".encode())
