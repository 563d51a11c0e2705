"""The folder of a run: what is in it, and that nothing is lost, whatever happens meanwhile."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from noisyica import Model, NoisyICA
from noisyica.app import runs
from noisyica.app.command_line import app
from noisyica.data import opening
from noisyica.fitted import Fitted
from tests.reports import read_payload, unpack
from tests.tools import some_slow

SETTINGS = ["-p", "2", "--max-iter", "60", "--tol", "0"]


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rows(n, d=12, seed=0):
    mixing = np.random.default_rng(seed).normal(size=(d, 2))
    return Model(mixing, np.arange(d), 0.1, "bg").sample(n, random_state=seed)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of rows with names, and a complete run on it."""
    folder = tmp_path_factory.mktemp("runs")
    lines = ["id," + ",".join(f"x{j}" for j in range(12))]
    lines += [f"s{i}," + ",".join(map(repr, map(float, x))) for i, x in enumerate(rows(60))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    result = call(
        "fit", folder / "rows.csv", *SETTINGS, "-o", folder / "run", "--coefficients", "csv"
    )
    assert result.exit_code == 0, result.output
    assert "Wrote" in result.output
    return folder


def readable(folder):
    """Read all files of a run's folder, except those that are not finished (.tmp)."""
    for path in folder.rglob("*"):
        if path.is_dir() or path.name.startswith(".") or path.parent.name.startswith("."):
            continue
        if path.suffix in (".npz", ".npy"):
            with open(path, "rb") as file:
                loaded = np.load(file, allow_pickle=False)
                for name in getattr(loaded, "files", []):
                    loaded[name]
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".csv":
            table = list(csv.reader(path.read_text().splitlines()))
            assert len({len(line) for line in table}) == 1
        elif path.suffix == ".html":
            assert path.read_text().rstrip().endswith("</html>")


# ---------------------------------------------------------------------------- what is there


def test_what_a_run_leaves(folder):
    run = folder / "run"
    readable(run)
    assert sorted(path.name for path in run.iterdir()) == [
        "coefficients.csv", "components", "history.csv", "model.npz", "report.html", "run.json",
    ]  # fmt: skip
    ica = NoisyICA.load(run / "model.npz")
    expected = NoisyICA(2, max_iter=60, tol=0, random_state=0, verbose=False).fit(rows(60))
    np.testing.assert_array_equal(ica.components_, expected.components_)
    history = list(csv.DictReader((run / "history.csv").read_text().splitlines()))
    assert len(history) == 60
    assert float(history[-1]["noise_variance"]) == expected.history_["noise_variance"][-1]
    assert float(history[3]["column_norms_1"]) == expected.history_["column_norms"][3, 1]
    table = list(csv.DictReader((run / "coefficients.csv").read_text().splitlines()))
    assert [line["id"] for line in table] == [f"s{i}" for i in range(60)]
    written = np.array([[float(line["component0"]), float(line["component1"])] for line in table])
    np.testing.assert_allclose(written, expected.transform(rows(60)), rtol=1e-6)
    record = json.loads((run / "run.json").read_text())
    assert record["status"] == "complete"
    assert record["settings"]["max_iter"] == 60
    assert record["shape"] == [60, 12]
    assert record["versions"]["noisyica"]


def test_components_have_one_name_and_errors(folder):
    """The same names in the estimator and in all files; the report of a table has errors."""
    run = folder / "run"
    names = NoisyICA.load(run / "model.npz").get_feature_names_out().tolist()
    assert names == ["component0", "component1"]
    for path in ("coefficients.csv", "components/components.csv"):
        table = list(csv.reader((run / path).read_text().splitlines()))
        in_file = table[0][1:] if path == "coefficients.csv" else [line[0] for line in table[2:]]
        assert in_file == names, path
    components = read_payload((run / "report.html").read_text(encoding="utf-8"))["components"]
    errors = unpack(components["errors"])
    assert errors.shape == (2, 12)
    assert (errors > 0).all()


@pytest.mark.parametrize("mean", some_slow(("shift-after", "offset-logistic"), "offset-logistic"))
def test_shifts_and_offsets_on_the_command_line(folder, tmp_path, mean):
    result = call("fit", folder / "rows.csv", *SETTINGS, "--mean", mean, "-o", tmp_path / "run")
    assert result.exit_code == 0, result.output
    learnt = NoisyICA.load(tmp_path / "run" / "model.npz")
    assert learnt.mean == mean
    assert {"shift-after": "shift", "offset-logistic": "offset_scale"}[mean] in (
        learnt.prior_.parameters
    )
    assert not learnt.mean_.any()


def test_transform_report_and_info(folder, tmp_path):
    for name in ("new.csv", "new.npz", "new.npy"):
        result = call("transform", folder / "run", folder / "rows.csv", "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
    with np.load(tmp_path / "new.npz") as file:
        assert file["ids"][3] == "s3"
        np.testing.assert_array_equal(file["coefficients"], np.load(tmp_path / "new.npy"))
    assert (tmp_path / "new.csv").read_text() == (folder / "run" / "coefficients.csv").read_text()
    assert call("report", folder / "run", "-o", tmp_path / "page.html").exit_code == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000
    for arguments, word in (
        ((folder / "run",), "complete"),
        ((folder / "run" / "model.npz",), "noise, standard deviation"),
        ((), "jaxlib"),
    ):
        result = call("info", *arguments)
        assert result.exit_code == 0, result.output
        assert word in result.output
    assert "images (extra)" in result.output
    assert "nilearn nibabel" not in " ".join(result.output.replace("(extra)", "").split())
    for extra in ("release", "neighbours", "docs", "dev"):  # they are for developers
        assert f"{extra} (extra)" not in result.output


@pytest.mark.parametrize("n_init", ["auto", "1"])
def test_the_summary_says_which_components_are_reliable(folder, tmp_path, n_init):
    options = ["-p", "2", "--max-iter", "210", "--tol", "0", "--n-init", n_init, "--no-report"]
    result = call("fit", folder / "rows.csv", *options, "-o", tmp_path / "run")
    assert result.exit_code == 0, result.output
    found = hasattr(NoisyICA.load(tmp_path / "run" / "model.npz"), "reliability_")
    assert found == (n_init == "auto")
    assert ("reliable components" in result.output) == (n_init == "auto")
    if n_init == "auto":
        assert " of 2, expected cosine" in result.output


def test_a_run_is_not_overwritten_by_mistake(folder, tmp_path):
    result = call("fit", folder / "rows.csv", *SETTINGS, "-o", folder / "run")
    assert result.exit_code == 1
    assert "holds a run already" in result.output
    (tmp_path / "mine.txt").write_text("important")
    for more in ((), ("--overwrite",)):
        result = call("fit", folder / "rows.csv", *SETTINGS, "-o", tmp_path, *more)
        assert result.exit_code == 1
        assert "is not empty" in result.output
    result = call(
        "fit",
        folder / "rows.csv",
        "-p",
        "2",
        "--prior",
        "gauss",
        "-o",
        folder / "run",
        "--overwrite",
    )
    assert result.exit_code == 1
    assert (
        call("fit", "--resume", folder / "run", "--max-iter", "9").exit_code == 1
    )  # a run has its own options
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    np.save(folder / "constant.npy", np.ones((9, 12)))
    assert (
        call("fit", folder / "constant.npy", "-o", folder / "run", "--overwrite").exit_code == 1
    )  # refused by fit: the run stays
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []
    before = (folder / "run" / "model.npz").read_bytes()
    assert call("fit", "--resume", folder / "run").exit_code == 0  # nothing left to do
    assert (folder / "run" / "model.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give either data to fit"),
        (["rows.csv", "--resume", "run"], "Give either data to fit"),
        (["rows.csv", "--prior", "gauss"], "Unknown prior 'gauss'"),
        (["rows.csv", "--algorithm", "magic"], "algorithm='magic' is not known"),
        (["rows.csv", "--init", "magic"], "init='magic' is not known"),
        (["rows.csv", "-p", "two"], "neither a number nor auto"),
        (["rows.csv", "-p", "0"], "at least 1"),
        (["rows.csv", "--n-init", "some"], "--n-init 'some' is neither a number nor auto"),
        (["rows.csv", "--n-init", "0"], "n_init must be an integer of at least 1, or 'auto'"),
        (["rows.csv", "--coefficients", "xls"], "npz, csv, parquet"),
        (["rows.csv", "--shape", "3by4"], "is not a size"),
        (["rows.csv", "--shape", "5x5"], "12"),
        (["rows.csv", "--id-column", "name"], "name"),
        (["rows.csv", "--columns", "x1,y"], "'y'"),
        (["constant.csv"], "constant"),
        (["holes.csv"], "missing|NaN|observed"),
        (["nowhere.csv"], "nowhere.csv"),
        (["--resume", "nowhere"], "not the folder of a run"),
        (["rows.csv", "-o", "rows.csv"], "is a file"),
    ],
)
def test_errors_leave_nothing(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    (folder / "constant.csv").write_text("a,b\n" + "1,2\n" * 5)
    (folder / "holes.csv").write_text("a,b\n1,\n2,\n3,\n")
    result = call(
        "fit", *([] if {"-o", "--resume"} & set(arguments) else ["-o", "new"]), *arguments
    )
    assert result.exit_code == 1, result.output
    assert any(word in " ".join(result.output.split()) for word in message.split("|")), (
        result.output
    )
    assert "Traceback" not in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (folder / "new").exists()


# ------------------------------------------------------------------------- interruptions


LONG = 20_000
"""Iterations of a fit that takes seconds, several times the time between checkpoints."""
PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from noisyica.__main__ import main
main()
"""
"""``noisyica`` as from a terminal; processes in the background may inherit to ignore Ctrl-C."""


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Data whose fit takes a few seconds, the command, and how long it takes undisturbed."""
    folder = tmp_path_factory.mktemp("long")
    np.save(folder / "rows.npy", rows(1000, 20))
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "fit",
        "rows.npy",
        "-p",
        "2",
        "--max-iter",
        str(LONG),
        "--tol",
        "0",
        "--no-report",
        "-o",
    ]
    begun = time.monotonic()
    subprocess.run([*command, "whole"], cwd=folder, check=True, capture_output=True)
    return folder, command, time.monotonic() - begun


