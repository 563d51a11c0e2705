r"""Scalar laws: how a coefficient behaves when its prior is multiplied by a Gaussian likelihood.

Given all the other coefficients, the data see coefficient j of a row only through a factor
``exp(-a t^2 / 2 + b t)``. A *law* is a distribution on the line that can answer every question
about itself after such a *tilt*:

============================  ===================================================================
``law.log_normaliser(a, b)``  log of  int exp(-a t^2 / 2 + b t) law(dt)
``law.moments(a, b)``         mean and variance of the tilted law (derivatives in b of the above)
``law.draw(u, a, b)``         an exact draw, a function of ``law.n_uniforms`` uniforms
``law.sample(key, a, b)``     the same from a JAX key
``law.mode(a, b)``            the most probable value of the hidden variables, as in the paper
============================  ===================================================================

``a = b = 0`` is the law itself. Laws are immutable, and pytrees whose leaves are the parameters.
A new law needs a log density only: see :class:`Law`.

======================  ===========================================================================
``base``                the base of all laws, :class:`Law`, and the decorator :func:`law`
``integration``         numerical answers, from nothing but a log density
``atoms``               laws with answers in closed form: :class:`Dirac`, :class:`Normal`,
                        :class:`FreeNormal`, :class:`Exponential`, :class:`Laplace`
``grids``               randomly shifted grids, for exact draws where there is no closed form
``logistic``            :class:`Logistic`, on such a grid
``exponential_normal``  :class:`ExponentialNormal`, on such a grid
``numerical``           numerical laws: a density given as a function, :class:`LogDensity`, and
                        random scales, :class:`ScaleMixture`; :class:`Tabulated` is what files hold
                        of the first
``moved``               the base of laws that are made of another one: :class:`Moved`
``shift``               a law moved: :class:`Shift`, and :class:`Located`, whose location is learnt
``scale``               a law stretched, for entries of the mixing matrix: :class:`Scaled`
``mixtures``            weights that are learnt: :class:`Mixture`
``symmetric_normals``   mixtures of normals in pairs: :class:`SymmetricNormals`
``normal_scales``       mixtures of normals on a grid of scales: :class:`NormalScales`
======================  ===========================================================================

Examples
--------
A spike at zero and a Laplace slab, its weight to be learnt:

>>> from noisyica.laws import Dirac, Laplace, Mixture
>>> law = Mixture((Dirac(), Laplace()), weights=(0.7, 0.3))
>>> mean, variance = law.moments(4.0, 2.0)
>>> print(f"{float(mean):.3f}")
0.074
"""

from noisyica.laws.atoms import Dirac, Exponential, FreeNormal, Laplace, Normal
from noisyica.laws.base import REGISTRY, Classes, Law, Piece, Uniforms, law
from noisyica.laws.exponential_normal import ExponentialNormal
from noisyica.laws.logistic import Logistic
from noisyica.laws.mixtures import Mixture, keep_inside
from noisyica.laws.normal_scales import NormalScales
from noisyica.laws.numerical import LogDensity, ScaleMixture, Tabulated
from noisyica.laws.scale import Scaled
from noisyica.laws.shift import FIRST_LOCATION, Located, Shift
from noisyica.laws.symmetric_normals import SymmetricNormals

__all__ = [
    "FIRST_LOCATION",
    "REGISTRY",
    "Classes",
    "Dirac",
    "Exponential",
    "ExponentialNormal",
    "FreeNormal",
    "Laplace",
    "Law",
    "Located",
    "LogDensity",
    "Logistic",
    "Mixture",
    "Normal",
    "NormalScales",
    "Piece",
    "ScaleMixture",
    "Scaled",
    "Shift",
    "SymmetricNormals",
    "Tabulated",
    "Uniforms",
    "keep_inside",
    "law",
]
