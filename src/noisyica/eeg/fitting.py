"""Fitting to MNE's recordings: the result is an ICA object of MNE's own."""

from __future__ import annotations

import functools
import numbers
from typing import Any

import numpy as np
from sklearn.base import clone

from noisyica import NoisyICA
from noisyica.arguments import RandomState
from noisyica.eeg import library
from noisyica.eeg.unmixing import EMPTY, axes, uncorrelated
from noisyica.laws import Law
from noisyica.priors import Prior


def fit_ica(
    inst: Any,
    n_components: int | str = "auto",
    *,
    prior: str | Prior | Law = "bg",
    estimator: NoisyICA | None = None,
    noise_cov: Any = None,
    random_state: RandomState = None,
    **options: Any,
) -> Any:
    """Fit noisy ICA to a recording, and return it as an ICA object of MNE.

    Samples in time are rows, channels are columns. MNE itself picks the channels, leaves out bad
    ones and bad segments, and warns of what its own ICA warns of. Each channel type is divided by
    its standard deviation, or the data are whitened by ``noise_cov``.

    Parameters
    ----------
    inst : mne.io.Raw or mne.Epochs
        The recording, high-pass filtered.
    n_components : int or "auto", default="auto"
        The number of components, at most the rank of the data. "auto" is as in
        :class:`noisyica.NoisyICA`.
    prior : str, Prior or Law, default="bg"
        The law of the components' time courses, as in :class:`noisyica.NoisyICA`.
    estimator : NoisyICA, optional
        An estimator with settings of your own, a copy of which is fitted; ``n_components``,
        ``prior`` and ``random_state`` are then not used.
    noise_cov : mne.Covariance, optional
        The noise covariance to whiten by. What it gets wrong of single channels is learnt still.
    random_state : int, RandomState or None, default=None
    **options
        ``picks``, ``start``, ``stop``, ``decim``, ``reject``, ``flat``, ``tstep``,
        ``reject_by_annotation`` and ``verbose`` of :meth:`mne.preprocessing.ICA.fit`.

    Returns
    -------
    ica : mne.preprocessing.ICA
        With the linear unmixing whose uncorrelated sources are closest to the coefficients. Its
        attribute ``noisy_`` is the fitted :class:`noisyica.NoisyICA`, with the same components in
        the same order; :func:`noisyica.eeg.clean` and :func:`noisyica.eeg.sources` use it.

    Examples
    --------
    >>> from noisyica.eeg import fit_ica, simulate
    >>> raw = simulate(seconds=20, noise=1e-5, random_state=0).raw
    >>> ica = fit_ica(raw, n_components=5, random_state=0)
    >>> ica.exclude, scores = ica.find_bads_eog(raw, measure="correlation", threshold=0.7)
    >>> cleaned = ica.apply(raw.copy())
    >>> ica.noisy_.components_.shape
    (5, 32)
    """
    mne = library.mne()
    if estimator is None:
        # neighbouring samples are alike: halves of them would not say how reliable components are
        settings: Any = {"n_init": 1, "random_state": random_state, "verbose": False}
        estimator = NoisyICA(n_components, prior=prior, **settings)
    estimator = clone(estimator)  # each ICA object has a model of its own
    asked = estimator.n_components
    if asked != "auto" and (isinstance(asked, bool) or not isinstance(asked, numbers.Integral)):
        raise ValueError(
            f"n_components must be 'auto' or an integer; got {asked!r}. Take 'auto' for MNE's None "
            "or share of the variance."
        )
    ica = mne.preprocessing.ICA(None if asked == "auto" else asked, noise_cov=noise_cov)
    ica.noisy_, ica.method, ica.fit_params = estimator, "noisyica", {}
    ica._fit = functools.partial(_learn, ica)  # which MNE's fit calls with the data that it picked
    try:
        ica.fit(inst, **options)
    finally:
        del ica._fit
    _unmix(ica)  # MNE has sorted its components in another way
    ica.fit = _refuse
    return ica


def _refuse(*_: Any, **__: Any) -> None:
    """Say what to do instead of fitting an ICA object of :func:`fit_ica` again."""
    raise RuntimeError(
        "This ICA object was fitted by noisyica, and cannot be fitted again. Call "
        "noisyica.eeg.fit_ica for a new one, or mne.preprocessing.ICA(...).fit for one of MNE's "
        "own algorithms."
    )


def rows_of(ica: Any, data: np.ndarray) -> np.ndarray:
    """Return channels (d, n) as the rows (n, d) that ``ica.noisy_`` knows."""
    whitened: np.ndarray = ica._pre_whiten(np.array(data, float))
    return whitened.T


def _learn(ica: Any, data: np.ndarray, fit_type: str) -> None:
    """Fit ``ica.noisy_`` to channels (d, n), in place of MNE's own algorithms."""
    if not np.isfinite(data).all():
        raise ValueError(
            "The data have values that are NaN or infinite: leave those out, for example by "
            "annotations whose names begin with 'bad'."
        )
    ica._compute_pre_whitener(data)
    rows = ica._pre_whiten(data).T
    noisy = ica.noisy_
    variance, directions = np.linalg.eigh(np.cov(rows.T))
    empty = variance < EMPTY * variance[-1]
    rank, asked = int((~empty).sum()), noisy.n_components
    if asked != "auto" and asked > rank:
        raise ValueError(
            f"n_components={asked}, but the data have rank {rank} (a reference, projectors and "
            f"interpolated channels lower it): take at most {rank}."
        )
    nothing = directions[:, empty]
    if empty.any():
        left = variance[~empty][: max(1, rank - asked) if asked != "auto" else 1]
        rows = rows + _filling(nothing, left.mean(), len(rows))
    noisy.fit(rows)
    if empty.any():  # no components where there are no data
        noisy.mixing_ = noisy.mixing_ - nothing @ (nothing.T @ noisy.mixing_)
        noisy.mean_ = noisy.mean_ - nothing @ (nothing.T @ noisy.mean_)
        noisy.components_ = noisy.mixing_.T
    covariance = (directions * variance) @ directions.T
    ica.pca_components_, ica.pca_explained_variance_ = axes(noisy.mixing_, covariance)
    ica.pca_mean_ = np.array(noisy.mean_)
    ica.n_components_, ica.n_iter_ = noisy.mixing_.shape[1], noisy.n_iter_
    ica._update_ica_names()
    _unmix(ica)
    ica.current_fit = fit_type


def _filling(directions: np.ndarray, variance: float, n: int) -> np.ndarray:
    """Return rows of noise in directions in which there are no data.

    With it the noise of the columns is a model of data of less than full rank: for example, with an
    average reference the noise of channels is independent but for the lost average.
    """
    drawn = np.random.default_rng(0).normal(size=(n, directions.shape[1]))
    return np.sqrt(variance) * drawn @ directions.T


def _unmix(ica: Any) -> None:
    """Give ``ica`` the linear unmixing of ``ica.noisy_``."""
    noisy, p = ica.noisy_, ica.n_components_
    A = ica.pca_components_[:p] @ noisy.mixing_
    size = np.square(noisy.mixing_).sum(0)
    variance = np.divide(noisy.explained_variance_, size, where=size > 0, out=np.zeros(p))
    ica.unmixing_matrix_ = uncorrelated(A, ica.pca_explained_variance_[:p], variance)
    ica._update_mixing_matrix()
