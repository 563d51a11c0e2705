"""Joint-distribution tests (Geweke) of both samplers for every prior, and M-steps."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import laws, priors
from noisyica._jax.arrays import cast
from noisyica._jax.compiling import Compiled
from noisyica._jax.randomness import RowKeys, uniforms
from noisyica.engine.mstep import mstep
from noisyica.engine.state import Constants
from noisyica.engine.statistics import collect
from noisyica.posterior.parameters import Parameters, channel
from noisyica.priors import TABLE, Channel, ternary
from tests.blocks import block_of
from tests.engine.steps import plan_of
from tests.tools import TRUE_PRIORS, some_slow

pytestmark = pytest.mark.usefixtures("double")

COMPOSED = {
    "two-slabs": priors.Independent(
        laws.Mixture((laws.Dirac(), laws.Normal(1.0), laws.Laplace()), (0.4, 0.3, 0.3))
    ),
    "log-density": priors.Independent(laws.LogDensity(lambda t: -jnp.cosh(t))),
    "offset": priors.Offset(priors.BernoulliGaussian(0.4), 1.5),
    "logistic-offset": priors.Offset(priors.BernoulliGaussian(0.4), 1.5, law="logistic"),
    "shifted-bg": priors.Shifted(priors.BernoulliGaussian(0.4), 1.5),
    "shifted-ebg": priors.Shifted(priors.ExponentialBernoulliGaussian(0.4), -1.5),
    "shifted-te": priors.Shifted(priors.SingleScaleTernary(0.2), 1.5),
    "te-shift": priors.ShiftedSingleScaleTernary(0.2, 0.5),
    "eg-shift": priors.ExponentialGaussian().shifted(),
    "own": priors.Independent(
        laws.Mixture((laws.Dirac(), laws.Laplace()), (0.5, 0.5)), shared=False
    ).for_components(3),
}
ROWS, CYCLES, BOUND = 20_000, 12, 4.5


def functionals(prior, latent):
    """Return averages over rows that a wrong sampler moves, and their variances.

    They are of first and second moments, zeros, pairs and offsets.
    """
    beta, m = np.asarray(prior.coefficients(latent)), np.asarray(prior.offset(latent))
    size = np.abs(beta)
    rows = np.stack([
        beta[0], beta[-1],
        np.minimum(size[0], 5), np.minimum(size[-1], 5), np.minimum(size[1], 5) ** 2,
        (beta[0] == 0) * 1.0, (beta[-1] == 0) * 1.0,
        np.tanh(beta[0]) * np.tanh(beta[1]), np.tanh(size[0]) * np.tanh(size[1]),
        np.tanh(m) * np.tanh(beta[0]), np.minimum(np.abs(m), 5),
    ])  # fmt: skip
    return rows.mean(1), rows.var(1) / rows.shape[1]


def geweke(prior, sampler, rows=ROWS):
    """Return a function that gives the largest z-score between the prior and what it becomes.

    It becomes so under (x given beta, beta given x) repeated. The function's arguments, factors of
    A'x and of A'A, spoil the conditional where they are not 1. Every row is a chain of its own that
    starts with an exact draw, so that all rows stay exact if the sampler is right, and their
    averages have plain standard errors.
    """
    prior = cast(prior, "float32")
    rng = np.random.default_rng(5)
    d, p = 6, 3
    A = jnp.asarray(0.8 * rng.normal(size=(d, p)), "float32")
    parameters = Parameters(A, jnp.zeros(d, "float32"), jnp.asarray(0.5, "float32"), prior)

    def run(key, of_c, of_G):
        latent = prior.sample_prior(jax.random.fold_in(key, 0), p, rows, "float32")

        def cycle(i, latent):
            keys = jax.random.split(jax.random.fold_in(key, i + 1), 2)
            x = (
                A @ prior.coefficients(latent)
                + prior.offset(latent)
                + np.sqrt(0.5).astype("float32") * jax.random.normal(keys[0], (d, rows), "float32")
            )
            tilt = channel(parameters, x)
            return getattr(prior, sampler)(
                keys[1], latent, tilt._replace(c=of_c * tilt.c, G=of_G * tilt.G)
            )

        return prior.sample_prior(
            jax.random.fold_in(key, 99), p, rows, "float32"
        ), jax.lax.fori_loop(0, CYCLES, cycle, latent)

    compiled = Compiled(run).compiled(prior.compiles_fast)

    def score(of_c=1.0, of_G=1.0):
        fresh, cycled = compiled(jax.random.key(7), np.float32(of_c), np.float32(of_G))
        (mean, variance), (mean_c, variance_c) = (
            functionals(prior, fresh),
            functionals(prior, cycled),
        )
        return np.max(np.abs(mean - mean_c) / np.sqrt(variance + variance_c + 1e-12))

    return score


@pytest.mark.parametrize(
    ("name", "sampler"),
    [
        pytest.param(
            name,
            sampler,
            marks=[pytest.mark.slow]
            * (sampler == "metropolis" and name in ("eg", "ebg", "et", "teoff")),
        )
        for name in TABLE
        for sampler in ("gibbs", "metropolis")
    ],
)
def test_geweke(name, sampler):
    """The sampler passes, and the same test fails where the sampler is given a wrong channel.

    For Gibbs A'x is too small by a fifth, for Metropolis A'A by a third.
    """
    score = geweke(TRUE_PRIORS[name], sampler)
    assert score() < BOUND
    assert score(**{"gibbs": {"of_c": 0.8}, "metropolis": {"of_G": 0.7}}[sampler]) > BOUND


@pytest.mark.parametrize("name", some_slow(COMPOSED, "log-density", "shifted-ebg", "eg-shift"))
def test_geweke_of_composed_priors(name):
    score = geweke(COMPOSED[name], "gibbs", ROWS // 8)
    assert score() < BOUND
    assert score(of_c=0.5) > BOUND


@pytest.mark.parametrize("name", ["te-shift", "shifted-bg", "logistic-offset"])
def test_geweke_of_metropolis_sampling_of_composed_priors(name):
    score = geweke(COMPOSED[name], "metropolis", ROWS // 8)
    assert score() < BOUND
    assert score(of_c=0.5) > BOUND


def test_geweke_notices_a_wrong_collapse(monkeypatch):
    """TE's signs drawn as if the scale were not integrated out."""
    monkeypatch.setattr(priors.ternary, "log_half_line", lambda a, c: c + 1 - 0.5 * a)
    assert geweke(TRUE_PRIORS["te"], "gibbs")() > BOUND


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_metropolis_is_guarded_at_degenerate_weights(alpha):
    """Proposals leave a degenerate state, but the true weights never allow to accept one."""
    prior = cast(priors.BernoulliGaussian(alpha), float)
    G, c = jnp.eye(2), jnp.full((2, 500), 3.0)
    tilt = Channel(G, c, jnp.zeros(2), jnp.zeros(500), jnp.ones(()))
    latent = jnp.full((2, 500), 0.7 if alpha == 1.0 else 0.0)
    for i in range(5):
        latent = prior.metropolis(jax.random.key(i), latent, tilt)
    assert np.isfinite(np.asarray(latent)).all()
    assert ((np.asarray(latent) == 0) == (alpha == 0.0)).all()


