"""The exact E-step and likelihood against integration, and against Gaussians in d dimensions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from noisyica.engine.statistics import collect
from noisyica.posterior import enumeration
from noisyica.priors import TernaryState
from tests.blocks import block_of
from tests.posterior.enumerated import NORMALS, PRIORS, expected_statistics, problem

pytestmark = pytest.mark.usefixtures("double")

collected = jax.jit(collect)


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
    # the trapezoid rule converges faster than any power of its step for normal densities; it never
    # steps on an atom
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

    statistics, log_p = expected_statistics(parameters, block)
    np.testing.assert_allclose(log_p, total, rtol=0, atol=1e-10)
    assert jax.tree.structure(statistics) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(statistics), jax.tree.leaves(expected), strict=True):
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
    statistics, log_p = expected_statistics(parameters, block)
    np.testing.assert_allclose(log_p, total, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        statistics.b, np.einsum("sn,spn->p", weight, means), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        statistics.xb, np.einsum("sn,dn,spn->dp", weight, x, means), rtol=0, atol=1e-12
    )
    second = np.einsum("sn,spn,sqn->pq", weight, means, means) + np.einsum(
        "sn,spq->pq", weight, covariances
    )
    np.testing.assert_allclose(statistics.bb, second, rtol=0, atol=1e-12)
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
    np.testing.assert_allclose(jax.tree.leaves(statistics.prior), expected, rtol=0, atol=1e-12)
