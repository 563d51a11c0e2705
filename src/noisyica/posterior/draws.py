"""Draws from the posterior of the coefficients: summaries, and whether there are enough."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.fft
import scipy.stats

from noisyica.posterior.inference_data import to_arviz


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior draws of the coefficients, from several Markov chains for each row.

    :meth:`noisyica.Model.posterior` makes them.

    Attributes
    ----------
    draws : array (n_chains, n_draws, n, p)

    Examples
    --------
    >>> import numpy as np
    >>> from noisyica import Model
    >>> A = np.random.default_rng(0).normal(size=(10, 3))
    >>> model = Model(A, noise_variance=0.25, prior="bg")
    >>> X, beta = model.sample(20, random_state=0)
    >>> posterior = model.posterior(X, n_draws=500, random_state=0)
    >>> posterior
    Posterior(4 chains of 500 draws; 20 rows, 3 components)
    >>> posterior.probability_on().shape, posterior.interval(0.9).shape
    ((20, 3), (20, 3, 2))
    """

    draws: np.ndarray

    def __repr__(self) -> str:
        chains, draws, n, p = self.draws.shape
        return f"Posterior({chains} chains of {draws} draws; {n} rows, {p} components)"

    # ------------------------------------------------------------------------------------ summaries

    def mean(self) -> np.ndarray:
        """Return the posterior mean of each coefficient, (n, p)."""
        return self.draws.mean((0, 1), dtype=float)

    def std(self) -> np.ndarray:
        """Return the posterior standard deviation of each coefficient, (n, p)."""
        return self.draws.std((0, 1), dtype=float)

    def probability_on(self) -> np.ndarray:
        """Return the probability that each coefficient is not zero, (n, p).

        It is 1 for priors without an atom at zero.
        """
        return (self.draws != 0).mean((0, 1))

    def probability_positive(self) -> np.ndarray:
        """Return the probability that each coefficient is above zero, (n, p)."""
        return (self.draws > 0).mean((0, 1))

    def probability_negative(self) -> np.ndarray:
        """Return the probability that each coefficient is below zero, (n, p)."""
        return (self.draws < 0).mean((0, 1))

    def interval(self, level: float = 0.9, given_on: bool = False) -> np.ndarray:
        """Return equal-tailed credible intervals: their lower and upper ends, (n, p, 2).

        If the prior has an atom at zero and more than ``level`` of the posterior is there, the
        interval is that point, and has more than ``level`` of the probability.

        Parameters
        ----------
        level : float, default=0.9
            The probability of an interval.
        given_on : bool, default=False
            If true, the intervals are those of the coefficients given that they are not zero;
            :meth:`probability_on` has the probability of that. They are NaN for coefficients of
            which all draws are zero.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be a number between 0 and 1; got {level!r}.")
        draws = self.draws.reshape(-1, *self.draws.shape[2:])
        tails = [0.5 * (1 - level), 0.5 * (1 + level)]
        if given_on:
            return np.stack([_quantile_of_nonzero(draws, q) for q in tails], -1)
        return np.moveaxis(np.quantile(draws, tails, axis=0), 0, -1)

    # --------------------------------------------------------------- whether there are enough draws

    def rhat(self) -> np.ndarray:
        """Return the rank-normalised split R-hat of each coefficient, (n, p).

        This is the diagnostic of Vehtari et al. (2021).
        It is below 1.01 where the chains agree, and 1 where all draws are the same.
        """
        z = _normal_scores(_split(self.draws))
        folded = _split(self.draws)
        folded = _normal_scores(np.abs(folded - np.median(folded, axis=(0, 1))))
        return np.maximum(_rhat(z), _rhat(folded))

    def ess(self) -> np.ndarray:
        """Return the effective number of draws of each coefficient, (n, p).

        This is the bulk-ESS of rank-normalised split chains (Vehtari et al., 2021).
        """
        z = _normal_scores(_split(self.draws))
        chains, draws = z.shape[:2]
        size = scipy.fft.next_fast_len(2 * draws)
        centred = z - z.mean(1, keepdims=True)
        spectrum = np.abs(scipy.fft.rfft(centred, size, axis=1)) ** 2
        # averaged over the chains, at each lag: (draws, n, p)
        covariance = scipy.fft.irfft(spectrum.mean(0), size, axis=0)[:draws] / draws
        within = covariance[0] * draws / (draws - 1)
        total = within * (draws - 1) / draws + z.mean(1).var(0, ddof=1)
        constant = total <= 0
        rho = 1 - (within - covariance * draws / (draws - 1)) / np.where(constant, 1.0, total)
        rho[0] = 1.0
        # Geyer's initial monotone sequence: sums of pairs as long as these are positive, each at
        # most the one before it
        pairs = rho[: draws // 2 * 2].reshape(-1, 2, *rho.shape[1:]).sum(1)
        positive = np.logical_and.accumulate(pairs > 0, axis=0)
        pairs = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
        time = np.maximum(2 * pairs.sum(0) - 1, 1 / np.log10(chains * draws))
        return np.where(constant, float(chains * draws), chains * draws / time)

    def to_arviz(self, model: Any = None, X: Any = None, row_names: Any = None) -> Any:
        """Return the draws as an object of ArviZ, with what was known and the rows' likelihood.

        It is an ``InferenceData``, or from ArviZ 1.0 on a ``DataTree``. This needs ArviZ: ``pip
        install 'noisyica[arviz]'``. R-hat and bulk-ESS are defined there as in :meth:`rhat` and
        :meth:`ess` (Vehtari et al., 2021).

        Parameters
        ----------
        model : noisyica.Model, optional
            The model whose coefficients were drawn (``ica.model_``).
        X : array (n, d), optional
            The rows whose coefficients were drawn. A table's names of rows and columns become
            coordinates.
        row_names : sequence, optional
            Names of the rows.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The group "posterior" has "beta" (chain, draw, row, component). With a model,
            "constant_data" has its parameters "mixing", "mean", "noise_variance" and "noise_dof":
            of these there are no draws, since a fit keeps their averages alone (for the components
            with standard deviations, ``ica.components_std_``). With X, "observed_data" has "x", and
            "log_likelihood" has "rows" (chain, draw, row): log p(x | beta) of each row.

        Notes
        -----
        ``arviz.loo`` leaves rows out, whose coefficients nothing else tells then. So what it
        estimates for a row, parameters being given, is log p(x) itself, by the harmonic mean: where
        rows have many columns or little noise, ArviZ warns that it cannot (large Pareto k).
        :meth:`noisyica.Model.log_likelihood` computes that number as it should be.
        """
        return to_arviz(self.draws, model, X, row_names)


def _quantile_of_nonzero(draws: np.ndarray, q: float) -> np.ndarray:
    """Return the q-quantile of those draws (m, n, p) of a coefficient that are not zero, (n, p).

    It is NaN where all are zero.
    """
    count = (draws != 0).sum(0)
    ordered = np.sort(np.where(draws != 0, draws, np.inf), axis=0)  # the zeros are at the end
    last = np.maximum(count - 1, 0)
    place = q * last
    below = np.floor(place).astype(int)
    above = np.minimum(below + 1, last)
    low, high = (np.take_along_axis(ordered, i[None], 0)[0] for i in (below, above))
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, low + (place - below) * (high - low), np.nan)


def _split(draws: np.ndarray) -> np.ndarray:
    """Return the two halves of each chain as chains, (2 n_chains, n_draws / 2, n, p)."""
    count = draws.shape[1]
    half = count // 2
    if half < 2:
        raise ValueError(f"Diagnostics need at least 4 draws per chain; there are {count}.")
    return np.concatenate([draws[:, :half], draws[:, count - half :]])


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    """Return normal quantiles of the ranks of the draws of each coefficient, in their shape.

    Draws that are equal share the mean of their ranks.
    """
    flat = draws.reshape(-1, *draws.shape[2:])
    ranks = scipy.stats.rankdata(flat, axis=0)
    return scipy.stats.norm.ppf((ranks - 0.375) / (len(flat) + 0.25)).reshape(draws.shape)


def _rhat(z: np.ndarray) -> np.ndarray:
    """Return the R-hat of each coefficient from draws (chains, draws, n, p), (n, p)."""
    count = z.shape[1]
    within, between = z.var(1, ddof=1).mean(0), z.mean(1).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.sqrt((count - 1) / count + between / within)
    return np.where((within == 0) & (between == 0), 1.0, value)
