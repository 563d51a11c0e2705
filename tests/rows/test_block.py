"""Blocks of rows on the device: their rows, weights and sums, whatever the size of a block."""

import jax
import numpy as np
import pytest

from noisyica._jax.xla import padded_rows
from noisyica.rows import block
from noisyica.rows.block import device_blocks
from noisyica.rows.source import Rows

pytestmark = [
    pytest.mark.usefixtures("double"),
    pytest.mark.skipif(jax.default_backend() != "cpu", reason="sizes of blocks on the CPU"),
]

N, D = 100, 5


@pytest.fixture(params=[7, 50, 99, 100, 16_384], ids=lambda rows: f"blocks of {rows}")
def size(request, monkeypatch):
    monkeypatch.setattr(block, "ROWS_ON_CPU", request.param)
    return request.param


def data(seed=0):
    return np.random.default_rng(seed).normal(size=(N, D)) * 3 + 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_weights_and_sums(size, dtype):
    X = data()
    weight = np.random.default_rng(1).integers(1, 4, N).astype(float)
    rows, _ = Rows(X, weight).centred(True)
    blocks = device_blocks(rows, dtype)
    count, d, length = blocks.x.shape
    assert (count, d) == (-(-N // size), D)
    assert length == (size if count > 1 else padded_rows(N))
    standard, relative = rows.standardised(0, N), rows.relative_weight(0, N)
    x = np.moveaxis(np.asarray(blocks.x), 1, 2).reshape(-1, D)
    flat = np.asarray(blocks.weight).ravel()
    np.testing.assert_allclose(x[:N], standard, rtol=1e-6 if dtype == "float32" else 0)
    np.testing.assert_allclose(flat[:N], relative, rtol=1e-6)
    # rows that only fill the last block up are zeros, and count for nothing
    assert not x[N:].any()
    assert not flat[N:].any()
    np.testing.assert_array_equal(np.ravel(blocks.rows), np.arange(count * length))
    assert blocks.observed is None
    for name, values in (("sum_x", standard), ("sum_xx", np.square(standard))):
        sums = np.asarray(getattr(blocks, name))
        assert sums.dtype == np.float64
        for i in range(count):
            part = slice(i * length, (i + 1) * length)
            expected = relative[part] @ values[part]
            np.testing.assert_allclose(sums[i], expected, rtol=1e-10, atol=1e-10)
    assert blocks.x.dtype == blocks.weight.dtype == dtype


def test_missing_entries_are_zero_and_marked(size):
    X = data()
    holes = np.random.default_rng(2).random(X.shape) < 0.2
    X[holes] = np.nan
    rows, _ = Rows(X).centred(True)
    blocks = device_blocks(rows, "float64")
    x, observed = (
        np.moveaxis(np.asarray(part), 1, 2).reshape(-1, D)[:N]
        for part in (blocks.x, blocks.observed)
    )
    np.testing.assert_array_equal(observed, ~holes)
    assert not x[holes].any()
    filled = np.nan_to_num(rows.standardised(0, N))
    np.testing.assert_allclose(np.asarray(blocks.sum_x).sum(0), filled.sum(0), atol=1e-10)
    np.testing.assert_allclose(np.asarray(blocks.sum_xx).sum(0), np.square(filled).sum(0))


def test_one_missing_entry_in_the_last_block_is_enough(monkeypatch):
    monkeypatch.setattr(block, "ROWS_ON_CPU", 30)
    X = data()
    X[-1, 2] = np.nan
    observed = np.asarray(device_blocks(Rows(X), "float64").observed)
    assert observed.shape == (4, D, 30)
    assert (~observed).sum() == 1
    assert not observed[3, 2, 9]
