import atexit
import importlib.util
import os
import shutil
import sys
import tempfile

# workers, and programs that tests start, share what one of them has compiled
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="noisyica-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
    atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)

import jax
import pytest

from noisyica._jax.memory_maps import make_room

# the libraries of the neighbours are in an environment of their own: make test-neighbours
collect_ignore = [] if importlib.util.find_spec("mne") else ["neighbours"]


@pytest.fixture
def double():
    """JAX's 64-bit types, as inside the library's own calls."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures of a test after it: pyplot keeps them until then."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True, scope="module")
def few_memory_maps():
    """Drop what a module's tests have compiled if it is much, not only where they fit."""
    yield
    make_room()
