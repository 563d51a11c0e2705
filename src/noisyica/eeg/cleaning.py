"""What the noisy model itself says of a recording: time courses, and data without artefacts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from noisyica.eeg import library
from noisyica.eeg.fitting import rows_of
from noisyica.eeg.removal import what_they_add


def sources(inst: Any, ica: Any) -> Any:
    """Return the posterior means of the components' time courses.

    They are as :meth:`mne.preprocessing.ICA.get_sources` has them, but for their values: those are
    ``ica.noisy_.transform`` of the samples. Where a component is probably off they are nearly zero.

    Parameters
    ----------
    inst : mne.io.Raw, mne.Epochs or mne.Evoked
    ica : mne.preprocessing.ICA
        What :func:`noisyica.eeg.fit_ica` returned.

    Returns
    -------
    sources : of the same kind as ``inst``
        One channel for each component.

    Examples
    --------
    >>> from noisyica.eeg import fit_ica, simulate, sources
    >>> raw = simulate(seconds=20, noise=1e-5, random_state=0).raw
    >>> ica = fit_ica(raw, n_components=5, random_state=0)
    >>> sources(raw, ica).get_data().shape
    (5, 2000)
    """
    _check(ica)
    found = ica.get_sources(inst)
    values = np.asarray(ica.noisy_.transform(rows_of(ica, _channels(inst, ica)))).T
    _put(found, np.arange(len(values)), values)
    return found


def clean(inst: Any, ica: Any, exclude: Iterable[int] | None = None) -> Any:
    """Return a copy of a recording without what components probably add to it.

    ``ica.apply`` takes out all that looks like an excluded component, brain and noise included.
    This takes out an estimate of the component itself. The noisy model says where the component is
    on the head, and how much of what looks like it is noise. The recording that is cleaned says
    how all else goes together between channels, which distribution the component's values have,
    and, where these are far from normal, more exactly where it is. So clean a recording as a
    whole, and cut it afterwards: of pieces of a few seconds less is known. Segments of a Raw that
    are annotated as bad are cleaned, but nothing is learnt from them.

    Parameters
    ----------
    inst : mne.io.Raw or mne.Epochs
        Averages are not taken: clean the epochs, and average them then.
    ica : mne.preprocessing.ICA
        What :func:`noisyica.eeg.fit_ica` returned.
    exclude : sequence of int, optional
        The components to take out, besides those in ``ica.exclude``.

    Returns
    -------
    cleaned : of the same kind as ``inst``

    Examples
    --------
    >>> from noisyica.eeg import clean, fit_ica, simulate
    >>> raw = simulate(seconds=20, noise=1e-5, random_state=0).raw
    >>> ica = fit_ica(raw, n_components=5, random_state=0)
    >>> blinks, scores = ica.find_bads_eog(raw, measure="correlation", threshold=0.7)
    >>> cleaned = clean(raw, ica, exclude=blinks)
    """
    _check(ica)
    if isinstance(inst, library.mne().Evoked):
        raise TypeError(
            "An average (Evoked) cannot be cleaned: how large noise and artefacts are is learnt "
            "from single samples. Clean the epochs, and average them then; or take ica.apply."
        )
    out = sorted({int(j) for j in (*ica.exclude, *([] if exclude is None else exclude))})
    cleaned = inst.copy()
    if hasattr(cleaned, "load_data"):
        cleaned.load_data()
    if not out:
        return cleaned
    if out[0] < 0 or out[-1] >= ica.n_components_:
        raise ValueError(f"exclude={out}, but there are {ica.n_components_} components, from 0.")
    data = _channels(inst, ica)
    known = _channels(inst, ica, bad=False)
    if not known.shape[1]:
        raise ValueError(
            "All segments are annotated as bad, so that nothing can be learnt from the recording."
        )
    if not np.isfinite(data).all():
        raise ValueError("The recording has values that are NaN or infinite: leave these out.")
    part = what_they_add(rows_of(ica, data), rows_of(ica, known), ica.noisy_, out).T
    if ica.noise_cov is None:
        part = ica.pre_whitener_ * part
    else:
        part = np.linalg.pinv(ica.pre_whitener_, rcond=1e-14) @ part
    _put(cleaned, ica._get_picks(inst), data - part)
    return cleaned


def _check(ica: Any) -> None:
    """Raise an error unless the ICA object has its noisy model."""
    if not hasattr(ica, "noisy_"):
        raise ValueError(
            "This ICA object has no noisy model. After mne.preprocessing.read_ica, give it back: "
            "ica.noisy_ = NoisyICA.load(path), of a file that ica.noisy_.save(path) wrote."
        )


def _channels(inst: Any, ica: Any, bad: bool = True) -> np.ndarray:
    """Return the channels that were fitted (d, n), of epochs one after the other.

    Segments of a Raw that are annotated as bad can be left out.
    """
    left_out = {} if bad or not hasattr(inst, "first_samp") else {"reject_by_annotation": "omit"}
    data: np.ndarray = inst.get_data(picks=ica._get_picks(inst), **left_out)
    return np.concatenate(list(data), axis=1) if data.ndim == 3 else data


def _put(inst: Any, picks: np.ndarray, values: np.ndarray) -> None:
    """Replace channels by values (channels, n), of epochs one after the other."""
    data = inst.data if hasattr(inst, "data") else inst._data
    if data.ndim == 3:
        data[:, picks] = np.stack(np.split(values, len(data), 1))
    else:
        data[picks] = values
