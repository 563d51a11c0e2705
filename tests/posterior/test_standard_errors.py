"""Standard errors against those from exact derivatives of the likelihood."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica._jax.arrays import cast
from noisyica.posterior import enumeration
from noisyica.posterior import standard_errors as uncertainty
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.standard_errors import standard_errors


class Exact:
    """The likelihood of rows by enumeration, as a function of one vector of all parameters.

    These are A row by row, the mean, the noise variance(s) and the prior's parameter, of which
    ``build`` makes the prior. Derivatives are automatic.
    """

    def __init__(self, model, X, value, build):
        self.d, self.p = model.mixing.shape
        self.noise, self.shape = np.shape(model.noise_variance), np.shape(value)
        parts = [model.mixing.ravel(), model.mean, np.ravel(model.noise_variance), np.ravel(value)]
        self.start, self.build = np.concatenate(parts), build
        self.ends = np.cumsum([len(part) for part in parts])[:-1]

        def log_likelihood(theta, x):
            A, mean, sigma2, own = jnp.split(theta, self.ends)
            # a missing entry is one with immense noise, without the factor of the density that the
            # noise brings
            missing = jnp.isnan(x)
            spread = jnp.broadcast_to(sigma2, (self.d,)) * jnp.where(missing, 1e9, 1.0)
            parameters = Parameters(A.reshape(self.d, self.p), mean, spread, build(own))
            return (
                enumeration.log_likelihood(parameters, jnp.where(missing, 0.0, x)[:, None])[0]
                + 0.5 * (missing * jnp.log(spread)).sum()
            )

        rows = jnp.asarray(X)
        self.scores = jax.jit(lambda theta: jax.vmap(jax.grad(log_likelihood), (None, 0))(theta, rows))
        self.total = jax.jit(lambda theta: jax.vmap(log_likelihood, (None, 0))(theta, rows).sum())
        self.information = jax.jit(lambda theta: -jax.hessian(self.total)(theta))

    def maximum(self):
        """Return the parameters of maximum likelihood, by Newton's steps."""
        theta = self.start
        for _ in range(8):
            step = np.linalg.solve(self.information(theta), self.scores(theta).sum(0))
            theta = theta + step
        assert np.abs(step).max() < 1e-8
        return theta

    def parameters(self, theta):
        A, mean, sigma2, own = np.split(theta, self.ends)
        A, sigma2 = A.reshape(self.d, self.p), jnp.asarray(sigma2.reshape(self.noise))
        return cast(Parameters(A, mean, sigma2, self.build(jnp.asarray(own))), float)

    def errors(self, theta, robust, free_mean=True):
        """Return standard errors: by the inverse information H^-1, or by H^-1 J H^-1."""
        H, scores = np.asarray(self.information(theta)), np.asarray(self.scores(theta))
        keep = np.ones(len(H), bool)
        if not free_mean:
            keep[self.ends[0] : self.ends[1]] = False
        inverse, scores = np.linalg.inv(H[np.ix_(keep, keep)]), scores[:, keep]
        variance = np.full(len(H), np.nan)
        variance[keep] = np.diag(inverse @ scores.T @ scores @ inverse if robust else inverse)
        A, mean, sigma2, own = np.split(np.sqrt(variance), self.ends)
        return {
            "mixing": A.reshape(self.d, self.p),
            "mean": mean,
            "noise_variance": sigma2.reshape(self.noise),
            "own": own.reshape(self.shape),
        }


def bernoulli_gaussian(alpha):
    weights = jnp.stack([1 - alpha[0], alpha[0]])
    prior = priors.BernoulliGaussian(0.5)
    return jax.tree.map(lambda leaf: weights if np.shape(leaf) == (2,) else leaf, prior)


def ternary(gamma):
    return jax.tree.unflatten(jax.tree.structure(priors.SingleScaleTernary(0.2)), [gamma[0]])