def go_on(folder, run, command):
    """Resume, or start if nothing was left; the end is that of the undisturbed run."""
    resumed = (
        [*command[:4], "--resume", run] if (folder / run / "run.json").exists() else [*command, run]
    )
    subprocess.run(resumed, cwd=folder, check=True, capture_output=True)
    readable(folder / run)
    whole = folder / "whole"
    for name in ("model.npz", "history.csv", "coefficients.npz"):
        assert (folder / run / name).read_bytes() == (whole / name).read_bytes()
    assert {path.name for path in (folder / run).iterdir()} == {
        path.name for path in whole.iterdir()
    }


def begin(folder, run, command):
    return subprocess.Popen(
        [*command, run], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def wait_for_checkpoint(run, after=0):
    deadline, path = time.monotonic() + 60, run / runs.CHECKPOINT
    while not path.exists() or path.stat().st_mtime_ns <= after:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def killed(process, folder):
    """Kill the process: what is left can be read, and does not look complete unless it is."""
    process.kill()
    process.communicate()
    if folder.exists():
        readable(folder)
        if (folder / "run.json").exists() and runs.Record.read(folder).status == "complete":
            assert (folder / "coefficients.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize("moment", np.random.default_rng(0).uniform(0.05, 1.0, 20).round(3))
def test_killed_at_any_moment(long, moment):
    folder, command, seconds = long
    process = begin(folder, f"killed{moment}", command)
    time.sleep(moment * seconds)
    killed(process, folder / f"killed{moment}")
    go_on(folder, f"killed{moment}", command)


@pytest.mark.slow
@pytest.mark.parametrize("moment", np.random.default_rng(1).uniform(0.05, 1.0, 20).round(3))
def test_ctrl_c_at_any_moment(long, moment):
    folder, command, seconds = long
    process = begin(folder, f"stopped{moment}", command)
    time.sleep(moment * seconds)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode in (0, 130), output
    assert "Traceback" not in output
    go_on(folder, f"stopped{moment}", command)


@pytest.mark.slow
def test_ctrl_c_while_code_is_compiled(long, monkeypatch):
    """The process ends at once, though the main thread is in the compiler, and leaves nothing."""
    folder, command, _ = long
    monkeypatch.setenv("NOISYICA_CACHE", "0")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    process = begin(folder, "compiling", [*command[:-1], "--prior", "ebg", "-o"])
    deadline = time.monotonic() + 60
    while not (folder / "compiling" / "run.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "Interrupted: nothing was learnt yet.\n")
    assert not (folder / "compiling").exists()


@pytest.mark.slow
def test_two_fits_into_one_folder(long):
    """One wins, and the other says why it does not."""
    folder, command, _ = long
    processes = [begin(folder, "shared", command) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 1], outputs
    refused = outputs[[process.returncode for process in processes].index(1)]
    assert "shared is in use (process" in refused or "shared holds a run already" in refused
    go_on(folder, "shared", command)


def test_ctrl_c_and_a_kill_lose_nothing(long):
    folder, command, _ = long
    process = begin(folder, "stopped", command)
    wait_for_checkpoint(folder / "stopped")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "--resume" in output
    assert "Traceback" not in output
    assert runs.Record.read(folder / "stopped").status == "interrupted"
    assert 0 < NoisyICA.load(folder / "stopped" / "model.npz").n_iter_ < LONG
    readable(folder / "stopped")
    assert call("info", folder / "stopped").exit_code == 0
    before = (folder / "stopped" / runs.CHECKPOINT).stat().st_mtime_ns
    process = begin(folder, "stopped", [*command[:4], "--resume"])
    wait_for_checkpoint(folder / "stopped", after=before)
    killed(process, folder / "stopped")
    go_on(folder, "stopped", command)


def test_other_data_do_not_resume(long):
    folder, command, _ = long
    record = runs.Record.read(folder / "whole")
    (folder / "other").mkdir()
    np.save(folder / "moved.npy", rows(1000, 20, seed=1))
    source = runs.Source(folder / "moved.npy", {})
    record._replace(status="running", source=source).write(folder / "other")
    result = call("fit", "--resume", folder / "other")
    assert result.exit_code == 1
    assert "has changed since the run began" in " ".join(result.output.split())
    (folder / "other" / "run.json").write_text("{")
    assert "is damaged" in " ".join(call("fit", "--resume", folder / "other").output.split())
    assert os.listdir(folder / "other") == ["run.json"]


# ------------------------------------------------------------- data that are larger than memory


def write_table(folder, X, kind):
    path = folder / f"rows.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file["rows"], file["names"] = X, np.arange(len(X)) + 7
    else:
        names = [f"s{i}" for i in range(len(X))]
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        pyarrow.parquet.write_table(pyarrow.table({"id": names, **columns}), path, row_group_size=9)
    return path


def coefficients_in(path):
    with np.load(path) as file:
        return file["coefficients"], file["ids"]


@pytest.mark.parametrize("kind", ["npy", "h5", "parquet"])
def test_data_larger_than_memory_give_the_same_run(tmp_path, monkeypatch, kind):
    path = write_table(tmp_path, rows(60), kind)
    options = ["--id-column", "names"] if kind == "h5" else []
    short = ["-p", "2", "--max-iter", "20", "--tol", "0", "--n-init", "1"]
    assert call("fit", path, *options, *short, "-o", tmp_path / "whole").exit_code == 0
    monkeypatch.setattr(opening, "available_memory", lambda: 1.0)
    monkeypatch.delattr(Fitted, "standard_errors")  # they need all rows
    result = call("fit", path, *options, *short, "-o", tmp_path / "parts")
    assert result.exit_code == 0, result.output
    readable(tmp_path / "parts")
    whole, parts = (NoisyICA.load(tmp_path / run / "model.npz") for run in ("whole", "parts"))
    np.testing.assert_array_equal(parts.components_, whole.components_)
    coefficients, ids = coefficients_in(tmp_path / "whole" / "coefficients.npz")
    found = coefficients_in(tmp_path / "parts" / "coefficients.npz")
    np.testing.assert_array_equal(found[0], coefficients)
    np.testing.assert_array_equal(found[1], ids)
    records = [json.loads((tmp_path / run / "run.json").read_text()) for run in ("whole", "parts")]
    assert records[0]["fingerprint"] == records[1]["fingerprint"]
    result = call("transform", tmp_path / "parts", path, *options, "-o", tmp_path / "again.npz")
    assert result.exit_code == 0, result.output
    found = coefficients_in(tmp_path / "again.npz")
    np.testing.assert_array_equal(found[0], coefficients)
    np.testing.assert_array_equal(found[1], ids)
