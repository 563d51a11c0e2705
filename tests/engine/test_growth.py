"""Growing data: which rows take part when, and that the end is that of a fit to all rows."""

import jax
import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica.engine import growth, holding
from noisyica.engine.algorithms import MonteCarloEM, Saem
from noisyica.engine.convergence import similarity
from noisyica.engine.state import Schedule
from noisyica.engine.task import prepare
from noisyica.engine.watch import Watch
from noisyica.rows import block
from noisyica.rows.source import Rows

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "cpu", reason="the size of blocks is set for the CPU"
)


def test_the_number_of_blocks_grows_fourfold_and_ends_with_all():
    assert growth.sizes(500, Saem(), 1000, 31, 0.1) == [1, 4, 31]
    assert growth.sizes(500, Saem(), 1000, 305, 0.1) == [1, 4, 16, 64, 305]
    assert growth.sizes(500, Saem(), 1000, 305, 2.5) == [3, 12, 48, 305]
    assert growth.sizes(500, Saem(), 1000, 2, 1.0) == [1, 2]


@pytest.mark.parametrize(
    ("burn_in", "algorithm", "max_iter", "count", "first"),
    [
        (500, Saem(), 1000, 1, 0.1),  # one block has all rows
        (500, Saem(), 1000, 31, 16.0),  # the first stage needs more than half of the rows
        (500, Saem(), 1000, 31, np.inf),  # a component cannot be told from noise
        (50, Saem(), 1000, 31, 0.1),  # too short
        (500, Saem(), 600, 31, 0.1),  # no room after burn-in
        (500, MonteCarloEM(), 1000, 31, 0.1),  # nothing is averaged over iterations
    ],
)
def test_data_do_not_grow_where_that_would_not_help(burn_in, algorithm, max_iter, count, first):
    assert growth.sizes(burn_in, algorithm, max_iter, count, first) == [count]


def test_steps_fall_only_when_all_rows_take_part():
    schedule = Schedule(500, 0.9, (1, 1), 1000)
    begins = growth.first_iterations(500, 4)
    assert begins == [0, 500, 560, 590]
    grown = growth.growing_schedule(schedule, begins)
    assert grown.step_size(grown.burn_in) == 1 > grown.step_size(grown.burn_in + 1)
    assert grown.burn_in > begins[-1]
    # what is coarse ends with the first stage, as without growth it ends with burn-in
    t = np.arange(700)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(grown.coarse_rotation(t), schedule.coarse_rotation(t))
    assert growth.growing_schedule(schedule, [0]) == schedule


@pytest.mark.parametrize("every", [True, False])
def test_rows_join_at_random_and_once(every):
    order = growth.order_of_rows(1000, [10, 200], 3, every)
    assert len(order) == (1000 if every else 200)
    assert len(np.unique(order)) == len(order)
    for part in (order[:10], order[10:200], order[200:]):
        assert (np.diff(part) > 0).all()
    # the mean of 200 of 1,000 numbers at random: within four standard errors
    error = 1000 / np.sqrt(12 * 200) * np.sqrt(0.8)
    assert abs(order[:200].mean() - 499.5) < 4 * error
    again = growth.order_of_rows(1000, [10, 200], 4, every)
    assert (again[:200] != order[:200]).any()


def test_rows_needed_follow_the_weakest_component():
    """By simulation: so many rows tell the weakest direction to the angle that is asked for."""
    rng = np.random.default_rng(0)
    d, p, noise = 20, 2, 1.0
    spread = np.array([3.0, 2.0])
    directions = np.linalg.qr(rng.normal(size=(d, p)))[0]

    def rows(n):
        return rng.normal(size=(n, p)) * spread @ directions.T + np.sqrt(noise) * rng.normal(
            size=(n, d)
        )

    needed = growth.rows_needed(rows(20_000), p)
    expected = d * noise * (4 + noise) / (growth.MOST_ANGLE * 16)
    assert needed == pytest.approx(expected, rel=0.1)
    angles = []
    for _ in range(40):
        found = np.linalg.eigh(np.cov(rows(round(needed)).T))[1][:, -p:]
        angles.append(1 - np.square(directions[:, 1] @ found).sum())
    mean, error = np.mean(angles), np.std(angles) / np.sqrt(40)
    # d - p directions of noise, of d that the bound counts
    assert abs(mean - growth.MOST_ANGLE * (d - p) / d) < 4 * error + 0.1 * growth.MOST_ANGLE


def test_more_components_than_the_rows_show_need_all_rows():
    X = np.random.default_rng(0).normal(size=(5000, 10))
    assert growth.rows_needed(X, 5) > 1e4
    for seed in range(5):  # what rounding leaves of the other variances depends on the numbers
        flat = np.outer(X[:, 0], np.random.default_rng(seed).normal(size=10))
        assert growth.rows_needed(flat, 3) == np.inf


@pytest.fixture(scope="module")
def fits():
    """A fit of growing rows and one of all rows, with blocks of 512; the true components."""
    A = np.random.default_rng(0).normal(size=(16, 3))
    X = Model(A, None, 0.25, priors.BernoulliGaussian(0.3)).sample(12_000, random_state=0)[0]
    X = X[np.argsort(X[:, 0])]  # the first rows are not like the others
    patch = pytest.MonkeyPatch()
    patch.setattr(block, "ROWS_ON_CPU", 512)
    usual = {"n_components": 3, "prior": "bg", "noise": "student", "max_iter": 500}
    usual |= {"n_init": 1, "random_state": 0, "verbose": False}
    grown = NoisyICA(**usual).fit(X)
    whole = NoisyICA(**usual, grow=False).fit(X)
    yield A, X, grown, whole
    patch.undo()


