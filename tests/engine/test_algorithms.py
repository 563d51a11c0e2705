"""The algorithms as values: which there are, their steps, and how they move the coefficients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import priors
from noisyica.engine import algorithms
from noisyica.engine.algorithms import ExactEM, ModeEM, MonteCarloEM, Saem, StochasticEM
from noisyica.engine.expansion import LEAST_STEP, location_step, newton_rotation
from noisyica.engine.mixing import NormalColumns
from noisyica.engine.state import Schedule
from noisyica.engine.sweepers import InMemory
from noisyica.posterior import enumeration
from tests.engine.steps import (
    P,
    begun,
    broadcast,
    constants_of,
    parameters_of,
    plan_of,
    rows_of,
)
from tests.own_prior import BusyRows

pytestmark = pytest.mark.usefixtures("double")

SCHEDULE = Schedule(burn_in=20, kappa=0.9)


def test_names_stand_for_algorithms():
    assert algorithms.get("saem", "metropolis") == Saem("metropolis")
    assert algorithms.get("mcem", draws=(1, 5)) == MonteCarloEM("gibbs", True)
    assert algorithms.get("mcem", draws=(1, 1)) == MonteCarloEM("gibbs", False)
    own = Saem("metropolis")
    assert algorithms.get(own) is own
    assert {name for name in algorithms.TABLE if name != "tempered-saem"} == {
        "saem",
        "sem",
        "mcem",
        "em",
        "fam-em",
    }


def test_steps():
    later = SCHEDULE.burn_in + 9
    assert float(Saem().step_size(later, SCHEDULE)) == pytest.approx(10**-0.9)
    for algorithm in (StochasticEM(), MonteCarloEM(), ExactEM(), ModeEM()):
        assert [float(algorithm.step_size(t, SCHEDULE)) for t in (0, later)] == [1.0, 1.0]


def test_when_coefficients_move():
    def of(algorithm):
        return [bool(algorithm.moves(jnp.asarray(t))) for t in range(-1, 4)]

    assert of(Saem()) == of(MonteCarloEM()) == [False, True, False, True, False]
    assert of(ModeEM()) == 5 * [True]
    assert of(ExactEM()) == 5 * [False]


def test_only_smooth_laws_with_a_free_mean_are_shifted():
    smooth, sparse = priors.get("log"), priors.get("bg")
    assert Saem().shifts(plan_of(), smooth)
    assert not Saem().shifts(plan_of(), sparse)
    assert not Saem().shifts(plan_of(free_mean=False), smooth)
    assert not ModeEM().shifts(plan_of(), smooth)
    assert not ExactEM().shifts(plan_of(), smooth)


def decided(algorithm, prior="log", t=0, step=1.0, **choices):
    """Return the move that an algorithm decides on after a sweep, and what it was decided from."""
    plan, constants = plan_of(algorithm, **choices), constants_of(schedule=SCHEDULE)
    parameters = parameters_of(prior)
    blocks, run = begun(parameters, rows_of(parameters), plan, constants)
    _, totals = InMemory(blocks).sweep(plan, broadcast(run.state, 0), run.chains)
    averages = totals.averages()
    state = run.state._replace(t=jnp.asarray(t))
    move = algorithm.move(plan, constants, state, averages, jnp.asarray(step))
    return move, state, averages


@pytest.mark.parametrize("step", [1.0, 0.3, 0.01])
def test_smooth_laws_follow_the_likelihood_to_the_end(step):
    move, state, averages = decided(Saem(), t=100, step=step)
    expansion = state.parameters.prior.expansion_from_sums(averages.expansion.prior)
    squares = jnp.diag(averages.statistics.bb)
    expected = newton_rotation(expansion, jnp.zeros((P, P)), squares, step, min(step, 0.4))
    np.testing.assert_allclose(move.W, expected, rtol=1e-12)
    np.testing.assert_allclose(move.shift, location_step(expansion, step), rtol=1e-12)
    assert np.abs(move.shift).max() > 0


def off_diagonal(W):
    return np.abs(np.asarray(W)[~np.eye(P, dtype=bool)])


def test_rotations_of_sparse_laws_fade_out_during_burn_in():
    sizes = [off_diagonal(decided(Saem(), "bg", t)[0].W).max() for t in (0, 10, 20, 50)]
    assert sizes[0] > 1e-3
    assert sizes[1] == pytest.approx(sizes[0] / 2)
    assert sizes[2:] == [0, 0]
    move = decided(Saem(), "bg", 50)[0]
    assert np.abs(np.diag(move.W) - 1).max() > 1e-4  # the scales follow the law to the end
    assert not np.any(move.shift)


@pytest.mark.parametrize("prior", ["te", "teoff"])
def test_rows_with_one_scale_move_as_a_whole(prior):
    W = decided(Saem(), prior, t=0, mixing=NormalColumns())[0].W
    np.testing.assert_array_equal(W, W[0, 0] * np.eye(P))
    assert abs(W[0, 0] - 1) > 1e-4


def test_metropolis_does_not_rotate_sparse_laws():
    assert off_diagonal(decided(Saem("metropolis"), "bg", 0)[0].W).max() == 0
    assert off_diagonal(decided(Saem("metropolis"), "log", 0)[0].W).max() > 1e-3


def test_a_hidden_mixing_matrix_pulls_and_keeps_a_least_step():
    tiny = 1e-6
    free = decided(Saem(), t=100, step=tiny)[0]
    np.testing.assert_allclose(free.W, np.eye(P), atol=1e-5)
    move, state, averages = decided(Saem(), t=100, step=tiny, mixing=NormalColumns())
    A, tau2 = state.parameters.A, state.parameters.mixing
    pull = A.T @ A / (constants_of().total_weight * tau2)
    expansion = state.parameters.prior.expansion_from_sums(averages.expansion.prior)
    squares = jnp.diag(averages.statistics.bb)
    expected = newton_rotation(expansion, pull, squares, LEAST_STEP, LEAST_STEP)
    np.testing.assert_allclose(move.W, expected, rtol=1e-12)
    # the mean is a function of the average, which comes to rest: its step is the average's
    assert np.abs(move.shift).max() < 1e-5


def test_fam_em_holds_the_mean_square():
    move, state, averages = decided(ModeEM(), "lap")
    moved = move.W @ averages.statistics.bb @ move.W.T
    expected = P * float(state.parameters.prior.mean_square())
    assert float(jnp.trace(moved)) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(move.W, move.W[0, 0] * np.eye(P))
    assert not np.any(move.shift)


@pytest.mark.parametrize(
    ("algorithm", "prior"),
    [(ExactEM(), "bg"), (Saem(), BusyRows())],
    ids=["exact", "a prior without parameter expansion"],
)
def test_nothing_moves(algorithm, prior):
    move = decided(algorithm, prior)[0]
    np.testing.assert_array_equal(move.W, np.eye(P))
    np.testing.assert_array_equal(move.shift, np.zeros(P))


def test_exact_em_takes_the_expected_statistics():
    plan, constants, parameters = plan_of(ExactEM()), constants_of(), parameters_of("bg")
    blocks, run = begun(parameters, rows_of(parameters), plan, constants)
    chains, totals = InMemory(blocks).sweep(plan, broadcast(run.state), run.chains)
    np.testing.assert_array_equal(chains.latent, run.chains.latent)
    moments, _ = enumeration.expectation(parameters, blocks.x[0], blocks.weight[0])
    for name in ("b", "bb", "xb"):
        value = getattr(totals.statistics, name)
        np.testing.assert_allclose(value, getattr(moments, name), rtol=1e-10)
    np.testing.assert_allclose(totals.statistics.x, blocks.x[0].sum(1), rtol=1e-10)


@pytest.mark.parametrize("sweeps", [1, 7])
def test_mcem_averages_over_sweeps(sweeps):
    """The statistics are the average over as many sweeps as are asked for, one after the other."""
    plan, constants, parameters = plan_of(MonteCarloEM()), constants_of(), parameters_of("bg")
    blocks, run = begun(parameters, rows_of(parameters), plan, constants)
    sent = broadcast(run.state, n_sweeps=sweeps)
    chains, totals = InMemory(blocks).sweep(plan, sent, run.chains)
    block, chain = jax.tree.map(lambda leaf: leaf[0], (blocks, run.chains))
    single = StochasticEM()
    total = 0.0
    for k in range(sweeps):
        chain, part = single.expectation(plan, sent, block, chain, sweep=k)
        total += np.asarray(part.statistics.bb)
    np.testing.assert_allclose(totals.statistics.bb, total / sweeps, rtol=1e-10)
    np.testing.assert_allclose(chains.latent[0], chain.latent, rtol=1e-10, atol=1e-12)
