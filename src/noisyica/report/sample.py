"""The rows that a report looks at, and what the fitted model says of them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from noisyica.data import Data
from noisyica.estimator import NoisyICA
from noisyica.posterior.offsets import offsets

STATISTICS_ROWS, STATISTICS_NUMBERS = 2000, 20_000_000
"""The largest number of rows that are looked at, and of numbers in them or in their draws."""
DRAWS, WARMUP = 50, 50
PARTICLES = 8
"""Particles of the likelihood's importance sampling: its error is far below the rows' spread."""


class Sample(NamedTuple):
    """Rows drawn at random, in the order of the data, and what the model says of them.

    Attributes
    ----------
    rows : array (m,)
        The numbers of the rows.
    X : array (m, d)
        The rows themselves.
    beta : array (m, p)
        Their coefficients, as ``transform`` gives them.
    offset : array (m,)
        Their offsets; 0 under a prior without.
    draws : array (DRAWS, m, p)
        Coefficients drawn from the posterior.
    residual : array (m, d)
        What one draw leaves, over the standard deviation of the row's noise; NaN where X is NaN.
    log_likelihood : array (m,)
        An estimate of log p(x).
    error : array (m,)
        The standard error of that estimate.
    weight : array (m,) or None
        For Student noise, the weight of each row, drawn with the last of ``draws``.
    """

    rows: np.ndarray
    X: np.ndarray
    beta: np.ndarray
    offset: np.ndarray
    draws: np.ndarray
    residual: np.ndarray
    log_likelihood: np.ndarray
    error: np.ndarray
    weight: np.ndarray | None = None


def look(ica: NoisyICA, data: Data, coefficients: np.ndarray | None, seed: int = 0) -> Sample:
    """Draw rows (the same ones for the same random seed) and ask the model about them."""
    n, d = data.X.shape
    model = ica.model_
    count = min(
        n, STATISTICS_ROWS, max(50, STATISTICS_NUMBERS // max(d, DRAWS * ica.components_.shape[0]))
    )
    rows = np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
    X = np.asarray(data.X[rows], float)
    known = ~np.isnan(X).all(1)
    rows, X = rows[known], X[known]
    beta = _coefficients(ica, X) if coefficients is None else np.asarray(coefficients[rows], float)
    draws = model.posterior_sample(X, n_draws=DRAWS, n_warmup=WARMUP, random_state=seed)
    drawn = draws[-1]
    # If the model is true, a draw of the coefficients leaves the noise; posterior means leave less.
    left = X - model.mean - offsets(model, X, drawn, seed)[:, None] - drawn @ model.mixing.T
    left = left / np.sqrt(model.noise_variance)
    weight = None
    if model.noise_dof is not None:
        # so do weights that are drawn with them, if what is left is multiplied by their roots
        count, q = (~np.isnan(left)).sum(1), np.nansum(np.square(left), 1)
        draws_of_one = np.random.default_rng(seed).gamma(0.5 * (model.noise_dof + count))
        weight = draws_of_one / (0.5 * (model.noise_dof + q))
        left = left * np.sqrt(weight)[:, None]
    value, error = model.log_likelihood(X, n_particles=PARTICLES, return_std=True)
    return Sample(
        rows,
        X,
        beta,
        offsets(model, X, beta),
        draws,
        left,
        value,
        error,
        weight,
    )


def _coefficients(ica: NoisyICA, X: np.ndarray) -> np.ndarray:
    """The coefficients of rows, whose columns have names in the layout and not in the array."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return np.asarray(ica.transform(X))


def check(ica: Any, data: Any, coefficients: Any) -> None:
    """Raise an error in one line if a report cannot be made of these."""
    if not isinstance(ica, NoisyICA) or not hasattr(ica, "components_"):
        what = f"{type(ica).__name__}{', not fitted' if isinstance(ica, NoisyICA) else ''}"
        raise TypeError(f"A report is of a fitted NoisyICA; got {what}.")
    if not isinstance(data, Data):
        raise TypeError(
            "data must be a noisyica.data.Data (noisyica.data.read gives one); "
            f"got {type(data).__name__}."
        )
    (n, d), (p, columns) = data.X.shape, ica.components_.shape
    if d != columns or data.layout.size != d:
        raise ValueError(
            f"The data have {d} columns, their layout {data.layout.size}, the model {columns}: "
            "all must agree."
        )
    if len(data.ids) != n:
        raise ValueError(f"There are {len(data.ids)} ids for {n} rows: give one for each.")
    if coefficients is not None and np.shape(coefficients) != (n, p):
        raise ValueError(
            f"coefficients must have shape {(n, p)}, one row per row of the data; "
            f"got {np.shape(coefficients)}."
        )
