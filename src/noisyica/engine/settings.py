"""The settings of an estimator: their check, and how files hold them."""

from __future__ import annotations

import dataclasses
import os
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from noisyica import priors
from noisyica.engine import algorithms, mixing
from noisyica.engine.means import MEANS
from noisyica.priors import Prior
from noisyica.rows import starts

_CHOICES: dict[str, tuple[Any, ...]] = {
    "sampler": algorithms.SAMPLERS,
    "mean": MEANS,
    "noise": ("auto", "isotropic", "diagonal", "student"),
    "dtype": ("float32", "float64"),
    "transform_algorithm": ("mean", "map"),
}

_PASSING = ("verbose", "checkpoint", "transform_algorithm")
"""The settings that do not change what is learnt."""


class Settings(Protocol):
    """The settings of :class:`noisyica.NoisyICA` that decide what a fit does."""

    n_components: Any
    prior: Any
    algorithm: Any
    sampler: str
    mean: str
    noise: str
    mixing_prior: Any
    init: Any
    n_init: Any
    n_draws: Any
    burn_in: float
    kappa: float
    max_iter: int
    tol: float
    dtype: str
    random_state: Any
    boundaries: bool
    grow: Any
    warm_start: bool

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings by name."""


def check_settings(settings: Any) -> None:
    """Raise an error that says what to do, unless all settings of an estimator are possible."""
    algorithms.get(settings.algorithm)
    for name, allowed in _CHOICES.items():
        value = getattr(settings, name)
        if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
            choices = " or ".join(repr(a) for a in allowed)
            raise ValueError(f"{name}={value!r} is not known. Choose {choices}.")
    if not (_is_auto(settings.grow) or settings.grow is False):
        raise ValueError(f"grow must be 'auto' or False; got {settings.grow!r}.")
    _check_n_components(settings.n_components)
    if not _is_count(settings.max_iter):
        raise ValueError(f"max_iter must be an integer of at least 1; got {settings.max_iter!r}.")
    if not (_is_count(settings.n_init) or _is_auto(settings.n_init)):
        raise ValueError(
            f"n_init must be an integer of at least 1, or 'auto'; got {settings.n_init!r}."
        )
    draws = settings.n_draws
    two = isinstance(draws, (tuple, list)) and len(draws) == 2 and all(map(_is_count, draws))
    if not (_is_count(draws) or two):
        raise ValueError(
            "n_draws must be an integer of at least 1, or two of them (first and last); got "
            f"{draws!r}."
        )
    priors.get(settings.prior)
    mixing.check(settings.mixing_prior)
    if isinstance(settings.init, str) and settings.init not in starts.METHODS:
        names = ", ".join(repr(m) for m in starts.METHODS)
        raise ValueError(
            f"init={settings.init!r} is not known. Choose one of {names}, or give an array "
            "(n_features, n_components)."
        )
    if settings.callback is not None and not callable(settings.callback):
        raise TypeError(
            "callback must be a function of the iteration and the model; got "
            f"{settings.callback!r}."
        )
    _check_random_state(settings.random_state)
    for name, low, high in (("tol", 0.0, np.inf), ("burn_in", 0.0, 1.0), ("kappa", 0.5, 1.0)):
        value = getattr(settings, name)
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not low <= float(value) <= high:
            raise ValueError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.")


def _check_random_state(value: Any) -> None:
    """Raise ValueError unless the value is what scikit-learn calls a random state."""
    try:
        check_random_state(value)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, an integer from 0 to 2**32 - 1, or a RandomState; got "
            f"{value!r}."
        ) from error


def _check_n_components(n: Any) -> None:
    """Raise an error unless n is a positive integer or "auto"."""
    if isinstance(n, str) or n is None:
        if n != "auto":
            raise ValueError(f"n_components must be a positive integer or 'auto'; got {n!r}.")
    elif not isinstance(n, Integral) or isinstance(n, bool):
        raise TypeError(
            f"n_components must be a positive integer or 'auto'; got {n!r}, a {type(n).__name__}."
        )
    elif n < 1:
        raise ValueError(f"n_components must be at least 1; got {n}.")


def _is_count(value: Any) -> bool:
    """Return whether the value is an integer of at least 1."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_auto(value: Any) -> bool:
    """Return whether the value is "auto"."""
    return isinstance(value, str) and value == "auto"


def number_of_starts(settings: Settings) -> int:
    """Return the number of starts that ``n_init`` stands for."""
    return 1 if _is_auto(settings.n_init) else int(settings.n_init)


def number_of_draws(settings: Settings) -> tuple[int, int]:
    """Return the number of sweeps in the first and in the last iteration of MCEM."""
    draws = settings.n_draws
    first, last = draws if isinstance(draws, (tuple, list)) else (draws, draws)
    return int(first), int(last)


def plain_settings(settings: Settings) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return the settings as JSON can hold them, and ``init`` where it is an array."""
    plain = settings.get_params(deep=False)
    del plain["callback"], plain["device"]  # a file is for any machine
    init = None if isinstance(plain["init"], str) else np.asarray(plain.pop("init"), float)
    if not isinstance(plain["prior"], str):
        plain["prior"] = priors.to_plain(priors.get(plain["prior"]))
    plain["mixing_prior"] = mixing.plain(plain["mixing_prior"])
    if not isinstance(plain["algorithm"], str):
        algorithm = plain["algorithm"]
        plain["algorithm"] = {"name": algorithm.name, **dataclasses.asdict(algorithm)}
    if not (plain["random_state"] is None or isinstance(plain["random_state"], Integral)):
        plain["random_state"] = None
    if isinstance(plain["n_draws"], (tuple, list)):
        plain["n_draws"] = [int(n) for n in plain["n_draws"]]
    if plain["checkpoint"] is not None:
        plain["checkpoint"] = os.fspath(plain["checkpoint"])
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in plain.items()}, init


def from_plain_settings(plain: dict[str, Any], init: np.ndarray | None) -> dict[str, Any]:
    """Return the settings that :func:`plain_settings` wrote."""
    settings = dict(plain)
    if isinstance(settings["prior"], dict):
        settings["prior"] = priors.from_plain(settings["prior"])
    setting = mixing.unplain(settings["mixing_prior"])
    settings["mixing_prior"] = setting.law_of(0) if isinstance(setting, Prior) else setting
    if isinstance(settings["algorithm"], dict):
        fields = dict(settings["algorithm"])
        settings["algorithm"] = algorithms.from_fields(fields.pop("name"), fields)
    if init is not None:
        settings["init"] = init
    if isinstance(settings["n_draws"], list):
        settings["n_draws"] = tuple(settings["n_draws"])
    return settings


def deciding_settings(settings: Settings) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return the settings that decide what is learnt, as JSON can hold them, and ``init``."""
    plain, init = plain_settings(settings)
    return {name: value for name, value in plain.items() if name not in _PASSING}, init
