"""The exact E-step and likelihood against integration over the coefficients, Gaussian formulas in d dimensions, and what EM promises."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from noisyica import priors
from noisyica._jax.arrays import cast, to_numpy
from noisyica.engine.mstep import mstep
from noisyica.engine.statistics import collect, without_offset
from noisyica.laws import Dirac, Laplace, Mixture, Normal, SymmetricNormals
from noisyica.posterior import enumeration
from noisyica.posterior.parameters import Parameters, channel
from noisyica.priors import (
    BernoulliGaussian,
    GaussianMixture,
    Independent,
    SingleScaleTernary,
    TernaryState,
)
from tests.blocks import block_of

pytestmark = pytest.mark.usefixtures("double")

# each prior with its classes: (weight, mean, scale)
NORMALS = {
    "bg": (BernoulliGaussian(0.3), [(0.7, 0.0, 0.0), (0.3, 0.0, 1.0)]),
    "bg-shift": (BernoulliGaussian(0.4, 1.5).shifted(), [(0.6, 0.0, 0.0), (0.4, 1.5, 1.0)]),
    "ifa": (
        GaussianMixture((2.5,), (0.4, 0.6)),
        [(0.4, 0.0, 1.0), (0.3, 2.5, 1.0), (0.3, -2.5, 1.0)],
    ),
    "ifa-two": (
        Independent(SymmetricNormals((1.0, 3.0), (0.2, 0.5, 0.3))),
        [(0.2, 0.0, 1.0), (0.25, 1.0, 1.0), (0.25, -1.0, 1.0), (0.15, 3.0, 1.0), (0.15, -3.0, 1.0)],
    ),
    "composed": (
        Independent(Mixture((Normal(-1.0, 0.7), Dirac(0.5), Normal(2.0, 1.3)), (0.2, 0.5, 0.3))),
        [(0.2, -1.0, 0.7), (0.5, 0.5, 0.0), (0.3, 2.0, 1.3)],
    ),
    "nested": (
        Independent(Mixture((Dirac(), SymmetricNormals((1.5,), (0.4, 0.6))), (0.5, 0.5))),
        [(0.5, 0.0, 0.0), (0.2, 0.0, 1.0), (0.15, 1.5, 1.0), (0.15, -1.5, 1.0)],
    ),
    "normal": (Independent(Normal(0.6, 1.2)), [(1.0, 0.6, 1.2)]),
}
collected = jax.jit(collect)
PRIORS = {name: prior for name, (prior, _) in NORMALS.items()} | {"te": SingleScaleTernary(0.2)}


def problem(prior, p, n=6, d=4, sigma=0.6, seed=0):
    """Parameters, and a block of rows with unequal weights from near them; one shape, so that tests share what is compiled."""
    rng = np.random.default_rng(seed)
    A, mean = rng.normal(size=(d, p)), rng.normal(size=d)
    x = mean[:, None] + A @ rng.normal(scale=1.5, size=(p, n)) + sigma * rng.normal(size=(d, n))
    weight = rng.dirichlet(np.ones(n))
    return Parameters(jnp.array(A), jnp.array(mean), jnp.array(sigma**2), prior), block_of(
        x, weight
    )


def expected_statistics(parameters, block):
    """Return the expected statistics of a block, as EM takes them, and log p(x) of each row."""
    moments, log_p = enumeration.expectation(parameters, block.x, block.weight)
    return without_offset(block, *moments), log_p


def nodes_of(name, p):
    """Quadrature of the prior: latent variables, their coefficients (p, N), and log masses (N,)."""
    if name == "te":
        # Gauss-Legendre on 150 panels of [0, 45], where all but exp(-45) of the scale's mass is
        t, w = np.polynomial.legendre.leggauss(12)
        s = (np.arange(150)[:, None] * 0.3 + 0.15 * (t + 1)).ravel()
        log_mass = np.log(np.tile(0.15 * w, 150)) - s
        y = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=p))).T
        log_sign = np.where(y == 0, np.log(0.6), np.log(0.2)).sum(0)
        y, s, log_mass = (
            np.repeat(y, s.size, 1),
            np.tile(s, y.shape[1]),
            (log_sign[:, None] + log_mass).ravel(),
        )
        return TernaryState(jnp.array(y), jnp.array(s)), y * s, log_mass
    # the trapezoid rule converges faster than any power of its step for normal densities; it never steps on an atom
    t = -10 + 0.05 * (np.arange(400) + np.sqrt(0.5))
    density = sum(
        w * np.exp(-0.5 * ((t - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        for w, m, s in NORMALS[name][1]
        if s > 0
    )
    atoms = [(m, w) for w, m, s in NORMALS[name][1] if s == 0]
    points = np.concatenate([t, [m for m, _ in atoms]])
    masses = np.log(np.concatenate([0.05 * density, [w for _, w in atoms]]) + 1e-300)
    beta = np.stack(np.meshgrid(*[points] * p, indexing="ij")).reshape(p, -1)
    log_mass = sum(np.meshgrid(*[masses] * p, indexing="ij")).ravel()
    return jnp.array(beta), beta, log_mass


def log_terms_of(parameters, x, beta, log_mass):
    """Log of p(x, node) for the rows and nodes (n, N), from the definition of the model."""
    A, mean, sigma2 = (np.asarray(value) for value in parameters[:3])
    distance = np.stack(
        [((row[:, None] - A @ beta) ** 2).sum(0) for row in (np.asarray(x) - mean[:, None]).T]
    )
    return log_mass - 0.5 * (distance / sigma2 + len(A) * np.log(2 * np.pi * sigma2))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("name", ["bg", "bg-shift", "ifa", "te", "composed", "nested"])
def test_likelihood_agrees_with_integration_over_the_coefficients(name, p):
    parameters, block = problem(PRIORS[name], p)
    _, beta, log_mass = nodes_of(name, p)
    expected = logsumexp(log_terms_of(parameters, block.x, beta, log_mass), axis=1)
    np.testing.assert_allclose(
        enumeration.log_likelihood(parameters, block.x), expected, rtol=0, atol=1e-10
    )


@pytest.mark.parametrize(
    ("name", "p"),
    [("bg", 2), ("bg-shift", 2), ("ifa", 2), ("composed", 2), ("nested", 2), ("te", 3)],
)
def test_expectation_agrees_with_integration_over_the_coefficients(name, p):
    # collect's statistics of each row at each node, weighted with the node's posterior probability
    parameters, block = problem(PRIORS[name], p)
    latent, beta, log_mass = nodes_of(name, p)
    log_terms = log_terms_of(parameters, block.x, beta, log_mass)
    total = logsumexp(log_terms, axis=1)
    weight = np.asarray(block.weight)[:, None] * np.exp(log_terms - total[:, None])
    rows = block_of(np.repeat(np.asarray(block.x), beta.shape[1], 1), weight.ravel())
    expected = collected(
        parameters.prior, jax.tree.map(lambda leaf: jnp.tile(leaf, len(weight)), latent), rows
    )

    found, log_p = expected_statistics(parameters, block)
    np.testing.assert_allclose(log_p, total, rtol=0, atol=1e-10)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["bg", "bg-shift", "ifa-two", "normal"])
def test_agrees_with_gaussians_in_d_dimensions(name):
    prior, classes = NORMALS[name]
    p = 3
    parameters, block = problem(prior, p, seed=1)
    A, mean, sigma2 = (np.asarray(value) for value in parameters[:3])
    x = np.asarray(block.x)
    logs, means, covariances = [], [], []
    for state in itertools.product(classes, repeat=p):
        weights, m, scales = np.array(state).T
        V = np.diag(scales**2)
        law = multivariate_normal(mean + A @ m, A @ V @ A.T + sigma2 * np.eye(len(A)))
        gain = V @ A.T @ np.linalg.inv(law.cov)
        logs.append(np.log(weights).sum() + law.logpdf(x.T))
        means.append(m[:, None] + gain @ (x - law.mean[:, None]))
        covariances.append(V - gain @ A @ V)
    total = logsumexp(logs, axis=0)
    weight = np.asarray(block.weight) * np.exp(logs - total)  # (states, n)
    found, log_p = expected_statistics(parameters, block)
    np.testing.assert_allclose(log_p, total, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.b, np.einsum("sn,spn->p", weight, means), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        found.xb, np.einsum("sn,dn,spn->dp", weight, x, means), rtol=0, atol=1e-12
    )
    second = np.einsum("sn,spn,sqn->pq", weight, means, means) + np.einsum(
        "sn,spq->pq", weight, covariances
    )
    np.testing.assert_allclose(found.bb, second, rtol=0, atol=1e-12)
    membership = np.array(list(itertools.product(range(len(classes)), repeat=p)))[
        :, :, None
    ] == np.arange(len(classes))
    counts = np.einsum("sn,spk->k", weight, membership)
    assert counts.sum() == pytest.approx(p)
    if "ifa" in name:
        sums = np.einsum("sn,spk,spn->k", weight, membership, means)
        expected = [counts[0], *(counts[1::2] + counts[2::2]), *(sums[1::2] - sums[2::2])]
    elif name == "bg-shift":  # whose location is learnt
        expected = [
            *counts,
            np.einsum("sn,sp,spn->", weight, membership[:, :, 1], means),
            counts[1],
        ]
    else:
        expected = [] if name == "normal" else counts
    np.testing.assert_allclose(jax.tree.leaves(found.prior), expected, rtol=0, atol=1e-12)


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
        return mstep(statistics, parameters.prior, True, False, 1e-12), log_p.mean()

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
    found = expected_statistics(parameters, single)
    expected = expected_statistics(parameters, double)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_classes_of_weight_zero_do_no_harm():
    parameters, block = problem(BernoulliGaussian(1.0), 3)
    found, log_p = expected_statistics(parameters, block)
    normal = parameters._replace(prior=Independent(Normal()))
    expected, log_q = expected_statistics(normal, block)
    np.testing.assert_allclose(log_p, log_q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.bb, expected.bb, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.prior[0], [0.0, 3.0], rtol=0, atol=1e-12)
    for prior in (BernoulliGaussian(0.0), SingleScaleTernary(0.0)):
        found, log_p = expected_statistics(parameters._replace(prior=prior), block)
        noise = multivariate_normal(
            np.asarray(parameters.mean), np.asarray(parameters.sigma2) * np.eye(4)
        )
        np.testing.assert_allclose(log_p, noise.logpdf(np.asarray(block.x).T), rtol=0, atol=1e-12)
        assert all(not np.any(value) for value in (found.b, found.bb, found.xb))
    found, _ = expected_statistics(parameters._replace(prior=SingleScaleTernary(0.5)), block)
    np.testing.assert_allclose(found.prior, [0.0, 3.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["bg", "ifa-two", "te"])
def test_components_that_are_alike_or_absent_leave_finite_answers(name):
    parameters, block = problem(PRIORS[name], 3)
    a = parameters.A[:, 0]
    for A in (jnp.stack([a, a, 0 * a], 1), jnp.stack([a, -a, a], 1), jnp.zeros((4, 3))):
        found, log_p = expected_statistics(parameters._replace(A=A), block)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((found, log_p)))
    # nothing is known of beta where A is zero: its posterior is the prior
    second = {"bg": 0.3, "ifa-two": 1 + 0.5 * 1.0**2 + 0.3 * 3.0**2, "te": 2 * 0.4}[name]
    np.testing.assert_allclose(found.bb, second * np.eye(3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_low_noise_costs_no_more_digits_than_it_must(condition):
    # noise 1e-3 of the signal: |x|^2 / sigma^2 is 1e7 or so and its rounding 1e-9; squares of A'x alone would lose condition^2 times that
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
    without = ["log", "lap", "eg", "ebg", "et", "teoff"]
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
    """Where the noise is low, signs drawn one by one stay where they are: statistics of sweeps against the exact expectation."""
    rng = np.random.default_rng(0)
    prior, n, d, p, sigma = SingleScaleTernary(0.2), 512, 10, 4, 0.3
    A = rng.normal(size=(d, p))
    y, s = rng.choice((-1.0, 0.0, 1.0), size=(p, n), p=(0.2, 0.6, 0.2)), rng.exponential(size=n)
    block = block_of(A @ (s * y) + sigma * rng.normal(size=(d, n)))
    parameters = Parameters(jnp.array(A), jnp.zeros(d), jnp.array(sigma**2), prior)
    exact = expected_statistics(parameters, block)[0]
    tilt = channel(parameters, block.x)

    def residual(found):
        return (found.xx.sum() - 2 * (A * found.xb).sum() + (A.T @ A * found.bb).sum()) / d

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
