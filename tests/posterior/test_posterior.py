"""Summaries and diagnostics of posterior draws."""

import sys
import types

import numpy as np
import pytest
import scipy.stats

from noisyica import Model, Posterior
from tests.tools import TRUE_PRIORS


@pytest.mark.parametrize(
    ("name", "dof"),
    [
        *(("log", None), ("bg", None), ("adaptive", 3.0)),
        *(pytest.param(name, None, marks=pytest.mark.slow) for name in ("ebg", "teoff")),
    ],
)
def test_intervals_and_probabilities_are_calibrated(name, dof):
    A, prior = np.random.default_rng(1).normal(size=(8, 4)), TRUE_PRIORS[name]
    model = Model(A, noise_variance=1.0, prior=prior, noise_dof=dof)
    X, beta = model.sample(500, random_state=1)
    posterior = model.posterior(X, n_draws=250, random_state=0)
    on = beta != 0
    for given_on, rows in ((False, np.ones_like(on)), (True, on)):
        low, high = np.moveaxis(posterior.interval(0.9, given_on=given_on), -1, 0)
        inside = ((low <= beta) & (beta <= high))[rows]
        # an interval that ends in an atom has more than 90 % of the probability
        margin = 4 * np.sqrt(0.09 / inside.size)
        assert 0.9 - margin < inside.mean() < 0.9 + margin + 0.02 * (not given_on)
    draws = posterior.draws.reshape(-1, *beta.shape)
    for probability, event, drawn in (
        (posterior.probability_on(), on, draws != 0),
        (posterior.probability_positive(), beta > 0, draws > 0),
        (posterior.probability_negative(), beta < 0, draws < 0),
    ):
        for part in range(4):  # reliability: of events of probability 0.3, 30 % occur
            some = (probability >= part / 4) & (probability <= (part + 1) / 4)
            excess = ((event - probability) * some).sum()
            # the coefficients of a row depend on each other, as they do in the draws
            variance = (drawn * some).sum(-1).var(0).sum()
            assert abs(excess) < 4.5 * np.sqrt(variance + 1)


def test_summaries():
    draws = np.random.default_rng(0).normal(size=(4, 1000, 2, 3))
    draws[:, :, 0, 0] = 0
    draws[:, ::2, 0, 1] = 0
    posterior = Posterior(draws)
    flat = draws.reshape(-1, 2, 3)
    np.testing.assert_allclose(posterior.mean(), flat.mean(0))
    np.testing.assert_allclose(posterior.std(), flat.std(0))
    np.testing.assert_allclose(posterior.probability_on(), (flat != 0).mean(0))
    np.testing.assert_allclose(
        posterior.probability_positive() + posterior.probability_negative(),
        posterior.probability_on(),
    )
    np.testing.assert_allclose(
        posterior.interval(0.8)[1, 2], np.quantile(flat[:, 1, 2], (0.1, 0.9))
    )
    on = posterior.interval(0.8, given_on=True)
    assert np.isnan(on[0, 0]).all()
    np.testing.assert_allclose(on[0, 1], np.quantile(draws[:, 1::2, 0, 1], (0.1, 0.9)))
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        posterior.interval(90)


def autoregression(phi, chains=4, count=4000):
    noise = np.random.default_rng(1).normal(size=(chains, count, 1, 1)) * np.sqrt(1 - phi**2)
    draws = np.zeros_like(noise)
    for t in range(1, count):
        draws[:, t] = phi * draws[:, t - 1] + noise[:, t]
    return draws


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(phi):
    """n (1 - phi) / (1 + phi) in theory.

    The sum of autocorrelations over a window of m lags has the relative standard error
    sqrt(2 (2 m + 1) / n) (Geyer, 1992); the window here is a few correlation times, at most 40
    lags at phi = 0.9.
    """
    posterior = Posterior(autoregression(phi))
    lags = 4 / (1 - phi)
    assert posterior.ess()[0, 0] == pytest.approx(
        16000 * (1 - phi) / (1 + phi), rel=4 * np.sqrt(2 * (2 * lags + 1) / 16000)
    )
    assert posterior.rhat()[0, 0] < 1.01


def test_rhat_tells_chains_that_disagree_in_place_or_in_spread():
    draws = autoregression(0.0)
    moved, wider = draws.copy(), draws.copy()
    moved[0] += 1
    wider[0] *= 3
    assert Posterior(moved).rhat()[0, 0] > 1.05
    assert Posterior(wider).rhat()[0, 0] > 1.05
    constant = Posterior(np.zeros((4, 100, 1, 1)))
    assert constant.rhat()[0, 0] == 1
    assert constant.ess()[0, 0] == 400
    with pytest.raises(ValueError, match="at least 4 draws"):
        Posterior(np.zeros((4, 3, 1, 1))).ess()


# ArviZ 0.x announces its new version once per day, when it is imported
announcement = pytest.mark.filterwarnings(
    r"ignore:\s*ArviZ is undergoing a major refactor:FutureWarning"
)


