"""Markov chains of the coefficients, one for each row, given the model's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from noisyica._jax.arrays import cast, to_numpy, zeros_like_shapes
from noisyica._jax.compiling import Compiled
from noisyica._jax.device import platform
from noisyica._jax.memory_maps import make_room
from noisyica._jax.randomness import Key, RowKeys, fold_in, key_of
from noisyica.posterior import enumeration, sequential
from noisyica.posterior.parameters import Parameters, channel, impute
from noisyica.posterior.propagation import target
from noisyica.posterior.student import draw_weights, misfit, observed_entries
from noisyica.priors import INDEPENDENCE, METROPOLIS, Channel
from noisyica.progress import Reporter
from noisyica.rows.block import Block

Array = jax.Array

SIZES = (128, 512, 4096)
"""The numbers of rows that are sampled at a time: few, since each is compiled for."""
SIZES_ON_GPU = (512, 4096, 20_480, 102_400)
"""The same on a GPU, which needs many rows to be busy."""
USUAL, MANY = 4096, 102_400
"""The maximum number of rows at a time where much is kept of each row, and where little is."""
NUMBERS_KEPT, NUMBERS_OF_X = 2**28, 2**25
"""The maximum number of draws of coefficients, and of entries of x, that a GPU has at a time."""
SWEEP = "float32"
"""The dtype of the posterior's sweeps."""
N_CHAINS = 4
"""The number of chains per row over which a posterior mean is averaged."""
MEAN_STATES = 2187
"""The maximum number of states of the discrete variables with which a posterior mean is exact."""
COUPLED = 0.05
"""The least eigenvalue of the posterior's scaled precision below which sweeps mix too slowly."""
JUMP_EVERY = 3
"""After how many sweeps all coefficients of a row may change at once, where sweeps mix slowly."""
FIRST_JUMP = 2**31
"""The number of the first key of these changes: the keys of sweeps have smaller numbers."""
FIRST_WEIGHTS = 2**30
"""The number of the first key of the rows' weights, where the noise is Student's."""
UNWEIGHTED = 3
"""The number of sweeps before the rows' weights are drawn for the first time."""
NUMBERS_AT_A_TIME = 2**24
"""The maximum size of the matrices of those rows whose coefficients change at once."""

Summary = Callable[[Parameters, Any, Channel, Block, Any], Any]
"""A function that is summed over draws.

Its arguments are the parameters, the latent variables, the channel, the rows, and what else it
needs.
"""


