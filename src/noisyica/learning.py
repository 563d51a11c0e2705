r"""The one loop: S <- S + step (S_hat - S), theta <- mstep(S).

SAEM takes one sweep of the sampler for S_hat, with step 1 during burn-in and t^-kappa after it. SEM always
has step 1; MCEM averages several sweeps at step 1.

**Parameter expansion.** Where the noise is low, beta is nearly a function of x and A, and EM-like steps move A by O(sigma^2) only. So
after each sweep the model is enlarged to x = (A R) (R^-1 beta), the likelihood of the drawn beta is maximised in R by one step of relative
Newton, and the result is folded back into A. At the maximum likelihood the expected gradient of that step, E[psi(beta) beta'] - I
with psi = -(log prior)', is zero by Fisher's identity (R moves A along A -> A R), so the limit is the same; the step is scaled by SAEM's.
For smooth laws R is any matrix. Laws with atoms or an infinite peak have no score for rotations (a rotation destroys zeros); theirs
is a Laplace law's, which is the sparse one nearest to them, and since that is not the likelihood's own it is faded out during burn-in;
the components' scales follow the law's own score to the end.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._array import cast
from noisyica.priors import Prior
from noisyica.statistics import Block, Moments, Parameters, Statistics, channel, collect, mstep, transformed

Array = jax.Array
BLOCK = 16384
"""Rows in a block: fixed, because random numbers are keyed by (seed, iteration, block)."""


class Settings(NamedTuple):
    """What does not change during a run and is compiled in."""

    algorithm: str
    sampler: str
    free_mean: bool
    draws: int
    dtype: str


class Schedule(NamedTuple):
    """SAEM's step sizes: 1 for ``burn_in`` iterations, then (t - burn_in + 1)^-kappa."""

    burn_in: int
    kappa: float

    def coarse(self, t: Array) -> Array:
        """How much of a rotation that is not the likelihood's own to take: it fades out by the end of burn-in."""
        return 0.3 * jnp.maximum(1 - t / jnp.maximum(self.burn_in, 1), 0.0)

    def step(self, t: Array) -> Array:
        after = jnp.maximum(t - self.burn_in + 1.0, 1.0)
        return after**-self.kappa


class State(NamedTuple):
    """Where a run stands: enough to go on from."""

    t: Array
    parameters: Parameters
    statistics: Statistics
    latent: Any  # leading axis: blocks


