"""Ctrl-C on the command line: one line and 130, whatever the main thread is doing."""

import signal
import subprocess
import sys

PROGRAM = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.{handler})
from noisyica import interruption
from noisyica.app import ctrl_c

ctrl_c.listen()
with ctrl_c.last_words(lambda: "these words."):
    {before}
    print("ready", flush=True)
    threading.Event().wait({seconds})
    {after}
"""


def run(before="", after="", seconds=60, presses=1, handler="default_int_handler"):
    """Press Ctrl-C in a program; return its exit code and what it wrote to standard error."""
    program = PROGRAM.format(before=before, after=after, seconds=seconds, handler=handler)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(presses):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_the_process_ends_at_once():
    assert run() == (130, "Interrupted: these words.\n")


def test_nothing_is_torn():
    """While the main thread holds the lock, the process does not end."""
    code, errors = run(
        before="interruption.LOCK.acquire()",
        seconds=0.5,
        after='print("whole", file=sys.stderr); interruption.LOCK.release();'
        "threading.Event().wait(60)",
    )
    assert (code, errors) == (130, "whole\nInterrupted: these words.\n")


def test_a_fit_that_has_learnt_something_is_asked():
    code, errors = run(
        before="interruption.answer(True)",
        seconds=0.5,
        after="""
    try:
        interruption.check()
    except KeyboardInterrupt:
        sys.exit("asked")
""",
    )
    assert (code, errors) == (1, "asked\n")


def test_a_fit_that_takes_long_to_stop_is_explained():
    code, errors = run(
        before="ctrl_c.PATIENCE = 0.1; interruption.answer(True)",
        seconds=1.0,
        after="sys.exit(interruption.pressed())",
    )
    assert code == 1
    assert errors == (
        "The fit stops at its next look, and loses nothing; Ctrl-C again ends it at once.\n"
    )


def test_the_second_one_ends_it_in_any_case():
    twice = 'threading.Timer(0.5, print, ["ready"], {"flush": True}).start()'
    code, errors = run(before=f"interruption.answer(True); {twice}", presses=2)
    assert (code, errors) == (130, "Interrupted: these words.\n")


def test_words_that_fail_change_nothing():
    code, errors = run(before="ctrl_c._last_words = lambda: 1 / 0")
    assert code == 130
    assert errors == ""


def test_who_starts_it_may_switch_ctrl_c_off():
    assert run(handler="SIG_IGN", seconds=0.5) == (0, "")


def test_when_all_is_done_it_changes_nothing():
    """While Python cleans up, a process that has done its work does not end by the signal."""
    program = """
import os, signal
from noisyica.app import ctrl_c
ctrl_c.listen()
class Late:
    def __del__(self, kill=os.kill, number=os.getpid(), signal=signal.SIGINT):
        kill(number, signal)
late = Late()
"""
    process = subprocess.run([sys.executable, "-c", program], check=False)
    assert process.returncode == 0


def test_the_command_listens_before_it_imports():
    """Until Ctrl-C is answered, nothing is imported that takes long."""
    program = """
import sys
before = set(sys.modules)
from noisyica.app import ctrl_c

def listen():
    print(*sorted(name for name in sys.modules if name.startswith("noisyica")), file=sys.stderr)
    heavy = {"typing", "typer", "rich", "numpy", "jax"} & (set(sys.modules) - before)
    print("heavy:", *heavy, file=sys.stderr)

ctrl_c.listen = listen
sys.argv[1:] = ["--help"]
from noisyica.__main__ import main
main()
"""
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert process.stderr.splitlines() == [
        "noisyica noisyica.__main__ noisyica.app noisyica.app.ctrl_c noisyica.interruption",
        "heavy:",
    ]
