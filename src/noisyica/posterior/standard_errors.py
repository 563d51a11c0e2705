r"""Standard errors of what was learnt, from the information that the observed rows hold.

A Markov chain at the fitted parameters estimates the score of each row
(:mod:`noisyica.posterior.scores`), and how much the row influenced the estimates
(:mod:`noisyica.posterior.information`). *Robust* errors are the spread of these influences (the
sandwich of Huber and White). They are right in large samples whatever the law of the rows, if the
rows are independent and have the same law: as errors of those parameters at which the model is
nearest to that law. Errors *by the model* are the inverse of the information, and are right only
where the model is. Both need independent rows; and where entries are missing, that whether an entry
is missing does not depend on what is not seen (missing at random).

**Which parameters are estimated jointly.** Where there are rows enough, all are: a full change of
(mean, A) with d (p + 1) entries, the log noise variances and the prior's parameters. Otherwise,
write a change of (mean, A) as A C + D, with D orthogonal to A's columns in the noise's metric, and
b = (1, beta). What a row says of D is r b' / sigma^2, r being the part of x orthogonal to A:
independent of beta, with mean zero, if the model is right. Hence D is then uncorrelated with
everything else, and its information is that of a regression on the posterior means of b. The rest
is estimated jointly, from p numbers per row: the p (p + 1) entries of C (one more row where there
are offsets), the noise and the prior's parameters; or, with fewer rows still, two entries of C at a
time. Robust errors take all of a row's influences together in each case.

**Student noise.** The degrees of freedom nu are estimated jointly with the noise variances and the
prior. D decouples as before (:mod:`noisyica.posterior.orthogonal`). At the largest value of nu the
noise is normal: all errors are those of normal noise then, and that of nu is infinite. The errors
of nu, of log nu and of 1 / nu belong together: se(nu) = nu se(log nu) = nu^2 se(1 / nu). Where nu
is large, intervals of 1 / nu are the better ones.

The complete data's information is block diagonal and known in closed form (A' Sigma^-1 A with E[b
b'], or E[w b b'], d / 2, that of w on nu, and the prior's own, for which second derivatives are
taken).

Where A is hidden, the precision of its prior is added, and the standard errors by the model are its
posterior's. In robust errors the prior counts as one more row whose score has that precision as its
covariance, so that both are the same where the model is right.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from noisyica._jax.arrays import to_numpy
from noisyica._jax.precision import double_precision
from noisyica.posterior.information import (
    LEAST_SHARE,
    Axes,
    Information,
    Shape,
    inverse_root,
)
from noisyica.posterior.orthogonal import Rest
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.scores import (
    Frame,
    Scores,
    common_mirror,
    moved,
    prior_directions,
    prior_precision,
    row_scores,
)
from noisyica.posterior.student import MOST_DOF, dof_information
from noisyica.priors import DENSITY, Prior

MOST_JOINTLY = 256
"""The maximum number of parameters that are estimated jointly.

Beyond it only entries (i, j) and (j, i) of C are."""
MOST_WHOLE = 256
"""The maximum number of parameters with which the whole change of (mean, A) is among them.

Beyond it, the part of it that is orthogonal to A's columns is taken apart."""
ROWS_PER_PARAMETER = 5
"""The minimum number of rows per parameter that is estimated jointly.

With fewer rows, and of more than ``JOINT_PER_DRAW`` parameters with twice as many, the Monte-Carlo
error of the information would hide what they say of some directions."""
ROWS_PER_COMPONENT = 2
"""The minimum number of rows per column of (mean, A) for robust errors.

With fewer rows there is hardly a residual left whose spread could be seen."""
MOST_NUMBERS = 2e7
"""The maximum number of entries of the scores that are kept: of larger data a random part of the
rows is taken."""
JOINT_PER_DRAW = 128
"""The number of parameters estimated jointly up to which each draw is used.

With more of them, draws cost less than the products of their scores, and some are left out."""
LEAST_DRAWS = 10
"""The minimum number of draws of each chain that are used."""


class StandardErrors(dict[str, np.ndarray]):
    """Standard errors by name. Attribute ``robust`` says whether they are robust."""

    def __init__(self, errors: dict[str, np.ndarray], robust: bool) -> None:
        super().__init__(errors)
        self.robust = robust

    def __reduce__(self) -> Any:
        return StandardErrors, (dict(self), self.robust)


