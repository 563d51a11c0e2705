"""What a report shows of tables and of classes, and how it fits on a phone."""

import base64
import copy
import io

import numpy as np
import PIL.Image
import pytest
from sklearn.datasets import load_digits

from noisyica import report
from noisyica.report.classes import class_names
from tests.reports import EVIL, LAYOUTS, N, digits, read_payload, unpack

PHONE = {"viewport": {"width": 390, "height": 844}}


def payload_of(pages, kind):
    return read_payload((pages / f"{kind}.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def table(tmp_path_factory, ica, coefficients):
    """The file of a report on a table with standard errors."""
    other = copy.copy(ica)
    other.standard_errors_ = {"components": 0.1 + np.abs(ica.components_)}
    path = tmp_path_factory.mktemp("table") / "table.html"
    data = digits(LAYOUTS["table"], others={"digit": load_digits().target[:N]})
    report.write(path, other, data, coefficients)
    return path


def test_table_shows_its_top_columns(visit, table, ica):
    page = visit(table)
    payload = read_payload(table.read_text(encoding="utf-8"))
    assert payload["layout"]["kind"] == "table"
    errors = unpack(payload["components"]["errors"])
    assert np.allclose(errors, 0.1 + np.abs(ica.components_), atol=1e-3)
    orders = page.evaluate(
        "Array.from(document.querySelectorAll('#components canvas'), (canvas) => canvas.order)"
    )
    for order, component in zip(orders[1:], ica.components_, strict=True):  # the mean is first
        assert order == np.argsort(-np.abs(component), kind="stable")[:20].tolist()
    assert "The 20 columns with the largest values" in page.inner_text("#components")
    assert "standard errors" in page.inner_text("#components")
    # the three pictures of a row have the same columns
    stage = [
        page.evaluate(f"document.querySelector('#{name}').order")
        for name in ("original", "reconstruction", "residual")
    ]
    assert stage[0] == stage[1] == stage[2]
    row = load_digits().data[page.evaluate("noisyica.row()")]
    assert stage[0] == np.argsort(-np.abs(row - ica.mean_), kind="stable")[:12].tolist()


def test_bars_are_as_long_as_their_values(visit, table):
    """Of the canvas's own pixels: a bar goes from zero to its value, and its error beyond it."""
    page = visit(table)
    text = page.evaluate(
        """() => {
          const canvas = make("canvas");
          document.body.append(canvas);
          canvas.style.width = "300px";
          const view = tableView({ names: ["a", "b"] });
          view.paint(canvas, [1, -0.5], { low: -1, high: 1, signed: true }, { errors: [0.05, 0] });
          return canvas.toDataURL();
        }"""
    )
    image = PIL.Image.open(io.BytesIO(base64.b64decode(text.partition(",")[2]))).convert("RGBA")
    red, _, blue, alpha = np.array(image).astype(int).transpose(2, 0, 1)
    assert image.size == (300, 56)
    # zero is in the middle of 135 to 290, where the scale goes from -1.08 to 1.08
    low, zero, high = [135 + (value + 1.08) / 2.16 * 155 for value in (-0.5, 0, 1)]
    first = np.flatnonzero((red - blue)[8] > 60)
    assert (first[0], first[-1]) == pytest.approx((zero, high), abs=2)
    second = np.flatnonzero((blue - red)[28] > 60)
    assert (second[0], second[-1]) == pytest.approx((low, zero), abs=2)
    beyond = np.flatnonzero(alpha[12] > 100)  # the error's line, in the middle of the bar
    assert beyond[-1] == pytest.approx(high + 0.05 / 2.16 * 155, abs=2)


def test_coefficients_by_class(visit, pages, coefficients):
    payload = payload_of(pages, "images")
    (found,) = payload["classes"]  # a note that is the same everywhere is no class
    target = load_digits().target[:N]
    assert found["name"] == f"digit {EVIL}"
    assert found["classes"] == [str(k) for k in range(10)]
    assert found["sizes"] == np.bincount(target).tolist()
    of_three = coefficients[target == 3, 2]
    expected = np.quantile(of_three, [0.05, 0.25, 0.5, 0.75, 0.95])
    assert np.allclose(found["quantiles"][2][3], expected, rtol=1e-4, atol=1e-5)
    means = np.array([coefficients[target == k].mean(0) for k in range(10)])
    within = np.square(coefficients - means[target]).mean(0)
    assert np.allclose(found["between"], 1 - within / coefficients.var(0), atol=1e-5)
    page = visit(pages / "images.html")
    text = page.inner_text("#classes")
    assert f"Component 2 {100 * found['between'][2]:.0f}\u00a0% between classes" in text
    assert page.locator("#classes figure").count() == len(coefficients.T)


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (["a", "b", "a", "b"], 2),
        ([0, 1, 1, 0], 2),
        ([0.0, 1.0, 1.0, 0.0], 2),
        ([True, False, True, True], 2),
        ([0.5, 1.0, 1.0, 0.5], None),
        ([np.nan, 1.0, 1.0, 0.0], None),
        (["a", "a", "a", "a"], None),
        (["a", "b", "c", "d"], None),
        (np.array(["2020", "2021", "2020", "2021"], "datetime64[Y]"), None),
        (np.arange(80) % 31, None),
    ],
)
def test_what_is_a_class(values, classes):
    found = class_names(np.asarray(values))
    assert (found is None and classes is None) or len(np.unique(found)) == classes


