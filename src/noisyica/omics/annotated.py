"""What of an AnnData is learnt from, and what of a fit is kept in it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from noisyica.data.files import listed
from noisyica.engine import saving
from noisyica.estimator import NoisyICA
from noisyica.omics import covariates
from noisyica.omics.covariates import Covariates, sliceable


class Kept(NamedTuple):
    """What :func:`noisyica.omics.fit` keeps in ``uns``."""

    estimator: NoisyICA
    genes: np.ndarray
    layer: str | None
    covariates: Covariates | None

    def rows(self, adata: Any) -> Any:
        """Return the rows of an AnnData as those of the fit were: its genes, without covariates."""
        adata = with_genes(adata, self.genes)
        rows = matrix(adata, self.layer)
        return rows if self.covariates is None else self.covariates.removed_from(rows, adata.obs)


def check(adata: Any) -> Any:
    """Return an AnnData whose genes have names of their own, or raise an error."""
    if not (hasattr(adata, "obsm") and hasattr(adata, "varm") and hasattr(adata, "uns")):
        raise TypeError(
            f"adata must be an AnnData; got {type(adata).__name__}. For an array there is "
            "noisyica.NoisyICA."
        )
    if not adata.var_names.is_unique:
        twice = adata.var_names[adata.var_names.duplicated()]
        raise ValueError(
            f"Genes have the same name ({listed(twice)}): call adata.var_names_make_unique()."
        )
    return adata


def matrix(adata: Any, layer: str | None) -> Any:
    """Return X of an AnnData, or one of its layers, as an array or as rows held elsewhere."""
    if layer is not None and layer not in adata.layers:
        raise KeyError(f"adata has no layer {layer!r}: it has {listed(adata.layers) or 'none'}.")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError("adata has no X: say with layer=... which of its layers to take.")
    return sliceable(X)


def with_genes(adata: Any, genes: np.ndarray) -> Any:
    """Return an AnnData with these genes in this order, or raise an error that names missing ones.

    It is a view of the other if genes have to be left out or reordered.
    """
    if np.array_equal(check(adata).var_names, genes):
        return adata
    missing = [gene for gene in genes if gene not in adata.var_names]
    if missing:
        raise ValueError(
            f"{len(missing)} of the {len(genes)} genes of the fit are not in adata: "
            f"{listed(missing)}."
        )
    return adata[:, genes]


def keep(adata: Any, key: str, kept: Kept) -> None:
    """Write what a fit has learnt into an AnnData, in types that its files can hold."""
    ica = kept.estimator
    arrays, description = saving.pack(ica)
    of_varm = {"components": ica.components_.T}
    for name in ("std", "probability"):
        if f"components_{name}_" in arrays:
            of_varm[name] = arrays[f"components_{name}_"].T
    summary: dict[str, Any] = {
        "genes": np.asarray(kept.genes, object),
        "noise_variance": ica.noise_variance_,
        "prior": repr(ica.prior_),
        "explained_variance": ica.explained_variance_,
        "explained_variance_ratio": ica.explained_variance_ratio_,
        "arrays": arrays,
        "description": json.dumps(description),
    }
    if "reliability_" in arrays:
        summary["reliability"] = arrays["reliability_"]
    if kept.layer is not None:
        summary["layer"] = kept.layer
    if kept.covariates is not None:
        summary["covariates"] = kept.covariates.pack()
    for name in ("std", "probability", "consensus_components", "consensus_std"):
        adata.varm.pop(f"{key}_{name}", None)  # of a fit before
    adata.uns.pop(f"{key}_consensus", None)
    for name, values in of_varm.items():
        adata.varm[f"{key}_{name}"] = values
    adata.uns[key] = summary


def kept_in(adata: Any, key: str) -> Kept:
    """Return what :func:`keep` wrote, or raise an error that says what there is."""
    if key not in adata.uns or "description" not in adata.uns[key]:
        raise KeyError(
            f"adata.uns has no fit with the key {key!r} (it has {listed(adata.uns) or 'nothing'}): "
            "call noisyica.omics.fit(adata) first, or say which key it was given."
        )
    stored = adata.uns[key]
    arrays = {name: np.asarray(values) for name, values in stored["arrays"].items()}
    estimator = saving.restored(NoisyICA, arrays, json.loads(stored["description"]))
    of_covariates = stored.get("covariates")
    return Kept(
        estimator=estimator,
        genes=np.asarray(stored["genes"], object),
        layer=stored.get("layer"),
        covariates=None if of_covariates is None else covariates.unpack(of_covariates),
    )
