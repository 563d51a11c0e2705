"""EEG and MEG: noisy ICA for MNE-Python's users."""

from noisyica.eeg.cleaning import clean, sources
from noisyica.eeg.fitting import fit_ica
from noisyica.eeg.simulation import Simulated, simulate

__all__ = ["Simulated", "clean", "fit_ica", "simulate", "sources"]
