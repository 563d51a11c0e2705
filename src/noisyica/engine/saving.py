"""A fitted estimator as plain arrays and text, and back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from noisyica import priors
from noisyica._jax.arrays import to_numpy
from noisyica.engine.settings import from_plain_settings, plain_settings

ARRAYS = (
    "components_",
    "mean_",
    "noise_variance_",
    "explained_variance_",
    "explained_variance_ratio_",
    "n_iter_",
    "converged_",
    "convergence_time_",
    "n_features_in_",
)
"""The attributes of an estimator that every file has."""
OPTIONAL = ("reliability_", "stability_")
"""The attributes that only some fits leave."""


def pack(estimator: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return a fitted estimator as arrays, and a description that JSON can hold."""
    settings, init = plain_settings(estimator)
    arrays = {name: np.asarray(getattr(estimator, name)) for name in ARRAYS}
    arrays |= {f"history_{name}": values for name, values in estimator.history_.items()}
    errors = getattr(estimator, "standard_errors_", {})
    arrays |= {f"error_{name}": values for name, values in errors.items()}
    for name in OPTIONAL:
        if hasattr(estimator, name):
            arrays[name] = getattr(estimator, name)
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names_in_"] = estimator.feature_names_in_.astype(str)
    if init is not None:
        arrays["init"] = init
    description = {"settings": settings, "prior_": priors.to_plain(estimator.prior_)}
    if hasattr(estimator, "_first_prior"):
        description["first_prior"] = priors.to_plain(estimator._first_prior)
    return arrays, description


def unpack(
    path: str | os.PathLike[str], arrays: dict[str, np.ndarray], description: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of an estimator, and the attributes that it was fitted with."""
    try:
        settings = from_plain_settings(description["settings"], arrays.pop("init", None))
        attributes: dict[str, Any] = {
            name: arrays[name] if arrays[name].ndim else arrays[name].item() for name in ARRAYS
        }
        attributes["prior_"] = to_numpy(priors.from_plain(description["prior_"]))
        if "first_prior" in description:
            attributes["_first_prior"] = to_numpy(priors.from_plain(description["first_prior"]))
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{os.fspath(path)} is not a model saved by noisyica, or is damaged ({error})."
        ) from error
    attributes["mixing_"] = attributes["components_"].T
    attributes["history_"] = _named(arrays, "history_")
    errors = _named(arrays, "error_")
    if errors:
        attributes["standard_errors_"] = errors
    attributes |= {name: arrays[name] for name in OPTIONAL if name in arrays}
    if "feature_names_in_" in arrays:
        attributes["feature_names_in_"] = arrays["feature_names_in_"].astype(object)
    return settings, attributes


def _named(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with ``prefix``, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
