"""Spatial ICA of functional images, with nilearn itself as maskers and for comparison."""

import doctest
import re
import warnings
from pathlib import Path

import nibabel
import numpy as np
import pytest
from nilearn.decomposition import CanICA, DictLearning
from nilearn.maskers import MultiNiftiMasker, NiftiMasker
from nilearn.masking import apply_mask
from sklearn.base import clone

import noisyica.neuro.canica
from noisyica.neuro import NoisyCanICA
from noisyica.neuro.reduction import columns_of_each, in_units_of_noise, reduced
from tests.neighbours.brains import AFFINE, MAPS, SHAPE, TIMES, brains, inside, pairs

PAGE = Path(__file__).parents[2] / "docs" / "neuro.md"


def noisy(data, **settings):
    """An estimator without reliability, which takes longer than a fit and warns where it is low."""
    common = {"mask": data.mask, "random_state": 0, "verbose": False, "ica_settings": {"n_init": 1}}
    return NoisyCanICA(MAPS, **common | settings)


@pytest.fixture(scope="module")
def group():
    """Three subjects, and a fit to them."""
    data = brains(0, 1, subjects=3)
    return data, noisy(data).fit(data.images)


# ---- what is found


@pytest.mark.parametrize(("sigma", "subjects"), [(0.5, 1), (1, 1), (2, 3)])
def test_maps_are_nearer_to_the_truth_than_those_of_nilearn(sigma, subjects):
    """On the mean of two data sets; alpha is the default's tenth, which leaves no map at all."""
    ours, canica, dictionary = [], [], []
    for seed in (0, 1):
        data = brains(seed, sigma, subjects)
        common = {"n_components": MAPS, "mask": data.mask, "smoothing_fwhm": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of nilearn, on its own defaults
            for found, other in (
                (canica, CanICA(**common, random_state=0)),
                (dictionary, DictLearning(**common, alpha=1, random_state=0)),
            ):
                found.append(pairs(data.maps, other.fit(data.images).components_)[0].mean())
        fitted = noisy(data).fit(data.images)
        ours.append(pairs(data.maps, fitted.components_)[0].mean())
    assert np.mean(ours) > max(np.mean(canica), np.mean(dictionary)), (ours, canica, dictionary)


def test_a_group_has_common_maps_and_courses_of_its_own(group):
    data, fitted = group
    similarity, matches = pairs(data.maps, fitted.components_)
    assert similarity.mean() > 0.9
    assert [course.shape for course in fitted.time_courses_] == [(TIMES, MAPS)] * 3
    for truth, found in zip(data.courses, fitted.time_courses_, strict=True):
        # of noise in a voxel as large as its signal, a map of fifty voxels leaves a seventh
        assert pairs(truth.T, found.T)[0].mean() > 0.9
        np.testing.assert_array_equal(pairs(truth.T, found.T)[1], matches)
    assert fitted.ica_.noise_variance_ == pytest.approx(1, abs=0.1)  # in units of the noise


def test_the_larger_side_of_maps_is_positive_and_the_model_turns_with_them(group):
    _, fitted = group
    assert (fitted.components_.max(1) >= -fitted.components_.min(1)).all()
    X = np.concatenate([reduced(Y, 166).columns for Y in voxels(group)], axis=1)
    np.testing.assert_allclose(fitted.ica_.transform(X).T, fitted.components_, atol=1e-6)
    courses = np.concatenate(fitted.time_courses_)
    np.testing.assert_allclose(
        np.linalg.norm(courses, axis=0), np.linalg.norm(fitted.ica_.mixing_, axis=0)
    )


def voxels(group):
    """The voxels of each subject in units of their noise."""
    data, fitted = group
    for image in data.images:
        (Y,) = fitted.masker_.transform([image])
        Y = (Y - Y.mean(0, dtype=float)).astype(np.float32)
        yield in_units_of_noise(Y, MAPS, True, "x")


def test_probabilities_that_voxels_are_on_tell_which_are(group):
    """Brier's score beats the share of voxels that are on, said of all; thresholds take effect."""
    data, fitted = group
    probability = fitted.probability_on_[pairs(data.maps, fitted.components_)[1]]
    on = data.maps != 0
    constant = on.mean() * (1 - on.mean())
    assert np.square(probability - on).mean() < 0.6 * constant
    assert on[probability > 0.9].mean() > 0.9
    assert fitted.probability_on_img_.shape == (*SHAPE, MAPS)
    some = apply_mask(fitted.thresholded_img(0.9), fitted.mask_img_)
    expected = np.where(fitted.probability_on_ >= 0.9, fitted.components_, 0)
    np.testing.assert_allclose(some, expected, atol=1e-5)


def test_laws_without_zeros_have_no_such_probabilities():
    data = brains(2, 0.5)
    fitted = noisy(data, prior="log", ica_settings={"max_iter": 100, "tol": 0}).fit(data.images)
    assert not hasattr(fitted, "probability_on_")
    with pytest.raises(AttributeError, match="no voxel is ever exactly zero"):
        fitted.thresholded_img()


def test_without_a_number_of_maps_those_that_are_there_stand_out():
    """There are some more, as subjects differ in the units of their noise: they explain little."""
    data = brains(3, 0.5, subjects=3)
    fitted = noisy(data).set_params(n_components="auto").fit(data.images)
    explained = fitted.ica_.explained_variance_
    assert len(explained) >= MAPS
    assert (explained[MAPS:] < 0.2 * explained[MAPS - 1]).all()
    assert pairs(data.maps, fitted.components_)[0].mean() > 0.9


def test_reproducible(group):
    data, fitted = group
    again = clone(fitted).fit(data.images)
    np.testing.assert_array_equal(again.components_, fitted.components_)
    np.testing.assert_array_equal(again.probability_on_, fitted.probability_on_)
    other = clone(fitted).set_params(random_state=1).fit(data.images)
    assert (other.components_ != fitted.components_).any()
    assert pairs(fitted.components_, other.components_)[0].min() > 0.98


# ---- dual regression and spectra


def test_dual_regression_finds_the_courses_of_a_new_subject(group):
    data, fitted = group
    (new,) = brains(0, 1, 4).images[3:]  # the same maps, another subject
    truth = brains(0, 1, 4).courses[3]
    (found,) = fitted.dual_regression(new)
    assert pairs(truth.T, found.time_courses.T)[0].mean() > 0.9
    np.testing.assert_array_equal(fitted.transform(new)[0], found.time_courses)
    assert found.components_img.shape == (*SHAPE, MAPS)
    assert pairs(data.maps, found.components)[0].mean() > 0.75  # of one subject, without a law
    # the regressions, written out
    (Y,) = voxels((data._replace(images=[new]), fitted))
    design = np.column_stack([fitted.components_.T, np.ones(Y.shape[1])])
    np.testing.assert_allclose(found.time_courses.T, (np.linalg.pinv(design) @ Y.T)[:-1], atol=1e-4)
    standard = (found.time_courses - found.time_courses.mean(0)) / found.time_courses.std(0)
    np.testing.assert_allclose(found.components, np.linalg.pinv(standard) @ Y, atol=1e-4)


def test_spectra_show_the_frequency_of_a_course():
    data, t_r = brains(4, 0.3), 2.0
    values = data.images[0].get_fdata()
    wave = np.sin(2 * np.pi * 0.1 * t_r * np.arange(TIMES))  # 0.1 Hz
    values[inside()] += 2 * np.abs(data.maps[0])[:, None] * wave
    image = nibabel.Nifti1Image(values.astype(np.float32), AFFINE)
    fitted = noisy(data).fit(image)
    frequencies, power = fitted.spectra(t_r)
    assert power.shape == (1, MAPS, len(frequencies))
    best = np.abs(np.corrcoef(wave, fitted.time_courses_[0].T)[0, 1:]).argmax()
    peak = frequencies[power[0, best].argmax()]
    assert peak == pytest.approx(0.1, abs=1 / (TIMES * t_r))
    np.testing.assert_array_equal(noisy(data, t_r=t_r).fit(image).spectra().power, power)
    with pytest.raises(ValueError, match="Give t_r"):
        fitted.spectra()


# ---- noise and reduction


def test_noise_of_voxels_is_what_they_are_divided_by():
    """White noise of known size in each voxel, below four strong components."""
    rng = np.random.default_rng(0)
    size = rng.uniform(0.5, 5, size=2000)
    signal = 3 * rng.normal(size=(100, 4)) @ (rng.normal(size=(4, 2000)) * size)
    noise = rng.normal(size=(100, 2000)) * size
    Y = (signal + noise).astype(np.float32)
    each = in_units_of_noise(Y, 4, True, "x")
    # a variance of 91 degrees of freedom has a relative standard error of sqrt(2 / 91); components
    # that are chosen with noise in them take more of it than their share
    assert np.log(Y.std(0) / each.std(0) / size).std() < 1.2 * np.sqrt(0.5 / 91)
    assert np.median(Y.std(0) / each.std(0) / size) == pytest.approx(1, abs=0.05)
    alike = in_units_of_noise(Y, 4, False, "x")
    np.testing.assert_allclose(Y.std(0) / alike.std(0), np.sqrt(np.square(size).mean()), rtol=0.05)


def test_reduction_keeps_signal_and_leaves_out_what_a_filter_removed():
    rng = np.random.default_rng(1)
    filtered = np.linalg.qr(rng.normal(size=(100, 40)))[0]  # 40 directions are left of 100
    signal = filtered[:, :4] @ (10 * rng.normal(size=(4, 2000)))
    Y = (signal + filtered @ rng.normal(size=(40, 2000))).astype(np.float32)
    every = reduced(Y, 500)
    assert every.columns.shape == (2000, 40)
    np.testing.assert_allclose(every.basis @ every.columns.T, Y, atol=1e-3)
    few = reduced(Y, 8)
    np.testing.assert_allclose(few.basis.T @ few.basis, np.eye(8), atol=1e-9)
    assert np.corrcoef((few.basis @ few.columns.T).ravel(), signal.ravel())[0, 1] > 0.98
    noise = (every.columns - (filtered[:, :4] @ filtered[:, :4].T @ Y).T @ every.basis).std(0)
    assert noise.std() < 0.05 * noise.mean()  # it is the same in all columns
    # the size of noise is that of the directions that are left
    scaled = in_units_of_noise(Y, 4, False, "x")
    assert (Y / scaled).mean() == pytest.approx(1, abs=0.05)


def test_strong_reduction_finds_the_maps_too(group):
    data, _ = group
    fitted = noisy(data, n_reduced=2 * MAPS).fit(data.images)
    assert fitted.ica_.n_features_in_ == 3 * 2 * MAPS
    assert pairs(data.maps, fitted.components_)[0].mean() > 0.9


# ---- maskers


@pytest.mark.parametrize(("kind", "before"), [(NiftiMasker, True), (MultiNiftiMasker, False)])
def test_a_masker_is_taken_as_it_is(kind, before):
    data = brains(5, 0.5)
    masker = kind(mask_img=data.mask, detrend=True, standardize=None)
    masker = masker.fit() if before else masker
    short = {"max_iter": 60, "tol": 0}
    fitted = noisy(data, mask=masker, ica_settings=short).fit(data.images)
    assert type(fitted.masker_) is kind
    assert fitted.masker_ is not masker
    expected = noisy(data, ica_settings=short).fit(data.images)
    np.testing.assert_array_equal(fitted.components_, expected.components_)
    # there and back again
    back = apply_mask(fitted.components_img_, fitted.mask_img_)
    np.testing.assert_allclose(back, fitted.components_, atol=1e-6)
    volume = fitted.components_img_.get_fdata()
    np.testing.assert_allclose(volume[inside()].T, fitted.components_, atol=1e-6)
    assert (volume[~inside()] == 0).all()


def test_the_brain_is_found_without_a_mask(tmp_path):
    """Images may be files; what nilearn's strategy finds is most of the ball, and nothing else."""
    data = brains(6, 0.5, subjects=3)
    for number, image in enumerate(data.images):
        image.to_filename(tmp_path / f"{number}.nii.gz")
    paths = [tmp_path / "0.nii.gz", str(tmp_path / "1.nii.gz"), tmp_path / "2.nii.gz"]
    fitted = noisy(data, mask=None, ica_settings={"max_iter": 60, "tol": 0}).fit(paths)
    found = fitted.mask_img_.get_fdata() > 0
    assert not (found & ~inside()).any()
    assert found.sum() > 0.5 * inside().sum()


def test_settings_reach_the_masker():
    settings = {"smoothing_fwhm": 4.0, "low_pass": 0.1, "high_pass": 0.01, "t_r": 2.0}
    data = brains(7, 0.5)
    fitted = noisy(data, **settings, standardize="psc", ica_settings={"max_iter": 30, "tol": 0})
    masker = fitted.fit(data.images).masker_
    for name, value in {**settings, "detrend": True, "standardize": "psc"}.items():
        assert getattr(masker, name) == value
    assert fitted.ica_.n_features_in_ < TIMES - 10  # directions that the filter has removed


def test_confounds_are_regressed_out():
    data = brains(8, 0.5)
    drift = np.cos(np.linspace(0, 9, TIMES))
    values = data.images[0].get_fdata()
    values[inside()] += 20 * np.random.default_rng(0).normal(size=(inside().sum(), 1)) * drift
    image = nibabel.Nifti1Image(values.astype(np.float32), AFFINE)
    fitted = noisy(data).fit([image], confounds=[drift[:, None]])
    assert pairs(data.maps, fitted.components_)[0].mean() > 0.85
    assert np.abs(fitted.transform(image, confounds=[drift[:, None]])[0].T @ drift).max() < 1
    again = noisy(data).fit_transform([image], confounds=[drift[:, None]])
    np.testing.assert_array_equal(again[0], fitted.transform(image, [drift[:, None]])[0])
    with pytest.raises(ValueError, match="2 confounds for 1 images"):
        fitted.fit(image, confounds=[drift, drift])
    np.testing.assert_array_equal(again[0], fitted.transform(image, [drift[:, None]])[0])


def test_voxels_are_constant_if_only_rounding_changes_them():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(40, 100))
    Y[:, :50] = 1e-13 * rng.normal(size=40)[:, None]  # what regression leaves of a constant
    scaled = in_units_of_noise(Y.astype(np.float32), 2, True, "Y")
    np.testing.assert_array_equal(scaled[:, :50], 0)
    assert (scaled[:, 50:].std(0) > 0.5).all()


