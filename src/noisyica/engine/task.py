"""A fit before it begins: the rows, centred and scaled, and all that is decided from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state

from noisyica import priors
from noisyica._jax.arrays import cast, to_numpy
from noisyica.engine import algorithms
from noisyica.engine.settings import Settings, number_of_draws
from noisyica.engine.state import Constants, Plan, Schedule
from noisyica.posterior.enumeration import count_states
from noisyica.posterior.evidence import annealed_log_likelihood, exact_log_likelihood
from noisyica.posterior.parameters import Parameters
from noisyica.priors import Prior
from noisyica.rows import starts
from noisyica.rows.block import Block, device_blocks
from noisyica.rows.scaling import Summary
from noisyica.rows.source import Rows

SCORED_ROWS = 512
"""The number of rows by whose likelihood starts and runs are compared."""

SCORED_STATES = 2187
"""The maximum number of states of the discrete variables with which that likelihood is exact.

With few states that takes less time to compile and to run than annealing."""

ROUNDING = {"float32": 1e-7, "float64": 1e-13}
"""The minimum noise variance that can be told from rounding, as a share of x's mean square."""


class Task(NamedTuple):
    """The rows, in units of their root mean square, and what was decided before learning begins."""

    rows: Rows
    summary: Summary
    blocks: Block
    sample: Any  # rows, missing entries filled in, that starts are made of; None once they are made
    scored: np.ndarray  # the rows by whose likelihood starts and runs are compared
    prior: Prior
    p: int
    plan: Plan
    constants: Constants
    key: jax.Array
    rng: np.random.RandomState

    @property
    def zeros(self) -> Parameters:
        """Parameters of the right shapes: A and the mean are zero, the noise variance is 1."""
        values: Any = (np.zeros((self.rows.d, self.p)), np.zeros(self.rows.d), 1.0, self.prior)
        return cast(Parameters(*values), float)

    def score(self, parameters: Parameters) -> float:
        """Return the mean log likelihood of the rows ``scored``, up to a constant."""
        if not (np.isfinite(parameters.sigma2).all() and np.isfinite(parameters.A).all()):
            return -np.inf  # learning broke down
        parameters = cast(to_numpy(parameters)._replace(tau2=None), float)
        states = count_states(self.prior, self.p)
        if states is not None and states <= SCORED_STATES and not np.isnan(self.scored).any():
            return float(exact_log_likelihood(parameters, self.scored, verbose=False).mean())
        return float(annealed_log_likelihood(parameters, self.scored, seed=_SCORE_SEED)[0].mean())

    def part(self, numbers: np.ndarray) -> tuple[Block, float]:
        """Return blocks with some of the rows only, and the share of the total weight these have.

        Where one block holds all rows, the weight of the others is zero there, so that the code
        that was compiled for all rows serves.
        """
        rows = self.rows.part(numbers)
        share = rows.total_weight / self.rows.total_weight
        if len(self.blocks.weight) > 1:
            return device_blocks(rows, self.plan.dtype), share
        x = np.asarray(self.blocks.x)[0]  # a view
        weight = np.zeros(x.shape[1])
        weight[numbers] = np.asarray(self.blocks.weight[0], float)[numbers]
        return self.blocks._replace(
            weight=jnp.asarray(weight[None], self.plan.dtype),
            sum_x=jnp.asarray(np.einsum("dn,n->d", x, weight)[None]),
            sum_xx=jnp.asarray(np.einsum("dn,dn,n->d", x, x, weight)[None]),
        ), share

    def in_units_of_x(self, parameters: Parameters) -> Parameters:
        """Return the parameters in the units of X."""
        values: Any = to_numpy(parameters)
        A, mean, sigma2, prior, _ = values
        unit = self.rows.unit
        # squares of tiny units underflow
        noise = np.maximum(sigma2 * unit**2, np.finfo(float).tiny)
        centre = self.rows.centre + mean * unit
        converted: Any = (A * unit, centre, noise, prior.rescaled(1 / unit))
        return Parameters(*converted)


# the seed that Model.log_likelihood makes of its random_state=0
_SCORE_SEED = int(np.random.RandomState(0).randint(2**31 - 1))


