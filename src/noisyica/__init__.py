"""noisyica: probabilistic (noisy) independent component analysis."""

from noisyica import laws, plot, priors
from noisyica.estimator import NoisyICA
from noisyica.model import Model

__version__ = "0.1.0"
__all__ = ["Model", "NoisyICA", "laws", "plot", "priors"]
