"""Truncation on random boundaries: when a run returns to its restart point, and with what."""

import numpy as np
import pytest

from noisyica import priors
from noisyica.engine.expansion import Move
from noisyica.engine.state import RestartPoint, State
from noisyica.engine.statistics import Statistics
from noisyica.engine.truncation import truncate
from noisyica.posterior.parameters import Parameters

pytestmark = pytest.mark.usefixtures("double")

D, P = 4, 2


def statistics(size):
    """Return statistics whose norm is ``size``."""
    shapes = [(D,), (D,), (P,), (P, P), (D, P), (), (P,), (D,), ()]
    values = [np.zeros(shape) for shape in shapes]
    values[3] = np.array([[size, 0.0], [0.0, 0.0]])
    return Statistics(*values, prior=np.zeros(2))


def parameters(value):
    return Parameters(
        np.full((D, P), value), np.full(D, value), np.asarray(value), priors.get("log")
    )


def state(t, size, first=1.0, returns=0):
    """Return a state with statistics of norm ``size``; its first iteration left norm ``first``."""
    return State(
        t=np.asarray(t),
        parameters=parameters(7.0),
        statistics=statistics(size),
        move=Move(3 * np.eye(P), np.ones(P)),
        drift=np.zeros(1),
        restart=np.asarray(False),
        restart_point=RestartPoint(np.asarray(returns), parameters(2.0), statistics(first)),
    )


def assert_returned(after, returns=1):
    """Check that everything is as the first iteration left it, and that the return is counted."""
    assert bool(after.restart)
    assert int(after.restart_point.returns) == returns
    np.testing.assert_array_equal(after.parameters.A, parameters(2.0).A)
    np.testing.assert_array_equal(after.statistics.bb, after.restart_point.statistics.bb)
    # the move was decided for coefficients that are no longer there
    np.testing.assert_array_equal(after.move.W, np.eye(P))
    np.testing.assert_array_equal(after.move.shift, np.zeros(P))


def assert_stayed(after, before):
    assert not bool(after.restart)
    assert int(after.restart_point.returns) == int(before.restart_point.returns)
    for name in ("parameters", "statistics", "move"):
        for one, other in zip(getattr(after, name), getattr(before, name), strict=True):
            if one is not None and not isinstance(one, priors.Prior):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("returns", [0, 1, 3])
def test_the_ball_doubles_with_each_return(returns):
    radius = 100 * (1 + 1.0) * 2**returns
    inside, outside = (
        state(5, 0.99 * radius, returns=returns),
        state(5, 1.01 * radius, returns=returns),
    )
    assert_stayed(truncate(inside, inside.statistics, np.asarray(1.0)), inside)
    assert_returned(truncate(outside, outside.statistics, np.asarray(1.0)), returns + 1)


@pytest.mark.parametrize("step", [1.0, 0.01])
def test_jumps_are_bounded_by_the_root_of_the_step(step):
    most = 10 * (1 + 1.0) * np.sqrt(step)
    here = state(5, 60.0)
    assert_stayed(truncate(here, statistics(60 - 0.99 * most), np.asarray(step)), here)
    assert_returned(truncate(here, statistics(60 - 1.01 * most), np.asarray(step)))


def test_the_first_iteration_never_returns_but_becomes_the_restart_point():
    first = state(1, 1e6)
    after = truncate(first, statistics(0.0), np.asarray(1.0))
    assert_stayed(after, first)
    np.testing.assert_array_equal(after.restart_point.statistics.bb, first.statistics.bb)
    np.testing.assert_array_equal(after.restart_point.parameters.A, first.parameters.A)
