"""The report: what it holds, and that its page works in a browser."""

import base64
import io
import json
import re

import numpy as np
import PIL.Image
import pytest
from scipy.spatial import ConvexHull
from sklearn.datasets import load_digits

from noisyica import Model, NoisyICA, laws, priors, report
from noisyica.data import Data, Images, Lines, Mesh, Volume
from noisyica.plot.layouts import upright
from noisyica.report import contents
from noisyica.report.pack import pack
from tests import browser
from tests.fitted import fitted

EVIL = (
    "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>&amp;"
)
N, D, P = 256, 64, 6
SHIFTED = laws.Mixture((laws.Dirac(), laws.Normal(2.0)), (0.6, 0.4))


def sphere(count):
    """A closed mesh with that many vertices, longer than it is wide."""
    k = np.arange(count) + 0.5
    height, angle = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    round_ = np.sqrt(1 - height**2)
    points = np.stack([round_ * np.cos(angle), round_ * np.sin(angle), height], 1)
    return Mesh(points * [1.0, 2.0, 0.7], ConvexHull(points).simplices)


def payload(page):
    text = re.search(r'id="payload">(.*?)</script>', page, re.DOTALL).group(1)
    return json.loads(text)


def unpack(packed):
    raw = np.frombuffer(
        base64.b64decode(packed["data"]), np.dtype(packed["type"]).newbyteorder("<")
    ).reshape(packed["shape"])
    if "scale" not in packed:
        return raw
    lost = raw == np.iinfo(raw.dtype).min
    flat = (
        raw.reshape(len(raw), -1) * np.array(packed["scale"])[:, None]
        + np.array(packed["offset"])[:, None]
    )
    return np.where(lost, np.nan, flat.reshape(raw.shape))


@pytest.fixture(scope="module")
def ica():
    return NoisyICA(P, prior="bg", max_iter=40, tol=0, random_state=0, verbose=False).fit(
        load_digits().data[:N]
    )


@pytest.fixture(scope="module")
def coefficients(ica):
    return ica.transform(load_digits().data[:N])


def data(layout, ids=None, others=None):
    return Data(
        load_digits().data[:N],
        others or {},
        np.arange(N).astype(str) if ids is None else ids,
        layout,
    )


LAYOUTS = {
    "images": Images(np.array([8, 8])),
    "lines": Lines(np.array([f"c{j} {EVIL}" for j in range(D)])),
    "volume": Volume(np.ones((4, 4, 4), bool), np.diag([2.0, 2.0, 3.0, 1.0])),
    "mesh": sphere(D),
}