@announcement
def test_arviz_has_the_draws_and_agrees():
    import arviz

    draws = np.concatenate([autoregression(0.7), autoregression(0.2)], axis=2)
    draws[0, :, 1] += 0.05
    data = Posterior(draws).to_arviz()
    beta = data["posterior"]["beta"]
    assert beta.dims == ("chain", "draw", "row", "component")
    np.testing.assert_array_equal(beta.to_numpy(), draws)
    ess, rhat = (function(data)["beta"].to_numpy() for function in (arviz.ess, arviz.rhat))
    np.testing.assert_allclose(ess, Posterior(draws).ess(), rtol=0.02)
    np.testing.assert_allclose(rhat, Posterior(draws).rhat(), rtol=1e-3)


@announcement
@pytest.mark.parametrize("dof", [None, 5.0])
def test_arviz_has_the_likelihood_of_rows_and_the_names(dof):
    """Left out, a row has the likelihood with its coefficients integrated out."""
    import arviz
    import pandas

    A = np.random.default_rng(0).normal(size=(3, 2))
    mean, noise = np.array([1.0, 0.0, -1.0]), np.array([2.0, 3.0, 4.0])
    model = Model(A, mean, noise, "bg", noise_dof=dof)
    X = pandas.DataFrame(model.sample(40, random_state=0)[0], columns=["a", "b", "c"])
    X.index = [f"r{i}" for i in range(40)]
    X.iloc[3, 1] = np.nan
    posterior = model.posterior(X, random_state=0)
    data = posterior.to_arviz(model, X)
    beta, x = data["posterior"]["beta"], data["observed_data"]["x"]
    assert list(beta.coords["row"].to_numpy()) == list(x.coords["row"].to_numpy()) == list(X.index)
    assert list(beta.coords["component"].to_numpy()) == ["component0", "component1"]
    assert list(x.coords["column"].to_numpy()) == ["a", "b", "c"]
    levels = X.set_axis(pandas.MultiIndex.from_product([["s"], X.index]), axis=0)
    pairs = posterior.to_arviz(model, levels)["observed_data"]["x"].coords["row"].to_numpy()
    assert pairs[0] == "('s', 'r0')"
    listed = posterior.to_arviz(model, X.to_numpy().tolist())["observed_data"]["x"]
    np.testing.assert_array_equal(listed, x)
    known = data["constant_data"]
    np.testing.assert_array_equal(known["mixing"], A)
    np.testing.assert_array_equal(known["noise_variance"], noise)
    assert ("noise_dof" in known) == (dof is not None)
    likelihood = data["log_likelihood"]["rows"]
    assert likelihood.dims == ("chain", "draw", "row")
    residual = X.to_numpy() - mean - posterior.draws[1, 7] @ A.T
    if dof is None:
        expected = np.nansum(scipy.stats.norm.logpdf(residual, scale=np.sqrt(noise)), 1)
    else:
        seen = [np.flatnonzero(np.isfinite(row)) for row in residual]
        expected = [
            scipy.stats.multivariate_t.logpdf(row[i], shape=np.diag(noise[i]), df=dof)
            for row, i in zip(residual, seen, strict=True)
        ]
    np.testing.assert_allclose(likelihood[1, 7], expected, rtol=1e-5)
    loo = arviz.loo(data, pointwise=True)
    reliable = np.asarray(loo.pareto_k) < 0.5
    assert reliable.mean() > 0.9
    exact, error = model.log_likelihood(X, return_std=True)
    # 0.1 is for the Monte-Carlo error of a harmonic mean of 2,000 draws
    distance = np.abs(np.asarray(loo.loo_i) - exact)
    assert (distance < 0.1 + 3 * error)[reliable].all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"X": np.zeros((5, 4))}, "needs the model, too"),
        ({"model": "two"}, "The draws have 3 components, but the model has 2"),
        ({"model": "three", "X": np.zeros((6, 4))}, "X has 6 rows, but the draws are of 5"),
        ({"model": "teoff", "X": np.zeros((5, 4))}, "The draws have no offsets of rows"),
        ({"row_names": ["a"]}, "row_names must be 5 names; got 1"),
    ],
)
def test_what_arviz_cannot_have_is_said(arguments, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", types.SimpleNamespace(__version__="0.23.4"))
    models = {"two": Model(np.eye(4)[:, :2], prior="bg"), "three": Model(np.eye(4)[:, :3])}
    models["teoff"] = Model(np.eye(4)[:, :3], prior="teoff")
    if "model" in arguments:
        arguments = arguments | {"model": models[arguments["model"]]}
    with pytest.raises(ValueError, match=said):
        Posterior(np.zeros((2, 4, 5, 3), np.float32)).to_arviz(**arguments)


@pytest.mark.parametrize("version", ["0.17.1", "0.23.4", "1.0.0", "12.1"])
def test_arviz_is_called_as_its_version_wants_it(monkeypatch, version):
    """Groups are arguments before version 1, and since then one dictionary."""

    class ArviZ:
        __version__ = version

        @staticmethod
        def from_dict(*arguments, **options):
            return arguments, options

    monkeypatch.setitem(sys.modules, "arviz", ArviZ)
    draws = np.zeros((1, 4, 2, 3))
    arguments, options = Posterior(draws).to_arviz()
    assert options.pop("dims") == {"beta": ["row", "component"]}
    groups = options if version.startswith("0.") else arguments[0]
    assert len(arguments) == (not version.startswith("0."))
    assert groups["posterior"]["beta"] is draws


def test_arviz_is_missed_politely(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'noisyica\[arviz\]'"):
        Posterior(np.zeros((1, 4, 1, 1))).to_arviz()
