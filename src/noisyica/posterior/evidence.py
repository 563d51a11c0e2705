r"""The likelihood of rows, the coefficients integrated out: exact, or an average of weights.

There are three methods. Where the discrete variables have few states, all of them are enumerated.
Where the coefficients are independent under the prior, joint draws have weights whose mean is p(x)
(:mod:`noisyica.posterior.sequential`). For all other priors, such as those with one scale per row,
the weights are those of annealed importance sampling (:mod:`noisyica.posterior.annealing`).

An average of weights is worth no more than their *effective number*, (sum w)^2 / sum w^2. Where a
few of them have all the weight, the spread between them says nothing about the error: so rows of
which the effective number is small are done again, with more and more particles, or along longer
and longer paths. Where that does not help, the standard error is infinite, and a warning says so.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.compiling import Compiled
from noisyica._jax.device import platform
from noisyica._jax.randomness import fold_in
from noisyica._jax.special import LOG_2PI
from noisyica.posterior import enumeration, sequential, signs, weighing
from noisyica.posterior.annealing import TEMPERATURES, annealed_weights, information
from noisyica.posterior.chains import MANY, blocks, row_keys
from noisyica.posterior.parameters import Parameters, unshifted
from noisyica.posterior.propagation import target
from noisyica.priors import ENUMERATION, INDEPENDENCE, Prior
from noisyica.rows.block import Block
from noisyica.rows.source import Chosen

Array = jax.Array
METHODS = ("auto", "exact", "sequential", "annealed")
FEW_PARTICLES = 8
"""The number of joint draws that one call makes where there is little to do."""
LITTLE = 2**18
"""The number of coefficients of all particles up to which there is little to do."""
PARTICLES = {"sequential": 64, "annealed": 32}
"""The default number of particles per row, and ..."""
OF_PATTERNS = 8
"""... where each of them is a sum over all patterns of the signs."""
EFFECTIVE = 16
"""The effective number of particles from which on their spread is trusted to tell the error."""
ROUNDS = 3
"""How many times rows that have fewer are done again."""
GROWTH = 4
"""By how much the number of particles (or of temperatures) grows each time."""
FEW_COEFFICIENTS = 16384
"""The number of coefficients of all particles up to which compiling takes longer than sampling."""
NUMBERS_IN_CHUNK = {"cpu": 2**14}
"""The approximate size of the matrices of those rows that are done at a time, by device."""

NUMBERS_AT_A_TIME = {"cpu": 2**28}
"""The approximate number of operations after which joint draws show progress, by device.

It takes some seconds at most. Other devices are fast, and want all rows of a block at once."""


def choose_method(
    prior: Prior,
    p: int,
    missing: bool,
    method: str,
    most: int = enumeration.LIKELIHOOD_STATES,
    student: bool = False,
) -> str:
    """Return by which method the likelihood of rows is computed: "auto" is the best that can be.

    All states are enumerated if there are at most ``most`` of them, and no entry is ``missing``.
    With ``student`` noise the only method is "sequential".
    """
    if method not in METHODS:
        names = ", ".join(repr(name) for name in METHODS)
        raise ValueError(f"method={method!r} is not known. Choose one of {names}.")
    prior = prior.unshifted[0]
    if student:
        if method in ("exact", "annealed"):
            raise ValueError(
                f"method={method!r} does not know Student noise, whose weights of rows it would "
                "have to integrate out: choose 'auto' or 'sequential'."
            )
        _joint_draws(prior)
        return "sequential"
    possible = enumeration.can_enumerate(prior, p, most) and not missing
    if method == "exact" and not possible:
        states = enumeration.count_states(prior, p)
        here = "no closed form" if states is None else f"{states:,}"
        raise ValueError(
            "method='exact' needs a prior whose discrete variables leave a closed form (mixtures "
            f"of normals and atoms, 'te'), at most {most:,} states of them (here {here}), and no "
            "missing values: choose 'auto', 'sequential' or 'annealed'."
        )
    if method == "sequential":
        _joint_draws(prior)
    if method != "auto":
        return method
    if possible:
        return "exact"
    return "sequential" if INDEPENDENCE.of(prior) or _has_signs(prior) else "annealed"


def _has_signs(prior: Prior) -> bool:
    """Return whether coefficients are signs, with known probabilities, times a scale per row."""
    return prior.single_scale and ENUMERATION.of(prior.without_offset)


def _has_patterns(prior: Prior, p: int) -> bool:
    """Return whether each joint draw is a sum over all patterns of the signs."""
    return _has_signs(prior) and signs.all_enumerated(p)


def _unseen(prior: Any, p: int) -> bool:
    """Return whether coefficients have discrete states, some of which draws may never have seen."""
    if _has_signs(prior):
        return not signs.all_enumerated(p)
    return not INDEPENDENCE.of(prior) or len(prior.law_at(0).parts()) > 1


def _joint_draws(prior: Prior) -> Any:
    """Return the module that makes joint draws of the coefficients."""
    if _has_signs(prior):
        return signs
    INDEPENDENCE.require(prior)
    return sequential


def log_likelihood(
    parameters: Parameters,
    X: Any,
    method: str,
    n_particles: int | None = None,
    n_temperatures: int | None = None,
    seed: int = 0,
    rounds: int = ROUNDS,
    verbose: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(x) of each row, (n,), and its standard error.

    ``method`` is what :func:`choose_method` returned, and ``rounds`` the number of times that rows
    with a poor answer may be done again.
    """
    parameters = unshifted(parameters)
    if method == "exact":
        value = _exact(parameters, X, verbose)
        return value, np.zeros(len(value))
    prior, p = parameters.prior, parameters.A.shape[1]
    m = n_particles or _particles(prior, p, method, parameters.dof is not None)
    if method == "sequential":
        weigh = functools.partial(_sequential, parameters, m, seed)
    else:
        count = n_temperatures or TEMPERATURES
        weigh = functools.partial(_annealed, parameters, m, count, seed)
    value, error, effective, rounding = weigh(0, X, verbose)
    enough = min(EFFECTIVE, m / 2)
    for again in range(1, rounds + 1 if m > 1 else 1):
        poor = np.flatnonzero(effective < enough)
        if not poor.size:
            break
        value[poor], error[poor], effective[poor], _ = weigh(again, Chosen(X, poor), verbose)
    if m > 1 and (method == "annealed" or _unseen(prior, p)):
        # states that no particle has seen may have a share of the likelihood, too
        error = np.hypot(error, 1 / m)
    error = np.hypot(error, rounding)
    if rounds and m > 1:
        unknown = effective < enough
        error[unknown] = np.inf
        _warn(int(unknown.sum()), len(X))
    return value, error


