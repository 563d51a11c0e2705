r"""Standard errors of what was learnt, from the information that the observed rows hold.

A Markov chain at the fitted parameters estimates the score of each row
(:mod:`noisyica.posterior.scores`), and the sum over rows of the scores' outer products is the
information (Louis, 1982, is the same matrix by another route). Two independent chains, one for each
factor of the product, leave no Monte-Carlo bias.

**Which parameters are estimated jointly.** Write a change of (mean, A) as A C + D, with D
orthogonal to A's columns in the noise's metric, and b = (1, beta). What a row says of D is
r b' / sigma^2, r being the part of x orthogonal to A: independent of beta, with mean zero. Hence D
is uncorrelated with everything else, and its information is that of a regression on the posterior
means of b. The rest is estimated jointly, from p numbers per row: the p (p + 1) entries of C (one
more row where there are offsets), log sigma^2 and the prior's parameters. Diagonal noise couples D
with the noise, by about p / d. Where there are rows enough, C is then the *full* change of (mean,
A), with d (p + 1) entries, and there is no D.

The complete data's information is block diagonal and known in closed form (A' Sigma^-1 A with E[b
b'], d / 2, and the prior's own). In its units the observed information is the share of it that the
rows keep, a matrix between 0 and 1.

Where A is hidden, the precision of its prior is added, and the standard errors are its posterior's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noisyica._jax.arrays import to_numpy
from noisyica._jax.precision import double_precision
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.scores import Scores, moved, prior_directions, row_scores
from noisyica.priors import DENSITY, Prior

LEAST_SHARE = 1e-4
"""The minimum share of the complete data's information that is believed.

Less is noise of the estimate."""
MOST_JOINTLY = 1700
"""The maximum number of parameters that are estimated jointly.

Beyond it only entries (i, j) and (j, i) of C are."""
ROWS_PER_PARAMETER = 10
"""The minimum number of rows per parameter that is estimated jointly.

With fewer rows the inverse of their information would be noise."""
MOST_NUMBERS = 2e7
"""The maximum number of entries of the scores that are kept: of larger data a random part of the
rows is taken."""


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
    """Return standard errors of the fitted parameters by name.

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
    directions = prior_directions(parameters.prior, p)
    if directions.size:
        DENSITY.require(parameters.prior)
    diagonal, k = bool(np.ndim(parameters.sigma2)), directions.shape[1]
    n_full = d * (p + 2) + k  # the number of parameters for a full change of (mean, A)
    full = diagonal and n_full <= MOST_JOINTLY and len(X) >= ROWS_PER_PARAMETER * n_full
    per_row = n_full if full else p * (p + 1) + 2 * p + (d if diagonal else 1)
    count = min(len(X), max(200, int(MOST_NUMBERS / per_row)))
    chosen = np.random.RandomState(seed).choice(len(X), count, replace=False)
    rows = np.asarray(X[chosen], float)
    counts = np.ones(len(X)) if weight is None else weight
    weight = counts[chosen] * (counts.sum() / counts[chosen].sum())
    options = (directions, full, n_draws, n_warmup)
    chains = [row_scores(parameters, rows, weight, *options, seed + i, verbose) for i in (1, 2)]
    theta = to_numpy(parameters)
    return _errors(theta, free_mean, hidden, chains, directions, rows, weight, full)


