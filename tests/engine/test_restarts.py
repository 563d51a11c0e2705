"""Algorithms, restarts, and what the history says."""

from types import SimpleNamespace

import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica.engine import outcome, restarts
from noisyica.engine.convergence import Monitor, convergence_time, similarity
from noisyica.engine.restarts import best_run
from noisyica.engine.state import Run, Schedule, State, drift_groups
from noisyica.engine.statistics import Statistics
from noisyica.engine.watch import Watch
from noisyica.posterior.parameters import Parameters
from tests.tools import matched_cosine, simulate, some_slow


@pytest.mark.slow
def test_restarts_run_together_and_are_compared():
    model, X = simulate("bg", n=400, d=16, p=3, sigma=0.5)
    ica = NoisyICA(3, n_init=4, tol=0, max_iter=300, random_state=0).fit(X)
    assert ica.stability_.shape == (3, 3)
    assert ica.stability_.min() > 0.99
    assert matched_cosine(model.mixing, ica.mixing_) > 0.98
    # noise is all that there is: restarts find nothing in common
    noise = NoisyICA(3, n_init=4, tol=0, max_iter=60, random_state=0).fit(
        np.random.default_rng(0).normal(size=(400, 16))
    )
    assert noise.stability_.mean() < 0.9


def ended_at(A, sigma2=0.25):
    """Return a run that ended at these parameters, of which it has nothing but A and the noise."""
    parameters = Parameters(A, np.zeros(len(A)), np.asarray(sigma2), priors.get("bg"))
    statistics = Statistics(*10 * [None])
    return Run(State(np.asarray(9), parameters, statistics, *4 * [None]), None, {})


def test_the_likeliest_run_is_kept_and_twins_are_scored_once():
    A, B = np.random.default_rng(0).normal(size=(2, 6, 3))
    broken = np.full((6, 3), np.nan)
    scores = {id(A): -2.0, id(B): -1.0, id(broken): np.nan}
    scored = []

    def score(state):
        scored.append(state.estimate.A)
        return scores[id(state.estimate.A)]

    # the second is the first in another order and with other signs
    runs = [ended_at(A), ended_at(-A[:, ::-1]), ended_at(broken), ended_at(B), ended_at(B)]
    assert best_run(runs, score) == 3
    assert [id(one) for one in scored] == [id(A), id(broken), id(B)]
    scores[id(A)] = 0.0
    assert best_run(runs, score) == 0
    scored.clear()
    best_run([ended_at(A), ended_at(A, 0.3)], score)
    assert len(scored) == 2  # the same components, but not the same noise


@pytest.mark.parametrize("name", ["ifa"])
@pytest.mark.slow
def test_saem_ends_where_em_does(name):
    """From the same start, within 0.05 nats an observation."""
    _, X = simulate(name, n=200, d=12, p=2, sigma=0.5)
    em, saem = (
        NoisyICA(
            2,
            prior=name,
            algorithm=algorithm,
            mixing_prior=None,
            tol=0,
            max_iter=600,
            random_state=0,
        ).fit(X)
        for algorithm in ("em", "saem")
    )
    likelihoods = [ica.model_.log_likelihood(X, n_particles=20).mean() for ica in (em, saem)]
    assert abs(likelihoods[0] - likelihoods[1]) < 0.05
    assert matched_cosine(em.mixing_, saem.mixing_) > 0.99


@pytest.mark.parametrize("name", some_slow(["log", "lap", "teoff"], "lap"))
def test_fam_em(name, monkeypatch):
    """FAM-EM finds components, holds the mean square of beta, and lowers the paper's objective."""
    learnt, attributes = [], outcome.fitted_attributes

    def note(run, *others):
        learnt.append(run.state.statistics)
        return attributes(run, *others)

    monkeypatch.setattr(outcome, "fitted_attributes", note)
    model, X = simulate(name, n=400, d=12, p=2, sigma=0.5)
    rough = model.mixing + 0.5 * np.random.default_rng(1).normal(size=model.mixing.shape)
    assert matched_cosine(model.mixing, rough) < 0.94
    ica = NoisyICA(
        2,
        noise="isotropic",
        prior=name,
        algorithm="fam-em",
        init=rough,
        tol=0,
        max_iter=60,
        random_state=0,
    ).fit(X)
    assert matched_cosine(model.mixing, ica.mixing_) > 0.97
    # biased low: p of d dimensions of the noise are taken for coefficients
    assert 0.9 * 0.25 * (1 - 2 / 12) < ica.noise_variance_ < 0.25
    # of the coefficients about their mean, which is nearly zero
    variances = np.diag(learnt[0].bb) - np.square(learnt[0].b)
    assert variances.mean() == pytest.approx(float(ica.prior_.mean_square()), rel=0.02)

    def objective(model):
        beta, offset = model.map(X, return_offset=True)
        noise = 0.5 * 12 * np.log(2 * np.pi * model.noise_variance)
        return model.map_objective(X, beta, offset).mean() + noise

    mean = None if model.prior.has_offset else X.mean(0)
    begun = Model(rough, mean, model.noise_variance, model.prior)
    assert objective(ica.model_) < objective(begun) - 0.1


