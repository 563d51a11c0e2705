r"""Standard errors of what was learnt, from the information that the observed rows hold.

By Fisher's identity the score of a row is the posterior mean of the complete data's score, so a
Markov chain at the fitted parameters estimates it, and the sum over rows of its outer products is
the information (Louis, 1982, is the same matrix by another route). Two independent chains, one for
each factor of the product, leave no Monte-Carlo bias.

**Which parameters hang together.** Write a change of (mean, A) as A C + D, with D orthogonal to A's columns
in the noise's metric, and b = (1, beta). What a row says of D is r b' / sigma^2, r being the part
of x orthogonal to A: independent of beta, with mean zero. Hence D is uncorrelated with everything
else, and its information is that of a regression on the posterior means of b. The rest, the p (p +
1) entries of C (one more row where there are offsets), log sigma^2 and the prior's parameters, is
estimated jointly, from p numbers per row:

    score of C = u b',  u = A' Sigma^-1 (x - mean - A beta);
    score of log sigma^2 = (|x - mean - A beta|^2 / sigma^2 - d) / 2.

The complete data's information is block diagonal and known in closed form (A' Sigma^-1 A with E[b
b'], d / 2, and the prior's own). In its units the observed information is the share of it that the
rows keep, a matrix between 0 and 1.

Where A is hidden, the precision of its prior is added, and the standard errors are its posterior's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.precision import double_precision
from noisyica.posterior.chains import Summary, blocks, chain, row_keys
from noisyica.posterior.parameters import Parameters, fitted
from noisyica.priors import DENSITY, Channel, Prior
from noisyica.rows.block import Block

Array = jax.Array
LEAST_SHARE = 1e-4
"""The least share of the complete data's information that is believed: less is noise of the estimate."""
MOST_JOINTLY = 1700
"""The maximum number of parameters that are estimated jointly.

Beyond it only entries (i, j) and (j, i) of C are."""
ROWS_PER_PARAMETER = 10
"""The least number of rows per parameter that is estimated jointly.

With fewer rows the inverse of their information would be noise."""
FEW_COEFFICIENTS = 16384
"""Up to so many coefficients, compiling takes longer than sampling, and is done fast."""
MOST_NUMBERS = 2e7
"""The maximum number of numbers to keep of the scores: of larger data a random part of the rows is taken."""


class Scores(NamedTuple):
    """Posterior means of each row (the last axis of the first four), and sums over the rows."""

    C: Any  # (p, p + 1, n); (p + 1, p + 1, n) with an offset; (d, p + 1, n) where C is everything
    noise: Any  # (1, n), or (d, n) for diagonal noise
    prior: Any  # (k, n)
    b: Any  # (p + 1, n)
    bb: Any  # (p + 1, p + 1)
    squares: Any  # (k, k)  of the prior's scores


@double_precision()
def standard_errors(
    parameters: Parameters,
    X: np.ndarray,
    weight: np.ndarray | None = None,
    free_mean: bool = True,
    hidden: bool = False,
    n_draws: int = 100,
    n_warmup: int = 50,
    seed: int = 0,
    verbose: bool = True,
) -> dict[str, np.ndarray]:
    """Return standard errors by name.

    They are those of "components" (p, d), "mixing" (d, p), "mean" (d,), "noise_variance" and the
    prior's parameters.

    Parameters
    ----------
    parameters : Parameters
        What was learnt from X.
    X : array (n, d)
    weight : array (n,), optional
        How many rows each row counts for.
    free_mean : bool
        Whether the mean was learnt.
    hidden : bool
        Whether A was hidden (``mixing_prior="normal"``).
    n_draws, n_warmup : int
        The number of sweeps of each of the two chains, and of those before them.
    seed : int
        The random seed.
    verbose : bool
        Whether to show progress on a terminal when it takes more than a second.
    """
    d, p = parameters.A.shape
    directions = _directions(parameters.prior, p)
    if directions.size:
        DENSITY.require(parameters.prior)
    diagonal, k = bool(np.ndim(parameters.sigma2)), directions.shape[1]
    whole = d * (p + 2) + k  # parameters where C is everything
    everything = diagonal and whole <= MOST_JOINTLY and len(X) >= ROWS_PER_PARAMETER * whole
    numbers = whole if everything else p * (p + 1) + 2 * p + (d if diagonal else 1)
    count = min(len(X), max(200, int(MOST_NUMBERS / numbers)))
    chosen = np.random.RandomState(seed).choice(len(X), count, replace=False)
    counts = np.ones(len(X)) if weight is None else weight
    rows, weight = (
        np.asarray(X[chosen], float),
        counts[chosen] * (counts.sum() / counts[chosen].sum()),
    )
    how = (directions, _score_of_everything if everything else _score, n_draws, n_warmup)
    chains = [_scores(parameters, rows, weight, *how, seed + i, verbose) for i in (1, 2)]
    theta = to_numpy(parameters)
    return _errors(theta, free_mean, hidden, chains, directions, rows, weight, everything)


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
    statistics = prior.statistics(
        prior.sample_prior(jax.random.key(0), p, n, float), jnp.full((n,), 1 / n)
    )
    flat, restore = jax.flatten_util.ravel_pytree(statistics)
    if not flat.size:
        return jnp.zeros((len(_flat(prior)), 1))
    return jax.jacfwd(lambda x: _flat(prior.mstep(restore(x))))(flat) * jnp.abs(flat).max()


