"""Random numbers that an iteration uses for one thing are not used for another one as well."""

import jax
import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from noisyica import laws, priors
from noisyica.engine.algorithms import MonteCarloEM, Saem
from noisyica.engine.loop import step
from noisyica.engine.mixing import NormalColumns
from noisyica.engine.state import Schedule
from noisyica.engine.sweepers import InMemory
from noisyica.posterior.parameters import channel, fitted
from tests.engine.steps import begun, constants_of, parameters_of, plan_of, rows_of

pytestmark = pytest.mark.usefixtures("double")

D = N = 256


def noise_of_mixing(state):
    """Return the standard normal numbers behind the draw of A (d, 1), up to one sign."""
    mixing = state.statistics.mixing
    deviation = np.sqrt(np.asarray(mixing.square) - np.square(mixing.mean))
    return ((np.asarray(state.parameters.A) - np.asarray(mixing.mean)) / deviation)[:, 0]


def taken(algorithm, prior, missing, schedule=None):
    """Return rows, and states and chains before and after one iteration with a hidden A, (d, 1)."""
    plan = plan_of(algorithm, mixing=NormalColumns())
    constants = constants_of(N, schedule)
    parameters = parameters_of(prior, d=D, p=1)
    X = rows_of(parameters, N)
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    blocks, run = begun(parameters, X, plan, constants)
    advance = jax.jit(lambda *where: step(InMemory(blocks), plan, constants, *where))
    return X, blocks, run, *advance(jax.random.key(0), run.state, run.chains)


def test_missing_entries_and_the_mixing_matrix():
    X, _, run, state, chains = taken(Saem(), "log", missing=0.5)
    parameters = run.state.parameters
    beta = parameters.prior.coefficients(chains.latent[0])
    fit = fitted(parameters, beta, np.zeros(beta.shape[1]), float)
    noise = np.asarray((chains.x[0] - fit) / np.sqrt(parameters.sigma2))[:, :N]
    of_mixing, missing = noise_of_mixing(state), np.isnan(X.T)
    assert np.std(of_mixing) == pytest.approx(1, abs=0.2)
    assert noise[missing].std() == pytest.approx(1, abs=0.05)
    # row i's number for any column against row i of A's: half of the 256 rows each
    correlations = [np.corrcoef(noise[k, m], of_mixing[m])[0, 1] for k, m in enumerate(missing)]
    assert np.abs(correlations).max() < 5 / np.sqrt(N / 2)


def test_coefficients_and_the_mixing_matrix():
    """The last of two sweeps of a normal law, whose draws show their random numbers."""
    prior = priors.Independent(laws.Normal())
    schedule = Schedule(20, 0.9, (2, 2), 10)
    _, blocks, run, state, chains = taken(MonteCarloEM(), prior, 0.0, schedule)
    seen = channel(run.state.parameters, blocks.x[0])
    precision = 1 + seen.G[0, 0]
    noise = np.asarray((chains.latent[0] - seen.c / precision) * np.sqrt(precision))[0, :N]
    assert noise.std() == pytest.approx(1, abs=0.2)
    correlation = np.corrcoef(noise, noise_of_mixing(state))[0, 1]
    assert abs(correlation) < 5 / np.sqrt(N)


def test_scales_of_rows_and_the_mixing_matrix():
    """The scales of TE-ICA are drawn last in a sweep: their distribution functions are uniforms."""
    _, blocks, run, state, chains = taken(Saem(), priors.SingleScaleTernary(0.4), 0.0)
    seen = channel(run.state.parameters, blocks.x[0])
    y, s = (np.asarray(part[0])[..., :N] for part in chains.latent)
    on = y[0] != 0
    assert on.sum() > N / 2
    precision = float(seen.G[0, 0])
    centre = (y[0] * np.asarray(seen.c)[0, :N] - 1) / precision
    spread = 1 / np.sqrt(precision)
    u = truncnorm.cdf(s, -centre / spread, np.inf, centre, spread)[on]
    assert u.std() == pytest.approx(np.sqrt(1 / 12), abs=0.06)
    correlation = np.corrcoef(norm.ppf(np.clip(u, 1e-9, 1 - 1e-9)), noise_of_mixing(state)[on])[
        0, 1
    ]
    assert abs(correlation) < 5 / np.sqrt(on.sum())
