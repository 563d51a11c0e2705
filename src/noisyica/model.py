"""A model with given parameters: simulation, posterior, complete-data density."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sklearn.utils import check_array, check_random_state

from noisyica import priors
from noisyica._jax.arrays import Compiled, cast, double_precision, to_numpy
from noisyica._jax.special import LOG_2PI
from noisyica.engine.statistics import Block, Parameters, channel, impute
from noisyica.laws import Law
from noisyica.posterior import Posterior, enumeration
from noisyica.posterior.evidence import annealed_weights
from noisyica.posterior.modes import modes
from noisyica.priors import Channel, Prior
from noisyica.progress import Reporter

RandomState = int | np.integer[Any] | np.random.RandomState | None
ROWS = 4096
"""Rows that are sampled at a time."""
SWEEP = "float32"
"""Precision of the posterior's sweeps."""


class Model:
    """The model x = mean + A beta + sigma eps with all its parameters known.

    Parameters
    ----------
    mixing : array (d, p)
        A; its columns are the components.
    mean : array (d,), optional
        mu0; zero by default. Priors with a random offset have none.
    noise_variance : float or array (d,)
        sigma^2, the same for all columns of x or one for each.
    prior : str, Prior or Law
        The law of beta: a short name, or an object of :mod:`noisyica.priors` or :mod:`noisyica.laws`.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, priors
    >>> A = np.random.default_rng(0).normal(size=(10, 3))
    >>> model = Model(mixing=A, noise_variance=0.25, prior=priors.BernoulliGaussian(alpha=0.8))
    >>> X, beta = model.sample(100, random_state=0)
    >>> model.posterior_sample(X, n_draws=5, random_state=0).shape
    (5, 100, 3)
    """

    def __init__(
        self,
        mixing: Any,
        mean: Any = None,
        noise_variance: Any = 1.0,
        prior: str | Prior | Law = "log",
    ) -> None:
        self.mixing = check_array(mixing, dtype=np.float64, input_name="mixing")
        d = self.mixing.shape[0]
        self.mean = np.zeros(d) if mean is None else np.array(mean, float)
        if self.mean.shape != (d,) or not np.isfinite(self.mean).all():
            raise ValueError(
                f"mean must be {d} finite numbers, one for each row of mixing; got shape {self.mean.shape}."
            )
        noise = np.asarray(noise_variance, float)
        if noise.shape not in ((), (d,)) or not (np.isfinite(noise).all() and (noise > 0).all()):
            raise ValueError(
                f"noise_variance must be one positive number, or {d}, one for each row of mixing; got {noise_variance!r}."
            )
        self.noise_variance: Any = noise if noise.ndim else float(noise)
        with jax.enable_x64(True), jax.default_matmul_precision("float32"):
            self.prior: Prior = to_numpy(priors.get(prior)).for_components(self.mixing.shape[1])
        if self.prior.has_offset and self.mean.any():
            raise ValueError(
                f"{type(self.prior).__name__} has a random offset instead of a mean: leave mean out."
            )

    def __repr__(self) -> str:
        d, p = self.mixing.shape
        return f"Model({p} components in {d} dimensions, noise_variance={np.mean(self.noise_variance):.4g}, prior={self.prior!r})"

    # ------------------------------------------------------------------------------------------------- simulation

    @double_precision
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the model.

        Returns
        -------
        X : array (n_samples, d)
        beta : array (n_samples, p)
            The coefficients that they were made of.
        """
        if not (isinstance(n_samples, (int, np.integer)) and n_samples >= 1):
            raise ValueError(f"n_samples must be a positive integer; got {n_samples!r}.")
        keys = jax.random.split(_key(random_state), 2)
        drawn = _draw(cast(self.prior, float), keys, int(n_samples), *self.mixing.shape)
        beta, offset, noise = (np.asarray(part).T for part in drawn)
        return self.mean + offset[:, None] + beta @ self.mixing.T + np.sqrt(
            self.noise_variance
        ) * noise, beta

    @double_precision
    def complete_log_density(self, X: Any, beta: Any, offset: Any = None) -> np.ndarray:
        """log p(x, beta) of each row, the sum of the log likelihood of x given beta and the log prior density of beta.

        Parameters
        ----------
        X : array (n, d)
        beta : array (n, p)
        offset : array (n,), optional
            For priors with a random offset.
        """
        residual, beta, m = self._residual(X, beta, offset)
        # a missing entry has no density
        gaussian = -0.5 * np.nansum(
            np.square(residual) / self.noise_variance + LOG_2PI + np.log(self.noise_variance), 1
        )
        return gaussian + np.asarray(_log_density(cast(self.prior, float), beta.T, m))

    # -------------------------------------------------------------------------------------------------- posterior

    @double_precision
    def posterior_sample(
        self,
        X: Any,
        n_draws: int = 100,
        n_warmup: int = 100,
        thin: int = 1,
        sampler: str = "gibbs",
        random_state: RandomState = None,
    ) -> np.ndarray:
        """Draw from the posterior of the coefficients: one Markov chain for each row.

        Parameters
        ----------
        X : array (n, d)
        n_draws : int
            Draws to keep.
        n_warmup : int
            Sweeps before the first that is kept.
        thin : int
            Sweeps from one kept draw to the next.
        sampler : {"gibbs", "metropolis"}
        random_state : int, RandomState or None

        Returns
        -------
        draws : array (n_draws, n, p)
        """
        X = self.check(X)
        check_counts(n_draws=(n_draws, 1), n_warmup=(n_warmup, 0), thin=(thin, 1))
        key = _key(random_state)
        found = []
        for i, (block, rows) in enumerate(blocks(X)):
            keys = jax.random.split(jax.random.fold_in(key, i), block.x.shape[1])
            how = (n_warmup, thin, None, int(n_draws), _check_sampler(sampler))
            _, draws = chain(
                self.parameters(),
                block,
                keys,
                *how,
                True,
                coefficients,
                quick=self.prior.compiles_fast,
            )
            found.append(np.asarray(draws)[:, :, :rows].transpose(0, 2, 1))
        return np.concatenate(found, axis=1)

    def posterior(
        self,
        X: Any,
        n_draws: int = 500,
        n_chains: int = 4,
        n_warmup: int = 100,
        thin: int = 1,
        random_state: RandomState = None,
    ) -> Posterior:
        """Draws from the posterior of the coefficients, with their summaries and diagnostics.

        Parameters
        ----------
        X : array (n, d)
        n_draws : int
            Draws to keep of each chain.
        n_chains : int
            Chains for each row, each from a draw of its own from the prior.
        n_warmup, thin, random_state
            As in :meth:`posterior_sample`.

        Returns
        -------
        posterior : noisyica.posterior.Posterior
            Means, probabilities of being on, credible intervals, effective sample sizes, R-hat. It holds all draws, in float32: for many
            rows take them in parts.
        """
        X = self.check(X)
        check_counts(n_chains=(n_chains, 1))
        seeds = check_random_state(random_state).randint(2**31 - 1, size=n_chains)
        chains = [
            self.posterior_sample(X, n_draws, n_warmup, thin, random_state=int(seed)).astype(
                np.float32
            )
            for seed in seeds
        ]
        return Posterior(np.stack(chains))

    @double_precision
    def posterior_mean(
        self, X: Any, n_draws: int = 200, n_warmup: int = 50, random_state: RandomState = 0
    ) -> np.ndarray:
        """Posterior mean of the coefficients, (n, p), averaged over ``n_draws`` sweeps.

        The random numbers of a row depend on its values and on ``random_state`` alone: the same row gives the same answer, whatever the
        rows beside it.
        """
        X = self.check(X)
        check_counts(n_draws=(n_draws, 1), n_warmup=(n_warmup, 0))
        seed = check_random_state(random_state).randint(2**31 - 1)
        found = []
        for block, part in _parts(X):
            keys = row_keys(part, seed, block.x.shape[1])
            how = (n_warmup, 1, None, int(n_draws), "gibbs", False, coefficients)
            total, _ = chain(self.parameters(), block, keys, *how, quick=self.prior.compiles_fast)
            found.append(np.asarray(total)[:, : len(part)].T / n_draws)
        return np.concatenate(found)

    @double_precision
    def map(self, X: Any, return_offset: bool = False) -> Any:
        """The most probable coefficients of each row, (n, p): the minimum of :meth:`map_objective`.

        Hidden scales, classes and switches are maximised over with them, as in the paper. Where the discrete variables have few states, all
        are gone through; otherwise it is the best that a local search from many starts finds. A function of the row and the model alone.

        Parameters
        ----------
        X : array (n, d)
        return_offset : bool, default=False
            Whether to return the rows' offsets (n,), too (zero for most priors).

        Examples
        --------
        >>> import numpy as np
        >>> from noisyica import Model
        >>> from noisyica.priors import BernoulliGaussian
        >>> model = Model(np.eye(3), noise_variance=0.04, prior=BernoulliGaussian(alpha=0.3))
        >>> print(model.map([[1.04, 0.1, -2.08]]).round(2))
        [[ 1.  0. -2.]]
        """
        X = self.check(X)
        found: list[Any] = []
        for block, part in _parts(X):
            beta, offset = modes(
                self.parameters(), block, row_keys(part, 0, block.x.shape[1]), quick=True
            )
            found.append((np.asarray(beta).T[: len(part)], np.asarray(offset)[: len(part)]))
        beta, offset = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return (beta, offset) if return_offset else beta

    @double_precision
    def map_objective(self, X: Any, beta: Any, offset: Any = None) -> np.ndarray:
        """|x - mean - A beta|^2 / 2 sigma^2 plus what the hidden variables behind beta cost at their best, of each row (n,).

        The paper's MAP objective, with its slips corrected and constants left out.
        """
        residual, beta, offset = self._residual(X, beta, offset)
        return 0.5 * np.nansum(np.square(residual) / self.noise_variance, 1) + np.asarray(
            _penalty(cast(self.prior, float), beta.T, offset)
        )

    @double_precision
    def log_likelihood(
        self,
        X: Any,
        n_temperatures: int | None = None,
        n_particles: int = 32,
        method: str = "auto",
        random_state: RandomState = 0,
        return_std: bool = False,
    ) -> Any:
        """log p(x) of each row, the coefficients integrated out, (n,).

        Parameters
        ----------
        X : array (n, d)
        n_temperatures : int, optional
            Of annealed importance sampling; 80 by default, 200 for priors with one scale a row. More make it exact faster than more
            particles do.
        n_particles : int, default=32
            Of annealed importance sampling. The standard error comes from their spread: with one there is none.
        method : {"auto", "exact", "annealed"}, default="auto"
            "exact": by going through all states of the discrete variables, where these leave a closed form (mixtures of normals and atoms,
            "te"). "annealed": by annealed importance sampling. "auto": exact where there are few states and nothing is missing.
        random_state : int, RandomState or None, default=0
            A row's random numbers depend on it and on the row's values alone.
        return_std : bool, default=False
            Whether to return the standard errors (n,), too: 0 where the answer is exact.

        Examples
        --------
        >>> import numpy as np
        >>> from noisyica import Model
        >>> model = Model(np.eye(4)[:, :2], noise_variance=0.5, prior="bg")
        >>> value, error = model.log_likelihood(np.ones((1, 4)), return_std=True)
        >>> print(f"{value[0]:.3f}, to within {2 * error[0]:.3f}")
        -6.169, to within 0.000
        """
        X = self.check(X)
        check_counts(
            n_temperatures=(1 if n_temperatures is None else n_temperatures, 1),
            n_particles=(n_particles, 1),
        )
        if return_std and n_particles == 1 and method == "annealed":
            raise ValueError(
                "The standard error comes from the particles' spread: take n_particles of at least 2."
            )
        if self._by_enumeration(X, method):
            value = np.concatenate(
                [
                    np.asarray(enumeration.log_likelihood(self.parameters(), block.x))[: len(part)]
                    for block, part in _parts(X)
                ]
            )
            return (value, np.zeros(len(X))) if return_std else value
        seed = check_random_state(random_state).randint(2**31 - 1)
        found = []
        for block, part in _parts(X):
            keys = row_keys(part, seed, block.x.shape[1])
            weights = annealed_weights(
                self.parameters(),
                block,
                keys,
                n_temperatures,
                n_particles,
                quick=self.prior.compiles_fast,
            )
            found.append(np.asarray(weights)[:, : len(part)])
        value, error = log_mean_exp(np.concatenate(found, 1))
        return (value, error) if return_std else value

    def _by_enumeration(self, X: np.ndarray, method: str) -> bool:
        if method not in ("auto", "exact", "annealed"):
            raise ValueError(
                f"method={method!r} is not known. Choose 'auto', 'exact' or 'annealed'."
            )
        states, most = (
            enumeration.count_states(self.prior, self.mixing.shape[1]),
            enumeration.LIKELIHOOD_STATES,
        )
        possible = states is not None and states <= most and not np.isnan(X).any()
        if method == "exact" and not possible:
            raise ValueError(
                "method='exact' needs a prior whose discrete variables leave a closed form (mixtures of normals and atoms, 'te'), at most "
                f"{most:,} states of them (here {'no closed form' if states is None else f'{states:,}'}), and no missing values: "
                "choose 'auto' or 'annealed'."
            )
        return possible and method != "annealed"

    # ---------------------------------------------------------------------------------------------------- private

    def _residual(
        self, X: Any, beta: Any, offset: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the coefficients and offsets leave of X (NaN where it is missing), and both as arrays."""
        X = self.check(X)
        beta = check_array(beta, dtype=np.float64, input_name="beta")
        if beta.shape != (len(X), self.mixing.shape[1]):
            raise ValueError(
                f"beta must have shape {(len(X), self.mixing.shape[1])}, a row for each row of X; got {beta.shape}."
            )
        m = np.zeros(len(X)) if offset is None else np.asarray(offset, float)
        if m.shape != (len(X),) or (m.any() and not self.prior.has_offset):
            raise ValueError(
                f"offset must be {len(X)} numbers, one for each row of X, and only priors with an offset have one."
            )
        return X - self.mean - m[:, None] - beta @ self.mixing.T, beta, m

    def parameters(self) -> Parameters:
        """All of it as the engine takes it."""
        return cast(Parameters(self.mixing, self.mean, self.noise_variance, self.prior), float)  # type: ignore[arg-type]

    def check(self, X: Any) -> np.ndarray:
        """X as an array of rows of this model, or an error that says what is wrong with it."""
        X = check_array(X, dtype=np.float64, input_name="X", ensure_all_finite="allow-nan")
        if X.shape[1] != self.mixing.shape[0]:
            raise ValueError(
                f"X has {X.shape[1]} columns, but the model has {self.mixing.shape[0]} dimensions (rows of mixing)."
            )
        return check_observed(X)


