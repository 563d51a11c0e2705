"""The paper's experiments, run anew, with the paper's numbers beside ours.

The command ``noisyica reproduce`` runs them.

=================  ==============================================================================
module             what it does
=================  ==============================================================================
``images``         Synthetic images: errors of several methods (Tables 1 and 2).
``images_claims``  What the page of these images says of its numbers.
``mcem``           MCEM against SAEM.
``cost``           Time per iteration, and iterations to convergence (Table 3).
``components``     Models with fewer and more components than there are.
``digits``         Handwritten digits.
``faces``          Patches of faces.
``surfaces``       Anatomical surfaces, and tests between groups (Tables 4 and 5).
-----------------  ------------------------------------------------------------------------------
``common``         The options of a run, and the parts of a result.
``inputs``         The data sets, or stand-ins for them.
``published``      The paper's own numbers.
``transcription``  The paper's algorithm in plain NumPy.
``measures``       Measures of components and coefficients.
``timing``         Seconds per 1,000 iterations.
``source``         Which code computes: its digest, and its commit.
``tasks``          Runs the cases of an experiment, and remembers their results.
``drawing``        The figures.
``page``           Writes a result as a page, a table and figures.
``command``        The command ``noisyica reproduce``.
=================  ==============================================================================
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisyica.paper.common import Claim, Entry, Options, Picture, Result

NAMES = ("images", "mcem", "cost", "components", "digits", "faces", "surfaces")
"""The experiments in the order of the paper; each is a module with ``run(options) -> Result``."""

__all__ = ["NAMES", "Claim", "Entry", "Options", "Picture", "Result"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: ``noisyica --help`` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("noisyica.paper.common"), name)