@pytest.mark.parametrize("name", TABLE)
def test_m_step_is_the_maximum_of_the_complete_likelihood(name):
    """No small change of A, the mean, the noise or the prior makes the complete data likelier."""
    from noisyica import Model

    rng = np.random.default_rng(3)
    d, p, n = 5, 3, 400
    prior = cast(TRUE_PRIORS[name], float)
    latent = prior.sample_prior(jax.random.key(0), p, n, float)
    beta, m = np.asarray(prior.coefficients(latent)), np.asarray(prior.offset(latent))
    mean = np.zeros(d) if prior.has_offset else rng.normal(size=d)
    X = mean + m[:, None] + beta.T @ rng.normal(size=(p, d)) + 0.4 * rng.normal(size=(n, d))
    statistics = collect(prior, latent, block_of(X.T))
    old = Parameters(jnp.zeros((d, p)), jnp.zeros(d), jnp.ones(()), prior)
    learnt = mstep(
        statistics, old, plan_of(free_mean=not prior.has_offset), Constants(1.0, 1e-12, None)
    )

    def likelihood(A, mean, sigma2, prior):
        return (
            Model(np.asarray(A), np.asarray(mean), float(sigma2), prior)
            .complete_log_density(X, beta.T, m)
            .sum()
        )

    best = likelihood(*learnt[:4])
    assert np.isfinite(best)
    for _ in range(5):
        step = 1e-3 * rng.normal(size=(d, p))
        assert likelihood(learnt.A + step, learnt.mean, learnt.sigma2, learnt.prior) < best
        if not prior.has_offset:
            assert (
                likelihood(
                    learnt.A, learnt.mean + 1e-3 * rng.normal(size=d), learnt.sigma2, learnt.prior
                )
                < best
            )
    for factor in (0.99, 1.01):
        assert likelihood(learnt.A, learnt.mean, learnt.sigma2 * factor, learnt.prior) < best
    if "alpha" in prior.parameter_names or "gamma" in prior.parameter_names:
        own = prior.parameter_names[0]
        value = float(getattr(learnt.prior, own))
        # weights are kept 1e-3 off their bounds, which moves the optimum by less than this
        beyond_guard = 5e-3
        for change in (-beyond_guard, beyond_guard):
            other = type(TRUE_PRIORS[name])(**{own: value + change})
            assert likelihood(learnt.A, learnt.mean, learnt.sigma2, other) < best


