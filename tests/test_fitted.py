"""What a fitted estimator keeps: its model, and what a warm start goes on from."""

import copy

import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica.engine import checkpoint
from noisyica.priors import BernoulliGaussian
from tests.tools import simulate


@pytest.fixture(scope="module")
def X():
    return simulate("bg", n=300, d=8, p=2, sigma=0.5)[1]


def estimator(**settings):
    usual = {"max_iter": 40, "tol": 0, "random_state": 0, "verbose": False, "warm_start": True}
    return NoisyICA(2, **(usual | settings))


def test_the_model_is_built_once(X):
    ica = estimator().fit(X)
    model = ica.model_
    assert ica.model_ is model
    ica.transform(X)
    ica.score(X)
    assert ica.model_ is model
    np.testing.assert_array_equal(model.mixing, ica.mixing_)


def test_a_new_fit_has_a_new_model(X):
    ica = estimator().fit(X)
    before = ica.model_
    ica.fit(X[:200])
    assert ica.model_ is not before
    np.testing.assert_array_equal(ica.model_.mixing, ica.mixing_)


def test_a_changed_attribute_is_seen_by_the_model(X):
    ica = estimator().fit(X)
    before = ica.model_.noise_variance
    ica.noise_variance_ = 2 * before
    np.testing.assert_array_equal(ica.model_.noise_variance, 2 * before)
    ica.mixing_ = np.ones((8, 2))
    np.testing.assert_array_equal(ica.model_.mixing, 1.0)


def test_the_model_is_not_copied_with_each_estimator(X, tmp_path):
    ica = estimator().fit(X)
    ica.save(tmp_path / "ica.npz")
    again = NoisyICA.load(tmp_path / "ica.npz")
    assert isinstance(again.model_, Model)
    np.testing.assert_array_equal(again.model_.mixing, ica.model_.mixing)


def refitted(ica, X, **settings):
    """Return an estimator after one more iteration on X, from where it stands."""
    return ica.set_params(max_iter=1, **settings).fit(X)


def test_a_warm_start_keeps_the_learnt_prior(X):
    """One iteration from the prior that was asked for ends elsewhere, though A is the same."""
    ica = estimator(prior=BernoulliGaussian(0.8), max_iter=200).fit(X)
    learnt = ica.prior_.alpha
    assert learnt < 0.5
    asked = refitted(estimator(prior=BernoulliGaussian(0.8), init=ica.mixing_), X).prior_.alpha
    warm = refitted(ica, X).prior_.alpha
    assert abs(warm - learnt) < 0.3 * abs(asked - learnt)


@pytest.mark.parametrize("prior", ["bg", "log", priors.Offset("bg", 2.0)], ids=["bg", "log", "off"])
def test_a_warm_start_is_the_same_after_saving(X, tmp_path, prior):
    ica = estimator(prior=prior).fit(X)
    ica.save(tmp_path / "ica.npz")
    loaded = NoisyICA.load(tmp_path / "ica.npz")
    assert loaded.warm_start
    expected, answer = refitted(ica, X), refitted(loaded, X)
    np.testing.assert_array_equal(answer.components_, expected.components_)
    assert answer.prior_.parameters == expected.prior_.parameters


def test_a_warm_start_is_the_same_after_an_interrupted_fit(X, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    whole = estimator().fit(X)
    path = tmp_path / "checkpoint.npz"

    def interrupt(iteration, model):
        if iteration < 40:
            raise KeyboardInterrupt

    ica = estimator(checkpoint=path, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="of 40 iterations"):
        ica.fit(X)
    # it goes on in another process, which knows the checkpoint alone
    resumed = estimator(checkpoint=path).fit(X)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    expected, answer = refitted(whole, X), refitted(resumed, X, checkpoint=None)
    np.testing.assert_array_equal(answer.components_, expected.components_)
    assert answer.prior_.alpha == expected.prior_.alpha


def test_a_prior_that_is_asked_for_anew_begins_anew(X):
    ica = estimator(prior=BernoulliGaussian(0.8), max_iter=200).fit(X)
    learnt = ica.prior_.alpha
    kept = refitted(copy.copy(ica), X).prior_.alpha
    anew = refitted(ica, X, prior=BernoulliGaussian(0.9)).prior_.alpha
    assert abs(anew - learnt) > 3 * abs(kept - learnt)
