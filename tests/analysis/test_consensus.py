"""Components of bootstraps: drawn, matched, averaged, and how stable they are."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from noisyica import Model, NoisyICA, consensus
from noisyica.analysis.consensus import _drawn, _indices, _matched
from noisyica.engine.convergence import match

HOW = {"noise": "isotropic", "max_iter": 60, "tol": 0, "n_init": 1, "verbose": False}
ESTIMATOR = NoisyICA(2, prior="bg", random_state=0, **HOW)
A = np.random.default_rng(0).normal(size=(12, 2))


@pytest.fixture(scope="module")
def X():
    return Model(A, noise_variance=0.1, prior="bg").sample(200, random_state=0)[0]


@pytest.fixture(scope="module")
def found(X):
    return consensus(X, ESTIMATOR, n_bootstraps=4, random_state=1)


def test_bootstraps_are_fits_to_rows_that_were_drawn(X, found):
    rng = np.random.RandomState(1)
    counts = rng.multinomial(200, np.full(200, 1 / 200), size=4)
    seeds = rng.randint(2**31 - 1, size=5)
    for components, count, seed in zip(found.bootstraps, counts, seeds[1:], strict=True):
        ica = NoisyICA(2, prior="bg", random_state=int(seed), **HOW).fit(X, sample_weight=count)
        cosines, order = match(components.T, ica.mixing_)
        np.testing.assert_allclose(np.abs(cosines), 1)
        np.testing.assert_array_equal(np.abs(ica.components_[order]), np.abs(components))
    np.testing.assert_array_equal(found.components, found.bootstraps.mean(0))
    np.testing.assert_array_equal(found.components_std, found.bootstraps.std(0, ddof=1))


def test_the_estimator_is_as_the_user_made_it(found):
    assert found.estimator.callback is None
    assert pickle.loads(pickle.dumps(found.estimator)).n_iter_ == found.estimator.n_iter_


def test_groups_without_labels_are_refused(X):
    for nothing in (None, np.nan):
        groups = np.array([nothing] * 5 + [0.0] * 95 + [1.0] * 100, object)
        with pytest.raises(ValueError, match="groups has no label for 5 rows"):
            consensus(X, ESTIMATOR, groups=groups)


def test_an_error_of_a_bootstrap_says_so(X):
    X = X.copy()
    X[5:, 3] = np.nan  # observed in the first of twenty groups only
    with pytest.raises(ValueError, match="Nothing is observed") as raised:
        consensus(X, ESTIMATOR, n_bootstraps=10, groups=np.arange(200) // 10, random_state=0)
    assert "the rows of bootstrap" in raised.value.__notes__[0]


def test_components_are_in_the_order_and_with_the_signs_of_all_rows(X, found):
    expected = NoisyICA(2, prior="bg", random_state=0, **HOW).fit(X)
    np.testing.assert_array_equal(found.estimator.components_, expected.components_)
    cosines, order = match(expected.mixing_, found.components.T)
    np.testing.assert_array_equal(order, [0, 1])
    assert (cosines > 0.99).all()
    assert (found.stability > 0.99).all()
    assert (found.quality < found.stability).all()
    assert repr(found).startswith("Consensus(2 components in 12 dimensions, 4 bootstraps: 1.00")


def test_a_fitted_estimator_is_taken_and_sparse_rows_are_the_same(X, found):
    fitted = NoisyICA(2, prior="bg", random_state=0, **HOW).fit(X)
    again = consensus(sparse.csr_array(X), fitted, n_bootstraps=4, random_state=1)
    assert again.estimator is fitted
    np.testing.assert_allclose(again.components, found.components, rtol=1e-3, atol=1e-4)
    assert ESTIMATOR.__sklearn_is_fitted__() is False


def test_what_rows_do_not_determine_is_not_stable(found):
    """With normal coefficients of the same variance, all rotations are equally likely."""
    Q = np.linalg.qr(A)[0]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ Q.T * 3 + 0.3 * rng.normal(size=(200, 12))
    unstable = consensus(X, ESTIMATOR, n_bootstraps=4, random_state=1)
    assert unstable.stability.max() < 0.98 < found.stability.min()


def test_matches_do_not_depend_on_order_and_signs():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(20, 5))
    noisy = truth + 0.1 * rng.normal(size=(6, 20, 5))
    mixed = []
    for B in noisy:
        order = rng.permutation(5)
        mixed.append(B[:, order] * rng.choice([-1, 1], 5))
    np.testing.assert_array_equal(_matched(truth, mixed), noisy)
    # from a poor start, each is matched to the others all the same
    poor = _matched(truth + 0.8 * rng.normal(size=(20, 5)), mixed)
    order = match(truth, poor[0])[1]
    np.testing.assert_array_equal(np.abs(poor[:, :, order]), np.abs(noisy))


def test_indices_are_those_of_all_pairs():
    B, p = 3, 2
    aligned = np.random.default_rng(0).normal(size=(B, 7, p))
    unit = aligned / np.linalg.norm(aligned, axis=1, keepdims=True)

    def similar(i, j, k, m):
        return abs(unit[i, :, j] @ unit[k, :, m])

    stability, quality = _indices(aligned)
    for j in range(p):
        pairs = [similar(i, j, k, j) for i in range(B) for k in range(B) if i != k]
        assert stability[j] == pytest.approx(np.mean(pairs))
        within = np.mean([similar(i, j, k, j) for i in range(B) for k in range(B)])
        between = np.mean([similar(i, j, k, 1 - j) for i in range(B) for k in range(B)])
        assert quality[j] == pytest.approx(within - between)
    assert _indices(aligned[:, :, :1])[1] == pytest.approx(
        np.mean([similar(i, 0, k, 0) for i in range(B) for k in range(B)])
    )


def test_groups_are_drawn_as_wholes():
    labels = np.array(["a", "b", "a", "c", "b", "a"])
    counts = _drawn(labels, 6, 50, np.random.RandomState(0))
    for label in "abc":
        own = counts[:, labels == label]
        assert (own == own[:, :1]).all()
    assert (counts[:, [0, 1, 3]].sum(1) == 3).all()
    assert len(np.unique(counts, axis=0)) > 5


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n_bootstraps": 1}, ValueError, "n_bootstraps must be an integer of at least 2"),
        ({"groups": [1, 2]}, ValueError, r"groups must be 200 labels, .*; got shape \(2,\)"),
        ({"groups": np.zeros(200)}, ValueError, "at least two groups"),
        ({"estimator": 3}, TypeError, "estimator must be a NoisyICA"),
    ],
)
def test_what_is_wrong_is_said(X, options, error, said):
    with pytest.raises(error, match=said):
        consensus(X, **({"estimator": ESTIMATOR} | options))
