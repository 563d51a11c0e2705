"""A model with given parameters: simulation, posterior, mode and likelihood."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from sklearn.utils import check_array, check_random_state

from noisyica import priors
from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.precision import double_precision
from noisyica.arguments import RandomState, check_counts, result, seed_of
from noisyica.laws import Law
from noisyica.posterior import chains, complete, evidence, student
from noisyica.posterior.draws import Posterior
from noisyica.posterior.modes import most_probable
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.units import in_standard_units
from noisyica.priors import DENSITY, MODE, Prior
from noisyica.rows.held import rows_of_model


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
    noise_dof : float, optional
        nu, the degrees of freedom of Student noise, whose variance is sigma^2 nu / (nu - 2). By
        default the noise is normal.
    prior : str, Prior or Law
        The law of beta: a short name, or an object of :mod:`noisyica.priors` or
        :mod:`noisyica.laws`.

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model, priors
    >>> A = np.random.default_rng(0).normal(size=(10, 3))
    >>> model = Model(A, noise_variance=0.25, prior=priors.BernoulliGaussian(alpha=0.8))
    >>> X, beta = model.sample(100, random_state=0)
    >>> model.posterior_mean(X).shape, model.posterior_sample(X, n_draws=5, random_state=0).shape
    ((100, 3), (5, 100, 3))
    >>> bool((model.map_objective(X, model.map(X)) <= model.map_objective(X, beta)).all())
    True
    """

    noise_dof: float | None = None  # also of pickles that are older than Student noise

    @double_precision()
    def __init__(
        self,
        mixing: Any,
        mean: Any = None,
        noise_variance: Any = 1.0,
        prior: str | Prior | Law = "log",
        noise_dof: float | None = None,
    ) -> None:
        self.mixing = check_array(mixing, dtype=np.float64, input_name="mixing")
        d = self.mixing.shape[0]
        self.mean = np.zeros(d) if mean is None else np.array(mean, float)
        if self.mean.shape != (d,) or not np.isfinite(self.mean).all():
            raise ValueError(
                f"mean must be {d} finite numbers, one for each row of mixing; got shape "
                f"{self.mean.shape}."
            )
        noise = np.asarray(noise_variance, float)
        if noise.shape not in ((), (d,)) or not (np.isfinite(noise).all() and (noise > 0).all()):
            raise ValueError(
                f"noise_variance must be one positive number, or {d}, one for each row of mixing; "
                f"got {noise_variance!r}."
            )
        self.noise_variance: Any = noise if noise.ndim else float(noise)
        self.prior: Prior = to_numpy(priors.get(prior)).for_components(self.mixing.shape[1])
        if self.prior.has_offset and self.mean.any():
            raise ValueError(
                f"{type(self.prior).__name__} has a random offset instead of a mean: leave mean "
                "out."
            )
        self.noise_dof = student.checked_dof(noise_dof, self.prior)

    def __repr__(self) -> str:
        d, p = self.mixing.shape
        dof = "" if self.noise_dof is None else f"noise_dof={self.noise_dof:.4g}, "
        return (
            f"Model({p} components in {d} dimensions, "
            f"noise_variance={np.mean(self.noise_variance):.4g}, {dof}prior={self.prior!r})"
        )

    # ----------------------------------------------------------------------------------- simulation

    @double_precision()
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the model.

        Returns
        -------
        X : array (n_samples, d)
        beta : array (n_samples, p)
            The coefficients of the rows.
        """
        if not (isinstance(n_samples, (int, np.integer)) and n_samples >= 1):
            raise ValueError(f"n_samples must be a positive integer; got {n_samples!r}.")
        key = jax.random.key(seed_of(random_state))
        keys = jax.random.split(key, 2)
        drawn = complete.draw(cast(self.prior, float), keys, int(n_samples), *self.mixing.shape)
        beta, offset, noise = (np.asarray(part).T for part in drawn)
        signal = self.mean + offset[:, None] + beta @ self.mixing.T
        if self.noise_dof is not None:
            # the two keys above are the key's descendants 0 and 1
            own = complete.draw_weights(jax.random.fold_in(key, 2), self.noise_dof, len(noise))
            noise = noise / np.sqrt(own)[:, None]
        return signal + np.sqrt(self.noise_variance) * noise, beta

    @double_precision()
    def complete_log_density(self, X: Any, beta: Any, offset: Any = None) -> np.ndarray:
        """Return log p(x, beta) of each row, (n,).

        It is the sum of the log likelihood of x given beta and the log prior density of beta.

        Parameters
        ----------
        X : array (n, d)
        beta : array (n, p)
        offset : array (n,), optional
            For priors with a random offset.
        """
        DENSITY.require(self.prior)
        residual, beta, offset = self._residual(X, beta, offset)
        of_noise = complete.log_noise_density(residual, self.noise_variance, self.noise_dof)
        of_prior = complete.log_density(cast(self.prior, float), beta.T, offset)
        return of_noise + np.asarray(of_prior)

    # ------------------------------------------------------------------------------------ posterior

    @double_precision()
    def posterior_sample(
        self,
        X: Any,
        n_draws: int = 100,
        n_warmup: int = 100,
        thin: int = 1,
        sampler: str = "gibbs",
        random_state: RandomState = None,
        verbose: bool = True,
    ) -> np.ndarray:
        """Draw from the posterior of the coefficients: one Markov chain for each row.

        Parameters
        ----------
        X : array (n, d)
        n_draws : int
            The number of draws to keep.
        n_warmup : int
            The number of sweeps before the first draw that is kept.
        thin : int
            The number of sweeps from one kept draw to the next.
        sampler : {"gibbs", "metropolis"}
        random_state : int, RandomState or None
        verbose : bool, default=True
            Whether to show progress on a terminal when it takes more than a second.

        Returns
        -------
        draws : array (n_draws, n, p)
        """
        X = self.check(X)
        check_counts(n_draws=(n_draws, 1), n_warmup=(n_warmup, 0), thin=(thin, 1))
        if sampler not in ("gibbs", "metropolis"):
            raise ValueError(f"sampler must be 'gibbs' or 'metropolis'; got {sampler!r}.")
        options = (int(n_draws), n_warmup, thin, sampler, seed_of(random_state), verbose)
        theta, rows, _ = in_standard_units(self.parameters(), X)
        return chains.posterior_sample(theta, rows, *options)

    def posterior(
        self,
        X: Any,
        n_draws: int = 500,
        n_chains: int = 4,
        n_warmup: int = 100,
        thin: int = 1,
        random_state: RandomState = None,
        verbose: bool = True,
    ) -> Posterior:
        """Draw from the posterior of the coefficients, with summaries and diagnostics.

        Parameters
        ----------
        X : array (n, d)
        n_draws : int
            The number of draws to keep of each chain.
        n_chains : int
            The number of chains per row, each of which begins with another draw from the prior.
        n_warmup, thin, random_state, verbose
            As in :meth:`posterior_sample`.

        Returns
        -------
        posterior : noisyica.Posterior
            The draws, in float32, with methods for means, probabilities of being on, credible
            intervals, effective sample sizes and R-hat. For many rows, take them in parts.
        """
        X = self.check(X)
        check_counts(n_chains=(n_chains, 1))
        seeds = check_random_state(random_state).randint(2**31 - 1, size=n_chains)

        def chain(seed: int) -> np.ndarray:
            options = (n_draws, n_warmup, thin, "gibbs", seed, verbose)
            return self.posterior_sample(X, *options).astype(np.float32)

        return Posterior(np.stack([chain(int(seed)) for seed in seeds]))

    @double_precision()
    def posterior_mean(
        self,
        X: Any,
        n_draws: int = 200,
        n_warmup: int = 25,
        random_state: RandomState = 0,
        return_std: bool = False,
        verbose: bool = True,
        out: Any = None,
    ) -> Any:
        """Return the posterior mean of the coefficients, (n, p).

        It is exact where the discrete variables have few states, nothing is missing and the noise
        is normal. Otherwise it is averaged over ``n_draws`` sweeps of four chains per row, after
        ``n_warmup`` others. All rows have the same random numbers: the answer depends on the row
        alone.

        If ``return_std``, the standard errors (n, p) of the average are returned, too. They are 0
        where it is exact, and say nothing of the spread of the posterior itself, for which there is
        :meth:`posterior`. The means are written to ``out``, if it is given: an array (n, p), which
        may be a memory map.
        """
        X = self.check(X)
        check_counts(n_draws=(n_draws, 1), n_warmup=(n_warmup, 0))
        mean = result(out, (len(X), self.mixing.shape[1]))
        error = np.zeros(mean.shape) if return_std else None
        options = (int(n_draws), n_warmup, seed_of(random_state), verbose)
        theta, rows, _ = in_standard_units(self.parameters(), X)
        chains.posterior_mean(theta, rows, *options, mean, error)
        return mean if error is None else (mean, error)

    @double_precision()
    def map(
        self, X: Any, return_offset: bool = False, verbose: bool = True, out: Any = None
    ) -> Any:
        """Return the most probable coefficients of each row, (n, p).

        They minimise :meth:`map_objective`. Hidden scales, classes and switches are maximised over
        with them, as in the paper. Where the discrete variables have few states, all are
        enumerated; otherwise the answer is the best that a local search from many starts finds. It
        is a function of the row and the model alone. The weight that Student noise gives a row is
        integrated out, since where it is most probable depends on its scale of measurement.

        Parameters
        ----------
        X : array (n, d)
        return_offset : bool, default=False
            Whether to return the offsets of the rows (n,), too; they are zero for most priors.
        verbose : bool, default=True
            Whether to show progress on a terminal when it takes more than a second.
        out : array (n, p), optional
            Where the coefficients are written; it may be a memory map.

        Examples
        --------
        >>> import numpy as np
        >>> from noisyica import Model, priors
        >>> model = Model(np.eye(3), noise_variance=0.04, prior=priors.BernoulliGaussian(alpha=0.3))
        >>> print(model.map([[1.04, 0.1, -2.08]]).round(2))
        [[ 1.  0. -2.]]
        """
        X = self.check(X)
        beta = result(out, (len(X), self.mixing.shape[1]))
        theta, rows, unit = in_standard_units(self.parameters(), X)
        offset = most_probable(theta, rows, verbose, beta)
        return (beta, offset * unit) if return_offset else beta

    @double_precision()
    def map_objective(self, X: Any, beta: Any, offset: Any = None) -> np.ndarray:
        """Return the objective that :meth:`map` minimises, of each row (n,).

        With r = x - mean - A beta it is ``|r|^2 / 2 sigma^2``, or ``(nu + d) / 2 log(1 + |r|^2 /
        nu sigma^2)`` where noise is Student's, plus what the hidden variables behind beta cost at
        their best: the paper's MAP objective, with its slips corrected and constants left out.
        """
        MODE.require(self.prior)
        residual, beta, offset = self._residual(X, beta, offset)
        of_noise = complete.misfit_cost(residual, self.noise_variance, self.noise_dof)
        return of_noise + np.asarray(complete.penalty(cast(self.prior, float), beta.T, offset))

    @double_precision()
    def log_likelihood(
        self,
        X: Any,
        n_temperatures: int | None = None,
        n_particles: int | None = None,
        method: str = "auto",
        random_state: RandomState = 0,
        return_std: bool = False,
        verbose: bool = True,
    ) -> Any:
        """Return log p(x) of each row, the coefficients integrated out, (n,).

        Parameters
        ----------
        X : array (n, d)
        n_temperatures : int, default=200
            The number of temperatures of annealed importance sampling.
        n_particles : int, default=64 (32 for the method "annealed")
            The number of weighted draws per row, with which the average begins: rows for which they
            are too few take up to 64 times as many. The standard error comes from their spread:
            with one particle there is none.
        method : {"auto", "exact", "sequential", "annealed"}, default="auto"
            "exact": all states of the discrete variables are enumerated, where these leave a closed
            form (mixtures of normals and atoms, "te"). "sequential": an average over joint draws of
            independent coefficients. "annealed": annealed importance sampling, for any prior.
            "auto" takes the first of these that is possible. Student noise has "sequential" only.
        random_state : int, RandomState or None, default=0
            A row's random numbers depend on it and on the row's values alone.
        return_std : bool, default=False
            Whether to return the standard errors (n,), too: 0 where the answer is exact, infinite
            (with a warning) where too few draws have all the weight.
        verbose : bool, default=True
            Whether to show progress on a terminal when it takes more than a second.

        Examples
        --------
        >>> import numpy as np
        >>> from noisyica import Model
        >>> model = Model(np.eye(4)[:, :2], noise_variance=0.5, prior="bg")
        >>> value, error = model.log_likelihood(np.ones((1, 4)), return_std=True)
        >>> print(f"{value[0]:.3f}, to within {2 * error[0]:.3f}")
        -6.169, to within 0.000
        """
        X, observed = rows_of_model(X, len(self.mean))
        temperatures = 1 if n_temperatures is None else n_temperatures
        particles = 2 if n_particles is None else n_particles
        check_counts(n_temperatures=(temperatures, 1), n_particles=(particles, 1))
        has_weights, p = self.noise_dof is not None, self.mixing.shape[1]
        missing = bool((observed < X.shape[1]).any())
        method = evidence.choose_method(self.prior, p, missing, method, student=has_weights)
        if return_std and particles == 1 and method != "exact":
            raise ValueError(
                "The standard error comes from the particles' spread: take n_particles of at "
                "least 2."
            )
        options: Any = {"seed": seed_of(random_state), "verbose": verbose}
        theta, rows, unit = in_standard_units(self.parameters(), X)
        value, error = evidence.log_likelihood(
            theta, rows, method, n_particles, n_temperatures, **options
        )
        value = value - observed * np.log(unit)
        return (value, error) if return_std else value

    # -------------------------------------------------------------------------------- common to all

    def _residual(
        self, X: Any, beta: Any, offset: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what coefficients and offsets leave of X (NaN where it is missing), and both."""
        X = self.check(X)[:]
        beta = check_array(beta, dtype=np.float64, input_name="beta")
        shape = (len(X), self.mixing.shape[1])
        if beta.shape != shape:
            raise ValueError(
                f"beta must have shape {shape}, a row for each row of X; got {beta.shape}."
            )
        offset = np.zeros(len(X)) if offset is None else np.asarray(offset, float)
        if offset.shape != (len(X),) or (offset.any() and not self.prior.has_offset):
            raise ValueError(
                f"offset must be {len(X)} numbers, one for each row of X, and only priors with an "
                "offset have one."
            )
        return X - self.mean - offset[:, None] - beta @ self.mixing.T, beta, offset

    def parameters(self) -> Parameters:
        """Return the parameters, in the units of x."""
        known = (self.mixing, self.mean, self.noise_variance, self.prior)
        values: Any = (*known, None, self.noise_dof)
        return to_numpy(Parameters(*values))

    def check(self, X: Any) -> Any:
        """Return X as rows of this model, or raise an error that says what is wrong.

        They are an array, or rows that are held elsewhere, as X is.
        """
        return rows_of_model(X, len(self.mean))[0]
