"""Memory that is freed is kept where a variable would have it given back to the system."""

import ctypes
import os
import platform
import subprocess
import sys

import pytest

from noisyica._jax.allocation import VARIABLE, keep_freed_memory

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")

PROGRAM = """
import resource
import numpy as np
from noisyica._jax.allocation import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
first = faults()
changed = keep_freed_memory()
faults()
print(first, changed, faults())
"""


def run(environment):
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    first, changed, second = process.stdout.split()
    return int(first), changed == "True", int(second)


@glibc
def test_freed_memory_is_used_again():
    """Each array of 8 MiB is new memory under Dask's setting, page by page (4 KiB, or 2 MiB)."""
    first, changed, second = run({VARIABLE: "65536"})
    assert changed
    assert first >= 50 * 4
    assert second < 50


def test_other_systems_are_left_as_they_are(monkeypatch):
    def no_library(name):
        raise TypeError("LoadLibrary() argument 1 must be str, not None")

    monkeypatch.setenv(VARIABLE, "65536")
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    assert not keep_freed_memory()


@glibc
def test_nothing_is_changed_where_the_variable_is_not_set(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not keep_freed_memory()
