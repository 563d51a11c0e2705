"""Priors on the coefficients of a row, and the table of their short names.

Most priors are :class:`Independent`: every coefficient has the same scalar law
(:mod:`noisyica.laws`). The ternary priors with one scale per row are not; they bring their own
latent variables and their own collapsed sampler.

A prior is immutable, a pytree whose leaves are its parameters, and knows how to draw its latent
variables given the data (through a :class:`Channel`), to summarise them in sufficient statistics,
and to re-estimate itself from those.

==================  ================================================================================
``base``            the base of all priors: :class:`Prior`, and :class:`Channel`, what it sees of x
``capabilities``    what a prior can do besides learning, and the methods that this needs
``independent``     coefficients of any scalar law: :class:`Independent`
``ridge``           coefficients by ridge regression
``pieces``          starts for the mode of independent coefficients
``named``           the paper's priors of that kind, with names for their parameters
``adaptive``        independent coefficients whose law is learnt: :class:`Adaptive`
``ternary``         signs times one scale per row: :class:`SingleScaleTernary`
``offset``          a random offset beside any prior: :class:`Offset`
``ternary_offset``  both of these: :class:`SingleScaleTernaryOffset`
``ternary_shifted``  a shift inside the scale: :class:`ShiftedSingleScaleTernary`
``shifted``         a location of all coefficients, beside any prior: :class:`Shifted`
``table``           the short names, and :func:`get`
``plain``           the form in which files hold priors: :func:`to_plain`, :func:`from_plain`
==================  ================================================================================

Examples
--------
>>> from noisyica import priors
>>> priors.get("bg")
BernoulliGaussian(alpha=0.5)
>>> from noisyica.laws import Dirac, Laplace, Mixture
>>> priors.get(Mixture((Dirac(), Laplace()), weights=(0.7, 0.3)))
Independent(law=Mixture(laws=(Dirac(location=0.0), Laplace(scale=1.0)), weights=array([0.7, 0.3])))
"""

from noisyica._jax.randomness import split, uniforms
from noisyica.priors.adaptive import Adaptive
from noisyica.priors.base import REGISTRY, Channel, Expansion, OffsetState, Prior, as_pytree
from noisyica.priors.capabilities import (
    DENSITY,
    ENUMERATION,
    EXPANSION,
    INDEPENDENCE,
    METROPOLIS,
    MODE,
    ROW_WEIGHTS,
    Capability,
)
from noisyica.priors.independent import Independent
from noisyica.priors.named import (
    BernoulliGaussian,
    ExponentialBernoulliGaussian,
    ExponentialGaussian,
    ExponentialTernary,
    GaussianMixture,
    Laplace,
    Logistic,
)
from noisyica.priors.offset import LEAST_SCALE, OFFSET_LAWS, Offset
from noisyica.priors.plain import from_plain, to_plain
from noisyica.priors.shifted import Shifted
from noisyica.priors.table import PAPER, TABLE, get
from noisyica.priors.ternary import TERNARY_STATES, SingleScaleTernary, TernaryState
from noisyica.priors.ternary_offset import SingleScaleTernaryOffset
from noisyica.priors.ternary_shifted import ShiftedSingleScaleTernary

__all__ = [
    "DENSITY",
    "ENUMERATION",
    "EXPANSION",
    "INDEPENDENCE",
    "LEAST_SCALE",
    "METROPOLIS",
    "MODE",
    "OFFSET_LAWS",
    "PAPER",
    "REGISTRY",
    "ROW_WEIGHTS",
    "TABLE",
    "TERNARY_STATES",
    "Adaptive",
    "BernoulliGaussian",
    "Capability",
    "Channel",
    "Expansion",
    "ExponentialBernoulliGaussian",
    "ExponentialGaussian",
    "ExponentialTernary",
    "GaussianMixture",
    "Independent",
    "Laplace",
    "Logistic",
    "Offset",
    "OffsetState",
    "Prior",
    "Shifted",
    "ShiftedSingleScaleTernary",
    "SingleScaleTernary",
    "SingleScaleTernaryOffset",
    "TernaryState",
    "as_pytree",
    "from_plain",
    "get",
    "split",
    "to_plain",
    "uniforms",
]
