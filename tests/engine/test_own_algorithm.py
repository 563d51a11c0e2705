"""An algorithm that a user writes: one file, one line in the table."""

import inspect

import numpy as np
import pytest

from noisyica import NoisyICA
from noisyica.engine import algorithms
from noisyica.engine.settings import deciding_settings
from tests import own_algorithm
from tests.own_algorithm import TemperedSaem
from tests.tools import matched_cosine, simulate


def test_it_is_one_short_file():
    assert len(inspect.getsource(own_algorithm).splitlines()) < 60


@pytest.mark.parametrize("algorithm", ["tempered-saem", TemperedSaem(heat=10.0, until=30)])
def test_it_ends_where_saem_ends(algorithm):
    model, X = simulate("bg", n=500, d=12, p=3)
    settings = {"prior": "bg", "noise": "isotropic", "max_iter": 300, "random_state": 0}
    plain, tempered = (
        NoisyICA(3, algorithm=a, tol=0, **settings).fit(X) for a in ("saem", algorithm)
    )
    assert matched_cosine(model.mixing, tempered.mixing_) > 0.99
    assert tempered.noise_variance_ == pytest.approx(plain.noise_variance_, rel=0.02)
    # but it goes another way
    history, other = (ica.history_["noise_variance"][:20] for ica in (plain, tempered))
    assert np.abs(other / history - 1).max() > 0.02


def test_the_stopping_rule_applies_and_files_know_it(tmp_path):
    _, X = simulate("bg", n=300, d=8, p=2)
    ica = NoisyICA(2, algorithm="tempered-saem", random_state=0).fit(X)
    assert ica.converged_
    assert ica.n_iter_ < ica.max_iter
    ica.save(tmp_path / "model.npz")
    assert NoisyICA.load(tmp_path / "model.npz").algorithm == "tempered-saem"


def test_heat_is_in_the_draws(double):
    """With heat 1 it is SAEM, to the last digit."""
    _, X = simulate("bg", n=100, d=8, p=2)
    settings = {"max_iter": 5, "tol": 0, "random_state": 0, "dtype": "float64"}
    same, plain = (
        NoisyICA(2, algorithm=a, **settings).fit(X) for a in (TemperedSaem(heat=1.0), "saem")
    )
    assert same.mixing_ == pytest.approx(plain.mixing_, rel=1e-12)


def test_unknown_algorithms_are_refused():
    with pytest.raises(ValueError, match="Choose 'saem' or"):
        algorithms.get("anneal")
    with pytest.raises(ValueError, match="algorithm='anneal' is not known"):
        NoisyICA(2, algorithm="anneal").fit(np.eye(4))


def test_files_and_checkpoints_know_its_fields(tmp_path):
    _, X = simulate("bg", n=100, d=8, p=2)
    settings = {"max_iter": 5, "tol": 0, "random_state": 0}
    hot = NoisyICA(2, algorithm=TemperedSaem(heat=9.0), **settings).fit(X)
    hot.save(tmp_path / "model.npz")
    again = NoisyICA.load(tmp_path / "model.npz").algorithm
    assert (again.name, again.heat, again.until) == ("tempered-saem", 9.0, 50)
    one, other = (
        deciding_settings(NoisyICA(2, algorithm=TemperedSaem(heat=heat), **settings))[0]
        for heat in (9.0, 4.0)
    )
    assert one != other  # so that a fit does not go on from the other's checkpoint
    with pytest.raises(ValueError, match="algorithm 'unheard' is not known here: import"):
        algorithms.from_fields("unheard", {})


def test_draws_are_a_matter_of_the_algorithm_not_of_its_name():
    _, X = simulate("bg", n=100, d=8, p=2)
    settings = {"n_draws": 4, "max_iter": 5, "tol": 0, "random_state": 0, "dtype": "float64"}
    by_name, by_value = (
        NoisyICA(2, algorithm=algorithm, **settings).fit(X).mixing_
        for algorithm in ("mcem", algorithms.MonteCarloEM())
    )
    np.testing.assert_array_equal(by_name, by_value)
