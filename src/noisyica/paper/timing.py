"""Seconds for 1,000 iterations, compiling and looking for a start left out."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from noisyica import NoisyICA

FEW = 2


def seconds_per_thousand(
    X: np.ndarray, n_components: int, iterations: int, **options: Any
) -> tuple[float, NoisyICA]:
    """The time of a fit of so many iterations less that of one of two, for 1,000; and the fit."""
    _compile(
        X.shape,
        n_components,
        tuple(sorted((k, v) for k, v in options.items() if k not in ("init", "random_state"))),
    )
    few, _ = _fit(X, n_components, FEW, options)
    many, ica = _fit(X, n_components, iterations, options)
    return 1000 * (many - few) / (iterations - FEW), ica


@cache
def _compile(
    shape: tuple[int, int], n_components: int, options: tuple[tuple[str, Any], ...]
) -> None:
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(shape[0], n_components)) @ rng.normal(
        size=(n_components, shape[1])
    ) + rng.normal(size=shape)
    _fit(X, n_components, FEW, {"init": "pca", **dict(options)})


def _fit(
    X: np.ndarray, n_components: int, iterations: int, options: dict[str, Any]
) -> tuple[float, NoisyICA]:
    ica = NoisyICA(
        n_components, max_iter=iterations, tol=0, verbose=False, **{"random_state": 0, **options}
    )
    begun = time.perf_counter()
    ica.fit(X)
    return time.perf_counter() - begun, ica
