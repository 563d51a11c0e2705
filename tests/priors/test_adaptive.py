"""The prior whose law is learnt: its scale, its M-step, what it learns and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from noisyica import Model, NoisyICA, priors
from noisyica._jax.arrays import cast
from noisyica.laws import NormalScales
from noisyica.laws.normal_scales import DOUBT, NORMAL, PSEUDO, SMOOTH, weights_of
from noisyica.priors import Adaptive
from noisyica.priors.adaptive import SCALES
from tests.tools import matched_cosine, simulate

S = np.asarray(SCALES)
LOGS = np.log(np.where(S > 0, S, 1.0))


def own(weights):
    """Return the prior of components that have these weights (p, K)."""
    prior = Adaptive()
    return prior._with(NormalScales(SCALES, np.asarray(weights, float)), len(weights))


def off_centre(weights, values):
    """Return the mean of log s over the classes of these values, each counting for its variance."""
    prior = cast(own([weights]), float)
    sums = prior.expansion(jnp.asarray(values)[None], jnp.ones(len(values)))
    return float((sums.logs / sums.variance)[0])


@pytest.mark.usefixtures("double")
def test_where_a_law_is_on_its_grid():
    """The same law and values twice as wide are further out by log 2, and a normal law is not."""
    on = np.array([0.3, 0, 0.1, 0.2, 0.3, 0.1, 0, 0])
    wide = np.concatenate([[0.3, 0], on[1:-1]])
    t = np.random.default_rng(0).normal(size=200)
    places = [off_centre(on + 1e-12, t), off_centre(wide + 1e-12, 2 * t)]
    assert places[1] - places[0] == pytest.approx(np.log(2), abs=1e-6)
    assert abs(off_centre(0.5 * np.eye(8)[0] + 0.5 * np.eye(8)[4] + 1e-12, t)) < 1e-6


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("shared", [False, True])
def test_sums_of_classes_are_those_of_the_mixture(shared):
    """Sums for learning agree with Bayes' rule by SciPy, zeros and far values included."""
    rng = np.random.default_rng(4)
    prior = Adaptive(shared=True) if shared else own(rng.dirichlet(np.ones(8), 3))
    prior = cast(prior, float)
    t = rng.standard_t(2, size=(3, 400)) * (rng.random((3, 400)) < 0.7)
    t[0, :3] = 300, -200, 1e-12
    beta, weight = jnp.asarray(t), rng.random(400)
    weights = np.broadcast_to(prior.law.weights, (3, 8))[:, 1:, None]
    logs = np.log(weights) + scipy.stats.norm.logpdf(t[:, None], scale=S[1:, None])
    on = (t != 0)[:, None] * scipy.special.softmax(logs, axis=1)  # a zero is the atom's
    shares = np.concatenate([(t == 0)[:, None], on], axis=1)
    found = np.stack(prior.statistics(beta, jnp.asarray(weight)))
    expected = (shares @ weight).T
    np.testing.assert_allclose(found, expected.sum(1) if shared else expected, rtol=1e-9)
    sums = prior.expansion(beta, jnp.asarray(weight))
    scale = (on / S[1:, None] ** 2 * t[:, None] ** 2).sum(1) @ weight
    np.testing.assert_allclose(sums.scale, scale, rtol=1e-9)
    np.testing.assert_allclose(sums.on, (t != 0) @ weight, rtol=1e-9)
    np.testing.assert_allclose(sums.logs, expected.T @ (S**2 * LOGS), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums.variance, expected.T @ S**2, rtol=1e-9)
    # the score is minus the derivative of the log density
    near = jnp.asarray(t[np.abs(t) > 1e-3][:50])
    law = NormalScales(SCALES, np.asarray(prior.law.weights).reshape(-1, 8)[0])
    slope = jax.vmap(jax.grad(lambda x: law.log_density(x)))(near)
    np.testing.assert_allclose(law.score(near), -slope, rtol=1e-8)


