"""The report shows learnt laws, and the weights of rows under Student noise."""

import numpy as np
import pytest
from scipy import stats

from noisyica import Model, priors
from noisyica.data import Data, Lines
from noisyica.laws import NormalScales
from noisyica.priors.adaptive import SCALES
from noisyica.report import noise
from noisyica.report.sample import look
from tests.fitted import fitted
from tests.reports import quick_report, read_payload

WEIGHTS = np.array([[0.97, 0, 0, 0, 0.02, 0.01, 0, 0], [0.001, 0, 0.1, 0.2, 0.5, 0.199, 0, 0]])
COLUMNS = Lines(np.array(list("abcdef")))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The estimator and the file of a fit whose two laws are known."""
    path = tmp_path_factory.mktemp("laws") / "r.html"
    rng = np.random.default_rng(0)
    ica = fitted(Model(rng.normal(size=(6, 2)), None, 0.1, "adaptive"))
    law = NormalScales(SCALES, np.maximum(WEIGHTS, 1e-9))
    ica.prior_ = priors.Adaptive()._with(law, 2)
    beta = rng.normal(size=(60, 2)) * (rng.random((60, 2)) < [0.05, 1])
    quick_report(path, ica, beta @ ica.components_, beta, COLUMNS)
    return ica, path


def test_the_law_of_each_component(page):
    ica, path = page
    payload = read_payload(path.read_text(encoding="utf-8"))
    found = payload["coefficients"]
    grid = np.array(found["grid"])
    away = np.abs(grid) > 0.01
    np.testing.assert_allclose(
        np.array(found["prior"])[:, away], ica.prior_.density(grid[away]), rtol=1e-4
    )
    np.testing.assert_allclose(found["weight"], WEIGHTS[:, :1], atol=1e-5)
    tiles = {tile["label"]: tile["value"] for tile in payload["summary"]}
    assert tiles["Prior: probability of 0"] == "0.97, 0.001"
    assert "Prior: weights" not in tiles


def test_zeros_are_said_and_drawn(page, visit):
    opened = visit(page[1])
    figures = opened.locator("#coefficients figure")
    assert "exactly 0 in" in figures.nth(0).inner_text()
    assert "(prior 97\u00a0%)" in figures.nth(0).inner_text()
    assert "hardly ever exactly 0" in figures.nth(1).inner_text()
    assert [figures.nth(j).locator(".dot").count() for j in range(2)] == [1, 0]
    assert "learnt for each component" in opened.locator("#coefficients .key").inner_text()


@pytest.fixture(scope="module")
def student():
    """A model with Student noise as an estimator, and what is drawn of its rows."""
    model = Model(np.random.default_rng(0).normal(size=(6, 2)), None, 0.25, "lap", noise_dof=4.0)
    X = model.sample(600, random_state=0)[0]
    ica = fitted(model, noise="student")
    ica.noise_dof_, ica.row_weights_ = 4.0, np.ones(600)
    data = Data(X, {}, np.arange(600).astype(str), COLUMNS)
    with pytest.MonkeyPatch.context() as patch:  # which is not looked at, and takes long to compile
        patch.setattr(Model, "log_likelihood", lambda self, X, **_: (np.zeros(600), np.zeros(600)))
        return ica, data, look(ica, data, np.zeros((600, 2)))


def test_drawn_weights_follow_their_law(student):
    """Kolmogorov's distance of 600 draws is below .08 with a probability of .999."""
    ica, _, sample = student
    law = stats.gamma(2.0, scale=0.5)
    assert stats.kstest(sample.weight, law.cdf).statistic < 0.08
    (check,) = noise._check_of_weights(ica, sample.weight)
    assert not check["off"]
    assert check["expected"].startswith(f"{100 * law.cdf(law.median() / 5):.2f} %")
    # of noise with two degrees of freedom, 13 % of the rows would weigh so little, and not 5 %
    ica.noise_dof_ = 2.0
    assert noise._check_of_weights(ica, sample.weight)[0]["off"]
    ica.noise_dof_ = 4.0


def test_weights_are_drawn(student, tmp_path, visit):
    ica, data, sample = student
    shown = noise._weights(ica, sample.weight)
    assert np.sum(np.array(shown["density"]) * np.diff(shown["edges"])) == pytest.approx(1)
    width = np.diff(shown["grid"])[0]
    assert np.sum(shown["law"]) * width == pytest.approx(1, abs=0.01)
    quick_report(tmp_path / "r.html", ica, data.X, np.zeros((600, 2)), COLUMNS)
    opened = visit(tmp_path / "r.html")
    assert opened.get_by_label("Weights of rows, and their density by Student noise").count() == 1
    assert "Rows of weight below" in opened.locator("#residuals table").inner_text()


def test_what_unequal_columns_call_for(student):
    ica, _, sample = student
    left = sample.residual * np.linspace(0.5, 2, 6)
    found = noise.residuals(ica, sample._replace(residual=left), 16)["facts"]
    assert any("noise='auto' allows for that" in fact["expected"] for fact in found)
