"""Rows that stay where they are: the same fit as with rows in memory."""

import errno
import threading

import jax
import numpy as np
import pytest

from noisyica import NoisyICA
from noisyica.engine import holding, streamed
from noisyica.engine.streamed import Streamed
from noisyica.rows import block
from noisyica.rows.source import Rows
from tests.tools import simulate

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="the size of blocks is set for the CPU"
)

FITS = {
    "bg": {},
    "te": {"prior": "te"},
    "missing": {},
    "maximum likelihood": {"mixing_prior": None},
    "auto": {"noise": "auto"},
    "offset": {"mean": "offset"},
    "weighted": {},
    "student, missing": {"noise": "student"},
    "two starts": {"n_init": 2, "max_iter": 4},
}


@pytest.fixture
def streaming(monkeypatch):
    """Rows are read in blocks of 64, and never put into memory as a whole."""
    monkeypatch.setattr(block, "ROWS_ON_CPU", 64)

    def switch(on):
        monkeypatch.setattr(holding, "SHARE_OF_MEMORY", 0.0 if on else 0.5)

    return switch


def data(name):
    X = simulate(FITS[name].get("prior", "bg"), n=300, d=8, p=3, sigma=0.5)[1]
    rng = np.random.default_rng(0)
    if "missing" in name:
        X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(0, 4, 300).astype(float) if name == "weighted" else None
    return X, weight


def fit(X, weight=None, **chosen):
    usual = {"n_components": 3, "init": "fastica", "dtype": "float64", "random_state": 0}
    usual |= {"max_iter": 5, "tol": 0, "n_init": 1, "noise": "isotropic", "verbose": False}
    return NoisyICA(**usual | chosen).fit(X, sample_weight=weight)


@pytest.mark.parametrize("name", FITS)
def test_streamed_rows_give_the_fit_of_rows_in_memory(streaming, name):
    """Sums are rounded in another order, and that is all."""
    X, weight = data(name)
    streaming(False)
    held = fit(X, weight, **FITS[name])
    streaming(True)
    read = fit(X, weight, **FITS[name])
    np.testing.assert_allclose(read.mixing_, held.mixing_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(read.mean_, held.mean_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(read.noise_variance_, held.noise_variance_, rtol=1e-9)
    for name, value in read.prior_.parameters.items():
        np.testing.assert_allclose(value, held.prior_.parameters[name], rtol=1e-9)
    if hasattr(read, "row_weights_"):
        np.testing.assert_allclose(read.row_weights_, held.row_weights_, rtol=1e-7)


def test_coefficients_in_a_file_change_nothing(streaming, monkeypatch):
    streaming(True)
    X, _ = data("missing")
    in_memory = fit(X)
    monkeypatch.setattr(streamed, "MOST_IN_MEMORY", 0)
    in_file = fit(X)
    np.testing.assert_array_equal(in_file.mixing_, in_memory.mixing_)


def test_a_full_disk_is_said_before_it_is_written(streaming, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    streaming(True)
    monkeypatch.setattr(streamed, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(streamed.os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match=r"temporary file of 0.0 GiB.*No space left.*TMPDIR"):
        fit(data("bg")[0])


@pytest.mark.usefixtures("double")
def test_a_fit_reads_a_block_at_a_time(streaming):
    """Of a memory map no more than a block is ever asked for at once."""
    streaming(True)
    X, _ = data("bg")
    most = 0

    class Elsewhere:
        """What is needed of rows that are held elsewhere."""

        shape, dtype = X.shape, X.dtype

        def __len__(self):
            return len(X)

        def __getitem__(self, which):
            nonlocal most
            part = X[which]
            most = max(most, len(part))
            return part

    sweeper = Streamed(Rows(Elsewhere()), "float32", missing=False)
    assert sweeper.count == 5
    assert most == 64
    np.testing.assert_allclose(sweeper.squares, np.square(X).sum(0), rtol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("size", [64, 70])
def test_rows_are_centred_in_double_precision_and_transposed(size):
    """Single precision of rows far from zero would lose what is centred; 70 rows are one piece."""
    rng = np.random.default_rng(0)
    raw = (1e6 + rng.normal(size=(size, 5))).astype(np.float32)
    raw[3, 2], weight = np.nan, np.append(np.ones(size - 1), 0.0)
    centre, unit = 1e6 + 0.01 * np.arange(1, 6), np.asarray(3.0)
    compiled = streamed.standardise.compiled(fast_compile=True)
    x, observed = compiled(raw, centre, unit, weight, "float32", True)
    expected = (raw.astype(float) - centre) / unit
    expected[-1] = 0.0
    np.testing.assert_array_equal(observed, ~np.isnan(expected).T)
    np.testing.assert_allclose(x, np.nan_to_num(expected).T, rtol=1e-6)


@pytest.mark.usefixtures("double")
def test_the_next_block_is_prepared_while_one_is_used(streaming):
    streaming(True)
    X, _ = data("bg")
    sweeper, prepared = Streamed(Rows(X), "float32", missing=False), []
    second = threading.Event()

    def prepare(i):
        prepared.append((i, threading.get_ident()))
        if i == 1:
            second.set()
        return i

    blocks = sweeper._read(prepare)
    assert next(blocks) == 0
    assert second.wait(10)  # nobody has asked for the second one
    assert list(blocks) == [1, 2, 3, 4]
    assert [i for i, _ in prepared] == [0, 1, 2, 3, 4]
    assert threading.get_ident() not in {thread for _, thread in prepared}


def test_a_streamed_fit_goes_on_after_an_interruption(streaming, tmp_path):
    """The file is written by the callback's look; the fit that goes on ends at the same place."""
    streaming(True)
    X, _ = data("bg")
    whole = fit(X, max_iter=20)
    path = tmp_path / "fit.npz"

    def interrupt(iteration, model):
        if iteration == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(X, max_iter=20, checkpoint=path, callback=interrupt)
    assert path.exists()
    resumed = fit(X, max_iter=20, checkpoint=path)
    np.testing.assert_array_equal(resumed.mixing_, whole.mixing_)
    assert not path.exists()
