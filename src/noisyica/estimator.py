"""The scikit-learn face of the library."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from noisyica import priors
from noisyica._jax.arrays import cast, double_precision, to_numpy
from noisyica.data import storage
from noisyica.engine import learning
from noisyica.engine.checkpoint import Checkpoint, identity
from noisyica.engine.convergence import Monitor, convergence_time, similarity
from noisyica.engine.learning import Run, Schedule, Settings
from noisyica.engine.statistics import Parameters
from noisyica.laws import Law
from noisyica.model import Model, RandomState, check_observed
from noisyica.posterior import enumeration
from noisyica.posterior.standard_errors import standard_errors
from noisyica.priors import Prior
from noisyica.progress import Reporter
from noisyica.rows import starts as initialise

_CHOICES: dict[str, tuple[Any, ...]] = {
    "algorithm": ("saem", "mcem", "em", "fam-em", "sem"),
    "sampler": ("gibbs", "metropolis"),
    "mean": ("free", "zero", "shift", "offset"),
    "mixing_prior": ("normal", None),
    "noise": ("isotropic", "diagonal"),
    "dtype": ("float32", "float64"),
    "transform_algorithm": ("mean", "map"),
}


LIKELIHOOD_ROWS = 512
"""Rows by whose likelihood starts and restarts are compared."""


class NoisyICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Probabilistic (noisy) independent component analysis.

    Learns ``x = mean + A beta + sigma eps``, the coefficients ``beta`` being hidden, independent and usually sparse, by a stochastic EM.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components p; may exceed the number of columns. "auto" begins with the number of principal variances above what noise
        alone would give, and drops the components that the data do not support (with ``mixing_prior="normal"``).
    prior : str, Prior or Law, default="bg"
        The law of the coefficients: "log", "lap", "eg", "ifa", "bg", "ebg", "et", "te" or "teoff", or an object of
        :mod:`noisyica.priors` or :mod:`noisyica.laws`.
    algorithm : {"saem", "mcem", "em", "fam-em", "sem"}, default="saem"
        Stochastic approximation EM, Monte-Carlo EM, exact EM ("ifa", "bg" and "te" with few components), EM at the mode, or stochastic EM.
    sampler : {"gibbs", "metropolis"}, default="gibbs"
        Exact conditional draws, or the paper's proposals from the prior.
    mean : {"free", "zero", "shift", "offset"}, default="free"
        "free": a mean is learnt. "zero": none. "shift": none, but a location of the coefficients is learnt, common to all; with "bg" and
        "et" of those that are on ("log", "lap", "ifa", and an atom with one of them, have one, too). "offset": each row has a random
        Laplacian offset on all its columns, whose scale is learnt. ("teoff" has an offset of its own, and no mean.)
    noise : {"isotropic", "diagonal"}, default="isotropic"
        One noise variance, or one for each column of X.
    mixing_prior : {"normal", None}, default="normal"
        "normal": A is hidden, too, each of its columns with a normal prior whose scale is learnt. None: maximum likelihood, as in the
        paper. "em" and "fam-em" are always maximum likelihood.
    init : {"auto", "pca", "fastica", "random"} or array (d, p), default="auto"
        Where to start. "auto" is FastICA where it applies, or the best of several starts for priors with one scale a row. With more
        components than columns FastICA does not apply, and "auto" and "fastica" are random directions.
    n_init : int, default=1
        Number of starts, learnt from together; the result is that of greatest likelihood. Those after the first are random rotations of
        the principal components, or random directions.
    n_draws : int or (int, int), default=10
        Sweeps an iteration of "mcem"; two numbers: in the first and in the last of ``max_iter`` iterations, growing evenly.
    burn_in : float, default=0.5
        Share of ``max_iter`` during which the step is 1.
    kappa : float, default=0.9
        After burn-in the step of "saem" is t^-kappa, 0.5 <= kappa <= 1.
    max_iter : int, default=1000
        Most iterations.
    tol : float, default=1e-3
        "saem" stops after burn-in when what the draws say no longer drifts: the means of the two halves of the latter part of the run since
        burn-in differ by less than their standard deviation plus this share, three looks in a row. 0 runs all iterations.
    dtype : {"float32", "float64"}, default="float32"
        Of the sampler; sums and the M-step are always in float64.
    random_state : int, RandomState or None, default=None
        Decides everything random.
    verbose : bool, default=True
        Show progress on a terminal when the fit takes more than a second.
    boundaries : bool, default=False
        Truncate on random boundaries, as the paper's convergence theorem has it: a run whose statistics leave a ball, or jump, returns to
        its start, and the ball doubles. ``history_`` counts the "returns".
    warm_start : bool, default=False
        Start from the parameters of the last fit where they have the same shape. Where it had fewer components, a second run starts from
        those and others from what they leave of X, and the result is that of greater likelihood.
    transform_algorithm : {"mean", "map"}, default="mean"
        What ``transform`` gives: the posterior mean of the coefficients, or the most probable ones (:meth:`noisyica.Model.map`).
    callback : callable, optional
        ``callback(iteration, model)``, called every so many iterations with the :class:`noisyica.Model` learnt so far (from the first of
        several starts); the fit ends there if it returns True.
    checkpoint : path, optional
        A file in which ``fit`` notes every so often where it stands. Where it is there already, left by a fit of the same data with the
        same settings that did not end, ``fit`` goes on from it, to the same result. It is removed when the fit ends.

    Attributes
    ----------
    components_ : array (p, d)
        The components, by decreasing explained variance. Where the prior is symmetric, the largest entry of each is positive.
    mixing_ : array (d, p)
        A, the transpose of ``components_``; for a hidden A, its posterior mean.
    mean_ : array (d,)
    noise_variance_ : float, or array (d,) for diagonal noise
    prior_ : Prior
        The prior with the parameters learnt.
    model_ : Model
        All of the above as a :class:`noisyica.Model`.
    explained_variance_, explained_variance_ratio_ : array (p,)
        Variance of x that each component explains, and its share of the total.
    standard_errors_ : dict of arrays
        Standard errors of "components" (p, d), "mixing" (d, p), "mean", "noise_variance" and the prior's parameters, by name. Computed
        from the training data when first asked for (:mod:`noisyica.posterior.standard_errors`), so ask before pickling or saving.
    stability_ : array (n_init - 1, p)
        Only where ``n_init`` > 1: the absolute cosine of each component with its match in each of the other runs. Trust those near 1.
    history_ : dict of arrays
        ``iteration``, ``n_components``, ``noise_variance`` (its mean), ``column_norms``, ``gaussian_log_likelihood`` and the prior's
        parameters, after each iteration. ``n_components`` falls at the end where components are dropped.
    n_iter_ : int
    converged_ : bool
    convergence_time_ : int
        The paper's t_conv: the first iteration after which A stays within a thousandth of its first distance from where it ends.
    n_features_in_ : int
    feature_names_in_ : array

    Examples
    --------
    >>> from noisyica import NoisyICA
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> ica = NoisyICA(n_components=10, prior="bg", max_iter=200, tol=0, random_state=0).fit(X)
    >>> ica.components_.shape
    (10, 64)
    >>> ica.transform(X[:5]).shape
    (5, 10)
    """

    mixing_: np.ndarray
    components_: np.ndarray
    mean_: np.ndarray
    noise_variance_: Any
    prior_: Prior
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray
    stability_: np.ndarray
    n_iter_: int
    converged_: bool
    convergence_time_: int

    def __init__(
        self,
        n_components: int | str = "auto",
        prior: str | Prior | Law = "bg",
        algorithm: str = "saem",
        sampler: str = "gibbs",
        mean: str = "free",
        noise: str = "isotropic",
        mixing_prior: str | None = "normal",
        init: Any = "auto",
        n_init: int = 1,
        n_draws: int | tuple[int, int] = 10,
        burn_in: float = 0.5,
        kappa: float = 0.9,
        max_iter: int = 1000,
        tol: float = 1e-3,
        dtype: str = "float32",
        random_state: RandomState = None,
        verbose: bool = True,
        boundaries: bool = False,
        warm_start: bool = False,
        transform_algorithm: str = "mean",
        callback: Callable[[int, Model], bool | None] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.algorithm = algorithm
        self.sampler = sampler
        self.mean = mean
        self.noise = noise
        self.mixing_prior = mixing_prior
        self.init = init
        self.n_init = n_init
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.kappa = kappa
        self.max_iter = max_iter
        self.tol = tol
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.boundaries = boundaries
        self.warm_start = warm_start
        self.transform_algorithm = transform_algorithm
        self.callback = callback
        self.checkpoint = checkpoint

    # ------------------------------------------------------------------------------------------------------- fit

    def fit(self, X: Any, y: Any = None, **options: Any) -> NoisyICA:
        """Learn the components.

        Parameters
        ----------
        X : array (n, d)
            Missing entries are NaN.
        y : ignored
        sample_weight : array (n,), optional
            How many rows each row counts for. (Not in the signature: scikit-learn takes what is there for a promise that a row of weight
            2 does the same as two rows, to the last digit, and those would have different random numbers.)

        Returns
        -------
        self
        """
        self._fit(X, options)
        if self.checkpoint is not None:  # the fit has ended: nothing is left to go on with
            Path(self.checkpoint).unlink(missing_ok=True)
        return self

    @double_precision
    def _fit(self, X: Any, options: dict[str, Any]) -> None:
        """Learn; the checkpoint, if there is one, stays."""
        self._check_parameters()
        task = self._task(X, options)
        runs, monitors, interrupted = self._learn(task)
        best = int(np.nanargmax(_scores(runs, task))) if len(runs) > 1 else 0
        learnt = self._finished(runs[best], task) | {"converged_": monitors[best].done}
        if self.n_init > 1:
            others = [np.asarray(run.state.estimate.A) for i, run in enumerate(runs) if i != best]
            learnt["stability_"] = similarity(learnt["mixing_"], others)
        self._forget()
        self._training = (task.original, task.weight, task.settings.free_mean, task.settings.hidden)
        self.__dict__.update(learnt)  # all of it, or nothing where it is interrupted
        if interrupted:
            raise KeyboardInterrupt(
                f"Interrupted after {self.n_iter_} of {self.max_iter} iterations: the estimator has what was learnt."
            )
        unfinished = (
            not self.converged_ and self.n_iter_ == self.max_iter
        )  # rather than ended by a callback
        if self.tol > 0 and self.algorithm == "saem" and unfinished and self.max_iter > 200:
            warnings.warn(
                f"SAEM was still moving after {self.n_iter_} iterations (tol={self.tol:g}): raise max_iter, or look at history_.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _task(self, X: Any, options: dict[str, Any]) -> _Task:
        """The rows in units of their own, and all that is decided before a start is looked for."""
        X = check_observed(
            validate_data(
                self,
                X,
                dtype=[np.float64, np.float32],
                ensure_min_samples=2,
                ensure_all_finite="allow-nan",
            )
        )
        X, weight = _weighted(X, options)
        prior = self._prior(X)
        free_mean = self.mean == "free" and not prior.has_offset
        original = check_observed(X, axis=0)
        X, centre, unit = _standardise(original, free_mean, weight)
        prior = prior.rescaled(unit)
        rng = check_random_state(self.random_state)
        key = jax.random.key(rng.randint(2**31 - 1))
        share = None if weight is None else weight / weight.sum()
        filled = initialise.fill(X)
        p = self._number_of_components(filled)
        if share is not None:  # what starts are made of knows no weights
            filled = filled[rng.choice(len(X), len(X), p=share)]
        prior = prior.for_components(p)
        rows = X[
            rng.choice(len(X), min(len(X), LIKELIHOOD_ROWS), replace=share is not None, p=share)
        ]
        return _Task(
            original=original,
            weight=weight,
            filled=filled,
            data=learning.prepare(X, self.dtype, weight),
            # the share of each column that is not missing, which sums leave out
            seen=np.average(~np.isnan(X), 0, weight),
            centre=centre,
            unit=unit,
            prior=prior,
            p=p,
            settings=self._settings(prior, p, free_mean, bool(np.isnan(X).any())),
            schedule=Schedule(
                round(self.burn_in * self.max_iter),
                float(self.kappa),
                self._sweeps(),
                self.max_iter,
            ),
            rows=rows,
            key=key,
            rng=rng,
        )

    def _learn(self, task: _Task) -> tuple[list[Run], list[Monitor], bool]:
        """The loop: the runs, what watched over them, and whether it was interrupted."""
        file = self._checkpoint(task)
        with Reporter(f"noisyica {self.algorithm}", self.max_iter, bool(self.verbose)) as reporter:
            reporter.update(0, "looking for a start")
            found = (
                None
                if file is None
                else file.restore(
                    lambda: learning.begin(task.data, task.blank, task.settings).state
                )
            )
            if found is None:
                begun = [
                    learning.begin(task.data, start, task.settings)
                    for start in self._all_starts(task)
                ]
                monitors = [
                    Monitor(task.schedule.burn_in, self.tol if self.algorithm == "saem" else 0.0)
                    for _ in begun
                ]
            else:
                begun, monitors = found
            runs, interrupted = begun, False
            try:
                if found is None or not _at_rest(begun, monitors):
                    for runs in learning.learn(
                        task.data, begun, task.key, task.settings, task.schedule, self.max_iter
                    ):
                        self._check_alive(runs)
                        reporter.update(
                            int(runs[0].state.t), functools.partial(self._note, runs[0], task)
                        )
                        if self._at_end(runs, monitors, task):
                            break
                        if file is not None:
                            file.save(runs, monitors)
            except KeyboardInterrupt:
                if not runs[0].history:  # nothing was learnt yet
                    raise
                interrupted = not _at_rest(runs, monitors)
        if file is not None:
            file.save(runs, monitors, now=True)
        return runs, monitors, interrupted

    def _at_end(self, runs: list[Run], monitors: list[Monitor], task: _Task) -> bool:
        """Whether all runs are at rest, or the callback says that it is enough."""
        told = self.callback is not None and self.callback(
            int(runs[0].state.t), task.model(runs[0].state.estimate)
        )
        return bool(told) | _at_rest(runs, monitors)

    def _note(self, run: Run, task: _Task) -> str:
        """What progress says of a run: the noise and the prior's parameters that are single numbers."""
        model = task.model(run.state.estimate)
        known = {
            name: np.asarray(value).item()
            for name, value in model.prior.parameters.items()
            if np.size(value) == 1
        }
        values = {"noise variance": float(np.mean(model.noise_variance)), **known}
        return ", ".join(f"{name} {value:.4g}" for name, value in values.items())

    def _checkpoint(self, task: _Task) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"A checkpoint needs random_state to be an integer, to go on with the same draws; got {self.random_state!r}."
            )
        folder = Path(self.checkpoint).parent
        if not folder.is_dir():
            raise ValueError(
                f"checkpoint={os.fspath(self.checkpoint)!r}: there is no folder {folder}."
            )
        settings, init = self._plain_settings()
        passing = (
            "verbose",
            "checkpoint",
            "transform_algorithm",
        )  # what does not change where a run goes
        settings = {name: value for name, value in settings.items() if name not in passing}
        return Checkpoint(self.checkpoint, identity(settings, task.original, task.weight, init))

    def _all_starts(self, task: _Task) -> list[Parameters]:
        """Where the runs begin: the last fit, the best of what ``init`` says, and random rotations for restarts."""
        begun = task.prior.rescaled(1 / task.unit)
        asked = _same(getattr(self, "_begun", None), begun)
        self._begun = begun
        warm = self._warm(task, asked)
        if warm and self.mixing_.shape[1] == task.p:
            starts = warm
        else:
            candidates = self._starts(task)
            short = task.settings._replace(algorithm="saem", several=False, bounded=False)
            starts = [
                learning.best_start(task.data, candidates, task.key, short, task.score),
                *warm,
            ]
        return starts + [_start(task, "rotation") for _ in range(self.n_init - 1)]

    def _check_alive(self, runs: list[Run]) -> None:
        if any(
            np.isfinite(run.history["noise_variance"][-1] + run.history["column_norms"][-1].sum())
            for run in runs
        ):
            return
        other = ", or dtype='float64'" if self.dtype == "float32" else ""
        done, p = int(runs[0].state.t), len(runs[0].state.statistics.b)
        raise ValueError(
            f"Learning broke down before iteration {done}: {p} components are more than these data determine with dtype={self.dtype!r}, "
            f"and became copies of each other. Take fewer components{other}."
        )

    def _prior(self, X: np.ndarray) -> Prior:
        """The prior to begin with, with what ``mean`` adds to it."""
        prior = priors.get(self.prior)
        if self.mean == "shift":
            prior = prior.shifted()
        if self.mean == "offset" and not prior.has_offset:
            prior = priors.Offset(prior, max(float(np.abs(np.nanmean(X, 1)).mean()), 1e-300))
        return to_numpy(prior)

    def _forget(self) -> None:
        """What an earlier fit left that this one may not."""
        for name in ("stability_", "history_", "_training", "_standard_errors"):
            self.__dict__.pop(name, None)

    def _settings(self, prior: Prior, p: int, free_mean: bool, missing: bool) -> Settings:
        stochastic = self.algorithm not in ("em", "fam-em")
        if self.algorithm == "em":
            enumeration.check(prior, p)
            if missing:
                raise ValueError(
                    "algorithm='em' takes no missing values: the others do ('saem', 'mcem', 'fam-em')."
                )
        several = max(self._sweeps()) > 1
        hidden = (
            self.mixing_prior == "normal" and stochastic
        )  # the others have no draws of A: they are maximum likelihood
        return Settings(
            self.algorithm,
            self.sampler,
            free_mean,
            several,
            self.dtype,
            hidden,
            self.noise == "diagonal",
            bool(self.boundaries),
        )

    def _sweeps(self) -> tuple[int, int]:
        """Sweeps in the first and in the last iteration."""
        if self.algorithm != "mcem":
            return (1, 1)
        first, last = (
            self.n_draws
            if isinstance(self.n_draws, (tuple, list))
            else (self.n_draws, self.n_draws)
        )
        return int(first), int(last)

    def _check_parameters(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
                raise ValueError(
                    f"{name}={value!r} is not known. Choose {' or '.join(repr(a) for a in allowed)}."
                )
        n = self.n_components
        if isinstance(n, str) or n is None:
            if n != "auto":
                raise ValueError(f"n_components must be a positive integer or 'auto'; got {n!r}.")
        elif not isinstance(n, Integral) or isinstance(n, bool):
            raise TypeError(
                f"n_components must be a positive integer or 'auto'; got {n!r}, a {type(n).__name__}."
            )
        elif n < 1:
            raise ValueError(f"n_components must be at least 1; got {n}.")
        for name in ("max_iter", "n_init"):
            if not _is_count(getattr(self, name)):
                raise ValueError(
                    f"{name} must be an integer of at least 1; got {getattr(self, name)!r}."
                )
        draws = self.n_draws
        if not (
            _is_count(draws)
            or (isinstance(draws, (tuple, list)) and len(draws) == 2 and all(map(_is_count, draws)))
        ):
            raise ValueError(
                f"n_draws must be an integer of at least 1, or two of them (first and last); got {draws!r}."
            )
        priors.get(self.prior)
        if isinstance(self.init, str) and self.init not in initialise.METHODS:
            names = ", ".join(repr(m) for m in initialise.METHODS)
            raise ValueError(
                f"init={self.init!r} is not known. Choose one of {names}, or give an array (n_features, n_components)."
            )
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback must be a function of the iteration and the model; got {self.callback!r}."
            )
        for name, low, high in (("tol", 0.0, np.inf), ("burn_in", 0.0, 1.0), ("kappa", 0.5, 1.0)):
            value = getattr(self, name)
            if (
                not isinstance(value, Real)
                or isinstance(value, bool)
                or not low <= float(value) <= high
            ):
                raise ValueError(
                    f"{name} must be a number from {low:g} to {high:g}; got {value!r}."
                )

    def _number_of_components(self, X: np.ndarray) -> int:
        return (
            initialise.count_above_noise(X)
            if self.n_components == "auto"
            else int(self.n_components)
        )

    def _starts(self, task: _Task) -> list[Parameters]:
        """The parameters to start from, or several to choose among."""
        shape = (task.filled.shape[1], task.p)
        if not isinstance(self.init, str):
            A = check_array(self.init, dtype=np.float64, input_name="init") / task.unit
            if A.shape != shape:
                raise ValueError(
                    f"init has shape {A.shape}, but must be (n_features, n_components) = {shape}."
                )
            return [_start(task, "pca")._replace(A=jnp.asarray(A))]
        return [
            _start(task, method)
            for method in (task.prior.starts if self.init == "auto" else (self.init,))
        ]

    def _warm(self, task: _Task, asked: bool) -> list[Parameters]:
        """Where the last fit ended, if that is wanted and can be, with more components from what it leaves of X; a list of at most one.

        ``asked`` is whether that began with the same prior.
        """
        X, p, prior, unit = task.filled, task.p, task.prior, task.unit
        if not (
            self.warm_start
            and hasattr(self, "mixing_")
            and len(self.mixing_) == X.shape[1]
            and self.mixing_.shape[1] <= p
        ):
            return []
        A, mean, noise = (
            self.mixing_ / unit,
            (self.mean_ - task.centre) / unit,
            np.asarray(self.noise_variance_) / unit**2,
        )
        if self.mean != "free" or prior.has_offset:
            mean = np.zeros_like(mean)
        if self.noise != "diagonal":
            noise = noise.mean()
        if A.shape[1] < p:
            with threadpool_limits(limits=1):
                A = initialise.extended(X - mean, A, p, np.sqrt(prior.variance()))
            asked = (
                asked and self.prior_.n_parameters == prior.n_parameters
            )  # or some have parameters for each component
        # a prior that was asked for anew begins anew
        parts: Any = (A, mean, noise, self.prior_.rescaled(unit) if asked else prior)
        return [cast(Parameters(*parts), float)]

    def _finished(self, run: Run, task: _Task) -> dict[str, Any]:
        """What was learnt, in the units of X: components sorted, their signs fixed, and the record of the run."""
        model, unit = task.model(run.state.estimate), task.unit
        total = float((np.asarray(task.data.blocks.sum_xx).sum(0) / task.seen).sum())
        statistics = run.state.statistics
        spread = np.asarray(jnp.diag(statistics.bb) - statistics.b**2)
        explained = np.maximum(spread, 0.0) * np.square(model.mixing).sum(0)
        kept = self._supported(statistics.mixing, explained)
        order = kept[np.argsort(-explained[kept], kind="stable")]
        A, explained = model.mixing[:, order], explained[order]
        if model.prior.symmetric:
            peak = A[np.abs(A).argmax(0), np.arange(A.shape[1])]
            A = A * np.where(peak < 0, -1.0, 1.0)
        return {
            "mixing_": A,
            "components_": A.T,
            "mean_": model.mean,
            "noise_variance_": model.noise_variance,
            "prior_": model.prior.reordered(order),
            "explained_variance_": explained,
            "explained_variance_ratio_": explained / unit / unit / total,
            "n_iter_": int(run.state.t),
            "_record": (
                _shown(run.history),
                to_numpy(run.state.parameters.prior),
                unit,
                A.shape[0],
                order,
            ),
            "convergence_time_": convergence_time(run.history["sketch"]),
        }

    def _supported(self, mixing: Any, explained: np.ndarray) -> np.ndarray:
        """Which components to keep: all, unless their number was left to the data, which switch superfluous columns of a hidden A off.

        A column is off when its prior says all that is known of it: its posterior mean is small beside its posterior spread.
        """
        every = np.arange(len(explained))
        if self.n_components != "auto" or mixing is None:
            return every
        known = np.square(np.asarray(mixing.mean)).sum(0) / np.asarray(mixing.square).sum(0)
        return every[known > 0.2] if (known > 0.2).any() else every[[int(np.argmax(explained))]]

    @property
    def model_(self) -> Model:
        """The fitted parameters as a :class:`noisyica.Model`."""
        check_is_fitted(self)
        return Model(self.mixing_, self.mean_, self.noise_variance_, self.prior_)

    @functools.cached_property
    def history_(self) -> dict[str, np.ndarray]:
        """What was recorded of each iteration. It is put together when first asked for, which may take as long as a small fit."""
        check_is_fitted(self)
        return _history(*self._record)

    @property
    def standard_errors_(self) -> dict[str, np.ndarray]:
        """Standard errors of the components, the mean, the noise variance and the prior's parameters, by name."""
        check_is_fitted(self)
        if not hasattr(self, "_standard_errors"):
            if not hasattr(self, "_training"):
                raise AttributeError(
                    "standard_errors_ needs the training data, which are not kept in files: read it before saving or pickling."
                )
            self._standard_errors = standard_errors(self.model_, *self._training)
        return self._standard_errors

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_training", None)  # data do not belong in a pickled model
        return state

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    # ----------------------------------------------------------------------------------------- use of what was learnt

    def transform(self, X: Any) -> np.ndarray:
        """Coefficients of each row, (n, p): their posterior mean, or the most probable ones. A function of row and model alone."""
        X = self._rows(X)
        return (
            self.model_.map(X)
            if self.transform_algorithm == "map"
            else self.model_.posterior_mean(X, random_state=0)
        )

    def _rows(self, X: Any) -> np.ndarray:
        """Rows to which the fitted model is applied."""
        check_is_fitted(self)
        return validate_data(
            self, X, dtype=[np.float64, np.float32], reset=False, ensure_all_finite="allow-nan"
        )

    def inverse_transform(self, B: Any) -> np.ndarray:
        """The data that coefficients stand for, mean + A beta, (n, d)."""
        check_is_fitted(self)
        B = check_array(B, dtype=np.float64, input_name="B")
        if B.shape[1] != self.components_.shape[0]:
            raise ValueError(
                f"B has {B.shape[1]} columns, but there are {self.components_.shape[0]} components."
            )
        return self.mean_ + B @ self.components_

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(x) of each row, the coefficients integrated out, (n,). Its error: :meth:`noisyica.Model.log_likelihood`."""
        X = self._rows(X)
        return self.model_.log_likelihood(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log p(x) of the rows: what cross-validation and ``GridSearchCV`` maximise."""
        return float(self.score_samples(X).mean())

    @property
    def n_parameters_(self) -> int:
        """How many free numbers the model has: A, the mean, the noise and the prior's own."""
        check_is_fitted(self)
        mean = self.mean == "free" and not self.prior_.has_offset
        return int(
            self.mixing_.size
            + mean * self.mean_.size
            + np.size(self.noise_variance_)
            + self.prior_.n_parameters
        )

    def aic(self, X: Any) -> float:
        """Akaike's criterion on X: the lower the better. It is meant for maximum likelihood (``mixing_prior=None``)."""
        return -2 * float(self.score_samples(X).sum()) + 2 * self.n_parameters_

    def bic(self, X: Any) -> float:
        """The Bayesian information criterion on X: the lower the better. It is meant for maximum likelihood (``mixing_prior=None``)."""
        likelihood = self.score_samples(X)
        return -2 * float(likelihood.sum()) + np.log(len(likelihood)) * self.n_parameters_

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the fitted model: (X, beta)."""
        return self.model_.sample(n_samples, random_state)

    # -------------------------------------------------------------------------------------------------- save and load

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a .npz file (plain arrays and text, no pickle).

        Examples
        --------
        >>> import tempfile, os
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_iris
        >>> ica = NoisyICA(2, max_iter=50, tol=0, random_state=0).fit(load_iris().data)
        >>> path = os.path.join(tempfile.mkdtemp(), "iris.npz")
        >>> ica.save(path)
        >>> NoisyICA.load(path).noise_variance_ == ica.noise_variance_
        True
        """
        check_is_fitted(self)
        settings, init = self._plain_settings()
        arrays = {name: np.asarray(getattr(self, name)) for name in _SAVED_ARRAYS}
        arrays |= {f"history_{name}": values for name, values in self.history_.items()}
        arrays |= {
            f"error_{name}": values
            for name, values in getattr(self, "_standard_errors", {}).items()
        }
        if hasattr(self, "stability_"):
            arrays["stability_"] = self.stability_
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in_"] = self.feature_names_in_.astype(str)
        if init is not None:
            arrays["init"] = init
        storage.write(path, arrays, {"settings": settings, "prior_": priors.to_plain(self.prior_)})

    def _plain_settings(self) -> tuple[dict[str, Any], np.ndarray | None]:
        """The settings as JSON can hold them, and ``init`` where it is an array."""
        settings = self.get_params(deep=False)
        del settings["callback"]
        init = (
            None if isinstance(settings["init"], str) else np.asarray(settings.pop("init"), float)
        )
        if not isinstance(settings["prior"], str):
            settings["prior"] = priors.to_plain(priors.get(settings["prior"]))
        if not (settings["random_state"] is None or isinstance(settings["random_state"], Integral)):
            settings["random_state"] = None
        if isinstance(settings["n_draws"], (tuple, list)):
            settings["n_draws"] = [int(n) for n in settings["n_draws"]]
        if settings["checkpoint"] is not None:
            settings["checkpoint"] = os.fspath(settings["checkpoint"])
        return {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}, init

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NoisyICA:
        """Read an estimator that :meth:`save` wrote."""
        arrays, description = storage.read(path)
        try:
            settings = description["settings"]
            if isinstance(settings["prior"], dict):
                settings["prior"] = priors.from_plain(settings["prior"])
            if "init" in arrays:
                settings["init"] = arrays.pop("init")
            if isinstance(settings["n_draws"], list):
                settings["n_draws"] = tuple(settings["n_draws"])
            new = cls(**settings)
            new.prior_ = to_numpy(priors.from_plain(description["prior_"]))
            new.history_ = {
                k.removeprefix("history_"): arrays.pop(k)
                for k in list(arrays)
                if k.startswith("history_")
            }
            errors = {
                k.removeprefix("error_"): v for k, v in arrays.items() if k.startswith("error_")
            }
            if errors:
                new._standard_errors = errors
            if "stability_" in arrays:
                new.stability_ = arrays["stability_"]
            for name in _SAVED_ARRAYS:
                value = arrays[name]
                setattr(new, name, value if value.ndim else value.item())
            if "feature_names_in_" in arrays:
                new.feature_names_in_ = arrays["feature_names_in_"].astype(object)
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"{os.fspath(path)} is not a model saved by noisyica, or is damaged ({error})."
            ) from error
        new.mixing_ = new.components_.T
        return new

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")