def _rounding(parameters: Parameters, X: np.ndarray) -> np.ndarray:
    """Return the approximate rounding error of each row's likelihood, (n,).

    Where there is next to no noise, it is a small difference of very large squares.
    """
    squares = np.square(X - np.asarray(parameters.mean)) / np.asarray(parameters.sigma2)
    return 4 * np.finfo(float).eps * np.nansum(squares, 1)


def _particles(prior: Prior, p: int, method: str, student: bool) -> int:
    """Return the default number of particles per row."""
    sums = method == "sequential" and _has_patterns(prior, p) and not student
    return OF_PATTERNS if sums else PARTICLES[method]


def _warn(poor: int, n: int) -> None:
    """Warn that the likelihood of some rows is not known."""
    if poor:
        warnings.warn(
            f"The likelihood of {poor:,} of {n:,} rows could not be computed: a few of the draws "
            "have all the weight, so its error is unknown and given as infinite. This happens if "
            "the model leaves next to no noise, or does not fit the rows at all; scores, AIC and "
            "BIC of these rows mean little.",
            RuntimeWarning,
            stacklevel=2,
        )


def _exact(parameters: Parameters, X: Any, verbose: bool) -> np.ndarray:
    """Return log p(x) of each row by enumeration, (n,)."""
    values = [
        np.asarray(enumeration.log_likelihood(parameters, block.x))[: len(part)]
        for block, part in blocks(X, verbose)
    ]
    return np.concatenate(values)


