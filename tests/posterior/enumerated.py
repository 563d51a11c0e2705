"""Priors whose discrete variables can be enumerated, and small problems with them."""

import jax.numpy as jnp
import numpy as np

from noisyica.engine.statistics import without_offset
from noisyica.laws import Dirac, Mixture, Normal, SymmetricNormals
from noisyica.posterior import enumeration
from noisyica.posterior.parameters import Parameters
from noisyica.priors import BernoulliGaussian, GaussianMixture, Independent, SingleScaleTernary
from tests.blocks import block_of

NORMALS = {
    "bg": (BernoulliGaussian(0.3), [(0.7, 0.0, 0.0), (0.3, 0.0, 1.0)]),
    "bg-shift": (BernoulliGaussian(0.4, 1.5).shifted(), [(0.6, 0.0, 0.0), (0.4, 1.5, 1.0)]),
    "ifa": (
        GaussianMixture((2.5,), (0.4, 0.6)),
        [(0.4, 0.0, 1.0), (0.3, 2.5, 1.0), (0.3, -2.5, 1.0)],
    ),
    "ifa-two": (
        Independent(SymmetricNormals((1.0, 3.0), (0.2, 0.5, 0.3))),
        [(0.2, 0.0, 1.0), (0.25, 1.0, 1.0), (0.25, -1.0, 1.0), (0.15, 3.0, 1.0), (0.15, -3.0, 1.0)],
    ),
    "composed": (
        Independent(Mixture((Normal(-1.0, 0.7), Dirac(0.5), Normal(2.0, 1.3)), (0.2, 0.5, 0.3))),
        [(0.2, -1.0, 0.7), (0.5, 0.5, 0.0), (0.3, 2.0, 1.3)],
    ),
    "nested": (
        Independent(Mixture((Dirac(), SymmetricNormals((1.5,), (0.4, 0.6))), (0.5, 0.5))),
        [(0.5, 0.0, 0.0), (0.2, 0.0, 1.0), (0.15, 1.5, 1.0), (0.15, -1.5, 1.0)],
    ),
    "normal": (Independent(Normal(0.6, 1.2)), [(1.0, 0.6, 1.2)]),
}
"""Each prior with its classes: (weight, mean, scale)."""

PRIORS = {name: prior for name, (prior, _) in NORMALS.items()} | {"te": SingleScaleTernary(0.2)}


def problem(prior, p, n=6, d=4, sigma=0.6, seed=0):
    """Return parameters, and a block of rows with unequal weights from near them.

    The usual shape is common to most tests, which share what is compiled.
    """
    rng = np.random.default_rng(seed)
    A, mean = rng.normal(size=(d, p)), rng.normal(size=d)
    x = mean[:, None] + A @ rng.normal(scale=1.5, size=(p, n)) + sigma * rng.normal(size=(d, n))
    weight = rng.dirichlet(np.ones(n))
    return Parameters(jnp.array(A), jnp.array(mean), jnp.array(sigma**2), prior), block_of(
        x, weight
    )


def expected_statistics(parameters, block):
    """Return the expected statistics of a block, as EM takes them, and log p(x) of each row."""
    moments, log_p = enumeration.expectation(parameters, block.x, block.weight)
    return without_offset(block, *moments), log_p
