"""A law that a user writes in a few lines can do everything that a law of noisyica can."""

import functools
import inspect
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from typer.testing import CliRunner

from noisyica import Model, NoisyICA, compress, decompress, plot, priors, report
from noisyica.app.command_line import app
from noisyica.data import Data, Lines, write_table
from noisyica.laws import (
    FIRST_LOCATION,
    Dirac,
    Law,
    Located,
    LogDensity,
    Mixture,
    Normal,
    ScaleMixture,
    Shift,
    law,
)
from noisyica.priors import Independent, from_plain, to_plain
from tests.own_laws import ClosedNormal, Quartic, SkewSecant
from tests.tools import LAWS, matched_cosine

LEAN = 0.8


def test_the_law_is_the_one_of_the_documentation():
    page = Path(__file__).parents[2] / "docs" / "extending.md"
    text = inspect.getsource(SkewSecant).strip()
    assert text in page.read_text()
    assert len([line for line in text.splitlines() if line]) <= 15


def test_the_tests_of_all_laws_have_it():
    """LAWS is what tests/laws/test_laws.py and others are parametrised by."""
    assert isinstance(LAWS["own"], SkewSecant)


# ---- answers


@pytest.mark.usefixtures("double")
def test_answers_without_a_gaussian_factor():
    """A factor exp(b t) only makes the law lean more: everything is known in closed form."""
    b = jnp.array([-1.2, -0.5, 0.0, 0.3, 0.7])
    leaning = SkewSecant(0.5)
    np.testing.assert_allclose(
        leaning.log_normaliser(0.0, b), np.log(np.cos(0.5) / np.cos(0.5 + b)), atol=1e-12
    )
    mean, variance = leaning.moments(0.0, b)
    np.testing.assert_allclose(mean, np.tan(0.5 + b), atol=1e-10)
    np.testing.assert_allclose(variance, 1 / np.cos(0.5 + b) ** 2, rtol=1e-10)
    mode = 2 / np.pi * np.arctanh(2 / np.pi * (0.5 + b))
    np.testing.assert_allclose(leaning.mode(0.0, b), mode, atol=1e-9)


@pytest.mark.usefixtures("double")
def test_moments_are_derivatives_of_a_given_normaliser():
    a, b = jnp.array([0.0, 0.3, 5.0, 1e6]), jnp.array([0.2, -4.0, 30.0, 1e3])
    own, normal = ClosedNormal(), Normal(0.7, 1.3)
    for answer, expected in zip(own.moments(a, b), normal.moments(a, b), strict=True):
        np.testing.assert_allclose(answer, expected, rtol=1e-10)
    np.testing.assert_allclose(own.mode(a, b), normal.mode(a, b), rtol=1e-9)
    u = (jnp.array([0.1, 0.5, 0.7, 0.9]),)
    np.testing.assert_allclose(own.draw(u, a, b), normal.draw(u, a, b), rtol=1e-10)
    single = ClosedNormal().moments(jnp.float32(1e3), jnp.float32(2.0))
    assert [part.dtype for part in single] == [jnp.float32] * 2


@pytest.mark.usefixtures("double")
@pytest.mark.slow
def test_a_density_without_its_constant():
    own, same = Quartic(), LogDensity(lambda t: -(t**4))
    a, b = jnp.array([0.0, 2.0]), jnp.array([0.5, -3.0])
    t = jnp.linspace(-2, 2, 9)
    np.testing.assert_array_equal(own.log_density(t), same.log_density(t))
    np.testing.assert_array_equal(own.log_normaliser(a, b), same.log_normaliser(a, b))
    np.testing.assert_allclose(own.mode(a, b), same.mode(a, b), atol=1e-3)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("make", [SkewSecant, Quartic])
