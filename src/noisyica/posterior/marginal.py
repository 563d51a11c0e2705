"""The law of a single coefficient under a prior, as plots show it: its atoms, and a density."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import numpy as np

from noisyica._jax.arrays import cast
from noisyica._jax.precision import double_precision
from noisyica.priors import Prior

DRAWS = 20_000
"""The number of draws from the prior, for each coefficient."""
RARE = 0.002
"""The probability below which atoms are overlooked."""


class Marginal(NamedTuple):
    """The marginal law of each of p coefficients.

    Attributes
    ----------
    atoms : array (k,)
        The points that have a probability of their own.
    weights : array (p, k)
        The probabilities of the atoms.
    density : array (p, m)
        The density of the rest on the grid; it integrates to 1 less the sum of the weights.
    draws : array (DRAWS, p)
        Draws from the prior.
    """

    atoms: np.ndarray
    weights: np.ndarray
    density: np.ndarray
    draws: np.ndarray

    @property
    def probability_on(self) -> np.ndarray:
        """The probability that a coefficient is not zero, (p,)."""
        return 1 - self.weights[:, self.atoms == 0].sum(1)

    @property
    def of_each(self) -> bool:
        """Whether components have laws of their own."""
        return bool(np.ptp(self.density, 0).any() or np.ptp(self.weights, 0).any())


@double_precision()
def marginal(prior: Prior, p: int, grid: np.ndarray) -> Marginal:
    """Compute the marginal law of each of p coefficients under a prior.

    Parameters
    ----------
    prior : Prior
        Its offset, if it has one, is left out.
    p : int
        The number of components.
    grid : array (m,)
        Evenly spaced points, at which the density is computed.

    Returns
    -------
    Marginal

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica.posterior.marginal import marginal
    >>> from noisyica.priors import BernoulliGaussian
    >>> law = marginal(BernoulliGaussian(alpha=0.3), 2, np.linspace(-3.05, 3.05, 62))
    >>> print(law.atoms, law.weights.round(3).tolist(), law.probability_on.round(3))
    [0.] [[0.7], [0.7]] [0.3 0.3]
    """
    prior = prior.without_offset
    draws = np.asarray(_draws(cast(prior.for_components(p), float), p)).T
    atoms = np.unique(np.concatenate([_repeated(column) for column in draws.T]))
    step = grid[1] - grid[0]
    # a density may have a pole at zero, and at an atom there is a probability in its place
    beside_atoms = np.where(np.isin(grid, [0.0, *atoms]), grid + step / 4, grid)
    log_weights, log_density = prior.log_marginal(p, atoms), prior.log_marginal(p, beside_atoms)
    if log_weights is not None and log_density is not None:
        return Marginal(atoms, np.exp(log_weights), np.exp(log_density), draws)
    # no closed form: a histogram of the draws, all components having the same law
    shares = (draws[:, :, None] == atoms).mean((0, 1))
    edges = np.append(grid, grid[-1] + step) - step / 2
    counts = np.histogram(draws[~np.isin(draws, atoms)], edges)[0]
    density = counts / (draws.size * step)
    return Marginal(atoms, np.tile(shares, (p, 1)), np.tile(density, (p, 1)), draws)


def _repeated(values: np.ndarray) -> np.ndarray:
    """Return the values that many of the draws have in common: the atoms of their law."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct[counts > RARE * len(values)]


@functools.partial(jax.jit, static_argnames="p")
def _draws(prior: Prior, p: int) -> jax.Array:
    """Draw coefficients from the prior, (p, DRAWS)."""
    return prior.coefficients(prior.sample_prior(jax.random.key(0), p, DRAWS, float))
