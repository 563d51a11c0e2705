"""Clones of an estimator, fitted again with other random numbers or to other weights of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from noisyica.estimator import NoisyICA
from noisyica.model import Model
from noisyica.progress import Reporter


def refit(
    estimator: NoisyICA,
    X: Any,
    seed: int,
    own_seed: bool,
    tell: Callable[[int], None],
    sample_weight: Any = None,
) -> NoisyICA:
    """Return a clone of the estimator, fitted to X.

    Its random seed is ``seed``, or the estimator's own if ``own_seed`` is true and it has one.
    """
    new = clone(estimator)
    users_callback = new.callback

    def callback(iteration: int, model: Model) -> bool | None:
        tell(iteration)
        return users_callback(iteration, model) if users_callback is not None else None

    if new.random_state is None or not own_seed:
        new.set_params(random_state=seed)
    if new.n_init == "auto" and not own_seed:
        new.set_params(n_init=1)  # the first fit tells how reliable the components are
    new.set_params(verbose=False, callback=callback)  # one progress line, not two
    return new.fit(X, sample_weight=sample_weight)


def report(reporter: Reporter, before: int, note: str, done: int) -> None:
    """Report that ``done`` steps of a fit are done, after ``before`` steps of earlier fits."""
    reporter.update(before + done, note)