def _errors(
    theta: Parameters,
    free_mean: bool,
    hidden: bool,
    chains: list[Scores],
    directions: np.ndarray,
    X: np.ndarray,
    weight: np.ndarray,
    full: bool,
) -> dict[str, np.ndarray]:
    """Return standard errors by name, from the scores of two chains of the rows X.

    Each row counts for ``weight`` rows.
    """
    A: Any = theta.A
    d, p = A.shape
    noise, diagonal = np.broadcast_to(theta.sigma2, (d,)), bool(np.ndim(theta.sigma2))
    learnt = slice(0 if free_mean else 1, None)  # which columns of C, those of (mean, A)
    n = weight.sum()
    bb = sum(s.bb for s in chains)[learnt, learnt] / 2
    # latent variables move x within the columns of A, and along (1, .., 1) where there are offsets
    span = np.column_stack([A, np.ones(d)]) if theta.prior.has_offset else A
    if full:
        span = np.eye(d)
    axes = _axes(span, noise, bb, sum(s.squares for s in chains) / 2)
    pull = np.zeros(len(bb))  # the precision of A's prior
    if hidden:
        pull[-p:] = 1 / (np.square(A).mean(0) + noise.mean() / np.diag(bb)[-p:])
    on_noise = n / 2 if diagonal else n * d / 2  # the complete data's information on log sigma^2
    scores = [_whitened(s, axes, learnt, on_noise) for s in chains]
    U = span @ axes.B
    added = (U.T @ U, axes.K * pull @ axes.K)
    q = scores[0][0].shape[0] * len(bb) + len(scores[0][1])
    joint = q <= MOST_JOINTLY and len(weight) >= ROWS_PER_PARAMETER * q
    within, others = (_joint if joint else _pairs)(scores, weight, added, U, axes.K)
    # the part D of A's change that is orthogonal to its columns
    first, second = (axes.K @ s.b[learnt] for s in chains)
    means = _cross(first, second, weight)
    outside = np.diag(axes.K @ _inverse(means, noise.mean() * (axes.K * pull @ axes.K)) @ axes.K)
    observed = np.maximum(np.average(~np.isnan(X), 0, weight), 1 / n)
    left = np.maximum(noise - np.square(U).sum(1), 0.0)[:, None]
    of_change = np.sqrt(within + left * outside / observed[:, None])
    count = len(chains[0].noise)
    of_noise = np.sqrt(np.diag(others)[:count] / on_noise)
    covariance = axes.prior @ others[count:, count:] @ axes.prior
    of_prior = _errors_of_prior(theta.prior, directions, covariance)
    return _by_name(theta, free_mean, of_change, of_noise, of_prior)


