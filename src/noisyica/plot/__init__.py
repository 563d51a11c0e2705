"""Pictures of fitted models, with matplotlib; every function returns the axes, or the figure of several, that it drew on."""

from noisyica.plot.fits import activation, convergence, selection, stability
from noisyica.plot.rows import components, overview, reconstruction

__all__ = [
    "activation",
    "components",
    "convergence",
    "overview",
    "reconstruction",
    "selection",
    "stability",
]
