"""The random offset of a row given its coefficients: mu sees a Laplace channel (:class:`noisyica.priors.Offset`)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisyica import laws
from noisyica._jax.precision import double_precision
from noisyica.model import Model


@double_precision()
def offsets(model: Model, X: np.ndarray, beta: np.ndarray, seed: int | None = None) -> np.ndarray:
    """The posterior mean of each row's offset given its coefficients, (n,), or a draw from that posterior; 0 where the prior has none.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model
    >>> from noisyica.analysis.offsets import offsets
    >>> model = Model(np.eye(50)[:, :1], noise_variance=0.01, prior="teoff")
    >>> print(offsets(model, np.full((1, 50), 3.0), np.zeros((1, 1))).round(2))
    [3.]
    """
    if not model.prior.has_offset:
        return np.zeros(len(X))
    residual = X - beta @ model.mixing.T
    precision = np.where(np.isnan(X), 0.0, 1 / np.broadcast_to(model.noise_variance, X.shape[1:]))
    a, b = precision.sum(1), np.nansum(precision * residual, 1)
    scale = float(model.prior.offset_scale)  # type: ignore[attr-defined]
    if seed is None:
        return np.asarray(_mean(scale, a, b))
    return np.asarray(_draw(jax.random.key(seed), scale, a, b))


@jax.jit
def _mean(scale: Any, a: Any, b: Any) -> jax.Array:
    return laws.Laplace(scale).moments(a, b)[0]


@jax.jit
def _draw(key: Any, scale: Any, a: Any, b: Any) -> jax.Array:
    return laws.Laplace(scale).sample(key, jnp.asarray(a), jnp.asarray(b), b.shape)
