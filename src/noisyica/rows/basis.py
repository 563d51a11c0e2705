"""Orthonormal bases in which rows over neighbouring points are smooth or rough entry by entry.

They are the eigenvectors of the Laplacian of a graph whose edges join neighbours. Its eigenvalue is
small where an eigenvector varies slowly from point to point, and zero where it does not vary. For a
grid the eigenvectors are those of the discrete cosine transform, which needs no matrix.
"""

from __future__ import annotations

import abc
import functools

import numpy as np
from scipy import fft, linalg
from threadpoolctl import threadpool_limits

MOST_POINTS = 10_000
"""The maximum number of points of a graph: its eigenvectors fill a matrix, and take minutes."""


class Basis(abc.ABC):
    """An orthonormal basis for rows of d numbers.

    The d numbers are those of m points in order, one or several (such as colours) for each point.
    """

    values: np.ndarray
    """The eigenvalues (m,)."""
    vectors: np.ndarray | None = None
    """The eigenvectors (m, m) in columns, where another machine might find others as good."""

    def eigenvalues(self, d: int) -> np.ndarray:
        """Return the eigenvalue of each of d entries of a row in the basis."""
        return np.repeat(self.values, d // len(self.values))

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (n, d) in the basis."""
        return self._turned(rows, False)

    def back(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (n, d) that are in the basis as they were before."""
        return self._turned(rows, True)

    def _turned(self, rows: np.ndarray, back: bool) -> np.ndarray:
        points = np.asarray(rows, float).reshape(len(rows), len(self.values), -1)
        return self._turned_points(points, back).reshape(np.shape(rows))

    @abc.abstractmethod
    def _turned_points(self, points: np.ndarray, back: bool) -> np.ndarray:
        """Return an array (n, m, k) that is turned along its second axis."""

    @abc.abstractmethod
    def variances(self, of_entries: np.ndarray) -> np.ndarray:
        """Return variances (n, d) of rows, given those of their entries in the basis.

        Entries in the basis are taken as uncorrelated.
        """


class GridBasis(Basis):
    """The cosine basis of a grid of one or more axes, whose points are in C order."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        of_axes = [4 * np.square(np.sin(np.pi * np.arange(n) / (2 * n))) for n in shape]
        self.values = functools.reduce(np.add.outer, of_axes).ravel()

    def _turned_points(self, points: np.ndarray, back: bool) -> np.ndarray:
        grid = points.reshape(len(points), *self.shape, points.shape[2])
        axes = range(1, 1 + len(self.shape))
        turn = fft.idctn if back else fft.dctn
        return np.asarray(turn(grid, type=2, norm="ortho", axes=axes))

    def variances(self, of_entries: np.ndarray) -> np.ndarray:
        grid = of_entries.reshape(len(of_entries), *self.shape, -1)
        for axis, n in enumerate(self.shape, start=1):
            squares = np.square(fft.idct(np.eye(n), type=2, norm="ortho", axis=0))
            grid = np.moveaxis(np.tensordot(squares, grid, (1, axis)), 0, axis)
        return grid.reshape(of_entries.shape)


class GraphBasis(Basis):
    """The eigenvectors of a graph's Laplacian, (m, m)."""

    vectors: np.ndarray

    def __init__(self, laplacian: np.ndarray) -> None:
        with threadpool_limits(limits=1):  # the last bits of BLAS depend on the number of threads
            values, self.vectors = linalg.eigh(laplacian, overwrite_a=True, driver="evd")
        self.values = np.maximum(values, 0.0)

    def _turned_points(self, points: np.ndarray, back: bool) -> np.ndarray:
        turn = self.vectors.T if back else self.vectors
        with threadpool_limits(limits=1):
            if points.shape[2] == 1:
                return points[:, :, 0] @ turn
            return turn.T @ points

    def variances(self, of_entries: np.ndarray) -> np.ndarray:
        points = of_entries.reshape(len(of_entries), len(self.values), -1)
        return (np.square(self.vectors) @ points).reshape(of_entries.shape)


@functools.lru_cache(maxsize=2)
def graph_basis(m: int, edges: bytes, weights: bytes) -> GraphBasis:
    """Return the basis of a graph of m points; the last ones that were asked for are kept.

    ``edges`` are the bytes of pairs of points (int64), ``weights`` those of their weights
    (float64).
    """
    laplacian = np.zeros((m, m))
    i, j = np.frombuffer(edges, np.int64).reshape(-1, 2).T
    weight = np.frombuffer(weights)
    np.add.at(laplacian, (i, i), weight)
    np.add.at(laplacian, (j, j), weight)
    laplacian[i, j] = laplacian[j, i] = -weight  # each pair is there once
    return GraphBasis(laplacian)