@pytest.mark.usefixtures("double")
def test_the_weak_prior_leaves_many_counts_as_they_are():
    """It adds a known number of values, and of N values removes sqrt(DOUBT N) / 2 at the most."""
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.ones(8), 3)
    for total in (1e3, 1e6):
        change = np.abs(np.asarray(weights_of(jnp.asarray(shares * total), SCALES)) - shares)
        changed = SMOOTH + NORMAL + PSEUDO + np.sqrt(DOUBT * total) / 2
        assert 0 < change.max() < changed / total


def weights(*counts):
    """Return the weights of one law from its counts."""
    return np.asarray(weights_of(jnp.asarray([counts], float), SCALES))[0]


@pytest.mark.usefixtures("double")
def test_few_narrow_values_are_no_sign_of_a_peak():
    """They are doubted where chance shows as many, and believed where they are many."""
    few = weights(2, 2, 2, 40, 100, 5, 0, 0)  # 6 of 151: 6^2 / 151 is less than DOUBT
    assert few[:3].sum() < 0.3 * 6 / 151
    assert 0 < few[7] < few[6] < 0.005  # and what is lost can come back
    many = weights(20, 20, 20, 400, 1000, 50, 0, 0)  # the same shares of ten times the values
    assert few[:3].sum() < 0.5 * many[:3].sum()
    some = weights(30, 2, 2, 10, 100, 5, 0, 0)
    np.testing.assert_allclose(some[:3].sum(), 34 / 149, atol=0.05)


@pytest.mark.usefixtures("double")
def test_the_weak_prior_leaves_rare_components_as_rare_as_they_are():
    """Of values that are seldom on, a normal law of them would say that they are on more often."""
    rare = weights(570, 0, 0, 0, 30, 0, 0, 0)
    np.testing.assert_allclose(rare[0], 0.95, atol=0.005)


@pytest.mark.usefixtures("double")
def test_a_sparse_component_is_believed_beside_normal_ones():
    """The evidence is each component's own, and the doubt is divided between them."""
    counts = np.zeros((10, 8))
    counts[:, 4] = 100
    counts[0, [0, 4]] = 70, 30
    found = np.asarray(weights_of(jnp.asarray(counts), SCALES))
    np.testing.assert_allclose(found[0, 0], 0.7, atol=0.02)
    assert found[1:, 0].max() < 0.001


@pytest.mark.usefixtures("double")
def test_components_learn_from_each_other_where_rows_are_few():
    """The share of common weights is large where chance makes components differ, and small else."""
    rng = np.random.default_rng(2)
    common, p = Adaptive().weights, 6
    truth = rng.dirichlet(100 * common, p)

    def learnt(n):
        latent = own(truth).sample_prior(jax.random.key(0), p, n, float)

        def again(_, prior):
            return prior.mstep(prior.statistics(latent, jnp.ones(n)))

        return jax.jit(lambda prior: jax.lax.fori_loop(0, 50, again, prior))(
            cast(own([common] * p), float)
        )

    few, many = learnt(50), learnt(20_000)
    assert float(few.pooling) > 10 * float(many.pooling)
    # with many rows they are each component's own
    np.testing.assert_allclose(many.weights, truth, atol=0.05)
    for prior in (few, many):
        assert prior.n_parameters == pytest.approx(6 * (1 + 5 * (1 - prior.pooling)), abs=0.5)


def test_repr_and_density():
    prior = own([np.eye(8)[0] * 0.8 + np.eye(8)[4] * 0.2, Adaptive().weights])
    assert "P(0)=" in repr(prior)
    assert "kurtosis" in repr(prior)
    t = np.linspace(-30, 30, 60_001)
    density = prior.density(t[t != 0])
    assert density.shape == (2, t.size - 1)
    np.testing.assert_allclose(density.sum(1) * (t[1] - t[0]), 1 - prior.weights[:, 0], atol=2e-3)
    assert prior.kurtosis[0] == pytest.approx(3 / 0.2 - 3, rel=1e-6)
    with pytest.raises(ValueError, match="mean='free', 'zero', 'shift-after' or 'offset'"):
        Adaptive().shifted()
    with pytest.raises(ValueError, match="increase"):
        Adaptive((0.0, 1.0, 0.5))


