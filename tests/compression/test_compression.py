"""Lossy compression: what comes back, and what it costs."""

import sys

import jax
import numpy as np
import pytest
from scipy.stats import norm

from noisyica import Compressed, Model, NoisyICA, compress, decompress, laws, priors
from noisyica.compression.container import HEADER, STREAM
from noisyica.compression.probabilities import PRIOR, RESOLUTION, histogram, streams_of
from noisyica.compression.symbols import Code
from noisyica.priors.base import as_pytree
from tests.compression.simulated import simulate
from tests.tools import TRUE_PRIORS


def entropy(symbols):
    """The bits that the columns of symbols take, each with its own frequencies."""
    bits = 0.0
    for column in symbols.T:
        _, counts = np.unique(column, return_counts=True)
        bits -= (counts * np.log2(counts / counts.sum())).sum()
    return bits


def coefficients(model, X_hat):
    """The coefficients (n, p) of a reconstruction by least squares, and its offsets."""
    ones = np.ones((len(model.mixing), int(model.prior.has_offset)))
    values = np.linalg.lstsq(np.hstack([model.mixing, ones]), (X_hat - model.mean).T)[0].T
    p = model.mixing.shape[1]
    return values[:, :p], values[:, p:]


def test_student_noise_does_not_change_the_code():
    """What is kept of a row does not depend on how outlying it is."""
    model, X = simulate("bg", n=50, d=12, p=4)
    heavy = Model(model.mixing, model.mean, model.noise_variance, model.prior, noise_dof=3.0)
    small = compress(heavy, X)
    assert small.distortion == compress(model, X).distortion
    np.testing.assert_array_equal(decompress(heavy, small), decompress(model, compress(model, X)))


@pytest.mark.parametrize("name", TRUE_PRIORS)
def test_round_trip(name):
    model, X = simulate(name, n=200, d=12, p=4)
    small = compress(model, X)
    X_hat = decompress(model, small.data)
    assert small.distortion == pytest.approx(np.square(X - X_hat).mean(), rel=1e-12)
    # no more than noise and a little rounding are left
    assert small.distortion < 1.15 * model.noise_variance
    assert compress(model, X).data == small.data
    beta, offset = coefficients(model, X_hat)
    np.testing.assert_allclose(
        model.mean + beta @ model.mixing.T + offset.sum(1, keepdims=True), X_hat, atol=1e-10
    )
    if name in ("te", "teoff"):
        s = np.abs(beta).max(1, keepdims=True)
        ratio = np.divide(beta, s, out=np.zeros_like(beta), where=s > 1e-9)
        assert np.abs(ratio - np.rint(ratio)).max() < 1e-8
    else:
        steps = beta * np.linalg.norm(model.mixing, axis=0) / np.sqrt(model.noise_variance) / 2.0
        assert np.abs(steps - np.rint(steps)).max() < 1e-8


def test_offsets_of_any_prior():
    model, X = simulate(priors.Offset("lap", 1.0), n=100, d=12, p=3, sigma=0.1)
    small = compress(model, X)
    assert small.distortion < 0.012
    offset = coefficients(model, decompress(model, small))[1][:, 0]
    steps = offset * np.sqrt(12) / 0.1 / 2.0
    assert np.abs(steps - np.rint(steps)).max() < 1e-8
    assert np.abs(offset).mean() == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("name", ["te", "bg", "lap"])
def test_rate_is_the_entropy_of_the_symbols(name):
    model, X = simulate(name, n=2000, d=24, p=6)
    small = compress(model, X)
    beta, _ = coefficients(model, decompress(model, small))
    if name == "te":
        s = np.abs(beta).max(1)
        y = np.rint(beta / np.maximum(s, 1e-9)[:, None])
        scale = np.rint(s[s > 1e-9] / s[s > 1e-9].min() * 50)  # multiples of a step, whatever it is
        bits = entropy(y) + entropy(scale[:, None])
    else:
        bits = entropy(
            np.rint(
                beta * np.linalg.norm(model.mixing, axis=0) / np.sqrt(model.noise_variance) / 2.0
            )
        )
    assert 0.995 < 8 * small.n_bytes / bits < 1.05
    assert small.rate == pytest.approx(8 * small.n_bytes / 2000)
    assert small.rate_per_entry == pytest.approx(small.rate / 24)


@pytest.mark.parametrize("name", ["te", "bg", "log"])
def test_larger_steps_take_fewer_bits_and_leave_more_error(name):
    model, X = simulate(name, n=300, d=24, p=6)
    results = [compress(model, X, step) for step in (0.5, 2.0, 5.0, 12.0)]
    rates, errors = np.array([[small.rate, small.distortion] for small in results]).T
    assert (np.diff(rates) < 0).all()
    assert (np.diff(errors) > 0).all()


