"""Blocks of rows made by hand, for tests of what the engine does with one block."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from noisyica.rows.block import Block


def block_of(x, weight=None, observed=None, first=0):
    """Return a block of the columns of ``x`` (d, n); weights that are not given sum to one."""
    x = jnp.asarray(x)
    n = x.shape[1]
    weight = jnp.full(n, 1 / n, x.dtype) if weight is None else jnp.asarray(weight)
    return Block(
        x=x,
        weight=weight,
        sum_x=x @ weight,
        sum_xx=jnp.square(x) @ weight,
        observed=None if observed is None else jnp.asarray(observed),
        rows=jnp.asarray(first, np.uint32),
    )
