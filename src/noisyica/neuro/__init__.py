"""Functional MRI: spatial noisy ICA of volumes, for nilearn's and MELODIC's users."""