_SAVED_ARRAYS = (
    "components_", "mean_", "noise_variance_", "explained_variance_", "explained_variance_ratio_", "n_iter_", "converged_",
    "convergence_time_", "n_features_in_",
)  # fmt: skip


class _Task(NamedTuple):
    """A fit: the rows, in units of their root mean square, and what was decided before it began."""

    original: np.ndarray  # in the user's units
    weight: np.ndarray | None
    filled: np.ndarray  # without missing entries: what starts are made of
    data: learning.Data
    seen: np.ndarray
    centre: np.ndarray
    unit: float
    prior: Prior
    p: int
    settings: Settings
    schedule: Schedule
    rows: np.ndarray  # by whose likelihood runs are compared
    key: jax.Array
    rng: np.random.RandomState

    def model(self, parameters: Parameters) -> Model:
        """The parameters in the user's units."""
        return _model(parameters, self.centre, self.unit)

    def score(self, parameters: Parameters) -> float:
        """The mean log likelihood of some rows, up to a constant."""
        if not (
            np.isfinite(parameters.sigma2).all() and np.isfinite(parameters.A).all()
        ):  # broken down
            return -np.inf
        model = _model(parameters, np.zeros(self.rows.shape[1]), 1.0)
        return float(model.log_likelihood(self.rows, n_particles=1, method="annealed").mean())

    @property
    def blank(self) -> Parameters:
        """Parameters of the right shapes."""
        d = self.filled.shape[1]
        return cast(Parameters(np.zeros((d, self.p)), np.zeros(d), 1.0, self.prior), float)  # type: ignore[arg-type]


