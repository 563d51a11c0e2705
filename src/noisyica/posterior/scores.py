r"""The scores of rows: derivatives of their log likelihood in the parameters, by Markov chains.

By Fisher's identity the score of a row is the posterior mean of the complete data's score, which a
Markov chain at the fitted parameters estimates. With b = (1, beta) and a change A C of (mean, A)
within the columns of A,

    score of C = u b',  u = A' Sigma^-1 (x - mean - A beta);
    score of log sigma^2 = (|x - mean - A beta|^2 / sigma^2 - d) / 2.

Where there are offsets, C has one more row, for changes along (1, .., 1). For a *full* change C of
(mean, A), which is not restricted to the columns of A, u is Sigma^-1 (x - mean - A beta).

**Student noise.** The weight w of a row is one more of its latent variables: Sigma becomes Sigma /
w, so that u and the squares are multiplied by w, and the degrees of freedom nu have the score of
w's law Gamma(nu / 2, nu / 2). We take that of log nu. All scores are linear in w and log w. Given
beta, w has the law Gamma(k, rate), k = (nu + d) / 2, whose moments are known. So w is not drawn for
them: the score at the mean is the mean of scores, and the mean of their products is that of the
means, and one more product of how the scores change with w by one standard deviation, E[w] /
sqrt(k). Log w goes with w by regression. What is left of it concerns log nu alone and varies as
much in all rows: it is taken off the complete data's information instead
(:func:`noisyica.posterior.student.dof_information`).

Scores are taken in the coordinates of a :class:`Frame`, in which the complete data's information on
each of them is about 1 per row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from noisyica._jax.arrays import cast
from noisyica.posterior.chains import blocks, chain, row_keys
from noisyica.posterior.parameters import Parameters, fitted
from noisyica.posterior.student import dof_information, dof_score
from noisyica.priors import Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array

FEW_COEFFICIENTS = 16384
"""The number of coefficients up to which code is compiled fast rather than to run fast.