@pytest.fixture(scope="module")
def pages(ica, coefficients, tmp_path_factory):
    """A file for each layout, all with hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    ids = np.array([f"row {i} {EVIL}" for i in range(N)])
    digits = load_digits().target[:N]
    for kind, layout in LAYOUTS.items():
        others = {f"digit {EVIL}": digits, "note": np.array([EVIL] * N)}
        settings = {"data": EVIL, "fingerprint": "f00", "versions": {"noisyica": "1"}}
        report.write(
            folder / f"{kind}.html",
            ica,
            data(layout, ids, others),
            coefficients,
            settings,
            f"Digits {EVIL}",
        )
    return folder


# -------------------------------------------------------------------------------------------------- what the page holds


def test_packed_numbers_come_back():
    values = np.array([[1000.0, 1001.0, np.nan], [-3.0, 5.0, 0.1], [7.0, 7.0, 7.0], [np.nan] * 3])
    for bits in (8, 16):
        found = unpack(pack(values, bits))
        assert np.array_equal(np.isnan(found), np.isnan(values))
        assert (
            np.nanmax(np.abs(found - values) / np.array([1.0, 8.0, 1.0, 1.0])[:, None])
            <= 0.5 / (2**bits - 2) * 1.001
        )


def test_page_holds_the_fit(ica, coefficients, pages):
    found = payload((pages / "images.html").read_text(encoding="utf-8"))
    rows = found["explorer"]["rows"]
    X = load_digits().data[:N]
    assert len(rows) == contents.EXPLORER_ROWS
    assert np.allclose(unpack(found["explorer"]["X"]), X[rows], atol=1e-3)
    assert np.allclose(unpack(found["components"]["values"]), ica.components_, atol=1e-3)
    assert np.allclose(unpack(found["explorer"]["beta"]), coefficients[rows], atol=1e-5)
    assert ["Rows", "256"] in found["data"]
    assert ["Fingerprint", "f00"] in found["data"]
    # the outliers are the least likely of all rows, and are in the explorer
    likelihood = ica.score_samples(X)
    assert [rows[o["place"]] for o in found["likelihood"]["outliers"]] == np.argsort(likelihood)[
        : contents.OUTLIERS
    ].tolist()
    assert found["likelihood"]["mean"] == pytest.approx(likelihood.mean(), rel=1e-4)
    # draws are on as often as the prior says, to within what 256 rows allow
    assert np.mean(found["components"]["on"]) == pytest.approx(ica.prior_.alpha, abs=0.1)
    step = np.diff(found["coefficients"]["edges"])
    total = (np.array(found["coefficients"]["density"]) * step).sum(1) + np.array(
        found["coefficients"]["share"]
    ).sum(1)
    assert np.allclose(total, 1, atol=0.02)
    assert any("200 of the 256 rows" in note for note in found["notes"])


def test_residuals_are_those_of_the_noise():
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(D, P)), rng.normal(size=D), 0.3, "bg")
    X, _ = model.sample(N, random_state=1)
    ica = fitted(model)
    found = report.build(ica, Data(X, {}, np.arange(N).astype(str), LAYOUTS["images"]))
    facts = payload(found)["residuals"]["facts"]
    assert not any(fact["off"] for fact in facts), facts
    X[:, 5] += 3 * rng.normal(
        size=N
    )  # a column with other noise, and structure that no component has
    X += np.outer(rng.normal(size=N), np.sin(np.arange(D)))
    facts = payload(report.build(ica, Data(X, {}, np.arange(N).astype(str), LAYOUTS["images"])))[
        "residuals"
    ]["facts"]
    assert [fact["off"] for fact in facts if fact["what"] == "Largest principal variance"] == [True]


def test_nothing_escapes(pages):
    for kind in LAYOUTS:
        text = (pages / f"{kind}.html").read_text(encoding="utf-8")
        assert text.count("<script") == text.count("</script>") == 2
        assert "<img" not in text
        assert "default-src 'none'" in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text


def quick_report(path, ica, X, beta, layout):
    """A report without sampling, which has tests of its own, and takes long to compile: all draws are the coefficients."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Model,
            "log_likelihood",
            lambda self, X, **_: (np.arange(len(X), dtype=float), np.zeros(len(X))),
        )
        patch.setattr(
            Model, "posterior_sample", lambda self, X, n_draws, **_: np.tile(beta, (n_draws, 1, 1))
        )
        report.write(path, ica, Data(X, {}, np.arange(len(X)).astype(str), layout), beta)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Missing values, an offset of each row, a law off zero, noise of each column's own, more components than columns."""
    rng = np.random.default_rng(0)
    n, d, p = 60, 12, 30
    model = Model(
        rng.normal(size=(d, p)), None, rng.uniform(0.05, 0.5, d), priors.Offset(SHIFTED, 2.0)
    )
    beta = np.where(rng.random((n, p)) < 0.4, rng.normal(2, 1, (n, p)), 0.0)
    X = (
        rng.laplace(scale=2.0, size=(n, 1))
        + beta @ model.mixing.T
        + np.sqrt(model.noise_variance) * rng.normal(size=(n, d))
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    path = tmp_path_factory.mktemp("odd") / "odd.html"
    ica = fitted(model, mean="offset", noise="diagonal")
    quick_report(path, ica, X.astype(np.float32), beta, Lines(np.arange(d).astype(str)))
    return ica, X, path


def test_offset_missing_and_diagonal(odd):
    ica, X, path = odd
    found = payload(path.read_text(encoding="utf-8"))
    assert np.array_equal(np.isnan(unpack(found["explorer"]["X"])), np.isnan(X))
    left = np.nanmean(X - ica.inverse_transform(unpack(found["explorer"]["beta"])), 1)
    assert np.allclose(unpack(found["explorer"]["offset"]), left, atol=0.5)
    assert np.mean(np.abs(unpack(found["explorer"]["offset"]) - left)) < 0.1
    assert float(found["residuals"]["facts"][0]["found"]) == pytest.approx(
        1, abs=0.1
    )  # with the true coefficients
    assert found["components"]["mean"] is None
    assert found["coefficients"]["atoms"] == [0.0]
    assert np.allclose(found["coefficients"]["weight"], 0.6)
    assert np.array(found["coefficients"]["grid"])[
        np.argmax(found["coefficients"]["prior"][0])
    ] == pytest.approx(2.0, abs=0.1)


def test_large_rows_are_capped(monkeypatch, ica, coefficients):
    monkeypatch.setattr(contents, "BUDGET", 5000)
    found = payload(report.build(ica, data(LAYOUTS["images"]), coefficients))
    shown = found["components"]["values"]["shape"][0]
    assert found["explorer"]["beta"]["shape"] == [len(found["explorer"]["rows"]), shown]
    assert 2 * D * (shown + len(found["explorer"]["rows"]) + 2) <= 5000
    assert any(f"{shown} of the {P} components" in note for note in found["notes"]) == (shown < P)
    assert shown == P
    monkeypatch.setattr(contents, "BUDGET", 1500)
    found = payload(report.build(ica, data(LAYOUTS["images"]), coefficients))
    assert found["components"]["values"]["shape"][0] < P
    assert any("components: in the explorer" in note for note in found["notes"])


def test_wrong_input(ica, coefficients, tmp_path):
    good = data(LAYOUTS["images"])
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


# --------------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install -e '.[dev]'"
    )
    path = browser.install()
    if path is None:
        pytest.skip(
            "No Chromium was found, and it cannot be installed here: apt-get install chromium"
        )
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(chromium):
    """Opens a file; at the end nothing may have gone wrong or been asked of others."""
    contexts, troubles, requests = [], [], []

    def go(path, **options):
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert troubles == []
    assert all(url.startswith("file:") for url in requests)
    assert len(requests) == len(contexts)


