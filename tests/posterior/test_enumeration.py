"""Enumeration of the discrete variables: what EM promises, awkward cases, and what it refuses."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from noisyica import priors
from noisyica._jax.arrays import cast, to_numpy
from noisyica.engine.mstep import mstep
from noisyica.engine.state import Constants
from noisyica.engine.statistics import collect
from noisyica.laws import Dirac, Laplace, Mixture, Normal
from noisyica.posterior import enumeration
from noisyica.posterior.parameters import Parameters, channel
from noisyica.priors import BernoulliGaussian, GaussianMixture, Independent, SingleScaleTernary
from tests.blocks import block_of
from tests.engine.steps import plan_of
from tests.posterior.enumerated import NORMALS, PRIORS, expected_statistics, problem

pytestmark = pytest.mark.usefixtures("double")


@jax.jit
def value_and_gradient(parameters, block):
    return jax.value_and_grad(lambda q: block.weight @ enumeration.log_likelihood(q, block.x))(
        parameters
    )


@pytest.mark.parametrize("name", ["bg", "bg-shift", "ifa-two", "te"])
def test_gradient_of_the_likelihood_is_that_of_the_complete_data(name):
    # Fisher's identity, in A, mu0, sigma^2 and (for TE-ICA) gamma
    parameters, block = problem(PRIORS[name], 3, seed=2)
    value, gradient = to_numpy(value_and_gradient(parameters, block))
    s, log_p = to_numpy(expected_statistics(parameters, block))
    (A, mean, sigma2), x, weight = (
        (np.asarray(v) for v in parameters[:3]),
        np.asarray(block.x),
        np.asarray(block.weight),
    )
    assert value == pytest.approx(weight @ log_p, abs=1e-12)
    centred, xb = x - mean[:, None], s.xb - np.outer(mean, s.b)
    np.testing.assert_allclose(gradient.A, (xb - A @ s.bb) / sigma2, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        gradient.mean, (centred @ weight - A @ s.b) / sigma2, rtol=0, atol=1e-8
    )
    residual = weight @ (centred**2).sum(0) - 2 * (xb * A).sum() + (A.T @ A * s.bb).sum()
    np.testing.assert_allclose(
        gradient.sigma2, (residual / sigma2 - len(A)) / (2 * sigma2), rtol=0, atol=1e-8
    )
    if name == "te":
        off, on = s.prior
        (of_gamma,) = jax.tree.leaves(gradient.prior)
        np.testing.assert_allclose(of_gamma, on / 0.2 - 2 * off / 0.6, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["bg", "ifa", "te"])
def test_em_never_lowers_the_likelihood(name):
    truth, _ = problem(PRIORS[name], 3, d=6, seed=3)
    rng = np.random.default_rng(4)
    if name == "te":
        beta = rng.exponential(size=300) * rng.choice([-1, 0, 1], size=(3, 300), p=[0.2, 0.6, 0.2])
    else:
        weights, means, scales = np.array(NORMALS[name][1]).T
        k = rng.choice(len(weights), size=(3, 300), p=weights)
        beta = means[k] + scales[k] * rng.normal(size=k.shape)
    x = (
        np.asarray(truth.mean)[:, None]
        + np.asarray(truth.A) @ beta
        + 0.3 * rng.normal(size=(6, 300))
    )
    block = block_of(x)
    parameters = cast(
        Parameters(jnp.array(rng.normal(size=(6, 3))), x.mean(1), jnp.array(1.0), priors.get(name)),
        float,
    )

    @jax.jit
    def iterate(parameters):
        statistics, log_p = expected_statistics(parameters, block)
        return mstep(statistics, parameters, plan_of(), Constants(1.0, 1e-12, None)), log_p.mean()

    history = []
    for _ in range(31):
        parameters, log_p = iterate(parameters)
        history.append(float(log_p))
    assert np.all(np.diff(history) >= -1e-9 * np.abs(history[:-1])), np.diff(history).min()
    assert history[-1] > history[0] + 1


def test_chunks_of_states_change_nothing():
    """Many rows leave room for a few states at a time: copies of rows have the sums of the rows."""
    copies = 50_000
    parameters, block = problem(PRIORS["bg-shift"], 3, seed=5)
    many = block_of(jnp.tile(block.x, copies), jnp.tile(block.weight, copies) / copies)

    def lengths_of_loops(block):
        steps = jax.make_jaxpr(enumeration.expectation)(parameters, block.x, block.weight)
        return {int(length) for length in re.findall(r"\blength=(\d+)", str(steps))}

    assert lengths_of_loops(many) - lengths_of_loops(block) == {4}  # two of the eight states each
    whole, log_p = expected_statistics(parameters, block)
    in_chunks, log_p_of_copies = expected_statistics(parameters, many)
    np.testing.assert_allclose(log_p_of_copies, np.tile(log_p, copies), rtol=0, atol=1e-12)
    for a, b in zip(jax.tree.leaves(in_chunks), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def test_rows_in_single_precision_give_double_precision():
    parameters, block = problem(PRIORS["bg"], 3, seed=5)
    # sums over the rows of a block are in double precision, whatever its rows are in
    single = block._replace(x=cast(block.x, "float32"), weight=cast(block.weight, "float32"))
    double = block._replace(x=cast(single.x, float), weight=cast(single.weight, float))
    statistics = expected_statistics(parameters, single)
    expected = expected_statistics(parameters, double)
    for a, b in zip(jax.tree.leaves(statistics), jax.tree.leaves(expected), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_classes_of_weight_zero_do_no_harm():
    parameters, block = problem(BernoulliGaussian(1.0), 3)
    statistics, log_p = expected_statistics(parameters, block)
    normal = parameters._replace(prior=Independent(Normal()))
    expected, log_q = expected_statistics(normal, block)
    np.testing.assert_allclose(log_p, log_q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(statistics.bb, expected.bb, rtol=0, atol=1e-12)
    np.testing.assert_allclose(statistics.prior[0], [0.0, 3.0], rtol=0, atol=1e-12)
    for prior in (BernoulliGaussian(0.0), SingleScaleTernary(0.0)):
        statistics, log_p = expected_statistics(parameters._replace(prior=prior), block)
        noise = multivariate_normal(
            np.asarray(parameters.mean), np.asarray(parameters.sigma2) * np.eye(4)
        )
        np.testing.assert_allclose(log_p, noise.logpdf(np.asarray(block.x).T), rtol=0, atol=1e-12)
        assert all(not np.any(value) for value in (statistics.b, statistics.bb, statistics.xb))
    statistics, _ = expected_statistics(parameters._replace(prior=SingleScaleTernary(0.5)), block)
    np.testing.assert_allclose(statistics.prior, [0.0, 3.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["bg", "ifa-two", "te"])
def test_components_that_are_alike_or_absent_leave_finite_answers(name):
    parameters, block = problem(PRIORS[name], 3)
    a = parameters.A[:, 0]
    for A in (jnp.stack([a, a, 0 * a], 1), jnp.stack([a, -a, a], 1), jnp.zeros((4, 3))):
        statistics, log_p = expected_statistics(parameters._replace(A=A), block)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((statistics, log_p)))
    # nothing is known of beta where A is zero: its posterior is the prior
    second = {"bg": 0.3, "ifa-two": 1 + 0.5 * 1.0**2 + 0.3 * 3.0**2, "te": 2 * 0.4}[name]
    np.testing.assert_allclose(statistics.bb, second * np.eye(3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_low_noise_costs_no_more_digits_than_it_must(condition):
    # noise 1e-3 of the signal: |x|^2 / sigma^2 is 1e7 or so and its rounding 1e-9; squares of A'x
    # alone would lose condition^2 times that
    rng = np.random.default_rng(6)
    U, _, V = np.linalg.svd(rng.normal(size=(6, 3)), full_matrices=False)
    A, sigma = 3 * U * np.geomspace(1, 1 / condition, 3) @ V, 1e-3
    x = A @ rng.normal(size=(3, 30)) + sigma * rng.normal(size=(6, 30))
    log_p = enumeration.log_likelihood(
        Parameters(jnp.array(A), jnp.zeros(6), jnp.array(sigma**2), Independent(Normal())),
        jnp.array(x),
    )
    # in the singular vectors x is independent normals
    left, singular, _ = np.linalg.svd(A)
    variance = np.append(singular**2, np.zeros(3)) + sigma**2
    expected = -0.5 * (
        (left.T @ x) ** 2 / variance[:, None] + np.log(2 * np.pi * variance)[:, None]
    ).sum(0)
    scale = (x**2).sum(0).max() / sigma**2 * np.finfo(float).eps
    np.testing.assert_allclose(log_p, expected, rtol=0, atol=30 * scale)


def test_counts_states_and_says_what_it_cannot_do():
    assert enumeration.count_states(BernoulliGaussian(), 10) == 1024
    assert enumeration.count_states(GaussianMixture(), 4) == 81
    assert enumeration.count_states(SingleScaleTernary(), 9) == 3**9
    assert enumeration.count_states(Independent(Normal()), 300) == 1
    without = ["log", "lap", "eg", "ebg", "et", "teoff", "adaptive"]
    assert [
        name for name in priors.TABLE if enumeration.count_states(priors.get(name), 2) is None
    ] == without
    assert enumeration.count_states(PRIORS["nested"], 2) == 16
    laplace = Independent(Mixture((Dirac(), Laplace()), (0.5, 0.5)))
    assert enumeration.count_states(laplace, 2) is None
    for prior, p in (
        (BernoulliGaussian(), 14),
        (SingleScaleTernary(), 9),
        (Independent(Normal()), 300),
    ):
        enumeration.check(prior, p)
    for name in without:
        with pytest.raises(
            ValueError, match="no exact E-step.*'ifa', 'bg' and 'te'.*'saem', 'mcem' or 'fam-em'"
        ):
            enumeration.check(priors.get(name), 2)
    with pytest.raises(
        ValueError,
        match="32,768 with this prior and 15 components.*20,000.*'saem', 'mcem' or 'fam-em'",
    ):
        enumeration.check(BernoulliGaussian(), 15)
    parameters, block = problem(priors.get("lap"), 2)
    for call in (
        lambda: expected_statistics(parameters, block),
        lambda: enumeration.log_likelihood(parameters, block.x),
    ):
        with pytest.raises(ValueError, match="no exact E-step"):
            call()


def test_calls_no_lapack():
    # two batched calls at once have locked up XLA:CPU on two cores, now and then
    for name in ("bg", "te"):
        parameters, block = problem(PRIORS[name], 3)
        lowered = enumeration.expectation.lower(parameters, block.x, block.weight)
        assert "lapack" not in lowered.as_text().lower()


def test_sweeps_of_te_leave_wrong_patterns():
    """Statistics of sweeps agree with the exact expectation where the noise is low.

    Signs that were drawn one by one would stay where they are.
    """
    rng = np.random.default_rng(0)
    prior, n, d, p, sigma = SingleScaleTernary(0.2), 512, 10, 4, 0.3
    A = rng.normal(size=(d, p))
    y, s = rng.choice((-1.0, 0.0, 1.0), size=(p, n), p=(0.2, 0.6, 0.2)), rng.exponential(size=n)
    block = block_of(A @ (s * y) + sigma * rng.normal(size=(d, n)))
    parameters = Parameters(jnp.array(A), jnp.zeros(d), jnp.array(sigma**2), prior)
    exact = expected_statistics(parameters, block)[0]
    tilt = channel(parameters, block.x)

    def residual(statistics):
        return (
            statistics.xx.sum() - 2 * (A * statistics.xb).sum() + (A.T @ A * statistics.bb).sum()
        ) / d

    def sweep(latent, key):
        latent = prior.gibbs(key, latent, tilt)
        return latent, residual(collect(prior, latent, block))

    start = prior.sample_prior(jax.random.key(0), p, n, float)
    drawn = (
        np.asarray(jax.lax.scan(sweep, start, jax.random.split(jax.random.key(1), 400))[1])[80:]
        .reshape(8, -1)
        .mean(1)
    )
    assert abs(drawn.mean() - residual(exact)) < 4 * drawn.std(ddof=1) / np.sqrt(8)
