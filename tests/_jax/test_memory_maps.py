"""What is compiled is dropped before a process runs out of maps of memory."""

import time

import jax
import numpy as np
import pytest

from noisyica import Model, NoisyICA
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


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch):
    """Look at the maps however short ago that was."""
    monkeypatch.setattr(memory_maps, "INTERVAL", 0.0)


@pytest.fixture
def run_out(tmp_path, monkeypatch):
    """Return a function after which there are too many maps."""

    def lower_the_limit():
        limit = tmp_path / "limit"
        limit.write_text(str(int(count() / memory_maps.SHARE) - 10))
        monkeypatch.setattr(memory_maps, "LIMIT", limit)

    return lower_the_limit


@pytest.mark.slow
def test_code_is_dropped_where_it_takes_many_maps(run_out):
    first = fit(3)
    fit(4)
    before = count()
    run_out()
    again = fit(3)  # all that was compiled is dropped, this alone is compiled again
    assert count() < before - 50
    np.testing.assert_array_equal(again.components_, first.components_)


@pytest.mark.parametrize("prior", ["bg", "lap"])
@pytest.mark.parametrize("name", ["log_likelihood", "posterior_mean", "posterior_sample", "map"])
def test_models_alone_drop_it_too(run_out, monkeypatch, prior, name):
    model = Model(np.eye(7)[:, :3], noise_variance=0.5, prior=prior)
    options = {} if name == "map" else {"random_state": 0}
    first = getattr(model, name)(X, **options)
    dropped, drop = [], jax.clear_caches
    monkeypatch.setattr(jax, "clear_caches", lambda: dropped.append(drop()))
    run_out()
    again = getattr(model, name)(X, **options)
    assert dropped
    np.testing.assert_array_equal(again, first)


def test_nothing_is_dropped_otherwise(tmp_path, monkeypatch):
    assert not memory_maps.make_room()
    monkeypatch.setattr(memory_maps, "MAPS", tmp_path / "missing")
    assert not memory_maps.make_room()


def test_it_seldom_looks(run_out, monkeypatch):
    run_out()
    monkeypatch.setattr(memory_maps, "INTERVAL", 1000.0)
    monkeypatch.setattr(memory_maps, "_last_look", time.monotonic() - 1001.0)
    assert [memory_maps.make_room() for _ in range(3)] == [True, False, False]
