"""Fits of cells by genes: from an AnnData and into it, in the manner of scanpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisyica.analysis.consensus import Consensus
from noisyica.analysis.consensus import consensus as consensus_of_rows
from noisyica.arguments import RandomState
from noisyica.estimator import NoisyICA
from noisyica.omics import covariates as regression
from noisyica.omics.annotated import Kept, check, keep, kept_in, matrix


def fit(
    adata: Any,
    n_components: int | str = "auto",
    *,
    layer: str | None = None,
    covariates: str | Sequence[str] = (),
    batch_key: str | None = None,
    key_added: str = "noisyica",
    copy: bool = False,
    **settings: Any,
) -> Any:
    """Learn components of genes from an AnnData, and write what was learnt into it.

    Cells are rows, and a component is a programme of genes. All genes of ``adata`` are learnt
    from: choose them before, as in ``adata[:, adata.var["highly_variable"]].copy()``.

    Parameters
    ----------
    adata : AnnData
        Its X, or one of its layers, is dense or sparse, in memory or in a file. Sparse rows are
        made dense block by block.
    n_components : int or "auto", default="auto"
        The number of components (:class:`noisyica.NoisyICA`).
    layer : str, optional
        The layer to learn from instead of X.
    covariates : str or sequence of str, optional
        Columns of ``obs`` whose effects are regressed out of each gene before components are
        learnt: numbers as they are, anything else by its levels. Genes keep their means. The
        effects are kept, so that :func:`transform` takes them from new cells, too.
    batch_key : str, optional
        One more covariate, by its levels even if these are numbers.
    key_added : str, default="noisyica"
        The name under which results are written.
    copy : bool, default=False
        Whether to return a copy with the results, and leave ``adata`` as it is.
    **settings
        All other settings of :class:`noisyica.NoisyICA`, such as ``prior``, ``mixing_prior``,
        ``mean``, ``noise`` and ``random_state``.

    Returns
    -------
    adata : AnnData or None
        The copy, if one was asked for. These are written:

        ``obsm["X_noisyica"]`` (cells, p)
            The posterior means of the coefficients.
        ``varm["noisyica_components"]`` (genes, p)
            The components. ``varm["noisyica_std"]`` has their posterior standard deviations, and
            ``varm["noisyica_probability"]`` the probability that an entry is not zero, where
            ``mixing_prior`` lets it be zero.
        ``uns["noisyica"]``
            ``genes``, ``noise_variance``, ``prior``, ``explained_variance``,
            ``explained_variance_ratio``, ``reliability`` (where the fit has it), the covariates,
            and the whole estimator in ``arrays`` and ``description`` (:func:`estimator`).

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from noisyica import Model, omics
    >>> model = Model(np.eye(12)[:, :2], noise_variance=0.1, prior="bg")
    >>> X, _ = model.sample(200, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> omics.fit(adata, 2, noise="isotropic", max_iter=99, random_state=0)
    >>> adata.obsm["X_noisyica"].shape, adata.varm["noisyica_components"].shape
    ((200, 2), (12, 2))
    """
    adata = check(adata).copy() if copy else check(adata)
    X = matrix(adata, layer)
    names = [covariates] if isinstance(covariates, str) else list(covariates)
    batch = [] if batch_key is None else [batch_key]
    names = list(dict.fromkeys([*names, *batch]))
    learnt = regression.learn(X, adata.obs, names, batch) if names else None
    rows = X if learnt is None else learnt.removed_from(X, adata.obs)
    ica = NoisyICA(n_components, **settings).fit(rows)
    keep(adata, key_added, Kept(ica, np.asarray(adata.var_names, object), layer, learnt))
    adata.obsm[f"X_{key_added}"] = np.asarray(ica.transform(rows))
    return adata if copy else None


def transform(adata: Any, fitted: Any, *, key: str = "noisyica", copy: bool = False) -> Any:
    """Write the coefficients of the cells of an AnnData by the fit of another one into it.

    The genes of the fit are found by their names, in any order; others are left out. The layer of
    the fit is taken, and the effects of its covariates are subtracted, which ``obs`` has to have.

    Parameters
    ----------
    adata : AnnData
        New cells. ``obsm["X_noisyica"]`` gets the posterior means of their coefficients.
    fitted : AnnData
        What :func:`fit` was given.
    key : str, default="noisyica"
        The name under which the fit was written, and the coefficients are.
    copy : bool, default=False
        Whether to return a copy with the coefficients, and leave ``adata`` as it is.

    Returns
    -------
    adata : AnnData or None
        The copy, if one was asked for.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from noisyica import Model, omics
    >>> model = Model(np.eye(12)[:, :2], noise_variance=0.1, prior="bg")
    >>> X, _ = model.sample(200, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> omics.fit(adata, 2, noise="isotropic", max_iter=99, random_state=0)
    >>> new = anndata.AnnData(X[:50])
    >>> omics.transform(new, adata)
    >>> new.obsm["X_noisyica"].shape
    (50, 2)
    """
    kept = kept_in(check(fitted), key)
    adata = check(adata).copy() if copy else check(adata)
    adata.obsm[f"X_{key}"] = np.asarray(kept.estimator.transform(kept.rows(adata)))
    return adata if copy else None


def estimator(adata: Any, key: str = "noisyica") -> NoisyICA:
    """Return the fitted estimator that :func:`fit` left in an AnnData.

    Its columns are the genes ``adata.uns[key]["genes"]``, from which the effects of covariates, if
    there are any, have been taken: :func:`transform` does so.

    Parameters
    ----------
    adata : AnnData
    key : str, default="noisyica"
        The name under which the fit was written.

    Returns
    -------
    NoisyICA

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from noisyica import Model, omics
    >>> model = Model(np.eye(12)[:, :2], noise_variance=0.1, prior="bg")
    >>> X, _ = model.sample(200, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> omics.fit(adata, 2, noise="isotropic", max_iter=99, random_state=0)
    >>> ica = omics.estimator(adata)
    >>> ica.components_.shape
    (2, 12)
    """
    return kept_in(check(adata), key).estimator


def consensus(
    adata: Any,
    n_bootstraps: int = 20,
    *,
    key: str = "noisyica",
    groups: str | None = None,
    random_state: RandomState = None,
) -> Consensus:
    """Say which components of a fit other samples of the cells would show.

    It is :func:`noisyica.consensus` of the cells and the settings of the fit. The effects of
    covariates are taken from the cells as the fit learnt them, not anew in each bootstrap.

    Parameters
    ----------
    adata : AnnData
        What :func:`fit` was given.
    n_bootstraps : int, default=20
    key : str, default="noisyica"
        The name under which the fit was written.
    groups : str, optional
        A column of ``obs``, such as the donor: its cells are drawn together.
    random_state : int, RandomState or None

    Returns
    -------
    Consensus
        In ``adata``, ``varm["noisyica_consensus_components"]`` and
        ``varm["noisyica_consensus_std"]`` are written, and ``uns["noisyica_consensus"]`` with
        ``stability`` and ``quality``; ``top_genes(adata, key="noisyica_consensus")`` shows them.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from noisyica import Model, omics
    >>> model = Model(np.eye(12)[:, :2], noise_variance=0.1, prior="bg")
    >>> X, _ = model.sample(200, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> omics.fit(adata, 2, noise="isotropic", max_iter=99, random_state=0)
    >>> found = omics.consensus(adata, 3, random_state=0)
    >>> found.stability.shape
    (2,)
    """
    kept = kept_in(check(adata), key)
    labels = None
    if groups is not None:
        labels = np.asarray(list(map(str, regression.column(adata.obs, groups))), object)
    found = consensus_of_rows(
        kept.rows(adata),
        kept.estimator,
        n_bootstraps=n_bootstraps,
        groups=labels,
        random_state=random_state,
        verbose=bool(kept.estimator.verbose),
    )
    place = adata.var_names.get_indexer(kept.genes)
    for name, values in (("components", found.components), ("std", found.components_std)):
        of_genes = np.full((adata.n_vars, len(values)), np.nan)
        of_genes[place] = values.T
        adata.varm[f"{key}_consensus_{name}"] = of_genes
    adata.uns[f"{key}_consensus"] = {"stability": found.stability, "quality": found.quality}
    return found
