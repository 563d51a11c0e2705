"""Small matrices, one for each row, against NumPy."""

import numpy as np
import pytest

from noisyica._jax import matrices

SHAPES = [(1, 3), (2, 5), (7, 4)]  # q, n


def positive_definite(q, n, leading=(), seed=0):
    """Return random matrices (..., q, q, n) whose condition is about 1e6."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(*leading, n, q, q)) * 10.0 ** np.linspace(0, -3, q)
    return np.moveaxis(root @ np.swapaxes(root, -1, -2) + 1e-6 * np.eye(q), -3, -1)


def first(matrix):
    """Return matrices with the rows first, as NumPy has them."""
    return np.moveaxis(np.asarray(matrix), -1, -3)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("q", "n"), SHAPES)
@pytest.mark.parametrize("leading", [(), (2,)])
def test_inverse(q, n, leading):
    P = positive_definite(q, n, leading)
    inverse, log_determinant = matrices.inverse(P)
    expected = np.linalg.inv(first(P))
    size = np.abs(expected).max((-1, -2), keepdims=True)
    np.testing.assert_allclose(first(inverse) / size, expected / size, rtol=0, atol=1e-9)
    np.testing.assert_allclose(log_determinant, np.linalg.slogdet(first(P))[1], atol=1e-8)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("q", "n"), SHAPES)
def test_triangular(q, n):
    P = positive_definite(q, n)
    h = np.random.default_rng(1).normal(size=(q, n))
    B, D, z = (np.asarray(part) for part in matrices.triangular(P, h))
    for k in range(n):
        assert (np.tril(B[:, :, k]) == np.eye(q)).all()
        np.testing.assert_allclose(B[:, :, k] * D[:, k] @ B[:, :, k].T, P[:, :, k], atol=1e-12)
        np.testing.assert_allclose(B[:, :, k] @ z[:, k], h[:, k], atol=1e-9)


@pytest.mark.usefixtures("double")
def test_the_inverse_of_one_matrix_has_a_root():
    P = first(positive_definite(6, 1))[0]
    root = np.asarray(matrices.inverse_root(P))
    np.testing.assert_array_equal(root, np.tril(root))
    inverse = np.linalg.inv(P)
    np.testing.assert_allclose(root.T @ root, inverse, atol=1e-9 * np.abs(inverse).max())
    assert np.isnan(np.asarray(matrices.inverse_root(-P))).any()