def log_mean_exp(log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of the mean of weights along the first axis, corrected for the bias of the logarithm, and its standard error."""
    m = len(log_weights)
    top = log_weights.max(0)
    weights = np.exp(log_weights - top)
    mean = weights.mean(0)
    relative = (
        weights.var(0, ddof=1) / m / mean**2 if m > 1 else np.zeros_like(mean)
    )  # squared standard error of the mean
    return top + np.log(mean) + 0.5 * relative, np.sqrt(relative)


def check_observed(X: np.ndarray, axis: int = 1) -> np.ndarray:
    """X, if at least one entry of each row (axis 1) or column (axis 0) is not missing (NaN)."""
    empty = np.flatnonzero(np.isnan(X).all(axis))
    if empty.size:
        what = "rows" if axis == 1 else "columns"
        which = ", ".join(str(i) for i in empty[:5]) + (", ..." if empty.size > 5 else "")
        raise ValueError(
            f"Nothing is observed in {empty.size} of the {what} of X ({which}): all their entries are NaN. Leave those {what} out."
        )
    return X


def check_counts(**counts: tuple[Any, int]) -> None:
    """That each is an integer, and not less than its least value."""
    for name, (value, least) in counts.items():
        if not (isinstance(value, (int, np.integer)) and value >= least):
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")


def _check_sampler(sampler: str) -> str:
    if sampler not in ("gibbs", "metropolis"):
        raise ValueError(f"sampler must be 'gibbs' or 'metropolis'; got {sampler!r}.")
    return sampler


def _key(random_state: RandomState) -> jax.Array:
    return jax.random.key(check_random_state(random_state).randint(2**31 - 1))


def blocks(X: np.ndarray) -> Iterator[tuple[Block, int]]:
    """Blocks of at most ROWS rows, padded with zeros to a few standard sizes so that few shapes are compiled."""
    with Reporter("noisyica rows", len(X), True) as reporter:
        for i in range(0, len(X), ROWS):
            part = X[i : i + ROWS]
            size = max(8, 1 << (len(part) - 1).bit_length())
            x = np.zeros((X.shape[1], size))
            x[:, : len(part)] = part.T
            missing = np.isnan(x)
            observed = jnp.asarray(~missing) if missing.any() else None
            x[missing] = 0.0
            weight = (np.arange(size) < len(part)).astype(float)
            yield (
                Block(jnp.asarray(x), jnp.asarray(weight), x.sum(1), x.sum(1), observed),
                len(part),
            )
            if i + ROWS < len(X):
                reporter.update(i + ROWS)


def row_keys(X: np.ndarray, seed: int, size: int) -> jax.Array:
    """A random key for each row, a hash of its values and the seed."""
    words = np.where(np.isnan(X), np.nan, X + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 alike
    factors = np.random.RandomState(20120301).randint(
        0, 2**62, X.shape[1], dtype=np.uint64
    ) * np.uint64(2) + np.uint64(1)
    words = words ^ (words >> np.uint64(29))
    mixed = (words * factors).sum(1, dtype=np.uint64) ^ np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    mixed = np.append(mixed, np.zeros(size - len(X), np.uint64))
    return jax.random.wrap_key_data(jnp.asarray(mixed.view(np.uint32).reshape(-1, 2)))


@functools.partial(jax.jit, static_argnames=("n", "d", "p"))
def _draw(
    prior: Prior, keys: jax.Array, n: int, d: int, p: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Coefficients (p, n), offsets (n,) and standard noise (d, n)."""
    latent = prior.start(keys[0], p, n, float)
    return (
        prior.coefficients(latent),
        prior.offset(latent),
        jax.random.normal(keys[1], (d, n), float),
    )


@jax.jit
def _log_density(prior: Prior, beta: jax.Array, offset: jax.Array) -> jax.Array:
    return prior.log_density(beta, offset)


@jax.jit
def _penalty(prior: Prior, beta: jax.Array, offset: jax.Array) -> jax.Array:
    return prior.penalty(beta, offset)


def _parts(X: np.ndarray) -> Iterator[tuple[Block, np.ndarray]]:
    """The blocks, each with its rows."""
    for i, (block, rows) in enumerate(blocks(X)):
        yield block, X[i * ROWS : i * ROWS + rows]


Summary = Callable[[Parameters, Any, Channel, Block, Any], Any]
"""What is averaged over draws: a function of the parameters, the latent variables, the channel, the rows and what else it needs."""


def coefficients(
    parameters: Parameters, latent: Any, tilt: Channel, block: Block, extra: Any
) -> jax.Array:
    """The coefficients themselves, (p, n)."""
    return parameters.prior.coefficients(latent).astype(float)


def _sweeps(
    parameters: Parameters,
    block: Block,
    keys: jax.Array,
    n_warmup: int,
    thin: int,
    extra: Any,
    n_draws: int,
    sampler: str,
    keep: bool,
    summary: Summary,
) -> tuple[Any, Any]:
    """Sweeps from a draw of the prior; the sum of the kept draws' summaries, and their coefficients (n_draws, p, n) if ``keep``."""
    # products in double precision, sweeps in single: rounding then does not depend on the rows beside a row
    prior = cast(parameters.prior, SWEEP)
    parameters = parameters._replace(prior=prior)
    latent = prior.start(keys, parameters.A.shape[1], block.x.shape[1], SWEEP)
    sweep = prior.gibbs if sampler == "gibbs" else prior.metropolis
    whole: Channel = cast(channel(parameters, block.x), SWEEP)

    def seen(block: Block) -> Channel:
        return whole if block.observed is None else cast(channel(parameters, block.x), SWEEP)

    def step(i: jax.Array, carry: tuple[Any, Block]) -> tuple[Any, Block]:
        latent, block = carry
        step_keys = jax.vmap(lambda k: jax.random.fold_in(k, i))(keys)
        latent = sweep(step_keys, latent, seen(block))
        if block.observed is not None:
            block = impute(
                jax.vmap(lambda k: jax.random.fold_in(k, 0))(step_keys), parameters, latent, block
            )
        return latent, block

    def kept(carry: Any, i: jax.Array) -> tuple[Any, Any]:
        chain, total = carry
        first = jnp.where(
            i == 0, 0, n_warmup + i * thin
        )  # the first draw is kept after the warm-up
        latent, block = chain = lax.fori_loop(first, n_warmup + (i + 1) * thin, step, chain)
        found = summary(parameters, latent, seen(block), block, extra)
        return (chain, jax.tree.map(jnp.add, total, found)), coefficients(
            parameters, latent, whole, block, None
        ) if keep else None

    shapes = jax.eval_shape(lambda latent: summary(parameters, latent, whole, block, extra), latent)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    (_, total), draws = lax.scan(kept, ((latent, block), nothing), jnp.arange(n_draws))
    return total, draws


chain = Compiled(_sweeps, ("n_draws", "sampler", "keep", "summary"))
