"""Spatial ICA of one or several subjects, with noise in the model: :class:`NoisyCanICA`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from noisyica.arguments import RandomState, check_counts, seed_of
from noisyica.estimator import NoisyICA
from noisyica.laws import Law
from noisyica.neuro import dual_regression as regression
from noisyica.neuro import images as of_images
from noisyica.neuro.dual_regression import DualRegression, Spectra
from noisyica.neuro.reduction import columns_of_each, in_units_of_noise, reduced
from noisyica.priors import Prior

DRAWS, CHAINS, VOXELS = 100, 4, 4096
"""Posterior draws of each of so many chains, and the number of voxels for which they are held."""


class NoisyCanICA(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Spatial ICA of functional images, of one subject or of a group, with noise in the model.

    Voxels are the rows and time points the columns: in each voxel, ``x = mean + A beta + noise``.
    The coefficients ``beta`` of all voxels are the maps, which are independent and sparse; the
    columns of A are their time courses. The images of several subjects are put together along
    time: the maps are common to all, the time courses are each subject's own.

    Parameters
    ----------
    n_components : int or "auto", default=20
        The number of maps. "auto": as many as :class:`noisyica.NoisyICA` finds the data to support.
    mask : image, path or masker, optional
        The voxels that are used: an image that is not 0 there, or a masker of nilearn (NiftiMasker
        or MultiNiftiMasker, fitted or not), which keeps its own settings, and of which a copy is
        used. By default, nilearn's strategy "epi" finds the brain.
    prior : str, Prior or Law, default="bg"
        The law of the maps' values. Under priors with zeros ("bg", "ebg", "et", "te", "adaptive")
        there is a probability that a voxel is on.
    standardize : {"noise", "zscore_sample", "psc", None}, default="noise"
        "noise": each voxel is divided by the standard deviation of its noise, which is what
        principal components leave of it. The others are nilearn's: time courses of variance one,
        in percent of their mean, or as they are.
    smoothing_fwhm : float, optional
        The width in millimetres of the smoothing of images. Here it is none unless you say so.
        It makes the noise of neighbours alike, and what is said of single voxels too sure.
    detrend : bool, default=True
    low_pass, high_pass, t_r : float, optional
        A filter in time (hertz), and the seconds from one volume to the next, as nilearn has them.
        They, ``standardize``, ``smoothing_fwhm`` and ``detrend`` are the settings of the masker
        that is made; but for "noise", they are not looked at where ``mask`` is a masker.
    n_reduced : int or "auto", default="auto"
        The number of principal components to which each subject is reduced first. "auto": as many
        as there are, unless all subjects together have more than 500 time points; else their share
        of 500, but at least twice the number of maps. Reduction saves time and memory, and costs
        precision where noise is strong.
    ica_settings : dict, optional
        Other settings of :class:`noisyica.NoisyICA`, such as ``{"max_iter": 2000}``. The noise is
        "isotropic" unless they say otherwise: voxels in units of their noise have no other.
    random_state : int, RandomState or None, default=None
        The random seed; it decides the result.
    verbose : bool, default=True
        Whether to show progress on a terminal.

    Attributes
    ----------
    components_ : array (p, n_voxels)
        The maps: posterior means of the coefficients. They are in units of the prior: under "bg",
        values that are not zero vary by about one. The larger side of each map is positive.
    components_img_ : image
        The same as an image of four axes.
    probability_on_, probability_on_img_ : array (p, n_voxels), image
        For priors with zeros, the posterior probability that a voxel is on (not zero), by draws:
        its standard error is 0.025 or less where these are independent.
    time_courses_ : list of arrays (time points, p)
        The time courses of each subject, in units of the noise.
    ica_ : NoisyICA
        The fitted model: its law, its noise, the explained variance and ``reliability_`` of its
        components, which are in the same order.
    masker_, mask_img_ : masker, image
        What made voxels of images, and the mask.

    See Also
    --------
    noisyica.NoisyICA : The estimator of any rows.

    Examples
    --------
    >>> import nibabel, numpy as np
    >>> from noisyica.neuro import NoisyCanICA
    >>> rng = np.random.default_rng(0)
    >>> maps = rng.normal(size=(8, 8, 8, 2)) * (rng.random((8, 8, 8, 2)) < 0.2)
    >>> values = 100 + maps @ rng.normal(size=(2, 40)) + rng.normal(size=(8, 8, 8, 40))
    >>> image = nibabel.Nifti1Image(values.astype("float32"), np.eye(4))
    >>> everywhere = nibabel.Nifti1Image(np.ones((8, 8, 8), "uint8"), np.eye(4))
    >>> ica = NoisyCanICA(2, mask=everywhere, random_state=0)
    >>> ica = ica.fit(image)
    >>> ica.components_img_.shape, ica.time_courses_[0].shape
    ((8, 8, 8, 2), (40, 2))
    """

    def __init__(
        self,
        n_components: int | str = 20,
        *,
        mask: Any = None,
        prior: str | Prior | Law = "bg",
        standardize: str | None = "noise",
        smoothing_fwhm: float | None = None,
        detrend: bool = True,
        low_pass: float | None = None,
        high_pass: float | None = None,
        t_r: float | None = None,
        n_reduced: int | str = "auto",
        ica_settings: dict[str, Any] | None = None,
        random_state: RandomState = None,
        verbose: bool = True,
    ) -> None:
        self.n_components = n_components
        self.mask = mask
        self.prior = prior
        self.standardize = standardize
        self.smoothing_fwhm = smoothing_fwhm
        self.detrend = detrend
        self.low_pass, self.high_pass, self.t_r = low_pass, high_pass, t_r
        self.n_reduced = n_reduced
        self.ica_settings = ica_settings
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, imgs: Any, y: Any = None, confounds: Any = None) -> NoisyCanICA:
        """Learn the maps.

        Parameters
        ----------
        imgs : image, path or list of them
            The series of volumes of one subject, or of each: images of four axes on one grid.
        y : ignored
        confounds : list, optional
            What nilearn is to regress out of each subject's time courses: an array, a table or a
            path for each image.

        Returns
        -------
        self
        """
        self._check()
        images = of_images.opened(imgs)
        seed = seed_of(self.random_state)
        masker = of_images.fitted_masker(self.mask, images, self._of_masker())
        times = [image.shape[3] for image in images]
        k = columns_of_each(self.n_reduced, self.n_components, times)
        parts = [reduced(Y, k) for Y in self._voxels(masker, images, confounds)]
        X = np.concatenate([part.columns for part in parts], axis=1)
        settings = {"noise": "isotropic"} | (self.ica_settings or {})
        ica = NoisyICA(
            self.n_components,
            prior=self.prior,
            random_state=seed,
            verbose=self.verbose,
            **settings,
        ).fit(X)
        self.components_ = _facing_up(ica, np.asarray(ica.transform(X)).T)
        self.ica_, self.masker_, self.mask_img_ = ica, masker, masker.mask_img_
        ends = np.cumsum([part.columns.shape[1] for part in parts])
        blocks = np.split(ica.mixing_, ends[:-1])
        self.time_courses_ = [part.basis @ block for part, block in zip(parts, blocks, strict=True)]
        self.components_img_ = masker.inverse_transform(self.components_)
        self.__dict__.pop("probability_on_", None)
        if (ica.sample(1000, random_state=0)[1] == 0).any():
            self.probability_on_ = _probability_on(ica, X, seed)
        return self

    def fit_transform(self, X: Any, y: Any = None, confounds: Any = None) -> list[np.ndarray]:
        """Learn the maps, and return the time courses of the same images.

        The arguments are those of :meth:`fit`; the time courses are those of :meth:`transform`.
        """
        return self.fit(X, confounds=confounds).transform(X, confounds=confounds)

    def _check(self) -> None:
        """Raise an error where settings cannot be, before images are read."""
        for name in ("n_components", "n_reduced"):
            if getattr(self, name) != "auto":
                check_counts(**{name: (getattr(self, name), 1)})
        if self.standardize not in ("noise", "zscore_sample", "psc", None):
            raise ValueError(
                "standardize must be 'noise', 'zscore_sample', 'psc' or None; got "
                f"{self.standardize!r}."
            )
        twice = {"n_components", "prior", "random_state", "verbose"} & set(self.ica_settings or {})
        if twice:
            raise ValueError(
                f"ica_settings has {', '.join(sorted(twice))}: give them to NoisyCanICA itself."
            )

    def _of_masker(self) -> dict[str, Any]:
        """Return the settings of the masker that is made."""
        names = ("smoothing_fwhm", "detrend", "low_pass", "high_pass", "t_r")
        standardize = None if self.standardize == "noise" else self.standardize
        return {name: getattr(self, name) for name in names} | {"standardize": standardize}

    def _voxels(self, masker: Any, images: list[Any], confounds: Any) -> Iterator[np.ndarray]:
        """Yield the voxels of each image over their noise, (time points, voxels)."""
        each = self.standardize == "noise"
        for number, Y in enumerate(of_images.masked(masker, images, confounds)):
            yield in_units_of_noise(Y, self.n_components, each, f"Image {number}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ica_")

    # ----------------------------------------------------------------------- use of what was learnt

    @property
    def probability_on_img_(self) -> Any:
        """The probability that each voxel of each map is on, as an image of four axes."""
        return self.masker_.inverse_transform(self._probability())

    def thresholded_img(self, probability: float = 0.5) -> Any:
        """Return the maps as an image, with 0 where voxels are on with less than a probability.

        Parameters
        ----------
        probability : float, default=0.5
        """
        if not 0 <= probability <= 1:
            raise ValueError(f"probability must be between 0 and 1; got {probability!r}.")
        kept = np.where(self._probability() >= probability, self.components_, 0.0)
        return self.masker_.inverse_transform(kept)

    def _probability(self) -> np.ndarray:
        check_is_fitted(self)
        if not hasattr(self, "probability_on_"):
            raise AttributeError(
                f"Under the prior {self.ica_.prior_!r} no voxel is ever exactly zero: take one "
                "with zeros, such as 'bg', for probabilities that voxels are on."
            )
        return self.probability_on_

    def transform(self, imgs: Any, confounds: Any = None) -> list[np.ndarray]:
        """Return the time courses of subjects, new ones or not: a list of (time points, p).

        Each volume is regressed on the maps, which is the first stage of dual regression.

        Parameters
        ----------
        imgs, confounds
            As those of :meth:`fit`; there may be more volumes or fewer, down to two more than maps.
        """
        check_is_fitted(self)
        images = of_images.opened(imgs)
        return [
            regression.time_courses(Y, self.components_)
            for Y in self._voxels(self.masker_, images, confounds)
        ]

    def dual_regression(self, imgs: Any, confounds: Any = None) -> list[DualRegression]:
        """Return time courses and maps of each subject, by regression on the maps of the group.

        Parameters
        ----------
        imgs, confounds
            As those of :meth:`fit`; there may be more volumes or fewer, down to two more than maps.
        """
        check_is_fitted(self)
        found = []
        for Y in self._voxels(self.masker_, of_images.opened(imgs), confounds):
            courses = regression.time_courses(Y, self.components_)
            maps = regression.maps_of_subject(Y, courses)
            found.append(DualRegression(courses, maps, self.masker_.inverse_transform(maps)))
        return found

    def spectra(self, t_r: float | None = None) -> Spectra:
        """Return the spectra of all time courses, by Welch's method.

        Parameters
        ----------
        t_r : float, optional
            The seconds from one volume to the next; that of the settings by default.
        """
        check_is_fitted(self)
        t_r = self.t_r if t_r is None else t_r
        if t_r is None or not t_r > 0:
            raise ValueError("Give t_r, the seconds from one volume to the next.")
        return regression.spectra(self.time_courses_, t_r)


def _facing_up(ica: NoisyICA, maps: np.ndarray) -> np.ndarray:
    """Return the maps with their larger side positive; components of ``ica`` turn with them.

    That is another way to write the same model, unless the prior or the law of A tells signs apart.
    """
    if ica.prior_.symmetric and ica.mixing_.min() < 0:
        signs = np.where(maps.max(1) < -maps.min(1), -1.0, 1.0)
        ica.mixing_ = ica.mixing_ * signs
        ica.components_ = ica.mixing_.T
        maps = maps * signs[:, None]
    return maps


def _probability_on(ica: NoisyICA, X: np.ndarray, seed: int) -> np.ndarray:
    """Return the probability that each coefficient is not zero, (p, n), by draws."""
    options: dict[str, Any] = {"n_draws": DRAWS, "n_chains": CHAINS, "verbose": False}
    firsts = range(0, len(X), VOXELS)
    seeds = map(int, np.random.SeedSequence(seed).generate_state(len(firsts)))
    model = ica.model_
    return np.concatenate(
        [
            model.posterior(X[first : first + VOXELS], random_state=own, **options).probability_on()
            for first, own in zip(firsts, seeds, strict=True)
        ]
    ).T
