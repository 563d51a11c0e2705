"""The parameters of the model, and what rows say of their coefficients given these."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisyica._jax.randomness import Key, uniforms
from noisyica._jax.special import normal_quantile
from noisyica._jax.xla import pad_columns, repeat_rows
from noisyica.priors import Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array


class Parameters(NamedTuple):
    """The parameters of the model (theta): everything that is learnt."""

    A: Array  # (d, p)
    mean: Array  # (d,)
    sigma2: Array  # () or, for diagonal noise, (d,)
    prior: Prior
    mixing: Any = None  # what is learnt of the prior of A, where A is hidden
    dof: Any = None  # () the degrees of freedom of Student noise; None for normal noise


def unshifted(parameters: Parameters) -> Parameters:
    """Return the parameters of the same rows with a mean in place of a shift of all coefficients.

    The coefficients are then those before the shift.
    """
    prior, by = parameters.prior.unshifted
    if prior is parameters.prior:
        return parameters
    return parameters._replace(mean=parameters.mean + by * parameters.A.sum(1), prior=prior)


def channel(parameters: Parameters, x: Array, squares: Any = None) -> Channel:
    """Return what the likelihood says of the coefficients of rows ``x`` (d, n), in their dtype.

    With Student noise ``squares`` may give the squares of x, as a block of rows has them.
    """
    A, mean, sigma2, prior, _, dof = parameters
    dtype = x.dtype
    d, p = A.shape
    scaled = A / sigma2[..., None]
    # with Student noise the mean joins the product, for the squares of x - mean
    columns = scaled if dof is None else jnp.concatenate([scaled, (mean / sigma2)[:, None]], 1)
    products = pad_columns(columns).astype(dtype).T @ x
    c_one, x_one = jnp.zeros((p,), dtype), jnp.zeros(x.shape[1:], dtype)
    one_one = jnp.zeros((), dtype)
    if prior.has_offset:
        inverse = jnp.broadcast_to(1 / sigma2, (d,))
        c_one, one_one = scaled.sum(0).astype(dtype), inverse.sum().astype(dtype)
        x_one = (repeat_rows(inverse.astype(dtype)) @ x)[0] - (inverse @ mean).astype(dtype)
    c = products[:p] - (scaled.T @ mean).astype(dtype)[:, None]
    seen = Channel((A.T @ scaled).astype(dtype), c, c_one, x_one, one_one)
    return (
        seen if dof is None else seen._replace(square=_square(parameters, x, squares, products[p]))
    )


def _square(parameters: Parameters, x: Array, squares: Any, products: Array) -> Array:
    """Return the sum of squares of x - mean in units of the noise variance, of each row (n,).

    ``products`` (n,) are those of x with the mean, in these units; ``squares`` are those of x, if
    they are known: of all columns together (1, n), which will do for equal noise, or of each.
    """
    mean, sigma2, dtype = parameters.mean, parameters.sigma2, x.dtype
    inverse = (1 / sigma2).astype(dtype)
    if squares is None:
        of_x = (jnp.square(x) * inverse[..., None]).sum(0)
    else:
        of_x = inverse @ squares if sigma2.ndim else squares.sum(0) * inverse
    return of_x - 2 * products + (mean @ (mean / sigma2)).astype(dtype)


def row_channel(parameters: Parameters, x: Array, observed: Array) -> Channel:
    """Return the channel of one row (d,), the noise of its missing entries being infinite."""
    noise = jnp.where(observed, parameters.sigma2, jnp.inf)
    return channel(parameters._replace(sigma2=noise), x[:, None])


def fitted(parameters: Parameters, beta: Array, offset: Array, dtype: Any) -> Array:
    """Return mean + A beta + offset, (d, n)."""
    A = pad_columns(parameters.A).astype(dtype)
    products = A @ pad_columns(beta, axis=0).astype(dtype)
    return products + parameters.mean.astype(dtype)[:, None] + offset.astype(dtype)


def impute(
    key: Key, parameters: Parameters, latent: Any, block: Block, weight: Any = None
) -> Block:
    """Return the block with its missing entries drawn given the latent variables.

    ``weight`` (n,) divides the noise variance of each row, if there is one.
    """
    prior, dtype = parameters.prior, block.x.dtype
    (u,) = uniforms(key, 1, block.x.shape, jnp.float32)
    sigma = jnp.sqrt(parameters.sigma2).astype(dtype)
    fit = fitted(parameters, prior.coefficients(latent), prior.offset(latent), dtype)
    noise = sigma[..., None] * normal_quantile(u).astype(dtype)
    drawn = fit + (noise if weight is None else noise / jnp.sqrt(weight).astype(dtype))
    x = jnp.where(block.observed, block.x, drawn)
    weights = repeat_rows(block.weight.astype(dtype))
    sum_x, sum_xx = ((y @ weights.T)[:, 0].astype(float) for y in (x, x * x))
    return block._replace(x=x, sum_x=sum_x, sum_xx=sum_xx)
