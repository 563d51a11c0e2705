"""Units of X do not matter: fits of X and of c X agree to rounding, and so do their answers."""

import warnings

import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica.posterior.offsets import offsets
from tests.tools import some_slow

N, D, P = 60, 5, 2
FAR = (1e-30, 1e30)
POWER = 2.0**-100
"""A factor that rounds nothing: what depends on it is the same to the last bit."""
WITH_LOCATION = ("log", "lap", "ifa", "bg", "et")


def rows(seed=0):
    rng = np.random.default_rng(seed)
    signal = rng.laplace(size=(N, P)) @ rng.normal(size=(P, D))
    noise = 0.3 * rng.normal(size=(N, D)) * [1.0, 0.5, 1.5, 1.0, 0.7]
    return signal + noise + rng.laplace(size=(N, 1)) + rng.normal(size=D)


def fit(X, **settings):
    settings = {"max_iter": 30, "tol": 0, "random_state": 0, "verbose": False} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return NoisyICA(P, **settings).fit(X)


def agree(scaled, usual, c, rtol=1e-7):
    """Fits agree to rounding: that of the rows, which differ in their last bits."""
    size = np.abs(usual.components_).max()
    np.testing.assert_allclose(scaled.components_ / c, usual.components_, rtol, rtol * size)
    np.testing.assert_allclose(scaled.mean_ / c, usual.mean_, rtol, rtol * size)
    np.testing.assert_allclose(
        np.divide(scaled.noise_variance_, c) / c, usual.noise_variance_, 10 * rtol
    )
    for name, value in usual.prior_.parameters.items():
        unit = c if name == "offset_scale" else 1.0
        np.testing.assert_allclose(scaled.prior_.parameters[name] / unit, value, rtol, rtol)
    ratio = usual.explained_variance_ratio_
    np.testing.assert_allclose(scaled.explained_variance_ratio_, ratio, 10 * rtol)
    np.testing.assert_allclose(
        scaled.history_["gaussian_log_likelihood"][-1] + D * np.log(c),
        usual.history_["gaussian_log_likelihood"][-1],
        atol=1e-4,
    )


QUICK = ("log", "bg", "te")


def marked(settings, quick):
    """A case of the test below, which is slow unless ``quick``."""
    name = "-".join(settings.values())
    return pytest.param(settings, id=name, marks=[] if quick else [pytest.mark.slow])


