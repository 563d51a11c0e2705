"""EEG and MEG: noisy ICA for MNE-Python's users."""
