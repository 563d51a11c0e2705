"""The law of one coefficient under a prior, as pictures show it: points that have a probability of their own, and a density beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from noisyica._jax.precision import double_precision
from noisyica.laws import Law
from noisyica.model import Model
from noisyica.priors import Independent, Offset, Prior

DRAWS = 20_000
RARE = 0.002
"""Points with less probability than this are not looked for."""


class Marginal(NamedTuple):
    """What a prior says of each of p coefficients by itself."""

    atoms: np.ndarray  # (k,): points with a probability of their own
    weights: np.ndarray  # (p, k): their probabilities
    density: (
        np.ndarray
    )  # (p, m): of the rest, on the grid that was asked for; it integrates to 1 less the weights
    draws: np.ndarray  # (DRAWS, p)

    @property
    def probability_on(self) -> np.ndarray:
        """Probability that a coefficient is not zero, (p,)."""
        return 1 - self.weights[:, self.atoms == 0].sum(1)


@double_precision()
def marginal(prior: Prior, p: int, grid: np.ndarray) -> Marginal:
    """The law of each of p coefficients under the prior, its density at the points ``grid``, which are evenly spaced.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica.analysis.marginal import marginal
    >>> from noisyica.priors import BernoulliGaussian
    >>> found = marginal(BernoulliGaussian(alpha=0.3), 2, np.linspace(-3.05, 3.05, 62))
    >>> print(found.atoms, found.weights.round(3).tolist(), found.probability_on.round(3))
    [0.] [[0.7], [0.7]] [0.3 0.3]
    """
    inner = prior.prior if isinstance(prior, Offset) else prior
    draws = Model(np.zeros((1, p)), prior=inner).sample(DRAWS, random_state=0)[1]
    atoms = np.unique(np.concatenate([_repeated(column) for column in draws.T]))
    shares = (draws[:, :, None] == atoms).mean(0)
    step = grid[1] - grid[0]
    if not isinstance(
        inner, Independent
    ):  # its coefficients are not independent, but each by itself has the same law
        edges = np.append(grid, grid[-1] + step) - step / 2
        rest = draws[~np.isin(draws, atoms)]
        density = np.histogram(rest, edges)[0] / (draws.size * step)
        return Marginal(atoms, np.tile(shares.mean(0), (p, 1)), np.tile(density, (p, 1)), draws)
    beside = np.where(
        np.isin(grid, [0.0, *atoms]), grid + step / 4, grid
    )  # densities may have poles at zero
    weights, density = (np.exp(_log_density(inner, p, points)) for points in (atoms, beside))
    return Marginal(atoms, weights, density, draws)


def _repeated(values: np.ndarray) -> np.ndarray:
    found, count = np.unique(values, return_counts=True)
    return found[count > RARE * len(values)]


def _log_density(prior: Independent, p: int, points: np.ndarray) -> np.ndarray:
    """(p, m)."""
    if not points.size:
        return np.zeros((p, 0))
    prior = prior.for_components(p)
    ask: Any = jax.vmap(_ask, (0, None)) if prior.components else _ask
    return np.broadcast_to(np.asarray(ask(prior.law, points)), (p, points.size))


@jax.jit
def _ask(law: Law, points: Any) -> Any:
    return law.log_density(points)
