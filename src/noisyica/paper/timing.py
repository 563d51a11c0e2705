"""Seconds per 1,000 iterations of a fit, without compiling and without the search for a start."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from noisyica import NoisyICA

FEW = 2
"""The number of iterations of the short fit, whose time is that of everything but iterations."""


def seconds_per_thousand(
    X: np.ndarray, n_components: int, iterations: int, **options: Any
) -> tuple[float, NoisyICA]:
    """Fit a model, and return the seconds per 1,000 iterations and the fitted model.

    The time of a fit of two iterations is subtracted from that of the fit. Both are run after
    everything has been compiled.
    """
    compiled_for = {k: v for k, v in options.items() if k not in ("init", "random_state")}
    _compile(X.shape, n_components, tuple(sorted(compiled_for.items())))
    short, _ = _fit(X, n_components, FEW, options)
    long, ica = _fit(X, n_components, iterations, options)
    return 1000 * (long - short) / (iterations - FEW), ica


@cache
def _compile(
    shape: tuple[int, int], n_components: int, options: tuple[tuple[str, Any], ...]
) -> None:
    """Fit simulated data of this shape, so that the functions for it are compiled."""
    rng = np.random.default_rng(0)
    beta = rng.laplace(size=(shape[0], n_components))
    X = beta @ rng.normal(size=(n_components, shape[1])) + rng.normal(size=shape)
    _fit(X, n_components, FEW, {"init": "pca", **dict(options)})


def _fit(
    X: np.ndarray, n_components: int, iterations: int, options: dict[str, Any]
) -> tuple[float, NoisyICA]:
    """Fit a model, and return the seconds that it took and the fitted model."""
    options = {"n_init": 1, "noise": "isotropic", "random_state": 0, **options}
    ica = NoisyICA(n_components, max_iter=iterations, tol=0, verbose=False, **options)
    begun = time.perf_counter()
    ica.fit(X)
    return time.perf_counter() - begun, ica
