"""Streams: rows come block by block, and nothing is kept of them but sums."""

import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica.engine.convergence import similarity
from noisyica.engine.expansion import Move
from noisyica.engine.stream import Past, _moved
from tests.engine.steps import begun, constants_of, parameters_of, plan_of, rows_of

SETTINGS = {"n_components": 4, "prior": "bg", "noise": "isotropic", "random_state": 0}
SETTINGS |= {"verbose": False, "n_init": 1, "max_iter": 400}
A = np.random.default_rng(0).normal(size=(20, 4))
X = Model(A, None, 1.0, priors.BernoulliGaussian(0.3)).sample(10_000, random_state=0)[0]


@pytest.fixture(scope="module")
def streamed():
    """An estimator that was given 10,000 rows in 20 blocks, and its cosines after each."""
    ica, cosines = NoisyICA(**SETTINGS), []
    for block in np.array_split(X, 20):
        cosines.append(similarity(A, [ica.partial_fit(block).mixing_]).mean())
    return ica, cosines


def test_blocks_teach_what_all_rows_do(streamed):
    ica, cosines = streamed
    whole = NoisyICA(**SETTINGS).fit(X)
    assert cosines[-1] > similarity(A, [whole.mixing_]).mean() - 0.001
    assert 1 - cosines[-1] < (1 - cosines[0]) / 4  # twenty times the rows
    # old blocks count for less: the error of the mean of so many rows, and somewhat more
    assert ica.noise_variance_ == pytest.approx(1, abs=5 * np.sqrt(2 / X.size))
    assert ica.prior_.alpha == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / (4 * len(X))))
    assert ica.n_iter_ == 210 + 19 * 20
    assert ica.transform(X[:3]).shape == (3, 4)


def test_fit_begins_anew(streamed):
    ica = NoisyICA(**SETTINGS).partial_fit(X[:1000])
    fitted = ica.set_params(max_iter=30).fit(X[:300])
    expected = NoisyICA(**SETTINGS).set_params(max_iter=30).fit(X[:300])
    np.testing.assert_array_equal(fitted.mixing_, expected.mixing_)
    assert ica.partial_fit(X[:300]).n_iter_ < 50  # a first block again


def test_blocks_may_be_of_any_kind(streamed):
    """Blocks with holes, weights, a single row, or columns that do not vary."""
    ica = NoisyICA(**SETTINGS).set_params(max_iter=40, noise="student").partial_fit(X[:500])
    with_holes = X[500:600].copy()
    with_holes[::2, 3] = np.nan
    ica.partial_fit(with_holes).partial_fit(X[:1])
    ica.partial_fit(np.tile(X[0], (5, 1)), sample_weight=np.arange(5.0))
    assert np.isfinite(ica.mixing_).all()
    assert ica.row_weights_.shape == (4,)
    with pytest.raises(ValueError, match="X has 3 features, but NoisyICA is expecting 20"):
        ica.partial_fit(X[:10, :3])


@pytest.mark.parametrize("choice", [{"algorithm": "mcem"}, {"boundaries": True}])
def test_other_algorithms_are_refused(choice):
    with pytest.raises(ValueError, match="partial_fit needs algorithm='saem'"):
        NoisyICA(**SETTINGS | choice).partial_fit(X[:100])


def test_learning_breaks_nothing_when_it_is_refused(streamed):
    ica = NoisyICA(**SETTINGS).set_params(max_iter=20).partial_fit(X[:200])
    before = ica.mixing_.copy()
    with pytest.raises(ValueError, match="infinit"):
        ica.partial_fit(np.full((3, 20), np.inf))
    np.testing.assert_array_equal(ica.mixing_, before)
    ica.partial_fit(X[200:300])


@pytest.mark.usefixtures("double")
def test_the_past_moves_as_its_rows_would_have():
    parameters = parameters_of()
    plan, constants = plan_of(), constants_of()
    X = rows_of(parameters)
    _, run = begun(parameters, X, plan, constants)
    beta = np.asarray(run.chains.latent[0])[:, : len(X)]
    n = len(X)

    def averages(beta):
        zeros = np.zeros(len(beta))
        return run.state.statistics._replace(
            x=X.mean(0), b=beta.mean(1), bb=beta @ beta.T / n, xb=X.T @ beta.T / n, mb=zeros
        )

    W = np.array([[1.1, 0.2, 0.0], [0.0, 0.9, -0.3], [0.1, 0.0, 1.2]])
    delta = np.array([0.3, 0.0, -0.2])
    past = _moved(Move(W, delta), True, Past(np.asarray(7.0), averages(beta)))
    expected = averages(W @ beta + delta[:, None])
    for name in ("b", "bb", "xb"):
        np.testing.assert_allclose(
            getattr(past.statistics, name), getattr(expected, name), rtol=1e-10, atol=1e-12
        )
    assert past.weight == 7
