"""The report of a run whose rows are voxels: maps as slices, time courses and their spectra."""

import numpy as np
import pytest

from noisyica import NoisyICA, report
from noisyica.data import Data, Lines, Volume
from noisyica.report.maps import spectra
from tests.reports import read_payload, unpack


@pytest.fixture(scope="module")
def spatial():
    """A fit to the voxels of a volume, and its rows."""
    rng = np.random.default_rng(0)
    mask = np.ones((6, 5, 4), bool)
    mask[0, 0, 0] = False
    n, d = int(mask.sum()), 30
    maps = rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.3) * 3
    X = maps @ rng.normal(size=(2, d)) + rng.normal(size=(n, d))
    ids = np.array([":".join(map(str, voxel)) for voxel in np.argwhere(mask)])
    times = Lines(np.arange(d).astype(str))
    data = Data(X, {}, ids, times, Volume(mask, np.diag([2.0, 2.0, 3.0, 1.0])))
    settings = {"noise": "isotropic", "max_iter": 30, "tol": 0, "n_init": 1, "verbose": False}
    return NoisyICA(2, random_state=0, **settings).fit(X), data


def test_maps_are_the_coefficients_of_all_voxels(spatial):
    ica, data = spatial
    held = read_payload(report.build(ica, data))["maps"]
    maps = ica.transform(data.X).T
    step = np.ptp(maps, 1).max() / 254
    assert np.abs(unpack(held["values"]) - maps).max() <= 0.51 * step
    assert held["layout"]["kind"] == "volume"
    assert held["layout"]["shape"] == [6, 5, 4]


def test_rows_that_are_no_voxels_have_no_maps(spatial):
    ica, data = spatial
    assert read_payload(report.build(ica, data._replace(places=None)))["maps"] is None


def test_spectra_are_those_of_sines():
    t = np.arange(100)
    courses = np.stack([5 + np.sin(2 * np.pi * 0.1 * t), np.cos(np.pi * t), np.full(100, 3.0)])
    frequencies, power = spectra(courses)
    np.testing.assert_allclose(frequencies[power[:2].argmax(1)], [0.1, 0.5])
    np.testing.assert_allclose(power.sum(1), [1, 1, 0])
    np.testing.assert_allclose(power[:2].max(1), 1)


@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_draws_them(visit, tmp_path, spatial, width):
    ica, data = spatial
    report.write(tmp_path / "spatial.html", ica, data)
    page = visit(tmp_path / "spatial.html", viewport={"width": width, "height": 844})
    assert page.inner_text("#maps h2") == "Maps"
    assert page.inner_text("#components h2") == "Time courses"
    assert page.locator("#maps figure").count() == 2
    assert page.locator("#components svg.chart").count() == 2  # spectra
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # values differ, and so do colours
    drawn = page.eval_on_selector(
        "#maps canvas.volume",
        """(canvas) => {
            const whole = [0, 0, canvas.width, canvas.height];
            const { data } = canvas.getContext("2d").getImageData(...whole);
            const seen = new Set();
            for (let k = 0; k < data.length; k += 4)
                if (data[k + 3]) seen.add(data.slice(k, k + 3).join());
            return seen.size;
        }""",
    )
    assert drawn > 5
