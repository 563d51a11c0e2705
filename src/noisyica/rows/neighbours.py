"""Which points of a row are neighbours: :class:`Smooth`, a setting of ``mixing_prior``."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import zlib
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from noisyica.data.layout import Images, Layout, Lines, Mesh, Volume
from noisyica.rows.basis import MOST_POINTS, Basis, GridBasis, graph_basis

LARGEST = 1e15
"""The largest number of points of a grid, and sum of weights, that can be computed with."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Smooth:
    """The prior of components that are smooth over points which have neighbours.

    How smooth each component is, is learnt: a component that is not smooth at all is found as with
    ``mixing_prior="normal"``. One of the first three arguments says which points are neighbours. A
    row has one number for each point, in their order.

    Parameters
    ----------
    shape : tuple of int, optional
        The points are those of a grid of one axis (a signal), two (an image) or more, in C order.
    faces : array (f, 3) of int, optional
        The points are the vertices of a surface, and those of a triangle are neighbours.
    adjacency : array or sparse matrix (m, m), optional
        The points are those of a graph; an entry is the weight of an edge, or zero. It must be
        symmetric. Its diagonal is not looked at.
    channels : int, default=1
        How many numbers a row has for each point, one after the other: 3 for colours.

    Examples
    --------
    >>> from noisyica import NoisyICA, Smooth
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> settings = {"max_iter": 50, "tol": 0, "random_state": 0}
    >>> ica = NoisyICA(5, mixing_prior=Smooth(shape=(8, 8)), **settings).fit(X)
    >>> ica.mixing_prior_.length.shape  # of each component, see SmoothEntries
    (5,)
    """

    shape: Any = None
    faces: Any = None
    adjacency: Any = None
    channels: int = 1
    _graph: Graph = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        names = ("shape", "faces", "adjacency")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                "Smooth needs one of shape, faces and adjacency, which say what points are "
                f"neighbours; got {' and '.join(given) or 'none of them'}."
            )
        if not isinstance(self.channels, Integral) or int(self.channels) < 1:
            raise ValueError(
                f"The channels of Smooth are an integer of at least 1; got {self.channels!r}."
            )
        if self.shape is not None:
            object.__setattr__(self, "shape", _checked_shape(self.shape))
        else:
            # arrays may change later: what is kept of them does not
            of_faces = self.faces is not None
            graph = Graph.of_faces(self.faces) if of_faces else Graph.of_adjacency(self.adjacency)
            graph.check()
            object.__setattr__(self, "_graph", graph)

    def __repr__(self) -> str:
        channels = "" if self.channels == 1 else f", channels={self.channels}"
        if self.shape is not None:
            return f"Smooth(shape={self.shape}{channels})"
        name = "faces" if self.faces is not None else "adjacency"
        pairs = len(self._graph.edges)
        return (
            f"Smooth({name}=<{self._graph.points} points, {pairs} pairs of neighbours>{channels})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Smooth) and self.plain() == other.plain()

    def __hash__(self) -> int:
        return hash(json.dumps(self.plain()))

    def basis(self, d: int) -> Basis:
        """Return the basis for rows of d numbers in which smooth rows are independent entries."""
        points = self._graph.points if self.shape is None else math.prod(self.shape)
        if d != points * self.channels:
            each = "" if self.channels == 1 else f" with {self.channels} numbers each"
            raise ValueError(
                f"mixing_prior={self!r} is for {points} points{each}, but X has {d} columns. (For "
                "several numbers at each point, such as colours, give channels=; for points that "
                "are in no face, give adjacency.)"
            )
        if self.shape is not None:
            return GridBasis(self.shape)
        graph = self._graph
        return graph_basis(graph.points, graph.edges.tobytes(), graph.weights.tobytes())

    def plain(self) -> dict[str, Any]:
        """Return the setting as JSON can hold it."""
        of_points = {"shape": list(self.shape)} if self.shape is not None else self._graph.plain()
        return {**of_points, "channels": int(self.channels)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Smooth:
        """Return the setting that :meth:`plain` wrote; faces come back as an adjacency matrix."""
        channels = plain.get("channels", 1)
        if "shape" in plain:
            return cls(shape=tuple(plain["shape"]), channels=channels)
        return cls(adjacency=Graph.from_plain(plain).matrix(), channels=channels)


class Graph(NamedTuple):
    """Points, some pairs of which are neighbours."""

    points: int
    edges: np.ndarray  # (k, 2)  the pairs, the smaller number first, in order
    weights: np.ndarray  # (k,)

    @classmethod
    def of_faces(cls, faces: Any) -> Graph:
        """Return the vertices of triangles (f, 3), and their sides, each with weight 1."""
        corners = _array(faces)
        right = corners.ndim == 2 and corners.shape[1] == 3 and corners.dtype.kind in "iu"
        if not right or not corners.size or corners.min() < 0:
            raise ValueError(
                "The faces of Smooth are triangles: an array (f, 3) of the numbers of their "
                f"vertices, from 0; got shape {corners.shape} and {corners.dtype}."
            )
        sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
        sides = np.unique(np.sort(sides.astype(np.int64), axis=1), axis=0)
        sides = sides[sides[:, 0] < sides[:, 1]]
        return cls(int(corners.max()) + 1, sides, np.ones(len(sides)))

    @classmethod
    def of_adjacency(cls, adjacency: Any) -> Graph:
        """Return the graph of an adjacency matrix, dense or sparse."""
        matrix = adjacency if sparse.issparse(adjacency) else _array(adjacency)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
            raise ValueError(f"The adjacency of Smooth is square; got shape {matrix.shape}.")
        if matrix.dtype.kind not in "biuf":
            raise ValueError(
                f"The adjacency of Smooth is a matrix of real numbers; got {matrix.dtype}."
            )
        matrix = sparse.csr_array(matrix, dtype=float, copy=True)
        matrix.sum_duplicates()
        weights = matrix.data
        if not np.isfinite(weights).all() or (weights < 0).any() or (weights > LARGEST).any():
            raise ValueError(
                "The adjacency of Smooth has entries that are negative, not finite or too large."
            )
        if abs(matrix - matrix.T).max() > 0:
            raise ValueError(
                "The adjacency of Smooth is not symmetric: take the mean of it and its transpose."
            )
        upper = sparse.triu(matrix, 1).tocoo()
        upper.eliminate_zeros()
        edges = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
        order = np.lexsort(edges.T[::-1])
        return cls(matrix.shape[0], edges[order], upper.data[order].astype(float))

    def check(self) -> None:
        """Raise ValueError if there are too many points, or no neighbours."""
        if self.points > MOST_POINTS:
            raise ValueError(
                f"Smooth takes at most {MOST_POINTS:,} points that are not a grid, because it "
                f"needs all eigenvectors of their graph; got {self.points:,}. Take fewer points, "
                "or mixing_prior='sparse' or 'normal'."
            )
        if not len(self.edges):
            raise ValueError(f"Smooth got {self.points} points of which none are neighbours.")

    def matrix(self) -> Any:
        """Return the adjacency matrix."""
        shape, (i, j) = (self.points, self.points), self.edges.T
        half = sparse.coo_array((self.weights, (i, j)), shape=shape)
        return (half + half.T).tocsr()

    def plain(self) -> dict[str, Any]:
        """Return the graph as JSON can hold it: arrays are compressed texts."""
        return {
            "points": self.points,
            "edges": _to_text(self.edges),
            "weights": _to_text(self.weights),
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Graph:
        """Return the graph that :meth:`plain` wrote."""
        edges = np.frombuffer(_from_text(plain["edges"]), np.int64).reshape(-1, 2)
        return cls(plain["points"], edges, np.frombuffer(_from_text(plain["weights"])))


def smooth_over(layout: Layout) -> Smooth:
    """Return the prior of components that are smooth over the points of a layout."""
    if isinstance(layout, Images):
        height, width, *colours = (int(n) for n in layout.shape)
        return Smooth(shape=(height, width), channels=math.prod(colours))
    if isinstance(layout, Volume):
        mask = np.asarray(layout.mask)
        return Smooth(shape=mask.shape) if mask.all() else Smooth(adjacency=_inside(mask).matrix())
    if isinstance(layout, Mesh):
        graph = Graph.of_faces(layout.faces)._replace(points=layout.size)
        return Smooth(adjacency=graph.matrix())
    if isinstance(layout, Lines) and layout.signal:
        return Smooth(shape=(layout.size,))
    raise ValueError(
        "Smooth components need columns that have neighbours, such as the pixels of images, the "
        "vertices of surfaces or the samples of signals; these are the columns of a table. Take "
        "mixing_prior='sparse' or 'normal'."
    )


def _checked_shape(shape: Any) -> tuple[int, ...]:
    """Return the shape of a grid as a tuple, or raise ValueError if it is none."""
    axes = np.atleast_1d(_array(shape))
    right = axes.ndim == 1 and axes.size and axes.dtype.kind in "iu"
    if not right or (axes < 1).any() or axes.max() < 2 or math.prod(axes.tolist()) > LARGEST:
        raise ValueError(
            "The shape of Smooth is a tuple of integers, the number of points along each axis of a "
            f"grid, at least two along one of them; got {shape!r}."
        )
    return tuple(int(n) for n in axes)


def _array(values: Any) -> np.ndarray:
    """Return the values as an array; those of different lengths become an array of objects."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        return np.array(None)


def _inside(mask: np.ndarray) -> Graph:
    """Return the graph of the voxels inside a mask: neighbours share a side."""
    number = np.full(mask.shape, -1)
    number[mask] = np.arange(mask.sum())
    pairs = []
    for axis in range(mask.ndim):
        ahead = np.moveaxis(number, axis, 0)
        pairs.append(np.stack([ahead[:-1].ravel(), ahead[1:].ravel()], axis=1))
    edges = np.concatenate(pairs)
    edges = edges[(edges >= 0).all(1)]
    return Graph(int(mask.sum()), edges, np.ones(len(edges)))


def _to_text(array: np.ndarray) -> str:
    """Return the bytes of an array, compressed, as text."""
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode()


def _from_text(text: str) -> bytes:
    """Return the bytes that :func:`_to_text` wrote."""
    return zlib.decompress(base64.b64decode(text))
