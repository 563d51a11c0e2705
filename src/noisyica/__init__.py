"""noisyica: probabilistic (noisy) independent component analysis."""

from noisyica import laws, plot, priors
from noisyica.compression import Compressed, compress, decompress
from noisyica.estimator import NoisyICA
from noisyica.model import Model

__version__ = "0.1.0"
__all__ = ["Compressed", "Model", "NoisyICA", "compress", "decompress", "laws", "plot", "priors"]