def test_signs_are_the_most_probable():
    """At step sqrt(12), where the price of a bit is the MAP's, no other signs do better.

    All 3^5 sign patterns are tried, each with its best scale.
    """
    model, X = simulate("te", n=60, d=6, p=5, sigma=0.7)
    y = np.array(np.meshgrid(*[[-1, 0, 1]] * 5)).reshape(5, -1).T
    quadratic = np.square(y @ model.mixing.T).sum(1) / model.noise_variance
    linear = (X - model.mean) @ model.mixing @ y.T / model.noise_variance
    gamma = model.prior.gamma
    price = np.abs(y).sum(1) * np.log((1 - 2 * gamma) / gamma)
    cost = price - 0.5 * np.square(np.maximum(linear - 1, 0)) / np.where(
        quadratic > 0, quadratic, 1.0
    )

    beta, _ = coefficients(model, decompress(model, compress(model, X, np.sqrt(12))))
    signs = np.rint(beta / np.maximum(np.abs(beta).max(1), 1e-9)[:, None])
    chosen = (signs[:, None] == y).all(2).argmax(1)
    # scales are rounded and prices are those of the sample, so near ties may go either way
    assert (cost[np.arange(60), chosen] - cost.min(1)).mean() < 0.25


def test_a_wide_beam_is_better():
    model, X = simulate(priors.SingleScaleTernary(0.3), n=200, d=30, p=30, sigma=0.7)
    narrow, wide = (compress(model, X, np.sqrt(12), width) for width in (1, 16))
    cost = [small.distortion * 30 / 0.49 / 2 + small.rate * np.log(2) for small in (narrow, wide)]
    assert cost[1] < cost[0] - 1.0


def test_tables_are_chosen_by_length():
    """The prior's own table if there are few rows, histograms if there are many and it is wrong."""
    model, X = simulate("bg", n=2000, d=12, p=3)
    wrong = Model(model.mixing, model.mean, model.noise_variance, priors.BernoulliGaussian(0.99))
    assert compress(wrong, X).rate < 1.15 * compress(model, X).rate
    one = compress(model, X[:1])
    assert one.data[HEADER.size] == PRIOR
    assert one.n_bytes < HEADER.size + STREAM.size + 20


def test_many_rows():
    """There are more symbols than the frequencies of a table may sum to."""
    model, X = simulate("lap", n=70_000, d=3, p=1)
    small = compress(model, X, step=4.0, width=1)
    assert decompress(model, small).shape == X.shape
    counts = np.array([[3, 0, 500_000, 1, 2]])
    scaled = histogram(counts)
    assert scaled.sum() == RESOLUTION
    np.testing.assert_array_equal(scaled > 0, counts > 0)


def test_own_laws_for_components(double):
    prior = priors.Independent(
        laws.Mixture((laws.Dirac(), laws.Normal()), (0.5, 0.5)), shared=False
    ).for_components(2)
    weights = np.array([[0.98, 0.02], [0.02, 0.98]])  # of two classes, for each component
    prior = jax.tree.map(lambda leaf: weights if np.shape(leaf) == (2, 2) else leaf, prior)
    model = Model(np.eye(4)[:, :2], noise_variance=1e-4, prior=prior)
    code = Code(2, 2.0, np.zeros((20, 2), np.int64))
    stream = streams_of(model, code)["coefficients"]
    bins = np.diff(norm.cdf(0.02 * (np.arange(8) - 3.5)))
    expected = np.array([[0.02], [0.98]]) * bins + np.array([[0.98], [0.02]]) * (np.arange(7) == 3)
    np.testing.assert_allclose(stream.prior(-3, 7), expected, rtol=1e-9)
    X = np.random.default_rng(0).normal(size=(20, 4)) * [0, 1, 0.01, 0.01]
    assert not decompress(model, compress(model, X))[:, 0].any()


@pytest.mark.parametrize("name", ["bg", "teoff"])
def test_missing_values(name):
    model, X = simulate(name, n=300, d=24, p=4)
    holes = np.random.default_rng(0).random(X.shape) < 0.3
    seen = np.where(holes, np.nan, X)
    small = compress(model, seen)
    X_hat = decompress(model, small)
    assert small.distortion == pytest.approx(np.square(X - X_hat)[~holes].mean())
    assert small.distortion < 1.2 * model.noise_variance
    # missing entries are filled in as well as can be
    assert np.square(X - X_hat)[holes].mean() < 2 * model.noise_variance