def test_known_variances():
    for name in ("log", "lap", "eg"):
        prior = priors.get(name)
        assert prior.variance() == pytest.approx(
            float(jax.jit(prior.law.moments)(0.0, 0.0)[1]), rel=1e-5
        )


def test_gamma_of_a_ternary_sample_counts_both_signs():
    """The paper's slip: gamma is P(Y = 1), half of P(Y != 0)."""
    for prior in (priors.ExponentialTernary(0.2), priors.SingleScaleTernary(0.2)):
        law = cast(prior, float)
        latent = law.sample_prior(jax.random.key(0), 4, 50_000, float)
        learnt = law.mstep(law.statistics(latent, jnp.ones(50_000)))
        assert learnt.gamma == pytest.approx(0.2, abs=4.5 * np.sqrt(0.4 * 0.6 / 200_000) / 2 + 1e-3)


@pytest.mark.parametrize("name", [*TABLE, *(name for name in COMPOSED if name != "log-density")])
def test_plain_data_and_back(name):
    prior = COMPOSED[name] if name in COMPOSED else TRUE_PRIORS[name]
    again = priors.from_plain(priors.to_plain(prior))
    assert type(again) is type(prior)
    for one, other in zip(jax.tree.leaves(prior), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="Unknown prior 'laplace'. Choose one of 'log'"):
        priors.get("laplace")
    with pytest.raises(TypeError, match="noisyica.priors"):
        priors.get(3)
    with pytest.raises(ValueError, match="alpha must be a number from 0 to 1"):
        priors.BernoulliGaussian(alpha=1.5)
    with pytest.raises(ValueError, match="gamma must be a number from 0 to 0.5"):
        priors.ExponentialTernary(gamma=0.6)
    with pytest.raises(ValueError, match="K means and K \\+ 1 weights"):
        priors.GaussianMixture((1.0, 2.0), (0.5, 0.5))
    with pytest.raises(TypeError, match="noisyica.laws"):
        priors.Independent("laplace")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("a_key_per_row", [False, True])
def test_uniforms_of_two_keys_are_those_of_each(dtype, a_key_per_row):
    """Drawing from two keys at once saves compiling, and gives the numbers of each key alone."""
    keys = [jax.random.split(jax.random.key(seed), 5) for seed in (3, 4)]
    if not a_key_per_row:
        keys = [RowKeys(each[0], jnp.asarray(7, jnp.uint32)) for each in keys]
    for shape in ((3, 5), (5,)):
        together = ternary._uniforms(tuple(keys), jnp.zeros(shape, dtype))
        alone = [uniforms(key, 1, shape, dtype)[0] for key in keys]
        np.testing.assert_array_equal(together, np.stack(alone))
        assert (np.asarray(together[0]) != np.asarray(together[1])).all()


QUIET = """
import jax, jax.numpy as jnp, numpy as np
from noisyica import Model, priors
from noisyica._jax.arrays import cast, to_numpy
from noisyica._jax.precision import double_precision
from noisyica.posterior.parameters import Parameters, channel

def sweep(key, latent, A, x):
    parameters = Parameters(A, jnp.zeros(6, A.dtype), jnp.ones((), A.dtype), prior)
    return prior.gibbs(key, latent, channel(parameters, x))

for name in ("te", "teoff"):
    prior = cast(priors.get(name), "float32")
    latent = jax.tree.map(lambda leaf: jnp.stack(4 * [leaf]), prior.zeros(3, 64, "float32"))
    keys, A = jax.random.split(jax.random.key(0), 4), jnp.ones((4, 6, 3))
    starts = jax.vmap(sweep, in_axes=(0, 0, 0, None))
    jax.jit(starts).lower(keys, latent, A, jnp.ones((6, 64))).compile()
with double_precision():
    for name in priors.TABLE:
        to_numpy(priors.get(name)).variance()
    for name in ("eg", "ebg"):
        model = Model(np.ones((3, 2)), prior=name)
        model.log_likelihood(np.ones((2, 3)), n_particles=2)
print("compiled")
"""


@pytest.mark.slow
def test_nothing_is_printed_while_priors_are_compiled():
    """XLA warns on the terminal where its simplifier goes round in circles, as it did for ebg."""
    # with the cache nothing would be compiled
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    command = [sys.executable, "-c", QUIET]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "compiled\n"
    assert result.stderr == ""
