"""Shifted coefficients, random offsets, and parameters that are each component's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from noisyica import Model, NoisyICA, laws, priors
from noisyica._jax.arrays import cast
from noisyica.engine.algorithms import Saem
from noisyica.engine.runs import begin
from noisyica.engine.state import Constants, Plan, Schedule
from noisyica.engine.statistics import collect, rotate, shift
from noisyica.engine.sweepers import InMemory
from noisyica.posterior.parameters import Parameters
from noisyica.rows.block import device_blocks
from noisyica.rows.source import Rows
from tests.blocks import block_of
from tests.tools import matched_cosine, some_slow

N, D, P = 1000, 20, 3


def data(prior, seed=0):
    model = Model(np.random.default_rng(seed).normal(size=(D, P)), None, 0.25, prior)
    return model, model.sample(N, random_state=seed)[0]


SHIFTED = {
    "bg": priors.BernoulliGaussian(0.5, 2.0),
    "lap": laws.Shift(laws.Laplace(), 2.0),
    "et": laws.Mixture((laws.Dirac(), laws.Shift(laws.Laplace(), 2.0)), (0.5, 0.5)),
}


_INSIDE = laws.ScaleMixture(laws.Exponential(), laws.Normal(2.0))
FURTHER = {  # the name of a prior, the setting of the mean, and the truth
    "bg, after": ("bg", "shift-after", priors.Shifted(priors.BernoulliGaussian(0.4), 2.0)),
    "et, after": ("et", "shift-after", priors.Shifted(priors.ExponentialTernary(0.2), 2.0)),
    "eg, after": ("eg", "shift-after", priors.Shifted("eg", 2.0)),
    "ebg, after": (
        "ebg",
        "shift-after",
        priors.Shifted(priors.ExponentialBernoulliGaussian(0.4), 2.0),
    ),
    "te, after": ("te", "shift-after", priors.Shifted(priors.SingleScaleTernary(0.2), 2.0)),
    "eg, inside": ("eg", "shift", priors.Independent(_INSIDE)),
    "ebg, inside": (
        "ebg",
        "shift",
        priors.Independent(laws.Mixture((laws.Dirac(), _INSIDE), (0.6, 0.4))),
    ),
    "te, inside": ("te", "shift", priors.ShiftedSingleScaleTernary(0.2, 0.5)),
}


@pytest.mark.parametrize("name", some_slow(FURTHER, *(FURTHER.keys() - {"bg, after"})))
def test_shifts_inside_and_after_are_learnt(name, tmp_path):
    prior, mean, truth = FURTHER[name]
    model, X = data(truth)
    settings = {"noise": "isotropic", "tol": 0, "random_state": 0, "n_init": 1}
    ica = NoisyICA(P, prior=prior, mean=mean, max_iter=400, **settings).fit(X)
    assert matched_cosine(model.mixing, ica.mixing_) > 0.99
    assert not ica.mean_.any()
    shift = float(ica.prior_.parameters["shift"])
    assert ica.history_["shift"][-1] == pytest.approx(shift)
    true = {"te, inside": 0.5}.get(name, 2.0)
    # A's scale is known from n p / 2 coefficients, or n scales of rows, and the shift is in its
    # units: four standard errors of both
    count = N if prior == "te" else N * P * 0.4
    assert shift == pytest.approx(true, abs=4 * (true + 1) / np.sqrt(count))
    # what the rows say of the mean is more precise: mu A1, or its part for coefficients of mean mu
    expected = model.mixing.sum(1) * truth.mean()
    found = ica.mixing_.sum(1) * ica.prior_.mean()
    spread = np.sqrt((0.25 + np.square(model.mixing).sum(1) * truth.variance()) / N)
    assert (np.abs(found - expected) < 5 * spread).all()
    ica.save(tmp_path / "shift.npz")
    again = NoisyICA.load(tmp_path / "shift.npz")
    np.testing.assert_array_equal(again.transform(X[:20]), ica.transform(X[:20]))
    assert repr(again.prior_) == repr(ica.prior_)


@pytest.mark.slow
def test_logistic_offset_is_learnt():
    model, X = data(priors.Offset(priors.BernoulliGaussian(0.4), 3.0, law="logistic"))
    ica = NoisyICA(P, mean="offset-logistic", max_iter=400, tol=0, random_state=0, n_init=1).fit(X)
    centred = [A - A.mean(0) for A in (model.mixing, ica.mixing_)]
    assert matched_cosine(*centred) > 0.998
    assert ica.prior_.law == "logistic"
    # of log scale, a logistic value has the information pi^2 / 9 + 1 / 3
    error = 1 / np.sqrt(N * (np.pi**2 / 9 + 1 / 3))
    assert ica.prior_.parameters["offset_scale"] == pytest.approx(3.0, rel=4 * error)


@pytest.mark.parametrize("name", some_slow(SHIFTED, "lap", "et"))
def test_shift_is_learnt(name):
    model, X = data(SHIFTED[name])
    ica = NoisyICA(P, prior=name, mean="shift", max_iter=400, tol=0, random_state=0).fit(X)
    assert matched_cosine(model.mixing, ica.mixing_) > 0.99
    assert not ica.mean_.any()
    shift = ica.prior_.parameters["shift"]
    assert ica.history_["shift"][-1] == pytest.approx(shift)
    # A's scale and the shift go together: four standard errors, and as much again for the scale
    assert shift == pytest.approx(2.0, abs=8 * np.sqrt(2 / (N * P / 2)))


def test_only_locations_can_be_shifted():
    X = np.random.default_rng(0).normal(size=(50, 6))
    for prior in (
        "teoff",
        "adaptive",
        priors.Shifted("bg"),
        laws.Mixture((laws.Normal(), laws.Laplace()), (0.5, 0.5)),
    ):
        with pytest.raises(ValueError, match="choose"):
            NoisyICA(2, prior=prior, mean="shift").fit(X)


@pytest.mark.slow
def test_offset_is_learnt(tmp_path):
    model, X = data(priors.Offset(priors.BernoulliGaussian(0.4), 3.0))
    ica = NoisyICA(P, mean="offset", max_iter=600, tol=0, random_state=0).fit(X)
    # orthogonal to (1, .., 1), entries err by .5 / sqrt(1000 * .4): cosines of .9997
    centred = [A - A.mean(0) for A in (model.mixing, ica.mixing_)]
    assert matched_cosine(*centred) > 0.998
    # along (1, .., 1) the offsets, of standard deviation 3 sqrt(2), leave errors of .21 per entry
    # and so of .21 in the tangent of a column's angle: three of them
    assert matched_cosine(model.mixing, ica.mixing_) > 1 / np.sqrt(1 + (3 * 0.21) ** 2)
    assert ica.prior_.parameters["offset_scale"] == pytest.approx(
        3.0, abs=4 * 3.0 / np.sqrt(N)
    )  # |mu| is exponential
    assert ica.prior_.parameters["alpha"] == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / N))
    assert ica.history_["offset_scale"][-1] == pytest.approx(
        float(ica.prior_.offset_scale)
    )  # in the units of X
    ica.save(tmp_path / "offset.npz")
    again = NoisyICA.load(tmp_path / "offset.npz")
    np.testing.assert_array_equal(again.transform(X[:20]), ica.transform(X[:20]))
    with pytest.raises(ValueError, match="offset already"):
        priors.Offset("teoff")


def test_sweeps_begin_with_coefficients_that_know_no_offset():
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(50, 8)), rng.normal(size=(8, 2))
    plan = Plan(Saem(), False, None, False, False, False, "float64")
    constants = Constants(50.0, 1e-12, Schedule(10, 0.9))
    with jax.enable_x64(True):
        start = cast(
            Parameters(A, np.zeros(8), 0.5, priors.Offset(priors.BernoulliGaussian(0.5), 20.0)),
            float,
        )
        offset = 20 * rng.laplace(size=50)
        plain, moved = (
            begin(InMemory(device_blocks(Rows(x), "float64")), start, plan, constants).chains.latent
            for x in (X, X + offset[:, None])
        )
    np.testing.assert_allclose(moved.inner[..., :50], plain.inner[..., :50], atol=1e-10)
    np.testing.assert_allclose(moved.mu[..., :50] - plain.mu[..., :50], offset[None])


@pytest.mark.slow
def test_components_have_their_own_parameters(tmp_path):
    rng = np.random.default_rng(0)
    alphas = np.array([0.15, 0.5, 0.85])
    prior = priors.Independent(
        laws.Mixture((laws.Dirac(), laws.Normal()), (0.5, 0.5)), shared=False
    )
    beta = rng.normal(size=(N, P)) * (rng.random((N, P)) < alphas)
    A = rng.normal(size=(D, P))
    X = beta @ A.T + 0.5 * rng.normal(size=(N, D))
    ica = NoisyICA(P, prior=prior, max_iter=400, tol=0, random_state=0).fit(X)
    weights = ica.prior_.parameters["weights"]
    assert weights.shape == (P, 2)
    np.testing.assert_allclose(
        ica.history_["weights"][-1], weights
    )  # in the order of the components
    assert priors.Offset(prior).for_components(P).prior.components == P
    cosine = (
        np.abs(ica.components_ @ A)
        / np.linalg.norm(ica.components_, axis=1)[:, None]
        / np.linalg.norm(A, axis=0)
    )
    mine, true = linear_sum_assignment(-cosine)
    assert cosine[mine, true].min() > 0.97
    # four standard errors of a share, doubled since on and off are not seen
    np.testing.assert_array_less(np.abs(weights[mine, 1] - alphas[true]), 8 * np.sqrt(0.25 / N))
    ica.save(tmp_path / "own.npz")
    np.testing.assert_array_equal(
        NoisyICA.load(tmp_path / "own.npz").transform(X[:20]), ica.transform(X[:20])
    )
    with pytest.raises(ValueError, match="3 components, but there are 2"):
        Model(A[:, :2], None, 0.25, ica.prior_)


@pytest.mark.slow
def test_classes_of_their_own():
    """Components have classes of their own that are not symmetric (IFA in general).

    The class at zero stays there.
    """
    rng = np.random.default_rng(1)
    m, w = np.array([3.0, 4.0, 5.0]), np.array([0.2, 0.3, 0.1])
    beta = rng.normal(size=(N, P)) + m * (rng.random((N, P)) < w)
    A = rng.normal(size=(D, P))
    X = beta @ A.T + 0.5 * rng.normal(size=(N, D))
    prior = priors.GaussianMixture((2.0,), (0.5, 0.5), shared=False, symmetric=False)
    ica = NoisyICA(P, prior=prior, max_iter=400, tol=0, random_state=0).fit(X)
    cosine = (
        ica.components_
        @ A
        / np.linalg.norm(ica.components_, axis=1)[:, None]
        / np.linalg.norm(A, axis=0)
    )
    mine, true = linear_sum_assignment(-np.abs(cosine))
    assert np.abs(cosine[mine, true]).min() > 0.97
    assert (cosine[mine, true] > 0).all()  # no class is at minus its mean, which tells the sign
    np.testing.assert_allclose(ica.prior_.means[mine, 0], m[true], rtol=0.15)
    np.testing.assert_allclose(ica.prior_.weights[mine, 1], w[true], atol=8 * np.sqrt(0.25 / N))


@pytest.mark.parametrize("mixing_prior", some_slow(["normal", None], None))
@pytest.mark.slow
def test_the_mean_does_not_stay_at_the_average(mixing_prior):
    """At the maximum likelihood the posterior's E[psi(beta)] is zero, for "lap" that of the sign.

    At the average of the rows it is not. The noise is low: unless the coefficients move with it,
    the mean hardly leaves the average, where it starts.
    """
    A = np.random.default_rng(0).normal(size=(8, 2))
    X, _ = Model(A, None, 0.01, "lap").sample(500, random_state=0)
    ica = NoisyICA(2, prior="lap", mixing_prior=mixing_prior, tol=0, random_state=0).fit(X)

    def signs(mean):
        """Of each draw of all coefficients, the mean sign."""
        model = Model(ica.mixing_, mean, ica.noise_variance_, ica.prior_)
        return np.sign(model.posterior_sample(X, n_draws=200, random_state=0)).mean(1)

    there = signs(ica.mean_)
    # the standard error of 200 draws here, and of the some 100 that SAEM's average amounts to
    assert (np.abs(there.mean(0)) < 4 * there.std(0) * np.sqrt(1 / 200 + 1 / 100)).all()


@pytest.mark.usefixtures("double")
def test_statistics_follow_the_coefficients():
    """What W and a shift make of the statistics is what they are of the moved coefficients."""
    rng = np.random.default_rng(0)
    x, beta, weight = (jnp.array(rng.normal(size=shape)) for shape in ((5, 40), (3, 40), (40,)))
    weight = weight**2 / (weight**2).sum()
    block, prior = block_of(x, weight), priors.Logistic()
    W, delta = jnp.array(rng.normal(size=(3, 3))), jnp.array(rng.normal(size=3))
    before = collect(prior, beta, block)
    for moved, there in (
        (rotate(before, W), W @ beta),
        (shift(before, delta), beta + delta[:, None]),
    ):
        expected = collect(prior, there, block)
        for name in ("x", "b", "bb", "xb"):
            np.testing.assert_allclose(
                getattr(moved, name), getattr(expected, name), rtol=1e-12, atol=1e-12
            )
