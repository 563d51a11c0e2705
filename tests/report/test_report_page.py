"""That the page of a report works in a browser."""

import base64
import io

import numpy as np
import PIL.Image
import pytest
from sklearn.datasets import load_digits

from noisyica import Model
from noisyica.data import Images
from noisyica.engine.mixing import LAWS
from noisyica.engine.mixing.base import unit_prior
from noisyica.plot.layouts import upright
from tests.fitted import fitted
from tests.reports import (
    EVIL,
    LAYOUTS,
    SHIFTED,
    P,
    quick_report,
    read_payload,
    unpack,
)


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
    held = read_payload((pages / "images.html").read_text(encoding="utf-8"))["explorer"]["rows"]
    page.fill("#search", f"row {held[50]} ")
    assert page.evaluate("noisyica.row()") == held[50]
    page.fill("#search", "nowhere")
    assert "No row" in page.inner_text("#explorer [role=status]")
    page.click("#rows button >> nth=0")
    outlier = read_payload((pages / "images.html").read_text(encoding="utf-8"))["likelihood"][
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
    # of a narrow screen's few: they come in the order of what they add to the row
    page.locator("#explorer [id^=on-]:visible").first.uncheck()
    assert pixels(page, "#reconstruction") != before
    blank = """(canvas) => {
        const whole = [0, 0, canvas.width, canvas.height];
        const { data } = canvas.getContext("2d").getImageData(...whole);
        return data.every((value) => value === data[0]);
    }"""
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
    explorer = read_payload(path.read_text(encoding="utf-8"))["explorer"]
    expected = (
        ica.inverse_transform(unpack(explorer["beta"])[:1])[0] + unpack(explorer["offset"])[0]
    )
    assert np.abs(np.array(page.evaluate("noisyica.reconstruction()")) - expected).max() < 1e-3
    row = X[explorer["rows"][0]]
    assert float(page.inner_text("#error")) == pytest.approx(
        np.sqrt(np.nanmean(np.square(row - expected))), rel=5e-3
    )


def colours(page, which, *places):
    """The colours of the pixels at these places of a picture of the gallery."""
    text = pixels(page, f".gallery figure:nth-child({which + 1}) canvas")
    image = np.array(
        PIL.Image.open(io.BytesIO(base64.b64decode(text.partition(",")[2]))).convert("RGBA")
    ).astype(int)
    return image[[int(y) for _, y in places], [int(x) for x, _ in places]]


def page_of_units(visit, path, layout, *places, probability=None):
    """A page of a model without mean: each component is 1 at one of the places, 0 elsewhere.

    Its entries may have a probability not to be zero, the same for each component.
    """
    mixing = np.eye(layout.size)[:, list(places)]
    beta = np.random.default_rng(0).normal(size=(20, len(places)))
    ica = fitted(Model(mixing, None, 0.1, SHIFTED))
    if probability is not None:
        ica.components_probability_ = np.tile(probability, (len(places), 1))
        ica.mixing_prior, ica.mixing_prior_ = "sparse", unit_prior(LAWS["sparse"], len(places))
    quick_report(path, ica, beta @ mixing.T, beta, layout)
    return visit(path)


def is_red(colour):
    return colour[0] > colour[2] + 40


def test_mesh_hides_what_is_behind(visit, tmp_path):
    """The vertex nearest to the viewer is seen, where it should be; the farthest one is not."""
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
    size = "(canvas) => [canvas.width, canvas.height]"
    assert page.eval_on_selector(".gallery canvas", size) == [16, 6]
    inside = [(1, 2), (7, 0), (7, 1), (14, 0), (14, 1)]
    assert all(is_red(colour) for colour in colours(page, 0, *inside))
    beside = [(0, 2), (2, 2), (1, 3), (1, 1), (6, 0), (8, 0), (7, 2), (13, 0), (15, 1), (14, 2)]
    assert not any(is_red(colour) for colour in colours(page, 0, *beside))
    assert colours(page, 0, (1, 0), (4, 3))[:, 3].tolist() == [0, 0]


GREY = [0xD6, 0xD6, 0xD6, 255]


def test_entries_that_are_off_are_grey(visit, tmp_path):
    """Off are the pixels of the second line, one of which is 1, and of which the last is not."""
    probability = np.where(np.arange(12) // 4 == 1, 0.2, 0.8)
    probability[7] = 0.6
    layout = Images(np.array([3, 4]))
    page = page_of_units(visit, tmp_path / "grey.html", layout, 0, 5, probability=probability)
    text = page.inner_text("#components")
    assert "Grey: probably zero." in text
    assert f"{probability.sum():.0f} of 12 entries on, scale 1" in text
    off, on = [(0, 1), (1, 1), (2, 1)], [(0, 0), (3, 1), (1, 2)]
    for which in (0, 1):
        assert colours(page, which, *off).tolist() == [GREY] * 3
        assert GREY not in colours(page, which, *on).tolist()
    assert is_red(colours(page, 0, (0, 0))[0])


@pytest.mark.parametrize("kind", LAYOUTS)
def test_entries_that_are_off_are_grey_in_every_layout(visit, tmp_path, kind):
    """Where all entries are off, no picture of a component is coloured."""
    layout, coloured = LAYOUTS[kind], []
    place = layout.size - 1 if kind == "mesh" else 42  # a vertex in front, a voxel in the middle
    for probability in (0.9, 0.1):
        page = page_of_units(
            visit, tmp_path / "r.html", layout, place, probability=np.full(layout.size, probability)
        )
        page.fill(".part input[type=number]", "3")
        page.keyboard.press("Enter")
        for selector in (".gallery canvas", ".part canvas"):
            text = pixels(page, selector).partition(",")[2]
            image = PIL.Image.open(io.BytesIO(base64.b64decode(text))).convert("RGBA")
            red, _, blue, alpha = np.array(image).astype(int).transpose(2, 0, 1)
            coloured.append(bool((np.abs(red - blue)[alpha > 150] > 60).any()))
    assert coloured == [True, True, False, False]


def test_colour_images(visit, tmp_path):
    page = page_of_units(
        visit, tmp_path / "colour.html", Images(np.array([2, 3, 3])), 3 * 4 + 1
    )  # the green of row 1, column 1
    assert colours(page, 0, (1, 1), (0, 0)).tolist() == [[128, 255, 128, 255], [128, 128, 128, 255]]