def _at_rest(runs: list[Run], monitors: list[Monitor]) -> bool:
    """Whether all runs have converged. (Asking twice changes nothing.)"""
    looks = [
        monitor.converged(run.history["signal"])
        for monitor, run in zip(monitors, runs, strict=True)
    ]
    return all(looks)


def _scores(runs: list[Run], task: _Task) -> list[float]:
    """The likelihood of each run, worked out once for those that found the same: it takes as long as a tenth of a run."""
    scores: list[float] = []
    for i, run in enumerate(runs):
        twins = (
            score
            for other, score in zip(runs[:i], scores, strict=True)
            if _agree(run.state.estimate, other.state.estimate)
        )
        twin = next(twins, None)
        scores.append(task.score(run.state.estimate) if twin is None else twin)
    return scores


def _agree(one: Parameters, other: Parameters) -> bool:
    """Whether two runs found the same components, up to order and sign, and the same noise."""
    values = [np.asarray(value) for value in (one.A, other.A, one.sigma2, other.sigma2)]
    if not all(np.isfinite(value).all() for value in values):
        return False
    A, B, noise, other_noise = values
    close = np.abs(np.log(noise / other_noise)).max() < 0.01
    return bool(close) and bool(similarity(A, [B]).min() > 0.999)


def _start(task: _Task, method: str) -> Parameters:
    with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
        A, noise = initialise.start(task.filled, task.p, task.prior, method, task.rng)
    return task.blank._replace(A=jnp.asarray(A), sigma2=jnp.asarray(noise, float))


