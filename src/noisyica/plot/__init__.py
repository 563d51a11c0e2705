"""Pictures of fitted models, with matplotlib.

Every function returns what it drew on: axes, or a figure if it drew on more than one of them. New
figures belong to pyplot: notebooks show them, and so does ``plt.show()``. ``plt.close(figure)``
frees the memory of one that is not needed any more.
"""

from noisyica.plot.classes import coefficients
from noisyica.plot.densities import density
from noisyica.plot.fits import activation, convergence, selection, stability
from noisyica.plot.groups import groups
from noisyica.plot.rows import components, overview, reconstruction

__all__ = [
    "activation",
    "coefficients",
    "components",
    "convergence",
    "density",
    "groups",
    "overview",
    "reconstruction",
    "selection",
    "stability",
]
