"""Public names say what they are in whole sentences, and are used in an example that is run.

The examples themselves are run in tests/app/test_cli.py.
"""

import doctest
import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import noisyica
from noisyica import Model, NoisyICA, data, laws, plot, priors

ROOT = Path(__file__).parents[1]


def of_ours(value):
    """Whether a class, a function, a method or a module is defined in the package."""
    name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
    return name.startswith("noisyica")


NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (noisyica, priors, laws, data, plot)
    for name in module.__all__
    if inspect.ismodule(value := getattr(module, name)) or (callable(value) and of_ours(value))
}
PROPERTIES = (property, functools.cached_property)
METHODS = {
    f"{face.__name__}.{name}": value
    for face in (Model, NoisyICA)
    for name, value in inspect.getmembers_static(face)
    if not name.startswith("_")
    and (isinstance(value, PROPERTIES) or of_ours(getattr(value, "__func__", value)))
}
NOT_FOR_ALL = {"check", "parameters"}
"""Methods of Model that are there for the package's own rooms."""


def test_the_names_are_found():
    assert {"noisyica.laws", "noisyica.select", "noisyica.priors.Laplace"} <= set(NAMES)
    assert {"NoisyICA.fit", "NoisyICA.load", "NoisyICA.model_", "Model.map"} <= set(METHODS)
    assert "NoisyICA.get_params" not in METHODS  # scikit-learn's own


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_a_docstring_begins_with_a_whole_sentence(name):
    first = inspect.cleandoc({**NAMES, **METHODS}[name].__doc__ or "").split("\n\n")[0]
    assert re.fullmatch(r"[A-Z]\S*(\s+\S+){2,}\.", first), f"{name}: {first!r}"


@pytest.fixture(scope="module")
def examples():
    """What is run as an example: in docstrings, in README.md and in docs."""
    finder, parts = doctest.DocTestFinder(), []
    for module in pkgutil.walk_packages(noisyica.__path__, "noisyica."):
        if not module.name.endswith("__main__"):
            for test in finder.find(importlib.import_module(module.name)):
                parts += [example.source for example in test.examples]
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        parts += re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return "".join(parts)


FUNCTIONS = [name for name, value in NAMES.items() if inspect.isfunction(value)]
CALLED = [name for name, value in METHODS.items() if not isinstance(value, PROPERTIES)]


@pytest.mark.parametrize("name", [*FUNCTIONS, *CALLED])
def test_an_example_calls_it(name, examples):
    last = name.rpartition(".")[2]
    if last not in NOT_FOR_ALL:
        assert re.search(rf"\b{last}\(", examples), f"no example calls {name}"
