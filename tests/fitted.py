"""Estimators as if they had been fitted: quick, and with parameters that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica import Model, NoisyICA


def fitted(model: Model, **options: Any) -> NoisyICA:
    """An estimator with the parameters of the model, after four made-up iterations."""
    d, p = model.mixing.shape
    ica = NoisyICA(p, max_iter=4, verbose=False, **options)
    ica.mixing_, ica.components_, ica.mean_ = model.mixing, model.mixing.T, model.mean
    ica.noise_variance_, ica.prior_ = model.noise_variance, model.prior
    ica.explained_variance_ratio_ = np.linspace(0.2, 0.1, p)
    ica.n_iter_, ica.converged_, ica.n_features_in_ = 4, False, d
    ica.history_ = {
        "iteration": np.arange(1, 5),
        "n_components": np.full(4, p),
        "noise_variance": np.array([4.0, 3.0, 2.0, 2.5]),
        "column_norms": np.ones((4, p)) * np.arange(1, p + 1),
        "gaussian_log_likelihood": -np.arange(4.0),
        "alpha": np.array([0.1, np.nan, 0.3, 0.2]),
    }
    return ica