def test_diagonal_noise():
    model, X = simulate("bg", n=300, d=12, p=3)
    noise = np.where(np.arange(12) < 6, 0.01, 4.0)
    other = Model(model.mixing, model.mean, noise, model.prior)
    X = X + np.sqrt(noise) * np.random.default_rng(1).normal(size=X.shape)
    error = np.square(X - decompress(other, compress(other, X)))
    assert error[:, :6].mean() < 0.13
    assert error[:, 6:].mean() == pytest.approx(4.09, rel=0.15)


@pytest.mark.parametrize("name", ["te", "teoff", "lap"])
@pytest.mark.parametrize(("n", "p"), [(1, 3), (5, 1), (1, 1), (3, 9)])
def test_small_and_wide(name, n, p):
    model, X = simulate(name, n=n, d=4, p=p)
    assert decompress(model, compress(model, X)).shape == (n, 4)


def test_components_and_rows_that_are_zero():
    for prior in ("te", "bg"):
        A = np.ones((4, 2)) * [1.0, 0.0]
        model = Model(A, noise_variance=0.1, prior=prior)
        X = np.zeros((50, 4))
        X[3] = 2.0
        X_hat = decompress(model, compress(model, X))
        np.testing.assert_allclose(X_hat[3], 2.0, atol=0.4)
        assert not X_hat[[0, 1, 2, 4]].any()


def test_estimators_and_saved_ones(tmp_path):
    _, X = simulate("bg", n=200, d=8, p=2)
    ica = NoisyICA(2, max_iter=30, tol=0, random_state=0).fit(X)
    small = compress(ica, X)
    ica.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        decompress(NoisyICA.load(tmp_path / "model.npz"), small), decompress(ica.model_, small)
    )
    assert repr(small).startswith("Compressed(200 x 8 in ")


def test_laws_know_their_parts_and_atoms():
    inner = laws.Mixture((laws.Dirac(0.5), laws.Laplace(2.0)), (0.25, 0.75))
    law = laws.Mixture((laws.Dirac(), laws.Shift(inner, 1.0), laws.Normal()), (0.5, 0.4, 0.1))
    weights, parts = zip(*law.parts(), strict=True)
    np.testing.assert_allclose(weights, [0.5, 0.1, 0.3, 0.1])
    assert [part.atom for part in parts] == [0.0, 1.5, None, None]
    t = np.array([-1.0, 0.2, 4.0])
    densities = [weight * np.exp(part.log_density(t)) for weight, part in law.parts()]
    np.testing.assert_allclose(sum(densities), np.exp(law.log_density(t)), rtol=1e-5)
    for alone in (laws.Laplace().located(), laws.Normal(), laws.LogDensity(lambda t: -(t**4))):
        ((weight, part),) = alone.parts()
        assert weight == 1
        assert part is alone
        assert alone.atom is None
    normals = laws.SymmetricNormals((1.5,), (0.4, 0.6))
    density = sum(weight * np.exp(part.log_density(t)) for weight, part in normals.parts())
    np.testing.assert_allclose(density, np.exp(normals.log_density(t)), rtol=1e-5)


@as_pytree()
class Silent(priors.Prior):
    """A user's own prior that answers nothing."""

    def _nothing(self, *_):
        raise NotImplementedError

    sample_prior = zeros = gibbs = coefficients = statistics = mstep = variance = _nothing


@as_pytree()
class Uniform(Silent):
    """A user's own prior, which says nothing of its coefficients but their variance."""

    def variance(self):
        return 1 / 3


@as_pytree()
class Signs(Uniform):
    """A user's own prior of signs times a scale, which does not say how probable the signs are."""

    single_scale = True


@as_pytree()
class Moved(Uniform):
    """A user's own prior with an offset, which does not say how large it is."""

    has_offset = True


def test_priors_of_the_users_own():
    """Without probabilities there are histograms; without more than that there is an error."""
    model, X = simulate(Uniform(), n=100, d=8, p=2)
    small = compress(model, X)
    assert small.data[HEADER.size] != PRIOR
    assert np.square(X - decompress(model, small)).mean() < 1.2 * model.noise_variance
    for prior, lack in (
        (Silent(), r"the method variance\(\)"),
        (priors.Offset(Silent()), r"the method variance\(\)"),
        (Signs(), "the parameter gamma"),
        (Moved(), "a positive offset_scale"),
    ):
        model, X = simulate(prior, n=10, d=8, p=2)
        with pytest.raises(TypeError, match=rf"The prior \w+\(\) cannot .* it lacks {lack}"):
            compress(model, X)


def test_without_constriction(monkeypatch):
    monkeypatch.setitem(sys.modules, "constriction", None)
    model, X = simulate("bg", n=3, d=8, p=2)
    with pytest.raises(ImportError, match=r"pip install 'noisyica\[compression\]'"):
        compress(model, X)
    with pytest.raises(ImportError, match="constriction"):
        decompress(model, Compressed(b"", (1, 8), 0.0))