def pixels(page, selector):
    return page.evaluate("(s) => document.querySelector(s).toDataURL()", selector)


def test_explorer_takes_apart_and_puts_together(visit, pages, ica, coefficients):
    page = visit(pages / "images.html")
    row = page.evaluate("noisyica.row()")
    whole = ica.inverse_transform(coefficients[[row]])[0]
    assert np.abs(np.array(page.evaluate("noisyica.reconstruction()")) - whole).max() < 2e-3
    error = np.sqrt(np.mean(np.square(load_digits().data[row] - whole)))
    assert float(page.inner_text("#error")) == pytest.approx(error, rel=2e-3)
    before, residual = pixels(page, "#reconstruction"), pixels(page, "#residual")
    # without a component
    page.uncheck("#on-0")
    beta = coefficients[row].copy()
    beta[0] = 0
    assert (
        np.abs(
            np.array(page.evaluate("noisyica.reconstruction()"))
            - ica.inverse_transform(beta[None])[0]
        ).max()
        < 2e-3
    )
    assert pixels(page, "#reconstruction") != before
    assert pixels(page, "#residual") != residual
    page.check("#on-0")
    assert pixels(page, "#reconstruction") == before
    # another coefficient, by keys, then as a number
    page.focus("#slider-1")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    beta = coefficients[row].copy()
    moved = page.evaluate("noisyica.coefficients()")[1]
    assert moved > beta[1] + 1e-3
    assert float(page.inner_text("#error")) != pytest.approx(error, rel=2e-3)
    beta[1] = -1.5
    page.fill(".part:has(#slider-1) input[type=number]", "-1.5")
    page.keyboard.press("Enter")
    assert (
        np.abs(
            np.array(page.evaluate("noisyica.reconstruction()"))
            - ica.inverse_transform(beta[None])[0]
        ).max()
        < 2e-3
    )
    page.click("#reset")
    assert pixels(page, "#reconstruction") == before
    page.click("#all-off")
    assert np.abs(np.array(page.evaluate("noisyica.reconstruction()")) - ica.mean_).max() < 2e-3
    page.click(".part:has(#on-2) button")
    beta = np.where(np.arange(P) == 2, coefficients[row], 0)
    assert np.allclose(page.evaluate("noisyica.coefficients()"), beta, atol=1e-5)


