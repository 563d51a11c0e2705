r"""The exact E-step and the exact likelihood, by enumeration of the discrete variables.

Where each coefficient belongs to one of K classes and, given the classes, what is left is Gaussian (mixtures of normals and atoms) or one
half-line integral (TE-ICA), the K^p *states* (a class for each of the p components) can be listed, and

    log p(x) = log sum over states of exp(term(state, x))

is a closed form. So is the E-step, which is its gradient: the log likelihood of the complete data is linear in the sufficient statistics,

    log weights of the classes    times    the number of coefficients in each class
    tilts of the classes (zero)   times    the sum of the coefficients in each class
    c = A'(x - mu0) / sigma^2     times    beta
    G = A'A / sigma^2             times    -beta beta' / 2

so that the gradient of log p(x) in each quantity on the left is the posterior expectation of what it multiplies.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import all_states, cast
from noisyica._jax.special import LOG_2PI, eliminate, half_line_moments, log_half_line
from noisyica.engine.statistics import Block, Parameters, Statistics
from noisyica.laws import Dirac, FreeNormal, Mixture, Normal, SymmetricNormals
from noisyica.priors import Independent, Prior, SingleScaleTernary

Array = jax.Array
Natural = tuple[
    Array, Array, Array, Array
]  # log weights (K,), tilts (K,), G (p, p), and the features of the rows (f, n)

STATES: int = 20_000
"""The most states that are enumerated for an expectation."""
LIKELIHOOD_STATES: int = 60_000
"""The most states that are enumerated for a likelihood alone."""

_CHUNK = 2**20  # about how many numbers the arrays of one chunk of states have


def count_states(prior: Prior, p: int) -> int | None:
    """How many states the discrete variables of p components have; None where they leave no closed form."""
    classes = _classes(prior)
    return None if classes is None else len(classes[0]) ** p


def check(prior: Prior, p: int, most: int = STATES) -> None:
    """Raise ValueError unless the states can be enumerated."""
    count = count_states(prior, p)
    if count is None:
        raise ValueError(
            f"{type(prior).__name__} has no exact E-step with this law: of the named priors 'ifa', 'bg' and 'te' have one, and of the laws "
            "Normal and any Mixture of Normal and Dirac. Take one of those, or another algorithm: 'saem', 'mcem' or 'fam-em'."
        )
    if count > most:
        raise ValueError(
            f"The exact E-step goes through all states of the discrete variables: {count:,} with this prior and {p} components, more than "
            f"the limit of {most:,}. Take fewer components, or another algorithm: 'saem', 'mcem' or 'fam-em'."
        )


@jax.jit
def expectation(parameters: Parameters, block: Block) -> tuple[Statistics, Array]:
    """The statistics of a block of rows, expected under the posterior of the latent variables, and log p(x) of each row (n,).

    The statistics are what :func:`noisyica.engine.statistics.collect` gives on average over the posterior (float64).
    """
    parameters, block = cast(parameters, float), cast(block, float)
    prior = parameters.prior
    check(prior, parameters.A.shape[1])
    G, R, inverse, e, log_noise = _channel(parameters, block.x)
    features, to_e = jax.vjp(lambda e: _features(prior, e), e)
    natural, chunks = _natural(prior, G, features), _chunks(prior, *e.shape)
    log_sum = _log_sum(prior, natural, R, chunks)

    def add(total: Natural, states: Array) -> tuple[Natural, None]:
        terms, gradient = jax.vjp(lambda natural: _log_terms(prior, natural, R, states), natural)
        (found,) = gradient(block.weight * jnp.exp(terms - log_sum))
        return jax.tree.map(jnp.add, total, found), None

    (counts, sums, half, of_features), _ = lax.scan(
        add, jax.tree.map(jnp.zeros_like, natural), chunks
    )
    beta = inverse.T @ to_e(of_features)[0]  # (p, n): E[beta] times the rows' weights
    zero = jnp.zeros(())
    statistics = Statistics(
        x=block.sum_x,
        xx=block.sum_xx,
        b=beta.sum(-1),
        bb=-(half + half.T),
        xb=block.x @ beta.T,
        m=zero,
        mb=jnp.zeros(len(beta)),
        mx=jnp.zeros(len(block.x)),
        mm=zero,
        prior=_prior_statistics(prior, counts, sums),
    )
    return statistics, log_sum + log_noise


@jax.jit
def log_likelihood(parameters: Parameters, x: Array) -> Array:
    """log p(x) of each row (n,); x is (d, n)."""
    parameters = cast(parameters, float)
    prior = parameters.prior
    check(prior, parameters.A.shape[1], LIKELIHOOD_STATES)
    G, R, _, e, log_noise = _channel(parameters, cast(x, float))
    return (
        _log_sum(prior, _natural(prior, G, _features(prior, e)), R, _chunks(prior, *e.shape))
        + log_noise
    )


# ----------------------------------------------------------------------------------------- what a prior's states are


def _classes(prior: Prior) -> tuple[Array, Array, Array] | None:
    """Log weights, means and scales (K,) of the classes of a coefficient; the means of TE-ICA are the signs."""
    if isinstance(prior, SingleScaleTernary):
        gamma = jnp.asarray(prior._gamma)
        return (
            jnp.log(jnp.stack([1 - 2 * gamma, gamma, gamma])),
            jnp.array([0.0, 1.0, -1.0]),
            jnp.zeros(3),
        )
    law = prior.law if isinstance(prior, Independent) and prior.components is None else None
    if isinstance(law, SymmetricNormals):
        means, log_weights = (jnp.stack(values) for values in zip(*law._classes(), strict=True))
        return log_weights, means, jnp.ones_like(means)
    if isinstance(law, Normal):
        law = Mixture((law,), (1.0,))
    if not isinstance(law, Mixture) or not all(isinstance(x, (Dirac, Normal)) for x in law.laws):
        return None
    pairs = [(x.mean, x.scale) if isinstance(x, Normal) else (x.location, 0.0) for x in law.laws]
    means, scales = (
        jnp.stack([jnp.asarray(value, float) for value in values])
        for values in zip(*pairs, strict=True)
    )
    return jnp.log(jnp.asarray(law.weights)), means, scales


def _prior_statistics(prior: Prior, counts: Array, sums: Array) -> Any:
    """The prior's own statistics, from the number of coefficients in each class and their sum."""
    if isinstance(prior, SingleScaleTernary):
        return jnp.stack([counts[0], counts[1] + counts[2]])
    law = prior.law  # type: ignore[attr-defined]
    if isinstance(law, SymmetricNormals):
        return (counts[0], *(counts[1::2] + counts[2::2])), tuple(sums[1::2] - sums[2::2])
    if isinstance(law, FreeNormal):
        return sums[0], counts[0]
    if isinstance(law, Mixture):
        return tuple(counts), tuple(
            (sums[k], counts[k]) if isinstance(x, FreeNormal) else ()
            for k, x in enumerate(law.laws)
        )
    return ()


