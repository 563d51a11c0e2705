"""Progress on a terminal: who shows it, and that ``verbose=False`` is silent."""

import warnings

import numpy as np
import pytest

from noisyica import Model, NoisyICA, progress
from noisyica.posterior import chains
from noisyica.progress import Reporter


@pytest.fixture
def terminal(monkeypatch, capsys):
    """A terminal on which progress is shown at once, as a function that gives what was written."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(chains, "SIZES", (8, 8, 8))
    return lambda: capsys.readouterr().err


@pytest.fixture(scope="module")
def model():
    return Model(np.random.default_rng(0).normal(size=(5, 2)), noise_variance=0.25, prior="bg")


@pytest.fixture(scope="module")
def X(model):
    return model.sample(20, random_state=0)[0]


METHODS = {
    "posterior_sample": {"n_draws": 5},
    "posterior": {"n_draws": 5, "n_chains": 2},
    "posterior_mean": {"n_draws": 5},
    "map": {},
    "log_likelihood": {},
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_models(terminal, model, X, name):
    method, options = getattr(model, name), METHODS[name]
    method(X, **options, verbose=False)
    assert terminal() == ""
    method(X, **options)
    assert "noisyica" in terminal()


def test_the_annealed_likelihood(terminal, X):
    other = Model(np.random.default_rng(0).normal(size=(5, 2)), noise_variance=0.25, prior="lap")
    how = {"n_temperatures": 2, "n_particles": 2}
    other.log_likelihood(X, **how, verbose=False)
    assert terminal() == ""
    other.log_likelihood(X, **how)
    assert "noisyica rows" in terminal()


@pytest.mark.parametrize("verbose", [True, False])
@pytest.mark.slow
def test_estimators(terminal, X, verbose):
    settings = {"max_iter": 20, "tol": 0, "random_state": 0, "n_init": 2, "verbose": verbose}
    ica = NoisyICA(2, **settings).fit(X)
    assert ("noisyica saem" in terminal()) == verbose
    uses = {
        "transform": lambda: ica.transform(X),
        "map": lambda: ica.set_params(transform_algorithm="map").transform(X),
        "score": lambda: ica.score(X),
        "bic": lambda: ica.bic(X),
        "standard_errors": lambda: ica.standard_errors(X),
    }
    shown = {}
    for name, use in uses.items():
        use()
        shown[name] = "noisyica" in terminal()
    assert shown == dict.fromkeys(uses, verbose)


@pytest.mark.parametrize("verbose", [True, False])
@pytest.mark.slow
def test_the_likelihood_that_reliability_looks_at(terminal, X, verbose):
    settings = {"prior": "lap", "max_iter": 201, "tol": 0, "random_state": 0, "verbose": verbose}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*components are doubtful", UserWarning)
        NoisyICA(2, **settings).fit(X)
    assert ("noisyica rows" in terminal()) == verbose


def test_short_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 100.0)
    with Reporter("work", 3, True) as reporter:
        reporter.update(1)
    assert terminal() == ""


def test_one_line_at_a_time(terminal):
    """A note that is not shown is not made."""
    made = []
    with Reporter("outer", 3, True) as outer:
        outer.update(1, lambda: made.append("outer") or "so far")
        with Reporter("inner", 3, True) as inner:
            inner.update(1, lambda: made.append("inner") or "inside")
    assert made == ["outer"]
    written = terminal()
    assert "outer" in written
    assert "inner" not in written
    with Reporter("next", 3, True) as later:  # the place is free again
        later.update(2)
    assert "next" in terminal()


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    with Reporter("work", 3, True) as reporter:
        reporter.update(1)
    assert capsys.readouterr().err == ""
