"""Genomics: components of genes from AnnData, and into it.

>>> from noisyica import omics

:func:`omics.fit(adata, 20) <fit>` writes coefficients and components into an AnnData.
:func:`transform` takes new cells, :func:`consensus` says which components are stable,
:func:`top_genes` lists their genes, and :func:`write_gmt` and :func:`write_rnk` write these for
enrichment analyses.
"""

from noisyica.omics.fitting import consensus, estimator, fit, transform
from noisyica.omics.genes import top_genes, write_gmt, write_rnk

__all__ = ["consensus", "estimator", "fit", "top_genes", "transform", "write_gmt", "write_rnk"]