def _by_name(
    theta: Parameters,
    free_mean: bool,
    of_change: np.ndarray,
    of_noise: np.ndarray,
    of_prior: dict[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Return by name the standard errors of (mean, A), of log sigma^2 and of the prior."""
    p = theta.A.shape[1]
    errors = {"components": of_change[:, -p:].T, "mixing": of_change[:, -p:]}
    if free_mean:
        errors["mean"] = of_change[:, 0]
    diagonal = bool(np.ndim(theta.sigma2))
    errors["noise_variance"] = (
        np.asarray(theta.sigma2) * of_noise if diagonal else float(theta.sigma2) * of_noise[0]
    )
    return errors | {
        f"prior_{name}" if name in errors else name: value for name, value in of_prior.items()
    }


# ----------------------------------------------------- the units of the complete data's information


class _Axes(NamedTuple):
    """Coordinates in which the complete data's information is the identity.

    They are z with C = B z K, and ``prior`` times new coordinates for the prior's parameters.
    """

    B: np.ndarray  # (p, r)
    K: np.ndarray  # (m, m), m = p + 1 or, without a mean, p
    prior: np.ndarray  # (k, k)


def _axes(span: np.ndarray, noise: np.ndarray, bb: np.ndarray, squares: np.ndarray) -> _Axes:
    """Return the coordinates for changes of (mean, A) within the columns of ``span``."""
    values, V = np.linalg.eigh(span.T @ (span / noise[:, None]))
    used = values > 1e-10 * values.max()  # p > d leaves directions of C without effect
    B = V[:, used] / np.sqrt(values[used])
    if used.all():  # the symmetric root, in which entries belong to components
        B = B @ V.T
    return _Axes(B, _inverse_root(bb), _inverse_root(squares))


def _whitened(
    scores: Scores, axes: _Axes, learnt: slice, on_noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores in units of the complete data's information.

    They are those of C (r, m, n), centred, and those of the noise and the prior together.
    """
    C = np.einsum("ia,ijn,jb->abn", axes.B, scores.C[:, learnt], axes.K, optimize=True)
    others = np.concatenate([scores.noise / np.sqrt(on_noise), axes.prior @ scores.prior])
    return C - C.mean(-1, keepdims=True), others


def _inverse_root(M: np.ndarray) -> np.ndarray:
    """Return M^-1/2, with a large value instead of infinity where M is singular.

    It is singular where a component is always off.
    """
    values, V = np.linalg.eigh(M)
    return np.asarray(
        (V / np.sqrt(np.maximum(values, 1e-12 * max(values.max(initial=0.0), 1e-300)))) @ V.T
    )


# --------------------------------------------------------------------- from scores to (co)variances


def _cross(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the symmetric part of the weighted sum of first second', of vectors (q, n)."""
    product = (first * weight) @ second.T
    return np.asarray(0.5 * (product + product.T))


def _inverse(information: np.ndarray, added: np.ndarray | float = 0.0) -> np.ndarray:
    """Return the inverse of a share of information, kept above ``LEAST_SHARE``, plus ``added``."""
    values, V = np.linalg.eigh(information)
    return np.asarray(np.linalg.inv((V * np.maximum(values, LEAST_SHARE)) @ V.T + added))


def _joint(
    scores: list[Any],
    weight: np.ndarray,
    added: tuple[np.ndarray, np.ndarray],
    U: np.ndarray,
    K: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return variances (d, m) of U z K, and the covariance of the noise and the prior.

    They come from the joint information on all parameters.
    """
    r, m = scores[0][0].shape[:2]
    first, second = (np.concatenate([C.reshape(r * m, -1), others]) for C, others in scores)
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
    """Return what :func:`_joint` does, from the information on two entries of z at a time.

    This is for more parameters than the rows determine jointly: entries (i, j) and (j, i) of z are
    estimated two by two, as in Picard's Hessian. The column of the mean (the first of z, if there
    is one), and the row of an offset (its last), have no partner.
    """
    (first, others), (second, others2) = scores
    r, m = first.shape[:2]
    information = np.maximum(((first * second) * weight).sum(-1), LEAST_SHARE) + np.outer(
        np.diag(added[0]), np.diag(added[1])
    )
    p = min(r, m)
    square = np.s_[:p, m - p :]
    coupling = ((first[square] * second[square].transpose(1, 0, 2)) * weight).sum(-1)
    coupling = 0.5 * (coupling + coupling.T) * (1 - np.eye(p))
    f = information[square]
    room = np.sqrt(f * f.T)
    coupling = np.clip(coupling, -0.999 * room, 0.999 * room)
    determinant = f * f.T - coupling**2
    variance = 1 / information
    variance[square] = f.T / determinant
    covariance = -coupling / determinant
    within = np.square(U) @ variance @ np.square(K)
    for k in range(m):
        both = U[:, :p] * K[m - p :, k]
        within[:, k] += ((both @ covariance) * both).sum(1)
    return within, _inverse(_cross(others, others2, weight))


def _errors_of_prior(
    prior: Prior, directions: np.ndarray, covariance: np.ndarray
) -> dict[str, np.ndarray]:
    """Return standard errors of the prior's parameters by their names.

    ``covariance`` is that of the leaves along the directions. The parameters' derivatives along
    these are central differences.
    """
    step = 1e-6
    slopes = {
        name: np.zeros((directions.shape[1], *value.shape))
        for name, value in prior.parameters.items()
    }
    for i, direction in enumerate(directions.T):
        up, down = (moved(prior, sign * step * direction).parameters for sign in (1, -1))
        for name, slope in slopes.items():
            slope[i] = (up[name] - down[name]) / (2 * step)
    return {
        name: np.sqrt(np.einsum("i...,ij,j...->...", slope, covariance, slope))
        for name, slope in slopes.items()
    }
