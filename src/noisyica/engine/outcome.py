"""What a fit leaves: the best run in the units of X, its components sorted, and its history."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisyica._jax.arrays import to_numpy
from noisyica.engine.convergence import convergence_time
from noisyica.engine.explained import explained_variance
from noisyica.engine.mstep import left_of_columns
from noisyica.engine.state import Constants, Run, State
from noisyica.engine.task import Task
from noisyica.laws.together import told_apart
from noisyica.posterior.student import MOST_DOF
from noisyica.priors import Prior

Array = jax.Array

LEAST_KNOWN = 0.2
"""The share of a hidden column's mean square that its posterior mean has at least if it is kept."""


class Record(NamedTuple):
    """What a run recorded, in its own units; the history is made of it when it is asked for."""

    traces: dict[str, np.ndarray]
    prior: Prior
    unit: float  # of the run, in the units of X
    d: int
    order: np.ndarray  # the numbers of the components that are kept, as they are sorted


class Spread(NamedTuple):
    """How much the entries of a hidden A vary between draws, in the units of X."""

    deviation: np.ndarray  # (p, d)
    rows: float  # the number of rows that were learnt from


def fitted_attributes(run: Run, task: Task, automatic: bool) -> dict[str, Any]:
    """Return what a run learnt, as attributes of an estimator.

    Components are sorted and their signs fixed. With ``automatic``, components that the data do not
    support are dropped.
    """
    parameters: Any = task.in_units_of_x(run.state.estimate)
    unit = task.rows.unit
    statistics = to_numpy(run.state.statistics)
    A, mean, noise, prior, _, dof = parameters
    if task.plan.automatic_noise:  # it ends as simple as the rows do not speak against
        dof = None if dof is None or _normal(float(dof), task) else dof
        noise = _simplest(run, task, noise)
    every = np.arange(A.shape[1])
    own: Any = to_numpy(run.state.estimate)
    own_units = (own.A, statistics, own.sigma2)
    explained, total = explained_variance(*own_units, every)
    kept = _supported(statistics.mixing, explained) if automatic else every
    if len(kept) < len(every):
        explained[kept], total = explained_variance(*own_units, kept)
    order = kept[np.argsort(-explained[kept], kind="stable")]
    A, explained = np.asarray(A)[:, order], explained[order]
    if prior.symmetric and (task.mixing is None or task.mixing.symmetric):
        peak = A[np.abs(A).argmax(0), np.arange(A.shape[1])]
        A = A * np.where(peak < 0, -1.0, 1.0)
    traces = {k: v for k, v in run.history.items() if k not in ("drift", "sketch")}
    return {
        "mixing_": A,
        "components_": A.T,
        "mean_": mean,
        "noise_variance_": noise if np.ndim(noise) else float(noise),
        "prior_": prior.reordered(order),
        "explained_variance_": explained * unit * unit,
        "explained_variance_ratio_": explained / total,
        "n_iter_": int(run.state.t),
        "convergence_time_": convergence_time(run.history["sketch"]),
        **({} if dof is None else _of_weights(run, task, float(dof))),
        "_record": Record(traces, to_numpy(run.state.parameters.prior), unit, len(A), order),
    } | _of_hidden(run, task, order)


def _normal(dof: float, task: Task) -> bool:
    """Return whether the noise of rows cannot be told from normal noise, so that it is taken as it.

    It is where 1 / dof is within two standard errors of zero. Given q, the sum of d squared normal
    residuals, the score of 1 / dof at zero is (q - d)^2 / 4 without its part along q, which is that
    of the noise variance: its mean square is d (d + 2) / 2 for each row.
    """
    n, d = float(task.constants.total_weight), task.rows.d
    return dof >= min(0.999 * MOST_DOF, float(np.sqrt(n * d * (d + 2) / 8)))


def _simplest(run: Run, task: Task, noise: Any) -> Any:
    """Return one noise variance instead of the columns' own where rows do not tell these apart."""
    if not task.plan.pooled_noise:
        return noise
    mean, differ = _own_noise(run.state, task.constants, task.plan.free_mean)
    return noise if differ > 2 else float(mean) * task.rows.unit**2


