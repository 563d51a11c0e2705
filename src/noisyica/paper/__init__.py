"""The experiments of the paper that the library builds on, each with the paper's own figures beside ours: ``noisyica reproduce``."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisyica.paper.common import Claim, Entry, Picture, Result, Settings

NAMES = ("images", "mcem", "cost", "components", "digits", "faces", "surfaces")
"""The experiments, in the order of the paper. Each is a module with a function ``run(settings) -> Result``."""

__all__ = ["NAMES", "Claim", "Entry", "Picture", "Result", "Settings"]


def __getattr__(name: str) -> Any:
    """Import what is public when it is first asked for: ``noisyica --help`` needs the names only."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("noisyica.paper.common"), name)
