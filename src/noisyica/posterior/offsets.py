"""The random offsets of rows given their coefficients, for priors with an offset.

Given the coefficients, the posterior of a row's offset is a Gaussian tilt of its Laplace law
(:class:`noisyica.priors.Offset`), whose mean is known and which is easy to draw from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from noisyica import laws
from noisyica._jax.precision import double_precision
from noisyica.posterior.units import in_standard_units

if TYPE_CHECKING:
    from noisyica.model import Model


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
    scale = theta.prior.offset_scale
    if seed is None:
        return unit * np.asarray(_mean(scale, a, b))
    return unit * np.asarray(_draw(jax.random.key(seed), scale, a, b))


@jax.jit
def _mean(scale: Any, a: Any, b: Any) -> jax.Array:
    return laws.Laplace(scale).moments(a, b)[0]


@jax.jit
def _draw(key: Any, scale: Any, a: Any, b: Any) -> jax.Array:
    return laws.Laplace(scale).sample(key, jnp.asarray(a), jnp.asarray(b), b.shape)
