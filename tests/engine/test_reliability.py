"""How reliable components are: halves of the rows, and what a fit says of them."""

import re
import runpy
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, spearmanr
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline

from noisyica import Model, NoisyICA, laws, priors
from noisyica._jax.precision import double_precision
from noisyica.engine import reliability as subject
from noisyica.engine import starting
from noisyica.engine import task as task_module
from noisyica.engine.convergence import similarity
from noisyica.engine.task import prepare
from noisyica.rows import block
from noisyica.rows.source import Rows
from tests.tools import simulate, some_slow


def fit_quietly(X, p, **settings):
    """Return a fit with its warnings left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NoisyICA(p, **{"random_state": 0, **settings}).fit(X)


def test_components_that_the_rows_determine_are_reliable():
    model, X = simulate("bg", n=600, d=16, p=3, sigma=0.3)
    ica = NoisyICA(3, random_state=0).fit(X)  # without a warning
    assert similarity(ica.mixing_, [model.mixing]).min() > 0.99
    assert ica.reliability_.shape == (3,)
    assert (ica.reliability_ > subject.RELIABLE).all()
    assert not hasattr(ica, "stability_")


def test_a_rotation_that_nothing_determines_is_doubtful_even_where_starts_agree():
    """Normal coefficients: the optimum is that of these rows, and other rows have another."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(150, 4)) @ rng.normal(size=(4, 12)) + 0.2 * rng.normal(size=(150, 12))
    with pytest.warns(UserWarning, match=r"components are doubtful \(") as told:
        ica = NoisyICA(4, prior="log", noise="isotropic", n_init=3, random_state=0).fit(X)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert ica.stability_.min() > 0.99  # all starts find the same optimum
    assert (ica.reliability_ < subject.RELIABLE).all()
    named = re.search(r"doubtful \(([\d, ]+)\)", str(told[0].message)).group(1)
    poor = np.flatnonzero(ica.reliability_ < subject.DOUBTFUL)
    assert [int(j) for j in named.split(",")] == poor.tolist()


@pytest.mark.slow
def test_a_search_warns_once_of_the_fit_that_it_keeps():
    """Of each fit before, the score is all that is kept."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    ica = NoisyICA(2, prior="log", max_iter=201, tol=0, random_state=0)
    search = GridSearchCV(make_pipeline(ica), {"noisyica__mean": ["free", "shift"]}, cv=2)
    with pytest.warns(UserWarning, match="components are doubtful") as told:
        search.fit(X)
    assert len(told) == 1
    best = search.best_estimator_[0]
    assert subject.warning(best.reliability_) == str(told[0].message)
    kept = cross_validate(ica, X, cv=2, return_estimator=True)["estimator"]  # without a warning
    assert all(subject.warning(fit.reliability_) for fit in kept)


@pytest.mark.slow
def test_the_stated_reliability_predicts_the_true_cosine():
    """The thirty kinds of data of benchmarks/reliability.py, from well to hardly determined."""
    path = Path(__file__).parents[2] / "benchmarks" / "reliability.py"
    benchmark = SimpleNamespace(**runpy.run_path(str(path)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [benchmark.measure(kind, seed) for seed, kind in enumerate(benchmark.KINDS)]
    true, stated = (np.concatenate(values) for values in zip(*found, strict=True))
    assert spearmanr(true, stated)[0] > 0.8
    assert (true < 0.8).sum() > 20
    assert true[stated >= subject.RELIABLE].min() >= 0.8
    assert (stated >= subject.RELIABLE).sum() > 30
    assert (stated[true < 0.8] < subject.DOUBTFUL).mean() > 0.8  # and they are warned of


def test_chance_is_that_of_random_rotations():
    """Two orthogonal components: the angle to the nearest match is uniform on -45 to 45 degrees."""
    A = np.eye(5)[:, :2]
    by_chance = subject._chance(A, np.random.default_rng(0))
    mean = np.sin(np.pi / 4) / (np.pi / 4)
    error = np.sqrt((0.5 + 1 / np.pi - mean**2) / 400)  # E cos^2 = 1/2 + 1/pi
    np.testing.assert_allclose(by_chance, mean, atol=4 * error)


@pytest.mark.parametrize("mean", ["free", "shift"])
def test_the_gain_is_that_over_normal_coefficients(monkeypatch, mean):
    """Against SciPy's normal density with the mean and the covariance of the fitted model."""
    gains = []

    def note(task, run, A, verbose):
        gains.append(subject.gain(task, run, verbose))
        return np.ones(A.shape[1])

    monkeypatch.setattr("noisyica.estimator.reliability", note)
    _, X = simulate("bg", n=200, d=6, p=2, sigma=0.5)
    ica = NoisyICA(2, mean=mean, noise="isotropic", max_iter=201, tol=0, random_state=0).fit(X)
    A, prior = ica.mixing_, ica.prior_
    covariance = prior.variance() * A @ A.T + ica.noise_variance_ * np.eye(6)
    normal = multivariate_normal(ica.mean_ + A.sum(1) * prior.mean(), covariance)
    expected = (ica.score_samples(X) - normal.logpdf(X)).sum()
    assert expected > 1
    assert gains == pytest.approx([expected], abs=0.01)  # rows are scored in single precision