@double_precision()
def standard_errors(
    parameters: Parameters,
    X: np.ndarray,
    weight: np.ndarray | None = None,
    free_mean: bool = True,
    hidden: bool = False,
    robust: bool = True,
    n_draws: int = 100,
    n_warmup: int = 50,
    seed: int = 0,
    verbose: bool = True,
) -> StandardErrors:
    """Return standard errors of the fitted parameters by name.

    They are those of "components" (p, d), "mixing" (d, p), "mean" (d,), "noise_variance", the
    prior's parameters and, for Student noise, "noise_dof".

    Parameters
    ----------
    parameters : Parameters
        What was learnt from X.
    X : array (n, d)
        Its rows are taken to be independent.
    weight : array (n,), optional
        How many rows each row counts for.
    free_mean : bool
        Whether the mean was learnt.
    hidden : bool
        Whether A was hidden (``mixing_prior="normal"``).
    robust : bool
        Whether errors are robust, or by the model. With fewer than two rows per component (and
        mean), they are by the model in any case, and a warning says so.
    n_draws, n_warmup : int
        The number of sweeps of each of the two chains, and of those before them.
    seed : int
        The random seed.
    verbose : bool
        Whether to show progress on a terminal when it takes more than a second.
    """
    counts = np.ones(len(X)) if weight is None else weight
    d, p = parameters.A.shape
    if robust and len(X) < ROWS_PER_COMPONENT * (p + free_mean):
        robust = False
        warnings.warn(
            f"{len(X)} rows are too few for robust standard errors of {p} components: the errors "
            "are by the model, and are right only if the model is.",
            stacklevel=3,
        )
    directions = prior_directions(parameters.prior, p)
    if directions.size:
        DENSITY.require(parameters.prior)
    normal = parameters.dof is not None and float(parameters.dof) >= 0.999 * MOST_DOF
    if normal:
        parameters = parameters._replace(dof=None)
    theta = to_numpy(parameters)
    axes = _axes(theta, directions, free_mean, len(X))
    count = min(len(X), max(200, int(MOST_NUMBERS / axes.shape.total)))
    chosen = np.random.RandomState(seed).choice(len(X), count, replace=False)
    rows = np.asarray(X[chosen], float)
    weight = counts[chosen] * (counts.sum() / counts[chosen].sum())
    thin = _thin(max(group.shape[1] for group in axes.frame.groups))
    options = (axes.frame, max(n_draws // thin, LEAST_DRAWS), thin, n_warmup)
    chains = [row_scores(parameters, rows, weight, *options, seed + i, verbose) for i in (1, 2)]
    errors = _errors(theta, hidden, robust, chains, axes, rows, weight)
    if normal:
        errors["noise_dof"] = np.asarray(np.inf)
    return StandardErrors(errors, robust)


# ----------------------------------------------------- the units of the complete data's information


def _axes(theta: Parameters, directions: np.ndarray, free_mean: bool, n: int) -> Axes:
    """Return the coordinates for the errors of what was learnt from n rows."""
    A: Any = theta.A
    d, p = A.shape
    noise, k = np.broadcast_to(theta.sigma2, (d,)), directions.shape[1]
    student = theta.dof is not None
    m, n_noise = p + free_mean, np.size(theta.sigma2) + student
    learnt = slice(1 - free_mean, None)  # which columns of (mean, A)
    K = inverse_root(_second_moments(theta.prior, p)[learnt, learnt])
    whole = np.zeros((p + 1, m))
    whole[learnt] = K
    shape = Shape(d, m, n_noise, k)
    if _jointly(shape, MOST_WHOLE, n):
        frame = Frame(None, whole, directions, shape.groups(joint=True))
        return Axes(np.diag(np.sqrt(noise)), K, shape, frame)
    # latent variables move x within the columns of A, and along (1, .., 1) where there are offsets
    span = np.column_stack([A, np.ones(d)]) if theta.prior.has_offset else A
    values, V = np.linalg.eigh(span.T @ (span / noise[:, None]))
    used = values > 1e-10 * values.max()  # p > d leaves directions of C without effect
    B = V[:, used] / np.sqrt(values[used])
    if used.all():  # the symmetric root, in which entries belong to components
        B = B @ V.T
    shape = Shape(B.shape[1], m, n_noise, k)
    joint = _jointly(shape, MOST_JOINTLY, n)
    apart = student and not joint and shape.many_noises
    frame = Frame(B, whole, directions, shape.groups(joint, student))
    return Axes(span @ B, K, shape, frame._replace(mirror=common_mirror(d) if apart else None))


def _jointly(shape: Shape, most: int, n: int) -> bool:
    """Return whether n rows are enough for all parameters, at most ``most``, jointly."""
    rows = ROWS_PER_PARAMETER * shape.total * _thin(shape.total)
    return shape.total <= most and n >= rows


def _thin(count: int) -> int:
    """Return of how many draws one is used, where ``count`` parameters are taken jointly."""
    return -(-count // JOINT_PER_DRAW)


def _second_moments(prior: Prior, p: int) -> np.ndarray:
    """Return the mean of b b' under the prior, b = (1, beta)."""
    mean, variance = prior.mean(), prior.variance()
    if not (np.isfinite(mean) and np.isfinite(variance) and variance > 0):
        mean, variance = 0.0, 1.0  # any units will do
    b = np.append(1.0, np.full(p, mean))
    return np.outer(b, b) + variance * np.diag(np.append(0.0, np.ones(p)))


# ------------------------------------------------------------------------- from scores to errors


def _errors(
    theta: Parameters,
    hidden: bool,
    robust: bool,
    chains: list[Scores],
    axes: Axes,
    X: np.ndarray,
    weight: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return standard errors by name, from the scores of two chains of the rows X.

    Each row counts for ``weight`` rows.
    """
    U, K, shape, frame = axes
    n, noise = weight.sum(), np.broadcast_to(theta.sigma2, len(U))
    pull = _precision(theta, chains, weight, shape.m) if hidden else np.zeros(shape.m)
    added = (U.T @ U, K * pull @ K)
    of_prior = prior_precision(theta.prior, frame.directions, n)
    information = Information(shape, frame, chains, weight, added, of_prior)
    rest = Rest(theta, axes, chains, X, weight, noise.mean() * added[1] / n)
    covariances = information.by_model(K)
    of_change = np.einsum("ja,kab,jb->jk", U, covariances.columns, U, optimize=True)
    of_change = of_change + rest.by_model()
    if robust:
        by_model, moves = of_change, information.influences()
        covariances = information.robust(K, moves)
        of_change = np.einsum("ja,kab,jb->jk", U, covariances.columns, U, optimize=True)
        of_change = (of_change + rest.robust(moves)) * n / (n - shape.m)
        of_change = np.maximum(of_change, LEAST_SHARE * by_model)  # never below zero by chance
    of_noise = np.sqrt(np.maximum(covariances.noise, 0.0) / _noise_information(theta))
    errors = _errors_of_prior(theta.prior, frame.directions, covariances.prior)
    return _by_name(theta, np.sqrt(of_change), of_noise, errors)


def _precision(theta: Parameters, chains: list[Scores], weight: np.ndarray, m: int) -> np.ndarray:
    """Return the precision of a hidden A's prior for each column of (mean, A), (m,)."""
    A: Any = theta.A
    p = A.shape[1]
    squares = sum((s.b[-p:] * s.wb[-p:]) @ weight for s in chains) / 2
    pull = np.zeros(m)
    pull[-p:] = 1 / (np.square(A).mean(0) + np.mean(theta.sigma2) / squares)
    return pull


def _noise_information(theta: Parameters) -> np.ndarray:
    """Return the complete data's information on each log sigma^2 and, if there is one, log nu."""
    d = len(theta.mean)
    of_noise = np.full(np.size(theta.sigma2), 0.5 if np.ndim(theta.sigma2) else d / 2)
    return of_noise if theta.dof is None else np.append(of_noise, dof_information(theta.dof, d))


def _by_name(
    theta: Parameters, of_change: np.ndarray, of_noise: np.ndarray, of_prior: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return by name the standard errors of (mean, A), of log sigma^2 and log nu, and the prior."""
    p = theta.A.shape[1]
    errors = {"components": of_change[:, -p:].T, "mixing": of_change[:, -p:]}
    if of_change.shape[1] > p:
        errors["mean"] = of_change[:, 0]
    if theta.dof is not None:
        errors["noise_dof"] = np.asarray(theta.dof * of_noise[-1])
    diagonal, sigma2 = np.ndim(theta.sigma2), np.asarray(theta.sigma2)
    errors["noise_variance"] = sigma2 * (of_noise[: len(sigma2)] if diagonal else of_noise[0])
    return errors | {
        f"prior_{name}" if name in errors else name: value for name, value in of_prior.items()
    }


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
