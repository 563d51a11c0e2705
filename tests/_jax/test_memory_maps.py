"""What is compiled is dropped before a process runs out of maps of memory."""

import numpy as np
import pytest

from noisyica import NoisyICA
from noisyica._jax import memory_maps

X = np.random.default_rng(0).laplace(size=(40, 7))

pytestmark = pytest.mark.skipif(
    not (memory_maps.MAPS.exists() and memory_maps.LIMIT.exists()), reason="counts maps of Linux"
)


def count():
    """Return the number of maps that this process has."""
    return memory_maps.MAPS.read_bytes().count(b"\n")


def fit(p):
    """Fit p components."""
    return NoisyICA(p, max_iter=5, tol=0, random_state=0, verbose=False).fit(X)


def test_code_is_dropped_where_it_takes_many_maps(tmp_path, monkeypatch):
    first = fit(3)
    fit(4)
    before = count()
    limit = tmp_path / "limit"
    limit.write_text(str(int(before / memory_maps.SHARE) - 10))
    monkeypatch.setattr(memory_maps, "LIMIT", limit)
    again = fit(3)  # all that was compiled is dropped, this alone is compiled again
    assert count() < before - 50
    np.testing.assert_array_equal(again.components_, first.components_)


def test_nothing_is_dropped_otherwise(tmp_path, monkeypatch):
    assert not memory_maps.make_room()
    monkeypatch.setattr(memory_maps, "MAPS", tmp_path / "missing")
    assert not memory_maps.make_room()
