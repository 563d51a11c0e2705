"""Which points of a row are neighbours: :class:`Smooth`, a setting of ``mixing_prior``."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import sparse

from noisyica.data.layout import Images, Layout, Lines, Mesh, Volume
from noisyica.rows.basis import MOST_POINTS, Basis, GridBasis, graph_basis


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Smooth:
    """The prior of components that are smooth over points which have neighbours.

    How smooth each component is, is learnt: a component that is not smooth at all is found as with
    ``mixing_prior="normal"``. One of the three arguments says which points are neighbours. A row
    has one number for each point, in order, or several that stand together (such as colours).

    Parameters
    ----------
    shape : tuple of int, optional
        The points are those of a grid of one axis (a signal), two (an image) or more, in C order.
    faces : array (f, 3) of int, optional
        The points are the vertices of a surface, and those of a triangle are neighbours.
    adjacency : array or sparse matrix (m, m), optional
        The points are those of a graph; an entry is the weight of an edge, or zero. It must be
        symmetric. Its diagonal is not looked at.

    Examples
    --------
    >>> from noisyica import NoisyICA, Smooth
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> settings = {"max_iter": 50, "tol": 0, "random_state": 0}
    >>> ica = NoisyICA(5, mixing_prior=Smooth(shape=(8, 8)), **settings).fit(X)
    >>> ica.mixing_prior_.length.shape  # how smooth each component is
    (5,)
    """

    shape: Any = None
    faces: Any = None
    adjacency: Any = None

    def __post_init__(self) -> None:
        given = [f.name for f in dataclasses.fields(self) if getattr(self, f.name) is not None]
        if len(given) != 1:
            raise ValueError(
                "Smooth needs one of shape, faces and adjacency, which say what points are "
                f"neighbours; got {' and '.join(given) or 'none of them'}."
            )
        if self.shape is not None:
            object.__setattr__(self, "shape", _checked_shape(self.shape))
        else:
            m, edges, weights = self.graph()
            if m > MOST_POINTS:
                raise ValueError(
                    f"Smooth takes at most {MOST_POINTS:,} points that are not a grid, because it "
                    f"needs all eigenvectors of their graph; got {m:,}. Take fewer points, or "
                    "mixing_prior='sparse' or 'normal'."
                )
            if not (len(edges) and weights.any()):
                raise ValueError(f"Smooth got {m} points of which none are neighbours.")

    def __repr__(self) -> str:
        if self.shape is not None:
            return f"Smooth(shape={self.shape})"
        m, edges, _ = self.graph()
        name = "faces" if self.faces is not None else "adjacency"
        return f"Smooth({name}=<{m} points, {len(edges)} pairs of neighbours>)"

    def graph(self) -> tuple[int, np.ndarray, np.ndarray]:
        """Return the number of points, the pairs of neighbours (k, 2) and their weights (k,)."""
        if self.faces is not None:
            return _graph_of_faces(self.faces)
        return _graph_of_adjacency(self.adjacency)

    def basis(self, d: int) -> Basis:
        """Return the basis for rows of d numbers in which smooth rows are independent entries."""
        m = int(np.prod(self.shape)) if self.shape is not None else self.graph()[0]
        if d % m:
            raise ValueError(
                f"mixing_prior={self!r} is for {m} points, but X has {d} columns: it needs one "
                "column for each point, or the same number of columns for each."
            )
        if self.shape is not None:
            return GridBasis(self.shape)
        m, edges, weights = self.graph()
        return graph_basis(m, edges.tobytes(), weights.tobytes())

    def plain(self) -> dict[str, Any]:
        """Return the setting as JSON can hold it."""
        if self.shape is not None:
            return {"shape": list(self.shape)}
        m, edges, weights = self.graph()
        return {"points": m, "edges": edges.tolist(), "weights": weights.tolist()}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Smooth:
        """Return the setting that :meth:`plain` wrote; faces come back as an adjacency matrix."""
        if "shape" in plain:
            return cls(shape=tuple(plain["shape"]))
        return cls(adjacency=_matrix(plain["points"], plain["edges"], plain["weights"]))


def smooth_over(layout: Layout) -> Smooth:
    """Return the prior of components that are smooth over the points of a layout."""
    if isinstance(layout, Images):
        return Smooth(shape=tuple(int(n) for n in layout.shape[:2]))
    if isinstance(layout, Volume):
        mask = np.asarray(layout.mask)
        return Smooth(shape=mask.shape) if mask.all() else Smooth(adjacency=_inside(mask))
    if isinstance(layout, Mesh):
        _, edges, weights = _graph_of_faces(layout.faces)
        return Smooth(adjacency=_matrix(layout.size, edges, weights))
    if isinstance(layout, Lines) and layout.signal:
        return Smooth(shape=(layout.size,))
    raise ValueError(
        "Smooth components need columns that have neighbours, such as the pixels of images, the "
        "vertices of surfaces or the samples of signals; these are the columns of a table. Take "
        "mixing_prior='sparse' or 'normal'."
    )


def _checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a grid as a tuple, or raise ValueError if it is none."""
    axes = np.atleast_1d(np.asarray(shape))
    if axes.ndim != 1 or axes.dtype.kind not in "iu" or (axes < 1).any() or axes.max() < 2:
        raise ValueError(
            "The shape of Smooth is a tuple of integers, the number of points along each axis of a "
            f"grid, at least two along one of them; got {shape!r}."
        )
    return tuple(int(n) for n in axes)