@pytest.mark.slow
def test_the_gain_of_some_rows_has_an_error(monkeypatch):
    """Half of the rows taken twice seem to be all of them; taken once, their mean has an error."""
    gains = []

    def note(task, run, A, verbose):
        half = task.scored[:256]
        gains.extend(
            subject.gain(task._replace(scored=rows), run, verbose)
            for rows in (np.concatenate([half, half]), half)
        )
        return np.ones(A.shape[1])

    monkeypatch.setattr("noisyica.estimator.reliability", note)
    _, X = simulate("bg", n=512, d=6, p=2, sigma=0.5)
    ica = NoisyICA(2, noise="isotropic", max_iter=201, tol=0, random_state=0).fit(X)
    A, plain = ica.mixing_ * np.sqrt(ica.prior_.variance()), priors.Independent(laws.Normal())
    normal = Model(A, ica.mean_, ica.noise_variance_, plain)
    spread = (ica.score_samples(X) - normal.log_likelihood(X)).std()
    # that of all rows, for that of half of them: its own error is a few per cent
    assert gains[0] - gains[1] == pytest.approx(512 * spread * np.sqrt(0.5 / 256), rel=0.25)


def test_one_start_and_short_fits_are_not_checked():
    _, X = simulate("bg", n=100, d=10, p=2, sigma=0.5)
    checked = fit_quietly(X, 2, max_iter=201, tol=0)
    alone = NoisyICA(2, n_init=1, max_iter=201, tol=0, random_state=0).fit(X)
    short = NoisyICA(2, max_iter=200, tol=0, random_state=0).fit(X)
    assert hasattr(checked, "reliability_")
    assert not hasattr(alone, "reliability_")
    assert not hasattr(short, "reliability_")
    np.testing.assert_array_equal(checked.components_, alone.components_)  # it changes nothing
    checked.set_params(n_init=1).fit(X)
    assert not hasattr(checked, "reliability_")


@pytest.mark.slow
def test_it_is_reproducible_and_is_kept_by_files(tmp_path):
    _, X = simulate("lap", n=120, d=10, p=3, sigma=0.5)
    settings = {"prior": "lap", "max_iter": 260, "tol": 0}
    first = fit_quietly(X, 3, **settings)
    stopped = tmp_path / "checkpoint"

    def stop(iteration, model):
        if iteration > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_quietly(X, 3, **settings, checkpoint=stopped, callback=stop)
    resumed = fit_quietly(X, 3, **settings, checkpoint=stopped)
    np.testing.assert_array_equal(first.reliability_, resumed.reliability_)
    first.save(tmp_path / "model.npz")
    loaded = NoisyICA.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(first.reliability_, loaded.reliability_)


@pytest.mark.parametrize(
    "case",
    some_slow(
        ["missing", "weights", "offset", "more than columns", "em", "one"], "weights", "offset"
    ),
)
@pytest.mark.slow
def test_it_works_for_all_kinds_of_fits(case):
    settings, weight, p = {"max_iter": 201, "tol": 0}, None, 3
    X = simulate("bg", n=90, d=8, p=3, sigma=0.4)[1]
    if case == "missing":
        X[::3, 1] = np.nan
        X[2:, 4] = np.nan  # nothing is left of it in most halves
    elif case == "weights":
        weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    elif case == "offset":
        settings |= {"mean": "offset"}
    elif case == "em":
        settings |= {"algorithm": "em"}
    else:
        p = 10 if case == "more than columns" else 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*components are doubtful", UserWarning)
        ica = NoisyICA(p, random_state=0, **settings).fit(X, sample_weight=weight)
    assert ica.reliability_.shape == (p,)
    assert ((ica.reliability_ >= 0) & (ica.reliability_ <= 1 + 1e-9)).all()


