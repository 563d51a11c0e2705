"""Standard errors against those from exact derivatives of the likelihood."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import multivariate_normal

from noisyica import Model, NoisyICA, priors
from noisyica._jax.arrays import cast
from noisyica.laws import NormalScales
from noisyica.posterior import enumeration, information
from noisyica.posterior import standard_errors as uncertainty
from noisyica.posterior.parameters import Parameters
from noisyica.posterior.standard_errors import standard_errors
from noisyica.posterior.student import MOST_DOF


class Exact:
    """The likelihood of rows by enumeration, as a function of one vector of all parameters.

    These are A row by row, the mean, the noise variance(s), the prior's parameter, of which
    ``build`` makes the prior, and the degrees of freedom of Student noise, if that is what it is:
    then the weights of rows are integrated out numerically. Derivatives are automatic.
    """

    log_weights = np.arange(-7.0, 3.0, 0.5)  # where integrals are exact to five digits

    def __init__(self, model, X, value, build):
        self.d, self.p = model.mixing.shape
        self.noise, self.shape = np.shape(model.noise_variance), np.shape(value)
        parts = [model.mixing.ravel(), model.mean, np.ravel(model.noise_variance), np.ravel(value)]
        parts.append([] if model.noise_dof is None else [model.noise_dof])
        self.start, self.build = np.concatenate(parts), build
        self.ends = np.cumsum([len(part) for part in parts])[:-1]

        def given_weight(theta, x, w):
            A, mean, sigma2, own, _ = jnp.split(theta, self.ends)
            # a missing entry is one with immense noise, without the factor of the density that the
            # noise brings
            missing = jnp.isnan(x)
            spread = jnp.broadcast_to(sigma2 / w, (self.d,)) * jnp.where(missing, 1e9, 1.0)
            parameters = Parameters(A.reshape(self.d, self.p), mean, spread, build(own))
            return (
                enumeration.log_likelihood(parameters, jnp.where(missing, 0.0, x)[:, None])[0]
                + 0.5 * (missing * jnp.log(spread)).sum()
            )

        def log_likelihood(theta, x):
            if model.noise_dof is None:
                return given_weight(theta, x, 1.0)
            w, h = jnp.exp(self.log_weights), theta[-1] / 2
            values = jax.vmap(given_weight, (None, None, 0))(theta, x, w)
            return logsumexp(values + h * (jnp.log(h * w) - w) - gammaln(h)) + np.log(0.5)

        rows = jnp.asarray(X)
        self.scores = jax.jit(
            lambda theta: jax.vmap(jax.grad(log_likelihood), (None, 0))(theta, rows)
        )

    def total(self, theta):
        return np.asarray(self.scores(theta)).sum(0)

    def information(self, theta):
        """Return minus the second derivatives, by central differences of the first ones."""
        steps = 1e-5 * np.eye(len(theta))
        H = [(self.total(theta - step) - self.total(theta + step)) / 2e-5 for step in steps]
        return 0.5 * (np.array(H) + np.array(H).T)

    def maximum(self):
        """Return the parameters of maximum likelihood, by Newton's steps, the first ones halved."""
        theta = self.start
        for length in (0.5, 1.0, 1.0):
            H = self.information(theta)  # which takes the time
            for _ in range(4):
                step = np.linalg.solve(H, self.total(theta))
                theta = theta + length * step
        np.testing.assert_allclose(step, 0.0, atol=1e-5)
        return theta

    def parameters(self, theta):
        A, mean, sigma2, own, dof = np.split(theta, self.ends)
        A, sigma2 = A.reshape(self.d, self.p), jnp.asarray(sigma2.reshape(self.noise))
        dof = jnp.asarray(dof[0]) if len(dof) else None
        return cast(Parameters(A, mean, sigma2, self.build(jnp.asarray(own)), dof=dof), float)

    def errors(self, theta, robust, free_mean=True):
        """Return standard errors: by the inverse information H^-1, or by H^-1 J H^-1."""
        H, scores = self.information(theta), np.asarray(self.scores(theta))
        keep = np.ones(len(H), bool)
        if not free_mean:
            keep[self.ends[0] : self.ends[1]] = False
        inverse, scores = np.linalg.inv(H[np.ix_(keep, keep)]), scores[:, keep]
        variance = np.full(len(H), np.nan)
        variance[keep] = np.diag(inverse @ scores.T @ scores @ inverse if robust else inverse)
        A, mean, sigma2, own, dof = np.split(np.sqrt(variance), self.ends)
        errors = {
            "mixing": A.reshape(self.d, self.p),
            "mean": mean,
            "noise_variance": sigma2.reshape(self.noise),
            "own": own.reshape(self.shape),
        }
        return errors | ({"noise_dof": dof[0]} if len(dof) else {})


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
    X += 0.6 * (X - model.mean) * (rng.random((n, 1)) < 0.2)  # some rows are larger
    X[(rng.random(X.shape) < missing) & (np.arange(5) != 4)] = np.nan
    with jax.enable_x64(True):
        exact = Exact(model, X, getattr(prior, name), build)
        theta = exact.maximum()
        parameters = exact.parameters(theta)
        expected = {robust: exact.errors(theta, robust) for robust in (True, False)}
    assert (expected[True]["noise_variance"] > 1.03 * expected[False]["noise_variance"]).all()
    for robust, values in expected.items():
        errors = standard_errors(parameters, X, robust=robust, n_draws=200)
        assert errors.robust == robust
        values[name] = values.pop("own")
        # from one random seed to another, entries vary by some 2 %, most where entries are missing
        for key, value in values.items():
            np.testing.assert_allclose(errors[key], value, rtol=0.1, err_msg=key)
        np.testing.assert_array_equal(errors["components"], errors["mixing"].T)