def _graph_of_faces(faces: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of vertices, the sides (k, 2) of the triangles, and ones (k,)."""
    corners = np.asarray(faces)
    right = corners.ndim == 2 and corners.shape[1] == 3 and corners.dtype.kind in "iu"
    if not right or not corners.size or corners.min() < 0:
        raise ValueError(
            "The faces of Smooth are triangles: an array (f, 3) of the numbers of their vertices, "
            f"from 0; got shape {corners.shape} and {corners.dtype}."
        )
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    sides = np.unique(np.sort(sides.astype(np.int64), axis=1), axis=0)
    sides = sides[sides[:, 0] < sides[:, 1]]
    return int(corners.max()) + 1, sides, np.ones(len(sides))


def _graph_of_adjacency(adjacency: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of points, the pairs (k, 2) that have an edge, and its weight (k,)."""
    try:
        matrix = sparse.csr_array(adjacency).astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The adjacency of Smooth is a matrix of numbers; got {type(adjacency).__name__}."
        ) from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"The adjacency of Smooth is square; got shape {matrix.shape}.")
    if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise ValueError("The adjacency of Smooth has entries that are negative or not finite.")
    if abs(matrix - matrix.T).max() > 0:
        raise ValueError(
            "The adjacency of Smooth is not symmetric: take the mean of it and its transpose."
        )
    upper = sparse.triu(matrix, 1).tocoo()
    upper.eliminate_zeros()
    edges = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    order = np.lexsort(edges.T[::-1])
    return matrix.shape[0], edges[order], upper.data[order].astype(float)


def _inside(mask: np.ndarray) -> Any:
    """Return the adjacency of the voxels inside a mask: neighbours share a side."""
    number = np.full(mask.shape, -1)
    number[mask] = np.arange(mask.sum())
    pairs = []
    for axis in range(mask.ndim):
        ahead = np.moveaxis(number, axis, 0)
        pairs.append(np.stack([ahead[:-1].ravel(), ahead[1:].ravel()], axis=1))
    edges = np.concatenate(pairs)
    edges = edges[(edges >= 0).all(1)]
    return _matrix(int(mask.sum()), edges, np.ones(len(edges)))


def _matrix(m: int, edges: Any, weights: Any) -> Any:
    """Return the adjacency matrix of a graph of m points."""
    i, j = np.asarray(edges, np.int64).reshape(-1, 2).T
    half = sparse.coo_array((np.asarray(weights, float), (i, j)), shape=(m, m))
    return (half + half.T).tocsr()