def test_slider_by_mouse(visit, pages):
    page = visit(pages / "images.html")
    before, error = pixels(page, "#reconstruction"), page.inner_text("#error")
    page.locator("#slider-0").scroll_into_view_if_needed()
    box = page.locator("#slider-0").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    assert pixels(page, "#reconstruction") != before
    assert page.inner_text("#error") != error


def test_choosing_rows(visit, pages):
    page = visit(pages / "images.html")
    first, picture = page.evaluate("noisyica.row()"), pixels(page, "#original")
    page.click("#next")
    assert page.evaluate("noisyica.row()") > first
    assert pixels(page, "#original") != picture
    page.click("#previous")
    assert pixels(page, "#original") == picture
    page.focus("#row")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("noisyica.row()") > first
    page.focus("#original")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("noisyica.row()") == first
    held = payload((pages / "images.html").read_text(encoding="utf-8"))["explorer"]["rows"]
    page.fill("#search", f"row {held[50]} ")
    assert page.evaluate("noisyica.row()") == held[50]
    page.fill("#search", "nowhere")
    assert "No row" in page.inner_text("#explorer [role=status]")
    page.click("#rows button >> nth=0")
    outlier = payload((pages / "images.html").read_text(encoding="utf-8"))["likelihood"][
        "outliers"
    ][0]
    assert page.evaluate("noisyica.row()") == held[outlier["place"]]


@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_layout(visit, pages, kind):
    page = visit(
        pages / f"{kind}.html", viewport={"width": 390, "height": 844}, color_scheme="dark"
    )
    assert page.evaluate("window.broken") is None
    assert EVIL in page.inner_text("h1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    before = pixels(page, "#reconstruction")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.uncheck("#on-0")
    assert pixels(page, "#reconstruction") != before
    blank = "(c) => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return d.every((v) => v === d[0]); }"
    assert not any(page.eval_on_selector_all("canvas", f"(all) => all.map({blank})"))
    if kind == "volume":
        before = pixels(page, "#original")
        page.focus("#slice-x")
        page.keyboard.press("ArrowRight")
        assert pixels(page, "#original") != before


def test_mesh_turns(visit, pages):
    page = visit(pages / "mesh.html")
    gallery = ".gallery figure:nth-child(2) canvas"
    page.locator(gallery).scroll_into_view_if_needed()
    before = pixels(page, gallery)
    box = page.locator(gallery).bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 80, steps=3)
    page.mouse.up()
    page.wait_for_function(
        "([s, b]) => document.querySelector(s).toDataURL() !== b", arg=[gallery, before]
    )
    turned = pixels(page, gallery)
    page.focus(gallery)
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(
        "([s, b]) => document.querySelector(s).toDataURL() !== b", arg=[gallery, turned]
    )
    page.dblclick(gallery)
    page.wait_for_function(
        "([s, b]) => document.querySelector(s).toDataURL() === b", arg=[gallery, before]
    )


