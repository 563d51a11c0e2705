r"""The one loop: S <- S + step (S_hat - S), theta <- mstep(S).

SAEM takes one sweep of the sampler for S_hat, with step 1 during burn-in and t^-kappa after it. SEM always
has step 1; MCEM averages several sweeps at step 1, EM has the exact expectation, FAM-EM the mode.

**A hidden.** With ``mixing_prior="normal"`` A is drawn with the coefficients, from its Gaussian conditional given them, and the averages
are those of its conditional moments (:mod:`noisyica.engine.statistics`).

**Parameter expansion.** Where the noise is low, beta is nearly a function of x and A, and EM-like steps move A by O(sigma^2) only. So
after each sweep the model is enlarged to x = (A R) (R^-1 beta), the likelihood of the drawn beta is maximised in R by one step of relative
Newton, and the result is folded back. At the maximum likelihood the expected gradient of that step, E[psi(beta) beta'] - I
with psi = -(log prior)', is zero by Fisher's identity (R moves A along A -> A R), so the limit is the same; the step is scaled by SAEM's.
Where A is hidden, integrating by parts along the same flow gives E[psi(beta_i) beta_j] = E[a_i'a_j] / (n tau_j^2) for i != j under the
posterior of (A, beta), whatever the parameters: that is the gradient whose zero is sought then, with at least a fifth of the step to
the end (the draws of A are not averaged, and would wander).
For smooth laws R is any matrix. Laws with atoms or an infinite peak have no score for rotations (a rotation destroys zeros); theirs
is a Laplace law's, which is the sparse one nearest to them, and since that is not the likelihood's own it is faded out during burn-in;
the components' scales follow the law's own score to the end.
The mean crawls for the same reason: beta -> beta + delta with mean -> mean - A delta leaves x as it is. Where the mean is free and the law
smooth, delta follows E[psi(beta)], which is zero at the maximum likelihood, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from threadpoolctl import threadpool_limits

from noisyica._jax.arrays import Compiled, cast, double_precision, to_numpy
from noisyica.engine.statistics import (
    Block,
    Parameters,
    Statistics,
    channel,
    collect,
    draw_mixing,
    impute,
    mstep,
    shifted,
    transformed,
)
from noisyica.posterior import enumeration
from noisyica.priors import Prior

Array = jax.Array
BLOCK = 16384
"""Rows in a block: fixed, because random numbers are keyed by (seed, iteration, block)."""

SMALL = 2048
"""Up to so many coefficients, compiling takes longer than learning, and is done quickly."""


class Settings(NamedTuple):
    """What does not change during a run and is compiled in."""

    algorithm: str
    sampler: str
    free_mean: bool
    several: bool  # whether an iteration takes more than one sweep (MCEM)
    dtype: str
    hidden: bool = False  # whether A is drawn
    diagonal: bool = False  # whether each column of x has a noise variance of its own
    bounded: bool = False  # whether statistics are truncated on random boundaries

    @property
    def stochastic(self) -> bool:
        """Whether coefficients are drawn, rather than integrated out or at their mode."""
        return self.algorithm not in ("em", "fam-em")


class Schedule(NamedTuple):
    """SAEM's step sizes: 1 for ``burn_in`` iterations, then (t - burn_in + 1)^-kappa. And MCEM's sweeps, growing evenly to ``end``."""

    burn_in: int
    kappa: float
    draws: tuple[int, int] = (1, 1)
    end: int = 1

    def sweeps(self, t: Array) -> Array:
        """The number of sweeps in iteration t."""
        first, last = self.draws
        return jnp.round(first + (last - first) * t / jnp.maximum(self.end - 1, 1)).astype(int)

    def coarse(self, t: Array) -> Array:
        """How much of a rotation that is not the likelihood's own to take: it fades out by the end of burn-in."""
        return 0.4 * jnp.maximum(1 - t / jnp.maximum(self.burn_in, 1), 0.0)

    def step(self, t: Array) -> Array:
        after = jnp.maximum(t - self.burn_in + 1.0, 1.0)
        return after**-self.kappa


