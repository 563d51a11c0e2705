"""Sweeps of blocks: moves that were decided before, restarts, sums, and first coefficients."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica.engine.algorithms import Algorithm, Saem
from noisyica.engine.expansion import Move
from noisyica.engine.loop import step
from noisyica.engine.state import Chain, Totals
from noisyica.engine.statistics import collect
from noisyica.engine.sweepers import InMemory, sweep_block
from noisyica.rows import block as rows_block
from tests.engine.steps import N, P, begun, broadcast, constants_of, parameters_of, plan_of, rows_of

pytestmark = pytest.mark.usefixtures("double")

W = np.array([[1.1, 0.2, 0.0], [0.0, 0.9, -0.3], [0.1, 0.0, 1.2]])
SHIFT = np.array([0.3, 0.0, -0.2])


@dataclasses.dataclass(frozen=True)
class Still(Algorithm):
    """An algorithm that draws nothing, and decides on the same move in every other iteration."""

    name: ClassVar[str] = "still"

    def expectation(self, plan, sent, block, chain):
        statistics = collect(sent.parameters.prior, chain.latent, chain.fill(block))
        return chain, Totals(block.weight.sum(dtype=float), statistics)

    def moves(self, t):
        return t % 2 == 0

    def shifts(self, plan, prior):
        return True

    def move(self, plan, constants, state, averages, step):
        return Move(jnp.asarray(W), jnp.asarray(SHIFT))


def problem(**choices):
    plan, constants, parameters = plan_of(Still(), **choices), constants_of(), parameters_of()
    blocks, run = begun(parameters, rows_of(parameters), plan, constants)
    return plan, constants, blocks, run


def moved(latent):
    return W @ latent + SHIFT[:, None]


def first_of(tree):
    return jax.tree.map(lambda leaf: leaf[0], tree)


def test_a_move_is_carried_out_once():
    """It is decided in iterations 0, 2, ..., and carried out at the start of the next one."""
    plan, constants, blocks, run = problem()
    state, chains = run.state, run.chains
    expected = np.asarray(run.chains.latent[0])
    for t in range(5):
        state, chains = step(InMemory(blocks), plan, constants, jax.random.key(0), state, chains)
        if t % 2 == 1:
            expected = moved(expected)
        np.testing.assert_allclose(chains.latent[0], expected, rtol=1e-12, err_msg=f"t={t}")
    assert int(state.t) == 5


@pytest.mark.parametrize(("t", "moves"), [(0, False), (1, True), (2, False), (3, True)])
def test_a_block_moves_if_the_last_iteration_decided_so(t, moves):
    plan, _, blocks, run = problem()
    state = run.state._replace(move=Move(jnp.asarray(W), jnp.asarray(SHIFT)))
    chain, _ = sweep_block(plan, broadcast(state, t), first_of((blocks, run.chains)))
    before = np.asarray(run.chains.latent[0])
    np.testing.assert_allclose(chain.latent, moved(before) if moves else before, rtol=1e-12)


def test_statistics_are_those_of_the_moved_coefficients():
    plan, constants, blocks, run = problem()
    sweeper, key = InMemory(blocks), jax.random.key(0)
    state, chains = step(sweeper, plan, constants, key, run.state, run.chains)
    after, chains = step(sweeper, plan, constants, key, state, chains)
    statistics = after.statistics  # of an iteration without a move of its own
    beta, x = (np.asarray(part[0])[:, :N] for part in (chains.latent, blocks.x))
    np.testing.assert_allclose(statistics.bb, beta @ beta.T / N, rtol=1e-12)
    np.testing.assert_allclose(statistics.xb, x @ beta.T / N, rtol=1e-12)
    # the first iteration's statistics moved with its coefficients, and A with them
    np.testing.assert_allclose(state.statistics.bb, statistics.bb, rtol=1e-10)


def test_a_restart_returns_to_where_the_first_iteration_ended():
    plan, _, blocks, run = problem(truncate=True)
    rng = np.random.default_rng(0)
    move = Move(jnp.asarray(W), jnp.asarray(SHIFT))
    state = run.state._replace(move=move)
    chain = Chain(*first_of(run.chains))
    block = first_of(blocks)

    def sweep(chain, t, restart):
        sent = broadcast(state, t)._replace(restart=jnp.asarray(restart))
        return sweep_block(plan, sent, (block, chain))[0]

    # the restart point is noted when the second iteration begins, after the first one's move
    noted = sweep(chain, 1, False)
    np.testing.assert_allclose(noted.restart_point[0], moved(chain.latent), rtol=1e-12)
    elsewhere = noted._replace(latent=jnp.asarray(rng.normal(size=noted.latent.shape)))
    np.testing.assert_array_equal(sweep(elsewhere, 2, False).latent, elsewhere.latent)
    back = sweep(elsewhere, 2, True)
    np.testing.assert_array_equal(back.latent, noted.restart_point[0])
    np.testing.assert_array_equal(back.restart_point[0], noted.restart_point[0])


def test_a_restart_returns_to_the_imputed_rows_of_then():
    plan, constants = plan_of(Still(), truncate=True), constants_of()
    parameters = parameters_of()
    X = rows_of(parameters)
    X[::3, 0] = np.nan
    blocks, run = begun(parameters, X, plan, constants)
    block, chain = first_of((blocks, run.chains))
    noted = sweep_block(plan, broadcast(run.state, 1), (block, chain))[0]
    elsewhere = noted._replace(x=noted.x + 1.0)
    sent = broadcast(run.state, 2)._replace(restart=jnp.asarray(True))
    np.testing.assert_array_equal(sweep_block(plan, sent, (block, elsewhere))[0].x, noted.x)


@pytest.mark.parametrize("missing", [False, True])
def test_blocks_add_up(monkeypatch, missing):
    """Chains and sums are the same with one block and with five, the last one padded."""
    plan, constants, parameters = plan_of(Saem()), constants_of(), parameters_of("bg")
    X = rows_of(parameters)
    if missing:
        X[::3, 0] = np.nan

    def sweep():
        blocks, run = begun(parameters, X, plan, constants)
        return InMemory(blocks).sweep(plan, broadcast(run.state), run.chains)

    chain, totals = sweep()
    monkeypatch.setattr(rows_block, "ROWS_ON_CPU", 15)
    chains, totals_of_blocks = sweep()
    assert chains.latent.shape == (5, P, 15)
    joined = np.moveaxis(np.asarray(chains.latent), 0, 1).reshape(P, -1)
    np.testing.assert_allclose(joined[:, :N], chain.latent[0, :, :N], rtol=1e-12, atol=1e-14)
    assert float(totals_of_blocks.weight) == float(totals.weight) == N
    leaves = jax.tree.leaves(totals_of_blocks), jax.tree.leaves(totals)
    rounding = 1e-7 if missing else 1e-10  # missing entries are drawn in single precision
    for one, other in zip(*leaves, strict=True):
        np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding)


def test_averages_divide_by_the_weight():
    plan, _, blocks, run = problem()
    _, totals = InMemory(blocks).sweep(plan, broadcast(run.state), run.chains)
    averages = totals.averages()
    assert float(averages.weight) == 1
    np.testing.assert_allclose(averages.statistics.bb, totals.statistics.bb / N, rtol=1e-14)


def test_sweeps_begin_with_the_linear_estimate():
    plan, _, blocks, run = problem()
    A, mean, sigma2, prior, *_ = run.state.parameters
    precision = A.T @ A / sigma2 + np.eye(P) / prior.variance()
    expected = np.linalg.solve(precision, A.T @ (np.asarray(blocks.x[0]) - mean[:, None]) / sigma2)
    np.testing.assert_allclose(run.chains.latent[0], expected, rtol=1e-10)
