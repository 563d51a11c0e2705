"""What a fit has found, in words: of the coefficients, the noise and the components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from noisyica._jax.precision import double_precision
from noisyica.engine import mixing
from noisyica.posterior.student import outlying_below

FEW_OFF, MOSTLY_OFF = 0.05, 0.5
"""The shares of zeros from which coefficients are called partly, and mostly, off."""
HEAVY, VERY_HEAVY = 2.5, 4.5
"""The ratios of the quantiles .99 and .75 of absolute values from which tails are called heavy, and
very heavy: it is 2.24 for a normal law, 2.7 for a logistic, 3.3 for a Laplace law, and 6.2 for the
law of Student with 2 degrees of freedom."""
UNEQUAL = 1.5
"""The ratio of the quantiles .9 and .1 of the columns' noise from which it is called unequal."""
DRAWS = 20_000
FEW = 4
"""A parameter of the prior with more values than this is shown by its range."""


class Fact(NamedTuple):
    """One thing that a fit has found, as the terminal and the report show it."""

    name: str
    value: str
    note: str


def describe(estimator: Any) -> dict[str, str]:
    """Return what a fitted estimator has found, a few words of each part of the model."""
    off, zeros, tails = _coefficients(estimator.prior_, len(estimator.components_))
    return {
        "coefficients": f"{off} ({zeros}), {tails}" if off else tails,
        "noise": f"{_columns(estimator)}, {_tails(estimator)}",
        "components": _components(estimator),
    }


def facts(estimator: Any, number: Callable[[float], str]) -> list[Fact]:
    """Return what a fitted estimator has found as facts; ``number`` words a number."""
    off, zeros, tails = _coefficients(estimator.prior_, len(estimator.components_))
    offsets = " and the rows' offsets" if estimator.prior_.has_offset else ""
    share = 100 * estimator.explained_variance_ratio_.sum()
    shown = estimator.prior_.in_brief.items()
    return [
        Fact("components", str(len(estimator.components_)), estimator.prior_.label),
        Fact("coefficients", off or tails, f"{zeros}, {tails}" if off else zeros),
        *_reliable(estimator),
        Fact("variance explained", f"{share:.1f} %", f"the rest is noise{offsets}"),
        Fact("prior of the components", *mixing.in_words(estimator)),
        _deviation(estimator, number),
        *_outlying(estimator, number),
        Fact("iterations", str(estimator.n_iter_), _why_it_ended(estimator)),
        *(_parameter(name, np.asarray(values), number) for name, values in shown),
    ]


@double_precision()
def _coefficients(prior: Any, p: int) -> tuple[str, str, str]:
    """Return whether coefficients are off, how often they are 0, and how heavy their tails are.

    It is known by draws of the prior. The first text is empty if they are hardly ever 0.
    """
    latent = prior.sample_prior(jax.random.key(0), p, max(DRAWS // p, 200), float)
    size = np.abs(np.asarray(prior.coefficients(latent))).ravel()
    off = float((size == 0).mean())
    on = size[size > 0]
    zeros = f"{100 * off:.0f} % zero"
    if not on.size:
        return "", zeros, "all zero"
    ratio = float(np.divide(*np.quantile(on, [0.99, 0.75])))
    tails = "very heavy-tailed" if ratio > VERY_HEAVY else "heavy-tailed"
    if off <= FEW_OFF:
        return "", zeros, tails if ratio > HEAVY else "nearly normal"
    how = "mostly off" if off > MOSTLY_OFF else "partly off"
    return how, zeros, tails if ratio > HEAVY else "not heavy"


def _columns(estimator: Any) -> str:
    """Return whether columns have unequal noise."""
    deviation = np.sqrt(np.atleast_1d(estimator.noise_variance_))
    low, high = np.quantile(deviation, [0.1, 0.9])
    if high > UNEQUAL * low:
        return f"unequal between columns (standard deviation {low:.2g} to {high:.2g} in most)"
    return "the same in all columns" if deviation.size == 1 else "about equal in all columns"


def _tails(estimator: Any) -> str:
    """Return whether the noise has heavy tails, and how many rows are outlying."""
    if not hasattr(estimator, "noise_dof_"):
        return "normal"
    weights, dof = estimator.row_weights_, estimator.noise_dof_
    count, rows = int((weights < outlying_below(dof)).sum()), len(weights)
    tails = f"heavy tails over rows (Student, {dof:.2g} degrees of freedom)"
    return f"{tails}, {count:,} of {rows:,} rows outlying"


def _components(estimator: Any) -> str:
    """Return how many components there are, and how many of their entries are on, if known."""
    count = len(estimator.components_)
    words = f"{count}, {100 * estimator.explained_variance_ratio_.sum():.0f} % of the variance"
    if hasattr(estimator, "components_probability_"):
        share = 100 * estimator.components_probability_.mean()
        words += f", {'sparse' if share < 50 else 'dense'} ({share:.0f} % of their entries on)"
    for fact in _reliable(estimator):
        words += f", {fact.value.partition(' ')[0]} of them reliable"
    return words


def _reliable(estimator: Any) -> list[Fact]:
    """Return how many components are reliable, and which are doubtful, if that was looked at."""
    if not hasattr(estimator, "reliability_"):
        return []
    from noisyica.engine.reliability import RELIABLE, share_in_words

    count, others = share_in_words(np.asarray(estimator.reliability_))
    note = f"expected cosine with the truth {RELIABLE:g} or more, by halves of the rows; {others}"
    return [Fact("reliable components", count, note)]


def _deviation(estimator: Any, number: Callable[[float], str]) -> Fact:
    """Return the standard deviation of the noise; its median if each column has its own."""
    deviation = np.sqrt(np.asarray(estimator.noise_variance_))
    what = f"variance {number(float(deviation**2))}" if deviation.ndim == 0 else "median"
    note = f"{what}, {_columns(estimator)}"
    return Fact("noise, standard deviation", number(float(np.median(deviation))), note)


def _outlying(estimator: Any, number: Callable[[float], str]) -> list[Fact]:
    """Return the degrees of freedom of Student noise, and how many rows are outlying."""
    if not hasattr(estimator, "noise_dof_"):
        return []
    weights, least = estimator.row_weights_, outlying_below(estimator.noise_dof_)
    count = f"{(weights < least).sum():,} of {len(weights):,}"
    note = "of Student noise: the fewer, the heavier its tails over rows"
    return [
        Fact("degrees of freedom", number(float(estimator.noise_dof_)), note),
        Fact("outlying rows", count, f"weight below {least:.2g}, a fifth of the usual one"),
    ]


def _why_it_ended(estimator: Any) -> str:
    """Return whether the fit has converged."""
    if estimator.converged_:
        return "converged: what is learnt no longer drifts"
    if estimator.algorithm == "saem" and estimator.tol > 0:
        return "not converged: still moving at the end"
    return "as many as were asked for; no test of convergence"


def _parameter(name: str, values: np.ndarray, number: Callable[[float], str]) -> Fact:
    """Return what was learnt of the prior: all values, or their range if they are many."""
    if values.size > FEW:
        text = f"{number(values.min())} to {number(values.max())}"
        return Fact(f"prior: {name}", text, f"{values.size} values, learnt")
    return Fact(f"prior: {name}", ", ".join(map(number, values.ravel())), "learnt")
