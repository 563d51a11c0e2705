r"""The exact E-step and the exact likelihood, by enumeration of the discrete variables.

Where each coefficient belongs to one of K classes and, given the classes, what is left is Gaussian
(mixtures of normals and atoms) or one half-line integral (TE-ICA), the K^p *states* (a class for
each of the p components) can be listed, and

    log p(x) = log sum over states of exp(term(state, x))

is a closed form. So is the E-step, which is its gradient: the log likelihood of the complete data
is linear in the sufficient statistics,

    log weights of the classes    times    the number of coefficients in each class
    tilts of the classes (zero)   times    the sum of the coefficients in each class
    c = A'(x - mu0) / sigma^2     times    beta
    G = A'A / sigma^2             times    -beta beta' / 2

so that the gradient of log p(x) in each quantity on the left is the posterior expectation of what
it multiplies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import all_states, cast
from noisyica._jax.special import LOG_2PI, eliminate, half_line_moments, log_half_line
from noisyica.laws import Classes
from noisyica.posterior.parameters import Parameters
from noisyica.priors import ENUMERATION, Prior

Array = jax.Array


class Natural(NamedTuple):
    """The quantities in which the gradient of log p(x) is taken."""

    log_weights: Array  # (K,)
    tilts: Array  # (K,)
    G: Array  # (p, p)
    features: Array  # (f, n)  of the rows


class Moments(NamedTuple):
    """Expected statistics of a block of rows, summed over the rows with their weights."""

    b: Array  # (p,)    beta
    bb: Array  # (p, p)  beta beta'
    xb: Array  # (d, p)  x beta'
    prior: Any  # the prior's own


STATES: int = 20_000
"""The maximum number of states that are enumerated for an expectation."""
LIKELIHOOD_STATES: int = 60_000
"""The maximum number of states that are enumerated for a likelihood alone."""

_NUMBERS_IN_CHUNK = 2**20
"""The approximate number of entries of the arrays of one chunk of states."""


def count_states(prior: Prior, p: int) -> int | None:
    """Return the number of states of the discrete variables of p components.

    It is None where these leave no closed form.
    """
    classes = jax.eval_shape(_classes, prior)  # asks for shapes only: nothing is computed
    return None if classes is None else classes.means.shape[0] ** p


def can_enumerate(prior: Prior, p: int, most: int) -> bool:
    """Return whether the discrete variables leave a closed form, and have at most ``most`` states.

    Then rows without missing entries have an exact likelihood and posterior mean.
    """
    states = count_states(prior, p)
    return states is not None and states <= most


def check(prior: Prior, p: int, most: int = STATES) -> None:
    """Raise ValueError unless all states can be enumerated, at most ``most`` of them."""
    count = count_states(prior, p)
    if count is None:
        raise ValueError(
            f"{type(prior).__name__} has no exact E-step with this law: of the named priors 'ifa', "
            "'bg' and 'te' have one, and of the laws Normal and any Mixture of Normal and Dirac. "
            "Take one of those, or another algorithm: 'saem', 'mcem' or 'fam-em'."
        )
    if count > most:
        raise ValueError(
            f"The exact E-step enumerates all states of the discrete variables: {count:,} with "
            f"this prior and {p} components, more than the limit of {most:,}. Take fewer "
            "components, or another algorithm: 'saem', 'mcem' or 'fam-em'."
        )


@jax.jit
def expectation(parameters: Parameters, x: Array, weight: Array) -> tuple[Moments, Array]:
    """Return the expected statistics of rows x (d, n), and log p(x) of each row (n,).

    The statistics are what :func:`noisyica.engine.statistics.collect` gives on average over the
    posterior of the latent variables, in float64.
    """
    parameters, x, weight = cast((parameters, x, weight), float)
    beta, sums, log_p = _expectations(parameters, x, weight)
    prior: Any = parameters.prior
    of_prior = prior.class_statistics(sums.log_weights, sums.tilts)
    return Moments(beta.sum(-1), -(sums.G + sums.G.T), x @ beta.T, of_prior), log_p


@jax.jit
def posterior_mean(parameters: Parameters, x: Array) -> Array:
    """Return the posterior mean of the coefficients of rows x (d, n), (p, n)."""
    parameters, x = cast((parameters, x), float)
    return _expectations(parameters, x, jnp.ones(x.shape[1]))[0]


def _expectations(parameters: Parameters, x: Array, weight: Array) -> tuple[Array, Natural, Array]:
    """Return E[beta] (p, n) times the rows' weights, the gradient, and log p(x) of each row."""
    prior = parameters.prior
    check(prior, parameters.A.shape[1])
    G, R, inverse, e, log_noise = _channel(parameters, x)
    features, to_e = jax.vjp(lambda e: _features(prior, e), e)
    natural, chunks = _natural(prior, G, features), _chunks(prior, *e.shape)
    log_sum = _log_sum(prior, natural, R, chunks)

    def add(total: Natural, states: Array) -> tuple[Natural, None]:
        terms, gradient = jax.vjp(lambda natural: _log_terms(prior, natural, R, states), natural)
        (part,) = gradient(weight * jnp.exp(terms - log_sum))
        return jax.tree.map(jnp.add, total, part), None

    sums: Natural = lax.scan(add, jax.tree.map(jnp.zeros_like, natural), chunks)[0]
    return inverse.T @ to_e(sums.features)[0], sums, log_sum + log_noise