class Data(NamedTuple):
    """The rows in blocks (a leading axis on everything), and their moments."""

    blocks: Block
    moments: Moments
    floor: float

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(number of blocks, d, rows in a block)."""
        return self.blocks.x.shape  # type: ignore[return-value]


def prepare(X: np.ndarray, dtype: str) -> Data:
    """Put rows (already centred and scaled) into transposed blocks; the last block is filled up with rows of weight 0."""
    n, d = X.shape
    count = max(1, -(-n // BLOCK))
    size = -(-n // 32) * 32 if count == 1 else BLOCK  # XLA:CPU splits an odd length over threads into loops that are not vectorised
    x = np.zeros((count, d, size), dtype)
    weight = np.zeros((count, size), dtype)
    for i in range(count):
        rows = X[i * size : (i + 1) * size]
        x[i, :, : len(rows)] = rows.T
        weight[i, : len(rows)] = 1.0 / n
    ones = x.sum(1, dtype=np.float64).astype(dtype)
    moments = Moments(jnp.asarray(X.mean(0, dtype=np.float64)), jnp.asarray(np.square(X, dtype=np.float64).sum(1).mean()))
    # below this, a noise variance is only rounding of the data's products
    floor = (1e-7 if dtype == "float32" else 1e-13) * float(moments.xx) / d
    return Data(Block(jnp.asarray(x), jnp.asarray(ones), jnp.asarray(weight)), moments, max(floor, 1e-300))


@functools.partial(jax.jit, static_argnames=("dtype",))
def begin(data: Data, parameters: Parameters, key: Array, dtype: str) -> State:
    """The state before the first iteration: latent variables drawn from the prior."""
    count, _, size = data.sizes
    prior = cast(parameters.prior, dtype)
    p = parameters.A.shape[1]
    keys = jax.random.split(jax.random.fold_in(key, 0), count)
    latent = lax.map(lambda k: prior.start(k, p, size, dtype), keys)
    if prior.has_offset:  # the prior's offsets may be far from the data: begin with the rows' means
        latent = prior.with_offset(latent, data.blocks.x_one / data.sizes[1])
    first = jax.tree.map(lambda leaf: leaf[0], latent)
    shapes = jax.eval_shape(lambda: collect(prior, first, jax.tree.map(lambda a: a[0], data.blocks)))
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    return State(jnp.zeros((), int), cast(parameters, float), zeros, latent)


def trace(parameters: Parameters) -> dict[str, Array]:
    """What the history records of each iteration."""
    leaves = {f"prior{i}": leaf for i, leaf in enumerate(jax.tree.leaves(parameters.prior))}
    return {"noise_variance": parameters.sigma2, "column_norms": jnp.sqrt((parameters.A**2).sum(0)), **leaves}


@functools.partial(jax.jit, static_argnames=("settings", "length"))
def advance(
    state: State, data: Data, key: Array, count: Array, schedule: Schedule, settings: Settings, length: int
) -> tuple[State, dict[str, Array]]:
    """Run ``count`` <= ``length`` iterations; also the trace of each, in arrays of ``length``."""
    shapes = jax.eval_shape(lambda s: trace(s.parameters), state)
    record = jax.tree.map(lambda s: jnp.zeros((length, *s.shape), s.dtype), shapes)

    def one(i: Array, carry: tuple[State, Any]) -> tuple[State, Any]:
        state, record = carry
        state = iteration(state, data, key, schedule, settings)
        record = jax.tree.map(lambda r, value: r.at[i].set(value), record, trace(state.parameters))
        return state, record

    return lax.fori_loop(0, count, one, (state, record))


def iteration(state: State, data: Data, key: Array, schedule: Schedule, settings: Settings) -> State:
    """One turn of the loop."""
    t, parameters, statistics, latent = state
    latent, found, (H, psi2, count) = expectation(state, data, key, settings)
    step = schedule.step(t) if settings.algorithm == "saem" else jnp.ones(())
    statistics = jax.tree.map(lambda s, new: s + step * (new - s), statistics, found)
    rotation = jnp.minimum(step, 0.3) if parameters.prior.smooth else schedule.coarse(t)
    if settings.sampler == "metropolis" and not parameters.prior.smooth:
        rotation = jnp.zeros(())  # zeros that a rotation destroys would stay destroyed wherever the next proposal is refused
    W = expand(H, psi2, count, found, step, rotation)
    latent = jax.vmap(parameters.prior.transform, in_axes=(0, None))(latent, W.astype(settings.dtype))
    statistics = transformed(statistics, W)
    parameters = mstep(statistics, data.moments, parameters.prior, settings.free_mean, data.floor)
    return State(t + 1, parameters, statistics, latent)


def expectation(state: State, data: Data, key: Array, settings: Settings) -> tuple[Any, Statistics, tuple[Array, Array, Array]]:
    """Sweep all blocks; the new latent variables, their statistics, and the statistics of parameter expansion."""
    parameters = state.parameters
    prior = cast(parameters.prior, settings.dtype)
    sweep = prior.gibbs if settings.sampler == "gibbs" else prior.metropolis
    key = jax.random.fold_in(key, state.t + 1)

    def block_sweeps(inputs: tuple[Array, Block, Any]) -> tuple[Any, Any]:
        index, block, latent = inputs
        tilt = channel(parameters, block)
        block_key = jax.random.fold_in(key, index)
        total = None
        for i in range(settings.draws):
            draw_key = block_key if settings.draws == 1 else jax.random.fold_in(block_key, i)
            latent = sweep(draw_key, latent, tilt)
            found = (collect(prior, latent, block), cast(prior.expansion(latent, block.weight), float))
            total = found if total is None else jax.tree.map(jnp.add, total, found)
        return latent, jax.tree.map(lambda s: s / settings.draws, total)

    inputs = (jnp.arange(data.sizes[0]), data.blocks, state.latent)
    if data.sizes[0] == 1:
        latent, found = block_sweeps(jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[1:]), inputs))
        latent = jax.tree.map(lambda leaf: leaf[None], latent)
    else:
        latent, parts = lax.map(block_sweeps, inputs)
        found = jax.tree.map(lambda leaf: leaf.sum(0), parts)
    return latent, *found


def expand(H: Array, psi2: Array, count: Array, found: Statistics, step: Array, rotation: Array) -> Array:
    """The matrix W of beta -> W beta: one damped step of relative Newton on the drawn coefficients."""
    p = H.shape[0]
    off_diagonal = 1 - jnp.eye(p)
    known = count > 1e-9  # a component that is off in all rows says nothing
    count = jnp.where(known, count, 1.0)
    H, psi2 = jnp.where(known[:, None], H / count[:, None], jnp.eye(p)), psi2 / count
    # E[beta psi(beta)] = 1 at the right scale, with derivative k = 1 + E[beta^2 psi'] in the log scale
    curvature = jnp.outer(psi2, jnp.diag(found.bb))
    k = jnp.clip(1 + jnp.diag(curvature), 2.0, 50.0)
    scale = jnp.exp(-jnp.clip((jnp.diag(H) - 1) / k, -0.5, 0.5) * jnp.minimum(step, 0.5))
    if p == 1:
        return jnp.diag(scale)
    # 2 x 2 blocks of the Hessian: h_ij = E psi'(beta_i) E beta_j^2 (E psi' = E psi^2), coupled by 1, kept away from singular
    low = 0.5 * (curvature + curvature.T - jnp.sqrt((curvature - curvature.T) ** 2 + 4))
    curvature = curvature + jnp.maximum(0.1 - low, 0.0)
    gradient = H * off_diagonal
    newton = -(curvature.T * gradient - gradient.T) / (curvature * curvature.T - 1)
    return jnp.diag(scale) + rotation * jnp.clip(newton, -0.3, 0.3) * off_diagonal


class Run(NamedTuple):
    """The outcome of :func:`learn`."""

    state: State
    history: dict[str, np.ndarray]
    seconds: float


def learn(
    data: Data,
    start: Parameters,
    key: Array,
    settings: Settings,
    schedule: Schedule,
    max_iter: int,
    watch: Callable[[int, State, dict[str, np.ndarray]], bool] | None = None,
) -> Run:
    """Iterate ``max_iter`` times, in chunks; ``watch(t, state, history)`` is called after each chunk and may stop the run."""
    begun = time.perf_counter()
    state = begin(data, start, key, settings.dtype)
    count, d, size = data.sizes
    work = count * size * (d + 30.0) * (start.A.shape[1] + 1) * settings.draws
    length = int(np.clip(2e9 / work, 5, 100))  # about half a second of work between looks
    pieces: list[dict[str, np.ndarray]] = []
    done = 0
    while done < max_iter:
        now = min(length if done else 10, max_iter - done)  # a first look soon, to tell how long it will take
        state, record = advance(state, data, key, jnp.asarray(now), schedule, settings, length)
        pieces.append({name: np.asarray(values)[:now] for name, values in record.items()})
        done += now
        history = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        if watch is not None and watch(done, state, history):
            break
    return Run(state, history, time.perf_counter() - begun)


def best_start(
    data: Data, starts: list[Parameters], key: Array, settings: Settings, watch: Callable[[int], None], n_iter: int = 60
) -> Parameters:
    """The start from which a short run on the first block of rows ends with the least noise."""
    if len(starts) == 1:
        return starts[0]
    data = data._replace(blocks=jax.tree.map(lambda leaf: leaf[:1], data.blocks))
    data = data._replace(blocks=data.blocks._replace(weight=data.blocks.weight / data.blocks.weight.sum()))
    schedule = Schedule(n_iter // 2, 0.75)
    noise = []
    for i, start in enumerate(starts):
        watch(i)
        noise.append(float(learn(data, start, key, settings, schedule, n_iter).state.parameters.sigma2))
    return starts[int(np.nanargmin(noise))]


def prior_with(prior: Prior, values: list[np.ndarray]) -> Prior:
    """The prior with its leaves replaced (to read the history)."""
    return jax.tree.unflatten(jax.tree.structure(prior), values)