class State(NamedTuple):
    """Where a run stands: enough to go on from."""

    t: Array
    parameters: Parameters
    statistics: Statistics
    latent: Any  # leading axis: blocks
    x: Any = None  # the rows with their missing entries filled in, where there are any
    signal: Any = None  # what this iteration's draws alone say: stationary once the parameters are
    home: Any = None  # truncation: how often it was needed, and the parameters, statistics, latent variables and x to return to

    @property
    def estimate(self) -> Parameters:
        """The parameters to report: for a hidden A the average of its conditional mean, not its last draw."""
        mixing = self.statistics.mixing
        return self.parameters if mixing is None else self.parameters._replace(A=mixing.mean)


class Run(NamedTuple):
    """Where a run stands, and what it recorded of each iteration so far."""

    state: State
    history: dict[str, np.ndarray]


class Data(NamedTuple):
    """The rows in blocks (a leading axis on everything), how many they count for, and the least noise that can be told from rounding."""

    blocks: Block
    rows: Any
    floor: Any

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(number of blocks, d, rows in a block)."""
        return self.blocks.x.shape  # type: ignore[return-value]


def _padded(n: int) -> int:
    """Rows to compile for: a few per cent more, so that data of nearly the same length (folds, say) share what is compiled.

    And a multiple of 32: XLA:CPU splits an odd length over threads into loops that are not vectorised.
    """
    step = max(32, 1 << max(n.bit_length() - 5, 0))
    return -(-n // step) * step


def prepare(X: np.ndarray, dtype: str, weights: np.ndarray | None = None) -> Data:
    """Put rows (already centred and scaled) into transposed blocks; the last block is filled up with rows of weight 0.

    Missing entries are NaN. ``weights`` says how many rows each counts for.
    """
    n, d = X.shape
    share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    count = max(1, -(-n // BLOCK))
    size = _padded(n) if count == 1 else BLOCK
    x = np.zeros((count, d, size))
    weight = np.zeros((count, size))
    for i in range(count):
        rows = X[i * size : (i + 1) * size]
        x[i, :, : len(rows)] = rows.T
        weight[i, : len(rows)] = share[i * size : (i + 1) * size]
    missing = np.isnan(x)
    x[missing] = 0.0
    sum_x, sum_xx = np.einsum("kdn,kn->kd", x, weight), np.einsum("kdn,kn->kd", x * x, weight)
    # below this, a noise variance is only rounding of the data's products
    floor = (1e-7 if dtype == "float32" else 1e-13) * sum_xx.sum() / d
    observed = jnp.asarray(~missing) if missing.any() else None
    blocks = Block(
        jnp.asarray(x, dtype),
        jnp.asarray(weight, dtype),
        jnp.asarray(sum_x),
        jnp.asarray(sum_xx),
        observed,
    )
    return Data(
        blocks,
        np.asarray(float(n) if weights is None else float(weights.sum())),
        np.asarray(max(floor, 1e-300)),
    )


def begin(data: Data, parameters: Parameters, settings: Settings) -> Run:
    """A run before the first iteration. Nothing here is compiled."""
    count, d, size = data.sizes
    p = parameters.A.shape[1]
    latent = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (count, *leaf.shape)),
        parameters.prior.blank(p, size, settings.dtype),
    )
    parameters = to_numpy(parameters)
    offset = (
        np.asarray(data.blocks.x).mean(1) if parameters.prior.has_offset else np.zeros((count, 1))
    )
    if (
        parameters.prior.has_offset
    ):  # the prior's offsets may be far from the data: begin with the rows' means
        latent = parameters.prior.with_offset(latent, offset)
    latent = parameters.prior.with_coefficients(
        latent, _linear(data, parameters, offset, settings.dtype)
    )
    if settings.hidden:
        parameters = parameters._replace(tau2=np.square(parameters.A).mean(0) + data.floor)
    if settings.diagonal:
        parameters = parameters._replace(sigma2=np.broadcast_to(parameters.sigma2, (d,)))  # type: ignore[arg-type]
    x = None if data.blocks.observed is None else data.blocks.x
    state = State(np.zeros((), int), parameters, None, latent, x)  # type: ignore[arg-type]
    shapes = _first_statistics.eval_shape(state, data, settings)
    statistics, silence = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), shapes)
    state = state._replace(statistics=statistics, signal=silence)
    return Run(
        state._replace(home=(np.zeros((), int), *state[1:5])) if settings.bounded else state, {}
    )


def _linear(data: Data, parameters: Parameters, offset: np.ndarray, dtype: str) -> np.ndarray:
    """The coefficients that a normal prior would give, (blocks, p, rows).

    Sweeps from zeros would let the first components take what belongs to the others wherever columns are nearly parallel, as those of
    independent components are when one direction has most of the variance; and learning from that goes astray.
    """
    A, weight = parameters.A, 1 / np.broadcast_to(parameters.sigma2, len(parameters.A))
    precision = (A.T * weight) @ A + np.eye(A.shape[1]) / parameters.prior.variance()
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        solve = np.linalg.solve(precision, A.T * weight).astype(dtype)
        centre = parameters.mean.astype(dtype)[:, None]
        return np.stack(
            [
                solve @ (np.asarray(x) - centre - m.astype(dtype))
                for x, m in zip(data.blocks.x, offset, strict=True)
            ]
        )


@functools.partial(
    jax.jit, static_argnames="settings"
)  # never run, but its shapes are worked out once, not at each fit
def _first_statistics(state: State, data: Data, settings: Settings) -> tuple[Statistics, Array]:
    prior = cast(state.parameters.prior, settings.dtype)
    first = jax.tree.map(lambda leaf: leaf[0], (state.latent, data.blocks))
    statistics = collect(prior, *first)
    if settings.hidden:
        mixing = draw_mixing(
            jax.random.key(0), statistics, state.parameters, data.rows, settings.free_mean
        )[1]
        statistics = statistics._replace(mixing=mixing)
    return statistics, signal(statistics)


def trace(state: State) -> dict[str, Array]:
    """What the history records of each iteration."""
    found = state.estimate
    leaves = {f"prior{i}": leaf for i, leaf in enumerate(jax.tree.leaves(found.prior))}
    norms, sketch = jnp.sqrt((found.A**2).sum(0)), _sketch(len(found.A)) @ found.A
    if state.home is not None:
        leaves["returns"] = state.home[0]
    noise = {"noise_variance": found.sigma2.mean(), "log_noise": jnp.log(found.sigma2).mean()}
    return {**noise, "column_norms": norms, "sketch": sketch, "signal": state.signal, **leaves}


def _sketch(d: int) -> np.ndarray:
    """Random directions: projections on them tell whether A moves, and how far, at little cost."""
    return np.random.RandomState(0).normal(size=(4, d))


def signal(found: Statistics) -> Array:
    """A few numbers that summarise an iteration's draws."""
    parts = [jnp.diag(found.bb), found.prior]
    if found.mixing is None:
        parts.append(_sketch(len(found.x)) @ found.xb)
    else:
        parts += [_sketch(len(found.x)) @ found.mixing.mean, found.mixing.residual.mean()]
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(parts)])


