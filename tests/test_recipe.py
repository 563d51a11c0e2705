"""The recipe for conda says what pyproject.toml says."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml  # Dask needs it

ROOT = Path(__file__).parents[1]
NAMES_OF_CONDA = {"matplotlib": "matplotlib-base"}
"""What conda-forge calls a package that is enough for us, where PyPI has another name."""


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def recipe():
    """The recipe, with the values of its context filled in."""
    text = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    context = yaml.safe_load(text)["context"]
    return yaml.safe_load(re.sub(r"\$\{\{ (\w+) \}\}", lambda x: context.get(x[1], x[0]), text))


def as_conda_has_it(requirement):
    """Return a requirement such as "numpy>=2.0" with the name that conda has, and a space."""
    name, version = re.fullmatch(r"([\w-]+)(>=[\d.]+)", requirement).groups()
    return f"{NAMES_OF_CONDA.get(name, name)} {version}"


def test_it_needs_the_same_to_run(recipe, project):
    needed = [f"python {project['project']['requires-python']}"]
    needed += [as_conda_has_it(x) for x in project["project"]["dependencies"]]
    assert recipe["requirements"]["run"] == needed


def test_it_needs_the_same_to_build(recipe, project):
    needed = {as_conda_has_it(x) for x in project["build-system"]["requires"]}
    assert needed < set(recipe["requirements"]["host"])


def test_it_describes_the_same_package(recipe, project):
    metadata = project["project"]
    assert recipe["package"] == {"name": metadata["name"], "version": metadata["version"]}
    assert recipe["about"]["license"] == metadata["license"]
    scripts = [f"{name} = {target}" for name, target in metadata["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