def posterior_sample(
    parameters: Parameters,
    X: Any,
    n_draws: int,
    n_warmup: int,
    thin: int,
    sampler: str,
    seed: int,
    verbose: bool,
) -> np.ndarray:
    """Draw from the posterior of the coefficients: (n_draws, n, p)."""
    key = key_of(seed)
    draws = []
    jumps = sampler == "gibbs" and coupled(parameters)
    most = _rows_at_a_time(parameters, jumps)
    if platform() == "gpu":
        most = min(most, NUMBERS_KEPT // (n_draws * parameters.A.shape[1]))
    for block, part in blocks(X, verbose, most):
        keys = RowKeys(key, block.rows)
        options = (n_warmup, thin, None, n_draws, sampler, True, coefficients, jumps)
        kept = _compiled(parameters)(parameters, block, keys, *options)[1]
        draws.append(np.asarray(kept)[:, :, : len(part)].transpose(0, 2, 1))
    return np.concatenate(draws, axis=1)


def posterior_mean(
    parameters: Parameters,
    X: Any,
    n_draws: int,
    n_warmup: int,
    seed: int,
    verbose: bool,
    means: np.ndarray,
    errors: np.ndarray | None = None,
) -> None:
    """Write the posterior mean of the coefficients to ``means`` (n, p), its error to ``errors``.

    It is exact for rows without missing entries, where all states can be enumerated and the noise
    is normal. Otherwise it is the average over several chains, whose spread tells the error. The
    random numbers are the same for all rows: the answer for a row depends on that row alone, and
    rows that are nearly the same have nearly the same answer.
    """
    p = parameters.A.shape[1]
    exact = enumeration.can_enumerate(parameters.prior, p, MEAN_STATES) and parameters.dof is None
    jumps = coupled(parameters)
    first = 0
    most = USUAL if exact else _rows_at_a_time(parameters, jumps)
    for block, part in blocks(X, verbose, most):
        complete = ~np.isnan(part).any(1, keepdims=True) & exact
        mean, error = np.zeros((len(part), p)), np.zeros((len(part), p))
        if exact:
            mean = np.asarray(enumeration.posterior_mean(parameters, block.x)).T[: len(part)]
        if not complete.all():
            of_chains = _means_of_chains(parameters, block, n_draws, n_warmup, seed, jumps)
            of_chains = of_chains[:, : len(part)]
            spread = of_chains.std(0, ddof=1) if len(of_chains) > 1 else np.inf
            mean = np.where(complete, mean, of_chains.mean(0))
            error = np.where(complete, 0.0, spread / np.sqrt(len(of_chains)))
        means[first : first + len(part)] = mean
        if errors is not None:
            errors[first : first + len(part)] = error
        first += len(part)


def _means_of_chains(
    parameters: Parameters, block: Block, n_draws: int, n_warmup: int, seed: int, jumps: bool
) -> np.ndarray:
    """Return the average of the coefficients over each of several chains, (chains, n, p)."""
    n_chains = min(N_CHAINS, n_draws)
    share = -(-n_draws // n_chains)
    average = conditional_means if INDEPENDENCE.of(parameters.prior) else coefficients
    options = (n_warmup, 1, None, share, "gibbs", False, average, jumps)
    totals = []
    for number in range(n_chains):
        keys = _same_key(seed * N_CHAINS + number, block.x.shape[1])
        totals.append(_compiled(parameters)(parameters, block, keys, *options)[0])
    return np.stack(totals).transpose(0, 2, 1) / share


def _compiled(parameters: Parameters) -> Callable[..., tuple[Any, Any]]:
    return chain.compiled(parameters.prior.compiles_fast)


def coupled(parameters: Parameters) -> bool:
    """Return whether coefficients depend on each other so strongly that sweeps mix slowly.

    A sweep over normal coefficients with the precision matrix P, scaled to ones on its diagonal,
    comes nearer to its target at a rate that goes to zero with the least eigenvalue of P. Little
    noise in some column of x, or components that are nearly dependent, make it small.
    """
    A, _, sigma2, prior, *_ = to_numpy(parameters)
    if not INDEPENDENCE.of(prior):
        return False
    P = A.T @ (A / np.asarray(sigma2)[..., None]) + np.eye(A.shape[1]) / prior.variance()
    scale = 1 / np.sqrt(np.diag(P))
    return bool(np.linalg.eigvalsh(P * scale * scale[:, None])[0] < COUPLED)


def _rows_at_a_time(parameters: Parameters, jumps: bool) -> int:
    """Return the maximum number of rows of a block."""
    return NUMBERS_AT_A_TIME // parameters.A.shape[1] ** 2 if jumps else MANY


def blocks(X: Any, verbose: bool, most: int | None = None) -> Iterator[tuple[Block, np.ndarray]]:
    """Yield X in blocks of one of ``SIZES`` rows: the block, and its rows of X.

    Blocks are filled up with rows of weight 0. Where ``most`` is given, they have no more rows, if
    there is such a size. All that is compiled for the posterior takes them, and there is room for
    its code.
    """
    make_room()
    if most is not None and platform() == "gpu":
        most = min(most, max(USUAL, NUMBERS_OF_X // X.shape[1]))
    with Reporter("noisyica rows", len(X), verbose) as reporter:
        first = 0
        while first < len(X):
            size = block_size(len(X), first, most)
            part = np.asarray(X[first : first + size], np.float64)
            yield _block(part, size, first), part
            first += size
            if first < len(X):
                reporter.update(first)


def _block(part: np.ndarray, size: int, first: int) -> Block:
    """Return a block of the given size, from row ``first`` on. Its sums are those of no rows.

    It is of NumPy: what is compiled takes it as it is, and JAX would compile each conversion. On a
    GPU, where it is to be sent only once, it is the device's.
    """
    on_gpu, d = platform() == "gpu", part.shape[1]
    x = np.zeros((size, d)).T if on_gpu else np.zeros((d, size))
    x[:, : len(part)] = part.T
    missing = np.isnan(x)
    observed = ~missing if missing.any() else None
    if observed is not None:
        x[missing] = 0.0
    weight, nothing = (np.arange(size) < len(part)).astype(float), np.zeros(d)
    rest: Any = (weight, nothing, nothing, observed, np.asarray(first, np.uint32))
    if on_gpu:  # as it lies in memory, and transposed there
        return Block(jnp.transpose(jax.device_put(x.T)), *jax.device_put(rest))
    return Block(x, *rest)  # type: ignore[arg-type]


def block_size(n: int, first: int, most: int | None = None) -> int:
    """Return the number of rows of the block of n rows that begins with row ``first``.

    A few rows make one small block. What is left of many rows is cut into blocks of a smaller size
    where these are at most half of a larger one, so that at most half of the rows only fill up.
    """
    small, middle, *larger = SIZES if platform() == "cpu" else SIZES_ON_GPU
    most = USUAL if most is None else most
    if n <= small or most < middle:
        return small
    return max([middle, *(size for size in larger if size <= most and n - first > size // 2)])


def row_keys(X: np.ndarray, seed: int, size: int) -> Array:
    """Return a random key for each row, a hash of its values and the seed.

    Further keys fill them up to ``size``.
    """
    words = np.where(np.isnan(X), np.nan, X + 0.0).view(np.uint64)  # -0.0 and 0.0 become alike
    numbers = np.random.RandomState(20120301).randint(0, 2**62, X.shape[1], dtype=np.uint64)
    factors = numbers * np.uint64(2) + np.uint64(1)
    words = words ^ (words >> np.uint64(29))
    mixed = (words * factors).sum(1, dtype=np.uint64)
    mixed = mixed ^ np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    mixed = np.append(mixed, np.zeros(size - len(X), np.uint64))
    return jax.random.wrap_key_data(jax.device_put(mixed.view(np.uint32).reshape(-1, 2)))


def _same_key(seed: int, size: int) -> Array:
    """Return the same random key for each of ``size`` rows."""
    words = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(jax.device_put(np.tile(words, (size, 1))))


def coefficients(
    parameters: Parameters, latent: Any, seen: Channel, block: Block, extra: Any
) -> Array:
    """Return the coefficients (p, n): the :data:`Summary` whose mean is the posterior mean."""
    return parameters.prior.coefficients(latent).astype(float)


def conditional_means(
    parameters: Parameters, latent: Any, seen: Channel, block: Block, extra: Any
) -> Array:
    """Return the mean of each coefficient (p, n) given all others.

    Its average is the posterior mean, too, and varies less than that of the coefficients.
    """
    prior: Any = parameters.prior
    beta, a = prior.coefficients(latent), jnp.diag(seen.G)[:, None]
    b = seen.c - seen.c_one[:, None] * prior.offset(latent) - seen.G @ beta + a * beta
    a, b = seen.weighted(a, b)
    mean: Array = cast(prior, float).law_of_rows().moments(a.astype(float), b.astype(float))[0]
    return mean


class _Position(NamedTuple):
    """Where the chains of a block's rows stand."""

    latent: Any
    block: Block  # with the missing entries as they were last drawn
    weight: Any = None  # (n,) of the rows, where the noise is Student's


class _Moves(NamedTuple):
    """What moves the chains of a block's rows: sweeps, draws of missing entries, and jumps."""

    parameters: Parameters  # their prior in single precision, as sweeps have it
    exact_prior: Any
    guide: Any  # of the jumps; None if there are none
    sweep: Callable[..., Any]
    exact_at_first: Channel  # in double precision
    seen_at_first: Channel  # as sweeps have it
    keys: Key

    def seen(self, position: _Position) -> Channel:
        """Return the channel, which changes from sweep to sweep where entries are missing."""
        _, block, weight = position
        if block.observed is None:
            return self.seen_at_first._replace(weight=weight)
        new: Channel = cast(channel(self.parameters, block.x), SWEEP)
        return new._replace(weight=weight)

    def step(self, i: Array, position: _Position) -> _Position:
        """Sweep once, after a jump where it is time for one."""
        if self.guide is not None:
            here = (i > 0) & (i % JUMP_EVERY == 0)
            position = lax.cond(here, self.jump, lambda i, position: position, i, position)
        # the start has the key 0; a key that a prior may split has no other descendants
        latent = self.sweep(fold_in(self.keys, 2 * i + 1), position.latent, self.seen(position))
        position = self.weigh(i, position._replace(latent=latent))
        return self.impute(2 * i + 2, position)

    def weigh(self, i: Array, position: _Position) -> _Position:
        """Draw the weights of the rows, given what is observed of them.

        The first sweeps leave them as they are: coefficients that are drawn from the prior would
        make all rows look outlying.
        """
        latent, block, weight = position
        if weight is None:
            return position
        parameters = self.parameters
        prior = parameters.prior
        beta, offset = prior.coefficients(latent).astype(float), prior.offset(latent).astype(float)
        q = misfit(parameters, beta, offset, self.exact_at_first, block).astype(SWEEP)
        key = fold_in(self.keys, FIRST_WEIGHTS + i)
        new = draw_weights(key, parameters.dof, observed_entries(block), q, weight).draw
        return position._replace(weight=jnp.where(i < UNWEIGHTED, weight, new))

    def impute(self, role: Any, position: _Position) -> _Position:
        """Draw the missing entries of the rows."""
        latent, block, weight = position
        if block.observed is None:
            return position
        key = fold_in(self.keys, role)
        return position._replace(block=impute(key, self.parameters, latent, block, weight))

    def begin(self, position: _Position) -> _Position:
        """Begin with a joint draw: a chain from elsewhere jumps seldom, its weight being large."""
        new = sequential.draw(self.exact_prior, self.guide, fold_in(self.keys, FIRST_JUMP))
        position = position._replace(latent=self._at(new, position.latent))
        return self.impute(FIRST_JUMP + 1, position)

    def jump(self, i: Array, position: _Position) -> _Position:
        """Propose other values for all coefficients of a row at once."""
        latent, block, weight = position
        prior: Any = self.parameters.prior
        now = (part.astype(float) for part in (prior.coefficients(latent), prior.offset(latent)))
        old = sequential.Draw(jnp.zeros(block.x.shape[1]), *now)
        key = fold_in(self.keys, FIRST_JUMP + 2 * i)
        guide = self.guide if weight is None else self.guide.weighted(weight.astype(float))
        new = sequential.jump(self.exact_prior, guide, key, old)
        position = position._replace(latent=self._at(new, latent))
        return self.impute(FIRST_JUMP + 2 * i + 1, position)

    def _at(self, new: sequential.Draw, latent: Any) -> Any:
        """Return the latent variables with the coefficients and offsets of a joint draw."""
        prior: Any = self.parameters.prior
        latent = prior.with_coefficients(latent, new.beta.astype(SWEEP))
        return prior.with_offset(latent, new.offset.astype(SWEEP))


def _sweep_rows(
    parameters: Parameters,
    block: Block,
    keys: Key,
    n_warmup: int,
    thin: int,
    extra: Any,
    n_draws: int,
    sampler: str,
    keep: bool,
    summary: Summary,
    jumps: bool = False,
) -> tuple[Any, Any]:
    """Sweep from a draw of the prior; return the sum of the summaries of the draws.

    If ``keep``, the coefficients of the draws (n_draws, p, n) are returned, too. If ``jumps``, the
    chain begins with a joint draw, and all coefficients of a row may change at once now and then.
    """
    # products are in double precision, sweeps in single: so the rounding of a row's draws does not
    # depend on the rows beside it
    exact: Any = parameters.prior
    guide: Any = sequential.guide(exact, target(parameters, block)) if jumps else None
    prior: Any = cast(exact, SWEEP)
    if sampler == "metropolis":
        METROPOLIS.require(prior)
    parameters = parameters._replace(prior=prior)
    sweep = prior.gibbs if sampler == "gibbs" else prior.metropolis
    in_full = channel(parameters, block.x)
    seen: Channel = cast(in_full, SWEEP)
    moves = _Moves(parameters, exact, guide, sweep, in_full, seen, keys)

    def to_next_draw(carry: Any, i: Array) -> tuple[Any, Any]:
        position, total = carry
        first = jnp.where(i == 0, 0, n_warmup + i * thin)  # the first kept draw ends the warm-up
        position = lax.fori_loop(first, n_warmup + (i + 1) * thin, moves.step, position)
        latent, block, _ = position
        new = summary(parameters, latent, moves.seen(position), block, extra)
        draw = coefficients(parameters, latent, seen, block, None) if keep else None
        return (position, jax.tree.map(jnp.add, total, new)), draw

    latent = prior.sample_prior(fold_in(keys, 0), parameters.A.shape[1], block.x.shape[1], SWEEP)
    weight = None if parameters.dof is None else jnp.ones(block.x.shape[1], SWEEP)
    position = _Position(latent, block, weight)
    position = moves.begin(position) if jumps else position
    shapes = jax.eval_shape(lambda latent: summary(parameters, latent, seen, block, extra), latent)
    start = (position, zeros_like_shapes(shapes))
    (_, total), draws = lax.scan(to_next_draw, start, jnp.arange(n_draws))
    return total, draws


chain = Compiled(_sweep_rows, ("n_draws", "sampler", "keep", "summary", "jumps"))
