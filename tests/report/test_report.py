"""What the page of a report holds; ``test_report_page.py`` opens it in a browser."""

import copy

import numpy as np
import pytest
from sklearn.datasets import load_digits

from noisyica import Model, NoisyICA, priors, report
from noisyica.data import Data, Images
from noisyica.engine.mixing import LAWS
from noisyica.engine.mixing.base import unit_prior
from noisyica.report import contents
from noisyica.report.pack import pack
from tests.fitted import fitted
from tests.reports import (
    LAYOUTS,
    SHIFTED,
    D,
    N,
    P,
    digits,
    quick_report,
    read_payload,
    unpack,
)


def test_packed_numbers_come_back():
    values = np.array([[1000.0, 1001.0, np.nan], [-3.0, 5.0, 0.1], [7.0, 7.0, 7.0], [np.nan] * 3])
    for bits in (8, 16):
        unpacked = unpack(pack(values, bits))
        assert np.array_equal(np.isnan(unpacked), np.isnan(values))
        assert (
            np.nanmax(np.abs(unpacked - values) / np.array([1.0, 8.0, 1.0, 1.0])[:, None])
            <= 0.5 / (2**bits - 2) * 1.001
        )


def test_page_holds_the_fit(ica, coefficients, pages):
    payload = read_payload((pages / "images.html").read_text(encoding="utf-8"))
    rows = payload["explorer"]["rows"]
    X = load_digits().data[:N]
    assert len(rows) == contents.EXPLORER_ROWS
    assert np.allclose(unpack(payload["explorer"]["X"]), X[rows], atol=1e-3)
    assert np.allclose(unpack(payload["components"]["values"]), ica.components_, atol=1e-3)
    assert np.allclose(unpack(payload["explorer"]["beta"]), coefficients[rows], atol=1e-5)
    assert ["Rows", "256"] in payload["data"]
    assert ["Fingerprint", "f00"] in payload["data"]
    # the outliers are the least likely of all rows, and are in the explorer
    likelihood = ica.score_samples(X)
    assert [rows[o["place"]] for o in payload["likelihood"]["outliers"]] == np.argsort(likelihood)[
        : contents.OUTLIERS
    ].tolist()
    assert payload["likelihood"]["mean"] == pytest.approx(likelihood.mean(), rel=1e-4)
    # draws are on as often as the prior says, to within what 256 rows allow
    assert np.mean(payload["components"]["on"]) == pytest.approx(ica.prior_.alpha, abs=0.1)
    step = np.diff(payload["coefficients"]["edges"])
    total = (np.array(payload["coefficients"]["density"]) * step).sum(1) + np.array(
        payload["coefficients"]["share"]
    ).sum(1)
    assert np.allclose(total, 1, atol=0.02)
    assert any("200 of the 256 rows" in note for note in payload["notes"])


def test_residuals_are_those_of_the_noise():
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(D, P)), rng.normal(size=D), 0.3, "bg")
    X, _ = model.sample(N, random_state=1)
    ica = fitted(model)
    page = report.build(ica, Data(X, {}, np.arange(N).astype(str), LAYOUTS["images"]))
    facts = read_payload(page)["residuals"]["facts"]
    assert not any(fact["off"] for fact in facts), facts
    X[:, 5] += 3 * rng.normal(
        size=N
    )  # a column with other noise, and structure that no component has
    X += np.outer(rng.normal(size=N), np.sin(np.arange(D)))
    facts = read_payload(
        report.build(ica, Data(X, {}, np.arange(N).astype(str), LAYOUTS["images"]))
    )["residuals"]["facts"]
    assert [fact["off"] for fact in facts if fact["what"] == "Largest principal variance"] == [True]


def test_nothing_escapes(pages):
    for kind in LAYOUTS:
        text = (pages / f"{kind}.html").read_text(encoding="utf-8")
        assert text.count("<script") == text.count("</script>") == 2
        assert "<img" not in text
        assert "default-src 'none'" in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text


def test_offset_missing_and_diagonal(odd):
    ica, X, path = odd
    payload = read_payload(path.read_text(encoding="utf-8"))
    assert np.array_equal(np.isnan(unpack(payload["explorer"]["X"])), np.isnan(X))
    left = np.nanmean(X - ica.inverse_transform(unpack(payload["explorer"]["beta"])), 1)
    assert np.allclose(unpack(payload["explorer"]["offset"]), left, atol=0.5)
    assert np.mean(np.abs(unpack(payload["explorer"]["offset"]) - left)) < 0.1
    assert float(payload["residuals"]["facts"][0]["found"]) == pytest.approx(
        1, abs=0.1
    )  # with the true coefficients
    assert payload["components"]["mean"] is None
    assert payload["coefficients"]["atoms"] == [0.0]
    assert np.allclose(payload["coefficients"]["weight"], 0.6)
    assert np.array(payload["coefficients"]["grid"])[
        np.argmax(payload["coefficients"]["prior"][0])
    ] == pytest.approx(2.0, abs=0.1)