def test_learns_whether_there_are_zeros():
    """Of bg it learns the share of zeros, of a logistic law that there are none."""
    model, X = simulate("bg", n=1000, d=20, p=3, sigma=0.3)
    ica = NoisyICA(3, prior="adaptive", max_iter=400, n_init=1, tol=0, random_state=0).fit(X)
    assert matched_cosine(model.mixing, ica.mixing_) > 0.995
    off = ica.prior_.weights[:, S < 0.2].sum(1)
    # the standard error of a share of 1,000 is .0145; small values may be taken for zeros
    np.testing.assert_allclose(off, 0.7, atol=4.5 * 0.0145)
    mass = ica.prior_.weights * S**2
    # the law stays at the centre of its grid, up to the noise of the draws
    np.testing.assert_allclose(mass @ LOGS / mass.sum(1), 0, atol=0.1)
    # what is on is N(0, 1), so that the columns have the lengths of the truth
    norms = [np.sort(np.linalg.norm(A, axis=0)) for A in (model.mixing, ica.mixing_)]
    np.testing.assert_allclose(norms[1], norms[0], rtol=4.5 / np.sqrt(2 * 300))
    model, X = simulate("log", n=1000, d=20, p=3, sigma=0.3)
    ica = NoisyICA(3, prior="adaptive", max_iter=400, n_init=1, tol=0, random_state=0).fit(X)
    assert ica.prior_.weights[:, 0].max() < 0.05
    assert matched_cosine(model.mixing, ica.mixing_) > 0.95


def test_recovers_the_law_that_was_simulated():
    """The divergence of the learnt law from the true one, at a value, is that of few parameters.

    Were the 6,000 coefficients known, twice their divergence would be chi-square with 6 degrees of
    freedom, and above 28 once in ten thousand times.
    """
    model, X = simulate("adaptive")
    ica = NoisyICA(4, noise="isotropic", prior="adaptive", n_init=1, tol=0, random_state=0).fit(X)
    assert matched_cosine(model.mixing, ica.mixing_) > 0.97
    assert ica.noise_variance_ == pytest.approx(0.09, rel=0.1)
    t = np.linspace(1e-3, 40, 40_000)
    true, learnt = Adaptive().density([0.0, *t])[0], ica.prior_.density([0.0, *t])
    divergence = true[0] * np.log(true[0] / learnt[:, 0])
    divergence += 2 * (true[1:] * np.log(true[1:] / learnt[:, 1:])).sum(1) * (t[1] - t[0])
    assert divergence.mean() < 28 / (2 * 6000)
    norms = [np.sort(np.linalg.norm(A, axis=0)) for A in (model.mixing, ica.mixing_)]
    np.testing.assert_allclose(norms[1], norms[0], rtol=0.15)


@pytest.mark.slow
def test_seeds_agree_and_files_hold_it(tmp_path):
    _, X = simulate("lap", n=600, d=15, p=2, sigma=0.5)
    fits = [
        NoisyICA(2, prior="adaptive", max_iter=500, n_init=1, tol=0, random_state=seed).fit(X)
        for seed in (0, 1)
    ]
    assert matched_cosine(fits[0].mixing_, fits[1].mixing_) > 0.999
    norms = [np.linalg.norm(ica.mixing_, axis=0) for ica in fits]
    # the standard error of the scale of 600 Laplace values is .04, which seeds need not share
    np.testing.assert_allclose(norms[0], norms[1], rtol=0.06)
    fits[0].save(tmp_path / "fit.npz")
    again = NoisyICA.load(tmp_path / "fit.npz")
    assert isinstance(again.prior_, Adaptive)
    assert repr(again.prior_) == repr(fits[0].prior_)
    assert again.n_parameters_ == fits[0].n_parameters_
    np.testing.assert_array_equal(again.model_.map(X[:5]), fits[0].model_.map(X[:5]))


