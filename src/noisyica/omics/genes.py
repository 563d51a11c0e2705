"""The genes of components: a table of the largest, and files for enrichment analyses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from noisyica.arguments import check_counts
from noisyica.data.files import listed
from noisyica.data.storage import whole
from noisyica.omics.annotated import check


def top_genes(adata: Any, n: int = 20, *, key: str = "noisyica") -> Any:
    """Return the genes with the largest weights in each component as a table.

    Parameters
    ----------
    adata : AnnData
        What :func:`noisyica.omics.fit` was given.
    n : int, default=20
        The number of genes of each component. Genes of weight zero are left out.
    key : str, default="noisyica"
        The name under which the fit was written.

    Returns
    -------
    table : pandas.DataFrame
        A line for each gene of each component, with the columns ``component``, ``gene`` and
        ``weight``, by decreasing size of the weight; ``z``, the weight divided by its posterior
        standard deviation, where there is one; and ``probability`` that it is not zero, where the
        prior of the components lets it be zero.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from noisyica import omics
    >>> adata = anndata.AnnData(np.zeros((9, 3)))
    >>> adata.varm["noisyica_components"] = np.array([[3.0], [-2], [0]])
    >>> omics.top_genes(adata, 2)["weight"].tolist()
    [3.0, -2.0]
    """
    import pandas

    check_counts(n=(n, 1))
    weights = _weights(check(adata), key)
    columns = {"weight": weights}
    if f"{key}_std" in adata.varm:
        deviation = np.asarray(adata.varm[f"{key}_std"])
        known = deviation > 0
        columns["z"] = np.where(known, weights / np.where(known, deviation, 1.0), np.nan)
    if f"{key}_probability" in adata.varm:
        columns["probability"] = np.asarray(adata.varm[f"{key}_probability"])
    parts = []
    for j in range(weights.shape[1]):
        chosen = _largest(np.abs(weights[:, j]), n)
        values = {name: of_genes[chosen, j] for name, of_genes in columns.items()}
        names = {"component": j, "gene": np.asarray(adata.var_names, object)[chosen]}
        parts.append(pandas.DataFrame(names | values))
    return pandas.concat(parts, ignore_index=True)


def write_gmt(
    adata: Any,
    path: str | os.PathLike[str],
    n: int = 100,
    *,
    least_probability: float = 0.5,
    key: str = "noisyica",
) -> None:
    """Write the genes with the largest weights in each component as gene sets (.gmt).

    A component has one set of genes with positive weights, ``noisyica_0_up``, and one with negative
    weights, ``noisyica_0_down``, if it has any. The second field of a line says how many genes
    there were to choose from.

    Parameters
    ----------
    adata : AnnData
        What :func:`noisyica.omics.fit` was given.
    path : path
    n : int, default=100
        The maximum number of genes of a set.
    least_probability : float, default=0.5
        Where the prior of the components lets weights be zero, genes that are not zero with a
        smaller probability are left out.
    key : str, default="noisyica"
        The name under which the fit was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import anndata
    >>> import numpy as np
    >>> from noisyica import omics
    >>> adata = anndata.AnnData(np.zeros((9, 3)))
    >>> adata.varm["noisyica_components"] = np.array([[3.0], [-2], [0]])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "programmes.gmt")
    >>> omics.write_gmt(adata, path)
    >>> [line.split()[0] for line in path.read_text().splitlines()]
    ['noisyica_0_up', 'noisyica_0_down']
    """
    check_counts(n=(n, 1))
    weights = _weights(check(adata), key)
    if f"{key}_probability" in adata.varm:
        surely = np.asarray(adata.varm[f"{key}_probability"]) >= least_probability
        weights = np.where(surely, weights, 0.0)
    genes = np.asarray(adata.var_names, object)
    lines = []
    for j, column in enumerate(weights.T):
        for side, values in (("up", column), ("down", -column)):
            chosen = genes[_largest(values, n)]
            if chosen.size:
                origin = f"of {len(genes)} genes"
                lines.append("\t".join([f"{key}_{j}_{side}", origin, *map(str, chosen)]))
    _write(path, lines)


def write_rnk(adata: Any, folder: str | os.PathLike[str], *, key: str = "noisyica") -> list[Path]:
    """Write all genes of each component by decreasing weight as ranked lists (.rnk).

    Parameters
    ----------
    adata : AnnData
        What :func:`noisyica.omics.fit` was given.
    folder : path
        It is made if it is not there.
    key : str, default="noisyica"
        The name under which the fit was written.

    Returns
    -------
    paths : list of Path
        One file for each component: ``noisyica_0.rnk`` and so on.

    Examples
    --------
    >>> import tempfile
    >>> import anndata
    >>> import numpy as np
    >>> from noisyica import omics
    >>> adata = anndata.AnnData(np.zeros((9, 3)))
    >>> adata.varm["noisyica_components"] = np.array([[3.0], [-2], [0]])
    >>> [path.name for path in omics.write_rnk(adata, tempfile.mkdtemp())]
    ['noisyica_0.rnk']
    """
    weights = _weights(check(adata), key)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = [place / f"{key}_{j}.rnk" for j in range(weights.shape[1])]
    for path, column in zip(paths, weights.T, strict=True):
        known = np.flatnonzero(np.isfinite(column))
        order = known[np.argsort(-column[known], kind="stable")]
        _write(path, (f"{adata.var_names[i]}\t{column[i]:.6g}" for i in order))
    return paths


def _weights(adata: Any, key: str) -> np.ndarray:
    """Return the components (genes, p) that were written under a key."""
    name = f"{key}_components"
    if name not in adata.varm:
        raise KeyError(
            f"adata.varm has no {name!r} (it has {listed(adata.varm) or 'nothing'}): call "
            "noisyica.omics.fit(adata) first, or say which key it was given."
        )
    return np.asarray(adata.varm[name])


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """Return the numbers of the n largest values, largest first, of those above zero."""
    order = np.argsort(-values, kind="stable")[:n]  # NaN come last
    return order[values[order] > 0]


def _write(path: str | os.PathLike[str], lines: Iterator[str] | list[str]) -> None:
    """Write lines to a file, as a whole or not at all."""
    with whole(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
