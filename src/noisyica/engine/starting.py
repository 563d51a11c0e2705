"""Where the runs of a fit begin: at the last fit, the best start of ``init``, or at random."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from noisyica._jax.arrays import cast
from noisyica.engine.restarts import best_start
from noisyica.engine.settings import Settings, number_of_starts
from noisyica.engine.task import Task
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.student import FIRST_DOF
from noisyica.priors import Prior
from noisyica.rows import starts
from noisyica.rows.block import block_rows

IN_UNITS = ", columns alike"
"""What is added to the name of a start that is made of columns of unit mean square."""


class LastFit(NamedTuple):
    """What the last fit of an estimator left, in the units of X."""

    parameters: Parameters
    first_prior: Prior | None  # the prior that it began with, if that is known


def all_starts(settings: Settings, task: Task, last: LastFit | None) -> list[Parameters]:
    """Return where the runs begin, the most promising first."""
    warm = [] if last is None else _warm(settings, task, last)
    if warm and last is not None and last.parameters.A.shape[1] == task.p:
        first = warm
    else:
        first = [_best(task, _candidates(settings, task)), *warm]
    return first + [_start(task, "rotation") for _ in range(number_of_starts(settings) - 1)]


def _best(task: Task, starts: list[Parameters]) -> Parameters:
    """Return the best of the starts by short runs, on one block of rows chosen at random."""
    if len(starts) == 1:
        return starts[0]
    rows, share = task.only_block, 1.0
    if rows is None:
        n = task.rows.n
        numbers = np.random.RandomState(0).choice(n, min(n, block_rows()), replace=False)
        rows, share = task.part(np.sort(numbers))
    constants = task.constants
    constants = constants._replace(total_weight=constants.total_weight * share)
    return best_start(rows, starts, task.key, task.plan, constants, task.score)


def own_starts(task: Task) -> list[Parameters]:
    """Return the starts that the prior proposes for the rows of ``task.sample``.

    Where FastICA does not converge soon it would take longer than the run that begins there.
    """
    methods = (method.replace("fastica", "short fastica") for method in _methods(task))
    return [_start(task, method) for method in methods]


def _methods(task: Task) -> tuple[str, ...]:
    """Return the names of the starts that suit the priors of the coefficients and of A.

    Where it is open whether the noise is that of all columns alike, each is tried in both ways.
    """
    plan = task.plan
    methods = task.prior.starts + (() if plan.mixing is None else plan.mixing.starts)
    if plan.pooled_noise and not task.prior.has_offset:
        methods += tuple(method + IN_UNITS for method in methods)
    return methods


def _candidates(settings: Settings, task: Task) -> list[Parameters]:
    """Return the starts that ``init`` stands for, among which to choose."""
    if isinstance(settings.init, str):
        methods = _methods(task) if settings.init == "auto" else (settings.init,)
        return [_start(task, method) for method in methods]
    A = check_array(settings.init, dtype=np.float64, input_name="init") / task.rows.unit
    shape = (task.rows.d, task.p)
    if A.shape != shape:
        raise ValueError(
            f"init has shape {A.shape}, but must be (n_features, n_components) = {shape}."
        )
    start = _start(task, "pca")._replace(A=task.rows.to_basis(A.T).T)  # type: ignore[arg-type]
    return [start._replace(prior=_begun(task, start.A))]


def _start(task: Task, method: str) -> Parameters:
    """Return the parameters to start from by one of the methods of :mod:`noisyica.rows.starts`."""
    size: Any = 1.0
    method, alike, _ = method.partition(IN_UNITS)
    own_noise = task.plan.diagonal and not task.plan.pooled_noise
    if (alike or own_noise) and not task.prior.has_offset:
        # where columns have noise of their own, their units should not matter
        size = starts.column_sizes(task.sample)
    sample, back = task.sample / size, task.rows.basis is not None and method == "varimax"
    if back:  # it looks for zeros, which are in the basis of X
        sample = task.rows.from_basis(sample)
    method, _, strength = method.partition(", smoothed ")
    if strength:
        e = task.mixing.eigenvalues
        sample = sample / (1 + float(strength) * e / e.mean())
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        A, noise = starts.start(sample, task.p, task.prior, method, task.rng)
        if strength:
            noise = starts.left_over(task.sample, A)
    A = task.rows.to_basis(A.T).T if back else A
    A, noise = A * np.reshape(size, (-1, 1)), noise * np.square(size)
    if task.mixing is not None and task.prior.symmetric and not task.mixing.symmetric:
        A = A * np.where((A**3).sum(0) * task.mixing.mean() < 0, -1.0, 1.0)
    noise = np.maximum(noise, task.constants.floor)
    begun = task.zeros._replace(A=A, prior=_begun(task, A))  # type: ignore[arg-type]
    return begun._replace(sigma2=np.asarray(noise, float))  # type: ignore[arg-type]


def _begun(task: Task, A: Any) -> Prior:
    """Return the prior with which learning begins from A."""
    return task.prior.begun(lambda: np.linalg.pinv(A) @ task.sample.mean(0))


def _warm(settings: Settings, task: Task, last: LastFit) -> list[Parameters]:
    """Return a list of the parameters of the last fit, or an empty one if no run can begin there.

    Where it had fewer components, the others come from what it leaves of X. The prior is the one
    that the last fit learnt only if that fit began with the same prior as this one.
    """
    prior, unit, p = task.prior, task.rows.unit, task.p
    values: Any = last.parameters
    A, mean, noise, learnt, _, dof = values
    if not (settings.warm_start and len(A) == task.rows.d and A.shape[1] <= p):
        return []
    mean = task.rows.to_basis((mean - task.rows.centre)[None] / unit)[0]
    A, noise = task.rows.to_basis(A.T / unit).T, np.asarray(noise) / unit / unit
    if not task.plan.free_mean:
        mean = np.zeros_like(mean)
    if not task.plan.diagonal:
        noise = noise.mean()
    keep = last.first_prior is not None and _same(last.first_prior, prior.rescaled(1 / unit))
    if A.shape[1] < p:
        with threadpool_limits(limits=1):
            A = starts.extended(task.sample - mean, A, p, np.sqrt(prior.variance()))
        # otherwise some components would have parameters of their own, and others not
        keep = keep and learnt.n_parameters == prior.n_parameters
    dof = (FIRST_DOF if dof is None else dof) if task.plan.student else None
    values = (A, mean, noise, learnt.rescaled(unit) if keep else prior, task.mixing, dof)
    return [cast(Parameters(*values), float)]


def _same(first: Prior, second: Prior) -> bool:
    """Return whether two priors are of the same kind and have the same parameters."""
    one, other = jax.tree.structure(first), jax.tree.structure(second)
    same_kind = bool(one == other)  # type: ignore[operator]
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return same_kind and all(np.array_equal(x, y) for x, y in pairs)
