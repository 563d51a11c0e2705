"""Posterior draws as ArviZ has them: coefficients, what was known, and how likely rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisyica.data.writing import component_names
from noisyica.posterior.complete import log_noise_density


def to_arviz(draws: np.ndarray, model: Any, X: Any, row_names: Sequence[Any] | None) -> Any:
    """Return draws (chains, draws, n, p) as an object of ArviZ: see ``Posterior.to_arviz``."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'noisyica[arviz]'.") from error
    groups: dict[str, Any] = {"posterior": {"beta": draws}}
    dims = {"beta": ["row", "component"]}
    coords: dict[str, Any] = {"component": component_names(draws.shape[3])}
    model = getattr(model, "model_", model)  # of an estimator
    if model is not None:
        _check_model(model, draws)
        groups["constant_data"] = _known(model)
        dims |= {"mixing": ["column", "component"], "mean": ["column"]}
        if np.ndim(model.noise_variance):
            dims["noise_variance"] = ["column"]
    if X is not None:
        rows = _rows(model, X, draws)
        groups["observed_data"] = {"x": rows}
        groups["log_likelihood"] = {"rows": _log_likelihood(model, rows, draws)}
        dims |= {"x": ["row", "column"], "rows": ["row"]}
        if hasattr(X, "columns") and not hasattr(X, "column_names"):  # which Arrow's tables have
            coords["column"] = list(map(str, X.columns))
        if row_names is None and hasattr(X, "iloc"):
            row_names = [str(name) if isinstance(name, tuple) else name for name in X.index]
    if row_names is not None:
        if len(row_names) != draws.shape[2]:
            raise ValueError(f"row_names must be {draws.shape[2]} names; got {len(row_names)}.")
        coords["row"] = list(row_names)
    options: Any = {"dims": dims, "coords": coords}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, **options)
    return arviz.from_dict(**groups, **options)  # before 1.0, groups are arguments


def _known(model: Any) -> dict[str, np.ndarray]:
    """Return the parameters of the model, of which there are no draws."""
    known = {"mixing": model.mixing, "mean": model.mean, "noise_variance": model.noise_variance}
    if model.noise_dof is not None:
        known["noise_dof"] = model.noise_dof
    return {name: np.asarray(value, float) for name, value in known.items()}


def _check_model(model: Any, draws: np.ndarray) -> None:
    """Raise a ValueError if the draws are not those of coefficients of this model."""
    p = model.mixing.shape[1]
    if draws.shape[3] != p:
        raise ValueError(f"The draws have {draws.shape[3]} components, but the model has {p}.")


def _rows(model: Any, X: Any, draws: np.ndarray) -> np.ndarray:
    """Return X as an array, if the likelihood of its rows can be told from the draws."""
    if model is None:
        raise ValueError("The likelihood of X needs the model, too: give model=, as ica.model_.")
    if model.prior.has_offset:
        raise ValueError(
            f"The draws have no offsets of rows, which {type(model.prior).__name__} has: without "
            "them there is no likelihood. Leave X out."
        )
    rows = np.asarray(model.check(X)[:], float)
    if len(rows) != draws.shape[2]:
        raise ValueError(f"X has {len(rows)} rows, but the draws are of {draws.shape[2]}.")
    return rows


def _log_likelihood(model: Any, X: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return log p(x | beta) of each row for each draw, (chains, draws, n)."""
    values = np.empty(draws.shape[:3])
    for place in np.ndindex(draws.shape[:2]):
        residual = X - model.mean - draws[place] @ model.mixing.T
        values[place] = log_noise_density(residual, model.noise_variance, model.noise_dof)
    return values
