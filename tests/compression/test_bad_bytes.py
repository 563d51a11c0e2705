"""Bytes that are damaged, forged or of another model, and input that compress refuses."""

import contextlib
import struct
import zlib

import numpy as np
import pytest

from noisyica import Model, NoisyICA, compress, decompress, laws, priors
from noisyica.compression.container import HEADER, STREAM
from tests.compression.simulated import simulate


def change(data, where, value):
    """The data with some bytes replaced, and a check sum that hides it."""
    data = data[:where] + value + data[where + len(value) :]
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


@pytest.fixture(scope="module")
def example():
    model, X = simulate("teoff", n=40, d=6, p=3)
    return model, compress(model, X).data


ANY_DAMAGE = "damaged|not made by noisyica.compress|format"


def test_damage_is_noticed(example):
    model, data = example
    rng = np.random.default_rng(0)
    for _ in range(200):
        bad = bytearray(data)
        bad[rng.integers(len(data))] ^= 1 << rng.integers(8)
        with pytest.raises(ValueError, match=ANY_DAMAGE):
            decompress(model, bytes(bad))
    for end in range(len(data)):
        with pytest.raises(ValueError, match=ANY_DAMAGE):
            decompress(model, data[:end])
    with pytest.raises(ValueError, match="damaged"):
        decompress(model, data + b"\0")


def test_forged_check_sums_do_no_harm(example):
    """Changed bytes with a right check sum give a ValueError or, at worst, other numbers.

    They never lead to a crash, nor to a search without end.
    """
    model, data = example
    rng = np.random.default_rng(0)
    start = HEADER.size
    for i in range(400):
        where = (
            int(rng.integers(start, len(data) - 8))
            if i % 2
            else int(rng.integers(start, start + 3 * STREAM.size))
        )
        bad = change(data, where, rng.bytes(int(rng.integers(1, 5))))
        with contextlib.suppress(ValueError):
            assert decompress(model, bad).shape == (40, 6)


def test_what_is_wrong_is_said(example):
    model, data = example
    cases = {
        b"": "not made by noisyica.compress",
        b"PK" + data: "not made by noisyica.compress",
        change(data, 4, b"\x09"): "format 9.*upgrade",
        change(data, 5, struct.pack("<I", 2**31)): "promise 2147483648 rows.*max_entries",
        change(data, 5, struct.pack("<I", 0)): "damaged: they promise 0 rows",
    }
    for bad, message in cases.items():
        with pytest.raises(ValueError, match=message):
            decompress(model, bad)
    with pytest.raises(ValueError, match="max_entries=100"):
        decompress(model, data, max_entries=100)
    with pytest.raises(TypeError, match="data must be bytes"):
        decompress(model, "text")


def test_another_model_is_refused(example):
    model, data = example
    A = model.mixing.copy()
    A[0, 0] += 1e-9
    for other in (
        Model(A, noise_variance=model.noise_variance, prior=model.prior),
        Model(model.mixing, noise_variance=2.0, prior=model.prior),
        Model(
            model.mixing,
            noise_variance=model.noise_variance,
            prior=priors.SingleScaleTernaryOffset(0.3),
        ),
        Model(model.mixing, noise_variance=model.noise_variance, prior="bg"),
        Model(np.ones((6, 2)), noise_variance=model.noise_variance, prior=model.prior),
    ):
        with pytest.raises(ValueError, match="another model"):
            decompress(other, data)


def test_a_prior_that_only_looks_the_same_is_noticed():
    """Python functions are told apart by their values."""
    A = np.random.default_rng(0).normal(size=(4, 2))
    one, other = (
        Model(A, noise_variance=0.01, prior=laws.LogDensity(f))
        for f in (lambda t: -(t**4), lambda t: -30 * t**2)
    )
    X = np.random.default_rng(1).normal(size=(3, 2)) @ A.T
    small = compress(one, X)
    assert decompress(one, small).shape == X.shape
    with pytest.raises(ValueError, match="another model"):
        decompress(other, small)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0}, "step must be a positive number"),
        ({"step": np.nan}, "step must be a positive number"),
        ({"step": "fine"}, "step must be a positive number"),
        ({"step": 1e-9}, "choose a larger step"),
        ({"width": 0}, "width must be an integer of at least 1"),
        ({"X": np.ones((3, 4))}, "X has 4 columns"),
        ({"X": np.full((3, 8), np.nan)}, "Nothing is observed"),
    ],
)
def test_bad_input(options, message):
    model, X = simulate("bg", n=10, d=8, p=2)
    with pytest.raises(ValueError, match=message):
        compress(model, **({"X": X} | options))


def test_what_is_no_model():
    for thing in (NoisyICA(2), None, "bg"):
        with pytest.raises(TypeError, match="must be a noisyica.Model or a fitted NoisyICA"):
            compress(thing, np.ones((3, 2)))
