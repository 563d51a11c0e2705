"""The estimator, in the style of scikit-learn: :class:`NoisyICA`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning

from noisyica import interruption
from noisyica._jax.device import on_device
from noisyica._jax.precision import double_precision
from noisyica.arguments import RandomState
from noisyica.engine import outcome
from noisyica.engine.algorithms import Algorithm
from noisyica.engine.checkpoint import checkpoint_of
from noisyica.engine.convergence import similarity
from noisyica.engine.doubts import doubts, in_cross_validation
from noisyica.engine.loop import learn
from noisyica.engine.reliability import SHORTEST_FIT, reliability, warning
from noisyica.engine.saving import OPTIONAL
from noisyica.engine.settings import check_settings
from noisyica.engine.starting import LastFit, all_starts
from noisyica.engine.state import Run
from noisyica.engine.task import Task, prepare
from noisyica.engine.watch import Watch
from noisyica.fitted import Fitted, checked_weight
from noisyica.laws import Law
from noisyica.model import Model
from noisyica.partial import PartialFit
from noisyica.posterior.parameters import Parameters
from noisyica.priors import Prior
from noisyica.rows.held import checked
from noisyica.rows.source import Rows


class NoisyICA(
    PartialFit,
    Fitted,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Probabilistic (noisy) independent component analysis.

    The model is ``x = mean + A beta + sigma eps``, with hidden coefficients ``beta`` that are
    independent and usually sparse. It is learnt by stochastic EM.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        The number of components p, which may exceed the number of columns. "auto" starts with the
        number of principal variances above those of noise alone, and drops the components that
        the data do not support (with ``mixing_prior="normal"``).
    prior : str, Prior or Law, default="bg"
        The law of the coefficients: "log", "lap", "eg", "ifa", "bg", "ebg", "et", "te", "teoff",
        "adaptive" (learnt), or an object of :mod:`noisyica.priors` or :mod:`noisyica.laws`.
    algorithm : {"saem", "mcem", "em", "fam-em", "sem"} or Algorithm, default="saem"
        Stochastic approximation EM, Monte-Carlo EM, exact EM ("ifa", "bg" and "te" with few
        components), EM at the mode, stochastic EM, or an object of
        :mod:`noisyica.engine.algorithms`.
    sampler : {"gibbs", "metropolis"}, default="gibbs"
        Exact conditional draws, or the paper's proposals from the prior.
    mean : {"free", "zero", "shift", "shift-after", "offset", "offset-logistic"}, default="free"
        "free": a mean is learnt. "zero": there is none. "shift": there is no mean, but the
        coefficients have a common location, which is learnt; zeros stay zero, and with "eg", "ebg"
        and "te" it is inside the scale. "shift-after": the location is added after zeros and
        scales. "offset", "offset-logistic": each row has a Laplacian or logistic offset on all its
        columns, whose scale is learnt. ("teoff" has an offset of its own, and no mean.)
    noise : {"auto", "isotropic", "diagonal", "student"}, default="auto"
        "auto": a variance for each column and a weight for each row; at the end, only what the rows
        support is kept: equal columns get one variance, and if rows do not differ, the noise is
        normal. (Rows have no weights with "em", "fam-em", and priors of your own that do not
        support them. There is one variance with :class:`noisyica.Smooth`, "fam-em", and at least
        as many components as columns.) "isotropic": one noise variance. "diagonal": one for each
        column of X. "student": one noise variance, divided by a hidden weight of each row, so that
        outlying rows count for little; the degrees of freedom are learnt.
    mixing_prior : {"normal", "sparse", "nonnegative", None}, Law or Smooth, default="normal"
        The prior of A's entries, whose scale is learnt for each column (empirical Bayes): normal;
        zero or normal; zero or exponential; any law of :mod:`noisyica.laws`; smooth over neighbours
        (:class:`noisyica.Smooth`). None, and always "em" and "fam-em": maximum likelihood.
    init : {"auto", "pca", "fastica", "varimax", "random"} or array (d, p), default="auto"
        The mixing matrix to start from, or how to find one. "auto" is FastICA or, with one scale
        per row or a law of A that has an atom, the best of several starts. With more components
        than columns, to which FastICA does not apply, starts are random directions.
    n_init : int or "auto", default="auto"
        The number of starts, which are learnt from together; the result of highest likelihood is
        kept. All but the first are random rotations of the principal components, or random
        directions. "auto" is one start. Unless it is 1, or ``max_iter`` is at most 200, halves of
        the rows are learnt from, too (``reliability_``): 200 to 800 further iterations.
    n_draws : int or (int, int), default=10
        The number of sweeps per iteration of "mcem". Two numbers are those of the first and the
        last of ``max_iter`` iterations, between which the number grows evenly.
    burn_in : float, default=0.5
        The share of ``max_iter`` during which the step is 1.
    kappa : float, default=0.9
        In the k-th iteration after burn-in the step of "saem" is k^-kappa, 0.5 <= kappa <= 1.
    max_iter : int, default=1000
        The maximum number of iterations.
    tol : float, default=1e-3
        "saem" stops after burn-in when summaries of its draws no longer drift: three times in a
        row, their means over the two halves of the latter part of the run since burn-in differ by
        less than their standard deviation plus this share of them. 0 runs all iterations.
    dtype : {"float32", "float64"}, default="float32"
        The precision of the sampler; sums over blocks of rows and the M-step are in float64.
    random_state : int, RandomState or None, default=None
        The seed, which determines a fit, with any number of threads (to rounding before JAX 0.10).
    verbose : bool, default=True
        Whether to show progress on a terminal when something takes more than a second.
    boundaries : bool, default=False
        Whether to truncate on random boundaries, as the paper's convergence theorem assumes: a run
        whose statistics leave a ball, or jump, returns to its start, and the ball doubles in size.
        ``history_`` counts the "returns".
    grow : "auto" or False, default="auto"
        "auto": if there are many rows, burn-in of "saem" uses some of them, chosen at random, and
        only the last iterations use all: the same result in a fraction of the time.
    warm_start : bool, default=False
        Whether to start from the parameters of the last fit, if they have the same shape. If that
        fit had fewer components, a second run starts from those, completed by components of their
        residuals, and the result of higher likelihood is kept.
    transform_algorithm : {"mean", "map"}, default="mean"
        What ``transform`` gives: the posterior mean of the coefficients, or the most probable ones
        (:meth:`noisyica.Model.map`).
    device : {"auto", "cpu", "gpu"}, default="auto"
        Where to compute. "auto" is a GPU if there is one that JAX can use (``pip install
        'noisyica[cuda]'``). Up to Monte-Carlo error, results do not depend on it.
    callback : callable, optional
        ``callback(iteration, model)`` is called from time to time with the
        :class:`noisyica.Model` learnt so far (from the first of several starts); the fit ends there
        if it returns True.
    checkpoint : path, optional
        A file in which ``fit`` saves its state from time to time. If the file exists already, left
        by an interrupted fit of the same data with the same settings, ``fit`` continues from it, to
        the same result. It is removed when the fit ends.

    Attributes
    ----------
    components_ : array (p, d)
        The components, by decreasing explained variance. Where the prior is symmetric, the largest
        entry of each is positive.
    mixing_ : array (d, p)
        A, the transpose of ``components_``; for a hidden A, its posterior mean.
    components_std_, components_probability_ : array (p, d)
        For a hidden A, the posterior standard deviation of each entry and, if ``mixing_prior``
        lets entries be zero, the probability that it is not. ``mixing_prior_`` has the learnt law
        of the entries for each component, in units of X.
    mean_ : array (d,)
    noise_variance_ : float, or array (d,) if columns have noise of their own
    noise_dof_, row_weights_ : float, array (n,)
        For Student noise only: the degrees of freedom nu, and the posterior mean of the weight of
        each row that was learnt from. A row of weight one has the noise variance sigma^2
        (``noise_variance_``), and all rows together have sigma^2 nu / (nu - 2); a weight far below
        one marks an outlying row. With nu = 1000, the largest value, the noise is normal.
    prior_ : Prior
        The prior with the parameters learnt.
    model_ : Model
        All of the above as a :class:`noisyica.Model`.
    explained_variance_, explained_variance_ratio_ : array (p,)
        The variance of x that each component explains, summed over columns, and its share of the
        variance of x. The shares sum to what all components explain; the noise, and the offset of
        rows that have one, are the rest (:func:`noisyica.engine.explained.explained_variance`).
    standard_errors_ : dict of arrays
        What :meth:`standard_errors` returned, once it was called. ``standard_errors_.robust`` says
        whether they are robust, or by the model.
    reliability_ : array (p,)
        The absolute cosine that each component is expected to have with what infinitely many such
        rows would show. It is estimated from components learnt from halves of the rows, rather too
        low than too high (:mod:`noisyica.engine.reliability`). Components of 0.96 or more are
        reliable; those below 0.8 are doubtful, and ``fit`` warns of them. Absent if ``n_init=1``.
    stability_ : array (runs - 1, p)
        Only if there are several runs (``n_init`` > 1): the absolute cosine of each component with
        its match in each of the other runs. Runs that agree have found the same optimum, but other
        rows need not have it: see ``reliability_``. If the data have grown (``grow``), the other
        runs are as they were before all rows took part.
    history_ : dict of arrays
        ``iteration``, ``n_components``, ``noise_variance`` (its mean), ``column_norms``,
        ``gaussian_log_likelihood`` and the prior's parameters, after each iteration.
        ``n_components`` falls at the end where components are dropped.
    n_iter_, converged_ : int, bool
    convergence_time_ : int
        The paper's t_conv: the first iteration after which the distance of A from its final value
        stays below a thousandth of what it was at first.
    n_features_in_, feature_names_in_ : int, array

    Examples
    --------
    >>> from noisyica import NoisyICA
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> options = {"noise": "isotropic", "max_iter": 200, "tol": 0}  # pixels are alike
    >>> ica = NoisyICA(n_components=10, prior="bg", random_state=0, **options).fit(X)
    >>> ica.components_.shape
    (10, 64)
    >>> ica.transform(X[:5]).shape
    (5, 10)
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        prior: str | Prior | Law = "bg",
        algorithm: str | Algorithm = "saem",
        sampler: str = "gibbs",
        mean: str = "free",
        noise: str = "auto",
        mixing_prior: Any = "normal",
        init: Any = "auto",
        n_init: int | str = "auto",
        n_draws: int | tuple[int, int] = 10,
        burn_in: float = 0.5,
        kappa: float = 0.9,
        max_iter: int = 1000,
        tol: float = 1e-3,
        dtype: str = "float32",
        random_state: RandomState = None,
        verbose: bool = True,
        boundaries: bool = False,
        grow: str | bool = "auto",
        warm_start: bool = False,
        transform_algorithm: str = "mean",
        device: str = "auto",
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
        self.boundaries, self.grow = boundaries, grow
        self.warm_start = warm_start
        self.transform_algorithm = transform_algorithm
        self.device = device
        self.callback = callback
        self.checkpoint = checkpoint

    # ------------------------------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NoisyICA:
        """Learn the components.

        Ctrl-C ends it at its next look with KeyboardInterrupt; the estimator then has what was
        learnt so far. A second Ctrl-C does not wait for the next look.

        Parameters
        ----------
        X : array (n, d)
            Missing entries are NaN, or masked. A memory map, an array of HDF5, Zarr or Dask, a
            Parquet file or what :func:`noisyica.data.open` gives is read block by block, and a
            sparse matrix is made dense so.
        y : ignored
        sample_weight : array (n,), optional
            How many rows each row counts for. A row of weight 2 does the same as two rows on
            average, but not to the last digit: those would have different random numbers.

        Returns
        -------
        self
        """
        self.__dict__.pop("_stream", None)  # partial_fit would begin anew
        self._fit(X, sample_weight)
        if self.checkpoint is not None:  # the fit has ended: nothing is left to go on with
            Path(self.checkpoint).unlink(missing_ok=True)
        return self

    @interruption.held()
    @double_precision()
    def _fit(self, X: Any, sample_weight: Any) -> None:
        """Learn the components, and leave the checkpoint, if there is one."""
        before = dict(self.__dict__)
        try:
            with on_device(self.device):
                self._learn(X, sample_weight)
        except BaseException:
            # checks of X come first, and say of which columns it is: they are the last fit's still
            if self.__sklearn_is_fitted__() and self.components_ is before.get("components_"):
                for name in ("n_features_in_", "feature_names_in_"):
                    self.__dict__.pop(name, None)
                    self.__dict__ |= {name: before[name]} if name in before else {}
            raise

    def _learn(self, X: Any, sample_weight: Any) -> None:
        """Check the settings and X, learn, and keep what was learnt."""
        check_settings(self)
        X = checked(X, self, reset=True, least=2)
        task = prepare(self, Rows(X, checked_weight(sample_weight, len(X))))
        plan = task.plan
        file = checkpoint_of(self, task.rows)
        tell = None if self.callback is None else self._tell_callback
        with Watch(task, self.max_iter, self.tol, bool(self.verbose), tell, file) as watch:
            stored = file and file.restore(lambda done: task.collected(task.begun(done)))
            if stored:
                watch.begin(*stored)
            else:
                starts = all_starts(self, task, self._last_fit())
                watch.begin([task.begun(0, start) for start in starts])
            task = task._replace(sample=None)  # the starts are made: free its memory
            if not watch.at_rest():  # a checkpoint may hold a fit that has ended
                for runs in learn(task.stages, watch.current, task.key, plan, self.max_iter):
                    if watch.take_note(runs):
                        break
        best = self._keep(task, watch)
        said = doubts(task, best, len(self.components_), getattr(self, "feature_names_in_", None))
        self._raise_or_warn(watch.interrupted, plan.algorithm.stops_by_itself, said)
        if self.n_init != 1 and self.max_iter > SHORTEST_FIT:
            self.reliability_ = reliability(task, best, self.mixing_, bool(self.verbose))
            self._warn_of_doubtful()

    def _keep(self, task: Task, watch: Watch) -> Run:
        """Keep what the best run learnt as attributes, in place of those of an earlier fit.

        All are replaced at the end, so that an error on the way leaves the earlier fit as it was.
        Return that run.
        """
        if len(watch.runs) > 1:
            watch.narrow()
        (run,), (monitor,) = watch.runs, watch.monitors
        automatic = self.n_components == "auto"
        learnt = outcome.fitted_attributes(run, task, automatic)
        learnt["converged_"] = monitor.done
        learnt["_first_prior"] = task.prior.rescaled(1 / task.rows.unit)
        if watch.left_behind:
            learnt["stability_"] = similarity(learnt["mixing_"], watch.left_behind)
        for name in (*OPTIONAL, "_spread", "mixing_prior_", "history_", "standard_errors_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(learnt)
        _ = self.model_  # made once, here: transform leaves the estimator as it is
        return run

    def _warn_of_doubtful(self) -> None:
        """Warn of components that the rows hardly determine.

        There is no warning of a fit that was cut short, or is only there to be scored.
        """
        text = warning(self.reliability_)
        ended = self.converged_ or self.n_iter_ == self.max_iter
        if text and ended and not in_cross_validation():
            warnings.warn(text, UserWarning, stacklevel=7)

    def _raise_or_warn(self, interrupted: bool, stops_by_itself: bool, said: list[str]) -> None:
        """Raise KeyboardInterrupt if the fit was interrupted; warn of what is doubtful about it."""
        if interrupted:
            raise KeyboardInterrupt(
                f"Interrupted after {self.n_iter_} of {self.max_iter} iterations: the estimator "
                "has what was learnt."
            )
        for text in said:
            warnings.warn(text, UserWarning, stacklevel=7)
        unfinished = not self.converged_ and self.n_iter_ == self.max_iter
        if self.tol > 0 and stops_by_itself and unfinished and self.max_iter > 200:
            warnings.warn(
                f"SAEM was still moving after {self.n_iter_} iterations (tol={self.tol:g}): raise "
                "max_iter, or look at history_.",
                ConvergenceWarning,
                stacklevel=7,
            )

    def _tell_callback(self, iteration: int, parameters: Parameters) -> bool | None:
        """Tell the callback where the first run stands."""
        assert self.callback is not None
        A, mean, noise, prior, _, dof = parameters
        return self.callback(iteration, Model(A, mean, noise, prior, dof))

    def _last_fit(self) -> LastFit | None:
        """Return what the last fit left, for a warm start."""
        if not self.__sklearn_is_fitted__():
            return None
        known = (self.mixing_, self.mean_, self.noise_variance_, self.prior_)
        values: Any = (*known, None, getattr(self, "noise_dof_", None))
        return LastFit(Parameters(*values), getattr(self, "_first_prior", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")


def fit_and_keep_checkpoint(estimator: NoisyICA, X: Any, sample_weight: Any = None) -> NoisyICA:
    """Fit an estimator, and leave its checkpoint for the caller to remove."""
    estimator._fit(X, sample_weight)
    return estimator