@jax.jit
def log_likelihood(parameters: Parameters, x: Array) -> Array:
    """Return log p(x) of each row (n,); x is (d, n)."""
    parameters = cast(parameters, float)
    prior = parameters.prior
    check(prior, parameters.A.shape[1], LIKELIHOOD_STATES)
    G, R, _, e, log_noise = _channel(parameters, cast(x, float))
    natural = _natural(prior, G, _features(prior, e))
    return _log_sum(prior, natural, R, _chunks(prior, *e.shape)) + log_noise


# ------------------------------------------------------------------------ what a prior's states are


def _classes(prior: Prior) -> Classes | None:
    """Return the classes of a coefficient, or None where they leave no closed form."""
    return prior.classes() if ENUMERATION.of(prior) else None  # type: ignore[attr-defined]


def _known_classes(prior: Prior) -> Classes:
    """Return the classes of a coefficient under a prior that :func:`check` has passed."""
    classes = _classes(prior)
    assert classes is not None, "check comes first"
    return classes


def _chunks(prior: Prior, p: int, n: int) -> Array:
    """Return all states, as the class of each component, in chunks that keep arrays small.

    The shape is (chunks, states in a chunk, p).
    """
    size = len(_known_classes(prior).means)
    states = all_states(size, p)
    limit = max(1, _NUMBERS_IN_CHUNK // (n + 8 * p * p))  # a state has n terms, and matrices
    power = max(k for k in range(p + 1) if size**k <= limit)
    return jnp.asarray(states.reshape(-1, size**power, p), jnp.int32)


# ----------------------------------------------------------------------------- the terms of the sum


def _channel(parameters: Parameters, x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return G, R, R^-1, e with c = R e, and the log likelihood of the rows (n,) were beta zero.

    e is c made white: powers of c would lose digits where components are nearly the same. The terms
    do not depend on R.
    """
    A, mean, sigma2, prior, *_ = parameters
    p = A.shape[1]
    centred, noise = x - mean[:, None], sigma2[..., None]
    G = A.T @ (A / noise)
    W = lax.stop_gradient(eliminate(jnp.concatenate([jnp.eye(p) + G, jnp.eye(p)], 1)))
    R, inverse = jnp.tril(W[:, :p].T), W[:, p:]
    log_noise = -0.5 * (jnp.square(centred) / noise + LOG_2PI + jnp.log(noise)).sum(0)
    return G, R, inverse, inverse @ (A / noise).T @ centred, log_noise


def _features(prior: Prior, e: Array) -> Array:
    """Return the features of the rows (f, n) in which the terms are linear: e and its products.

    For TE-ICA the argument of the half-line integral is linear in e alone.
    """
    i, j = np.triu_indices(len(e))
    return e if prior.single_scale else jnp.concatenate([e, e[i] * e[j]])


def _natural(prior: Prior, G: Array, features: Array) -> Natural:
    """Return the quantities in which the gradient is taken, at the parameters."""
    classes = _known_classes(prior)
    return Natural(classes.log_weights, jnp.zeros_like(classes.means), G, features)


def _log_sum(prior: Prior, natural: Natural, R: Array, chunks: Array) -> Array:
    """Return the log of the sum of the terms of all states, (n,)."""

    def add(total: Array, states: Array) -> tuple[Array, None]:
        return jnp.logaddexp(
            total, jax.scipy.special.logsumexp(_log_terms(prior, natural, R, states), axis=0)
        ), None

    return lax.scan(add, jnp.full(natural.features.shape[1:], -jnp.inf), chunks)[0]


def _log_terms(prior: Prior, natural: Natural, R: Array, states: Array) -> Array:
    """Return the log terms (m, n) of some states (m, p), for all rows.

    A term is prior(state) E[exp(c . beta - beta' G beta / 2) | state].
    """
    log_weights, tilts, G, features = natural
    _, means, scales = _known_classes(prior)
    log_prior = log_weights[states].sum(-1)[:, None]
    # the states are the last axis from here on
    mean, scale, tilt = (values[states].T for values in (means, scales, tilts))
    if prior.single_scale:
        return log_prior + _half_line(
            (mean * (G @ mean)).sum(0)[:, None], (R.T @ mean).T @ features - 1
        )
    # beta = mean + scale z with z standard normal, also where the scale is 0; z has the posterior
    # precision L L' and mean L'^-1 (V e + v)
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
    """Return log_half_line(a, c), whose derivatives here are given by the moments.

    So they are right at a = 0, too, and where rounding has made a negative.
    """
    return log_half_line(jnp.maximum(a, 0.0), c)


@_half_line.defjvp
def _half_line_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the value of :func:`_half_line` and its derivative along the tangents."""
    (a, c), (da, dc) = primals, tangents
    mean, variance = half_line_moments(jnp.maximum(a, 0.0), c)
    return _half_line(a, c), mean * dc - 0.5 * (variance + mean * mean) * da