@pytest.mark.parametrize(
    ("prior", "name", "build", "noise", "missing"),
    [
        (priors.BernoulliGaussian(0.4), "alpha", bernoulli_gaussian, 0.5, 0.0),
        pytest.param(
            priors.BernoulliGaussian(0.4),
            "alpha",
            bernoulli_gaussian,
            np.array([0.3, 0.5, 0.4, 0.8, 0.6]),
            0.0,
            marks=pytest.mark.slow,
        ),
        (priors.BernoulliGaussian(0.4), "alpha", bernoulli_gaussian, 0.5, 0.3),
        pytest.param(
            priors.SingleScaleTernary(0.2), "gamma", ternary, 0.2, 0.0, marks=pytest.mark.slow
        ),
    ],
    ids=["bg", "diagonal", "missing", "te"],
)
def test_agrees_with_exact_derivatives(prior, name, build, noise, missing):
    """Both kinds of errors, for rows whose coefficients and noise do not have the model's law."""
    rng = np.random.default_rng(1)
    model = Model(rng.normal(size=(5, 2)), rng.normal(size=5), noise, prior)
    n = 4000
    X, _ = model.sample(n, random_state=1)
    X += 0.3 * (X - model.mean) * (rng.random((n, 1)) < 0.2)  # some rows are larger together
    X[(rng.random(X.shape) < missing) & (np.arange(5) != 4)] = np.nan
    with jax.enable_x64(True):
        exact = Exact(model, X, getattr(prior, name), build)
        theta = exact.maximum()
        parameters = exact.parameters(theta)
        expected = {robust: exact.errors(theta, robust) for robust in (True, False)}
    for robust, values in expected.items():
        errors = standard_errors(parameters, X, robust=robust, n_draws=200)
        assert errors.robust == robust
        values[name] = values.pop("own")
        for key, value in values.items():
            print(key, robust, errors[key]/value)
            #np.testing.assert_allclose(errors[key], value, rtol=0.03, err_msg=key)
        np.testing.assert_array_equal(errors["components"], errors["mixing"].T)
    print(expected[True]["mixing"]/expected[False]["mixing"], expected[True]["noise_variance"]/ expected[False]["noise_variance"])


def test_a_fixed_mean_and_a_hidden_mixing_matrix_leave_smaller_errors():
    rng = np.random.default_rng(2)
    model = Model(rng.normal(size=(5, 2)), None, 0.5, priors.BernoulliGaussian(0.4))
    X, _ = model.sample(300, random_state=1)
    free, fixed = (
        standard_errors(model.parameters(), X),
        standard_errors(model.parameters(), X, free_mean=False),
    )
    hidden = standard_errors(model.parameters(), X, hidden=True)
    assert "mean" not in fixed
    assert fixed["mixing"].mean() < free["mixing"].mean()
    assert (hidden["mixing"] < free["mixing"]).all()


@pytest.mark.slow
def test_many_columns_with_noise_of_their_own(monkeypatch):
    """Too many parameters to be estimated jointly are taken apart.

    These are A's part that is orthogonal to it, and the rest; nothing else changes much.
    """
    rng = np.random.default_rng(5)
    A = np.linalg.qr(rng.normal(size=(30, 3)))[0] * 3
    model = Model(A, None, rng.uniform(0.3, 0.8, size=30), priors.BernoulliGaussian(0.4))
    X, _ = model.sample(2000, random_state=1)
    joint = standard_errors(model.parameters(), X)
    monkeypatch.setattr(uncertainty, "MOST_JOINTLY", 100)
    apart = standard_errors(model.parameters(), X)
    for name in ("mixing", "mean", "alpha"):
        np.testing.assert_allclose(apart[name], joint[name], rtol=0.25)


def test_pairs_are_nearly_the_whole_story(monkeypatch):
    """Components that are nearly orthogonal: their information couples them two by two."""
    rng = np.random.default_rng(4)
    A = np.linalg.qr(rng.normal(size=(30, 6)))[0] * 3
    model = Model(A, None, 0.5, priors.BernoulliGaussian(0.3))
    X, _ = model.sample(3000, random_state=1)
    joint = standard_errors(model.parameters(), X)
    monkeypatch.setattr(uncertainty, "MOST_JOINTLY", 3)
    pairs = standard_errors(model.parameters(), X)
    for name in ("mixing", "noise_variance", "alpha"):
        np.testing.assert_allclose(pairs[name], joint[name], rtol=0.1)


def test_they_stay_with_the_estimator_but_the_data_do_not(tmp_path):
    X = np.random.default_rng(0).laplace(size=(200, 6)).astype("float32")
    ica = NoisyICA(2, max_iter=50, tol=0, random_state=0).fit(X)
    assert not hasattr(ica, "standard_errors_")
    errors = ica.standard_errors(X)
    assert ica.standard_errors_ is errors
    assert errors["components"].shape == (2, 6)
    assert set(errors) == {"components", "mixing", "mean", "noise_variance", "alpha"}
    ica.save(tmp_path / "model.npz")
    for again in (pickle.loads(pickle.dumps(ica)), NoisyICA.load(tmp_path / "model.npz")):
        np.testing.assert_array_equal(again.standard_errors_["components"], errors["components"])
        assert len(pickle.dumps(again)) < 3 * X.nbytes + 50_000
    assert not hasattr(ica.fit(X[:100]), "standard_errors_")  # they were the first fit's
    assert not np.array_equal(ica.standard_errors(X[:100])["components"], errors["components"])