def test_charts_have_three_ticks(visit, pages):
    page = visit(pages / "images.html")
    for low, high in np.random.default_rng(0).normal(size=(200, 2)).tolist():
        low, high = sorted((low, high))
        found = page.evaluate("([low, high]) => ticks(low, high, 4)", [low, high])
        assert 3 <= len(found) <= 10
        assert low - 1e-9 <= min(found) < max(found) <= high + 1e-9


def test_chart_of_columns_has_room_for_all_and_no_more(visit, pages):
    page = visit(pages / "table.html")
    values = [-0.4, -0.3, *[-0.35] * 300, -0.9]
    scale = page.evaluate("(values) => scaleAbout(values, true)", values)
    assert (scale["low"], scale["high"]) == (-0.9, 0)
    assert page.evaluate("(values) => scaleAbout(values, false).high", values) == 0.35


def test_fingerprint_stands_once(pages):
    payload = payload_of(pages, "images")
    pairs = payload["data"] + [pair for group in payload["settings"] for pair in group["pairs"]]
    assert [pair for pair in pairs if "f00" in pair] == [["Fingerprint", "f00"]]


@pytest.mark.parametrize("kind", ["images", "mesh", "volume"])
def test_mean_has_colours_of_its_own(visit, pages, kind, ica):
    page = visit(pages / f"{kind}.html")
    legend = page.inner_text("#components figure:first-child .ramp").replace("−", "-").split()
    assert [float(end) for end in legend] == pytest.approx(
        [ica.mean_.min(), ica.mean_.max()], rel=0.01, abs=0.01
    )


def test_search_counts_and_goes_on(visit, pages):
    page = visit(pages / "images.html")
    rows = payload_of(pages, "images")["explorer"]["rows"]
    matching = [row for row in rows if "row 12" in f"row {row} "]
    page.fill("#search", "row 12")
    assert page.inner_text("#matches") == f"1 of {len(matching)} (Enter: next)"
    assert page.evaluate("noisyica.row()") == matching[0]
    page.press("#search", "Enter")
    assert page.inner_text("#matches").startswith(f"2 of {len(matching)}")
    assert page.evaluate("noisyica.row()") == matching[1]
    page.fill("#search", "nowhere")
    assert page.inner_text("#matches") == "none"
    page.fill("#search", "")
    assert page.inner_text("#matches") == ""


@pytest.mark.parametrize("kind", LAYOUTS)
def test_phone_shows_sections_folded(visit, pages, kind):
    page = visit(pages / f"{kind}.html", **PHONE)
    assert page.evaluate("document.documentElement.scrollHeight") < 6500
    folded = page.locator("section > details:not([open])").count()
    assert folded >= 6
    assert not page.locator("#settings dl").first.is_visible()
    page.click("nav >> text=Settings")
    assert page.locator("#settings dl").first.is_visible()
    wide = visit(pages / f"{kind}.html")
    assert wide.locator("section > details:not([open])").count() == 0


def test_components_have_one_name(visit, pages):
    """Also on a phone, where there is little room."""
    page = visit(pages / "images.html", **PHONE)
    assert page.inner_text(".part >> nth=0").split("\n")[0].startswith("Component ")
