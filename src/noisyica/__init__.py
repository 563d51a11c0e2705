"""noisyica: probabilistic (noisy) independent component analysis.

Each public name is imported from its module when it is first asked for, so that ``import noisyica``
and ``noisyica --help`` do not have to wait for JAX, scikit-learn and matplotlib.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # type checkers take it for true; the module typing takes time to import
if TYPE_CHECKING:
    from typing import Any

    from noisyica import data as data
    from noisyica import eeg as eeg
    from noisyica import laws, plot, priors
    from noisyica import neuro as neuro
    from noisyica import omics as omics
    from noisyica import report as report
    from noisyica._jax.cache import keep_compiled
    from noisyica.analysis.comparison import GroupComparison
    from noisyica.analysis.consensus import Consensus, consensus
    from noisyica.analysis.groups import compare_groups
    from noisyica.analysis.selection import Selection, select
    from noisyica.compression import Compressed, compress, decompress
    from noisyica.estimator import NoisyICA
    from noisyica.model import Model
    from noisyica.posterior import Posterior
    from noisyica.rows.neighbours import Smooth

__version__ = "0.1.0"
__all__ = [
    "Compressed",
    "Consensus",
    "GroupComparison",
    "Model",
    "NoisyICA",
    "Posterior",
    "Selection",
    "Smooth",
    "compare_groups",
    "compress",
    "consensus",
    "decompress",
    "keep_compiled",
    "laws",
    "plot",
    "priors",
    "select",
]

_MODULE_OF_NAME = {
    "Compressed": "noisyica.compression",
    "Consensus": "noisyica.analysis.consensus",
    "GroupComparison": "noisyica.analysis.comparison",
    "Model": "noisyica.model",
    "NoisyICA": "noisyica.estimator",
    "Posterior": "noisyica.posterior",
    "Selection": "noisyica.analysis.selection",
    "Smooth": "noisyica.rows.neighbours",
    "compare_groups": "noisyica.analysis.groups",
    "compress": "noisyica.compression",
    "consensus": "noisyica.analysis.consensus",
    "decompress": "noisyica.compression",
    "keep_compiled": "noisyica._jax.cache",
    "select": "noisyica.analysis.selection",
}
"""The module that each public class and function is imported from."""

_PUBLIC_MODULES = ("data", "eeg", "laws", "neuro", "omics", "plot", "priors", "report")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for; Python calls this for unknown names only."""
    if name in _MODULE_OF_NAME:
        value = getattr(importlib.import_module(_MODULE_OF_NAME[name]), name)
    elif name in _PUBLIC_MODULES:
        value = importlib.import_module(f"noisyica.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The names that completion offers, whether they have been imported already or not."""
    return sorted({*globals(), *_MODULE_OF_NAME, *_PUBLIC_MODULES})