def _advance(
    state: State,
    data: Data,
    key: Array,
    count: Array,
    schedule: Schedule,
    settings: Settings,
    length: int,
) -> tuple[State, dict[str, Array]]:
    """Run ``count`` <= ``length`` iterations; also the trace of each, in arrays of ``length``."""
    # a trace is noted as one vector: each small array by itself would be one more thing to do, and to hand to another thread
    flat, unravel = ravel_pytree(
        jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(trace, state))
    )

    def turn(i: Array, state: State, record: Array) -> tuple[State, Array]:
        state = iteration(state, data, key, schedule, settings)
        return state, record.at[i].set(ravel_pytree(trace(state))[0])

    def one(i: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
        # a branch that is always taken: XLA:CPU shares the many small steps of a loop's body out among threads, which costs small
        # problems up to a third of their time, but leaves those of a branch together
        return lax.cond(i >= 0, turn, lambda i, state, record: (state, record), i, *carry)

    state, record = lax.fori_loop(0, count, one, (state, jnp.zeros((length, len(flat)))))
    return state, jax.vmap(unravel)(record)


advance = Compiled(_advance, ("settings", "length"))


def iteration(
    state: State, data: Data, key: Array, schedule: Schedule, settings: Settings
) -> State:
    """One turn of the loop."""
    t, parameters, statistics = state.t, state.parameters, state.statistics
    prior = parameters.prior
    key = jax.random.fold_in(key, t + 1)
    latent, x, found, expansion = expectation(state, data, key, schedule, settings)
    step = schedule.step(t) if settings.algorithm == "saem" else jnp.ones(())
    W = _move(expansion, found, parameters, step, schedule.coarse(t), data.rows, settings)
    W = jnp.where(moves(t, settings), W, jnp.eye(len(found.b)))
    shifts = _has_shift(prior, settings)
    shift = jnp.where(moves(t, settings) & shifts, _shift(expansion, step), 0.0)
    move = jax.vmap(lambda one: prior.transform(one, *cast((W, shift), settings.dtype)))
    latent = lax.cond(moves(t, settings), move, lambda latent: latent, latent)
    if settings.hidden:
        found = transformed(found, W)
        if shifts:  # the mean, a function of the average, has to follow
            found, statistics = shifted(found, shift), shifted(statistics, shift)
        draw, mixing = draw_mixing(
            jax.random.fold_in(key, data.sizes[0]), found, parameters, data.rows, settings.free_mean
        )
        found = found._replace(mixing=mixing)
    statistics = jax.tree.map(lambda s, new: s + step * (new - s), statistics, found)
    if not settings.hidden:
        statistics = transformed(statistics, W)  # so has A
        statistics = shifted(statistics, shift) if shifts else statistics
    parameters = mstep(statistics, prior, settings.free_mean, settings.diagonal, data.floor)
    if prior.smooth and settings.stochastic:
        # let A turn first: fitted to mixtures of components, a law looks normal
        parameters = parameters._replace(
            prior=_unless(t < schedule.burn_in / 4, parameters.prior, prior)
        )
    if settings.hidden:
        parameters = parameters._replace(A=draw, tau2=jnp.maximum(parameters.tau2, data.floor))
    new = State(t + 1, parameters, statistics, latent, x, signal(found), state.home)
    return truncated(new, state.statistics, step) if settings.bounded else new


def truncated(state: State, before: Statistics, step: Array) -> State:
    """The state, or where the run began (its first iteration) if the statistics left the boundary or jumped too far.

    The boundary is a ball that doubles at each return, a jump is one of more than ten times the statistics' size, less as steps fall. With
    them SAEM converges in theory (Allassonniere, Kuhn and Trouve, 2010); in practice they are hardly ever met.
    """
    count, *home = state.home
    first = state.t == 1
    home = _unless(~first, list(state[1:5]), home)
    size = 1.0 + _norm(home[1])
    jump = _norm(jax.tree.map(jnp.subtract, state.statistics, before))
    out = ~first & (
        (_norm(state.statistics) > 100 * size * 2.0**count) | (jump > 10 * size * jnp.sqrt(step))
    )
    parameters, statistics, latent, x = _unless(out, list(state[1:5]), home)
    return State(state.t, parameters, statistics, latent, x, state.signal, (count + out, *home))


def _norm(tree: Any) -> Array:
    return jnp.sqrt(sum((jnp.square(leaf).sum() for leaf in jax.tree.leaves(tree)), jnp.zeros(())))


FORCE = 0.2
"""The least share of parameter expansion's step to take where A is hidden."""


def moves(t: Array, settings: Settings) -> Array:
    """Whether the coefficients are moved (parameter expansion, or FAM-EM's normalisation) in iteration t."""
    return (t % 2 == 0) | (settings.algorithm == "fam-em")


def _unless(condition: Array, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, y, x), new, old)


