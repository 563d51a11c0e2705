"""FastICA, by scikit-learn or compiled: the same directions."""

import numpy as np
import pytest

from noisyica.rows import fastica


def white_rows(p, n=4000):
    rng = np.random.default_rng(p)
    turn = np.linalg.qr(rng.normal(size=(p, p)))[0]
    rows = rng.laplace(size=(n, p)) @ turn.T
    values, vectors = np.linalg.eigh(np.cov(rows.T, bias=True))
    return (rows - rows.mean(0)) @ (vectors / np.sqrt(values)) @ vectors.T, turn


@pytest.mark.parametrize("p", [2, 7])
def test_compiled_steps_find_what_scikit_learn_finds(p, monkeypatch):
    white, turn = white_rows(p)
    theirs = fastica.rotation(white, np.random.RandomState(0), 400)
    monkeypatch.setattr(fastica, "MOST_UNCOMPILED", 0)
    ours = fastica.rotation(white, np.random.RandomState(1), 400)
    np.testing.assert_allclose(ours.T @ ours, np.eye(p), atol=1e-9)
    cosines = np.abs(ours.T @ theirs)
    # each ends at most sqrt(2 TOLERANCE) from the last step, and steps converge quadratically
    np.testing.assert_allclose(np.sort(cosines.max(1)), 1, atol=2 * fastica.TOLERANCE)
    assert sorted(cosines.argmax(1)) == list(range(p))
    # the error of n = 4,000 Laplace rows is about 1 / sqrt(n) for each angle
    assert np.abs(turn.T @ ours).max(0).min() > 1 - 10 * p / len(white)


def test_compiled_steps_end_after_the_maximum_number(monkeypatch):
    """Normal rows have no directions: the steps go on for as long as they may."""
    monkeypatch.setattr(fastica, "MOST_UNCOMPILED", 0)
    white = np.random.default_rng(0).normal(size=(500, 3))
    one, two = (fastica.rotation(white, np.random.RandomState(0), count) for count in (1, 2))
    np.testing.assert_allclose(one.T @ one, np.eye(3), atol=1e-9)
    assert not np.allclose(one, two)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_the_nearest_orthogonal_matrix_is_the_polar_factor(condition):
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(6, 6)))[0] for _ in range(2))
    M = 7 * left * np.geomspace(1, 1 / condition, 6) @ right
    np.testing.assert_allclose(fastica._nearest_orthogonal(M), left @ right, atol=1e-9 * condition)