def _flat(prior: Prior) -> Array:
    leaves = jax.tree.leaves(prior)
    return (
        jnp.concatenate([jnp.ravel(jnp.asarray(leaf, float)) for leaf in leaves])
        if leaves
        else jnp.zeros(0)
    )


def _moved(prior: Any, change: Any) -> Any:
    """The prior with ``change`` added to its leaves."""
    leaves, structure = jax.tree.flatten(prior)
    parts = jnp.split(jnp.asarray(change), np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
    return jax.tree.unflatten(
        structure,
        [
            leaf + part.reshape(jnp.shape(leaf)).astype(leaf.dtype)
            for leaf, part in zip(leaves, parts, strict=True)
        ],
    )


def _scores(
    parameters: Parameters,
    X: np.ndarray,
    weight: np.ndarray,
    directions: np.ndarray,
    summary: Summary,
    n_draws: int,
    n_warmup: int,
    seed: int,
    verbose: bool,
) -> Scores:
    """Return the scores of all rows, by one chain for each."""
    few = X.shape[0] * parameters.A.shape[1] <= FEW_COEFFICIENTS
    compiled = chain.compiled(parameters.prior.compiles_fast or few)
    how = (n_warmup, 1, jnp.asarray(directions), n_draws, "gibbs", False, summary)
    parts, first = [], 0
    for block, rows in blocks(X, verbose):
        size, n = block.x.shape[1], len(rows)
        own = np.append(weight[first : first + n], np.zeros(size - n))
        block = block._replace(weight=jnp.asarray(own))
        total, _ = compiled(parameters, block, row_keys(rows, seed, size), *how)
        mean = [np.asarray(part, float) / n_draws for part in total]
        parts.append([part[..., :n] for part in mean[:4]] + mean[4:])
        first += n
    values = list(zip(*parts, strict=True))
    per_row = [np.concatenate(value, -1) for value in values[:4]]
    return Scores(*per_row, *(sum(value) for value in values[4:]))


def _score(
    parameters: Parameters, latent: Any, seen: Channel, block: Block, directions: Array
) -> Scores:
    """The complete data's scores at one draw."""
    prior = parameters.prior
    beta, offset = prior.coefficients(latent), prior.offset(latent)
    u = seen.c - seen.c_one[:, None] * offset - seen.G @ beta
    if prior.has_offset:
        u = jnp.concatenate([u, (seen.x_one - seen.c_one @ beta - seen.one_one * offset)[None]])
    return _score_of_everything(parameters, latent, seen, block, directions, u)


def _score_of_everything(
    parameters: Parameters,
    latent: Any,
    seen: Channel,
    block: Block,
    directions: Array,
    u: Array | None = None,
) -> Scores:
    """The same where C is all of the change of (mean, A), and there is no D: diagonal noise couples D with the noise, by about p / d."""
    prior, noise = parameters.prior, parameters.sigma2
    beta, offset = prior.coefficients(latent), prior.offset(latent)
    weight = block.weight.astype(beta.dtype)
    b = jnp.concatenate([jnp.ones_like(beta[:1]), beta])
    residual = block.x - fitted(parameters, beta, offset, block.x.dtype)
    if u is None:
        u = (residual / noise[..., None]).astype(beta.dtype)
    square = 0.5 * (residual * residual / noise[..., None] - 1)
    of_noise = square if noise.ndim else square.sum(0, keepdims=True)
    of_prior = _prior_score(prior, beta, offset, directions.astype(beta.dtype)) * (weight > 0)
    return Scores(
        u[:, None] * b,
        of_noise.astype(beta.dtype),
        of_prior,
        b,
        (b * weight) @ b.T,
        (of_prior * weight) @ of_prior.T,
    )


def _prior_score(prior: Any, beta: Array, offset: Array, directions: Array) -> Array:
    """Derivatives (k, n) of each row's log density in the directions of the prior's parameters."""

    def along(direction: Array) -> Array:
        return jax.jvp(
            lambda step: _moved(prior, step * direction).log_density(beta, offset),
            (jnp.zeros((), beta.dtype),),
            (jnp.ones((), beta.dtype),),
        )[1]

    return (
        jax.vmap(along, in_axes=1)(directions)
        if directions.size
        else jnp.zeros((0, beta.shape[1]), beta.dtype)
    )


class _Axes(NamedTuple):
    """Coordinates in which the complete data's information is the identity: C = B z K for C, and ``prior`` for the prior's parameters."""

    B: np.ndarray  # (p, r)
    K: np.ndarray  # (m, m), m = p + 1 or, without a mean, p
    prior: np.ndarray  # (k, k)


def _axes(span: np.ndarray, noise: np.ndarray, bb: np.ndarray, squares: np.ndarray) -> _Axes:
    values, V = np.linalg.eigh(span.T @ (span / noise[:, None]))
    used = values > 1e-10 * values.max()  # p > d leaves directions of C without effect
    B = V[:, used] / np.sqrt(values[used])
    if used.all():  # the symmetric root, in which entries belong to components
        B = B @ V.T
    return _Axes(B, _inverse_root(bb), _inverse_root(squares))


def _inverse_root(M: np.ndarray) -> np.ndarray:
    """M^-1/2; where M is singular (a component that is always off), with a large value instead of infinity."""
    values, V = np.linalg.eigh(M)
    return np.asarray(
        (V / np.sqrt(np.maximum(values, 1e-12 * max(values.max(initial=0.0), 1e-300)))) @ V.T
    )


def _cross(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The symmetric part of the weighted sum of first second', of vectors (q, n)."""
    product = (first * weight) @ second.T
    return np.asarray(0.5 * (product + product.T))


def _inverse(information: np.ndarray, added: np.ndarray | float = 0.0) -> np.ndarray:
    """The inverse of a share of information, kept above the least that is believed, plus ``added``."""
    values, V = np.linalg.eigh(information)
    return np.asarray(np.linalg.inv((V * np.maximum(values, LEAST_SHARE)) @ V.T + added))


def _errors(
    theta: Parameters,
    free_mean: bool,
    hidden: bool,
    chains: list[Scores],
    directions: np.ndarray,
    X: np.ndarray,
    weight: np.ndarray,
    everything: bool,
) -> dict[str, np.ndarray]:
    """Standard errors from the scores of two chains of the rows X, which count for ``weight`` rows each."""
    A: Any = theta.A
    d, p = A.shape
    noise, diagonal = np.broadcast_to(theta.sigma2, (d,)), bool(np.ndim(theta.sigma2))
    there = slice(0 if free_mean else 1, None)  # which of b = (1, beta) there are
    n = weight.sum()
    bb = sum(s.bb for s in chains)[there, there] / 2
    # what is hidden moves x within the columns of A, and along (1, .., 1) where there are offsets
    span = np.column_stack([A, np.ones(d)]) if theta.prior.has_offset else A
    if everything:
        span = np.eye(d)
    axes = _axes(span, noise, bb, sum(s.squares for s in chains) / 2)
    pull = np.zeros(len(bb))  # the precision of A's prior
    if hidden:
        pull[-p:] = 1 / (np.square(A).mean(0) + noise.mean() / np.diag(bb)[-p:])
    of_noise = n / 2 if diagonal else n * d / 2  # the complete data's information on log sigma^2
    scores = []
    for s in chains:
        C = np.einsum("ia,ijn,jb->abn", axes.B, s.C[:, there], axes.K, optimize=True)
        scores.append(
            (
                C - C.mean(-1, keepdims=True),
                np.concatenate([s.noise / np.sqrt(of_noise), axes.prior @ s.prior]),
            )
        )
    U = span @ axes.B
    added = (U.T @ U, axes.K * pull @ axes.K)
    q = scores[0][0].shape[0] * len(bb) + len(scores[0][1])
    joint = q <= MOST_JOINTLY and len(weight) >= ROWS_PER_PARAMETER * q
    within, others = (_joint if joint else _pairs)(scores, weight, added, U, axes.K)
    # the part of A's change that is orthogonal to its columns
    first, second = (axes.K @ s.b[there] for s in chains)
    means = _cross(first, second, weight)
    outside = np.diag(axes.K @ _inverse(means, noise.mean() * (axes.K * pull @ axes.K)) @ axes.K)
    seen = np.maximum(np.average(~np.isnan(X), 0, weight), 1 / n)
    errors = np.sqrt(
        within + np.maximum(noise - np.square(U).sum(1), 0.0)[:, None] * outside / seen[:, None]
    )
    found = {"components": errors[:, -p:].T, "mixing": errors[:, -p:]}
    if free_mean:
        found["mean"] = errors[:, 0]
    count = len(chains[0].noise)
    relative = np.sqrt(np.diag(others)[:count] / of_noise)
    found["noise_variance"] = noise * relative if diagonal else float(theta.sigma2) * relative[0]
    own = _of_prior(theta.prior, directions, axes.prior @ others[count:, count:] @ axes.prior)
    return found | {
        f"prior_{name}" if name in found else name: value for name, value in own.items()
    }


def _joint(
    scores: list[Any],
    weight: np.ndarray,
    added: tuple[np.ndarray, np.ndarray],
    U: np.ndarray,
    K: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Variances (d, m) of U z K, and the covariance of the other parameters, from the joint information of all."""
    r, m = scores[0][0].shape[:2]
    first, second = (np.concatenate([C.reshape(r * m, -1), rest]) for C, rest in scores)
    prior = np.zeros((len(first),) * 2)
    prior[: r * m, : r * m] = np.kron(*added)
    V = _inverse(_cross(first, second, weight), prior)
    z = V[: r * m, : r * m].reshape(r, m, r, m)
    within = np.stack(
        [
            np.einsum("ja,ac,jc->j", U, np.einsum("b,abce,e->ac", K[:, k], z, K[:, k]), U)
            for k in range(m)
        ],
        1,
    )
    return within, V[r * m :, r * m :]


def _pairs(
    scores: list[Any],
    weight: np.ndarray,
    added: tuple[np.ndarray, np.ndarray],
    U: np.ndarray,
    K: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The same where parameters are many for the rows: entries (i, j) and (j, i) of z two by two, as in Picard's Hessian.

    The column of the mean (the first of z, if there is one), and the row of an offset (its last),
    have no partner.
    """
    (first, rest), (second, rest2) = scores
    r, m = first.shape[:2]
    own = np.maximum(((first * second) * weight).sum(-1), LEAST_SHARE) + np.outer(
        np.diag(added[0]), np.diag(added[1])
    )
    p = min(r, m)
    square = np.s_[:p, m - p :]
    coupling = ((first[square] * second[square].transpose(1, 0, 2)) * weight).sum(-1)
    coupling = 0.5 * (coupling + coupling.T) * (1 - np.eye(p))
    f = own[square]
    room = np.sqrt(f * f.T)
    coupling = np.clip(coupling, -0.999 * room, 0.999 * room)
    determinant = f * f.T - coupling**2
    variance = 1 / own
    variance[square] = f.T / determinant
    covariance = -coupling / determinant
    within = np.square(U) @ variance @ np.square(K)
    for k in range(m):
        both = U[:, :p] * K[m - p :, k]
        within[:, k] += ((both @ covariance) * both).sum(1)
    return within, _inverse(_cross(rest, rest2, weight))


def _of_prior(
    prior: Prior, directions: np.ndarray, covariance: np.ndarray
) -> dict[str, np.ndarray]:
    """Standard errors of the prior's parameters, by their own names (central differences along the directions)."""
    step = 1e-6
    found = {
        name: np.zeros((directions.shape[1], *value.shape))
        for name, value in prior.parameters.items()
    }
    for i, direction in enumerate(directions.T):
        up, down = (_moved(prior, sign * step * direction).parameters for sign in (1, -1))
        for name in found:
            found[name][i] = (up[name] - down[name]) / (2 * step)
    return {
        name: np.sqrt(np.einsum("i...,ij,j...->...", slope, covariance, slope))
        for name, slope in found.items()
    }