def _move(
    expansion: tuple[Array, ...],
    found: Statistics,
    parameters: Parameters,
    step: Array,
    coarse: Array,
    count: Array,
    settings: Settings,
) -> Array:
    """The matrix W of beta -> W beta that an algorithm takes after each expectation."""
    prior, p = parameters.prior, len(found.b)
    if settings.algorithm == "em":
        return jnp.eye(p)  # exact steps, which never lower the likelihood
    if settings.algorithm == "fam-em":
        # (A, beta) -> (c A, beta / c) always raises the joint density of x and beta: hold the coefficients' mean square at the prior's
        return jnp.eye(p) * jnp.sqrt(
            prior.mean_square() * p / jnp.maximum(jnp.trace(found.bb), 1e-300)
        )
    if settings.hidden:  # the draws of A are not averaged: without a force they would wander about where the average is sought
        step = jnp.maximum(step, FORCE)
    rotation = jnp.minimum(step, 0.4) if prior.smooth else coarse
    if settings.sampler == "metropolis" and not prior.smooth:
        rotation = jnp.zeros(
            ()
        )  # zeros that a rotation destroys would stay destroyed wherever the next proposal is refused
    pull = (
        parameters.A.T @ parameters.A / (count * parameters.tau2)
        if settings.hidden
        else jnp.zeros((p, p))
    )
    H, psi2, on, _ = expansion
    return expand(H, psi2, on, pull, found, step, rotation)


