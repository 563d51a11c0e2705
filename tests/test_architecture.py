"""The shape of the package: small files, arrows that point downwards, a short way through a fit."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from traceback import walk_tb

import jax.numpy as jnp
import numpy as np
import pytest

import noisyica
from noisyica import NoisyICA, laws, priors
from noisyica.laws import Law, law

ROOT = Path(__file__).parents[1]
PACKAGE = Path(noisyica.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

LINES_OF_A_MODULE, LINES_OF_A_FUNCTION, COLUMNS = 400, 50, 100
FRAMES_OF_A_FIT, FILES_OF_A_FIT = 12, 6


def name_of(module):
    return module.relative_to(PACKAGE).as_posix()


# ---- sizes


def test_modules_are_short():
    lengths = {
        name_of(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES
    }
    assert {name: n for name, n in lengths.items() if n > LINES_OF_A_MODULE} == {}


def lines_without_docstring(function):
    """Return the number of lines of a function, from its ``def`` on, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def test_functions_are_short():
    too_long = {}
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = lines_without_docstring(node)
                if lines > LINES_OF_A_FUNCTION:
                    too_long[f"{name_of(module)}: {node.name}"] = lines
    assert too_long == {}


def test_lines_are_short():
    too_long = [
        f"{name_of(module)}:{number}"
        for module in MODULES
        for number, line in enumerate(module.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > COLUMNS
    ]
    assert too_long == []


# ---- layers


def lint_imports(source):
    """Check the layers of the package in a folder; return whether they hold, and what was said."""
    pytest.importorskip("importlinter")
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--config", ROOT / "pyproject.toml", "--no-cache"]
    process = subprocess.run(
        list(map(str, command)),
        env=os.environ | {"PYTHONPATH": str(source)},
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.returncode == 0, process.stdout + process.stderr


@pytest.fixture
def copied(tmp_path):
    """A copy of the package's source, which may be changed."""
    shutil.copytree(PACKAGE, tmp_path / "noisyica", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_rooms_import_only_those_below_them(copied):
    kept, said = lint_imports(copied)
    assert kept, said
    assert "1 kept, 0 broken" in said


@pytest.mark.parametrize(
    ("lower", "upper"),
    [("laws/base.py", "estimator"), ("rows/source.py", "engine.loop"), ("model.py", "fitted")],
)
def test_an_arrow_that_points_upwards_is_noticed(copied, lower, upper):
    module = copied / "noisyica" / lower
    text = module.read_text(encoding="utf-8")
    module.write_text(f"{text}\n\nimport noisyica.{upper}\n", encoding="utf-8")
    kept, said = lint_imports(copied)
    assert not kept
    assert f"noisyica.{lower.removesuffix('.py').replace('/', '.')}" in said
    assert f"noisyica.{upper}" in said


def test_a_new_room_has_to_be_given_its_place(copied):
    (copied / "noisyica" / "attic.py").write_text('"""A room that no layer names."""\n')
    kept, said = lint_imports(copied)
    assert not kept
    assert "attic" in said


# ---- kinds of priors and laws


def concrete_kinds():
    """Return the names of the package's priors and laws, without the classes that they all have."""
    kinds = {**priors.base.REGISTRY, **laws.base.REGISTRY}
    return {
        name
        for name, kind in kinds.items()
        if kind.__module__.startswith("noisyica.") and kind not in (priors.Prior, Law)
    }


def test_only_priors_and_laws_know_their_kinds():
    """Other rooms ask a prior or a law what they want to know, and not of which class it is."""
    kinds = concrete_kinds()
    assert {"Independent", "Offset", "SingleScaleTernary", "Laplace", "Mixture"} <= kinds
    asked = []
    for module in MODULES:
        if name_of(module).startswith(("laws/", "priors/")):
            continue
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                names = {
                    part.id if isinstance(part, ast.Name) else part.attr
                    for part in ast.walk(node.args[1])
                    if isinstance(part, (ast.Name, ast.Attribute))
                }
                if names & kinds:
                    asked.append(f"{name_of(module)}:{node.lineno}: {ast.unparse(node)}")
    assert asked == []


# ---- the way from fit to a draw


class ReachedError(Exception):
    """The walk has reached its end."""


@law()
class Landmark(Law):
    """The normal law, whose draws end the walk."""

    scale: float = 1.0

    def log_density(self, t):
        return -0.5 * jnp.square(t / self.scale) - jnp.log(self.scale * jnp.sqrt(2 * jnp.pi))

    def draw(self, u, a, b):
        raise ReachedError


@pytest.fixture(scope="module")
def walk():
    """The functions of the package from ``NoisyICA.fit`` to ``Law.draw``: names and files."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ReachedError) as reached:
        NoisyICA(2, prior=Landmark(), max_iter=5, init="pca", random_state=0).fit(X)
    frames = []
    for frame, _ in walk_tb(reached.value.__traceback__):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            name = frame.f_code.co_qualname.replace("<locals>.", "")
            frames.append((name, name_of(path)))
    return frames


def test_a_draw_is_a_short_walk_away_from_fit(walk):
    assert walk[0] == ("NoisyICA.fit", "estimator.py")
    assert walk[-1][1].startswith("priors/")  # which calls the law's draw
    assert len(walk) <= FRAMES_OF_A_FIT, walk
    assert len({file for _, file in walk}) <= FILES_OF_A_FIT, walk


def test_the_walk_is_the_one_of_the_documentation(walk):
    """The page has a numbered list whose lines begin as in "1. `NoisyICA.fit` (estimator.py)"."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split("## The walk of fit\n", 1)[1].split("\n## ", 1)[0]
    listed = re.findall(r"^\d+\. `([^`]+)` \(([^)]+)\)", section, re.MULTILINE)
    assert listed == walk


# ---- linear algebra


def test_batches_of_matrices_do_not_go_through_lapack():
    """Two batched calls of LAPACK at the same time can hang on XLA:CPU (_jax/matrices.py)."""
    names = ("jnp.linalg.", "jax.scipy.linalg.", "lax.linalg.")
    users = {
        name_of(module)
        for module in MODULES
        if any(name in module.read_text(encoding="utf-8") for name in names)
    }
    # batches are taken one after the other in the first; the second does so on GPUs, for one matrix
    assert users == {"engine/regression.py", "_jax/matrices.py"}