@pytest.mark.parametrize(
    ("p", "noise", "missing"),
    [
        (1, 0.3, 0.0),
        pytest.param(2, np.array([0.3, 0.5, 0.4, 0.8]), 0.2, marks=pytest.mark.slow),
    ],
    ids=["isotropic", "diagonal-missing"],
)
@pytest.mark.slow
def test_student_noise_agrees_with_exact_derivatives(p, noise, missing):
    """Both kinds of errors, for rows some of which have more noise in one column than in others."""
    rng = np.random.default_rng(1)
    prior = priors.BernoulliGaussian(0.4)
    A = 1.5 * rng.normal(size=(4, p))
    model = Model(A, rng.normal(size=4), noise, prior, noise_dof=4.0)
    n = 2000
    X, beta = model.sample(n, random_state=1)
    left = X - model.mean - beta @ A.T
    X[:, 0] += left[:, 0] * (rng.random(n) < 0.2)
    X[(rng.random(X.shape) < missing) & (np.arange(4) != 3)] = np.nan
    with jax.enable_x64(True):
        exact = Exact(model, X, prior.alpha, bernoulli_gaussian)
        theta = exact.maximum()
        parameters = exact.parameters(theta)
        expected = {robust: exact.errors(theta, robust) for robust in (True, False)}
    for robust, values in expected.items():
        errors = standard_errors(parameters, X, robust=robust, n_draws=200)
        values["alpha"] = values.pop("own")
        for key, value in values.items():
            np.testing.assert_allclose(errors[key], value, rtol=0.1, err_msg=key)


