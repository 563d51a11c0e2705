"""What a fitted estimator can do: all methods of :class:`noisyica.NoisyICA` apart from ``fit``."""

from __future__ import annotations

import functools
import os
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from noisyica.data import storage
from noisyica.engine import algorithms, outcome, saving
from noisyica.model import Model, RandomState
from noisyica.posterior.standard_errors import standard_errors
from noisyica.priors import Prior

Self = TypeVar("Self", bound="Fitted")


class Fitted:
    """The base of :class:`noisyica.NoisyICA` with all methods that use what was learnt."""

    algorithm: Any
    mean: str
    mixing_prior: str | None
    transform_algorithm: str
    verbose: bool
    mixing_: np.ndarray
    components_: np.ndarray
    mean_: np.ndarray
    noise_variance_: Any
    prior_: Prior
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray
    reliability_: np.ndarray
    stability_: np.ndarray
    standard_errors_: dict[str, np.ndarray]
    n_iter_: int
    converged_: bool
    convergence_time_: int
    _record: outcome.Record

    # ------------------------------------------------------------------------------ what was learnt

    @property
    def model_(self) -> Model:
        """The fitted parameters as a :class:`noisyica.Model`."""
        check_is_fitted(self)
        parts = (self.mixing_, self.mean_, self.noise_variance_, self.prior_)
        kept_parts, model = self.__dict__.get("_model", ((), None))
        if len(kept_parts) != 4 or any(a is not b for a, b in zip(kept_parts, parts, strict=True)):
            model = Model(*parts)
            self._model = (parts, model)
        return model

    @functools.cached_property
    def history_(self) -> dict[str, np.ndarray]:
        """What was recorded of each iteration, by name."""
        check_is_fitted(self)
        return outcome.history(self._record)

    def standard_errors(self, X: Any, sample_weight: Any = None) -> dict[str, np.ndarray]:
        """Return standard errors of what was learnt from X, and keep them as ``standard_errors_``.

        Parameters
        ----------
        X : array (n, d)
            The rows that the estimator was fitted to, which it does not keep.
        sample_weight : array (n,), optional
            The weights that it was fitted with.

        Returns
        -------
        errors : dict of arrays
            Standard errors of "components" (p, d), "mixing" (d, p), "mean", "noise_variance" and
            the prior's parameters, by name (:mod:`noisyica.posterior.standard_errors`).

        Examples
        --------
        >>> from noisyica import NoisyICA
        >>> from sklearn.datasets import load_iris
        >>> X = load_iris().data
        >>> ica = NoisyICA(2, max_iter=50, tol=0, random_state=0).fit(X)
        >>> ica.standard_errors(X)["components"].shape
        (2, 4)
        """
        X, weight = self._rows(X), checked_weight(sample_weight, len(X))
        if weight is not None:
            X, weight = X[weight > 0], weight[weight > 0]
        hidden = self.mixing_prior == "normal" and algorithms.get(self.algorithm).stochastic
        parameters = self.model_.parameters()
        self.standard_errors_ = standard_errors(
            parameters, X, weight, self._free_mean, hidden, verbose=bool(self.verbose)
        )
        return self.standard_errors_

    @property
    def _free_mean(self) -> bool:
        return self.mean == "free" and not self.prior_.has_offset

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    # ----------------------------------------------------------------------- use of what was learnt

    def transform(self, X: Any) -> np.ndarray:
        """Return the coefficients of each row, (n, p).

        They are the posterior mean or, with ``transform_algorithm="map"``, the most probable ones:
        a function of the row and the model alone.
        """
        X, model, verbose = self._rows(X), self.model_, bool(self.verbose)
        if self.transform_algorithm == "map":
            return model.map(X, verbose=verbose)
        return model.posterior_mean(X, random_state=0, verbose=verbose)

    def _rows(self, X: Any) -> np.ndarray:
        """Return X as an array of rows to which the fitted model applies."""
        check_is_fitted(self)
        return validate_data(
            self, X, dtype=[np.float64, np.float32], reset=False, ensure_all_finite="allow-nan"
        )

    def inverse_transform(self, B: Any) -> np.ndarray:
        """Return the data (n, d) that coefficients B (n, p) stand for: mean + A beta per row."""
        check_is_fitted(self)
        B = check_array(B, dtype=np.float64, input_name="B")
        p = self.components_.shape[0]
        if B.shape[1] != p:
            raise ValueError(f"B has {B.shape[1]} columns, but there are {p} components.")
        return self.mean_ + B @ self.components_

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log p(x) of each row, the coefficients integrated out, (n,).

        :meth:`noisyica.Model.log_likelihood` gives the error of this estimate, too.
        """
        return self.model_.log_likelihood(self._rows(X), verbose=bool(self.verbose))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p(x) of the rows, which ``GridSearchCV`` maximises."""
        return float(self.score_samples(X).mean())

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters: those of A, the mean, the noise and the prior."""
        check_is_fitted(self)
        mean = self.mean_.size if self._free_mean else 0
        noise = np.size(self.noise_variance_)
        return int(self.mixing_.size + mean + noise + self.prior_.n_parameters)

    def aic(self, X: Any) -> float:
        """Return Akaike's criterion on X: the lower the better.

        It is meant for maximum likelihood (``mixing_prior=None``).
        """
        return -2 * float(self.score_samples(X).sum()) + 2 * self.n_parameters_

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X: the lower the better.

        It is meant for maximum likelihood (``mixing_prior=None``).
        """
        likelihood = self.score_samples(X)
        return -2 * float(likelihood.sum()) + np.log(len(likelihood)) * self.n_parameters_

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
        settings, attributes = saving.unpack(path, *storage.read(path))
        new = cls(**settings)
        new.__dict__.update(attributes)
        return new


def checked_weight(sample_weight: Any, n: int) -> np.ndarray | None:
    """Return the weights of n rows as floats, or raise ValueError if they are not possible."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, float)
    right = weight.shape == (n,) and np.isfinite(weight).all() and (weight >= 0).all()
    if not right or (weight > 0).sum() < 2:
        raise ValueError(
            f"sample_weight must be {n} finite numbers >= 0, one for each row of X, at least two "
            f"of them not zero; got shape {weight.shape}."
        )
    return weight
