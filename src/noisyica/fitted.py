"""What a fitted estimator can do: all methods of :class:`noisyica.NoisyICA` apart from ``fit``."""

from __future__ import annotations

import functools
import os
from typing import Any, TypeVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_array
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from noisyica._jax.device import on_device
from noisyica.arguments import RandomState, result
from noisyica.data import storage
from noisyica.data.held import Blocks
from noisyica.data.writing import component_names
from noisyica.engine import algorithms, outcome, saving
from noisyica.engine.findings import describe
from noisyica.model import Model
from noisyica.posterior.standard_errors import StandardErrors, standard_errors
from noisyica.posterior.units import in_standard_units
from noisyica.priors import Prior
from noisyica.rows.held import checked, held
from noisyica.rows.numbers import plain_numbers
from noisyica.rows.source import NUMBERS_AT_A_TIME

Self = TypeVar("Self", bound="Fitted")


class Fitted(TransformerMixin):  # type: ignore[misc]
    """The base of :class:`noisyica.NoisyICA` with all methods that use what was learnt.

    It is a transformer itself, since ``set_output`` changes what a class's own ``transform`` gives,
    and not that of a base.
    """

    algorithm: Any
    mean: str
    mixing_prior: Any
    transform_algorithm: str
    device: str
    verbose: bool
    mixing_: np.ndarray
    components_: np.ndarray
    _spread: outcome.Spread
    mean_: np.ndarray
    noise_variance_: Any
    noise_dof_: float
    row_weights_: np.ndarray
    prior_: Prior
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray
    reliability_: np.ndarray
    stability_: np.ndarray
    standard_errors_: StandardErrors
    n_iter_: int
    converged_: bool
    convergence_time_: int
    _record: outcome.Record

    # ------------------------------------------------------------------------------ what was learnt

    @property
    def model_(self) -> Model:
        """The fitted parameters as a :class:`noisyica.Model`."""
        check_is_fitted(self)
        dof = getattr(self, "noise_dof_", None)
        parts = (self.mixing_, self.mean_, self.noise_variance_, self.prior_, dof)
        kept, model = self.__dict__.get("_model", ((), None))
        if len(kept) != len(parts) or any(a is not b for a, b in zip(kept, parts, strict=True)):
            model = Model(*parts)
            self._model = (parts, model)
        return model

    @functools.cached_property
    def history_(self) -> dict[str, np.ndarray]:
        """What was recorded of each iteration, by name."""
        check_is_fitted(self)
        return outcome.history(self._record)

    @functools.cached_property
    def components_std_(self) -> np.ndarray:
        """The posterior standard deviation of each entry of the components, (p, d)."""
        if not hasattr(self, "_spread"):
            raise AttributeError("There is no components_std_ without a mixing_prior.")
        return outcome.standard_deviations(self._spread, self.components_, self.prior_)

    def standard_errors(
        self, X: Any, sample_weight: Any = None, robust: bool = True
    ) -> StandardErrors:
        """Return standard errors of what was learnt from X, and keep them as ``standard_errors_``.

        They assume that the rows of X are independent and, where entries are missing, that these
        are missing at random: whether an entry is missing does not depend on what is not seen.

        Parameters
        ----------
        X : array (n, d)
            The rows that the estimator was fitted to, which it does not keep. They are read into
            memory.
        sample_weight : array (n,), optional
            The weights that it was fitted with.
        robust : bool, default=True
            Whether the errors are robust (the sandwich of Huber and White): right in large samples
            where the model is not, too, as errors of those parameters at which the model is
            nearest. If not, they are by the model: right only where noise and coefficients have
            the laws of the model. Both are about the same there. With fewer than
            two rows per component they are by the model in any case, and a warning says so.

        Returns
        -------
        errors : dict of arrays
            Standard errors of "components" (p, d), "mixing" (d, p), "mean", "noise_variance", the
            prior's parameters and, for Student noise, "noise_dof" (infinite where that is at its
            largest value), by name (:mod:`noisyica.posterior.standard_errors`). Its attribute
            ``robust`` says which they are. Where ``mixing_prior`` is neither "normal" nor None, the
            errors of "components" and "mixing" are ``components_std_``.

        Examples
        --------
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_iris
        >>> X = load_iris().data
        >>> ica = NoisyICA(2, max_iter=50, tol=0, random_state=0).fit(X)
        >>> errors = ica.standard_errors(X)
        >>> errors["components"].shape, errors.robust
        ((2, 4), True)
        """
        X = self._rows(X)
        weight = checked_weight(sample_weight, len(X))
        if weight is not None:
            X, weight = X[weight > 0], weight[weight > 0]
        hidden = self.mixing_prior is not None and algorithms.get(self.algorithm).stochastic
        parameters, rows, unit = in_standard_units(self.model_.parameters(), X)
        given = (parameters, rows[:], weight, self._free_mean, hidden, robust)
        with on_device(self.device):
            errors = standard_errors(*given, verbose=bool(self.verbose))
        self.standard_errors_ = _in_units_of_x(errors, unit)
        if hidden and self.mixing_prior != "normal":  # a law of A's entries tells more of them
            of_entries = {"components": self.components_std_, "mixing": self.components_std_.T}
            self.standard_errors_ |= of_entries
        return self.standard_errors_

    @property
    def _free_mean(self) -> bool:
        return self.mean == "free" and self.prior_.takes_mean

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that ``transform`` gives: component0, component1, ..."""
        prefixed: Any = super()
        count = len(prefixed.get_feature_names_out(input_features))  # checks input_features, too
        return np.array(component_names(count), dtype=object)

    # ----------------------------------------------------------------------- use of what was learnt

    def transform(self, X: Any, return_std: bool = False, out: Any = None) -> Any:
        """Return the coefficients of each row, (n, p).

        They are the posterior mean or, with ``transform_algorithm="map"``, the most probable ones:
        a function of the row and the model alone.

        Parameters
        ----------
        X : array (n, d)
            The coefficients of a Dask array are one, too, to be computed where the rows are (unless
            ``return_std`` or ``out`` are given).
        return_std : bool, default=False
            Whether to return the standard errors (n, p) of the computation, too. They are 0 where
            it is exact; a posterior mean may be an average over draws
            (:meth:`noisyica.Model.posterior_mean`).
        out : array (n, p), optional
            Where the coefficients are written, and what is returned (as a table, after
            ``set_output``); it may be a memory map.

        Examples
        --------
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_iris
        >>> X = load_iris().data
        >>> ica = NoisyICA(2, max_iter=50, tol=0, random_state=0).fit(X)
        >>> B = ica.transform(X)
        >>> B.shape, ica.inverse_transform(B).shape
        ((150, 2), (150, 4))
        >>> print(ica.get_feature_names_out())
        ['component0' 'component1']
        """
        X, model, options = self._rows(X), self.model_, {"verbose": bool(self.verbose), "out": out}
        if isinstance(X, Blocks) and not return_std and out is None:
            method = Model.map if self.transform_algorithm == "map" else Model.posterior_mean
            quiet = functools.partial(method, model, verbose=False)
            found = X.mapped(quiet, self.components_.shape[0])
            # not all tables, which set_output may have asked for, can be made of Dask's arrays
            as_it_is = _get_output_config("transform", self)["dense"] == "default"
            return found if as_it_is else found.compute()
        with on_device(self.device):
            if self.transform_algorithm == "map":
                mode = model.map(X, **options)
                return (mode, np.zeros_like(mode)) if return_std else mode
            return model.posterior_mean(X, random_state=0, return_std=return_std, **options)

    def _rows(self, X: Any) -> Any:
        """Return X as rows to which the fitted model applies: an array, or rows held elsewhere."""
        check_is_fitted(self)
        return checked(X, self)

    def inverse_transform(self, B: Any, out: Any = None) -> np.ndarray:
        """Return the data (n, d) that coefficients B (n, p) stand for: mean + A beta per row.

        They are written to ``out``, if it is given: an array (n, d), which may be a memory map.
        """
        check_is_fitted(self)
        rows = held(B)
        if rows is None:
            rows = check_array(plain_numbers(B, "B"), dtype=np.float64, input_name="B")
        p, d = self.components_.shape
        if rows.shape[1] != p:
            raise ValueError(f"B has {rows.shape[1]} columns, but there are {p} components.")
        X = result(out, (len(rows), d))
        step = max(1, NUMBERS_AT_A_TIME // max(p, d))
        for first in range(0, len(rows), step):
            part = np.asarray(rows[first : first + step], np.float64)
            if not np.isfinite(part).all():
                raise ValueError(
                    "B has entries that are missing or infinite: leave their rows out."
                )
            X[first : first + step] = self.mean_ + part @ self.components_
        return X

    def score_samples(self, X: Any) -> Any:
        """Return log p(x) of each row, the coefficients integrated out, (n,).

        For a Dask array they are one, too, to be computed where the rows are.
        :meth:`noisyica.Model.log_likelihood` gives the error of this estimate, too.

        Examples
        --------
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_iris
        >>> X = load_iris().data
        >>> settings = {"noise": "isotropic", "mixing_prior": None, "max_iter": 50, "tol": 0}
        >>> ica = NoisyICA(2, random_state=0, **settings).fit(X)
        >>> ica.score_samples(X).shape
        (150,)
        >>> bool(ica.score(X) == ica.score_samples(X).mean())
        True
        """
        X, model, verbose = self._rows(X), self.model_, bool(self.verbose)
        if isinstance(X, Blocks):
            return X.mapped(functools.partial(Model.log_likelihood, model, verbose=False), None)
        with on_device(self.device):
            return model.log_likelihood(X, verbose=verbose)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p(x) of the rows, which ``GridSearchCV`` maximises."""
        return float(self.score_samples(X).mean())

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters: those of A, the mean, the noise and the prior."""
        check_is_fitted(self)
        mean = self.mean_.size if self._free_mean else 0
        noise = np.size(self.noise_variance_)
        noise += hasattr(self, "noise_dof_")
        return int(self.mixing_.size + mean + noise + self.prior_.n_parameters)

    def aic(self, X: Any) -> float:
        """Return Akaike's criterion on X: the lower the better.

        It is meant for maximum likelihood (``mixing_prior=None``), and assumes that the rows are
        independent and that entries, if any are, are missing at random.
        """
        return -2 * float(self.score_samples(X).sum()) + 2 * self.n_parameters_

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X: the lower the better.

        It is meant for maximum likelihood (``mixing_prior=None``), and assumes that the rows are
        independent and that entries, if any are, are missing at random.

        Examples
        --------
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_iris
        >>> X = load_iris().data
        >>> settings = {"noise": "isotropic", "mixing_prior": None, "max_iter": 50, "tol": 0}
        >>> ica = NoisyICA(2, random_state=0, **settings).fit(X)
        >>> bool(ica.bic(X) > ica.aic(X))  # each parameter costs log(150) instead of 2
        True
        """
        likelihood = self.score_samples(X)
        return -2 * float(likelihood.sum()) + np.log(len(likelihood)) * self.n_parameters_

    def describe(self) -> dict[str, str]:
        """Return in words what the fit has found of the coefficients, the noise, the components.

        Examples
        --------
        >>> import numpy as np
        >>> from noisyica import NoisyICA
        >>> rng = np.random.default_rng(0)
        >>> B = rng.normal(size=(300, 2)) * (rng.random((300, 2)) < 0.3)
        >>> X = B @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(300, 8))
        >>> ica = NoisyICA(2, max_iter=100, random_state=0, verbose=False).fit(X)
        >>> ica.describe()["noise"]
        'the same in all columns, normal'
        """
        return describe(self)

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the fitted model; return (X, beta).

        Examples
        --------
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_iris
        >>> ica = NoisyICA(2, max_iter=50, tol=0, random_state=0).fit(load_iris().data)
        >>> X, beta = ica.sample(3, random_state=0)
        >>> X.shape, ica.model_.complete_log_density(X, beta).shape
        ((3, 4), (3,))
        """
        return self.model_.sample(n_samples, random_state)

    # -------------------------------------------------------------------------------- save and load

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
        >>> bool((NoisyICA.load(path).components_ == ica.components_).all())
        True
        """
        check_is_fitted(self)
        storage.write(path, *saving.pack(self))

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read an estimator that :meth:`save` wrote."""
        arrays, description = storage.read(path)
        with storage.refusing(path):
            new: Self = saving.restored(cls, arrays, description)
        return new


def _in_units_of_x(errors: StandardErrors, unit: float) -> StandardErrors:
    """Return standard errors that were computed for x in units of ``unit``, in the units of x."""
    powers = {"components": 1, "mixing": 1, "mean": 1, "offset_scale": 1, "noise_variance": 2}
    values = {name: value * unit ** powers.get(name, 0) for name, value in errors.items()}
    return StandardErrors(values, errors.robust)


def checked_weight(sample_weight: Any, n: int) -> np.ndarray | None:
    """Return the weights of n rows as floats, or raise ValueError if they are not possible."""
    if sample_weight is None:
        return None
    weight = np.asarray(plain_numbers(sample_weight, "sample_weight"), float)
    right = weight.shape == (n,) and np.isfinite(weight).all() and (weight >= 0).all()
    if not right or (weight > 0).sum() < 2:
        raise ValueError(
            f"sample_weight must be {n} finite numbers >= 0, one for each row of X, at least two "
            f"of them not zero; got shape {weight.shape}."
        )
    return weight