@pytest.mark.parametrize("robust", [False, True])
def test_student_noise_of_many_columns(monkeypatch, robust):
    """Noise variances are apart but for what is common to them, which rows' weights hide in part.

    Without it, their errors would be too small: by a tenth here.
    """
    A = np.linalg.qr(np.random.default_rng(5).normal(size=(16, 2)))[0] * 3
    model = Model(A, None, np.linspace(0.3, 0.8, 16), priors.BernoulliGaussian(0.4), noise_dof=3.0)
    X, _ = model.sample(2000, random_state=1)
    joint = standard_errors(model.parameters(), X, robust=robust)
    monkeypatch.setattr(uncertainty, "MOST_WHOLE", 10)
    monkeypatch.setattr(uncertainty, "MOST_JOINTLY", 10)
    monkeypatch.setattr(information, "MOST_NOISES", 10)
    apart = standard_errors(model.parameters(), X, robust=robust)
    for name in ("mixing", "mean", "noise_variance", "noise_dof"):
        ratio = apart[name] / joint[name]
        assert abs(ratio.mean() - 1) < (0.08 if name == "mixing" else 0.04), name
        assert (np.abs(ratio - 1) < 0.25).all(), name


def test_the_most_degrees_of_freedom_are_normal_noise():
    model = Model(np.eye(4)[:, :2], None, 0.5, priors.BernoulliGaussian(0.4))
    X, _ = model.sample(200, random_state=1)
    parameters = model.parameters()
    student = dict(standard_errors(parameters._replace(dof=MOST_DOF), X))
    assert np.isinf(student.pop("noise_dof"))
    np.testing.assert_equal(student, dict(standard_errors(parameters, X)))


@pytest.mark.slow
def test_a_learnt_law_has_the_scale_of_its_columns():
    """The errors with weights that are learnt, held where they are on their grid, exactly.

    With one component, a row is a mixture of normals; the weights' weak prior is one value each.
    """
    scales, weights = np.array([0.0, 0.5, 1.0, 2.0]), np.array([0.4, 0.3, 0.22, 0.08])
    prior = priors.Adaptive(scales, shared=True)._with(NormalScales(scales, weights), None)
    model = Model(np.array([[1.0], [-0.7], [0.4]]), None, 0.1, prior)
    X, _ = model.sample(4000, random_state=1)

    def log_density(theta):
        A, mean, sigma2, own = jnp.split(theta, [3, 6, 7])
        covariances = scales[:, None, None] ** 2 * jnp.outer(A, A) + sigma2 * jnp.eye(3)
        logs = jax.vmap(multivariate_normal.logpdf, (None, None, 0))(X, mean, covariances)
        return logsumexp(logs + jnp.log(own)[:, None], 0).sum() + jnp.log(own).sum()

    def held(own):  # the sum of weights, and the mean of log s by variance
        shares = own * scales**2
        return jnp.stack([own.sum(), shares[1:] @ np.log(scales[1:]) / shares.sum()])

    with jax.enable_x64(True):
        slope, hessian = jax.jit(jax.grad(log_density)), jax.jit(jax.hessian(log_density))
        theta = np.concatenate([model.mixing.ravel(), np.zeros(3), [0.1], weights])
        for _ in range(6):  # to the maximum
            fixed = np.zeros((2, len(theta)))
            fixed[:, 7:] = jax.jacfwd(held)(theta[7:])
            free = np.linalg.svd(fixed)[2][2:].T
            covariance = free @ np.linalg.inv(free.T @ -np.asarray(hessian(theta)) @ free) @ free.T
            step = covariance @ slope(theta)
            theta = theta + step
    np.testing.assert_allclose(step, 0.0, atol=1e-5)
    prior = prior._with(NormalScales(scales, theta[7:]), None)
    model, expected = (
        Model(theta[:3, None], theta[3:6], theta[6], prior),
        np.sqrt(np.diag(covariance)),
    )
    # rows keep one per cent of the information on the scale: with 200 draws, 10 % are not enough
    errors = standard_errors(model.parameters(), X, robust=False, n_draws=2000)
    np.testing.assert_allclose(errors["mixing"][:, 0], expected[:3], rtol=0.05)
    np.testing.assert_allclose(errors["noise_variance"], expected[6], rtol=0.05)
    np.testing.assert_allclose(errors["weights"], expected[7:], rtol=0.05)