def test_em_says_what_it_cannot_do():
    X = np.random.default_rng(0).normal(size=(50, 20))
    with pytest.raises(ValueError, match="no exact E-step"):
        NoisyICA(2, prior="log", algorithm="em").fit(X)
    with pytest.raises(ValueError, match="states"):
        NoisyICA(20, prior="bg", algorithm="em").fit(X)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing"):
        NoisyICA(2, prior="bg", algorithm="em").fit(X)


def test_warm_start_goes_on():
    _, X = simulate("bg", n=300, d=12, p=2, sigma=0.5)
    ica = NoisyICA(2, tol=0, max_iter=300, warm_start=True, random_state=0).fit(X)
    before = ica.mixing_
    assert len(ica.history_["alpha"]) == 300
    ica.set_params(max_iter=3, burn_in=0.0).fit(X)
    # the history is put together when it is asked for: it is not the first fit's
    assert ica.n_iter_ == len(ica.history_["alpha"]) == 3
    assert matched_cosine(before, ica.mixing_) > 0.998
    # three iterations are not enough to find A anew
    cold = NoisyICA(2, tol=0, max_iter=3, burn_in=0.0, init="random", random_state=0).fit(X)
    assert np.linalg.norm(ica.mixing_ - before) < 0.15 * np.linalg.norm(cold.mixing_ - before)
    # A goes on, with another kind of prior and of mean
    ica.set_params(prior=priors.BernoulliGaussian(0.5, 1.0), mean="zero").fit(X)
    assert ica.prior_.shift == 1.0
    assert not ica.mean_.any()


def test_a_callback_may_end_a_fit_without_a_warning():
    _, X = simulate("bg", n=300, d=12, p=2, sigma=0.5)
    ica = NoisyICA(2, callback=lambda iteration, model: True, random_state=0).fit(X)
    assert ica.n_iter_ < 100
    with pytest.raises(TypeError, match="callback must be a function"):
        NoisyICA(2, callback=3).fit(X)


