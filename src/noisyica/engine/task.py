"""A fit before it begins: the rows, centred and scaled, and all that is decided from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state

from noisyica import priors
from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.memory_maps import make_room
from noisyica._jax.randomness import key_of
from noisyica.engine import algorithms, means, mixing
from noisyica.engine.algorithms import Algorithm
from noisyica.engine.growth import Stage
from noisyica.engine.holding import burn_in_of, hold, stages
from noisyica.engine.runs import begin
from noisyica.engine.settings import Settings, number_of_draws
from noisyica.engine.state import Constants, Plan, Run, Schedule, State
from noisyica.engine.sweepers import InMemory
from noisyica.posterior.evidence import FEW_PARTICLES, choose_method, log_likelihood
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.student import FIRST_DOF
from noisyica.posterior.units import check_range, in_units
from noisyica.priors import LEAST_SCALE, ROW_WEIGHTS, Prior
from noisyica.rows import starts
from noisyica.rows.block import device_blocks
from noisyica.rows.dimension import Dimension, dimension
from noisyica.rows.neighbours import Smooth
from noisyica.rows.scaling import Summary
from noisyica.rows.source import Rows

SCORED_ROWS = 512
"""The number of rows by whose likelihood starts and runs are compared."""

SCORED_STATES = 2187
"""The maximum number of states of the discrete variables with which that likelihood is exact.

With few states that takes less time to compile and to run than annealing."""

SCORED_PARTICLES = {"sequential": FEW_PARTICLES, "annealed": 1}
"""The number of particles per row where it is an average of weights."""

FEW_PRODUCTS = 3e7
"""The size n d p up to which some of the rows are learnt from by the code for all of them.

Beyond it, sweeping rows of no weight as well takes longer than compiling anew."""

ROUNDING = {"float32": 1e-7, "float64": 1e-13}
"""The minimum noise variance that can be told from rounding, as a share of x's mean square."""

LEAST_AT_MODE = 1e-4
"""The same for EM at the mode with more components than columns, which fit any row."""

LEAST_OWN_NOISE = 1e-3
"""The minimum noise variance of a column with noise of its own, as a share of its mean square.

The likelihood grows without bound, or nearly, where a component takes a single column over and that
column's noise runs to zero (a Heywood case): it says nothing of the data. The bound is that of a
measurement with an error of three per cent of its spread, and five times below the bound that is
usual in factor analysis (0.005). It is lower where the noise of the other columns is
(:mod:`noisyica.engine.mstep`). Sampling gets slow as the noise goes to zero, in proportion to the
inverse of this."""

LEAST_COLUMN = 1e-34
"""The minimum noise variance of any column, as a share of x's mean square.

Its inverse has to stay within the range of single precision."""