def prepare(settings: Settings, rows: Rows) -> Task:
    """Centre and scale the rows, put them on the device, and decide what settings leave open."""
    prior = priors.get(settings.prior)
    if settings.mean == "shift":
        prior = prior.shifted()
    free_mean = settings.mean == "free" and not prior.has_offset
    rows, summary = rows.centred(free_mean)
    if settings.mean == "offset" and not prior.has_offset:
        prior = priors.Offset(prior, max(summary.offset, 1e-300))
    prior = to_numpy(prior).rescaled(rows.unit)
    rng = check_random_state(settings.random_state)  # the order of its draws decides the fit
    key = jax.random.key(rng.randint(2**31 - 1))
    all_rows = _all_rows(rows)
    p = _number_of_components(settings, rows, summary, all_rows)
    share = rows.share
    resampled = None if share is None else rng.choice(rows.n, min(rows.n, starts.MAX_ROWS), p=share)
    scored = rng.choice(rows.n, min(rows.n, SCORED_ROWS), replace=share is not None, p=share)
    prior = prior.for_components(p)
    plan = _plan(settings, prior, free_mean)
    plan.algorithm.check(prior, p, summary.missing)
    blocks = device_blocks(rows, settings.dtype)
    return Task(
        rows=rows,
        summary=summary,
        blocks=blocks,
        sample=_sample(rows, all_rows, resampled, rng),
        scored=rows.chosen(scored),
        prior=prior,
        p=p,
        plan=plan,
        constants=_constants(settings, plan, rows, blocks),
        key=key,
        rng=rng,
    )


def _plan(settings: Settings, prior: Prior, free_mean: bool) -> Plan:
    """Return the algorithm and the kind of model that the settings stand for."""
    draws = number_of_draws(settings)
    algorithm = algorithms.get(settings.algorithm, settings.sampler, draws)
    return Plan(
        algorithm=algorithm,
        free_mean=free_mean,
        # algorithms that draw no coefficients do not draw A, either: they are maximum likelihood
        sample_mixing=settings.mixing_prior == "normal" and algorithm.stochastic,
        diagonal=settings.noise == "diagonal",
        truncate=bool(settings.boundaries),
        dtype=settings.dtype,
    )


def _constants(settings: Settings, plan: Plan, rows: Rows, blocks: Block) -> Constants:
    """Return the numbers that are fixed during a run."""
    mean_square = float(np.asarray(blocks.sum_xx).sum()) / (rows.n * rows.d)
    burn_in = round(settings.burn_in * settings.max_iter)
    draws = number_of_draws(settings) if plan.algorithm.several_draws else (1, 1)
    return Constants(
        total_weight=np.asarray(rows.total_weight),
        floor=np.asarray(max(ROUNDING[settings.dtype] * mean_square, 1e-300)),
        schedule=Schedule(burn_in, float(settings.kappa), draws, settings.max_iter),
    )


def _all_rows(rows: Rows) -> np.ndarray | None:
    """Return all rows, their missing entries filled in, or None if there are too many."""
    return starts.fill(rows.standardised(0, rows.n)) if rows.n <= starts.MAX_ROWS else None


def _sample(
    rows: Rows,
    all_rows: np.ndarray | None,
    resampled: np.ndarray | None,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return the rows that starts are made of, at most ``starts.MAX_ROWS``.

    Starts take no weights. Where rows have weights, ``resampled`` are the numbers of rows that were
    drawn by them.
    """
    if all_rows is not None:
        return all_rows if resampled is None else all_rows[resampled]
    if resampled is None:
        resampled = rng.choice(rows.n, starts.MAX_ROWS, replace=False)
    return starts.fill(rows.chosen(resampled))


def _number_of_components(
    settings: Settings, rows: Rows, summary: Summary, all_rows: np.ndarray | None
) -> int:
    """Return the number of components to learn: as set, or the number of variances above noise."""
    if settings.n_components != "auto":
        return int(settings.n_components)
    if all_rows is not None:
        return starts.count_above_noise(starts.principal(all_rows)[0], *all_rows.shape)
    if summary.missing or rows.d > starts.MAX_COLUMNS:
        numbers = np.random.RandomState(0).choice(rows.n, starts.MAX_ROWS, replace=False)
        some_rows = starts.fill(rows.chosen(numbers))
        return starts.count_above_noise(starts.principal(some_rows)[0], *some_rows.shape)
    return starts.count_above_noise(starts.principal_variances(rows), rows.n, rows.d)
