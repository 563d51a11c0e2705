"""Rows on the workers of a cluster: the same fit, also when workers are lost."""

import os
import platform
import resource
import signal
from concurrent.futures import ThreadPoolExecutor

import dask.array
import numpy as np
import pytest
from distributed import Client, LocalCluster

from noisyica import NoisyICA
from noisyica.engine.convergence import similarity
from tests.tools import simulate

FITS = {
    "bg": {},
    "missing": {},
    "weighted": {},
    "student": {"noise": "student"},
    "two starts": {"n_init": 2},
    "as usual": {"noise": "auto", "init": "auto"},
}


def cluster_of(n_workers):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit=0,
    )


@pytest.fixture(scope="module")
def client():
    """A client of two workers, each of them a process."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        yield client


def data(name, n=300):
    X = simulate("bg", n=n, d=8, p=3, sigma=0.5)[1]
    rng = np.random.default_rng(0)
    if name == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(1, 4, n).astype(float) if name == "weighted" else None
    return X, weight


def fit(X, weight=None, **chosen):
    usual = {"n_components": 3, "prior": "bg", "init": "fastica", "dtype": "float64"}
    usual |= {"max_iter": 5, "tol": 0, "n_init": 1, "noise": "isotropic"}
    return NoisyICA(**usual | {"random_state": 0, "verbose": False} | chosen).fit(
        X, sample_weight=weight
    )


@pytest.mark.parametrize("name", FITS)
def test_workers_give_the_fit_of_rows_in_memory(client, name):
    """Sums are rounded in another order, and that is all."""
    X, weight = data(name)
    held = fit(X, weight, **FITS[name])
    there = fit(dask.array.from_array(X, chunks=(100, 5)), weight, **FITS[name])
    np.testing.assert_allclose(there.mixing_, held.mixing_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.noise_variance_, held.noise_variance_, rtol=1e-9)
    if name == "student":
        np.testing.assert_allclose(there.row_weights_, held.row_weights_, rtol=1e-7)


def test_the_number_of_workers_changes_nothing(client):
    X = dask.array.from_array(data("bg")[0], chunks=(64, 8))
    two = fit(X, dtype="float32")
    with cluster_of(1) as cluster, Client(cluster):
        one = fit(X, dtype="float32")
    np.testing.assert_array_equal(one.mixing_, two.mixing_)


def test_a_fit_on_workers_goes_on_after_an_interruption(client, tmp_path):
    X = dask.array.from_array(data("bg")[0], chunks=(100, 8))
    whole = fit(X, max_iter=12)
    path = tmp_path / "fit.npz"

    def interrupt(iteration, model):
        if iteration == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(X, max_iter=12, checkpoint=path, callback=interrupt)
    assert path.exists()
    resumed = fit(X, max_iter=12, checkpoint=path)
    np.testing.assert_array_equal(resumed.mixing_, whole.mixing_)


def faults():
    """Return how many pages of memory a process gets for ten arrays of 8 MiB, one by one."""
    for rounds in (3, 10):  # the first ones may grow what is kept
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(rounds):
            np.ones(2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_workers_keep_the_memory_of_intermediate_results(client):
    """Dask has processes of workers give it back at once, which doubles the time of a sweep."""
    fit(dask.array.from_array(data("bg")[0], chunks=(100, 5)))
    # one worker holds all of these few rows; without it, each array takes at least four pages
    assert min(client.run(faults).values()) < 40


def test_a_worker_that_is_lost_costs_time_only(client):
    """It is killed in the middle of a fit; its rows are loaded again, and the fit ends."""
    X, _ = data("bg", n=1200)
    there = dask.array.from_array(X, chunks=(200, 8))
    settings = {"max_iter": 200, "dtype": "float32"}
    whole = fit(X, **settings)
    victims = list(client.run(os.getpid).values())

    def kill(iteration, model):
        if iteration == 60:
            os.kill(victims[0], signal.SIGKILL)

    ended = fit(there, callback=kill, **settings)
    assert ended.n_iter_ == 200
    # another Monte-Carlo error, which is small beside the standard error
    assert similarity(whole.mixing_, [ended.mixing_]).min() > 0.999
    errors = np.abs(whole.mixing_ - ended.mixing_) / whole.components_std_.T
    assert np.sqrt(np.square(errors).mean()) < 1


def test_rows_that_are_still_known_are_loaded_again(client, monkeypatch):
    """The scheduler knows them while anybody holds them, and which worker was to have them."""
    held, compute = [], Client.compute

    def computed_and_held(self, *args, **options):
        held.append(compute(self, *args, **options))
        return held[-1]

    monkeypatch.setattr(Client, "compute", computed_and_held)
    rows = dask.array.from_array(data("bg", n=1200)[0], chunks=(200, 8))
    victims = list(client.run(os.getpid).values())

    def kill(iteration, model):
        if iteration == 20:
            os.kill(victims[0], signal.SIGKILL)

    # a fit that waits for the lost worker waits for ever: not so this test
    pool = ThreadPoolExecutor(1)
    ended = pool.submit(fit, rows, max_iter=60, callback=kill)
    assert ended.result(timeout=120).n_iter_ == 60
    pool.shutdown()


def test_coefficients_and_likelihoods_of_a_dask_array_are_dask_arrays(client):
    """They are computed by the workers, and are those of the rows in memory, to rounding."""
    X, _ = data("bg")
    ica = fit(X)
    rows = dask.array.from_array(X, chunks=(120, 5))
    for there, here in (
        (ica.transform(rows), ica.transform(X)),
        (ica.score_samples(rows), ica.score_samples(X)),
        (ica.set_params(transform_algorithm="map").transform(rows), ica.transform(X)),
    ):
        assert isinstance(there, dask.array.Array)
        assert there.shape == here.shape
        np.testing.assert_allclose(there.compute(), here, rtol=1e-9, atol=1e-12)
    assert ica.score(rows) == pytest.approx(ica.score(X), rel=1e-12)
    assert ica.bic(rows) == pytest.approx(ica.bic(X), rel=1e-12)
