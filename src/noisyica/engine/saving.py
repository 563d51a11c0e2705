"""A fitted estimator as plain arrays and text, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica import priors
from noisyica._jax.arrays import to_numpy
from noisyica.engine import mixing
from noisyica.engine.settings import from_plain_settings, plain_settings
from noisyica.posterior.standard_errors import StandardErrors

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
OPTIONAL = (
    "reliability_",
    "stability_",
    "components_std_",
    "components_probability_",
    "noise_dof_",
    "row_weights_",
)
"""The attributes that only some fits leave."""
PRIORS = {"first_prior": "_first_prior", "mixing_prior": "mixing_prior_"}
"""Further priors that some fits leave, of coefficients or of A: their names in files, and as
attributes."""


def pack(estimator: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return a fitted estimator as arrays, and a description that JSON can hold."""
    settings, init = plain_settings(estimator)
    arrays = {name: np.asarray(getattr(estimator, name)) for name in ARRAYS}
    arrays |= {f"history_{name}": values for name, values in estimator.history_.items()}
    if hasattr(estimator, "standard_errors_"):
        errors = estimator.standard_errors_
        arrays |= {f"error_{name}": values for name, values in errors.items()}
        arrays["robust_errors"] = np.asarray(errors.robust)
    for name in OPTIONAL:
        if hasattr(estimator, name):
            arrays[name] = np.asarray(getattr(estimator, name))
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names_in_"] = estimator.feature_names_in_.astype(str)
    if init is not None:
        arrays["init"] = init
    description = {"settings": settings, "prior_": priors.to_plain(estimator.prior_)}
    for key, name in PRIORS.items():
        if hasattr(estimator, name):
            description[key] = mixing.plain(getattr(estimator, name))
    return arrays, description


def unpack(
    arrays: dict[str, np.ndarray], description: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of an estimator, and the attributes that it was fitted with.

    Where something is missing, or does not fit together, some error is raised.
    """
    settings = from_plain_settings(description["settings"], arrays.pop("init", None))
    attributes: dict[str, Any] = {
        name: arrays[name] if arrays[name].ndim else arrays[name].item() for name in ARRAYS
    }
    attributes["prior_"] = to_numpy(priors.from_plain(description["prior_"]))
    for key, name in PRIORS.items():
        if key in description:
            attributes[name] = to_numpy(mixing.unplain(description[key]))
    attributes["mixing_"] = attributes["components_"].T
    attributes["history_"] = _named(arrays, "history_")
    errors = _named(arrays, "error_")
    if errors:
        robust = bool(arrays.get("robust_errors", False))  # older files have those by the model
        attributes["standard_errors_"] = StandardErrors(errors, robust)
    for name in OPTIONAL:
        if name in arrays:
            attributes[name] = arrays[name] if arrays[name].ndim else arrays[name].item()
    if "feature_names_in_" in arrays:
        attributes["feature_names_in_"] = arrays["feature_names_in_"].astype(object)
    _check_shapes(attributes)
    return settings, attributes


def restored(kind: type[Any], arrays: dict[str, np.ndarray], description: dict[str, Any]) -> Any:
    """Return the fitted estimator of this class that :func:`pack` was given."""
    settings, attributes = unpack(arrays, description)
    new = kind(**settings)
    new.__dict__.update(attributes)
    _ = new.model_  # which checks the parameters
    return new


def _check_shapes(attributes: dict[str, Any]) -> None:
    """Raise a ValueError if attributes do not fit to the components."""
    p, d = attributes["components_"].shape
    expected = {
        "explained_variance_": (p,),
        "explained_variance_ratio_": (p,),
        "components_std_": (p, d),
        "components_probability_": (p, d),
        "feature_names_in_": (d,),
    }
    for name, shape in expected.items():
        if name in attributes and np.shape(attributes[name]) != shape:
            raise ValueError(f"{name} has shape {np.shape(attributes[name])} instead of {shape}")
    if attributes["n_features_in_"] != d:
        raise ValueError(f"n_features_in_ is {attributes['n_features_in_']} instead of {d}")


def _named(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with ``prefix``, by the rest of their names."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
