"""Shifts inside and after censoring and scaling: scores, likelihoods, M-steps and their limits."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from noisyica import Model, NoisyICA, compress, laws, priors
from noisyica._jax.arrays import all_states, cast
from noisyica.engine import means
from noisyica.posterior.parameters import Parameters, channel
from tests.tools import some_slow

pytestmark = pytest.mark.usefixtures("double")

A = np.array([[1.0, 0.3], [-0.4, 0.9], [0.6, -0.8]])
NOISE = np.array([0.3, 0.5, 0.4])
ALPHA, GAMMA, MU = 0.4, 0.2, 1.6
X = np.array([0.9, -0.2, 1.1])


def density_bg(mu, x=X):
    """Of Shifted("bg"), the sum over which of the two coefficients are on."""
    total = 0.0
    for on in all_states(2, 2):
        weight = np.prod(np.where(on, ALPHA, 1 - ALPHA))
        covariance = A @ np.diag(on) @ A.T + np.diag(NOISE)
        total += weight * scipy.stats.multivariate_normal(mu * A.sum(1), covariance).pdf(x)
    return total


def density_et(mu, x=X):
    """Of Shifted("et"), for each pattern of signs an integral over both scales."""
    s = np.linspace(0, 12, 1201)  # Simpson's rule
    total = 0.0
    for signs in all_states(3, 2) - 1:
        weight = np.prod(np.where(signs != 0, GAMMA, 1 - 2 * GAMMA))
        beta = mu + np.stack(np.meshgrid(signs[0] * s, signs[1] * s, indexing="ij"))
        residual = x[:, None, None] - np.tensordot(A, beta, 1)
        values = scipy.stats.norm.pdf(residual, scale=np.sqrt(NOISE)[:, None, None]).prod(0)
        values = values * np.exp(-s)[:, None] * np.exp(-s)
        inner = scipy.integrate.simpson(values, x=s)
        total += weight * scipy.integrate.simpson(inner, x=s)
    return total


def density_te(mu, x=X, inside=False):
    """Of TE with a shift, for each pattern of signs an integral over the scale."""

    def given(s, signs):
        beta = s * (mu + signs) if inside else mu + s * signs
        return np.exp(-s) * scipy.stats.norm.pdf(x - A @ beta, scale=np.sqrt(NOISE)).prod()

    total = 0.0
    for signs in all_states(3, 2) - 1:
        weight = np.prod(np.where(signs != 0, GAMMA, 1 - 2 * GAMMA))
        parts = ((0, 2), (2, 60))
        total += weight * sum(
            scipy.integrate.quad(given, *ends, args=(signs,))[0] for ends in parts
        )
    return total


CASES = {
    "bg": (lambda mu: priors.Shifted(priors.BernoulliGaussian(ALPHA), mu), density_bg),
    "et": (lambda mu: priors.Shifted(priors.ExponentialTernary(GAMMA), mu), density_et),
    "te": (lambda mu: priors.Shifted(priors.SingleScaleTernary(GAMMA), mu), density_te),
    "te inside": (
        lambda mu: priors.ShiftedSingleScaleTernary(GAMMA, mu),
        lambda mu, x=X: density_te(mu, x, True),
    ),
}


@pytest.mark.parametrize("name", some_slow(CASES, "et"))
def test_what_rows_say_of_a_shift_is_its_score(name):
    """The mean of b - a mu over the posterior is the slope of log p(x), by finite differences."""
    make, density = CASES[name]
    n, h = 4000, 1e-4
    prior = cast(make(MU), float)
    parameters = Parameters(jnp.asarray(A), jnp.zeros(3), jnp.asarray(NOISE), prior)
    seen = channel(parameters, jnp.tile(X[:, None], n))

    @jax.jit
    def scores(key):
        latent = prior.sample_prior(key, 2, n, float)

        def turn(latent, key):
            latent = prior.gibbs(key, latent, seen)
            return latent, latent.sums.b - latent.sums.a * MU

        return jax.lax.scan(turn, latent, jax.random.split(key, 40))[1][10:]

    of_chains = np.asarray(scores(jax.random.key(0))).mean(0)  # of n chains
    slope = (np.log(density(MU + h)) - np.log(density(MU - h))) / (2 * h)
    error = of_chains.std() / np.sqrt(n)
    assert of_chains.mean() == pytest.approx(slope, abs=4.5 * error)
    assert 4.5 * error < 0.2 * abs(slope)  # a wrong sign, or half of it, would be seen


@pytest.mark.parametrize("name", some_slow(CASES, "et"))
def test_likelihood_agrees_with_integration(name):
    make, density = CASES[name]
    model = Model(A, None, NOISE, make(MU))
    rows = np.array([X, [0.1, 0.4, -0.3]])
    value, error = model.log_likelihood(rows, return_std=True, random_state=0)
    expected = np.log([density(MU, x) for x in rows])
    np.testing.assert_array_less(np.abs(value - expected), 4.5 * error + 1e-4)
    if name in ("bg", "te"):
        assert (error == 0).all()  # all patterns are enumerated
    assert error.max() < 0.1


@pytest.mark.parametrize(("mu", "t"), [(2.0, 1.3), (2.0, -0.4), (-0.7, 5.0), (0.5, 0.02)])
def test_statistic_of_a_shift_inside_the_scale_is_its_score(mu, t):
    """E[Y | s Y = t] - mu is the slope of the log density of s Y at t."""
    law = laws.ScaleMixture(laws.Exponential(), laws.FreeNormal(mu))

    def density(mu):
        def given(v):  # v = log s
            return np.exp(-np.exp(v)) * scipy.stats.norm.pdf(t * np.exp(-v) - mu)

        peak = np.log(abs(t))
        ends = [peak - 4, peak, peak + 4, max(peak + 4, 0) + 4]
        parts = itertools.pairwise(ends)
        return sum(scipy.integrate.quad(given, *part, limit=200)[0] for part in parts)

    total, count = law.statistics(jnp.asarray([t]))
    h = 1e-4
    slope = (np.log(density(mu + h)) - np.log(density(mu - h))) / (2 * h)
    assert float(count[0]) == pytest.approx(1.0)
    assert float(total[0]) - mu == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_shift_inside_the_scale_is_learnt_from_values():
    true = laws.ScaleMixture(laws.Exponential(), laws.Normal(2.0))
    t = true.sample(jax.random.key(0), shape=(2000,))
    law = laws.ExponentialNormal().located()
    learn = jax.jit(lambda law: law.mstep(jax.tree.map(jnp.sum, law.statistics(t))))
    for _ in range(60):
        law = learn(law)
    score = np.asarray(law.statistics(t)[0]) - float(law.location)
    # the score has mean zero there, and its mean square is the information of a value
    assert abs(score.mean()) < 1e-3
    error = 1 / np.sqrt(len(t) * np.mean(score**2))
    assert float(law.location) == pytest.approx(2.0, abs=4.5 * error)
    assert law.n_parameters == 1


@pytest.mark.parametrize("name", ["bg", "te"])
def test_most_probable_coefficients_are_shifted(name):
    prior = CASES[name][0](MU)
    rows = np.random.default_rng(0).normal(size=(20, 3))
    shifted = Model(A, None, NOISE, prior).map(rows)
    plain = Model(A, MU * A.sum(1), NOISE, prior.prior).map(rows)
    np.testing.assert_allclose(shifted, plain + MU, atol=1e-6)


@pytest.mark.parametrize(
    "prior",
    [
        priors.Shifted(priors.ExponentialBernoulliGaussian(0.3), 1.5),
        priors.Shifted(priors.SingleScaleTernary(0.2), -0.5),
        priors.ShiftedSingleScaleTernary(0.2, 1.5),
        priors.ExponentialGaussian().shifted(),
    ],
)
def test_moments_are_those_of_draws(prior):
    n = 20_000
    prior = cast(prior, float)
    beta = np.asarray(prior.coefficients(prior.sample_prior(jax.random.key(0), 2, n, float)))[0]
    assert prior.mean() == pytest.approx(beta.mean(), abs=4.5 * beta.std() / np.sqrt(n))
    squares = np.square(beta - beta.mean())
    assert prior.variance() == pytest.approx(squares.mean(), abs=4.5 * squares.std() / np.sqrt(n))
    squares = np.square(beta)
    mean_square = float(prior.mean_square())
    assert mean_square == pytest.approx(squares.mean(), abs=4.5 * squares.std() / np.sqrt(n))
    assert not prior.symmetric


def test_logistic_offsets():
    """The scale is the mean size, its M-step the maximum, and posteriors agree with quadrature."""
    n = 20_000
    prior = cast(priors.Offset(priors.BernoulliGaussian(0.4), 2.5, law="logistic"), float)
    law = prior.offset_law()
    t = np.linspace(-60, 60, 200_001)
    density = np.exp(np.asarray(law.log_density(t)))
    assert scipy.integrate.trapezoid(density, t) == pytest.approx(1.0)
    assert scipy.integrate.trapezoid(np.abs(t) * density, t) == pytest.approx(2.5)
    cdf = priors.OFFSET_LAWS["logistic"].cdf(np.array([-1.0, 2.0]), 2.5)
    below = [scipy.integrate.trapezoid(density[t <= x], t[t <= x]) for x in (-1.0, 2.0)]
    np.testing.assert_allclose(cdf, below, atol=1e-3)
    latent = prior.sample_prior(jax.random.key(0), 2, n, float)
    learnt = cast(priors.Offset(priors.BernoulliGaussian(0.4), 1.0, law="logistic"), float)
    for _ in range(100):
        learnt = learnt.mstep(learnt.statistics(latent, jnp.ones(n)))
    best = float(learnt.offset_scale)
    values = [float(learnt._with(learnt.prior, best * f).offset_law().log_density(latent.mu).sum())
              for f in (0.99, 1.0, 1.01)]  # fmt: skip
    assert values[1] > max(values[0], values[2])
    # of log scale, a logistic value has the information pi^2 / 9 + 1 / 3
    assert best == pytest.approx(2.5, rel=4.5 / np.sqrt(n * (np.pi**2 / 9 + 1 / 3)))


def test_offsets_see_the_noise_of_each_column():
    """Given the coefficients, a = sum 1 / sigma_i^2 and b = sum (x - A beta)_i / sigma_i^2."""
    from noisyica.posterior.offsets import offsets

    model = Model(A, None, NOISE, priors.Offset("bg", 1.2, law="logistic"))
    beta = np.array([[0.3, -0.5]])
    mu = np.linspace(-20, 20, 40_001)
    residual = X[:, None] - (A @ beta[0])[:, None] - mu
    z = mu * np.log(2) / 1.2
    logs = scipy.stats.norm.logpdf(residual, scale=np.sqrt(NOISE)[:, None]).sum(0)
    weight = np.exp(logs) / np.cosh(z) ** 2
    assert offsets(model, X[None], beta) == pytest.approx((weight * mu).sum() / weight.sum())


def test_errors_name_what_a_shift_does_not_have():
    X = np.random.default_rng(0).normal(size=(40, 5))
    with pytest.raises(ValueError, match="offset or a shift already"):
        priors.Shifted(priors.Shifted("bg"))
    with pytest.raises(ValueError, match="one of 'laplace', 'logistic'"):
        priors.Offset("bg", law="normal")
    with pytest.raises(ValueError, match="finite"):
        priors.ShiftedSingleScaleTernary(0.2, np.nan)
    with pytest.raises(ValueError, match="has an offset"):
        NoisyICA(2, prior="teoff", mean="shift-after").fit(X)
    with pytest.raises(ValueError, match="does not learn Shifted"):
        NoisyICA(2, mean="shift-after", algorithm="fam-em").fit(X)
    with pytest.raises(ValueError, match="no exact E-step"):
        NoisyICA(2, mean="shift-after", algorithm="em").fit(X)
    with pytest.raises(NotImplementedError, match="no mode"):
        Model(A, None, NOISE, priors.ShiftedSingleScaleTernary()).map(X[:, :3])
    with pytest.raises(NotImplementedError, match="no log density"):
        Model(A, None, NOISE, priors.Shifted("bg")).complete_log_density(X[:, :3], X[:, :2])
    with pytest.raises(TypeError, match="a shift"):
        compress(Model(A, None, NOISE, priors.ShiftedSingleScaleTernary()), X[:, :3])


def test_nothing_comes_between_a_smooth_law_and_its_coefficients():
    for name in ("log", "lap", "ifa"):
        prior = priors.get(name)
        assert type(means.shifted(prior, "shift-after")) is type(prior)
        assert (
            means.shifted(prior, "shift-after").parameters["shift"]
            == prior.shifted().parameters["shift"]
        )
    assert isinstance(means.shifted(priors.get("bg"), "shift-after"), priors.Shifted)
