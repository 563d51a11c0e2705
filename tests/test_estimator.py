"""scikit-learn's conventions, good and bad input, files, and the same answer twice."""

import os
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from noisyica import NoisyICA, laws, priors
from tests.tools import TRUE_PRIORS, matched_cosine, simulate, some_slow


def checks_that_fail(estimator):
    """Return which of scikit-learn's checks the estimator cannot pass, and why."""
    reason = (
        "Each row has random numbers of its own: a row of weight 2 is not, to the last digit, "
        "two rows of weight 1."
    )
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@pytest.mark.filterwarnings("ignore:.*SCIPY_ARRAY_API.*")
# some checks have three columns and no random seed: whether one column runs to zero is chance
@pytest.mark.filterwarnings("ignore:The noise variance of:UserWarning")
@parametrize_with_checks(
    [NoisyICA(n_components=2, max_iter=40, tol=0)], expected_failed_checks=checks_that_fail
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return simulate("bg", n=300, d=12, p=3)


@pytest.fixture(scope="module")
def fitted(data):
    return NoisyICA(3, noise="isotropic", max_iter=200, tol=0, random_state=0).fit(data[1])


def test_shapes_and_types(data, fitted):
    X = data[1]
    assert fitted.components_.shape == (3, 12)
    assert fitted.mixing_.shape == (12, 3)
    np.testing.assert_array_equal(fitted.mixing_.T, fitted.components_)
    assert fitted.mean_.shape == (12,)
    assert isinstance(fitted.noise_variance_, float)
    assert isinstance(fitted.prior_, priors.BernoulliGaussian)
    assert fitted.transform(X).shape == (300, 3)
    assert fitted.sample(5, random_state=0)[0].shape == (5, 12)
    assert set(fitted.history_) >= {"iteration", "noise_variance", "column_norms", "alpha"}
    assert fitted.history_["alpha"][-1] == pytest.approx(fitted.prior_.alpha)
    assert fitted.history_["noise_variance"][-1] == pytest.approx(fitted.noise_variance_)


def test_reconstruction_leaves_noise(data, fitted):
    X = data[1]
    residual = X - fitted.inverse_transform(fitted.transform(X))
    assert np.square(residual).mean() == pytest.approx(fitted.noise_variance_, rel=0.35)
    with pytest.raises(ValueError, match="B has 2 columns, but there are 3 components"):
        fitted.inverse_transform(np.ones((4, 2)))


def test_pipeline_clone_and_names(data):
    X = data[1]
    ica = clone(NoisyICA(2, prior=priors.Laplace(), max_iter=30, tol=0, random_state=0))
    pipe = make_pipeline(StandardScaler(), ica).fit(X)
    assert list(pipe[-1].get_feature_names_out()) == ["component0", "component1"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(load_iris().data, columns=load_iris().feature_names)
    out = (
        NoisyICA(2, max_iter=30, tol=0, random_state=0)
        .set_output(transform="pandas")
        .fit_transform(frame)
    )
    assert list(out.columns) == ["component0", "component1"]


def test_weights_are_routed_through_a_pipeline(data):
    X, weight = data[1], np.random.default_rng(0).integers(1, 4, size=300).astype(float)
    settings = {"n_components": 2, "max_iter": 20, "tol": 0, "random_state": 0}
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        ica = NoisyICA(**settings).set_fit_request(sample_weight=True)
        routed = make_pipeline(scaler, ica).fit(X, sample_weight=weight)[-1]
        ignored = NoisyICA(**settings).set_fit_request(sample_weight=False)
        unweighted = make_pipeline(scaler, ignored).fit(X, sample_weight=weight)[-1]
    scaled = StandardScaler().fit(X, sample_weight=weight).transform(X)
    by_hand = NoisyICA(**settings).fit(scaled, sample_weight=weight)
    np.testing.assert_array_equal(routed.components_, by_hand.components_)
    np.testing.assert_array_equal(
        unweighted.components_, NoisyICA(**settings).fit(scaled).components_
    )
    assert not np.array_equal(routed.components_, unweighted.components_)


# ---------------------------------------------------------------------------------------- bad input

GOOD = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize(
    ("X", "settings", "error", "message"),
    [
        (np.full((30, 4), np.nan), {}, ValueError, "Nothing is observed"),
        (np.where(GOOD > 2, np.inf, GOOD), {}, ValueError, "infinity"),
        (GOOD[0], {}, ValueError, "Expected 2D array, got 1D array"),
        (GOOD[:1], {}, ValueError, "minimum of 2 is required"),
        (GOOD[:0], {}, ValueError, "minimum of 2 is required"),
        (np.full((30, 4), 7.0), {}, ValueError, "X is constant"),
        (np.zeros((30, 4)), {}, ValueError, "All entries of X are zero"),
        (np.array([["a", "b"], ["c", "d"]]), {}, ValueError, "could not convert string to float"),
        (GOOD, {"prior": "gaussian"}, ValueError, "Unknown prior 'gaussian'. Choose one of 'log'"),
        (GOOD, {"prior": None}, TypeError, "prior must be one of"),
        (GOOD, {"n_components": 0}, ValueError, "n_components must be at least 1"),
        (GOOD, {"n_components": -3}, ValueError, "n_components must be at least 1"),
        (
            GOOD,
            {"n_components": 2.5},
            TypeError,
            "n_components must be a positive integer or 'auto'; got 2.5",
        ),
        (GOOD, {"n_components": True}, TypeError, "n_components must be a positive integer"),
        (
            GOOD,
            {"n_components": "many"},
            ValueError,
            "n_components must be a positive integer or 'auto'",
        ),
        (GOOD, {"algorithm": "gd"}, ValueError, "algorithm='gd' is not known. Choose 'saem'"),
        (GOOD, {"sampler": "nuts"}, ValueError, "sampler='nuts' is not known"),
        (GOOD, {"mean": "median"}, ValueError, "mean='median' is not known"),
        (GOOD, {"mixing_prior": "flat"}, ValueError, "mixing_prior='flat' is not known"),
        (GOOD, {"dtype": "float16"}, ValueError, "dtype='float16' is not known"),
        (GOOD, {"init": "best"}, ValueError, "init='best' is not known. Choose one of 'auto'"),
        (GOOD, {"init": np.ones((3, 2)), "n_components": 2}, ValueError, "init has shape"),
        (GOOD, {"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1"),
        (GOOD, {"tol": -1}, ValueError, "tol must be a number from 0"),
        (GOOD, {"kappa": 0.3}, ValueError, "kappa must be a number from 0.5 to 1"),
        (GOOD, {"burn_in": 2}, ValueError, "burn_in must be a number from 0 to 1"),
    ],
)
def test_bad_input_is_refused_in_words(X, settings, error, message):
    with pytest.raises(error, match=message):
        NoisyICA(**({"n_components": 2, "max_iter": 5} | settings)).fit(X)


def test_use_before_fit():
    for use in (
        lambda e: e.transform(GOOD),
        lambda e: e.inverse_transform(GOOD),
        lambda e: e.sample(),
        lambda e: e.save("x.npz"),
    ):
        with pytest.raises(NotFittedError):
            use(NoisyICA(2))


@pytest.mark.parametrize(
    "change",
    [
        lambda X: np.hstack([X, np.full((len(X), 2), 3.0)]),  # constant columns
        lambda X: np.vstack([X, X]),  # duplicated rows
        lambda X: np.round(X * 10).astype(int),
        lambda X: X.astype(np.float16),
        np.asfortranarray,
        lambda X: X[::2, ::2],  # not contiguous
        lambda X: X[:8],  # fewer rows than columns
        lambda X: X[:2],
        lambda X: X[:, :1],
        lambda X: X * 1e-12,
        lambda X: X * 1e12,
        lambda X: X * 1e-120,
        lambda X: X + 1e6,  # far from zero
    ],
)
def test_awkward_input_just_works(data, change):
    fits_and_transforms(change(data[1]), "bg")


def fits_and_transforms(X, prior, init="auto"):
    X.setflags(write=False)
    before = X.copy()
    ica = NoisyICA(2, prior=prior, init=init, max_iter=40, tol=0, random_state=0).fit(X)
    assert np.isfinite(ica.components_).all()
    assert np.isfinite(ica.mean_).all()
    assert np.all(ica.noise_variance_ > 0)
    assert np.isfinite(ica.transform(X[:3])).all()
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("prior", some_slow(["teoff", "log"], "teoff"))
def test_few_rows_in_tiny_units_work_for_other_priors(data, prior):
    for few in (2, 8):
        fits_and_transforms(data[1][:few] * 1e-12, prior, "fastica")


# -------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", some_slow(["bg", "ifa", "teoff", "composed"], "teoff"))
def test_save_and_load(tmp_path, data, name):
    prior = (
        laws.Mixture((laws.Dirac(), laws.Laplace()), (0.5, 0.5))
        if name == "composed"
        else TRUE_PRIORS[name]
    )
    ica = NoisyICA(
        2, prior=prior, max_iter=20, tol=0, random_state=3, init=data[0].mixing[:, :2]
    ).fit(data[1])
    path = tmp_path / "model.npz"
    ica.save(path)
    again = NoisyICA.load(path)
    assert os.listdir(tmp_path) == ["model.npz"]
    np.testing.assert_array_equal(again.components_, ica.components_)
    np.testing.assert_array_equal(again.transform(data[1][:5]), ica.transform(data[1][:5]))
    np.testing.assert_array_equal(again.history_["noise_variance"], ica.history_["noise_variance"])
    assert repr(again.prior_) == repr(ica.prior_)
    assert again.get_params()["random_state"] == 3
    assert (again.n_iter_, again.converged_) == (20, ica.converged_)
    np.testing.assert_array_equal(again.noise_variance_, ica.noise_variance_)


def test_feature_names_are_saved(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GOOD, columns=list("abcd"))
    NoisyICA(2, max_iter=10, tol=0).fit(frame).save(tmp_path / "m.npz")
    assert list(NoisyICA.load(tmp_path / "m.npz").feature_names_in_) == list("abcd")


def test_bad_files(tmp_path, fitted):
    with pytest.raises(FileNotFoundError):
        NoisyICA.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("not a model")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    np.savez(tmp_path / "pickled.npz", description=np.array([{"a": 1}], dtype=object))
    fitted.save(tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    for name in ("text", "other", "pickled", "cut"):
        with pytest.raises(ValueError, match="not a model saved by noisyica"):
            NoisyICA.load(tmp_path / f"{name}.npz")


# -------------------------------------------------------------------------------- same answer twice


@pytest.mark.parametrize("prior", some_slow(["bg", "te"], "te"))
def test_the_seed_decides(data, prior):
    fits = [
        NoisyICA(2, prior=prior, max_iter=60, tol=0, random_state=s).fit(data[1]) for s in (5, 5, 6)
    ]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    assert not np.array_equal(fits[0].components_, fits[2].components_)


SCRIPT = """
    import hashlib, os, sys
    if sys.argv[1] == "one":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import numpy as np
    from noisyica import NoisyICA
    from noisyica.engine import holding
    from noisyica.rows import block
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 300))
    for _ in range(5):  # not a matrix product: the last bits of NumPy's own depend on the threads
        X += np.outer(rng.laplace(size=2500), rng.normal(size=300))
    digest = hashlib.sha256()
    for streamed in (False, True):
        if streamed:
            block.ROWS_ON_CPU, holding.SHARE_OF_MEMORY = 1024, 0.0
        ica = NoisyICA(5, prior="lap", max_iter=40, tol=0, random_state=0).fit(X)
        digest.update(ica.components_.tobytes() + ica.transform(X[:20]).tobytes())
        print(digest.hexdigest())
"""


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"),
    reason="the number of threads cannot be set on this system",
)
@pytest.mark.skipif(
    jax.__version_info__ < (0, 10), reason="products of older JAX round by the number of threads"
)
def test_threads_do_not_change_the_result():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only")
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    processes = [
        subprocess.Popen([*command, cores], stdout=subprocess.PIPE, text=True)
        for cores in ("one", "all")
    ]
    results = [process.communicate()[0] for process in processes]
    assert results[0] == results[1]
    assert len(results[0]) > 60


def test_dtype_float64_agrees(data):
    ica = NoisyICA(3, max_iter=200, tol=0, dtype="float64", random_state=0).fit(data[1])
    assert matched_cosine(data[0].mixing, ica.mixing_) > 0.99


def test_a_refit_that_fails_leaves_the_estimator_as_it_was(data):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(data[1][:60, :4], columns=list("abcd"))
    ica = NoisyICA(2, max_iter=5, tol=0, random_state=0).fit(X)
    for wrong in (np.zeros((20, 7)), X.rename(columns={"a": "other"}) * 0):
        with pytest.raises(ValueError, match="zero"):
            ica.fit(wrong)
        assert ica.n_features_in_ == 4
        assert list(ica.feature_names_in_) == list("abcd")
        assert ica.transform(X).shape == (60, 2)


def test_a_seed_that_is_none_is_refused(data):
    for wrong in (-1, 2**40, 1.5, "seed"):
        with pytest.raises(ValueError, match="random_state must be"):
            NoisyICA(2, random_state=wrong).fit(data[1])