SETTINGS = [
    *(marked({"prior": prior}, prior in QUICK) for prior in priors.TABLE),
    *(marked({"prior": p, "noise": "diagonal"}, p == "bg") for p in priors.TABLE),
    *(
        marked({"prior": p, "mean": mean}, False)
        for p in priors.TABLE
        for mean in ("zero", "shift", "offset")
        if (mean != "shift" or p in WITH_LOCATION) and (mean != "offset" or p != "teoff")
    ),
    pytest.param({"mean": "shift", "noise": "diagonal"}, id="bg-shift-diagonal"),
    marked({"prior": "bg", "mean": "offset", "noise": "diagonal"}, False),
    pytest.param({"noise": "auto"}, id="bg-auto-noise"),
    *(
        pytest.param({"algorithm": name, "mixing_prior": None}, id=f"bg-{name}")
        for name in ("saem", "mcem", "em", "sem")
    ),
    pytest.param({"prior": "lap", "algorithm": "fam-em"}, id="lap-fam-em"),
    pytest.param({"sampler": "metropolis"}, id="bg-metropolis"),
    pytest.param({"n_init": 2, "dtype": "float64"}, id="bg-two-starts"),
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.slow
def test_fits_do_not_depend_on_units(settings):
    X = rows()
    usual = fit(X, **settings)
    for c in FAR:
        agree(fit(X * c, **settings), usual, c)
    exact = fit(X * POWER, **settings)
    np.testing.assert_array_equal(exact.components_ / POWER, usual.components_)
    # the same random numbers, the same answers: to the last bit, or to that of a logarithm
    np.testing.assert_array_equal(exact.transform(X[:9] * POWER), usual.transform(X[:9]))
    scores = exact.score_samples(X[:9] * POWER) + D * np.log(POWER)
    np.testing.assert_allclose(scores, usual.score_samples(X[:9]), atol=1e-9)


@pytest.mark.parametrize("prior", some_slow(["bg", "teoff"], "teoff"))
@pytest.mark.slow
def test_all_that_is_asked_of_a_fit_has_the_units_of_x(prior, tmp_path):
    X = rows(1)
    X[3, 1] = np.nan
    usual, scaled = fit(X, prior=prior), fit(X * POWER, prior=prior)
    np.testing.assert_array_equal(scaled.transform(X * POWER), usual.transform(X))
    scores = scaled.score_samples(X * POWER) + (~np.isnan(X)).sum(1) * np.log(POWER)
    np.testing.assert_allclose(scores, usual.score_samples(X), atol=1e-9)
    ours, theirs = scaled.standard_errors(X * POWER), usual.standard_errors(X)
    powers = {"components": 1, "mixing": 1, "mean": 1, "offset_scale": 1, "noise_variance": 2}
    assert ours.keys() == theirs.keys()
    for name, error in theirs.items():
        unit = POWER ** powers.get(name, 0)
        np.testing.assert_allclose(ours[name] / unit, error, rtol=1e-9, err_msg=name)
    scaled.save(tmp_path / "scaled.npz")
    again = NoisyICA.load(tmp_path / "scaled.npz")
    np.testing.assert_array_equal(again.transform(X * POWER), usual.transform(X))
    model, other = scaled.model_, usual.model_
    drawn, expected = model.sample(5, random_state=0)[0], other.sample(5, random_state=0)[0]
    np.testing.assert_allclose(drawn / POWER, expected, rtol=1e-12)
    B, mu = model.map(X * POWER, return_offset=True)
    B_usual, mu_usual = other.map(X, return_offset=True)
    np.testing.assert_array_equal(B, B_usual)
    np.testing.assert_array_equal(mu / POWER, mu_usual)
    np.testing.assert_allclose(offsets(model, X * POWER, B) / POWER, offsets(other, X, B))
    back = scaled.inverse_transform(B) / POWER
    np.testing.assert_allclose(back, usual.inverse_transform(B), rtol=1e-12)
    whole = ~np.isnan(X).any(1)
    shift = (D + model.prior.has_offset) * np.log(POWER)  # an offset has a density, too
    density = model.complete_log_density(X[whole] * POWER, B[whole], mu[whole]) + shift
    usual_density = other.complete_log_density(X[whole], B[whole], mu_usual[whole])
    np.testing.assert_allclose(density, usual_density, atol=1e-9)


@pytest.mark.parametrize("prior", some_slow(priors.TABLE, "eg", "ebg", "et", "log", "teoff"))
def test_models_of_any_size_and_rows_far_out_have_finite_answers(prior):
    A = np.random.default_rng(0).normal(size=(4, 2))
    for size in (1e-120, 1e-20, 1e20, 1e120):
        for ratio in (0.1, 1e-9):
            own = priors.get(prior).rescaled(1 / size)
            model = Model(A * size, None, (ratio * size) ** 2, own)
            X = model.sample(6, random_state=0)[0]
            for Y in (X, 1e5 * X):
                assert np.isfinite(model.posterior_mean(Y, n_draws=5, n_warmup=5)).all()
                assert np.isfinite(model.map(Y)).all()
                assert np.isfinite(model.log_likelihood(Y, 5, 2)).all()


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e200, 1e300])
def test_sizes_beyond_floating_point_are_refused(factor):
    with pytest.raises(ValueError, match="rescale the data"):
        fit(rows() * factor)
    with pytest.raises(ValueError, match="rescale the data"):
        Model(np.ones((2, 1)) * max(factor, 1 / factor)).map(np.ones((1, 2)))


def test_what_cannot_be_computed_with_is_refused():
    with pytest.raises(ValueError, match="noise is too small"):
        Model(np.ones((2, 1)), noise_variance=1e-30).map(np.ones((1, 2)))
    with pytest.raises(ValueError, match="too far from what the model knows"):
        Model(np.ones((2, 1))).posterior_mean(np.full((1, 2), 1e300))
    fixed = priors.SingleScaleTernaryOffset(offset_scale=1.0)
    with pytest.raises(ValueError, match="offset_scale is 1e.20 times the root mean square"):
        fit(np.sign(rows()) * 1e20 + 1e5, prior=fixed, mean="zero")
    with pytest.raises(ValueError, match="offset_scale=1e-30 is too small"):
        Model(np.ones((2, 1)), prior=priors.Offset("bg", 1e-30)).map(np.ones((1, 2)))


@pytest.mark.slow
def test_an_offset_whose_scale_is_given_stays_as_it_is(tmp_path):
    prior = priors.SingleScaleTernaryOffset(offset_scale=2.0)
    fixed, learnt = fit(rows(), prior=prior), fit(rows(), prior="teoff")
    assert float(fixed.prior_.offset_scale) == pytest.approx(2.0, rel=1e-12)
    assert fixed.prior_.n_parameters == 1
    assert "offset_scale" not in fixed.prior_.parameters
    assert learnt.prior_.n_parameters == 2
    assert learnt.history_["offset_scale"].std() > 0
    for ica in (fixed, learnt):
        ica.save(tmp_path / "teoff.npz")
        again = NoisyICA.load(tmp_path / "teoff.npz").prior_
        assert (repr(again), again.learns_offset) == (repr(ica.prior_), ica.prior_.learns_offset)
