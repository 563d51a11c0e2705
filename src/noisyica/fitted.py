"""What a fitted estimator can do: all methods of :class:`noisyica.NoisyICA` apart from ``fit``."""

from __future__ import annotations

import functools
import os
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from noisyica._jax.device import on_device
from noisyica.arguments import RandomState
from noisyica.data import storage
from noisyica.data.writing import component_names
from noisyica.engine import algorithms, outcome, saving
from noisyica.engine.findings import describe
from noisyica.model import Model
from noisyica.posterior.standard_errors import StandardErrors, standard_errors
from noisyica.posterior.units import in_standard_units
from noisyica.priors import Prior
from noisyica.rows.numbers import plain_numbers

Self = TypeVar("Self", bound="Fitted")


class Fitted:
    """The base of :class:`noisyica.NoisyICA` with all methods that use what was learnt."""

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
            raise AttributeError("components_std_ is there after a fit with a mixing_prior only.")
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
            The rows that the estimator was fitted to, which it does not keep.
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
        X, weight = self._rows(X), checked_weight(sample_weight, len(X))
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
        return self.mean == "free" and not self.prior_.has_offset

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that ``transform`` gives: component0, component1, ..."""
        prefixed: Any = super()
        count = len(prefixed.get_feature_names_out(input_features))  # checks input_features, too
        return np.array(component_names(count), dtype=object)

    # ----------------------------------------------------------------------- use of what was learnt

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Return the coefficients of each row, (n, p).

        They are the posterior mean or, with ``transform_algorithm="map"``, the most probable ones:
        a function of the row and the model alone.

        Parameters
        ----------
        X : array (n, d)
        return_std : bool, default=False
            Whether to return the standard errors (n, p) of the computation, too. They are 0 where
            it is exact; a posterior mean may be an average over draws
            (:meth:`noisyica.Model.posterior_mean`).
        """
        X, model, verbose = self._rows(X), self.model_, bool(self.verbose)
        with on_device(self.device):
            if self.transform_algorithm == "map":
                mode = model.map(X, verbose=verbose)
                return (mode, np.zeros_like(mode)) if return_std else mode
            return model.posterior_mean(X, random_state=0, return_std=return_std, verbose=verbose)

    def _rows(self, X: Any) -> np.ndarray:
        """Return X as an array of rows to which the fitted model applies."""
        check_is_fitted(self)
        return validate_data(
            self,
            plain_numbers(X),
            dtype=[np.float64, np.float32],
            reset=False,
            ensure_all_finite="allow-nan",
        )

    def inverse_transform(self, B: Any) -> np.ndarray:
        """Return the data (n, d) that coefficients B (n, p) stand for: mean + A beta per row."""
        check_is_fitted(self)
        B = check_array(plain_numbers(B, "B"), dtype=np.float64, input_name="B")
        p = self.components_.shape[0]
        if B.shape[1] != p:
            raise ValueError(f"B has {B.shape[1]} columns, but there are {p} components.")
        return self.mean_ + B @ self.components_

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log p(x) of each row, the coefficients integrated out, (n,).

        :meth:`noisyica.Model.log_likelihood` gives the error of this estimate, too.
        """
        X, model, verbose = self._rows(X), self.model_, bool(self.verbose)
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
        """Draw rows from the fitted model; return (X, beta)."""
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
        >>> NoisyICA.load(path).noise_variance_ == ica.noise_variance_
        True
        """
        check_is_fitted(self)
        storage.write(path, *saving.pack(self))

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read an estimator that :meth:`save` wrote."""
        arrays, description = storage.read(path)
        with storage.refusing(path):
            settings, attributes = saving.unpack(arrays, description)
            new = cls(**settings)
            new.__dict__.update(attributes)
            _ = new.model_  # which checks the parameters
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
