"""Estimators that have been fitted for a few iterations and then given known parameters."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from noisyica import Model, NoisyICA

_SHORT_FITS: dict[tuple[Any, ...], NoisyICA] = {}
"""The fits of this process, by what they depend on: compiling one takes seconds."""


def fitted(model: Model, **options: Any) -> NoisyICA:
    """Return an estimator with the parameters of the model and the history of four real iterations.

    The options are those of :class:`noisyica.NoisyICA`. One number of the history is replaced by
    NaN, with which everything that shows a history must cope. What is returned may be changed: it
    is a copy.
    """
    ica = copy.copy(_short_fit(model, options))
    ica.mixing_, ica.components_, ica.mean_ = model.mixing, model.mixing.T, model.mean
    ica.noise_variance_, ica.prior_ = model.noise_variance, model.prior
    ica.explained_variance_ratio_ = np.linspace(0.2, 0.1, len(ica.components_))
    ica.history_ = {name: values.copy() for name, values in ica.history_.items()}
    ica.history_[list(ica.history_)[-1]][1] = np.nan
    return ica


def _short_fit(model: Model, options: dict[str, Any]) -> NoisyICA:
    """Fit rows drawn from the model for four iterations, or return the same fit made before."""
    d, p = model.mixing.shape
    key = (d, p, repr(model.prior), *sorted(options.items()))
    if key not in _SHORT_FITS:
        prior = model.prior.prior if options.get("mean") == "offset" else model.prior
        settings = {"prior": prior, "noise": "isotropic", "max_iter": 4, "tol": 0}
        how = {"random_state": 0, "verbose": False} | settings | options
        ica = NoisyICA(p, **how).fit(model.sample(40, random_state=0)[0])
        assert ica.n_iter_ == len(ica.history_["iteration"]) == 4
        _SHORT_FITS[key] = ica
    return _SHORT_FITS[key]