def _chain(n, drift, seed):
    """Return twenty slow autoregressions that drift by so many deviations in 100 iterations."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 20))
    x[0] = rng.normal(size=20)
    for t in range(1, n):
        x[t] = 0.8 * x[t - 1] + 0.6 * rng.normal(size=20)
    return 100 + x + drift * np.arange(n)[:, None] / 100


@pytest.mark.parametrize(("drift", "stops"), [(0.0, 10), (10.0, 0)])
def test_monitor_tells_rest_from_drift(drift, stops):
    count = 0
    for seed in range(10):
        monitor, signal = Monitor(burn_in=100, tol=1e-6), _chain(600, drift, seed)
        looks = [monitor.converged([signal[:t]]) for t in range(50, 601, 50)]
        count += looks[-1]
    assert count == stops


def test_a_run_has_not_converged_while_a_parameter_of_the_prior_falls():
    for seed in range(10):
        monitor, components = Monitor(burn_in=100, tol=1e-6), _chain(600, 0.0, seed)
        prior, noise = _chain(600, -3.0, seed + 10)[:, :1], _chain(600, 0.0, seed + 20)[:, :1]
        times = range(50, 601, 50)
        assert not any(monitor.converged([components[:t], prior[:t], noise[:t]]) for t in times)


def test_what_is_recorded_of_draws_is_that_of_the_components_the_prior_and_the_noise():
    _, X = simulate("bg", n=200, d=6, p=2, sigma=0.5)
    seen = []

    class Kept(Watch):
        def take_note(self, runs):
            seen.append(runs[0])
            return super().take_note(runs)

    for hidden in ("normal", None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("noisyica.estimator.Watch", Kept)
            settings = {"noise": "isotropic", "burn_in": 1.0, "max_iter": 60, "tol": 0}
            NoisyICA(2, mixing_prior=hidden, random_state=0, **settings).fit(X)
        run = seen[-1]
        components, prior, noise = drift_groups(run)
        assert components.shape == (60, 2 + 4 * 2)
        # with steps of 1 the parameters are those of the last draws
        (weights,) = (
            trace[-1]
            for name, trace in run.history.items()
            if name.startswith("prior") and trace.shape[1:] == (2,)
        )
        np.testing.assert_allclose(prior[-1] / prior[-1].sum(), weights, rtol=1e-5)
        np.testing.assert_allclose(
            noise[20:].mean(), run.history["noise_variance"][20:].mean(), rtol=0.1
        )


def test_monitor_is_off_without_a_tolerance():
    monitor = Monitor(burn_in=0, tol=0.0)
    assert not monitor.converged([np.zeros((500, 3))])


def test_convergence_time_and_similarity():
    steps = np.exp(
        -np.arange(100) / 5.0
    )  # a thousandth of the way left after 5 log(1000) = 34.5 steps
    sketch = steps[:, None, None] * np.ones((1, 4, 2))
    assert convergence_time(sketch - sketch[-1]) == 36
    A = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))[0]
    np.testing.assert_allclose(similarity(A, [-A[:, ::-1], A]), 1.0)
    B = np.column_stack([A[:, 0], A[:, 1] + A[:, 2], A[:, 1] - A[:, 2]])
    np.testing.assert_allclose(similarity(A, [B])[0], [1.0, np.sqrt(0.5), np.sqrt(0.5)])


def test_weights_count_rows():
    """Rows of weight 2 count twice, those of weight 0 not at all.

    The mean is the same, and estimates are within a few standard errors.
    """
    model, X = simulate("bg", n=600, d=12, p=2, sigma=0.5)
    weight = np.repeat([0.0, 1.0, 2.0], 200)
    X[:200] = 1e3  # which nobody must see
    weighted = NoisyICA(2, noise="isotropic", tol=0, max_iter=300, random_state=0).fit(
        X, sample_weight=weight
    )
    repeated = NoisyICA(2, noise="isotropic", tol=0, max_iter=300, random_state=0).fit(
        np.repeat(X, weight.astype(int), axis=0)
    )
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=0.01)
    assert matched_cosine(weighted.mixing_, repeated.mixing_) > 0.999
    errors = weighted.standard_errors(X, sample_weight=weight)
    others = repeated.standard_errors(np.repeat(X, weight.astype(int), axis=0))
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, atol=0.5 * errors["mean"].max())
    assert errors["mixing"].mean() == pytest.approx(others["mixing"].mean(), rel=0.1)
    with pytest.raises(ValueError, match="sample_weight must be 600 finite numbers"):
        NoisyICA(2).fit(X, sample_weight=-weight)
    with pytest.raises(TypeError):
        NoisyICA(2).fit(X, simple_weight=weight)


def test_draws_of_mcem_may_grow():
    schedule = Schedule(10, 0.9, (2, 20), 10)
    assert [int(schedule.n_sweeps(t)) for t in (0, 3, 9)] == [2, 8, 20]
    model, X = simulate("bg", n=300, d=12, p=2, sigma=0.5)
    fits = [
        NoisyICA(
            2, algorithm="mcem", mixing_prior=None, n_draws=n, tol=0, max_iter=80, random_state=0
        )
        .fit(X)
        .history_["alpha"][-20:]
        for n in ((1, 40), 1)
    ]
    assert fits[0].std() < 0.5 * fits[1].std()  # a seventh, by the number of draws
    for wrong in ((1, 2, 3), (0, 5), "many"):
        with pytest.raises(ValueError, match="n_draws"):
            NoisyICA(2, algorithm="mcem", n_draws=wrong).fit(X)


def test_boundaries_send_a_run_back_to_its_start():
    _, X = simulate("bg", n=300, d=12, p=2, sigma=0.5)
    ica = NoisyICA(2, boundaries=True, tol=0, max_iter=60, random_state=0).fit(X)
    free = NoisyICA(2, tol=0, max_iter=60, random_state=0).fit(X)
    assert not ica.history_["returns"].any()
    np.testing.assert_array_equal(ica.components_, free.components_)


@pytest.mark.slow
def test_many_components_in_two_groups_do_not_wait_for_each_other():
    """Batches of large matrices in two threads at once: this used to hang."""
    X = np.random.default_rng(0).laplace(size=(100, 40))
    assert NoisyICA(30, n_init=8, max_iter=3, tol=0, random_state=0).fit(X).stability_.shape == (
        7,
        30,
    )


def test_runs_that_agree_need_no_score():
    """One score for each place where runs end, and none where they all end in the same place."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 6, 2))
    near = first[:, ::-1] * [1, -1] + 1e-4

    def state(A):
        return SimpleNamespace(estimate=SimpleNamespace(A=A, sigma2=np.ones(())))

    def agree(a, b):
        return restarts._same_components(a, b, restarts.SAME_PLACE)

    scored = []

    def score(of):
        scored.append(of)
        return float(of.estimate.A is second)

    same, other = [state(first), state(near)], state(second)
    assert restarts._best(same, score, agree) == 0
    assert not scored
    assert restarts._best([*same, other], score, agree) == 2
    assert len(scored) == 2