def _same(one: Prior | None, other: Prior) -> bool:
    """Whether two priors are of the same kind and have the same parameters."""
    leaves, others = jax.tree.leaves(one), jax.tree.leaves(other)
    same = bool(jax.tree.structure(one) == jax.tree.structure(other))  # type: ignore[operator]
    return same and all(np.array_equal(x, y) for x, y in zip(leaves, others, strict=True))


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _weighted(X: np.ndarray, options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows that count, and for how many (None: for one each)."""
    unknown = set(options) - {"sample_weight"}
    if unknown:
        raise TypeError(f"fit takes X, y and sample_weight; got {', '.join(sorted(unknown))}.")
    sample_weight = options.get("sample_weight")
    if sample_weight is None:
        return X, None
    weight = np.asarray(sample_weight, float)
    if (
        weight.shape != (len(X),)
        or not np.isfinite(weight).all()
        or (weight < 0).any()
        or (weight > 0).sum() < 2
    ):
        raise ValueError(
            f"sample_weight must be {len(X)} finite numbers >= 0, one for each row of X, at least two of them positive; "
            f"got shape {weight.shape}."
        )
    return X[weight > 0], weight[weight > 0]


def _standardise(
    X: np.ndarray, free_mean: bool, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows with their mean removed (if it is free), in units of their root mean square; the mean, and the unit.

    Dividing by the largest entry first keeps squares of huge and tiny data within range.
    """
    size = float(np.nanmax(np.abs(X)))
    if size == 0:
        raise ValueError("All entries of X are zero: there is nothing to decompose.")
    X = np.asarray(X, np.float64) / size
    centre = np.zeros(X.shape[1])
    if free_mean:
        centre = (
            np.nanmean(X, 0)
            if weight is None
            else np.ma.filled(np.ma.average(np.ma.masked_invalid(X), 0, weight))
        )
    X = X - centre
    rms = float(np.sqrt(np.nanmean(np.square(X))))
    if rms < 1e-13 or not (np.nanmax(X, 0) > np.nanmin(X, 0)).any():
        raise ValueError(
            "X is constant: all its rows are the same, so there is nothing to decompose."
        )
    X /= rms
    return X, centre * size, size * rms


def _model(parameters: Parameters, centre: np.ndarray, unit: float) -> Model:
    """The parameters in the units of X."""
    A, mean, sigma2, prior, _ = to_numpy(parameters)
    noise = np.maximum(
        sigma2 * unit**2, np.finfo(float).tiny
    )  # the square of tiny units underflows
    return Model(A * unit, centre + mean * unit, noise, prior.rescaled(1 / unit))


def _shown(raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The part of a run's record that people see."""
    return {name: values for name, values in raw.items() if name not in ("signal", "sketch")}


def _history(
    raw: dict[str, np.ndarray], prior: Prior, unit: float, d: int, order: np.ndarray
) -> dict[str, np.ndarray]:
    """The trace in the units of X, the prior's parameters under their own names."""
    noise = np.maximum(raw["noise_variance"] * unit**2, np.finfo(float).tiny)
    table = {
        "iteration": np.arange(1, len(noise) + 1),
        "n_components": np.append(
            np.full(len(noise) - 1, raw["column_norms"].shape[1]), len(order)
        ),
        "noise_variance": noise,
        "column_norms": raw["column_norms"][:, order] * unit,
        # expected log density of x given its coefficients, at the M-step's optimum, for a row
        "gaussian_log_likelihood": -0.5
        * d
        * (np.log(2 * np.pi) + raw["log_noise"] + 2 * np.log(unit) + 1),
    }
    if "returns" in raw:
        table["returns"] = raw["returns"]
    structure = jax.tree.structure(prior)
    leaves = [raw[f"prior{i}"] for i in range(len(jax.tree.leaves(prior)))]
    found = [jax.tree.unflatten(structure, [leaf[t] for leaf in leaves]) for t in range(len(noise))]
    rows = [one.rescaled(1 / unit).reordered(order).parameters for one in found]
    for name in rows[0]:
        table[name] = np.array([row[name] for row in rows])
    return table


def check_settings(estimator: NoisyICA) -> None:
    """Raise a ValueError or a TypeError if a setting of the estimator is wrong."""
    estimator._check_parameters()


def fit_and_keep_checkpoint(estimator: NoisyICA, X: Any, sample_weight: Any = None) -> NoisyICA:
    """Fit like ``estimator.fit``, but leave the checkpoint file for the caller to remove."""
    estimator._fit(X, {} if sample_weight is None else {"sample_weight": sample_weight})
    return estimator