With so few of them, compiling takes longer than sampling."""


class Frame(NamedTuple):
    """The coordinates in which scores are taken, and which of their products are wanted.

    They are z, with C = B z K' (r m numbers, row by row); the log noise variances, in units of
    their information, and log nu of Student noise; and the prior's parameters along the directions.
    ``groups`` has arrays (G, g), each line of which has the numbers of g coordinates.
    """

    B: Any  # (p, r), or (p + 1, r) with an offset; None for a full change: then diag(sigma)
    K: Any  # (p + 1, m)
    directions: Any  # (leaves, k), of :func:`prior_directions`
    groups: tuple[Any, ...]
    mirror: Any = None  # (d,)  if the log noise variances are :func:`reflected`


class Scores(NamedTuple):
    """Posterior means for each row (the last axis of the first three), and sums over the rows."""

    all: Any  # (q, n)  the scores of z, of the noise and of the prior
    b: Any  # (p + 1, n)  b = (1, beta)
    wb: Any  # (p + 1, n)  w b; w is 1 where the noise is normal
    bb: Any  # (m, m)  sum of w K' b b' K
    hessian: Any  # (k, k)  minus the second derivatives of the prior's log density
    products: Any  # for each array of groups, (G, g, g): the outer products of complete scores


def row_scores(
    parameters: Parameters,
    X: np.ndarray,
    weight: np.ndarray,
    frame: Frame,
    n_draws: int,
    thin: int,
    n_warmup: int,
    seed: int,
    verbose: bool,
) -> Scores:
    """Return the scores of all rows, by one chain for each row, from every ``thin``-th draw."""
    few = X.shape[0] * parameters.A.shape[1] <= FEW_COEFFICIENTS
    compiled = chain.compiled(parameters.prior.compiles_fast or few)
    options = (n_warmup, thin, jax.tree.map(jnp.asarray, frame), n_draws, "gibbs", False, _score)
    parts, first = [], 0
    for block, rows in blocks(X, verbose):
        size, n = block.x.shape[1], len(rows)
        block_weight = np.append(weight[first : first + n], np.zeros(size - n))
        block = block._replace(weight=jnp.asarray(block_weight))
        total, _ = compiled(parameters, block, row_keys(rows, seed, size), *options)
        mean = jax.tree.map(lambda part: np.asarray(part, float) / n_draws, total)
        of_rows = (part[:, :n] for part in mean[:3])
        parts.append(Scores(*of_rows, *mean[3:]))
        first += n
    summed = jax.tree.map(lambda *values: sum(values), *(part[3:] for part in parts))
    return Scores(*(np.concatenate([part[i] for part in parts], -1) for i in (0, 1, 2)), *summed)


# ------------------------------------------------------------------------------- scores at one draw


class _Noise(NamedTuple):
    """What the noise of rows says at one draw of their coefficients."""

    weight: Array  # (n,)  w, or its mean
    scores: Array  # (q, n)  of log sigma^2 and log nu, in units of their information
    change: Any  # (q, n)  by how much they differ if w does by one standard deviation
    spread: Any  # ()  that standard deviation in units of the mean; None of normal noise


def _score(
    parameters: Parameters, latent: Any, seen: Channel, block: Block, frame: Frame
) -> Scores:
    """Return the complete data's scores at one draw."""
    prior = parameters.prior
    beta, offset = prior.coefficients(latent), prior.offset(latent)
    dtype, n = beta.dtype, beta.shape[1]
    weight = block.weight.astype(dtype)
    b = jnp.concatenate([jnp.ones_like(beta[:1]), beta])
    Kb = frame.K.astype(dtype).T @ b
    residual = block.x - fitted(parameters, beta, offset, block.x.dtype)
    residual = residual / jnp.sqrt(parameters.sigma2)[..., None]  # in units of the noise
    if frame.B is None:
        u = residual.astype(dtype)
    else:
        u = seen.c - seen.c_one[:, None] * offset - seen.G @ beta
        if prior.has_offset:
            u = jnp.concatenate([u, (seen.x_one - seen.c_one @ beta - seen.one_one * offset)[None]])
        u = frame.B.astype(dtype).T @ u
    noise = _noise(parameters, residual, frame.mirror, dtype)
    of_prior = _prior_score(prior, beta, offset, frame.directions.astype(dtype)) * (weight > 0)
    of_z = (u[:, None] * (Kb * noise.weight)).reshape(-1, n)
    scores = jnp.concatenate([of_z, noise.scores, of_prior])
    products = tuple(_products(scores, weight, group) for group in frame.groups)
    if noise.spread is not None:
        change = jnp.concatenate([of_z * noise.spread, noise.change, jnp.zeros_like(of_prior)])
        more = (_products(change, weight, group) for group in frame.groups)
        products = tuple(map(jnp.add, products, more))
    return Scores(
        all=scores,
        b=b,
        wb=noise.weight * b,
        bb=((Kb * (noise.weight * weight)) @ Kb.T).astype(float),
        hessian=_prior_hessian(prior, beta, offset, weight, frame.directions.astype(dtype)),
        products=products,
    )


def _noise(parameters: Parameters, residual: Array, mirror: Any, dtype: Any) -> _Noise:
    """Return what the residuals (d, n), in units of sigma, say of the noise."""
    dof, d = parameters.dof, len(residual)
    squares = residual * residual
    q = squares.sum(0)
    w = jnp.ones_like(q) if dof is None else (dof + d) / (dof + q)
    # the complete data's information on log sigma^2 is d / 2 per row, or 1 / 2 in each column
    if parameters.sigma2.ndim:
        squares, units = reflected(w * squares, mirror), reflected(jnp.ones((d, 1)), mirror)
    else:
        squares, units = (w * q)[None] / np.sqrt(d), jnp.sqrt(jnp.ones((1, 1)) * d)
    scores = (squares - units) / np.sqrt(2.0)
    if dof is None:
        return _Noise(w.astype(dtype), scores.astype(dtype), None, None)
    root, spread = jnp.sqrt(dof_information(dof, d)), 1 / jnp.sqrt(0.5 * (dof + d))
    scores = jnp.concatenate([scores, (dof_score(dof, d, w) / root)[None]])
    change = jnp.concatenate([squares / np.sqrt(2.0), (0.5 * dof * (1 - w) / root)[None]]) * spread
    return _Noise(*(part.astype(dtype) for part in (w, scores, change, spread)))


def common_mirror(d: int) -> np.ndarray:
    """Return the unit vector (d,) of a reflection that exchanges e_1 and (1, .., 1) / sqrt(d)."""
    v = np.full(d, 1 / np.sqrt(d)) - (np.arange(d) == 0)
    return v / np.linalg.norm(v)


def reflected(values: Any, mirror: Any) -> Any:
    """Return values (d, n) in coordinates of which the first is common to all d; None is no change.

    The reflection is its own inverse.
    """
    return values if mirror is None else values - 2 * mirror[:, None] * (mirror @ values)