@pytest.mark.slow
def test_weights_of_a_learnt_law():
    """Errors are no larger than weights; those of pooled components are nearly of common ones."""
    A = np.random.default_rng(0).normal(size=(5, 2))
    X, _ = Model(A, None, 0.1, priors.Adaptive(shared=True)).sample(1000, random_state=1)
    common, pooled, apart = priors.Adaptive(shared=True), priors.Adaptive(), priors.Adaptive()
    pooled.pooling = np.asarray(0.999)
    errors = [
        standard_errors(Model(A, None, 0.1, prior.for_components(2)).parameters(), X, robust=False)
        for prior in (common, pooled, apart)
    ]
    assert (errors[0]["weights"] <= common.weights).all()
    for name, among in (("weights", (None, slice(None))), ("mixing", ...)):
        ratio = errors[1][name] / errors[0][name][among]
        np.testing.assert_allclose(ratio, 1.0, atol=0.15)
    assert (errors[2]["weights"] > 1.2 * errors[1]["weights"]).mean() > 0.5


def test_a_fixed_mean_and_a_hidden_mixing_matrix_leave_smaller_errors():
    rng = np.random.default_rng(2)
    model = Model(rng.normal(size=(5, 2)), None, 0.5, priors.BernoulliGaussian(0.4))
    X, _ = model.sample(300, random_state=1)
    free, fixed, hidden = (
        standard_errors(model.parameters(), X, robust=False, **options)
        for options in ({}, {"free_mean": False}, {"hidden": True})
    )
    assert "mean" not in fixed
    assert fixed["mixing"].mean() < free["mixing"].mean()
    assert (hidden["mixing"] < free["mixing"]).all()


def test_the_prior_of_a_hidden_mixing_matrix_counts_in_both_kinds():
    """Where rows say little of A, its error is the spread of its prior, not that of the estimate.

    The rows' part of robust errors has a relative error of some 4 / sqrt(n).
    """
    rng = np.random.default_rng(2)
    model = Model(rng.normal(size=(5, 2)), None, 100.0, priors.BernoulliGaussian(0.4))
    X, _ = model.sample(200, random_state=1)
    robust, by_model = (
        standard_errors(model.parameters(), X, hidden=True, robust=robust)["mixing"]
        for robust in (True, False)
    )
    assert (by_model > 0.5).all()
    np.testing.assert_allclose(robust, by_model, rtol=4 / np.sqrt(200))


@pytest.mark.slow
@pytest.mark.parametrize("robust", [False, True])
def test_many_columns_with_noise_of_their_own(monkeypatch, robust):
    """Too many parameters to be estimated jointly are taken apart.

    These are A's part that is orthogonal to it, and the rest; nothing else changes much.
    """
    rng = np.random.default_rng(5)
    A = np.linalg.qr(rng.normal(size=(30, 3)))[0] * 3
    model = Model(A, None, rng.uniform(0.3, 0.8, size=30), priors.BernoulliGaussian(0.4))
    X, _ = model.sample(2000, random_state=1)
    joint = standard_errors(model.parameters(), X, robust=robust)
    monkeypatch.setattr(uncertainty, "MOST_WHOLE", 100)
    apart = standard_errors(model.parameters(), X, robust=robust)
    for name in ("mixing", "mean", "alpha"):
        np.testing.assert_allclose(apart[name], joint[name], rtol=0.25)


