"""Where to compute: the setting ``device``."""

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from noisyica import NoisyICA
from noisyica._jax import compiling, device, xla
from noisyica.app.command_line import app
from noisyica.posterior import chains

X = np.random.default_rng(0).laplace(size=(120, 2)) @ np.array([[1.0, 2, 0, 1], [0, 1, 3, 1]])
X += np.random.default_rng(1).normal(size=X.shape)
NO_GPU = device.platform() == "cpu"
SETTINGS = {"max_iter": 6, "tol": 0, "n_init": 1, "random_state": 0, "verbose": False}


def test_the_platform_is_that_of_the_default_device():
    assert device.platform() in ("cpu", "gpu")
    with device.on_device("cpu"):
        assert device.platform() == "cpu"
        assert next(iter(jax.numpy.zeros(3).devices())).platform == "cpu"
        assert device.device_in_use() == "cpu"
    assert device.default_device() is None


def test_a_device_that_there_is_not_is_one_clear_line():
    with pytest.raises(ValueError, match="device='tpu' is not known. Choose 'auto' or 'cpu' or"):
        NoisyICA(2, device="tpu", **SETTINGS).fit(X)
    if NO_GPU:
        with pytest.raises(ValueError, match=r"no such device here.*noisyica\[cuda\]") as error:
            NoisyICA(2, device="gpu", **SETTINGS).fit(X)
        assert "\n" not in str(error.value)


def test_what_is_learnt_on_the_cpu_is_the_same_whoever_chooses_it():
    asked = NoisyICA(2, device="cpu", **SETTINGS).fit(X)
    assert asked.get_params()["device"] == "cpu"
    if NO_GPU:
        left = NoisyICA(2, **SETTINGS).fit(X)
        np.testing.assert_array_equal(asked.mixing_, left.mixing_)
        np.testing.assert_array_equal(asked.transform(X), left.transform(X))
        assert asked.score(X) == left.score(X)


def test_every_computation_of_an_estimator_is_on_its_device(monkeypatch):
    fitted = NoisyICA(2, **SETTINGS).fit(X)
    asked = []
    real = device.on_device

    def noted(setting):
        asked.append(setting)
        return real(setting)

    monkeypatch.setattr("noisyica.fitted.on_device", noted)
    monkeypatch.setattr("noisyica.estimator.on_device", noted)
    fitted.set_params(device="cpu")
    for call in (fitted.fit, fitted.transform, fitted.score, fitted.standard_errors):
        call(X)
        assert asked == ["cpu"], call
        asked.clear()


def test_files_are_for_any_machine(tmp_path):
    path = tmp_path / "model.npz"
    NoisyICA(2, device="cpu", **SETTINGS).fit(X).save(path)
    assert NoisyICA.load(path).device == "auto"


def test_the_command_line_takes_a_device(tmp_path):
    def run(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        return result.exit_code, " ".join(result.output.split())

    assert device.device_in_use() in run("info")[1]
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    fit = ["fit", tmp_path / "x.csv", "-p", 2, "--max-iter", 5, "--seed", 0]
    code, said = run(*fit, "-o", tmp_path / "run", "--device", "cpu")
    assert code == 0, said
    code, said = run(*fit, "-o", tmp_path / "other", "--device", "tpu")
    assert code == 1
    assert "device='tpu' is not known" in said
    assert "Traceback" not in said


def test_code_is_compiled_for_the_device_at_hand(monkeypatch):
    function = compiling.Compiled(lambda x: x + 1)
    on_cpu = function.compiled(True)
    assert function.compiled(True) is on_cpu
    assert function.compiled(False) is not on_cpu
    monkeypatch.setattr(compiling, "platform", lambda: "gpu")
    assert function.compiled(True) is function.compiled(False)
    assert function.compiled(True) not in (on_cpu, None)


def test_a_gpu_takes_more_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(chains, "platform", lambda: "gpu")
    sizes = set()
    for n in (1, 512, 513, 10_000, 20_000, 60_000, 100_000):
        first, filled = 0, 0
        rows = np.arange(n, dtype=float)[:, None]
        for block, part in chains.blocks(rows, verbose=False, most=chains.MANY):
            np.testing.assert_array_equal(block.x[0, : len(part)], part[:, 0])
            assert not np.asarray(block.x[:, len(part) :]).any()
            assert isinstance(block.x, jax.Array)  # sent once
            assert block.rows == first
            first += len(part)
            filled += block.x.shape[1]
            sizes.add(block.x.shape[1])
        assert first == n
        assert filled <= max(4608, 2 * n)
    assert sizes == set(chains.SIZES_ON_GPU)
    assert chains.block_size(100_000, 0) == chains.USUAL == 4096
    assert chains.block_size(100_000, 0, most=30_000) == 20_480
    wide = next(chains.blocks(np.zeros((20_000, 3000)), False, most=chains.MANY))[0]
    assert wide.x.shape == (3000, 4096)
    assert chains.block_size(100_000, 0, most=600) == 512


def test_on_a_gpu_xla_sees_through_the_tricks_for_the_cpu(monkeypatch):
    assert not isinstance(jax.make_jaxpr(xla.always)(1).jaxpr.outvars[0], jax.extend.core.Literal)
    monkeypatch.setattr(xla, "platform", lambda: "gpu")
    assert bool(xla.always(-1))
    matrix = np.ones((3, 5))
    assert xla.pad_columns(matrix) is matrix
