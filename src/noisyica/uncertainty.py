r"""Standard errors of what was learnt, from the information that the observed rows hold.

By Fisher's identity the score of a row is the posterior mean of the complete data's score, so a Markov chain at the fitted parameters
estimates it, and the sum over rows of its outer products is the information (Louis, 1982, is the same matrix by another route). Two
independent chains, one for each factor of the product, leave no Monte-Carlo bias.

**Which parameters hang together.** Write a change of (mean, A) as A C + D, with D orthogonal to A's columns in the noise's metric, and
b = (1, beta). What a row says of D is r b' / sigma^2, r being the part of x orthogonal to A: independent of beta, with mean zero. Hence
D is uncorrelated with everything else, and its information is that of a regression on the posterior means of b. The rest, the p (p + 1)
entries of C (a row more where there are offsets), log sigma^2 and the prior's parameters, is estimated jointly, from p numbers a row:

    score of C = u b',  u = A' Sigma^-1 (x - mean - A beta);        score of log sigma^2 = (|x - mean - A beta|^2 / sigma^2 - d) / 2.

The complete data's information is block diagonal and known in closed form (A' Sigma^-1 A with E[b b'], d / 2, and the prior's own).
In its units the observed information is the share of it that the rows keep, a matrix between 0 and 1.

Where A is hidden, the precision of its prior is added, and the standard errors are its posterior's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from noisyica._array import cast
from noisyica.model import Model, blocks, chain, row_keys
from noisyica.priors import Channel, Prior
from noisyica.statistics import Block, Parameters, fitted

Array = jax.Array
LEAST_SHARE = 1e-4
"""The least share of the complete data's information that is believed: less is noise of the estimate."""
JOINT = 40
"""Up to so many components, all of C is estimated jointly; beyond, entries (i, j) and (j, i) only."""
SMALL = 16384
"""Up to so many coefficients, compiling takes longer than sampling, and is done quickly."""
NUMBERS = 2e7
"""Most numbers to keep of the scores: of larger data a random part of the rows is taken."""


class Scores(NamedTuple):
    """Posterior means a row (the last axis of the first four), and sums over the rows."""

    C: Any  # (p, p + 1, n); (p + 1, p + 1, n) with an offset; (d, p + 1, n) where C is everything
    noise: Any  # (1, n), or (d, n) for diagonal noise
    prior: Any  # (k, n)
    b: Any  # (p + 1, n)
    bb: Any  # (p + 1, p + 1)
    squares: Any  # (k, k)  of the prior's scores


