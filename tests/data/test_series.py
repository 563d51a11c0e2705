"""One file with several volumes: its voxels are the rows, or its volumes are."""

import nibabel
import numpy as np
import pytest

from noisyica.data import Lines, Volume, read
from tests.data_files import AFFINE

SHAPE, TIMES = (4, 3, 2), 40


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """A series of volumes: two voxels are constant, one has missing entries; and a mask."""
    folder = tmp_path_factory.mktemp("series")
    rng = np.random.default_rng(0)
    values = 1000 + rng.normal(size=(*SHAPE, TIMES)) * rng.uniform(0.5, 4, size=(*SHAPE, 1))
    values[0, 0, 0], values[3, 2, 1], values[1, 1, 1, 5] = 500.1, 0, np.nan
    values = values.astype(np.float32)
    nibabel.Nifti1Image(values, AFFINE).to_filename(folder / "bold.nii.gz")
    inside = np.ones(SHAPE, bool)
    inside[3, 2, 1] = inside[2] = False
    nibabel.Nifti1Image(inside.astype(np.uint8), AFFINE).to_filename(folder / "mask.nii")
    return folder, values, inside


def test_voxels_are_rows(series):
    folder, values, _ = series
    data = read(folder / "bold.nii.gz")
    changing = np.ones(SHAPE, bool)
    changing[0, 0, 0] = changing[3, 2, 1] = False
    assert isinstance(data.places, Volume)
    np.testing.assert_array_equal(data.places.mask, changing)
    np.testing.assert_array_equal(data.places.affine, AFFINE)
    assert isinstance(data.layout, Lines)
    assert data.layout.signal
    assert data.X.shape == (changing.sum(), TIMES)
    assert data.X.dtype == np.float32
    # each voxel less its mean, over the size of its steps from one volume to the next
    rows = values[changing].astype(float)
    noise = np.sqrt(np.nanmean(np.diff(rows, axis=1) ** 2, axis=1, keepdims=True) / 2)
    expected = (rows - np.nanmean(rows, axis=1, keepdims=True)) / noise
    np.testing.assert_allclose(data.X, expected, atol=1e-4)
    assert np.isnan(data.X).sum() == 1
    i, j, k = np.argwhere(changing)[7]
    assert data.ids[7] == f"{i}:{j}:{k}"


def test_a_mask_decides_which_voxels_are_rows(series):
    """Those that are constant stay, as zeros: the scale of what rounding leaves of them is none."""
    folder, _, inside = series
    data = read(folder / "bold.nii.gz", mask=folder / "mask.nii", ica="spatial")
    np.testing.assert_array_equal(data.places.mask, inside)
    constant = list(data.ids).index("0:0:0")
    np.testing.assert_array_equal(data.X[constant], 0)
    everywhere = read(folder / "bold.nii.gz")
    both = [list(everywhere.ids).index(name) for name in data.ids if name != "0:0:0"]
    np.testing.assert_array_equal(np.delete(data.X, constant, 0), everywhere.X[both])


def test_white_noise_has_variance_one(tmp_path):
    """The square of a voxel's steps has a relative standard error of about sqrt(3 / times)."""
    values = np.random.default_rng(1).normal(50, 3, size=(6, 6, 6, 200))
    nibabel.Nifti1Image(values, AFFINE).to_filename(tmp_path / "x.nii")
    X = read(tmp_path / "x.nii").X
    assert X.var() == pytest.approx(1, abs=4 * np.sqrt(3 / X.size) + 3 / 200)


def test_voxels_that_are_never_known_twice_in_a_row_are_kept(tmp_path):
    values = np.random.default_rng(1).normal(50, 3, size=(4, 4, 4, 60))
    values[0, 0, 0, ::2] = np.nan
    nibabel.Nifti1Image(values, AFFINE).to_filename(tmp_path / "x.nii")
    known = read(tmp_path / "x.nii").X[0, 1::2]
    np.testing.assert_allclose([known.mean(), known.std()], [0, 1], atol=1e-6)


def test_volumes_are_rows_if_asked_for(series):
    folder, values, inside = series
    data = read(folder / "bold.nii.gz", mask=folder / "mask.nii", ica="temporal")
    np.testing.assert_array_equal(data.X, values[inside].T)
    assert data.places is None
    assert isinstance(data.layout, Volume)


def test_one_volume_is_one_row(tmp_path, series):
    folder, values, inside = series
    for number, volume in enumerate((values[..., 0], values[..., :1])):
        nibabel.Nifti1Image(volume, AFFINE).to_filename(tmp_path / f"{number}.nii")
        data = read(tmp_path / f"{number}.nii", mask=folder / "mask.nii")
        np.testing.assert_array_equal(data.X, values[inside][:, :1].T)


def test_there_are_two_kinds_of_ica(series):
    with pytest.raises(ValueError, match="ica is spatial or temporal, not 'both'"):
        read(series[0] / "bold.nii.gz", ica="both")


def test_infinite_numbers_are_found_before_voxels_are_scaled(tmp_path, series):
    values = series[1].copy()
    values[1, 1, 0, 3] = np.inf
    nibabel.Nifti1Image(values, AFFINE).to_filename(tmp_path / "x.nii")
    with pytest.raises(ValueError, match="infinite number in row '3'"):
        read(tmp_path / "x.nii")
