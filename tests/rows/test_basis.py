"""Bases of neighbouring points, against the Laplacian of the graph itself."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from scipy import sparse

from noisyica import Smooth
from noisyica.data.layout import Images, Lines, Mesh, Volume
from noisyica.rows.basis import MOST_POINTS
from noisyica.rows.neighbours import smooth_over

OCTAHEDRON = np.array(
    [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
)


def grid_adjacency(shape):
    """Return which points of a grid are one step from each other."""
    points = np.argwhere(np.ones(shape))
    return (np.abs(points[:, None] - points).sum(-1) == 1).astype(float)


def octahedron_adjacency():
    """Return which corners of an octahedron are not opposite to each other."""
    opposite = np.kron(np.eye(3), [[0, 1], [1, 0]])
    return 1 - np.eye(6) - opposite


def laplacian(adjacency):
    return np.diag(adjacency.sum(0)) - adjacency


WEIGHTED = np.array([[0, 2, 0.5, 0], [2, 0, 0, 0], [0.5, 0, 0, 0], [0, 0, 0, 0]])
CASES = {
    "signal": (Smooth(shape=(7,)), grid_adjacency((7,))),
    "one number": (Smooth(shape=5), grid_adjacency((5,))),
    "image": (Smooth(shape=(3, 4)), grid_adjacency((3, 4))),
    "volume": (Smooth(shape=(3, 2, 4)), grid_adjacency((3, 2, 4))),
    "flat volume": (Smooth(shape=(3, 1, 4)), grid_adjacency((3, 1, 4))),
    "surface": (Smooth(faces=OCTAHEDRON), octahedron_adjacency()),
    "weights, and a point alone": (Smooth(adjacency=WEIGHTED), WEIGHTED),
    "sparse": (Smooth(adjacency=sparse.csr_matrix(WEIGHTED)), WEIGHTED),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_basis_is_orthonormal_and_diagonalises_the_laplacian(name, channels):
    setting, adjacency = CASES[name]
    setting = dataclasses.replace(setting, channels=channels)
    d = channels * len(adjacency)
    basis = setting.basis(d)
    vectors = basis.back(np.eye(d))  # in rows
    L = np.kron(laplacian(adjacency), np.eye(channels))
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(d), atol=1e-12)
    np.testing.assert_allclose(vectors @ L @ vectors.T, np.diag(basis.eigenvalues(d)), atol=1e-12)
    rows = np.random.default_rng(0).normal(size=(4, d))
    np.testing.assert_allclose(basis.back(basis.forward(rows)), rows, atol=1e-12)
    variances = np.square(rows)
    np.testing.assert_allclose(basis.variances(variances), variances @ np.square(vectors))


def test_edges_that_stand_twice_are_added():
    twice = sparse.csr_array(([1.0, 1, 1, 1], [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    np.testing.assert_allclose(Smooth(adjacency=twice).basis(2).values, [0, 4], atol=1e-12)
    assert twice.nnz == 4  # it is the caller's


def test_settings_are_values():
    adjacency = WEIGHTED.copy()
    setting = Smooth(adjacency=adjacency)
    adjacency[0, 1] = 7  # no longer symmetric
    assert setting == Smooth(adjacency=WEIGHTED)
    assert hash(setting) == hash(copy.deepcopy(setting))
    assert repr(setting) == "Smooth(adjacency=<4 points, 2 pairs of neighbours>)"
    assert Smooth(shape=(2, 3)) == pickle.loads(pickle.dumps(Smooth(shape=[2, 3])))
    assert Smooth(shape=(2, 3)) != Smooth(shape=(3, 2))
    assert Smooth(shape=(2, 3)) != Smooth(shape=(2, 3), channels=3)
    assert Smooth(faces=OCTAHEDRON) == Smooth(adjacency=octahedron_adjacency())


def test_layouts_know_their_neighbours():
    mask = np.ones((2, 3, 2), bool)
    inside = mask.copy()
    inside[0, 0, 0] = inside[1, 2, 1] = False
    affine, vertices = np.eye(4), np.zeros((7, 3))
    cases = [
        (Images(np.array([3, 4])), 12, grid_adjacency((3, 4))),
        (Images(np.array([3, 4, 3])), 36, grid_adjacency((3, 4))),
        (Volume(mask, affine), 12, grid_adjacency(mask.shape)),
        (Volume(inside, affine), 10, grid_adjacency(mask.shape)[inside.ravel()][:, inside.ravel()]),
        (Mesh(vertices, OCTAHEDRON), 7, np.pad(octahedron_adjacency(), (0, 1))),
        (Lines(np.array(["0.1", "0.2", "0.3"])), 3, grid_adjacency((3,))),
    ]
    for layout, d, adjacency in cases:
        setting = smooth_over(layout)
        basis = setting.basis(d)
        np.testing.assert_allclose(
            np.sort(basis.values), np.linalg.eigvalsh(laplacian(adjacency)), atol=1e-12
        )
        again = Smooth.from_plain(setting.plain())
        np.testing.assert_array_equal(again.basis(d).values, basis.values)
    with pytest.raises(ValueError, match="columns of a table"):
        smooth_over(Lines(np.array(["age", "weight"])))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "none of them"),
        ({"shape": (2, 2), "faces": OCTAHEDRON}, "shape and faces"),
        ({"shape": (2, 2.5)}, "tuple of integers"),
        ({"shape": ()}, "tuple of integers"),
        ({"shape": (0, 3)}, "tuple of integers"),
        ({"shape": (1, 1)}, "at least two"),
        ({"shape": "8x8"}, "tuple of integers"),
        ({"shape": np.array([], int)}, "tuple of integers"),
        ({"shape": ((1, 2), 3)}, "tuple of integers"),
        ({"shape": (2**40, 2**40)}, "tuple of integers"),
        ({"shape": (2, 2), "channels": 0}, "at least 1"),
        ({"shape": (2, 2), "channels": 1.5}, "at least 1"),
        ({"faces": [[0, 1, 2], [1, 2]]}, "triangles"),
        ({"faces": OCTAHEDRON[:, :2]}, r"got shape \(8, 2\)"),
        ({"faces": OCTAHEDRON - 1}, "from 0"),
        ({"faces": OCTAHEDRON.astype(float)}, "float64"),
        ({"faces": np.zeros((0, 3), int)}, r"got shape \(0, 3\)"),
        ({"adjacency": np.ones((2, 3))}, r"square; got shape \(2, 3\)"),
        ({"adjacency": [[0, 1], [0, 0]]}, "not symmetric"),
        ({"adjacency": [[0, -1], [-1, 0]]}, "negative"),
        ({"adjacency": [[0, np.nan], [np.nan, 0]]}, "not finite"),
        ({"adjacency": "neighbours"}, "square"),
        ({"adjacency": np.zeros((0, 0))}, "square"),
        ({"adjacency": [[0, 1j], [1j, 0]]}, "real numbers"),
        ({"adjacency": [[0, 1e308], [1e308, 0]]}, "too large"),
        ({"adjacency": np.eye(3)}, "none are neighbours"),
        ({"adjacency": sparse.eye_array(MOST_POINTS + 1)}, "at most 10,000 points"),
    ],
)
def test_what_are_no_neighbours(settings, text):
    with pytest.raises(ValueError, match=text):
        Smooth(**settings)
