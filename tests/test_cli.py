"""The command line, the pictures, and what the documents say: all of it is run."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

import noisyica
from noisyica import NoisyICA, plot
from noisyica.cli import app

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_demo(tmp_path):
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "out"), "-p", "6", "--max-iter", "150"])
    assert result.exit_code == 0, result.output
    for word in ("Noise", "alpha", "Log likelihood", "Components on in an image", "digits.png"):
        assert word in result.output
    picture = matplotlib.image.imread(tmp_path / "out" / "digits.png")
    assert picture.shape[0] > 300
    assert picture[..., :3].std() > 0.02
    assert NoisyICA.load(tmp_path / "out" / "digits.npz").components_.shape == (6, 64)


def test_demo_errors_are_one_line(tmp_path):
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path), "--prior", "nonsense", "--max-iter", "2"])
    assert result.exit_code == 1
    assert "Unknown prior 'nonsense'" in result.output
    assert "Traceback" not in result.output
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "file"), "-p", "2", "--max-iter", "2"])
    assert result.exit_code == 1
    assert "Error" in result.output


def test_version_and_help():
    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"noisyica {noisyica.__version__}"
    assert "demo" in CliRunner().invoke(app, ["--help"]).output
    assert subprocess.run([sys.executable, "-m", "noisyica", "--version"], capture_output=True, check=True).stdout.startswith(b"noisyica")


def test_overview_wants_images_that_fit():
    X = np.random.default_rng(0).normal(size=(40, 12))
    ica = NoisyICA(2, max_iter=10, tol=0, random_state=0).fit(X)
    assert plot.overview(ica, X, image_shape=(3, 4), n_rows=2)
    with pytest.raises(ValueError, match="does not hold the 12 columns"):
        plot.overview(ica, X, image_shape=(5, 5))


MODULES = [m.name for m in pkgutil.iter_modules(noisyica.__path__, "noisyica.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failures == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_python_in_documents_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for code in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
        exec(compile(code, document.name, "exec"), namespace)


def test_commands_in_readme_exist():
    commands = re.findall(r"^(make \w+|noisyica [^\n]*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {"make demo", "make test"} <= set(commands)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands:
        if command.startswith("make"):
            assert command.split()[1] in targets
        else:
            assert CliRunner().invoke(app, [command.split()[1], "--help"]).exit_code == 0


def test_versions_agree():
    text = {name: (ROOT / name).read_text() for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")}
    assert f'version = "{noisyica.__version__}"' in text["pyproject.toml"]
    assert re.search(rf"^version: ['\"]?{noisyica.__version__}", text["CITATION.cff"], re.MULTILINE)
    assert f"## [{noisyica.__version__}]" in text["CHANGELOG.md"]
