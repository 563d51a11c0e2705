"""What happens in a process that was forked after the library was used."""

import os
import subprocess
import sys

import pytest

FORK = """
import os, sys, warnings
import numpy as np
from noisyica import Model

warnings.simplefilter("ignore")  # JAX warns of forks itself

def compute():
    Model(np.eye(3, 2), prior="lap").posterior_mean(np.ones((4, 3)), n_draws=5)

if sys.argv[1] == "used":
    compute()
child = os.fork()
if child == 0:
    try:
        compute()
        print("done", flush=True)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
compute()  # the parent goes on as before
print("parent done", flush=True)
"""


def said(used):
    program = subprocess.Popen(
        [sys.executable, "-c", FORK, used],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        return program.communicate(timeout=100)[0]
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, 9)  # the parent and the child that hangs
        program.communicate()
        return "nothing: it did not end"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_fork_after_use_says_what_to_do_instead_of_hanging():
    text = said("used")
    assert "forked from one that had used noisyica" in text
    assert "get_context('spawn')" in text
    assert text.endswith("parent done\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_fork_before_use_computes():
    assert said("unused") == "done\nparent done\n"
