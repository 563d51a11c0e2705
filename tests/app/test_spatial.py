"""Runs on a series of volumes: spatial ICA unless asked otherwise, with maps as volumes."""

import csv
import json

import nibabel
import numpy as np
import pytest
from typer.testing import CliRunner

from noisyica import NoisyICA
from noisyica.app.command_line import app
from noisyica.data import read
from tests.data_files import AFFINE
from tests.reports import read_payload

SHAPE, TIMES = (8, 7, 6), 30


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fit(data, run, *options):
    return call("fit", data, "-o", run, "-p", 2, "--max-iter", 60, "--tol", 0, *options)


@pytest.fixture(scope="module")
def spatial(tmp_path_factory):
    """Two maps with courses of their own, in noise; a spatial run on them, and what it said."""
    folder = tmp_path_factory.mktemp("spatial")
    rng = np.random.default_rng(0)
    maps = np.zeros((2, *SHAPE))
    maps[0, 1:4, 1:4, 1:4], maps[1, 4:7, 3:6, 2:5] = 1, 1
    courses = rng.normal(size=(TIMES, 2)).cumsum(0)
    values = 100 + np.moveaxis(np.tensordot(courses, maps, 1), 0, -1)
    values += rng.normal(scale=0.5, size=values.shape)
    nibabel.Nifti1Image(values.astype(np.float32), AFFINE).to_filename(folder / "bold.nii.gz")
    result = fit(folder / "bold.nii.gz", folder / "run")
    assert result.exit_code == 0, result.output
    return folder, maps, courses, result.output


def matched(found, truth):
    """The absolute correlation of each true vector with the most similar one of those found."""
    return np.abs(np.corrcoef(truth, found)[: len(truth), len(truth) :]).max(1)


def test_a_series_is_spatial_and_says_so(spatial):
    folder, _, _, said = spatial
    assert "spatial: 336 voxels are the rows, 30 volumes the columns" in " ".join(said.split())
    assert "spatial: 336 voxels" in " ".join(call("info", folder / "run").output.split())
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["source"]["options"]["ica"] == "spatial"
    assert record["shape"] == [336, TIMES]


def test_maps_are_volumes_and_time_courses_a_table(spatial):
    folder, maps, courses, _ = spatial
    run = folder / "run"
    image = nibabel.load(run / "maps.nii.gz")
    assert image.shape == (*SHAPE, 2)
    np.testing.assert_array_equal(image.affine, AFFINE)
    found = np.moveaxis(image.get_fdata(), -1, 0).reshape(2, -1)
    assert matched(found, maps.reshape(2, -1)).min() > 0.95
    ica, rows = NoisyICA.load(run / "model.npz"), read(folder / "bold.nii.gz")
    np.testing.assert_allclose(found[:, rows.places.mask.ravel()], ica.transform(rows.X).T, 1e-5)
    table = list(csv.reader((run / "components" / "components.csv").read_text().splitlines()))
    assert [line[0] for line in table[1:]] == ["mean", "component0", "component1"]
    written = np.array([line[1:] for line in table[2:]], float)
    np.testing.assert_allclose(written, ica.components_)
    # voxels that are on follow their courses at 9 to 1 or better
    assert matched(written, courses.T).min() > 0.95


def test_the_report_shows_time_courses(spatial):
    page = (spatial[0] / "run" / "report.html").read_text(encoding="utf-8")
    payload = read_payload(page)
    assert payload["layout"]["kind"] == "lines"
    assert len(payload["layout"]["names"]) == TIMES
    said = [pair for group in payload["settings"] for pair in group["pairs"]]
    assert ["options.ica", "spatial"] in said
    result = call("report", spatial[0] / "run", "-o", spatial[0] / "again.html")
    assert result.exit_code == 0, result.output


def test_temporal_if_asked_for(spatial, tmp_path):
    result = fit(spatial[0] / "bold.nii.gz", tmp_path / "run", "--ica", "temporal")
    assert result.exit_code == 0, result.output
    assert "temporal: 30 volumes are the rows, 336 voxels" in " ".join(result.output.split())
    assert not (tmp_path / "run" / "maps.nii.gz").exists()
    components = nibabel.load(tmp_path / "run" / "components" / "components.nii.gz")
    assert components.shape == (*SHAPE, 3)  # with the mean
    refused = call("transform", tmp_path / "run", spatial[0] / "bold.nii.gz")
    assert refused.exit_code == 1
    assert "has 30 volumes, and the model 336 columns" in " ".join(refused.output.split())


def test_transform_takes_a_series_of_the_same_length(spatial, tmp_path):
    folder = spatial[0]
    for name in ("maps.nii.gz", "maps.csv"):
        result = call("transform", folder / "run", folder / "bold.nii.gz", "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
    again = nibabel.load(tmp_path / "maps.nii.gz").get_fdata()
    np.testing.assert_array_equal(again, nibabel.load(folder / "run/maps.nii.gz").get_fdata())
    table = read(tmp_path / "maps.csv")
    mask = read(folder / "bold.nii.gz").places.mask
    np.testing.assert_allclose(table.X, again[mask], rtol=1e-5)
    assert table.ids[0] == "0:0:0"
    short = nibabel.load(folder / "bold.nii.gz").slicer[..., :20]
    short.to_filename(tmp_path / "short.nii.gz")
    result = call("transform", folder / "run", tmp_path / "short.nii.gz")
    assert result.exit_code == 1
    assert "has 20 volumes, and the model 30 columns" in " ".join(result.output.split())


def test_volumes_are_for_voxels_only(spatial, tmp_path):
    (tmp_path / "rows.csv").write_text("\n".join(",".join("1" * TIMES) for _ in range(3)) + "\n")
    run, output = spatial[0] / "run", tmp_path / "x.nii.gz"
    result = call("transform", run, tmp_path / "rows.csv", "-o", output)
    assert result.exit_code == 1
    assert "only the coefficients of voxels" in result.output
    assert not output.exists()


def test_a_spatial_run_can_be_replaced_and_goes_on(spatial, tmp_path):
    """Its maps are among the files that a run leaves; what was read is the same again."""
    data, run = spatial[0] / "bold.nii.gz", tmp_path / "run"
    assert fit(data, run, "--no-report").exit_code == 0
    maps = (run / "maps.nii.gz").read_bytes()
    assert fit(data, run, "--no-report", "--overwrite").exit_code == 0
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"status": "fitted"}))
    (run / "maps.nii.gz").unlink()
    result = call("fit", "--resume", run)
    assert result.exit_code == 0, result.output
    assert (run / "maps.nii.gz").read_bytes() == maps