def _has_shift(prior: Prior, settings: Settings) -> bool:
    """Whether coefficients may be shifted, and the mean with them."""
    return settings.free_mean and prior.smooth and settings.stochastic


def _shift(expansion: tuple[Array, ...], step: Array) -> Array:
    """What to add to the coefficients: one damped step of Newton's method on the likelihood of those drawn, E psi' being E psi^2."""
    _, psi2, count, psi = expansion
    return -jnp.clip(psi / jnp.maximum(psi2, 1e-9 * count + 1e-300), -0.5, 0.5) * jnp.minimum(
        step, 0.5
    )


def expectation(
    state: State, data: Data, key: Array, schedule: Schedule, settings: Settings
) -> tuple[Any, Any, Statistics, tuple[Array, ...]]:
    """Sweep all blocks; the new latent variables, the rows filled in, their statistics, and those of parameter expansion."""
    parameters = state.parameters
    prior, p = cast(parameters.prior, settings.dtype), parameters.A.shape[1]
    sweep = _SWEEPS[settings.algorithm if settings.algorithm == "fam-em" else settings.sampler]

    def block_sweeps(inputs: tuple[Array, Block, Any, Any]) -> tuple[Any, Any, Any]:
        index, block, latent, x = inputs
        block_key = jax.random.fold_in(key, index)

        def once(carry: tuple[Any, Any], draw_key: Array) -> tuple[tuple[Any, Any], Any]:
            latent, x = carry
            rows = block if x is None else block._replace(x=x)
            latent = sweep(prior, draw_key, latent, channel(parameters, rows.x))
            if x is not None:
                rows = impute(jax.random.fold_in(draw_key, 1), parameters, latent, block)
                x = rows.x
            # every other iteration: the move is damped in any case, and its sums cost as much as the products with x
            none = (jnp.zeros((p, p), float), *3 * (jnp.zeros((p,), float),))
            expansion = lax.cond(
                moves(state.t, settings),
                lambda: cast(prior.expansion(latent, block.weight), float),
                lambda: none,
            )
            return (latent, x), (collect(prior, latent, rows), expansion)

        if not settings.several:
            (latent, x), found = once((latent, x), block_key)
            return latent, x, found

        def again(k: Array, carry: Any) -> Any:
            chain, total = carry
            chain, found = once(chain, jax.random.fold_in(block_key, k))
            return chain, jax.tree.map(jnp.add, total, found)

        m = schedule.sweeps(state.t)
        nothing = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            jax.eval_shape(once, (latent, x), block_key)[1],
        )
        (latent, x), total = lax.fori_loop(0, m, again, ((latent, x), nothing))
        return latent, x, jax.tree.map(lambda leaf: leaf / m, total)

    if settings.algorithm == "em":
        found = _exact(parameters, data)
        return state.latent, state.x, found, (found.bb, *3 * (found.b,))
    inputs = (jnp.arange(data.sizes[0]), data.blocks, state.latent, state.x)
    if data.sizes[0] == 1:
        latent, x, found = block_sweeps(
            jax.tree.map(lambda leaf: leaf.reshape(leaf.shape[1:]), inputs)
        )
        latent, x = jax.tree.map(lambda leaf: leaf[None], (latent, x))
    else:
        latent, x, parts = lax.map(block_sweeps, inputs)
        found = jax.tree.map(lambda leaf: leaf.sum(0), parts)
    return latent, x, *found


