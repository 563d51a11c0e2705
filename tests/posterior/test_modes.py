"""The most probable coefficients against brute force.

It shares nothing with the library but the model's definition.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize, nnls

from noisyica import Model, NoisyICA, priors
from noisyica.laws import Dirac, Laplace, Mixture, Normal
from tests.tools import TRUE_PRIORS, some_slow

SIGMA = 0.5


def model_of(prior, d=6, p=3, noise=SIGMA**2):
    return Model(np.random.default_rng(2).normal(size=(d, p)), noise_variance=noise, prior=prior)


def positive(B, x, cost):
    """The least |x - B s|^2 / 2 sigma^2 + cost . s over s >= 0."""
    if B.shape[1] == 0:
        return 0.5 * x @ x / SIGMA**2
    factor = np.linalg.cholesky(B.T @ B / SIGMA**2)
    s = nnls(factor.T, np.linalg.solve(factor, B.T @ x / SIGMA**2 - cost))[0]
    return 0.5 * np.square(x - B @ s).sum() / SIGMA**2 + cost @ s


def logistic(x, A):
    def objective(beta):
        return 0.5 * np.square(x - A @ beta).sum() / SIGMA**2 + 2 * np.log(np.cosh(beta)).sum()

    return minimize(objective, np.zeros(A.shape[1]), method="BFGS", options={"gtol": 1e-9}).fun


def ternary(x, A, rho, one_scale=False, offset=False):
    """Try all signs; find scales, or one scale, and the offset by non-negative least squares."""
    best = np.inf
    for y in itertools.product((0, 1, -1), repeat=A.shape[1]):
        B = (A * y)[:, np.abs(y) > 0]
        if one_scale and B.size:
            B = B.sum(1, keepdims=True)
        for sign in (1, -1) if offset else (0,):
            columns = np.column_stack([B, np.full(len(x), sign)]) if offset else B
            best = min(
                best, positive(columns, x, np.ones(columns.shape[1])) + rho * np.abs(y).sum()
            )
    return best


def gaussian(x, A, rho):
    """All switches; then least squares with a ridge."""
    best = np.inf
    for on in itertools.product((False, True), repeat=A.shape[1]):
        B = A[:, on]
        y = np.linalg.solve(B.T @ B / SIGMA**2 + np.eye(B.shape[1]), B.T @ x / SIGMA**2)
        best = min(best, 0.5 * np.square(x - B @ y).sum() / SIGMA**2 + 0.5 * y @ y + rho * sum(on))
    return best


def scaled_gaussian(x, A, rho):
    """All switches; then 1.5 |t|^(2/3) with t = w^3 is 1.5 w^2: non-linear least squares."""
    best = np.inf
    for on in itertools.product((False, True), repeat=A.shape[1]):
        B = A[:, on]
        value = 0.5 * x @ x / SIGMA**2
        if B.size:
            start = np.cbrt(np.linalg.lstsq(B, x, rcond=None)[0])
            value = least_squares(
                lambda w, B=B: np.r_[(x - B @ w**3) / SIGMA, np.sqrt(3) * w], start, method="lm"
            ).cost
        best = min(best, value + rho * sum(on))
    return best


def labels(x, A, mean, weights):
    best = np.inf
    for t in itertools.product((0, 1, -1), repeat=A.shape[1]):
        m = mean * np.array(t)
        beta = np.linalg.solve(A.T @ A / SIGMA**2 + np.eye(len(m)), A.T @ x / SIGMA**2 + m)
        cost = np.log(weights[0] / np.where(m == 0, *weights)).sum()
        best = min(
            best,
            0.5 * np.square(x - A @ beta).sum() / SIGMA**2 + 0.5 * np.square(beta - m).sum() + cost,
        )
    return best


# the least of the paper's objective (corrected) for one row; what is off costs nothing, as there
BRUTE_FORCE = {
    "log": logistic,
    "lap": lambda x, A: ternary(x, A, 0.0),
    "eg": lambda x, A: scaled_gaussian(x, A, 0.0),
    "ifa": lambda x, A: labels(x, A, 3.0, (0.4, 0.6)),
    "bg": lambda x, A: gaussian(x, A, np.log(0.7 / 0.3)),
    "ebg": lambda x, A: scaled_gaussian(x, A, np.log(0.6 / 0.4)),
    "et": lambda x, A: ternary(x, A, np.log(0.6 / 0.2)),
    "te": lambda x, A: ternary(x, A, np.log(0.6 / 0.2), one_scale=True),
    "teoff": lambda x, A: ternary(x, A, np.log(0.6 / 0.2), one_scale=True, offset=True),
}


@pytest.mark.parametrize("name", some_slow(BRUTE_FORCE, "eg", "teoff"))
def test_map_is_the_least_of_the_objective(name):
    model = model_of(TRUE_PRIORS[name])
    X, truth = model.sample(40, random_state=3)
    beta, offset = model.map(X, return_offset=True)
    objective = model.map_objective(X, beta, offset)
    zero = model.map_objective(
        np.zeros((1, 6)), np.zeros((1, 3))
    )  # constants that the paper leaves out
    expected = np.array([BRUTE_FORCE[name](x, model.mixing) for x in X])
    np.testing.assert_allclose(objective - zero, expected, rtol=1e-6, atol=1e-6)
    if not model.prior.has_offset:
        assert (objective <= model.map_objective(X, truth) + 1e-9).all()


@pytest.mark.parametrize(
    "prior",
    [
        priors.Independent(
            Mixture((Dirac(), Dirac(1.0), Normal(-1.0, 0.5), Laplace(0.7)), (0.3, 0.2, 0.3, 0.2)),
            shared=False,
        ),
        priors.Offset("bg", 2.0),
    ],
    ids=["composed", "offset"],
)
def test_no_point_of_a_grid_is_better(prior):
    model = model_of(prior, d=4, p=2)
    X, _ = model.sample(10, random_state=0)
    beta, offset = model.map(X, return_offset=True)
    objective = model.map_objective(X, beta, offset)
    line = np.linspace(-4, 4, 81)  # has 0 and 1
    grid = np.array(list(itertools.product(line, line)))
    for i, x in enumerate(X):
        rows, mu = np.tile(x, (len(grid), 1)), np.full(len(grid), offset[i])
        assert objective[i] <= model.map_objective(rows, grid, mu).min() + 1e-9
        shifts = np.linspace(-3, 3, 61) * bool(prior.has_offset)
        assert (
            objective[i]
            <= model.map_objective(
                np.tile(x, (61, 1)), np.tile(beta[i], (61, 1)), offset[i] + shifts
            ).min()
            + 1e-9
        )


@pytest.mark.parametrize("name", ["bg", "te"])
def test_many_components(name):
    """With more states than can be listed, or a convex penalty, the truth is never better.

    No change of a single coefficient is better, either.
    """
    model = model_of(TRUE_PRIORS[name], d=40, p=20, noise=1.0)
    X, truth = model.sample(200, random_state=0)
    beta = model.map(X)
    objective = model.map_objective(X, beta)
    assert (objective <= model.map_objective(X, truth) + 1e-9).all()
    for j in range(20):
        for value in (0.0, *np.unique(np.abs(beta[:50]))[:3]):
            changed = beta[:50].copy()
            changed[:, j] = value
            assert (objective[:50] <= model.map_objective(X[:50], changed) + 1e-9).all()


def test_a_row_s_answer_depends_on_the_row_alone_and_on_what_is_observed():
    model = model_of(TRUE_PRIORS["bg"])
    X, _ = model.sample(20, random_state=0)
    beta = model.map(X)
    np.testing.assert_allclose(model.map(X[::-1])[::-1], beta, rtol=1e-9, atol=1e-12)
    X[:, 1] = np.nan
    X[0, 4] = np.nan
    seen = [0, 2, 3, 4, 5]
    smaller = Model(model.mixing[seen], noise_variance=model.noise_variance, prior=model.prior)
    np.testing.assert_allclose(model.map(X)[1:], smaller.map(X[1:, seen]), rtol=1e-7, atol=1e-9)
    assert np.isfinite(model.map(X)).all()


def test_transform_algorithm():
    X, _ = model_of(TRUE_PRIORS["bg"]).sample(60, random_state=0)
    ica = NoisyICA(
        3, prior="bg", transform_algorithm="map", max_iter=20, tol=0, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(ica.transform(X), ica.model_.map(X))
    with pytest.raises(
        ValueError, match="transform_algorithm='mode' is not known. Choose 'mean' or 'map'"
    ):
        ica.set_params(transform_algorithm="mode").fit(X)