def test_a_checkpoint_goes_on_to_the_same_result(tmp_path):
    _, X = simulate("bg", n=300, d=10, p=2)

    def ica(**more):
        settings = {"prior": "adaptive", "max_iter": 120, "tol": 0, "random_state": 0, "n_init": 1}
        return NoisyICA(2, **(settings | more))

    whole = ica().fit(X)
    path = tmp_path / "state.npz"
    stopped = ica(checkpoint=path, callback=lambda iteration, model: iteration >= 60)
    stopped.fit(X)
    resumed = ica(checkpoint=path).fit(X)
    np.testing.assert_allclose(resumed.mixing_, whole.mixing_)
    np.testing.assert_allclose(resumed.prior_.weights, whole.prior_.weights)


@pytest.mark.parametrize(
    "settings",
    [
        {"noise": "diagonal"},
        *(
            pytest.param(settings, marks=pytest.mark.slow)
            for settings in (
                {"mean": "offset"},
                {"sampler": "metropolis", "mixing_prior": None},
                {"algorithm": "fam-em"},
                {"algorithm": "mcem"},
                {"prior": Adaptive((0.25, 0.5, 1.0, 2.0, 4.0))},
            )
        ),
    ],
    ids=str,
)
def test_goes_with_other_settings(settings):
    _, X = simulate("bg", n=200, d=8, p=2)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    if settings.get("algorithm") == "fam-em":
        X = np.nan_to_num(X)
    given = {"prior": "adaptive", "max_iter": 40, "tol": 0, "n_init": 1, "random_state": 0}
    given |= settings
    ica = NoisyICA(2, **given).fit(X)
    assert np.isfinite(ica.components_).all()
    assert np.isfinite(ica.score(X[:20]))
    assert ica.n_parameters_ > 0


def test_what_it_refuses():
    _, X = simulate("bg", n=60, d=5, p=2)
    with pytest.raises(ValueError, match="location"):
        NoisyICA(2, prior="adaptive", mean="shift").fit(X)
    for scales in ((0.0, 0.1, 0.2), (0.0,), (0.0, np.inf), (10.0, 20.0), ()):
        with pytest.raises(ValueError, match="begin at 1 or below and end at 1 or above"):
            Adaptive(scales)
    with pytest.raises(TypeError, match="a sequence of numbers"):
        Adaptive(2.0)
    with pytest.raises(ValueError, match="no exact E-step"):
        NoisyICA(2, prior="adaptive", algorithm="em").fit(X)


def test_the_likelihood_is_that_of_all_states():
    """Joint draws agree with the enumeration of all classes, with weights of each component."""
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(3 * np.ones(8), 2)
    A, noise = rng.normal(size=(4, 2)), np.array([0.05, 0.3, 1.0, 2.0])
    model = Model(A, noise_variance=noise, prior=own(weights))
    X, _ = model.sample(40, random_state=0)
    value, error = model.log_likelihood(X, return_std=True)
    logs = []
    for i, s in enumerate(S):
        for j, r in enumerate(S):
            cov = A @ np.diag([s**2, r**2]) @ A.T + np.diag(noise)
            quadratic = np.einsum("ni,ij,nj->n", X, np.linalg.inv(cov), X)
            constant = np.linalg.slogdet(2 * np.pi * cov)[1]
            log_weight = np.log(weights[0, i]) + np.log(weights[1, j])
            logs.append(log_weight - 0.5 * (quadratic + constant))
    exact = np.logaddexp.reduce(logs, axis=0)
    assert (np.abs(value - exact) < 5 * error + 1e-6).all()
    assert np.abs((value - exact).mean()) < 0.02


def test_is_in_the_table_but_not_the_default():
    assert isinstance(priors.get("adaptive"), Adaptive)
    assert NoisyICA(2).prior == "bg"