def _products(scores: Array, weight: Array, group: Array) -> Array:
    """Return the weighted sums of products (G, g, g) of scores that are in a group (G, g)."""
    chosen = scores[group]
    if len(group) == 1:  # one large product of matrices
        return ((chosen[0] * weight) @ chosen[0].T)[None].astype(float)
    return ((chosen * weight)[:, :, None] * chosen[:, None]).sum(-1).astype(float)


def _prior_score(prior: Any, beta: Array, offset: Array, directions: Array) -> Array:
    """Return derivatives (k, n) of each row's log density in the prior's directions."""
    if not directions.size:
        return jnp.zeros((0, beta.shape[1]), beta.dtype)

    def along(direction: Array) -> Array:
        return jax.jvp(
            lambda step: moved(prior, step * direction).log_density(beta, offset),
            (jnp.zeros((), beta.dtype),),
            (jnp.ones((), beta.dtype),),
        )[1]

    return jax.vmap(along, in_axes=1)(directions)


def _prior_hessian(
    prior: Any, beta: Array, offset: Array, weight: Array, directions: Array
) -> Array:
    """Return minus the second derivatives (k, k) of the rows' log density in the directions."""
    if not directions.size:
        return jnp.zeros((0, 0))

    def total(step: Array) -> Array:
        density = moved(prior, directions @ step).log_density(beta, offset)
        return (jnp.where(weight > 0, density, 0.0) * weight).sum()

    start = jnp.zeros(directions.shape[1], beta.dtype)
    return -jax.jacfwd(jax.grad(total))(start).astype(float)


# --------------------------------------------------------- the directions of the prior's parameters


def prior_directions(prior: Prior, p: int) -> np.ndarray:
    """Return orthonormal directions (leaves, k) in which the prior's parameters can move.

    They span the range of the derivative of its M-step, less what learning holds where it is.
    """
    prior = cast(prior, float)
    if not len(_flat(prior)):
        return np.zeros((0, 0))
    jacobian = np.asarray(jax.jit(_mstep_jacobian, static_argnames="p")(prior, p=p))
    U, values, _ = np.linalg.svd(jacobian, full_matrices=False)
    U = U[:, values > 1e-8]
    start = np.zeros(len(U))
    held = np.asarray(jax.jacfwd(lambda change: moved(prior, change).held())(start)) @ U
    if not held.size:
        return np.asarray(U)
    _, values, V = np.linalg.svd(held)
    return np.asarray(U @ V[np.count_nonzero(values > 1e-8 * values.max()) :].T)


def prior_precision(prior: Any, directions: np.ndarray, rows: float) -> np.ndarray:
    """Return the precision (k, k) of the weak prior of the prior's parameters in the directions."""
    start = np.zeros(directions.shape[1])
    if not start.size:
        return np.zeros((0, 0))
    prior = cast(prior, float)
    hessian = jax.hessian(lambda step: moved(prior, directions @ step).log_weak_prior(rows))
    return -np.asarray(hessian(start))


def moved(prior: Any, change: Any) -> Any:
    """Return the prior with ``change`` added to its leaves."""
    leaves, structure = jax.tree.flatten(prior)
    parts = jnp.split(jnp.asarray(change), np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
    new_leaves = [
        leaf + part.reshape(jnp.shape(leaf)).astype(leaf.dtype)
        for leaf, part in zip(leaves, parts, strict=True)
    ]
    return jax.tree.unflatten(structure, new_leaves)


def _mstep_jacobian(prior: Prior, p: int) -> Array:
    """Return derivatives (leaves, statistics) of the M-step, at statistics of draws from the prior.

    The statistics are in units of the largest of them.
    """
    n = 1000
    statistics = prior.statistics(prior.sample_prior(jax.random.key(0), p, n, float), jnp.ones(n))
    flat, restore = jax.flatten_util.ravel_pytree(statistics)
    if not flat.size:
        return jnp.zeros((len(_flat(prior)), 1))
    return jax.jacfwd(lambda x: _flat(prior.mstep(restore(x))))(flat) * jnp.abs(flat).max()


def _flat(prior: Prior) -> Array:
    """Return all leaves of the prior, its parameters, as one vector."""
    leaves = jax.tree.leaves(prior)
    if not leaves:
        return jnp.zeros(0)
    return jnp.concatenate([jnp.ravel(jnp.asarray(leaf, float)) for leaf in leaves])