MODE_SWEEPS = 5
"""Sweeps of conditional modes in an iteration of FAM-EM, from where the last one ended."""

_SWEEPS: dict[str, Callable[..., Any]] = {
    "gibbs": lambda prior, key, latent, tilt: prior.gibbs(key, latent, tilt),
    "metropolis": lambda prior, key, latent, tilt: prior.metropolis(key, latent, tilt),
    "fam-em": lambda prior, key, latent, tilt: lax.fori_loop(
        0, MODE_SWEEPS, lambda _, beta: prior.ascend(beta, tilt), latent
    ),
}


def _exact(parameters: Parameters, data: Data) -> Statistics:
    """Expected statistics by enumeration, summed over blocks."""
    parts = lax.map(lambda block: enumeration.expectation(parameters, block)[0], data.blocks)
    return jax.tree.map(lambda leaf: leaf.sum(0), parts)


def expand(
    H: Array,
    psi2: Array,
    count: Array,
    pull: Array,
    found: Statistics,
    step: Array,
    rotation: Array,
) -> Array:
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
    gradient = (H - pull) * off_diagonal
    newton = -(curvature.T * gradient - gradient.T) / (curvature * curvature.T - 1)
    return jnp.diag(scale) + rotation * jnp.clip(newton, -0.3, 0.3) * off_diagonal


def _advance_together(
    states: State,
    data: Data,
    keys: Array,
    count: Array,
    schedule: Schedule,
    settings: Settings,
    length: int,
) -> tuple[State, dict[str, Array]]:
    # all are at the same iteration: what is done in some iterations only stays a branch
    axes: Any = State(None, 0, 0, 0, 0, 0, 0)  # type: ignore[arg-type]
    together: Any = jax.vmap(
        lambda state, key: _advance(state, data, key, count, schedule, settings, length),
        in_axes=(axes, 0),
        out_axes=(axes, 0),
    )
    return together(states, keys)


advance_together = Compiled(_advance_together, ("settings", "length"))


def learn(
    data: Data,
    begun: list[Run],
    key: Array,
    settings: Settings,
    schedule: Schedule,
    max_iter: int,
) -> Iterator[list[Run]]:
    """Iterate till iteration ``max_iter`` from where each run stands, all together, in chunks; the runs after each chunk."""
    keys = [key, *jax.random.split(jax.random.fold_in(key, 1), len(begun) - 1)]
    groups = [
        _Group([begun[i] for i in part], [keys[i] for i in part]) for part in _parts(len(begun))
    ]
    count, d, size = data.sizes
    A, prior = begun[0].state.parameters.A, begun[0].state.parameters.prior
    quick = prior.compiles_fast or count * size * A.shape[1] <= SMALL
    work = count * size * (d + 30.0) * (A.shape[1] + 1) * max(schedule.draws) * len(begun)
    length = int(np.clip(2e9 / work, 5, 50))  # about half a second of work between looks
    done = int(begun[0].state.t)
    with ThreadPoolExecutor(len(groups)) as pool:
        while done < max_iter:
            now = min(
                length if done else min(length, 10), max_iter - done
            )  # a first look soon, to tell how long it will take
            go = double_precision(
                functools.partial(
                    _Group.advance,
                    data=data,
                    how=(schedule, settings, length),
                    now=now,
                    quick=quick,
                )
            )
            list((pool.map if len(groups) > 1 else map)(go, groups))
            done += now
            yield [run for group in groups for run in group.runs()][: len(begun)]


