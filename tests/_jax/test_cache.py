"""Compiled code that is kept on disk: when, where, and that nothing of the user's is changed."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

import noisyica
from noisyica._jax import cache

OPTIONS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


def options():
    return tuple(getattr(jax.config, name) for name in OPTIONS)


@pytest.fixture
def fresh(monkeypatch):
    """JAX as it is before anybody has switched its cache on."""
    before = options()
    for name, value in zip(OPTIONS, (None, 1.0), strict=True):
        jax.config.update(name, value)
    monkeypatch.setenv(cache.VARIABLE, "")  # so that it is as before afterwards
    yield
    for name, value in zip(OPTIONS, before, strict=True):
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def entries(folder):
    return [path for path in folder.rglob("*-cache") if path.is_file()]


def run_python(tmp_path, *arguments, **variables):
    """Run Python with these environment variables, and without those that switch a cache on."""
    switches = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    kept = {k: v for k, v in os.environ.items() if k not in (*switches, cache.VARIABLE)}
    environment = kept | {"XDG_CACHE_HOME": str(tmp_path / "caches")} | variables
    process = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout


def test_the_call_switches_it_on(fresh, tmp_path):
    assert noisyica.keep_compiled(tmp_path / "a") == tmp_path / "a"
    assert options() == (str(tmp_path / "a"), cache.MIN_COMPILE_SECONDS)
    jax.jit(lambda x: x * 3 + 1)(np.arange(7.0))
    first = len(entries(tmp_path / "a"))
    assert first > 0
    assert noisyica.keep_compiled(tmp_path / "b") == tmp_path / "b"  # our own folder may change
    jax.jit(lambda x: x * 5 + 2)(np.arange(7.0))
    assert len(entries(tmp_path / "a")) == first
    assert entries(tmp_path / "b")


def test_processes_that_are_started_later_use_the_same_folder(fresh, tmp_path):
    noisyica.keep_compiled(tmp_path / "a")
    code = "import noisyica._jax, jax; print(jax.config.jax_compilation_cache_dir)"
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    said = subprocess.run([sys.executable, "-c", code], env=kept, capture_output=True, text=True)
    assert said.stdout.strip() == str(tmp_path / "a")


def test_a_cache_of_the_users_own_stays(fresh, tmp_path):
    jax.config.update(OPTIONS[0], str(tmp_path / "mine"))
    before = options()
    assert noisyica.keep_compiled(tmp_path / "other") == tmp_path / "mine"
    assert options() == before
    assert not (tmp_path / "other").exists()


def test_a_switch_of_the_users_own_stays(fresh, tmp_path):
    before = options()
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        assert noisyica.keep_compiled(tmp_path / "other") is None
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert options() == before
    assert not (tmp_path / "other").exists()


def test_a_threshold_of_the_users_own_stays(fresh, tmp_path):
    jax.config.update(OPTIONS[1], 2.5)
    noisyica.keep_compiled(tmp_path)
    assert options() == (str(tmp_path), 2.5)


def test_a_folder_that_cannot_be_written_to(fresh, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    before = options()
    assert noisyica.keep_compiled(tmp_path / "file" / "inside") is None
    assert options() == before
    assert noisyica.keep_compiled(tmp_path / "good") == tmp_path / "good"
    assert noisyica.keep_compiled(tmp_path / "file") == tmp_path / "good"  # which stays in use

    def without_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", without_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert noisyica.keep_compiled() == tmp_path / "good"


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "{home}/x"}, "x/noisyica"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache/noisyica"),
        ("linux", {}, ".cache/noisyica"),
        ("linux", {"NOISYICA_CACHE": "1"}, ".cache/noisyica"),
        ("linux", {"NOISYICA_CACHE": "~/mine"}, "mine"),
        ("darwin", {}, "Library/Caches/noisyica"),
        ("win32", {"LOCALAPPDATA": "{home}/local"}, "local/noisyica"),
        ("win32", {}, "AppData/Local/noisyica"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="The paths are written as POSIX has them.")
def test_default_folder(fresh, tmp_path, monkeypatch, platform, variables, expected):
    for name in ("XDG_CACHE_HOME", "NOISYICA_CACHE", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    monkeypatch.setattr(sys, "platform", platform)
    assert noisyica.keep_compiled() == tmp_path / expected
    assert (tmp_path / expected).is_dir()


def test_what_was_unused_for_longest_is_deleted(fresh, tmp_path, monkeypatch):
    for i, size in enumerate((40, 30, 20, 0)):
        path = tmp_path / f"jit_f-{i:064x}-cache"
        path.write_bytes(bytes(size))
        os.utime(path, (1000 + i, 1000 + i))
    (tmp_path / "someone's-cache").write_bytes(bytes(1000))
    monkeypatch.setattr(cache, "MAX_BYTES", 60)
    noisyica.keep_compiled(tmp_path)
    assert sorted(path.stat().st_size for path in tmp_path.iterdir()) == [20, 30, 1000]


@pytest.mark.parametrize("variables", [{"NOISYICA_CACHE": "kept"}, {}])
def test_the_library_keeps_compiled_code_only_if_asked(tmp_path, variables):
    program = "from noisyica.model import Model; Model([[1.0], [2.0]]).sample(3, random_state=0)"
    run_python(tmp_path, "-c", program, **variables)
    assert bool(entries(tmp_path)) == bool(variables)
    if variables:
        assert entries(tmp_path / "kept")


@pytest.mark.slow
def test_the_command_line_keeps_compiled_code(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).laplace(size=(30, 4)))
    fit = ("fit", "rows.npy", "-p", 2, "--max-iter", 5, "--tol", 0, "--no-report")
    run_python(tmp_path, "-m", "noisyica", *fit, "-o", "a")
    kept = entries(tmp_path / "caches" / "noisyica")
    assert kept
    run_python(tmp_path, "-m", "noisyica", *fit, "-o", "b")
    assert entries(tmp_path / "caches" / "noisyica") == kept  # nothing was compiled again
    assert (tmp_path / "a" / "model.npz").read_bytes() == (
        tmp_path / "b" / "model.npz"
    ).read_bytes()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"NOISYICA_CACHE": "0"}, "not kept"),
        ({"XDG_CACHE_HOME": "/dev/null"}, "not kept"),
        ({"NOISYICA_CACHE": "kept"}, "kept"),
        ({"JAX_COMPILATION_CACHE_DIR": "mine"}, "mine"),
    ],
)
def test_the_command_line_can_be_told_otherwise(tmp_path, variables, expected):
    output = run_python(tmp_path, "-m", "noisyica", "info", COLUMNS="300", **variables)
    line = next(line for line in output.splitlines() if "compiled code" in line)
    folder = line.split("compiled code")[1].strip()
    assert folder == expected or folder.endswith(f"/{expected}")
    assert not (tmp_path / "caches").exists()