def test_no_column_is_left_out_where_there_are_few():
    assert columns_of_each("auto", 4, [400, 50]) == 400
    assert columns_of_each("auto", 4, [400, 150]) == 250
    assert columns_of_each("auto", 200, [400, 150]) == 400
    assert columns_of_each(7, 4, [400, 150]) == 7


# ---- what cannot be


def other_grid(data):
    """The same images, each voxel 2 mm wide."""
    return nibabel.Nifti1Image(data.images[0].get_fdata(dtype="f4"), np.diag([2.0, 2, 2, 1]))


def empty(data):
    return nibabel.Nifti1Image(np.zeros(SHAPE, np.uint8), AFFINE)


def outside(data):
    return nibabel.Nifti1Image((~inside()).astype(np.uint8), AFFINE)


WRONG = {
    "one volume": (lambda d: (d.images[0].slicer[..., 0], {}), "Image 0 has shape (14, 16, 10), "),
    "nothing": (lambda d: ([], {}), "There are no images"),
    "a pattern": (lambda d: ("sub-*_bold.nii.gz", {}), "sub-*_bold.nii.gz is a pattern"),
    "two grids": (lambda d: ([d.images[0], other_grid(d)], {}), "Image 1 has another affine"),
    "two shapes": (
        lambda d: ([d.images[0], d.images[0].slicer[1:]], {}),
        "Image 1 has another shape than image 0",
    ),
    "a mask elsewhere": (lambda d: (other_grid(d), {}), "The mask has another affine"),
    "no overlap": (lambda d: (d.images, {"mask": outside(d)}), "does not change in time in any"),
    "few time points": (
        lambda d: ([d.images[0], d.images[0].slicer[..., :5]], {}),
        "Image 1 has 5 time points: for 4 components it must have 6 or more",
    ),
    "no components": (lambda d: (d.images, {"n_components": 0}), "n_components must be an integer"),
    "unknown scale": (lambda d: (d.images, {"standardize": "other"}), "standardize must be"),
    "given twice": (
        lambda d: (d.images, {"ica_settings": {"prior": "log"}}),
        "ica_settings has prior: give",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_say_what_is_wrong(case):
    make, message = WRONG[case]
    data = brains(0, 1)
    imgs, settings = make(data)
    with pytest.raises(ValueError, match=re.escape(message)):
        noisy(data).set_params(**settings).fit(imgs)


def test_an_empty_mask_is_refused():
    """By nilearn, or by us: in either case with words about the mask."""
    data = brains(0, 1)
    with pytest.raises(ValueError, match="(?i)mask"):
        noisy(data, mask=empty(data)).fit(data.images)


def test_new_subjects_must_be_on_the_grid_of_the_mask(group):
    data, fitted = group
    with pytest.raises(ValueError, match="Image 0 has another affine than the mask"):
        fitted.transform(other_grid(data))


# ---- what is written about it


def test_examples_run(tmp_path, monkeypatch):
    """Those of the docstring and of the page, which the main environment leaves out."""
    found = doctest.testmod(noisyica.neuro.canica)
    assert found.failed == 0
    assert found.attempted
    monkeypatch.chdir(tmp_path)
    data = brains(0, 1, subjects=2)
    for number, image in enumerate(data.images):
        image.to_filename(f"subject{number}.nii.gz")
    data.mask.to_filename("brain.nii.gz")
    namespace: dict = {}
    for text in re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(text, PAGE.name, "exec"), namespace)
