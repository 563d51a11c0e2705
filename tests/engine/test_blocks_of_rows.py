"""A block of rows is only a unit of work: a fit does not depend on the size of its blocks."""

import jax
import numpy as np
import pytest

from noisyica import NoisyICA
from noisyica.rows import block
from tests.tools import simulate, some_slow

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="the size of blocks is set for the CPU"
)

FITS = {
    "bg": {},
    "log": {"prior": "log"},
    "te": {"prior": "te"},
    "missing": {},
    "mcem": {"algorithm": "mcem", "n_draws": 3},
    "maximum likelihood": {"mixing_prior": None},
    "diagonal": {"noise": "diagonal"},
    "auto": {"noise": "auto"},
    "offset": {"mean": "offset"},
    "fam-em": {"algorithm": "fam-em", "prior": "lap"},
    "em": {"algorithm": "em"},
    "weighted": {},
    "student": {"noise": "student"},
    "student, missing": {"noise": "student"},
}

LONG = ("log", "mcem", "offset", "fam-em", "em", "weighted", "diagonal", "student")


@pytest.mark.parametrize("name", some_slow(FITS, *LONG))
def test_a_fit_does_not_depend_on_the_size_of_blocks(monkeypatch, name):
    """Sums are rounded in another order, and that is all."""
    prior = FITS[name].get("prior", "bg")
    X = simulate(prior, n=300, d=8, p=3, sigma=0.5)[1]
    rng = np.random.default_rng(0)
    if "missing" in name:
        X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(0, 4, 300).astype(float) if name == "weighted" else None
    settings = {"n_components": 3, "init": "fastica", "dtype": "float64", "random_state": 0}
    settings |= {"max_iter": 6, "tol": 0, "verbose": False} | FITS[name]

    def fit():
        return NoisyICA(**settings).fit(X, sample_weight=weight)

    whole = fit()
    monkeypatch.setattr(block, "ROWS_ON_CPU", 64)
    parts = fit()
    np.testing.assert_allclose(parts.mixing_, whole.mixing_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(parts.noise_variance_, whole.noise_variance_, rtol=1e-10)
    if "student" in name:
        np.testing.assert_allclose(parts.row_weights_, whole.row_weights_, rtol=1e-8)
    for value, other in zip(
        parts.prior_.parameters.values(), whole.prior_.parameters.values(), strict=True
    ):
        np.testing.assert_allclose(value, other, rtol=1e-10)