def standard_errors(
    model: Model,
    X: np.ndarray,
    weight: np.ndarray | None = None,
    free_mean: bool = True,
    hidden: bool = False,
    n_draws: int = 100,
    n_warmup: int = 50,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Standard errors by name: "components" (p, d), "mixing" (d, p), "mean" (d,), "noise_variance", and the prior's parameters.

    Parameters
    ----------
    model : Model
        With the parameters learnt from X.
    X : array (n, d)
    weight : array (n,), optional
        How many rows each counts for.
    free_mean : bool
        Whether the mean was learnt.
    hidden : bool
        Whether A was (``mixing_prior="normal"``).
    n_draws, n_warmup : int
        Sweeps of each of the two chains, and those before them.
    seed : int
    """
    with jax.enable_x64(True):
        d, p = model.mixing.shape
        numbers = p * (p + 1) + 2 * p + (d if np.ndim(model.noise_variance) else 1)
        rng = np.random.RandomState(seed)
        count = min(len(X), max(200, int(NUMBERS / numbers)))
        share, total = (None, len(X)) if weight is None else (weight / weight.sum(), weight.sum())
        rows = X[rng.choice(len(X), count, replace=weight is not None, p=share)]
        directions = _directions(model.prior, p)
        chains = [_scores(model, rows, directions, n_draws, n_warmup, seed + i) for i in (1, 2)]
        return _errors(model, free_mean, hidden, chains, directions, total / count, 1 - np.isnan(rows).mean(0))


def _directions(prior: Prior, p: int) -> np.ndarray:
    """Orthonormal directions (leaves, k) in which the prior's parameters can move: the range of the derivative of its M-step."""
    prior = cast(prior, float)
    if not len(_flat(prior)):
        return np.zeros((0, 0))
    jacobian = np.asarray(jax.jit(_mstep_jacobian, static_argnames="p")(prior, p=p))
    U, values, _ = np.linalg.svd(jacobian, full_matrices=False)
    return np.asarray(U[:, values > 1e-8])


def _mstep_jacobian(prior: Prior, p: int) -> Array:
    """Derivatives (leaves, statistics) of the M-step, at the statistics of draws from the prior, each in units of the largest."""
    n = 1000
    statistics = prior.statistics(prior.start(jax.random.key(0), p, n, float), jnp.full((n,), 1 / n))
    flat, restore = jax.flatten_util.ravel_pytree(statistics)
    if not flat.size:
        return jnp.zeros((len(_flat(prior)), 1))
    return jax.jacfwd(lambda x: _flat(prior.mstep(restore(x))))(flat) * jnp.abs(flat).max()


def _flat(prior: Prior) -> Array:
    leaves = jax.tree.leaves(prior)
    return jnp.concatenate([jnp.ravel(jnp.asarray(leaf, float)) for leaf in leaves]) if leaves else jnp.zeros(0)


def _moved(prior: Prior, change: Any) -> Prior:
    """The prior with ``change`` added to its leaves."""
    leaves, structure = jax.tree.flatten(prior)
    parts = jnp.split(jnp.asarray(change), np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
    return jax.tree.unflatten(
        structure, [leaf + part.reshape(jnp.shape(leaf)).astype(leaf.dtype) for leaf, part in zip(leaves, parts, strict=True)]
    )


def _scores(model: Model, X: np.ndarray, directions: np.ndarray, n_draws: int, n_warmup: int, seed: int) -> Scores:
    """The scores of all rows, by one chain for each."""
    parameters, start, found = model.parameters(), 0, []
    quick = model.prior.plain or X.shape[0] * model.mixing.shape[1] <= SMALL
    for block, rows in blocks(X):
        keys = row_keys(X[start : start + rows], seed, block.x.shape[1])
        how = (n_warmup, 1, jnp.asarray(directions), n_draws, "gibbs", False, _score)
        total, _ = chain(parameters, block, keys, *how, quick=quick)
        mean = [np.asarray(part, float) / n_draws for part in total]
        found.append([part[..., :rows] for part in mean[:4]] + mean[4:])
        start += rows
    return Scores(*(np.concatenate(parts, -1) if i < 4 else sum(parts) for i, parts in enumerate(zip(*found, strict=True))))


def _score(parameters: Parameters, latent: Any, tilt: Channel, block: Block, directions: Array) -> Scores:
    """The complete data's scores at one draw."""
    prior, noise = parameters.prior, parameters.sigma2
    beta, offset = prior.coefficients(latent), prior.offset(latent)
    weight = block.weight.astype(beta.dtype)
    b = jnp.concatenate([jnp.ones_like(beta[:1]), beta])
    residual = block.x - fitted(parameters, beta, offset, block.x.dtype)
    if _everything(noise, *parameters.A.shape):
        u = (residual / noise[..., None]).astype(beta.dtype)
    else:
        u = tilt.c - tilt.c_one[:, None] * offset - tilt.G @ beta
        if prior.has_offset:
            u = jnp.concatenate([u, (tilt.x_one - tilt.c_one @ beta - tilt.one_one * offset)[None]])
    square = 0.5 * (residual * residual / noise[..., None] - 1)
    of_noise = square if noise.ndim else square.sum(0, keepdims=True)
    of_prior = _prior_score(prior, beta, offset, directions.astype(beta.dtype)) * weight
    return Scores(u[:, None] * b, of_noise.astype(beta.dtype), of_prior, b, (b * weight) @ b.T, of_prior @ of_prior.T)


def _everything(noise: Any, d: int, p: int) -> bool:
    """Whether C is all of the change of (mean, A), and there is no D: diagonal noise couples D with the noise, by about p / d."""
    return bool(np.ndim(noise)) and d <= JOINT and p <= JOINT


def _prior_score(prior: Prior, beta: Array, offset: Array, directions: Array) -> Array:
    """Derivatives (k, n) of each row's log density in the directions of the prior's parameters."""

    def along(direction: Array) -> Array:
        return jax.jvp(
            lambda step: _moved(prior, step * direction).log_density(beta, offset),
            (jnp.zeros((), beta.dtype),),
            (jnp.ones((), beta.dtype),),
        )[1]

    k = directions.shape[1]
    return jnp.stack([along(directions[:, i]) for i in range(k)]) if k else jnp.zeros((0, beta.shape[1]), beta.dtype)


class _Axes(NamedTuple):
    """Coordinates in which the complete data's information is the identity: C = B z K for C, and ``prior`` for the prior's parameters."""

    B: np.ndarray  # (p, r)
    K: np.ndarray  # (m, m), m = p + 1 or, without a mean, p
    prior: np.ndarray  # (k, k)


def _axes(span: np.ndarray, noise: np.ndarray, bb: np.ndarray, squares: np.ndarray) -> _Axes:
    values, V = np.linalg.eigh(span.T @ (span / noise[:, None]))
    used = values > 1e-10 * values.max()  # p > d leaves directions of C without effect
    B = (V[:, used] / np.sqrt(values[used])) @ (V[:, used].T if used.all() else np.eye(used.sum()))
    return _Axes(B, _inverse_root(bb), _inverse_root(squares))


def _inverse_root(M: np.ndarray) -> np.ndarray:
    """M^-1/2; where M is singular (a component that is always off), with a large value instead of infinity."""
    values, V = np.linalg.eigh(M)
    return np.asarray((V / np.sqrt(np.maximum(values, 1e-12 * max(values.max(initial=0.0), 1e-300)))) @ V.T)


def _cross(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The symmetric part of first second', of vectors (q, n)."""
    product = first @ second.T
    return np.asarray(0.5 * (product + product.T))


def _inverse(information: np.ndarray, added: np.ndarray | float = 0.0) -> np.ndarray:
    """The inverse of a share of information, kept above the least that is believed, plus ``added``."""
    values, V = np.linalg.eigh(information)
    return np.asarray(np.linalg.inv((V * np.maximum(values, LEAST_SHARE)) @ V.T + added))


def _errors(
    model: Model, free_mean: bool, hidden: bool, chains: list[Scores], directions: np.ndarray, more: float, seen: np.ndarray
) -> dict[str, np.ndarray]:
    """Standard errors from the scores of two chains; ``more`` is the number of rows for each that has scores, ``seen`` (d,) the share of
    entries that are not missing."""
    d, p = model.mixing.shape
    noise, diagonal = np.broadcast_to(model.noise_variance, (d,)), bool(np.ndim(model.noise_variance))
    there = slice(0 if free_mean else 1, None)  # which of b = (1, beta) there are
    n = more * chains[0].b.shape[1]
    bb = more * sum(s.bb for s in chains)[there, there] / 2
    # what is hidden moves x within the columns of A, and along (1, .., 1) where there are offsets
    span = np.column_stack([model.mixing, np.ones(d)]) if model.prior.has_offset else model.mixing
    if _everything(model.noise_variance, d, p):
        span = np.eye(d)
    axes = _axes(span, noise, bb, more * sum(s.squares for s in chains) / 2)
    pull = np.zeros(len(bb))  # the precision of A's prior
    if hidden:
        pull[-p:] = 1 / (np.square(model.mixing).mean(0) + noise.mean() / np.diag(bb)[-p:])
    of_noise = n / 2 if diagonal else n * d / 2  # the complete data's information on log sigma^2
    scores = []
    for s in chains:
        C = np.einsum("ia,ijn,jb->abn", axes.B, s.C[:, there], axes.K)
        scores.append((C - C.mean(-1, keepdims=True), np.concatenate([s.noise / np.sqrt(of_noise), axes.prior @ s.prior])))
    U = span @ axes.B
    added = (U.T @ U, axes.K * pull @ axes.K)
    joint = p <= JOINT or model.prior.has_offset
    within, others = (_joint if joint else _pairs)(scores, more, added, U, axes.K)
    # the part of A's change that is orthogonal to its columns
    means = more * _cross(*(axes.K @ s.b[there] for s in chains))
    outside = np.diag(axes.K @ _inverse(means, noise.mean() * (axes.K * pull @ axes.K)) @ axes.K)
    errors = np.sqrt(within + np.maximum(noise - np.square(U).sum(1), 0.0)[:, None] * outside / seen[:, None])
    found = {"components": errors[:, -p:].T, "mixing": errors[:, -p:]}
    if free_mean:
        found["mean"] = errors[:, 0]
    count = len(chains[0].noise)
    relative = np.sqrt(np.diag(others)[:count] / of_noise)
    found["noise_variance"] = noise * relative if diagonal else model.noise_variance * relative[0]
    return found | _of_prior(model.prior, directions, axes.prior @ others[count:, count:] @ axes.prior)


def _joint(
    scores: list[Any], more: float, added: tuple[np.ndarray, np.ndarray], U: np.ndarray, K: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Variances (d, m) of U z K, and the covariance of the other parameters, from the joint information of all."""
    r, m = scores[0][0].shape[:2]
    joined = [np.concatenate([C.reshape(r * m, -1), rest]) for C, rest in scores]
    prior = np.zeros((len(joined[0]),) * 2)
    prior[: r * m, : r * m] = np.kron(*added)
    V = _inverse(more * _cross(*joined), prior)
    z = V[: r * m, : r * m].reshape(r, m, r, m)
    within = np.stack([np.einsum("ja,ac,jc->j", U, np.einsum("b,abce,e->ac", K[:, k], z, K[:, k]), U) for k in range(m)], 1)
    return within, V[r * m :, r * m :]


def _pairs(
    scores: list[Any], more: float, added: tuple[np.ndarray, np.ndarray], U: np.ndarray, K: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same where components are many: entries (i, j) and (j, i) of z two by two, as in Picard's Hessian."""
    (first, rest), (second, rest2) = scores
    r, m = first.shape[:2]
    c = m - r  # the column of the mean comes first
    own = np.maximum(more * (first * second).sum(-1), LEAST_SHARE) + np.outer(np.diag(added[0]), np.diag(added[1]))
    square = np.s_[:, c:]
    turned = second[square].transpose(1, 0, 2) if r == m - c else second[square]
    coupling = more * (first[square] * turned).sum(-1)
    coupling = 0.5 * (coupling + coupling.T) * (1 - np.eye(r))
    f = own[square]
    room = np.sqrt(f * f.T)
    coupling = np.clip(coupling, -0.999 * room, 0.999 * room)
    determinant = f * f.T - coupling**2
    variance = 1 / own
    variance[square] = f.T / determinant
    covariance = -coupling / determinant
    within = np.square(U) @ variance @ np.square(K)
    for k in range(m):
        both = U * K[c:, k]
        within[:, k] += ((both @ covariance) * both).sum(1)
    return within, _inverse(more * _cross(rest, rest2))


def _of_prior(prior: Prior, directions: np.ndarray, covariance: np.ndarray) -> dict[str, np.ndarray]:
    """Standard errors of the prior's parameters, by their own names (central differences along the directions)."""
    step = 1e-6
    found = {name: np.zeros((directions.shape[1], *value.shape)) for name, value in prior.parameters.items()}
    for i, direction in enumerate(directions.T):
        up, down = (_moved(prior, sign * step * direction).parameters for sign in (1, -1))
        for name in found:
            found[name][i] = (up[name] - down[name]) / (2 * step)
    return {name: np.sqrt(np.einsum("i...,ij,j...->...", slope, covariance, slope)) for name, slope in found.items()}
