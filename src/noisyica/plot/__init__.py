"""Pictures of fitted models, with matplotlib.

Every function returns what it drew on: axes, or a figure if it drew on more than one of them.
"""

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