class Task(NamedTuple):
    """The rows, in units of their root mean square, and what was decided before learning begins."""

    rows: Rows
    summary: Summary
    squares: np.ndarray  # (d,)  the weighted sums of the squares of the columns
    sample: Any  # rows, missing entries filled in, that starts are made of; None once they are made
    scored: np.ndarray  # the rows by whose likelihood starts and runs are compared
    prior: Prior
    p: int
    with_own_noise: int | None  # how many components there would be with diagonal noise, if fewer
    plan: Plan
    mixing: Any  # what is to be learnt of the prior of A's entries, if these have a law
    constants: Constants  # when all rows take part
    stages: tuple[Stage, ...]
    key: jax.Array
    rng: np.random.RandomState

    @property
    def zeros(self) -> Parameters:
        """Parameters of the right shapes: A and the mean are zero, the noise variance is 1."""
        A, mean = np.zeros((self.rows.d, self.p)), np.zeros(self.rows.d)
        dof = FIRST_DOF if self.plan.student else None
        values: Any = (A, mean, 1.0, self.prior, self.mixing, dof)
        return cast(Parameters(*values), float)

    def score(self, state: State) -> float:
        """Return the mean log likelihood of the rows ``scored``, up to a constant.

        Where the entries of a hidden A have a law, the log density of A is added, per row.
        """
        parameters = state.estimate
        if not (np.isfinite(parameters.sigma2).all() and np.isfinite(parameters.A).all()):
            return -np.inf  # learning broke down
        particles = SCORED_PARTICLES.get(self.scoring_method(self.prior))
        values = self.log_likelihood(parameters, n_particles=particles, seed=_SCORE_SEED)
        prior = self.plan.mixing
        of_mixing = (
            0.0 if prior is None else prior.log_density(state.parameters, state.statistics.mixing)
        )
        return float(values.mean()) + of_mixing / float(self.constants.total_weight)

    def scoring_method(self, prior: Prior) -> str:
        """Return by which method the likelihood of the rows ``scored`` is computed."""
        student = self.plan.student
        missing = bool(np.isnan(self.scored).any())
        return choose_method(prior, self.p, missing, "auto", SCORED_STATES, student)

    def log_likelihood(self, parameters: Parameters, **options: Any) -> np.ndarray:
        """Return log p(x) of each of the rows ``scored``, with options of the likelihood."""
        method = self.scoring_method(parameters.prior)
        parameters = on_host(parameters)
        return log_likelihood(parameters, self.scored, method, rounds=0, **options)[0]

    def begun(self, iteration: int, start: Parameters | None = None) -> Run:
        """Return a run that begins at a start, or any that is like one of so many iterations.

        What joins with a stage joins when that stage is entered.
        """
        stage = self.stage_of(iteration)
        return begin(stage.sweeper, start or self.zeros, self.plan, stage.constants)

    def stage_of(self, iteration: int) -> Stage:
        """Return the stage in which a run has done so many iterations."""
        return [stage for stage in self.stages if stage.first < max(iteration, 1)][-1]

    def collected(self, run: Run) -> Run:
        """Return the run with its chains here, wherever its rows are."""
        sweeper = self.stage_of(int(run.state.t)).sweeper
        return run._replace(chains=sweeper.collected(run.chains))

    @property
    def only_block(self) -> InMemory | None:
        """The rows, where one block in memory holds all of them."""
        rows = self.stages[-1].sweeper
        return rows if isinstance(rows, InMemory) and len(rows.blocks.weight) == 1 else None

    def part(self, numbers: np.ndarray) -> tuple[InMemory, float]:
        """Return some of the rows in memory, and the share of the total weight these have.

        Where one block holds all rows, and these are few, the weight of the others is zero there:
        so the code that was compiled for all rows serves.
        """
        rows = self.rows.part(numbers)
        share = rows.total_weight / self.rows.total_weight
        if self.only_block is None or self.rows.n * self.rows.d * self.p > FEW_PRODUCTS:
            return InMemory(device_blocks(rows, self.plan.dtype)), share
        blocks = self.only_block.blocks
        x = np.asarray(blocks.x)[0]  # a view
        weight = np.zeros(x.shape[1])
        weight[numbers] = np.asarray(blocks.weight[0], float)[numbers]
        part = blocks._replace(
            weight=jnp.asarray(weight[None], self.plan.dtype),
            sum_x=jnp.asarray(np.einsum("dn,n->d", x, weight)[None]),
            sum_xx=jnp.asarray(np.einsum("dn,dn,n->d", x, x, weight)[None]),
        )
        return InMemory(part), share

    def in_units_of_x(self, parameters: Parameters) -> Parameters:
        """Return the parameters in the units of X, and in its basis."""
        converted: Any = in_units(parameters, 1 / self.rows.unit)
        rows = self.rows
        if rows.basis is not None:
            back = rows.from_basis(np.vstack([converted.A.T, converted.mean]))
            converted = converted._replace(A=back[:-1].T, mean=back[-1])
        return converted._replace(mean=rows.centre + converted.mean)


