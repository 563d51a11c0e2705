"""How often something is compiled: small work takes as long as that."""

import logging

import jax
import numpy as np
import pytest

from noisyica import Model, NoisyICA
from noisyica.posterior import chains

X = np.random.default_rng(0).laplace(size=(300, 2)) @ np.array([[1.0, 2, 0, 1], [0, 1, 3, 1]])
X += np.random.default_rng(1).normal(size=X.shape)


@pytest.fixture
def compiled(caplog):
    """A function that lists the names of all that was compiled since it was called last."""
    with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):

        def names():
            said = [record.getMessage() for record in caplog.records]
            caplog.clear()
            return [text.split()[1] for text in said if text.startswith("Compiling ")]

        yield names


def test_nothing_small_is_compiled_by_a_fit(compiled):
    settings = {"prior": "lap", "mean": "zero", "tol": 0, "random_state": 0}
    NoisyICA(1, max_iter=7, **settings).fit(X[:, :3])  # keys and the like: once per process
    compiled()
    ica = NoisyICA(2, max_iter=7, **settings).fit(X)
    names = [name for name in compiled() if "<lambda>" not in name]  # tries of compiler options
    # the loop, and what is said of the columns' noise at the end
    assert names == ["jit(_advance)", "jit(_own_noise)", "jit(least_noise)"]
    # settings that are numbers, and folds of nearly the same size, are served by the same code
    NoisyICA(2, max_iter=9, kappa=0.7, burn_in=0.2, **settings).fit(X[:295])
    assert compiled() == []
    ica.transform(X[:150])
    assert compiled() == ["jit(_sweep_rows)"]
    ica.transform(X)
    assert compiled() == []


def test_few_sizes_of_blocks_are_compiled_for():
    sizes = set()
    for n in (1, 9, 128, 129, 300, 512, 513, 2048, 2049, 4096, 4097, 6200, 10_000):
        first, filled = 0, 0
        rows = np.arange(n, dtype=float)[:, None]
        for block, part in chains.blocks(rows, verbose=False):
            np.testing.assert_array_equal(part[:, 0], np.arange(first, first + len(part)))
            np.testing.assert_array_equal(block.x[0, : len(part)], part[:, 0])
            assert not block.x[:, len(part) :].any()
            assert block.weight.sum() == len(part)
            assert block.rows == first
            first += len(part)
            filled += block.x.shape[1]
            sizes.add(block.x.shape[1])
        assert first == n
        assert filled <= max(512, 2 * n)
    assert sizes == set(chains.SIZES)


def test_a_row_does_not_depend_on_the_size_of_its_block():
    model = Model(np.array([[1.0, 2, 0, 1], [0, 1, 3, 1]]).T, noise_variance=1.0, prior="lap")
    together = model.posterior_mean(X[:150], n_draws=20)
    alone = model.posterior_mean(X[:20], n_draws=20)
    np.testing.assert_array_equal(together[:20], alone)
