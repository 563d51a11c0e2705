"""The tricks that get around XLA's habits."""

import jax.numpy as jnp
import numpy as np
import pytest

from noisyica._jax import xla
from noisyica._jax.xla import (
    COLUMNS,
    empty_for_device,
    once,
    pad_columns,
    padded_rows,
    repeat_rows,
)


def test_rows_are_padded_a_little():
    for n in (2, 31, 100, 999, 7291, 16000):
        assert n <= padded_rows(n) <= max(1.07 * n, n + 31)
        assert padded_rows(n) % 32 == 0
    assert len({padded_rows(n) for n in range(7000, 7291)}) <= 2


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_columns_are_padded_with_zeros(axis):
    matrix = jnp.arange(15.0).reshape(3, 5) + 1
    padded = np.asarray(pad_columns(matrix, axis))
    assert padded.shape[axis] == COLUMNS
    np.testing.assert_array_equal(padded[:3, :5], matrix)
    assert padded.sum() == matrix.sum()
    full = jnp.ones((COLUMNS, 2 * COLUMNS))
    np.testing.assert_array_equal(pad_columns(full, axis), full)


def test_rows_are_repeated():
    vector = jnp.arange(4.0)
    np.testing.assert_array_equal(repeat_rows(vector), np.tile(vector, (COLUMNS, 1)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
def test_arrays_for_the_device_start_on_a_boundary(dtype):
    for shape in ((3,), (2, 5, 7), (1, 1)):
        array = empty_for_device(shape, dtype)
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.ctypes.data % 64 == 0
        array[...] = 1
        assert array.sum() == array.size


def test_nothing_is_done_for_the_cpus_sake_on_a_gpu(monkeypatch):
    x = jnp.array([-jnp.inf, 1.0])
    np.testing.assert_array_equal(once(x), [np.finfo(x.dtype).min, 1.0])
    monkeypatch.setattr(xla, "platform", lambda: "gpu")
    assert once(x) is x
