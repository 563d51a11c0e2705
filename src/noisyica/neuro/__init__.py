"""Spatial ICA of functional images, for users of MELODIC and of nilearn's CanICA.

===================  ============================================================================
``canica``           the estimator
``images``           the images of subjects, and the voxels in a mask, by nilearn
``reduction``        a subject's voxels in units of their noise, and with fewer columns
``dual_regression``  the time courses and the maps of each subject, by those of the group
===================  ============================================================================

nilearn is imported when it is needed: ``pip install 'noisyica[nilearn]'``.
"""

from noisyica.neuro.canica import NoisyCanICA
from noisyica.neuro.dual_regression import DualRegression, Spectra

__all__ = ["DualRegression", "NoisyCanICA", "Spectra"]