def log_mean_exp(log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the log of the mean of weights (m, n), its standard error, and their effective number.

    The log is corrected for its bias. Weights that are not numbers, since a model is at the border
    of what can be computed, count for nothing; where all are so, the log is minus infinity.
    """
    m = len(log_weights)
    log_weights = np.where(np.isfinite(log_weights), log_weights, -np.inf)
    top = log_weights.max(0)
    weights = np.exp(log_weights - np.where(np.isfinite(top), top, 0.0))
    mean = weights.mean(0)
    known = np.where(mean > 0, mean, 1.0)
    effective = m * mean**2 / np.where(mean > 0, np.square(weights).mean(0), 1.0)
    # the squared standard error of the mean, relative to it
    relative = weights.var(0, ddof=1) / m / known**2 if m > 1 else np.zeros_like(mean)
    return top + np.log(known) + 0.5 * relative, np.sqrt(relative), effective


# --------------------------------------------------------------------------------------- weights


def _averages(
    compiled: Callable[..., Any],
    parameters: Parameters,
    X: Any,
    seed: int,
    verbose: bool,
    most: int | None,
    *options: tuple[Any, ...],
) -> tuple[np.ndarray, ...]:
    """Return what :func:`log_mean_exp` says of the weights of each row, and its rounding error.

    There are weights for each set of options. Blocks have at most ``most`` rows, as in
    :func:`noisyica.posterior.chains.blocks`.
    """
    averages = []
    for block, part in blocks(X, verbose, most):
        log_weights = [_weights(compiled, parameters, block, part, seed, *more) for more in options]
        # of all rows of the block, so that sums are taken in the same order wherever a row stands
        of_rows = [values[: len(part)] for values in log_mean_exp(np.concatenate(log_weights))]
        averages.append((*of_rows, _rounding(parameters, part)))
    return tuple(np.concatenate(values) for values in zip(*averages, strict=True))


def _weights(
    compiled: Callable[..., Any],
    parameters: Parameters,
    block: Block,
    part: np.ndarray,
    seed: int,
    *options: Any,
) -> np.ndarray:
    """Return the log weights (m, n) of the rows of a block, those that fill it up among them."""
    keys = row_keys(part, seed, block.x.shape[1])
    return np.asarray(compiled(parameters, block, keys, *options))


def _sequential(
    parameters: Parameters, m: int, seed: int, again: int, X: Any, verbose: bool
) -> tuple[np.ndarray, ...]:
    """Average weights of joint draws; the number of these grows with ``again``.

    Where this takes less time than compiling, all draws are made by the code that makes a few.
    """
    times = GROWTH**again
    work = len(X) * parameters.A.shape[1] * m * times
    each = FEW_PARTICLES if work <= LITTLE and m % FEW_PARTICLES == 0 else m
    compiled = _kernel(_sequential_weights, parameters, X, each)
    numbers = NUMBERS_AT_A_TIME.get(platform())
    operations = m * _operations(parameters.prior, parameters.A.shape[1])
    most = numbers // operations if numbers else MANY
    options = [(first, each) for first in range(m * times, 2 * m * times, each)]
    return _averages(compiled, parameters, X, seed, verbose, most, *options)


def _annealed(
    parameters: Parameters, m: int, count: int, seed: int, again: int, X: Any, verbose: bool
) -> tuple[np.ndarray, ...]:
    """Average weights of annealed draws; the path grows with ``again``."""
    compiled = _kernel(_annealed_weights, parameters, X, m)
    options = (information(parameters), count * GROWTH**again, m)
    return _averages(compiled, parameters, X, seed, verbose, None, options)


def _operations(prior: Prior, p: int) -> int:
    """Return the approximate number of operations for a joint draw of a row's coefficients."""
    return 200 * 3**p if _has_patterns(prior, p) else p**3


def _kernel(weights: Compiled, parameters: Parameters, X: Any, m: int) -> Callable[..., Any]:
    """Return the compiled function: fast to compile where there is little to do."""
    few = len(X) * parameters.A.shape[1] * m <= FEW_COEFFICIENTS
    return weights.compiled(parameters.prior.compiles_fast or few)


def _all_annealed(
    parameters: Parameters,
    block: Block,
    keys: Array,
    ratio: Array,
    n_temperatures: Array,
    n_particles: int,
) -> Array:
    """Return the log weights of annealed draws, (n_particles, n)."""
    weights = annealed_weights(parameters, block, keys, ratio, n_temperatures, n_particles)
    return weights + _constant(parameters, block)


def _all_sequential(
    parameters: Parameters, block: Block, keys: Array, first: Array, n_particles: int
) -> Array:
    """Return the log weights of joint draws, (n_particles, n), numbered from ``first`` on."""
    prior, (d, n) = parameters.prior, block.x.shape
    joint = _joint_draws(prior)
    size = _rows_in_chunk(prior, parameters.A.shape[1], n)

    def of_rows(rows: tuple[Array, Array | None, Array, Array]) -> Array:
        x, observed, keys, _ = rows
        part = block._replace(x=x, observed=observed)
        seen, particles = target(parameters, part), first + jnp.arange(n_particles)
        if parameters.dof is not None:
            return weighing.log_weights(joint, parameters, part, seen, keys, particles)
        guide = joint.guide(prior, seen)
        return lax.map(lambda i: joint.draw(prior, guide, fold_in(keys, i)).log_weight, particles)

    def skipped(rows: tuple[Array, Array | None, Array, Array]) -> Array:
        return jnp.zeros((n_particles, size))

    def of_chunk(rows: tuple[Array, Array | None, Array, Array]) -> Array:
        # rows of weight 0 only fill the block up
        return lax.cond((rows[-1] > 0).any(), of_rows, skipped, rows)

    def chunks(values: Array) -> Array:
        return values.reshape(d, n // size, size).swapaxes(0, 1)

    observed = None if block.observed is None else chunks(block.observed)
    keys, weight = keys.reshape(n // size, size), block.weight.reshape(n // size, size)
    weights = lax.map(of_chunk, (chunks(block.x), observed, keys, weight))
    return weights.swapaxes(0, 1).reshape(n_particles, n) + _constant(parameters, block)


def _rows_in_chunk(prior: Prior, p: int, n: int) -> int:
    """Return how many of n rows are done at a time."""
    width = 3**p if _has_patterns(prior, p) else p**2
    numbers = NUMBERS_IN_CHUNK.get(platform(), 2**24)
    size = n
    while size > 8 and size * width > numbers and size % 2 == 0:
        size //= 2
    return size


_annealed_weights = Compiled(_all_annealed, ("n_particles",))
_sequential_weights = Compiled(_all_sequential, ("n_particles",))


def _constant(parameters: Parameters, block: Block) -> Array:
    """Return the log likelihood of the observed entries of each row, were the coefficients zero."""
    noise = parameters.sigma2[..., None]
    squares = jnp.square(block.x - parameters.mean[:, None]) / noise
    terms = -0.5 * (squares + LOG_2PI + jnp.log(noise))
    return (terms if block.observed is None else jnp.where(block.observed, terms, 0.0)).sum(0)