@functools.partial(jax.jit, static_argnames="free_mean")  # or each operation would be compiled
def _own_noise(state: State, constants: Constants, free_mean: bool) -> tuple[Array, Array]:
    """Return the mean noise of the columns, and by how many standard errors they differ."""
    left = left_of_columns(state.statistics, state.estimate.A, state.parameters.prior, free_mean)
    left = jnp.maximum(left, constants.floor)
    return left.mean(), told_apart(left, constants.total_weight / 2)


def _of_weights(run: Run, task: Task, dof: float) -> dict[str, Any]:
    """Return what is known of Student noise beside its variance, as attributes."""
    chains: Any = task.collected(run).chains
    chains = chains if isinstance(chains, list) else [chains]  # one of each part of the rows
    weights = np.concatenate([np.asarray(part.mean_weight, float).reshape(-1) for part in chains])
    rows = task.stage_of(int(run.state.t)).sweeper.numbers()
    known = rows < task.rows.n  # the others only fill a block up
    in_order = np.ones(task.rows.n)  # of rows that did not take part nothing is known
    in_order[rows[known]] = weights[: len(rows)][known]
    return {"noise_dof_": dof, "row_weights_": in_order}


def _of_hidden(run: Run, task: Task, order: np.ndarray) -> dict[str, Any]:
    """Return what is known of a hidden A beside its posterior mean, as attributes."""
    mixing, prior = to_numpy(run.state.statistics.mixing), task.plan.mixing
    if prior is None:
        return {}
    variance = np.maximum(mixing.square - np.square(mixing.mean), 0.0)[:, order].T
    if task.rows.basis is not None:
        variance = task.rows.basis.variances(variance)
    deviation = np.sqrt(variance) * task.rows.unit
    of_entries = {
        "mixing_prior_": prior.learnt(run.state.parameters, task.rows.unit, order),
        "_spread": Spread(deviation, float(task.constants.total_weight)),
    }
    if mixing.on is not None:
        of_entries["components_probability_"] = mixing.on[:, order].T
    return of_entries


def standard_deviations(spread: Spread, components: np.ndarray, prior: Prior) -> np.ndarray:
    """Return the posterior standard deviations (p, d) of the entries of a hidden A.

    Parameter expansion holds the scales of the components, so that draws do not tell how uncertain
    these are: what the rows tell of the scales of their coefficients does.
    """
    information = spread.rows * prior.scale_information(len(components))
    of_scale = np.abs(components) / np.sqrt(np.maximum(information, 1.0))[:, None]
    return np.hypot(spread.deviation, of_scale)


def _supported(mixing: Any, explained: np.ndarray) -> np.ndarray:
    """Return the numbers of the components that the data support.

    The data switch superfluous columns of a hidden A off. A column is off when its prior says all
    that is known of it: its posterior mean is small beside its posterior spread.
    """
    every = np.arange(len(explained))
    if mixing is None:
        return every
    known = np.square(mixing.mean).sum(0) / mixing.square.sum(0) > LEAST_KNOWN
    return every[known] if known.any() else every[[int(np.argmax(explained))]]


def history(record: Record) -> dict[str, np.ndarray]:
    """Return what was recorded of each iteration, in the units of X and by name."""
    traces, prior, unit, d, order = record
    noise = traces["noise_variance"] * unit * unit
    n_components = np.full(len(noise), traces["column_norms"].shape[1])
    n_components[-1] = len(order)
    table = {
        "iteration": np.arange(1, len(noise) + 1),
        "n_components": n_components,
        "noise_variance": noise,
        "column_norms": traces["column_norms"][:, order] * unit,
        # expected log density of x given its coefficients, at the M-step's optimum, per row
        "gaussian_log_likelihood": -0.5
        * d
        * (np.log(2 * np.pi) + traces["log_noise"] + 2 * np.log(unit) + 1),
    }
    if "noise_dof" in traces:
        table["noise_dof"] = traces["noise_dof"]
    if "returns" in traces:
        table["returns"] = traces["returns"]
    leaves, structure = jax.tree.flatten(prior)
    values = [traces[f"prior{i}"] for i in range(len(leaves))]
    rows = [
        jax.tree.unflatten(structure, [leaf[t] for leaf in values])
        .rescaled(1 / unit)
        .reordered(order)
        .parameters
        for t in range(len(noise))
    ]
    return table | {name: np.array([row[name] for row in rows]) for name in rows[0]}