def test_parameters_are_broadcast_with_the_arguments(make):
    b, u = jnp.array([-1.0, 0.0, 2.0]), (jnp.full(3, 0.2), jnp.full(3, 0.6))

    @jax.jit
    def answers(law):
        tilted = (law.log_normaliser(1.5, b), *law.moments(1.5, b), law.draw(u, 1.5, b))
        return *tilted, law.mode(1.5, b), law.log_density(b), law.moments(0.0, 0.0)[1]

    both = answers(make(np.array([[0.3], [0.9]])))
    assert [answer.shape for answer in both] == 6 * [(2, 3)] + [(2, 1)]
    for i, value in enumerate((0.3, 0.9)):
        for answer, alone in zip(both, answers(make(value)), strict=True):
            np.testing.assert_allclose(np.squeeze(answer[i]), alone, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("double")
def test_other_laws_are_made_of_it():
    own = SkewSecant(0.3)
    mixture = Mixture((Dirac(), own), (0.4, 0.6))
    assert float(mixture.moments(0.0, 0.0)[0]) == pytest.approx(0.6 * np.tan(0.3))
    assert float(Shift(own, 2.0).moments(0.0, 0.0)[0]) == pytest.approx(2 + np.tan(0.3))
    scaled = ScaleMixture(Normal(3.0, 1e-3), own)  # a scale of very nearly 3
    mean, _ = jax.jit(lambda law: law.moments(0.0, 0.0))(scaled)
    assert float(mean) == pytest.approx(3 * np.tan(0.3), rel=1e-5)
    draws = np.asarray(mixture.sample(jax.random.key(0), shape=(4000,)))
    assert np.mean(draws == 0) == pytest.approx(0.4, abs=4.5 * np.sqrt(0.24 / 4000))


@pytest.mark.usefixtures("double")
def test_m_step_is_maximum_likelihood():
    t = SkewSecant(LEAN).sample(jax.random.key(0), shape=(5000,))
    learnt = SkewSecant().mstep(jax.tree.map(jnp.sum, SkewSecant().statistics(t)))
    assert float(learnt.lean) == pytest.approx(LEAN, abs=0.06)
    likelihood = [SkewSecant(learnt.lean + x).log_density(t).sum() for x in (-0.01, 0.0, 0.01)]
    assert max(likelihood) == likelihood[1]
    assert (SkewSecant().n_parameters, Quartic().n_parameters) == (1, 0)


@pytest.mark.usefixtures("double")
def test_a_location_is_learnt_with_it():
    t = 3.0 + Quartic().sample(jax.random.key(0), shape=(5000,))
    located = Located(Quartic(), FIRST_LOCATION, 10.0)
    for _ in range(30):
        located = located.mstep(jax.tree.map(jnp.sum, located.statistics(t)))
    assert float(located.location) == pytest.approx(3.0, abs=4.5 * 0.6 / np.sqrt(5000))


# ---- errors


def test_what_is_missing_is_named():
    @law()
    class Nothing(Law):
        scale: float = 1.0

    for question in ("log_normaliser", "moments", "best"):
        with pytest.raises(NotImplementedError, match="law Nothing has no method log_density"):
            getattr(Nothing(), question)(1.0, 0.0)
    for question in ("log_density", "penalty", "score"):
        with pytest.raises(NotImplementedError, match="law Nothing has no method log_density"):
            getattr(Nothing(), question)(1.0)
    with pytest.raises(NotImplementedError, match="law Nothing has no method log_density"):
        NoisyICA(2, prior=Nothing()).fit(np.eye(20))
    with pytest.raises(ValueError, match="SkewSecant.* has no method located"):
        SkewSecant().located()


def test_half_a_law_is_refused():
    with pytest.raises(TypeError, match="law Half has no method mstep"):

        @law()
        class Half(Law):
            def statistics(self, t):
                return t

    with pytest.raises(ValueError, match="a law Normal in noisyica already"):
        law()(type("Normal", (Law,), {}))


# ---- everything that a model does


@pytest.fixture(scope="module")
def model():
    mixing = np.random.default_rng(0).normal(size=(12, 2))
    return Model(mixing, noise_variance=0.09, prior=SkewSecant(LEAN))


@pytest.fixture(scope="module")
def X(model):
    return model.sample(300, random_state=0)[0]


def estimator(**settings):
    # a law that leans from the start tells the signs of the components
    options = {"prior": SkewSecant(0.3), "mean": "zero", "noise": "isotropic", "max_iter": 80}
    return NoisyICA(2, random_state=0, verbose=False, **(options | settings))


@pytest.fixture(scope="module")
def ica(X):
    return estimator().fit(X)


def test_fit_learns_the_law(ica, model):
    assert abs(float(ica.prior_.law.lean)) == pytest.approx(LEAN, abs=0.12)
    assert matched_cosine(ica.mixing_, model.mixing) > 0.99
    assert ica.noise_variance_ == pytest.approx(0.09, rel=0.1)
    assert ica.n_parameters_ == 12 * 2 + 1 + 1


def test_standard_errors(ica, X):
    error = float(ica.standard_errors(X)["lean"])
    # 600 coefficients that were seen without noise would leave cos(lean) / sqrt(600), about 0.028
    assert 0.02 < error < 0.1
    assert abs(abs(float(ica.prior_.law.lean)) - LEAN) < 4.5 * error


@pytest.mark.slow
def test_coefficients(model):
    rows, beta = model.sample(60, random_state=1)
    posterior = model.posterior(rows, n_draws=100, n_chains=2, random_state=0)
    mean = model.posterior_mean(rows, random_state=0)
    np.testing.assert_allclose(posterior.mean(), mean, atol=0.12)
    spread = np.sqrt(np.linalg.inv(model.mixing.T @ model.mixing / 0.09).diagonal())
    assert np.sqrt(np.square((mean - beta) / spread).mean()) < 1.3
    metropolis = model.posterior_sample(
        rows, n_draws=200, n_warmup=400, thin=10, sampler="metropolis", random_state=0
    )
    assert np.median(np.abs(metropolis.mean(0) - mean) / spread) < 0.3
    best = model.map(rows)
    objective = model.map_objective(rows, best)
    for j in range(2):
        for step in (-1e-4, 1e-4):
            assert (model.map_objective(rows, best + step * np.eye(2)[j]) > objective).all()


def test_log_likelihood(model):
    rows = model.sample(5, random_state=2)[0]
    value, error = model.log_likelihood(rows, return_std=True)
    grid = np.linspace(-8, 12, 801)
    pairs = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    with jax.enable_x64(True):
        prior = np.asarray(SkewSecant(LEAN).log_density(pairs)).sum(1)
    for row, estimate, margin in zip(rows, value, error, strict=True):
        residual = np.square(row - pairs @ model.mixing.T).sum(1) / 0.09
        logs = prior - 0.5 * (residual + 12 * np.log(2 * np.pi * 0.09))
        exact = np.log(np.exp(logs - logs.max()).sum()) + logs.max() + 2 * np.log(grid[1] - grid[0])
        assert estimate == pytest.approx(exact, abs=4.5 * margin + 1e-3)


def test_save_and_load(ica, X, tmp_path):
    ica.save(tmp_path / "own.npz")
    again = NoisyICA.load(tmp_path / "own.npz")
    assert type(again.prior_.law).__name__ == "SkewSecant"
    assert float(again.prior_.law.lean) == float(ica.prior_.law.lean)
    np.testing.assert_array_equal(again.transform(X[:20]), ica.transform(X[:20]))


def test_an_interrupted_fit_goes_on(ica, X, tmp_path):
    def interrupt(iteration, model):
        if iteration > 40:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.npz"
    with pytest.raises(KeyboardInterrupt):
        estimator(checkpoint=path, callback=interrupt).fit(X)
    assert path.exists()
    resumed = estimator(checkpoint=path).fit(X)
    np.testing.assert_array_equal(resumed.components_, ica.components_)
    assert float(resumed.prior_.law.lean) == float(ica.prior_.law.lean)


def test_compression(model, X):
    pytest.importorskip("constriction")
    small = compress(model, X)
    assert np.square(X - decompress(model, small.data)).mean() == pytest.approx(small.distortion)
    assert small.distortion < 1.2 * 0.09
    assert small.rate < 14  # bits per row, two coefficients to about a tenth


def test_plots(ica, X):
    axes = plot.activation(ica, X[:50])
    medians = axes.lines[0].get_ydata()
    np.testing.assert_allclose(medians, np.median(ica.transform(X[:50]), 0), atol=0.15)
    assert any("lean" in axes.get_title() for axes in plot.convergence(ica).axes)
    plt.close("all")


def test_its_density_is_drawn(ica):
    panel = plot.density(ica).axes[0]
    t, drawn = panel.lines[0].get_data()
    with jax.enable_x64(True):
        expected = np.exp(np.asarray(ica.prior_.law.log_density(np.asarray(t, float))))
    apart = t != 0  # where a law may have a pole, and the density is that beside it
    assert apart.sum() >= 160
    np.testing.assert_allclose(drawn[apart], expected[apart], rtol=1e-4, atol=1e-6)


def test_report(ica, X):
    rows = Data(X, {}, np.arange(len(X)).astype(str), Lines([f"c{i}" for i in range(12)]))
    page = report.build(ica, rows)
    assert "independent, SkewSecant" in page
    assert "Prior: lean" in page


def test_the_command_line_knows_it_by_the_name_in_the_table(X, model, tmp_path, monkeypatch):
    law = functools.partial(Independent, SkewSecant(0.3))
    monkeypatch.setitem(priors.TABLE, "secant", law)
    monkeypatch.chdir(tmp_path)
    write_table("rows.csv", X, [f"s{i}" for i in range(len(X))], [f"c{i}" for i in range(12)])

    def call(*words):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return result.output

    settings = ("--noise", "isotropic", "--mean", "zero", "--max-iter", "80", "--seed", "0")
    call("fit", "rows.csv", "-p", "2", "--prior", "secant", *settings, "-o", "run")
    learnt = NoisyICA.load("run/model.npz")
    # a page that is run by the tests has a law of the same name, which files then mean
    assert type(learnt.prior_.law).__name__ == "SkewSecant"
    assert float(learnt.prior_.law.lean) > 0.5  # it was 0.3 before learning
    assert matched_cosine(learnt.mixing_, model.mixing) > 0.99
    assert "lean" in call("info", "run")
    call("transform", "run", "rows.csv", "-o", "coefficients.npz")
    np.testing.assert_allclose(
        np.load("coefficients.npz")["coefficients"], learnt.transform(X), atol=1e-6
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": Independent(SkewSecant(), shared=False)},
        {"prior": Mixture((Dirac(), SkewSecant(0.3)), (0.5, 0.5))},
        {"sampler": "metropolis"},
    ],
    ids=["not shared", "with an atom", "metropolis"],
)
def test_other_fits(X, model, settings):
    ica = estimator(max_iter=30, **settings).fit(X)
    assert matched_cosine(ica.mixing_, model.mixing) > 0.95
    assert ica.noise_variance_ == pytest.approx(0.09, rel=0.2)