@pytest.mark.parametrize("robust", [False, True])
def test_pairs_are_nearly_the_whole_story(monkeypatch, robust):
    """Components that are nearly orthogonal: their information couples them two by two."""
    rng = np.random.default_rng(4)
    A = np.linalg.qr(rng.normal(size=(30, 6)))[0] * 3
    model = Model(A, None, 0.5, priors.BernoulliGaussian(0.3))
    X, _ = model.sample(2500, random_state=1)
    whole = standard_errors(model.parameters(), X, robust=robust)
    monkeypatch.setattr(uncertainty, "MOST_WHOLE", 3)
    joint = standard_errors(model.parameters(), X, robust=robust)
    monkeypatch.setattr(uncertainty, "MOST_JOINTLY", 3)
    pairs = standard_errors(model.parameters(), X, robust=robust)
    tolerance = 0.25 if robust else 0.1  # parts that are not correlated on average are, a little
    for name in ("mixing", "noise_variance", "alpha"):
        np.testing.assert_allclose(joint[name], whole[name], rtol=tolerance)
        np.testing.assert_allclose(pairs[name], joint[name], rtol=tolerance)


def test_noise_that_grows_with_the_coefficients():
    """Where A is zero, its error is that of a regression on coefficients that are nearly known.

    The noise is three times as large where coefficients are.
    """
    rng = np.random.default_rng(6)
    n, d = 2000, 200
    A = rng.normal(size=(d, 2)) * (np.arange(d) < 100)[:, None]
    model = Model(A, None, 0.1, priors.BernoulliGaussian(0.5))
    X, beta = model.sample(n, random_state=1)
    noise = (X - beta @ A.T) * (1 + 2 * (np.abs(beta).max(1, keepdims=True) > 1))
    parameters = model.parameters()._replace(sigma2=jnp.asarray(np.square(noise).mean()))
    b = np.column_stack([np.ones(n), beta])
    influence = b @ np.linalg.inv(b.T @ b)
    expected = np.sqrt(np.square(noise).T @ np.square(influence))[100:, 1:]
    robust, by_model = (
        standard_errors(parameters, beta @ A.T + noise, robust=robust) for robust in (True, False)
    )
    np.testing.assert_allclose(robust["mixing"][100:], expected, rtol=0.05)
    assert (by_model["mixing"][100:] < 0.8 * expected).all()
    # the sum of squares of each row is that row's estimate of the noise
    spread = np.square(noise).mean(1).std() / np.sqrt(n)
    np.testing.assert_allclose(robust["noise_variance"], spread, rtol=0.05)
    assert by_model["noise_variance"] < 0.2 * spread


def test_too_few_rows_for_robust_errors():
    rng = np.random.default_rng(7)
    model = Model(rng.normal(size=(8, 4)), None, 0.5, priors.BernoulliGaussian(0.4))
    X, _ = model.sample(9, random_state=1)
    with pytest.warns(UserWarning, match="9 rows are too few for robust standard errors"):
        errors = standard_errors(model.parameters(), X, hidden=True)
    assert not errors.robust
    assert all(np.isfinite(value).all() for value in errors.values())


def test_they_stay_with_the_estimator_but_the_data_do_not(tmp_path):
    X = np.random.default_rng(0).laplace(size=(200, 6)).astype("float32")
    ica = NoisyICA(2, noise="isotropic", max_iter=50, tol=0, random_state=0).fit(X)
    assert not hasattr(ica, "standard_errors_")
    for robust in (False, True):
        errors = ica.standard_errors(X, robust=robust)
        assert ica.standard_errors_ is errors
        assert errors["components"].shape == (2, 6)
        assert set(errors) == {"components", "mixing", "mean", "noise_variance", "alpha"}
        ica.save(tmp_path / "model.npz")
        for again in (
            pickle.loads(pickle.dumps(ica)),
            NoisyICA.load(tmp_path / "model.npz"),
            copy.deepcopy(ica),
        ):
            kept = again.standard_errors_
            assert kept.robust == robust
            assert kept is not errors
            np.testing.assert_equal(dict(kept), dict(errors))
            assert len(pickle.dumps(again)) < 3 * X.nbytes + 50_000
    assert not hasattr(ica.fit(X[:100]), "standard_errors_")  # they were the first fit's
    assert not np.array_equal(ica.standard_errors(X[:100])["components"], errors["components"])
