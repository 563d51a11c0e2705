"""The random offsets of rows given their coefficients, for priors with an offset.

Given the coefficients, the posterior of a row's offset is a Gaussian tilt of its law
(:class:`noisyica.priors.Offset`), whose mean is known and which is easy to draw from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from noisyica._jax.precision import double_precision
from noisyica.laws import Law
from noisyica.posterior.units import in_standard_units

if TYPE_CHECKING:
    from noisyica.model import Model

TURNS = 20
"""The number of draws of the rows' weights (Student noise) that are kept, and of those before."""


@double_precision()
def offsets(model: Model, X: np.ndarray, beta: np.ndarray, seed: int | None = None) -> np.ndarray:
    """Compute the offset of each row given its coefficients.

    Parameters
    ----------
    model : Model
    X : array (n, d)
        Missing entries are NaN.
    beta : array (n, p)
        The coefficients of the rows.
    seed : int, optional
        The random seed of a draw from the posterior of the offsets. Without it, the answer is
        their posterior mean.

    Returns
    -------
    array (n,)
        Zeros if the prior has no offset.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model
    >>> from noisyica.posterior.offsets import offsets
    >>> model = Model(np.eye(50)[:, :1], noise_variance=0.01, prior="teoff")
    >>> print(offsets(model, np.full((1, 50), 3.0), np.zeros((1, 1))).round(2))
    [3.]
    """
    if not model.prior.has_offset:
        return np.zeros(len(X))
    theta, rows, unit = in_standard_units(model.parameters(), X)
    residual = rows[:] - beta @ np.asarray(theta.A).T
    precision = np.where(np.isnan(X), 0.0, 1 / np.broadcast_to(theta.sigma2, X.shape[1:]))
    a, b = precision.sum(1), np.nansum(precision * residual, 1)
    prior: Any = theta.prior
    law = prior.offset_law()
    if theta.dof is not None:
        w = _weights(theta, residual, precision, 0 if seed is None else seed)
        if seed is None:
            return unit * np.mean([_mean(law, a * part, b * part) for part in w], 0)
        a, b = a * w[-1], b * w[-1]
    if seed is None:
        return unit * np.asarray(_mean(law, a, b))
    return unit * np.asarray(_draw(jax.random.key(seed), law, a, b))


def _weights(
    theta: Any, residual: np.ndarray, precision: np.ndarray, seed: int
) -> list[np.ndarray]:
    """Return draws of the rows' weights under Student noise, by turns with draws of the offsets."""
    rng, dof, count = np.random.RandomState(seed), float(theta.dof), (precision > 0).sum(1)
    a, b = precision.sum(1), np.nansum(precision * residual, 1)
    squares = np.nansum(precision * np.square(residual), 1)
    offset, draws = b / a, []
    for _ in range(2 * TURNS):
        q = np.maximum(squares - offset * (2 * b - a * offset), 0.0)
        w = rng.gamma(0.5 * (dof + count)) / (0.5 * (dof + q))
        draws.append(w)
        key = jax.random.key(rng.randint(2**31 - 1))
        offset = np.asarray(_draw(key, theta.prior.offset_law(), a * w, b * w))
    return draws[TURNS:]


@jax.jit
def _mean(law: Law, a: Any, b: Any) -> jax.Array:
    return law.moments(a, b)[0]


@jax.jit
def _draw(key: Any, law: Law, a: Any, b: Any) -> jax.Array:
    return law.sample(key, jnp.asarray(a), jnp.asarray(b), b.shape)
