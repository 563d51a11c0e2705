"""Simulated EEG whose artefacts are known: to try a method on, and to measure what it leaves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from noisyica.arguments import RandomState, seed_of
from noisyica.eeg import library

CHANNELS = (
    "Fp1 Fp2 F7 F3 Fz F4 F8 FC5 FC1 FC2 FC6 T7 C3 Cz C4 T8 "
    "CP5 CP1 CP2 CP6 P7 P3 Pz P4 P8 PO9 O1 Oz O2 PO10 AF7 AF8"
)
"""The 32 channels of a simulated recording, of MNE's montage "easycap-M1"."""

RATE = 100.0
"""Samples per second."""

EYES = ((0.030, 0.065, -0.030), (-0.030, 0.065, -0.030))
"""Where the dipoles of a blink are, in metres; they point upwards and forwards."""

NECK = (0.0, -0.010, -0.070)
"""Where the dipole of the heartbeat is, at the edge of the head; it points to the left."""


class Simulated(NamedTuple):
    """A simulated recording, and what it consists of.

    ``raw`` is an :class:`mne.io.Raw` with 32 EEG channels, one of EOG and one of ECG. ``blink`` and
    ``heartbeat`` (32, n) are what they add to the EEG channels, in volts, as filtered as ``raw``.
    """

    raw: Any
    blink: np.ndarray
    heartbeat: np.ndarray

    @property
    def clean(self) -> np.ndarray:
        """The EEG channels (32, n) without blinks and heartbeat: brain and sensor noise, volts."""
        return self.raw.get_data("eeg") - self.blink - self.heartbeat


def simulate(
    seconds: float = 60.0,
    noise: float = 2e-6,
    average_reference: bool = False,
    random_state: RandomState = None,
) -> Simulated:
    """Simulate EEG with blinks and a heartbeat in a spherical head.

    Sixty dipoles of the brain have coloured noise, some of them the alpha rhythm. Two dipoles at
    the eyes blink at irregular times, and one at the neck beats. All is high-pass filtered at 1 Hz.

    Parameters
    ----------
    seconds : float, default=60
    noise : float, default=2e-6
        The median standard deviation of the sensors' noise, in volts; it differs between channels.
    average_reference : bool, default=False
        Whether the reference is the average of all channels, so that one dimension is lost.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    simulated : Simulated
        The recording ``raw``, and the parts ``blink``, ``heartbeat`` and ``clean``.

    Examples
    --------
    >>> from noisyica.eeg import simulate
    >>> simulated = simulate(seconds=10, random_state=0)
    >>> simulated.raw.info["nchan"], simulated.blink.shape
    (34, (32, 1000))
    """
    mne = library.mne()
    rng = np.random.default_rng(seed_of(random_state))
    n = round(seconds * RATE)
    info = mne.create_info([*CHANNELS.split(), "EOG", "ECG"], RATE, [*["eeg"] * 32, "eog", "ecg"])
    info.set_montage("easycap-M1")
    blinks, beats = _train(_blink(), _times(rng, n, 1.5, 4.0), n, rng), _heart(rng, n)
    brain = 9e-6 * _unit_columns(_leadfield(mne, info, *_dipoles(rng, 60))) @ _brain(rng, 60, n)
    eyes = _leadfield(mne, info, np.array(EYES), np.array([[0.0, 0.6, 0.8]] * 2)).sum(1)
    neck = _leadfield(mne, info, np.array([NECK]), np.array([[-0.7, 0.3, 0.65]]))[:, 0]
    parts = np.zeros((4, 34, n))
    parts[0, :32] = brain / np.sqrt(60)
    parts[1, :32] = 150e-6 * np.outer(eyes / np.abs(eyes).max(), blinks)
    parts[2, :32] = 40e-6 * np.outer(neck / np.abs(neck).max(), beats)
    parts[3, :32] = noise * np.exp(0.4 * rng.normal(size=(32, 1))) * rng.normal(size=(32, n))
    parts[1, 32], parts[2, 33] = 200e-6 * blinks, 1e-3 * beats
    parts[3, 32:] = [[1e-5], [2e-5]] * rng.normal(size=(2, n))
    if average_reference:
        parts[:, :32] -= parts[:, :32].mean(1, keepdims=True)
    parts = mne.filter.filter_data(parts, RATE, 1.0, None, verbose="error")
    with info._unlock():
        info["highpass"] = 1.0
    raw = mne.io.RawArray(parts.sum(0), info, verbose="error")
    return Simulated(raw, parts[1, :32], parts[2, :32])


def _dipoles(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places in the upper part of the brain, and directions, evenly at random."""
    place, direction = rng.normal(size=(2, count, 3))
    place[:, 2] = np.abs(place[:, 2]) - 0.2
    place *= 0.075 * rng.uniform(0.5, 1, (count, 1)) / np.linalg.norm(place, axis=1, keepdims=True)
    return place, direction / np.linalg.norm(direction, axis=1, keepdims=True)


def _leadfield(mne: Any, info: Any, places: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return what dipoles in a spherical head do to the EEG channels, (32, dipoles)."""
    sphere = mne.make_sphere_model((0.0, 0.0, 0.0), 0.095, verbose="error")
    pos = {"rr": places, "nn": directions}
    source = mne.setup_volume_source_space(pos=pos, sphere_units="m", verbose="error")
    eeg = mne.pick_info(info, mne.pick_types(info, eeg=True))
    forward = mne.make_forward_solution(eeg, None, source, sphere, meg=False, verbose="error")
    free = forward["sol"]["data"].reshape(32, len(places), 3)
    return np.einsum("cjk,jk->cj", free, directions)


def _unit_columns(A: np.ndarray) -> np.ndarray:
    """Return the matrix with columns of root mean square one."""
    return A / np.sqrt(np.square(A).mean(0))


def _brain(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """Return coloured noise (count, n); every fifth waxes and wanes at 10 Hz."""
    wave = lfilter([1.0], [1.0, -0.9], rng.normal(size=(count, n)))
    t = np.arange(n) / RATE
    for row in wave[::5]:
        slow = lfilter([0.02], [1.0, -0.98], rng.normal(size=n))
        row += 60 * np.maximum(slow, 0) * np.sin(2 * np.pi * (10 * t + rng.random()))
    return wave / wave.std(1, keepdims=True)


def _times(rng: np.random.Generator, n: int, least: float, most: float) -> np.ndarray:
    """Return sample numbers, between which random times (in seconds) go by."""
    gaps = rng.uniform(least, most, size=int(n / RATE / least) + 1)
    times = (np.cumsum(gaps) * RATE).astype(int)
    return times[times < n]


def _train(shape: np.ndarray, times: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a shape (its largest value is 1) at many times, a little unequal in size."""
    train = np.zeros(n + len(shape))
    for time in times:
        train[time : time + len(shape)] += rng.uniform(0.7, 1.0) * shape
    return train[:n]


def _blink() -> np.ndarray:
    """Return one blink of 0.3 seconds."""
    return np.hanning(int(0.3 * RATE))


def _heart(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a heartbeat: Q, R and S, and the T wave, about 70 times a minute."""
    t = np.arange(int(0.6 * RATE)) / RATE
    waves = ((-0.15, 0.07, 0.012), (1.0, 0.10, 0.014), (-0.25, 0.135, 0.012), (0.25, 0.35, 0.05))
    beat = sum(size * np.exp(-0.5 * np.square((t - at) / width)) for size, at, width in waves)
    return _train(np.asarray(beat), _times(rng, n, 0.8, 0.9), n, rng)
