"""Models and rows to compress."""

import numpy as np

from noisyica import Model
from tests.tools import TRUE_PRIORS


def simulate(name, n, d, p, sigma=0.3, seed=0):
    """Return a model and rows of it: coefficients are sparse, or signs times one scale per row.

    (``Model.sample`` would be compiled for each shape.)
    """
    rng = np.random.default_rng(seed)
    prior = TRUE_PRIORS[name] if isinstance(name, str) else name
    model = Model(
        rng.normal(size=(d, p)), None if prior.has_offset else rng.normal(size=d), sigma**2, prior
    )
    beta = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.4)
    if prior.single_scale:
        beta = np.sign(beta) * rng.exponential(size=(n, 1))
    offset = rng.laplace(size=(n, 1)) * prior.has_offset
    return model, model.mean + offset + beta @ model.mixing.T + sigma * rng.normal(size=(n, d))