def _parts(count: int) -> list[list[int]]:
    """Which starts run in one compiled call.

    On the CPU several starts go in two calls at the same time, whatever the number of cores (rounding may depend on it): small arrays
    keep one core busy at best. Both take as many, so that one compilation serves: the last may be there twice.
    """
    if count < 4 or jax.default_backend() != "cpu":
        return [list(range(count))]
    half = (count + 1) // 2
    return [list(range(half)), [*range(half, count), *(count % 2) * [count - 1]]]


class _Group:
    """Runs that advance together, and their history."""

    def __init__(self, begun: list[Run], keys: list[Array]) -> None:
        self._count = len(begun)
        states = [run.state for run in begun]
        self._state, self._keys = states[0], keys[0]
        if self._count > 1:
            self._state, self._keys = (
                jax.tree.map(lambda *leaves: np.stack(leaves), *states)._replace(t=states[0].t),
                jnp.stack(keys),
            )
        self._history: dict[str, np.ndarray] = {}
        self._done = 0
        past = {name: np.stack([run.history[name] for run in begun]) for name in begun[0].history}
        if past:
            self._note(past, len(begun[0].history["signal"]))

    def advance(
        self, data: Data, how: tuple[Schedule, Settings, int], now: int, quick: bool
    ) -> None:
        compiled = advance if self._count == 1 else advance_together
        self._state, record = jax.block_until_ready(
            compiled(self._state, data, self._keys, now, *how, quick=quick)
        )
        self._note(
            {
                name: np.asarray(values)[None] if self._count == 1 else np.asarray(values)
                for name, values in record.items()
            },
            now,
        )

    def _note(self, record: dict[str, np.ndarray], count: int) -> None:
        """Add the first ``count`` iterations of a record, (runs, iterations, ...), to the history."""
        done = self._done
        for name, new in record.items():
            kept = self._history.get(name, new[:, :0])
            if (
                done + count > kept.shape[1]
            ):  # room for as many again: what is there is copied seldom
                kept = np.concatenate(
                    [
                        kept[:, :done],
                        np.empty((len(new), max(count, done), *new.shape[2:]), new.dtype),
                    ],
                    axis=1,
                )
            kept[:, done : done + count] = new[:, :count]
            self._history[name] = kept
        self._done += count

    def runs(self) -> list[Run]:
        """The runs one by one."""
        states = [self._state]
        if self._count > 1:
            alone = jax.tree.map(np.asarray, self._state._replace(t=()))  # type: ignore[arg-type]  # of which parts are views; t is common to all
            states = [
                jax.tree.map(lambda leaf, i=i: leaf[i], alone)._replace(t=self._state.t)
                for i in range(self._count)
            ]
        return [
            Run(one, {name: values[i, : self._done] for name, values in self._history.items()})
            for i, one in enumerate(states)
        ]


def best_start(
    data: Data,
    starts: list[Parameters],
    key: Array,
    settings: Settings,
    score: Callable[[Parameters], float],
    n_iter: int = 60,
) -> Parameters:
    """The start from which a short run on the first block of rows ends with the best score."""
    if len(starts) == 1:
        return starts[0]
    first = _first_block(data)
    *_, runs = learn(
        first,
        [begin(first, start, settings) for start in starts],
        key,
        settings,
        Schedule(n_iter // 2, 0.75),
        n_iter,
    )
    return starts[int(np.nanargmax([score(run.state.estimate) for run in runs]))]


def _first_block(data: Data) -> Data:
    """The rows of the first block as data of their own: weights and weighted sums that add up to one row again."""
    first: Block = jax.tree.map(lambda leaf: leaf[:1], data.blocks)
    share = float(first.weight.sum())
    sums = {name: getattr(first, name) / share for name in ("weight", "sum_x", "sum_xx")}
    return data._replace(blocks=first._replace(**sums), rows=data.rows * share)