@pytest.mark.parametrize(
    "function",
    [
        lambda t: -(t**4),
        lambda t: -2 * jnp.log1p(t * t / 3),
        lambda t: -jnp.sqrt(1 + ((t - 3) * 1e4) ** 2),
    ],
    ids=["light tails", "heavy tails", "narrow"],
)
def test_a_function_is_saved_as_a_table(double, function):
    law = LogDensity(function)
    loaded = from_plain(json.loads(json.dumps(to_plain(law))))
    a, b = jnp.array([0.5, 1.0, 30.0, 1e4]), jnp.array([0.0, 0.5, 40.0, -2e4])
    np.testing.assert_allclose(loaded.log_normaliser(a, b), law.log_normaliser(a, b), atol=1e-6)
    (mean, variance), (true_mean, true_variance) = loaded.moments(a, b), law.moments(a, b)
    assert (jnp.abs(mean - true_mean) < 1e-6 * jnp.sqrt(true_variance)).all()
    np.testing.assert_allclose(variance, true_variance, rtol=1e-6)


def test_draws_in_single_precision_where_the_window_is_narrow(double):
    # nearly normal: the prior changes little across 1e-4
    a, t = 1e8, np.repeat(np.array([0.0, 0.3, -40.0, 700.0]), 5000)
    u = np.random.default_rng(0).uniform(size=(2, t.size)).astype(np.float32)
    law = LogDensity(lambda t: -jnp.sqrt(1 + t * t))
    draws = law.draw(tuple(u), np.float32(a), np.asarray(a * t, np.float32))
    assert draws.dtype == np.float32
    centre = np.float32(a * t).astype(float) / a
    z = np.sqrt(a) * (np.asarray(draws, float) - centre + t / np.sqrt(1 + t * t) / a)
    for k, group in enumerate(z.reshape(4, -1)[:3]):  # at 700, float32 has steps of 6e-5
        assert abs(group.mean()) < 4 / np.sqrt(5000) + 0.01, k
        assert abs(group.var() - 1) < 4 * np.sqrt(2 / 5000) + 0.01, k
    assert np.isfinite(z).all()
