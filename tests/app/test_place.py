"""The folder of a run as a place: links, runs that are replaced, locks, and kills on the way."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from noisyica.app.command_line import app
from noisyica.app.locking import LOCK, lock, unlock
from noisyica.app.place import REPLACED, Place
from noisyica.app.record import Record, Source

SETTINGS = ("-p", "1", "--max-iter", "5", "--tol", "0", "--no-report")


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Rows that can be fitted, and rows that a fit refuses; in the working directory."""
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(0).laplace(size=(30, 3)))
    np.save("constant.npy", np.ones((30, 3)))
    return tmp_path


def content(folder):
    """All files of a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


# ------------------------------------------------------------------------------ links and dots


@pytest.mark.parametrize("name", ["link", ".", "new/folders/run"])
def test_any_name_of_a_folder(data, monkeypatch, name):
    """Fits that are refused leave everything as it was, and say why; others replace a run."""
    if name == "link":
        (data / "elsewhere").mkdir()
        os.symlink("elsewhere", "link")
    elif name == ".":
        (data / "inside").mkdir()
        monkeypatch.chdir(data / "inside")
    before = sorted(path.relative_to(data) for path in data.rglob("*"))
    result = call("fit", data / "constant.npy", *SETTINGS, "-o", name)
    assert result.exit_code == 1
    assert "X is constant" in result.output
    assert sorted(path.relative_to(data) for path in data.rglob("*")) == before
    for more in ((), ("--overwrite",), ("--overwrite", "--seed", "1")):
        result = call("fit", data / "rows.npy", *SETTINGS, "-o", name, *more)
        assert result.exit_code == 0, result.output
    assert Record.read(Path(name)).settings["random_state"] == 1
    made = content(name)
    assert not any(path.startswith(".") for path in made)
    result = call("fit", data / "constant.npy", *SETTINGS, "-o", name, "--overwrite")
    assert "X is constant" in result.output
    assert content(name) == made


def test_maps_of_the_user_are_not_those_of_a_run(data):
    assert call("fit", "rows.npy", *SETTINGS, "-o", "run").exit_code == 0
    (data / "run" / "maps-mine.nii.gz").write_bytes(b"mine")
    result = call("fit", "rows.npy", *SETTINGS, "-o", "run", "--overwrite")
    assert result.exit_code == 1
    assert (data / "run" / "maps-mine.nii.gz").read_bytes() == b"mine"


def test_a_link_to_nothing(data):
    os.symlink("nowhere", "link")
    result = call("fit", "rows.npy", *SETTINGS, "-o", "link")
    assert result.exit_code == 1
    assert "link to nowhere, which does not exist" in result.output
    assert os.readlink("link") == "nowhere"


# ----------------------------------------------------------------------------- replacing a run


class Killed(BaseException):
    """Stands for the end of the process: nothing is done after it."""


def record(seed):
    return Record(
        status="running",
        source=Source(Path("rows.npy"), {}),
        settings={"random_state": seed},
        table="npz",
        page=False,
        shape=(30, 3),
        fingerprint="",
        begun="",
        versions={},
    )


def old_run(folder):
    """A complete run with seed 0, and its files."""
    (folder / "components").mkdir(parents=True)
    record(0)._replace(status="complete").write(folder)
    for name in ("model.npz", "history.csv", "coefficients.npz", "components/components.csv"):
        (folder / name).write_text(f"old {name}")
    return content(folder)


def killed_after(steps, monkeypatch):
    """Let the process be killed after so many files were moved or removed."""
    count = [steps]
    for name in ("rename", "unlink", "mkdir", "rmdir"):
        method = getattr(Path, name)

        def step(self, *args, method=method, **more):
            if count[0] == 0:
                raise Killed
            count[0] -= 1
            return method(self, *args, **more)

        monkeypatch.setattr(Path, name, step)


@pytest.mark.parametrize("steps", range(20))
def test_killed_while_a_run_is_replaced_or_put_back(tmp_path, monkeypatch, steps):
    """The old run is whole after all, or the new one can continue, whenever the process ends."""
    run = tmp_path / "run"
    old = old_run(run)
    here, held = Place(run), lock(run)  # not as a context manager: nothing cleans up after a kill
    killed_after(steps, monkeypatch)
    with contextlib.suppress(Killed):
        here.refuse_occupied(overwrite=True)
        here.begin(record(1))
        here._settle()  # nothing was learnt: the old run is put back
    monkeypatch.undo()
    held.close()
    with Place(run) as there:
        seed = there.resume().settings["random_state"]
        if seed == 0:
            assert content(run).keys() - {LOCK} == old.keys()
    with Place(run) as there:  # or somebody starts a new run
        there.refuse_occupied(overwrite=True)
        assert {name: text for name, text in content(run).items() if name != LOCK} == old
    assert content(run) == old


def test_what_was_learnt_replaces_the_old_run(tmp_path):
    old_run(tmp_path / "run")
    with Place(tmp_path / "run") as here:
        here.refuse_occupied(overwrite=True)
        here.begin(record(1))
        assert (here.folder / REPLACED / "model.npz").exists()
        (here.folder / "checkpoint.npz").write_text("new")
    assert content(tmp_path / "run").keys() == {"run.json", "checkpoint.npz"}
    assert Record.read(tmp_path / "run").settings["random_state"] == 1


# --------------------------------------------------------------------------------------- locks

HOLDER = """
import sys, time
from pathlib import Path
from noisyica.app.locking import lock

try:
    held = lock(Path(sys.argv[1]))
except ValueError as error:
    sys.exit(str(error))
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def holder(folder, seconds):
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_lock_says_who_has_it_and_ends_with_its_process(data):
    process = holder("run", 60)
    assert process.stdout.readline() == "held\n"
    result = call("fit", "rows.npy", *SETTINGS, "-o", "run")
    assert result.exit_code == 1
    assert f"run is in use (process {process.pid} on " in result.output
    os.symlink("run", "link")  # the same folder by another name
    assert "is in use" in call("fit", "rows.npy", *SETTINGS, "-o", "link").output
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert os.listdir("run") == [LOCK]
    result = call("fit", "rows.npy", *SETTINGS, "-o", "run")
    assert result.exit_code == 0, result.output
    assert LOCK not in os.listdir("run")


def test_one_of_many_processes_gets_the_lock(tmp_path):
    processes = [holder(tmp_path / "run", 5) for _ in range(6)]
    outputs = [process.communicate() for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 1, 1, 1, 1, 1]
    assert sum("is in use" in errors for _, errors in outputs) == 5


def test_a_lock_that_was_removed_is_made_again(tmp_path):
    """Who waited at a file that is gone has locked nothing."""
    first = lock(tmp_path)
    late = (tmp_path / LOCK).open("a+")
    unlock(tmp_path, first)
    second = lock(tmp_path)
    assert not os.path.samestat(os.fstat(late.fileno()), (tmp_path / LOCK).stat())
    late.close()
    with pytest.raises(ValueError, match="is in use"):
        lock(tmp_path)
    unlock(tmp_path, second)
    assert not list(tmp_path.iterdir())