def _chunks(prior: Prior, p: int, n: int) -> Array:
    """All states, as the class of each component, in chunks that keep arrays small: (chunks, states in a chunk, p)."""
    size = len(_classes(prior)[0])  # type: ignore[index]
    states = all_states(size, p)
    room = max(1, _CHUNK // (n + 8 * p * p))  # a state's terms, and its matrices
    together = max(k for k in range(p + 1) if size**k <= room)
    return jnp.asarray(states.reshape(-1, size**together, p), jnp.int32)


# ------------------------------------------------------------------------------------------------- the terms of the sum


def _channel(parameters: Parameters, x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """G, R, R^-1, e with c = R e, and the log likelihood of the rows (n,) were beta zero.

    e is c made white: powers of c would lose digits where components are nearly the same. The terms do not depend on R.
    """
    A, mean, sigma2, prior, _ = parameters
    p = A.shape[1]
    centred, noise = x - mean[:, None], sigma2[..., None]
    G = A.T @ (A / noise)
    W = lax.stop_gradient(eliminate(jnp.concatenate([jnp.eye(p) + G, jnp.eye(p)], 1)))
    R, inverse = jnp.tril(W[:, :p].T), W[:, p:]
    log_noise = -0.5 * (jnp.square(centred) / noise + LOG_2PI + jnp.log(noise)).sum(0)
    return G, R, inverse, inverse @ (A / noise).T @ centred, log_noise


def _features(prior: Prior, e: Array) -> Array:
    """What the terms are linear in (f, n): e and its products; for TE-ICA, what is inside the half-line integral: e."""
    i, j = np.triu_indices(len(e))
    return e if isinstance(prior, SingleScaleTernary) else jnp.concatenate([e, e[i] * e[j]])


def _natural(prior: Prior, G: Array, features: Array) -> Natural:
    """What the gradient is taken in."""
    log_weights, means, _ = _classes(prior)  # type: ignore[misc]
    return log_weights, jnp.zeros_like(means), G, features


def _log_sum(prior: Prior, natural: Natural, R: Array, chunks: Array) -> Array:
    """Log of the sum of the terms of all states (n,)."""

    def add(total: Array, states: Array) -> tuple[Array, None]:
        return jnp.logaddexp(
            total, jax.scipy.special.logsumexp(_log_terms(prior, natural, R, states), axis=0)
        ), None

    return lax.scan(add, jnp.full(natural[-1].shape[1:], -jnp.inf), chunks)[0]


def _log_terms(prior: Prior, natural: Natural, R: Array, states: Array) -> Array:
    """Log of prior(state) E[exp(c . beta - beta' G beta / 2) | state] for some states (m, p) and all rows: (m, n)."""
    log_weights, tilts, G, features = natural
    _, means, scales = _classes(prior)  # type: ignore[misc]
    log_prior = log_weights[states].sum(-1)[:, None]
    mean, scale, tilt = (
        values[states].T for values in (means, scales, tilts)
    )  # states are the last axis from here on
    if isinstance(prior, SingleScaleTernary):
        return log_prior + _half_line(
            (mean * (G @ mean)).sum(0)[:, None], (R.T @ mean).T @ features - 1
        )
    # beta = mean + scale z with z standard normal, also where the scale is 0; z has the posterior precision L L' and mean L'^-1 (V e + v)
    p = len(G)
    pull = tilt - G @ mean
    precision = jnp.eye(p)[:, :, None] + scale[:, None] * G[:, :, None] * scale
    W = eliminate(
        jnp.concatenate([precision, scale[:, None] * R[:, :, None], (scale * pull)[:, None]], 1)
    )
    L, V, v = W[:, :p], W[:, p:-1], W[:, -1]
    constant = (0.5 * (mean * (tilt + pull) + v * v) - jnp.log(jnp.diagonal(L).T)).sum(0)
    linear = R.T @ mean + (V * v[:, None]).sum(0)
    i, j = np.triu_indices(p)
    quadratic = (V[:, i] * V[:, j]).sum(0) * np.where(i == j, 0.5, 1.0)[:, None]
    return log_prior + constant[:, None] + jnp.concatenate([linear, quadratic]).T @ features


@jax.custom_jvp
def _half_line(a: Array, c: Array) -> Array:
    """log_half_line, with the moments for its derivatives: they are right at a = 0, too, and where rounding has made a negative."""
    return log_half_line(jnp.maximum(a, 0.0), c)


@_half_line.defjvp
def _half_line_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    (a, c), (da, dc) = primals, tangents
    mean, variance = half_line_moments(jnp.maximum(a, 0.0), c)
    return _half_line(a, c), mean * dc - 0.5 * (variance + mean * mean) * da