def on_host(parameters: Parameters) -> Parameters:
    """Return the parameters as the likelihood takes them: in NumPy's double precision."""
    return cast(to_numpy(parameters)._replace(mixing=None), float)


# the seed that Model.log_likelihood makes of its random_state=0
_SCORE_SEED = int(np.random.RandomState(0).randint(2**31 - 1))


def prepare(settings: Settings, rows: Rows) -> Task:
    """Centre and scale the rows, put them on the device, and decide what settings leave open."""
    make_room()
    prior = means.shifted(priors.get(settings.prior), settings.mean)
    free_mean = settings.mean == "free" and prior.takes_mean
    rows, summary = rows.centred(free_mean)
    check_range(rows.unit, "The entries of X")
    prior = _in_units_of_rows(settings, prior, rows, summary)
    rng = check_random_state(settings.random_state)  # the order of its draws decides the fit
    key = key_of(int(rng.randint(2**31 - 1)))
    further = rows.scaled_by_others  # learning has begun with other rows: no start is needed
    all_rows = None if further else _all_rows(rows)
    algorithm = algorithms.get(settings.algorithm, settings.sampler, number_of_draws(settings))
    noise = _noise(settings, algorithm, prior)
    found = _dimension(settings, noise, rows, summary, all_rows)
    p = found.p
    plan = _plan(settings, algorithm, noise, free_mean, fewer=p < rows.d)
    rows = _in_basis(settings, plan, rows, prior.has_offset, summary.missing)
    all_rows = None if all_rows is None else rows.to_basis(all_rows)
    share = rows.share
    resampled = None if share is None else rng.choice(rows.n, min(rows.n, starts.MAX_ROWS), p=share)
    scored = rng.choice(rows.n, min(rows.n, SCORED_ROWS), replace=share is not None, p=share)
    prior = prior.for_components(p)
    plan.algorithm.check(prior, p, summary.missing)
    if plan.student:
        ROW_WEIGHTS.require(prior)
    sample = None if further else _sample(rows, all_rows, resampled, rng)
    held = hold(settings, plan, rows, summary.missing, p, sample, key)
    floor = _least_noise(plan, p, held.squares / rows.n / np.maximum(summary.observed, 1e-300))
    constants = _constants(settings, plan, rows, floor)
    return Task(
        rows=rows,
        summary=summary,
        squares=held.squares,
        sample=sample,
        # rounded, since random numbers are a hash of a row: the unit of X must not decide a fit
        scored=rows.chosen(scored).astype(np.float32).astype(float),
        prior=prior,
        p=p,
        with_own_noise=found.own_noise,
        plan=plan,
        mixing=mixing.first_parameters(settings.mixing_prior, p, rows.d, rows.basis)
        if plan.mixing
        else None,
        constants=constants,
        stages=stages(held, constants),
        key=key,
        rng=rng,
    )


def _in_units_of_rows(settings: Settings, prior: Prior, rows: Rows, summary: Summary) -> Prior:
    """Return the prior for rows in their unit, its offset, if there is one, as the settings say."""
    size = max(summary.offset, LEAST_SCALE * rows.unit)
    prior = means.with_offset(prior, settings.mean, size)
    if prior.begins_with_rows:
        prior = prior.rescaled(float(np.asarray(prior.offset_scale)) / size)
    prior = to_numpy(prior).rescaled(rows.unit)
    ratio = float(np.asarray(prior.offset_scale))
    if prior.has_offset and not LEAST_SCALE <= ratio <= 1 / LEAST_SCALE:
        raise ValueError(
            f"The prior's offset_scale is {ratio:.3g} times the root mean square of X: it has the "
            "units of X. Leave it out to have it learnt, or rescale it."
        )
    return prior


class _Noise(NamedTuple):
    """What may differ in the noise, and whether it does so only as far as the rows tell it."""

    of_columns: bool
    of_rows: bool
    automatic: bool