def test_offset_is_a_slider_of_its_own(visit, odd):
    ica, X, path = odd
    page = visit(path)
    assert page.evaluate("noisyica.coefficients().length") == 31
    assert page.locator(".part:visible").count() == 24
    page.click("text=Show all 31 components")
    assert page.locator(".part:visible").count() == 31
    found = payload(path.read_text(encoding="utf-8"))["explorer"]
    expected = ica.inverse_transform(unpack(found["beta"])[:1])[0] + unpack(found["offset"])[0]
    assert np.abs(np.array(page.evaluate("noisyica.reconstruction()")) - expected).max() < 1e-3
    row = X[found["rows"][0]]
    assert float(page.inner_text("#error")) == pytest.approx(
        np.sqrt(np.nanmean(np.square(row - expected))), rel=5e-3
    )


def colours(page, which, *places):
    """Of pixels of a picture of the gallery."""
    text = pixels(page, f".gallery figure:nth-child({which + 1}) canvas")
    image = np.array(
        PIL.Image.open(io.BytesIO(base64.b64decode(text.partition(",")[2]))).convert("RGBA")
    ).astype(int)
    return image[[int(y) for _, y in places], [int(x) for x, _ in places]]


def page_of_units(visit, path, layout, *places):
    """A page of a model without mean whose components are 1 at those places and 0 elsewhere."""
    mixing = np.eye(layout.size)[:, list(places)]
    beta = np.random.default_rng(0).normal(size=(20, len(places)))
    quick_report(path, fitted(Model(mixing, None, 0.1, SHIFTED)), beta @ mixing.T, beta, layout)
    return visit(path)


def is_red(colour):
    return colour[0] > colour[2] + 40


def test_mesh_hides_what_is_behind(visit, tmp_path):
    """Of the vertices nearest to and farthest from the viewer, only the first is seen, and where it should be."""
    mesh = LAYOUTS["mesh"]
    points = upright(mesh.vertices)
    points /= np.linalg.norm(points, axis=1).max()
    c, s, p, q = np.cos(0.35), np.sin(0.35), np.cos(0.25), np.sin(0.25)
    turned = (
        points
        @ (
            np.array([[1, 0, 0], [0, p, -q], [0, q, p]])
            @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
        ).T
    )
    front, back = turned[:, 2].argmax(), turned[:, 2].argmin()
    page = page_of_units(visit, tmp_path / "mesh.html", mesh, front, back)
    near, far = ([180 + 169.2 * turned[k, 0], 135 - 169.2 * turned[k, 1]] for k in (front, back))
    assert is_red(colours(page, 0, near)[0])
    assert not is_red(colours(page, 1, far)[0])
    assert colours(page, 1, far)[0, 3] == 255  # something else is there
    assert colours(page, 0, (2, 2))[0, 3] == 0


def test_slices_of_a_volume(visit, tmp_path):
    """A voxel in the three slices: x to the right and y, z up, an edge in z 1.5 times as long."""
    page = page_of_units(
        visit,
        tmp_path / "volume.html",
        LAYOUTS["volume"],
        np.ravel_multi_index((1, 2, 3), (4, 4, 4)),
    )
    assert page.evaluate(
        "(() => { const c = document.querySelector('.gallery canvas'); return [c.width, c.height]; })()"
    ) == [16, 6]
    inside = [(1, 2), (7, 0), (7, 1), (14, 0), (14, 1)]
    assert all(is_red(colour) for colour in colours(page, 0, *inside))
    beside = [(0, 2), (2, 2), (1, 3), (1, 1), (6, 0), (8, 0), (7, 2), (13, 0), (15, 1), (14, 2)]
    assert not any(is_red(colour) for colour in colours(page, 0, *beside))
    assert colours(page, 0, (1, 0), (4, 3))[:, 3].tolist() == [0, 0]


def test_colour_images(visit, tmp_path):
    page = page_of_units(
        visit, tmp_path / "colour.html", Images(np.array([2, 3, 3])), 3 * 4 + 1
    )  # the green of row 1, column 1
    assert colours(page, 0, (1, 1), (0, 0)).tolist() == [[128, 255, 128, 255], [128, 128, 128, 255]]
