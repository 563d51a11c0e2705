"""Covariates of cells, such as batches, whose effects are regressed out of each gene.

For each gene, ordinary least squares on an intercept and the covariates; what the covariates say is
subtracted, as they differ from their means over the cells that were learnt from. So genes keep
their means. This is done before learning, not together with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from noisyica.data.files import listed
from noisyica.data.held import Held, rows_of_piece
from noisyica.rows.held import held
from noisyica.rows.source import NUMBERS_AT_A_TIME


class Covariates(NamedTuple):
    """Covariates, and their effects on each gene."""

    levels: dict[str, list[str] | None]  # of each column of obs; None where it has numbers
    centre: np.ndarray  # (k,)  the means of the columns of the design
    effects: np.ndarray  # (k, genes)

    def removed_from(self, X: Any, obs: Any) -> Held:
        """Return the rows of X without the effects of their covariates, which ``obs`` has."""
        return Regressed(X, _design(obs, self.levels) - self.centre, self.effects)

    def pack(self) -> dict[str, Any]:
        """Return what files of AnnData can hold."""
        levels = json.dumps(self.levels)
        return {"levels": levels, "centre": self.centre, "effects": self.effects}


def unpack(stored: Mapping[str, Any]) -> Covariates:
    """Return the covariates that :meth:`Covariates.pack` stands for."""
    return Covariates(json.loads(stored["levels"]), stored["centre"], stored["effects"])


def learn(X: Any, obs: Any, names: list[str], categorical: list[str]) -> Covariates:
    """Learn the effects of covariates, columns of ``obs``, on each gene, block by block.

    Those that are ``categorical`` are so even if they are numbers.
    """
    levels = {name: _levels(column(obs, name), name in categorical) for name in names}
    design = _design(obs, levels)
    centre = design.mean(0)
    deviation = design.std(0)
    # divided by their deviations, columns in any units have a rank that is safe to tell
    scaled = (design - centre) / np.where(deviation > 0, deviation, 1.0)
    if np.linalg.matrix_rank(scaled) < scaled.shape[1] or not scaled.shape[1]:
        raise ValueError(
            f"The effects of the covariates ({listed(names)}) cannot be told apart: one of them is "
            "the same in all cells, or follows from the others. Leave it out."
        )
    Q, R = np.linalg.qr(design - centre)
    products = np.zeros((Q.shape[1], X.shape[1]))
    step = max(1, NUMBERS_AT_A_TIME // X.shape[1])
    for first in range(0, X.shape[0], step):
        products += Q[first : first + step].T @ np.asarray(X[first : first + step], np.float64)
    unknown = ~np.isfinite(products).all(0)
    if unknown.any():
        raise ValueError(
            f"Covariates cannot be regressed out of genes with missing or infinite entries: "
            f"{unknown.sum()} genes have some, such as that of number {np.argmax(unknown)}."
        )
    return Covariates(levels, centre, np.linalg.solve(R, products))


class Regressed(Held):
    """Rows of X from which the product of a design and effects is subtracted as they are read."""

    def __init__(self, X: Any, design: np.ndarray, effects: np.ndarray) -> None:
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        super().__init__(X.shape, dtype, range(0, max(X.shape[0], 1), rows_of_piece(X)))
        self._X, self._design, self._effects = X, design, effects

    def _read(self, number: int, first: int, end: int) -> np.ndarray:
        return np.asarray(self._X[first:end] - self._design[first:end] @ self._effects)

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        rows = self._X[numbers] - self._design[numbers] @ self._effects
        return np.asarray(rows).astype(self.dtype, copy=False)


def sliceable(X: Any) -> Any:
    """Return X as an array, or as rows that are held elsewhere."""
    rows = held(X)
    return np.asarray(X) if rows is None else rows


def column(obs: Any, name: str) -> Any:
    """Return a column of obs without missing entries, or raise an error that names it."""
    if name not in obs.columns:
        raise KeyError(f"obs has no column {name!r}: it has {listed(obs.columns) or 'none'}.")
    values = obs[name]
    missing = int(values.isna().sum())
    if missing:
        raise ValueError(
            f"The column {name!r} of obs is missing in {missing} cells: leave these out."
        )
    if values.dtype.kind == "f" and not np.isfinite(np.asarray(values, float)).all():
        raise ValueError(f"The column {name!r} of obs is infinite in some cells: leave these out.")
    return values


def _levels(values: Any, categorical: bool) -> list[str] | None:
    """Return the levels of a covariate, or None if it is a number."""
    if values.dtype.kind in "iuf" and not categorical:
        return None
    return sorted(set(map(str, values)))


def _design(obs: Any, levels: Mapping[str, list[str] | None]) -> np.ndarray:
    """Return the design (cells, k): numbers as they are, and 0 or 1 for levels but the first."""
    parts = [np.empty((len(obs), 0))]
    for name, kinds in levels.items():
        if kinds is None:
            parts.append(np.asarray(column(obs, name), float)[:, None])
            continue
        values = np.asarray(list(map(str, column(obs, name))), object)
        unknown = sorted(set(values) - set(kinds))
        if unknown:
            raise ValueError(
                f"The covariate {name!r} has values whose effect was not learnt: {listed(unknown)}."
            )
        parts.append((values[:, None] == np.asarray(kinds[1:], object)).astype(float))
    return np.concatenate(parts, 1)