def test_large_rows_are_capped(monkeypatch, ica, coefficients):
    monkeypatch.setattr(contents, "BUDGET", 5000)
    payload = read_payload(report.build(ica, digits(LAYOUTS["images"]), coefficients))
    shown = payload["components"]["values"]["shape"][0]
    assert payload["explorer"]["beta"]["shape"] == [len(payload["explorer"]["rows"]), shown]
    assert 2 * D * (shown + len(payload["explorer"]["rows"]) + 2) <= 5000
    assert any(f"{shown} of the {P} components" in note for note in payload["notes"]) == (shown < P)
    assert shown == P
    monkeypatch.setattr(contents, "BUDGET", 1500)
    payload = read_payload(report.build(ica, digits(LAYOUTS["images"]), coefficients))
    assert payload["components"]["values"]["shape"][0] < P
    assert any("components: in the explorer" in note for note in payload["notes"])


def test_wrong_input(ica, coefficients, tmp_path):
    good = digits(LAYOUTS["images"])
    with pytest.raises(TypeError, match="noisyica.data.Data"):
        report.build(ica, good.X)
    with pytest.raises(TypeError, match="fitted NoisyICA; got NoisyICA, not fitted"):
        report.build(NoisyICA(2), good)
    with pytest.raises(ValueError, match="all must agree"):
        report.build(ica, good._replace(layout=Images(np.array([4, 4]))))
    with pytest.raises(ValueError, match=r"coefficients must have shape \(256, 6\)"):
        report.build(ica, good, coefficients[:5])
    with pytest.raises(ValueError, match="ids for 256 rows"):
        report.write(tmp_path / "r.html", ica, good._replace(ids=np.array(["a"])))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        ("bg", "BernoulliGaussian"),
        ("teoff", "SingleScaleTernaryOffset"),
        (SHIFTED, "independent, Mixture"),
        (priors.Offset("bg"), "BernoulliGaussian, and an offset per row"),
        (priors.Offset(SHIFTED), "independent, Mixture, and an offset per row"),
    ],
)
def test_name_of_the_prior(ica, coefficients, tmp_path, prior, expected):
    other = copy.copy(ica)
    other.prior_ = priors.get(prior)
    if other.prior_.has_offset:
        other.mean_ = np.zeros(D)
    rows = Images((8, 8))
    quick_report(tmp_path / "r.html", other, load_digits().data[:N], coefficients, rows)
    tiles = read_payload((tmp_path / "r.html").read_text())["summary"]
    assert [tile["note"] for tile in tiles if tile["label"] == "Components"] == [expected]


def test_entries_that_are_on_are_counted(ica, coefficients, tmp_path):
    other = copy.copy(ica)
    probability = np.random.default_rng(0).random((P, D))
    other.components_probability_, other.mixing_prior = probability, "sparse"
    other.mixing_prior_ = unit_prior(LAWS["sparse"], P)
    rows = Images((8, 8))
    quick_report(tmp_path / "r.html", other, load_digits().data[:N], coefficients, rows)
    payload = read_payload((tmp_path / "r.html").read_text())
    (tile,) = (tile for tile in payload["summary"] if tile["label"] == "Prior of the components")
    assert tile["value"] == "sparse"
    shares = ", ".join(f"{100 * share:.0f} %" for share in probability.mean(1))
    assert tile["note"] == f"entries are zero or normal; on by component: {shares}"
    found = payload["components"]
    assert np.allclose(found["entries"], probability.sum(1), rtol=1e-5)
    assert found["scale"] == [1.0] * P
    off = np.unpackbits(unpack(found["off"]), axis=1, count=D)
    assert np.array_equal(off, probability < 0.5)


def test_without_an_atom_nothing_is_off(pages):
    payload = read_payload((pages / "images.html").read_text(encoding="utf-8"))
    assert not {"entries", "off"} & set(payload["components"])
    notes = {tile["label"]: tile["note"] for tile in payload["summary"]}
    assert notes["Prior of the components"] == "entries are normal"


def test_reliability_is_shown(ica, coefficients, tmp_path):
    other = copy.copy(ica)
    other.reliability_ = np.array([0.99, 0.97, 0.96, 0.9, 0.5, np.nan])
    rows = Images((8, 8))
    quick_report(tmp_path / "r.html", other, load_digits().data[:N], coefficients, rows)
    payload = read_payload((tmp_path / "r.html").read_text())
    (tile,) = (tile for tile in payload["summary"] if tile["label"] == "Reliable components")
    assert tile["value"] == "3 of 6"
    assert tile["note"].endswith("doubtful: 4, 5")
    assert payload["components"]["reliability"] == [0.99, 0.97, 0.96, 0.9, 0.5, None]
