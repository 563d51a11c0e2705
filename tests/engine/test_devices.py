"""Rows on several devices of one machine: the fit of one device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.tools import simulate

pytestmark = pytest.mark.slow  # a process with several devices takes half a minute

PROGRAM = """
import json, sys
import jax
import numpy as np
from noisyica import NoisyICA
from noisyica.engine.devices import OnDevices
from noisyica.engine.task import prepare
from noisyica.rows import block
from noisyica.rows.source import Rows

block.ROWS_ON_CPU = 64
X = np.load(sys.argv[1])
found = {"devices": len(jax.local_devices())}
usual = {"n_components": 3, "prior": "bg", "init": "pca", "dtype": "float64", "tol": 0}
usual |= {"random_state": 0, "verbose": False, "n_init": 1, "noise": "isotropic", "max_iter": 5}
cases = {
    "bg": {},
    "two runs": {"n_init": 2},
    "missing": {},
    "student": {"noise": "student"},
    "growing": {"max_iter": 310, "tol": 1e-3, "burn_in": 0.4, "dtype": "float32"},
    "cpu": {"device": "cpu"},
}
for name, chosen in cases.items():
    rows = X.copy()
    if name == "missing":
        rows[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    ica = NoisyICA(**usual | chosen).fit(rows)
    found[name] = [ica.mixing_.tolist(), ica.noise_variance_]
    if name == "student":
        found["weights"] = ica.row_weights_.tolist()
    if name == "growing":
        from noisyica._jax.precision import double_precision
        with double_precision():
            stages = prepare(ica, Rows(rows)).stages
        found["sweepers"] = [type(stage.sweeper).__name__ for stage in stages]
        found["shares"] = [float(stage.constants.total_weight) for stage in stages]
print(json.dumps(found))
"""


def fits(n_devices, path):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={n_devices}"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, path],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def one_and_three(tmp_path_factory):
    """What one device learns of 11 blocks, and what three do, to which one block is added."""
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, simulate("bg", n=11 * 64 - 5, d=8, p=3, sigma=0.3)[1])
    return fits(1, path), fits(3, path)


def test_blocks_are_spread_over_the_devices(one_and_three):
    one, three = one_and_three
    assert (one["devices"], three["devices"]) == (1, 3)
    assert set(one["sweepers"]) == {"InMemory"}
    assert set(three["sweepers"]) == {"OnDevices"}
    assert one["shares"] == three["shares"]
    assert len(one["shares"]) > 1, "the rows should grow"


@pytest.mark.parametrize("name", ["bg", "two runs", "missing", "student", "cpu"])
def test_the_number_of_devices_changes_no_fit(one_and_three, name):
    """Devices may round differently: after five iterations in double precision that is seen."""
    for a, b in zip(*(found[name] for found in one_and_three), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
    if name == "student":
        one, three = one_and_three
        np.testing.assert_allclose(one["weights"], three["weights"], rtol=1e-7)


def test_growing_rows_join_on_all_devices(one_and_three):
    """Single precision: rounding makes two chains of one Markov chain, with the same mean."""
    (A, noise), (B, other) = (found["growing"] for found in one_and_three)
    np.testing.assert_allclose(A, B, atol=0.02)
    assert noise == pytest.approx(other, rel=0.01)
