"""Rows of all kinds, good and bad: a finite fit, or an error that says why there is none."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

_spec = importlib.util.spec_from_file_location(
    "fuzz", Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
)
fuzz = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz)

SETTINGS = {"n_components": 2, "max_iter": 12, "tol": 0, "random_state": 0}


@pytest.mark.parametrize(
    "noise", ["isotropic", "diagonal", pytest.param("auto", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", fuzz.kinds_of_data(np.random.default_rng(0), 2, 2))
def test_each_kind_of_data_ends_in_a_fit_or_a_clear_error(kind, noise):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings("ignore", module="sklearn")
        for seed in range(4):
            rng = np.random.default_rng(seed)
            X = fuzz.kinds_of_data(rng, 32, 6)[kind]()
            end = fuzz.outcome(X, SETTINGS | {"noise": noise}, answers=seed == 0)
            assert end in ("fitted", "refused"), (seed, end)
