"""A fit that is interrupted loses nothing, and one that goes on ends where it would have ended."""

import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica.engine import checkpoint, outcome


@pytest.fixture
def eager(monkeypatch):
    """Checkpoints after every chunk of iterations."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)


@pytest.fixture(scope="module")
def X():
    mixing = np.random.default_rng(0).normal(size=(20, 3))
    return Model(mixing, np.zeros(20), 0.25, priors.get("bg")).sample(300, random_state=0)[0]


def estimator(**settings):
    return NoisyICA(3, random_state=0, max_iter=450, verbose=False, **settings)


class Stop:
    """A callback at whose n-th call the user presses Ctrl-C, or the machine dies."""

    def __init__(self, call, error):
        self.call, self.error = call, error

    def __call__(self, iteration, model):
        self.call -= 1
        if self.call == 0:
            raise self.error


def same(one, other):
    assert np.array_equal(one.components_, other.components_)
    assert np.array_equal(one.noise_variance_, other.noise_variance_)
    assert (one.n_iter_, one.converged_) == (other.n_iter_, other.converged_)
    assert one.history_.keys() == other.history_.keys()
    assert all(np.array_equal(one.history_[name], other.history_[name]) for name in one.history_)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_init": 4, "tol": 0.0},
        pytest.param(
            {"noise": "diagonal", "boundaries": True, "missing": True}, marks=pytest.mark.slow
        ),
        {"noise": "student", "boundaries": True, "missing": True},
    ],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_going_on_ends_where_an_uninterrupted_fit_does(X, tmp_path, eager, settings, error):
    settings = dict(settings)
    if settings.pop("missing", False):
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    whole = estimator(**settings).fit(X)
    path = tmp_path / "checkpoint.npz"
    with pytest.raises(error):
        estimator(**settings, checkpoint=path, callback=Stop(6, error)).fit(X)
    assert path.exists()
    again = estimator(**settings, checkpoint=path).fit(X)
    same(whole, again)
    if "row_weights_" in vars(whole):
        assert np.array_equal(whole.row_weights_, again.row_weights_)
    assert not list(tmp_path.iterdir())  # neither a checkpoint nor a temporary file


def test_an_interrupted_estimator_has_what_was_learnt(X):
    ica = estimator(tol=0)
    ica.callback = Stop(5, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt, match="of 450 iterations"):
        ica.fit(X)
    assert 0 < ica.n_iter_ < 450
    assert not ica.converged_
    assert ica.transform(X[:2]).shape == (2, 3)


def test_other_data_or_settings_are_refused(X, tmp_path, eager):
    path = tmp_path / "checkpoint.npz"
    with pytest.raises(KeyboardInterrupt):
        estimator(checkpoint=path, callback=Stop(2, KeyboardInterrupt)).fit(X)
    for other, rows in (
        (estimator(checkpoint=path, prior="lap"), X),
        (estimator(checkpoint=path), X + 1.0),
    ):
        with pytest.raises(ValueError, match="other data, or with other settings"):
            other.fit(rows)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="damaged"):
        estimator(checkpoint=path).fit(X)


def test_a_checkpoint_needs_a_seed_and_a_folder(X, tmp_path):
    with pytest.raises(ValueError, match="random_state to be an integer"):
        NoisyICA(3, checkpoint=tmp_path / "file.npz").fit(X)
    with pytest.raises(ValueError, match="there is no folder"):
        estimator(checkpoint=tmp_path / "nowhere" / "file.npz").fit(X)


def test_interrupted_at_the_very_end(X, tmp_path, monkeypatch):
    """Between the last iteration and the end of fit nothing is lost, either."""
    path = tmp_path / "checkpoint.npz"
    whole = estimator().fit(X)
    ica = estimator(checkpoint=path)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(outcome, "fitted_attributes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ica.fit(X)
    assert not hasattr(ica, "components_")
    monkeypatch.undo()
    same(whole, ica.fit(X))