def _noise(settings: Settings, algorithm: Algorithm, prior: Prior) -> _Noise:
    """Return the kind of noise that the settings stand for. "auto" has what is possible.

    Algorithms that draw nothing have no weights of rows, nor have priors that do not know them.
    Coefficients at their mode leave nothing by which the noise of a column could be told, and in
    the basis of smooth components there are no columns of X.
    """
    if settings.noise == "student" and not algorithm.stochastic:
        raise ValueError(
            f"algorithm={algorithm.name!r} does not know noise='student': it draws nothing, and "
            "would have to integrate the rows' weights out. Take algorithm='saem' (or 'mcem', "
            "'sem'), or noise='isotropic'."
        )
    if settings.noise != "auto":
        return _Noise(settings.noise == "diagonal", settings.noise == "student", False)
    smooth = isinstance(settings.mixing_prior, Smooth)
    weights = algorithm.stochastic and ROW_WEIGHTS.of(prior)
    return _Noise(not smooth and not algorithm.at_mode, weights, True)


def _plan(
    settings: Settings, algorithm: Algorithm, noise: _Noise, free_mean: bool, fewer: bool
) -> Plan:
    """Return the kind of model that the settings stand for, and how it is learnt.

    ``fewer`` says whether there are fewer components than columns: where there are not, nothing is
    left by which "auto" noise of a column could be told.
    """
    return Plan(
        algorithm=algorithm,
        free_mean=free_mean,
        # algorithms that draw no coefficients do not draw A, either: they are maximum likelihood
        mixing=mixing.get(settings.mixing_prior) if algorithm.stochastic else None,
        diagonal=noise.of_columns and (fewer or not noise.automatic),
        automatic_noise=noise.automatic,
        student=noise.of_rows,
        truncate=bool(settings.boundaries),
        dtype=settings.dtype,
    )


def _in_basis(settings: Settings, plan: Plan, rows: Rows, offset: bool, missing: bool) -> Rows:
    """Return the rows in the basis in which A's entries have the prior that the settings say."""
    if plan.mixing is None:
        return rows
    basis = mixing.basis(settings.mixing_prior, rows.d, missing, plan.diagonal, offset)
    return rows if basis is None else rows.in_basis(basis)


def _constants(settings: Settings, plan: Plan, rows: Rows, least_noise: np.ndarray) -> Constants:
    """Return the numbers that are fixed during a run."""
    draws = number_of_draws(settings) if plan.algorithm.several_draws else (1, 1)
    return Constants(
        total_weight=np.asarray(rows.total_weight),
        floor=least_noise,
        schedule=Schedule(burn_in_of(settings), float(settings.kappa), draws, settings.max_iter),
    )


def _least_noise(plan: Plan, p: int, of_columns: np.ndarray) -> np.ndarray:
    """Return the minimum noise variance: that of all columns, or of each where they have their own.

    ``of_columns`` are the mean squares of the columns.

    EM at the mode needs a bound where there are more components than columns, since these then fit
    any row.
    """
    mean_square = of_columns.mean()
    if not plan.diagonal:
        unbounded = plan.algorithm.at_mode and p > len(of_columns)
        share = LEAST_AT_MODE if unbounded else ROUNDING[plan.dtype]
        return np.asarray(share * mean_square)
    own = np.maximum(LEAST_OWN_NOISE * of_columns, LEAST_COLUMN * mean_square)
    # a constant column says nothing of its noise: it gets as little as can be told from rounding
    return np.where(of_columns > 0, own, ROUNDING[plan.dtype] * mean_square)


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


def _dimension(
    settings: Settings,
    noise: _Noise,
    rows: Rows,
    summary: Summary,
    all_rows: np.ndarray | None,
) -> Dimension:
    """Return the number of components to learn: as set, or the number of variances above noise."""
    if settings.n_components != "auto":
        return Dimension(int(settings.n_components))
    return dimension(rows, all_rows, summary.missing, noise.of_columns, noise.of_rows)
