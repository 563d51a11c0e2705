"""What a fit has found, in words: of the coefficients, the noise and the components."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from noisyica._jax.precision import double_precision
from noisyica.posterior.student import OUTLYING

FEW_OFF, MOSTLY_OFF = 0.05, 0.5
"""The shares of zeros from which coefficients are called partly, and mostly, off."""
HEAVY, VERY_HEAVY = 2.5, 4.5
"""The ratios of the quantiles .99 and .75 of absolute values from which tails are called heavy, and
very heavy: it is 2.24 for a normal law, 2.7 for a logistic, 3.3 for a Laplace law, and 6.2 for the
law of Student with 2 degrees of freedom."""
UNEQUAL = 1.5
"""The ratio of the quantiles .9 and .1 of the columns' noise from which it is called unequal."""
DRAWS = 20_000


def describe(estimator: Any) -> dict[str, str]:
    """Return what a fitted estimator has found, a few words of each part of the model."""
    return {
        "coefficients": _coefficients(estimator.prior_, len(estimator.components_)),
        "noise": _noise(estimator),
        "components": _components(estimator),
    }


@double_precision()
def _coefficients(prior: Any, p: int) -> str:
    """Return how often coefficients are 0, and how heavy their tails are, by draws of the prior."""
    latent = prior.sample_prior(jax.random.key(0), p, max(DRAWS // p, 200), float)
    size = np.abs(np.asarray(prior.coefficients(latent))).ravel()
    off = float((size == 0).mean())
    words = []
    if off > FEW_OFF:
        words.append(f"{'mostly' if off > MOSTLY_OFF else 'partly'} off ({100 * off:.0f} % zero)")
    on = size[size > 0]
    if on.size:
        ratio = float(np.divide(*np.quantile(on, [0.99, 0.75])))
        tails = "very heavy-tailed" if ratio > VERY_HEAVY else "heavy-tailed"
        words.append(tails if ratio > HEAVY else "nearly normal" if off <= FEW_OFF else "not heavy")
    return ", ".join(words) or "all zero"


def _noise(estimator: Any) -> str:
    """Return whether columns have unequal noise, and how many rows are outlying."""
    deviation = np.sqrt(np.atleast_1d(estimator.noise_variance_))
    low, high = np.quantile(deviation, [0.1, 0.9])
    words = "the same in all columns" if deviation.size == 1 else "about equal in all columns"
    if high > UNEQUAL * low:
        words = f"unequal between columns (standard deviation {low:.2g} to {high:.2g} in most)"
    if not hasattr(estimator, "noise_dof_"):
        return f"{words}, normal"
    count, rows = int((estimator.row_weights_ < OUTLYING).sum()), len(estimator.row_weights_)
    tails = f"heavy tails over rows (Student, {estimator.noise_dof_:.2g} degrees of freedom)"
    return f"{words}, {tails}, {count:,} of {rows:,} rows outlying"


def _components(estimator: Any) -> str:
    """Return how many components there are, and how many of their entries are on, if known."""
    count = len(estimator.components_)
    words = f"{count}, {100 * estimator.explained_variance_ratio_.sum():.0f} % of the variance"
    if hasattr(estimator, "components_probability_"):
        share = 100 * estimator.components_probability_.mean()
        words += f", {'sparse' if share < 50 else 'dense'} ({share:.0f} % of their entries on)"
    if hasattr(estimator, "reliability_"):
        from noisyica.engine.reliability import RELIABLE

        reliable = int((np.asarray(estimator.reliability_) >= RELIABLE).sum())
        words += f", {reliable} of them reliable"
    return words