def test_growing_rows_end_where_all_rows_do(fits):
    """Within a fraction of the standard errors: what is left is Monte-Carlo error."""
    A, X, grown, whole = fits
    assert grown.converged_
    assert similarity(A, [grown.mixing_]).min() > 0.9995
    match = [int(np.argmax(np.abs(grown.components_ @ row))) for row in whole.components_]
    assert sorted(match) == [0, 1, 2]
    errors = whole.components_std_
    difference = (grown.components_[match] - whole.components_) / errors
    assert np.sqrt(np.square(difference).mean()) < 0.6
    # the standard error of a variance from n d numbers
    assert abs(grown.noise_variance_ / whole.noise_variance_ - 1) < np.sqrt(2 / X.size)


@pytest.mark.usefixtures("double")
def test_few_rows_take_part_at_first(fits):
    """In the first half of its iterations a fit sweeps one block of twenty-four."""
    _, X, grown, whole = fits
    stages = prepare(grown, Rows(X)).stages
    assert [int(stage.sweeper.active) for stage in stages] == [1, 4, 24]
    assert [stage.first for stage in stages] == [0, 250, 280]
    shares = [float(stage.constants.total_weight) for stage in stages]
    assert shares == pytest.approx([512, 2048, 12_000])
    assert [stage.first for stage in prepare(whole, Rows(X)).stages] == [0]
    assert grown.n_iter_ < whole.n_iter_ + 50


def test_weights_of_rows_are_in_the_order_of_the_rows(fits):
    """Rows were put into another order: their weights tell the same rows as outlying."""
    _, X, grown, whole = fits
    assert grown.row_weights_.shape == (len(X),)
    assert np.corrcoef(grown.row_weights_, whole.row_weights_)[0, 1] > 0.9


def test_a_growing_fit_resumes_to_the_same_end(fits, tmp_path):
    """Whichever stage it was in when it stopped."""
    _, X, grown, _ = fits
    for stop in (100, 265, 300):
        path = tmp_path / f"{stop}.npz"

        def interrupt(iteration, model, stop=stop):
            if iteration >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            NoisyICA(**grown.get_params()).set_params(checkpoint=path, callback=interrupt).fit(X)
        resumed = NoisyICA(**grown.get_params()).set_params(checkpoint=path).fit(X)
        np.testing.assert_array_equal(resumed.mixing_, grown.mixing_)


def test_a_growing_fit_of_streamed_rows_ends_there_too_and_resumes(fits, tmp_path, monkeypatch):
    """The early stages are in memory, the last one is not."""
    A, X, grown, whole = fits
    monkeypatch.setattr(holding, "SHARE_OF_MEMORY", 0.0)
    settings = grown.get_params()
    streamed = NoisyICA(**settings).fit(X)
    assert similarity(A, [streamed.mixing_]).min() > 0.9995
    assert abs(streamed.noise_variance_ / whole.noise_variance_ - 1) < np.sqrt(2 / X.size)
    assert np.corrcoef(streamed.row_weights_, whole.row_weights_)[0, 1] > 0.9
    for stop in (265, 300):
        path = tmp_path / f"{stop}.npz"

        def interrupt(iteration, model, stop=stop):
            if iteration >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            NoisyICA(**settings).set_params(checkpoint=path, callback=interrupt).fit(X)
        resumed = NoisyICA(**settings).set_params(checkpoint=path).fit(X)
        np.testing.assert_array_equal(resumed.mixing_, streamed.mixing_)


@pytest.mark.slow
def test_the_best_of_several_runs_goes_on_to_all_rows(fits, tmp_path):
    """All of them learn from few rows; the others are remembered, after an interruption, too."""
    A, X, grown, _ = fits
    settings = grown.get_params() | {"n_init": 3, "noise": "isotropic"}
    seen: dict[int, int] = {}
    path = tmp_path / "fit.npz"

    def interrupt(iteration, model):
        if iteration >= 300:
            raise KeyboardInterrupt

    original = Watch.take_note

    def count(self, runs):
        seen[int(runs[0].state.t)] = len(runs)
        return original(self, runs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watch, "take_note", count)
        whole = NoisyICA(**settings).fit(X)
    assert {runs for t, runs in seen.items() if t <= 280} == {3}
    assert {runs for t, runs in seen.items() if t > 280} == {1}
    assert whole.stability_.shape == (2, 3)
    assert whole.stability_.min() > 0.99
    assert similarity(A, [whole.mixing_]).min() > 0.9995
    with pytest.raises(KeyboardInterrupt):
        NoisyICA(**settings).set_params(checkpoint=path, callback=interrupt).fit(X)
    resumed = NoisyICA(**settings).set_params(checkpoint=path).fit(X)
    np.testing.assert_array_equal(resumed.mixing_, whole.mixing_)
    np.testing.assert_array_equal(resumed.stability_, whole.stability_)


def test_rows_without_numbers_of_their_own_are_refused(monkeypatch):
    monkeypatch.setattr(holding, "MOST_ROWS", 99)
    X = np.random.default_rng(0).normal(size=(100, 4))
    with pytest.raises(ValueError, match="X has 100 rows, and at most 99 can be learnt from."):
        NoisyICA(1).fit(X)


def test_grow_is_checked():
    with pytest.raises(ValueError, match="grow must be 'auto' or False; got True"):
        NoisyICA(2, grow=True).fit(np.random.default_rng(0).normal(size=(50, 4)))