def test_three_rows_have_no_halves():
    X = np.random.default_rng(0).normal(size=(3, 4))
    with pytest.warns(UserWarning, match="1 of 1 components are doubtful"):
        ica = NoisyICA(1, max_iter=201, tol=0, random_state=0).fit(X)
    assert np.isnan(ica.reliability_).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rows_per_block", "few"), [(16, 1e9), (64, 1e9), (64, 0)])
def test_a_part_of_the_rows_has_their_sums(monkeypatch, rows_per_block, few, weighted):
    monkeypatch.setattr(block, "ROWS_ON_CPU", rows_per_block)
    monkeypatch.setattr(task_module, "FEW_PRODUCTS", few)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[5, 1] = np.nan
    weight = rng.integers(0, 4, 40).astype(float) if weighted else None
    kept = np.arange(40) if weight is None else np.flatnonzero(weight)
    numbers = np.sort(rng.choice(len(kept), 10, replace=False))
    with double_precision():
        task = prepare(NoisyICA(2, random_state=0), Rows(X, weight))
        part, share = task.part(numbers)
    blocks = part.blocks
    rows = (X[kept[numbers]] - task.rows.centre) / task.rows.unit
    counts = np.ones(10) if weight is None else weight[kept[numbers]]
    assert share == pytest.approx(counts.sum() / (40 if weight is None else weight.sum()))
    relative = np.asarray(blocks.weight, float).sum()
    mean = np.asarray(blocks.sum_x).sum(0) / relative
    np.testing.assert_allclose(mean, counts @ np.nan_to_num(rows) / counts.sum(), atol=1e-6)
    square = np.asarray(blocks.sum_xx).sum(0) / relative
    expected = counts @ np.square(np.nan_to_num(rows)) / counts.sum()
    np.testing.assert_allclose(square, expected, rtol=1e-6)
    seen = np.einsum("kdn,kn->d", np.asarray(blocks.x, float), np.asarray(blocks.weight, float))
    np.testing.assert_allclose(seen / relative, mean, atol=1e-6)


def test_starts_are_compared_on_rows_from_all_blocks(monkeypatch):
    """The rows may be sorted: the first block alone need not be like the others."""
    monkeypatch.setattr(block, "ROWS_ON_CPU", 64)
    X = np.repeat(np.arange(256.0), 4).reshape(256, 4) + np.random.default_rng(0).normal(
        size=(256, 4)
    )
    seen = []

    def best_start(rows, starts, *others):
        seen.append(np.asarray(rows.blocks.x)[0].mean(0))
        return starts[0]

    monkeypatch.setattr(starting, "best_start", best_start)
    NoisyICA(2, prior="te", max_iter=2, random_state=0).fit(X)
    (rows,) = seen
    assert rows.shape == (64,)
    assert (rows[:-1] <= rows[1:] + 0.2).all()  # in order, and from the first rows to the last
    assert rows[0] < -1
    assert rows[-1] > 1


@pytest.mark.slow
def test_a_warm_start_with_more_components_tells_how_its_two_runs_agree():
    _, X = simulate("bg", n=100, d=10, p=3, sigma=0.5)
    ica = NoisyICA(2, warm_start=True, max_iter=60, tol=0, random_state=0).fit(X)
    assert not hasattr(ica, "stability_")
    assert ica.set_params(n_components=3).fit(X).stability_.shape == (1, 3)
    assert ica.set_params(n_components=4, n_init=2).fit(X).stability_.shape == (2, 4)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "some", None, True])
def test_n_init_is_checked(wrong):
    with pytest.raises(ValueError, match="n_init must be an integer of at least 1, or 'auto'"):
        NoisyICA(2, n_init=wrong).fit(np.eye(5))
