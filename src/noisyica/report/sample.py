"""The rows that a report looks at, and what the fitted model says of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noisyica.analysis.offsets import offsets
from noisyica.data import Data
from noisyica.estimator import NoisyICA

STATISTICS_ROWS, STATISTICS_NUMBERS = 2000, 20_000_000
"""At most so many rows are looked at, and so many numbers in them and in the draws of their coefficients."""
DRAWS, WARMUP = 50, 50
PARTICLES = 8
"""Of the likelihood's annealed importance sampling: its error is far below the spread of the rows."""


class Sample(NamedTuple):
    """Rows drawn at random, in the order of the data."""

    rows: np.ndarray  # (m,): their numbers
    X: np.ndarray  # (m, d)
    beta: np.ndarray  # (m, p): coefficients, as transform gives them
    offset: np.ndarray  # (m,)
    draws: np.ndarray  # (DRAWS, m, p): of the posterior
    residual: (
        np.ndarray
    )  # (m, d): what one draw leaves, over the noise's standard deviation; NaN where X is
    log_likelihood: np.ndarray  # (m,)
    error: np.ndarray  # (m,): standard error of that


def look(ica: NoisyICA, data: Data, coefficients: np.ndarray | None, seed: int = 0) -> Sample:
    """Draw rows (the same ones for the same seed) and ask the model about them."""
    n, d = data.X.shape
    model = ica.model_
    count = min(
        n, STATISTICS_ROWS, max(50, STATISTICS_NUMBERS // max(d, DRAWS * ica.components_.shape[0]))
    )
    rows = np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
    X = np.asarray(data.X[rows], float)
    known = ~np.isnan(X).all(1)
    rows, X = rows[known], X[known]
    beta = ica.transform(X) if coefficients is None else np.asarray(coefficients[rows], float)
    draws = model.posterior_sample(X, n_draws=DRAWS, n_warmup=WARMUP, random_state=seed)
    drawn = draws[-1]
    # were the model true, a draw of coefficients would leave just its noise; posterior means leave less
    left = X - model.mean - offsets(model, X, drawn, seed)[:, None] - drawn @ model.mixing.T
    value, error = model.log_likelihood(X, n_particles=PARTICLES, return_std=True)
    return Sample(
        rows,
        X,
        beta,
        offsets(model, X, beta),
        draws,
        left / np.sqrt(model.noise_variance),
        value,
        error,
    )


def check(ica: Any, data: Any, coefficients: Any) -> None:
    """One line on what is wrong with what a report is asked of."""
    if not isinstance(ica, NoisyICA) or not hasattr(ica, "components_"):
        raise TypeError(
            f"A report is of a fitted NoisyICA; got {type(ica).__name__}{'' if not isinstance(ica, NoisyICA) else ', not fitted'}."
        )
    if not isinstance(data, Data):
        raise TypeError(
            f"data must be a noisyica.data.Data (noisyica.data.read gives one); got {type(data).__name__}."
        )
    (n, d), p = data.X.shape, len(ica.components_)
    if d != ica.components_.shape[1] or data.layout.size != d:
        raise ValueError(
            f"The data have {d} columns, their layout {data.layout.size}, the model {ica.components_.shape[1]}: all must agree."
        )
    if len(data.ids) != n:
        raise ValueError(f"There are {len(data.ids)} ids for {n} rows: give one for each.")
    if coefficients is not None and np.shape(coefficients) != (n, p):
        raise ValueError(
            f"coefficients must have shape {(n, p)}, a row for each row of the data; got {np.shape(coefficients)}."
        )
