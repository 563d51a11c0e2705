"""noisyica: probabilistic (noisy) independent component analysis."""

from noisyica import laws, plot, priors
from noisyica.analysis.groups import GroupComparison, compare_groups
from noisyica.analysis.selection import Selection, select
from noisyica.compression import Compressed, compress, decompress
from noisyica.estimator import NoisyICA
from noisyica.model import Model
from noisyica.posterior import Posterior

__version__ = "0.1.0"
__all__ = [
    "Compressed",
    "GroupComparison",
    "Model",
    "NoisyICA",
    "Posterior",
    "Selection",
    "compare_groups",
    "compress",
    "decompress",
    "laws",
    "plot",
    "priors",
    "select",
]
