"""The reference of the documentation, in docs/api, has all public names, and no others."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from noisyica import Model, NoisyICA
from tests.test_docstrings import METHODS, NOT_FOR_ALL

PAGES = Path(__file__).parents[1] / "docs" / "api"
MODULES = ("", "data", "eeg", "laws", "neuro", "omics", "plot", "priors")


def listed():
    """The names that the pages list, from the package's own names downwards."""
    names = set()
    for page in PAGES.glob("*.md"):
        for block in re.findall(r"```{eval-rst}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            module = re.search(r"currentmodule:: noisyica\.?(.*)", block)
            names |= {
                f"{module[1]}.{name}".strip(".")
                for name in re.findall(r"^   ([\w.]+)$", block, re.MULTILINE)
                if module
            }
            for full in re.findall(r"(?:autodata|py:data):: noisyica\.([\w.]+)", block):
                names.add(f"{full.split('.')[0]}.{full.split('.')[-1]}")
    return names


def public(module):
    """The names of a module's ``__all__``; of the package, those that are not modules."""
    room = importlib.import_module(f"noisyica.{module}".rstrip("."))
    names = (name for name in room.__all__ if not inspect.ismodule(getattr(room, name)))
    return {f"{module}.{name}".strip(".") for name in names}


def members(face):
    """The methods and properties of a class that are for all, as in tests/test_docstrings.py."""
    names = (name for name in METHODS if name.startswith(f"{face.__name__}."))
    return {name for name in names if name.rpartition(".")[2] not in NOT_FOR_ALL}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    names = public(module)
    assert names
    assert names - listed() == set()


@pytest.mark.parametrize("face", [NoisyICA, Model])
def test_every_method_is_in_the_reference(face):
    names = members(face)
    assert f"{face.__name__}.sample" in names
    assert names - listed() == set()


def test_the_reference_has_no_other_names():
    known = set.union(*map(public, MODULES), members(NoisyICA), members(Model))
    assert listed() - known == set()


def test_every_page_of_the_reference_is_listed():
    pages = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    index = (PAGES / "index.md").read_text("utf-8")
    assert set(re.findall(r"^(\w+)$", index.split("{toctree}")[1], re.MULTILINE)) == pages
