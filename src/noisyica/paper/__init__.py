"""The experiments of the paper that the library builds on, each with the paper's own figures beside ours: ``noisyica reproduce``."""

from noisyica.paper.common import Claim, Entry, Picture, Result, Settings

NAMES = ("images", "mcem", "cost", "components", "digits", "faces", "surfaces")
"""The experiments, in the order of the paper. Each is a module with a function ``run(settings) -> Result``."""

__all__ = ["NAMES", "Claim", "Entry", "Picture", "Result", "Settings"]
