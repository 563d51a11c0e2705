"""The pages of the paper's experiments: what they say of the numbers, and their figures."""

import csv
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from noisyica.paper import (
    NAMES,
    Claim,
    Entry,
    Options,
    cost,
    drawing,
    images,
    images_claims,
    inputs,
    mcem,
    measures,
    page,
    published,
    source,
)
from noisyica.paper.command import reproduce

app = typer.Typer()
app.command()(reproduce)


# -------------------------------------------------------------------------------------------- pages


def test_cells_have_the_papers_number_and_the_ratio():
    assert (
        page.cell(Entry("t", "r", "c", 0.0123, 0.0012, 0.05))
        == "0.0123 ± 0.0012 (paper 0.05; × 0.25)"
    )
    assert page.cell(Entry("t", "r", "c", 1234.5)) == "1,234"
    assert page.cell(Entry("t", "r", "c", 0.00027)) == "0.00027"
    assert page.number(math.nan) == "–"
    assert (
        Entry("t", "r", "c", 1.0).ratio != Entry("t", "r", "c", 1.0).ratio
    )  # NaN where the paper has none
    table = page.markdown([Entry("t", "a", "x", 1.0), Entry("t", "b", "y", 2.0)])
    assert table == "| | x | y |\n|---|---|---|\n| a | 1 |  |\n| b |  | 2 |"


def test_claims_say_whose_expectation_they_meet():
    claims = [
        Claim("a.", True),
        Claim("b.", False),
        Claim("c.", True, target=True),
        Claim("d.", False, target=True),
        Claim("e."),
    ]
    assert page.claims(claims).splitlines() == [
        "- **Agrees with the paper.** a.",
        "- **Does not agree with the paper.** b.",
        "- **Meets our target.** c.",
        "- **Misses our target.** d.",
        "- e.",
    ]


def test_papers_tables_are_whole():
    assert published.MSE[30]["SAEM/BG"] == (0.09, 0.13, 0.16, 0.6)
    for table in (
        *published.MSE.values(),
        *published.NOISE_VARIANCE.values(),
        published.CONVERGENCE,
    ):
        assert all(len(row) == len(published.SIGMAS) for row in table.values())
    assert set(published.SECONDS) == set(published.CONVERGENCE)
    assert set(published.MSE[30]) == set(published.NOISE_VARIANCE[50]) <= set(images.METHODS)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    smaller = pytest.MonkeyPatch()
    ours = ("SAEM/BG", "SAEM/BG, A hidden")
    smaller.setattr(images, "METHODS", {name: images.METHODS[name] for name in ours})
    smaller.setattr(images, "OTHERS", {"FastICA": images.OTHERS["FastICA"]})
    smaller.setattr(Options, "choose", lambda self, quick, full: 60 if quick == 300 else (30,))
    result = CliRunner().invoke(app, ["images", "--quick", "--repeats", "1", "-o", str(folder)])
    smaller.undo()
    assert result.exit_code == 0, result.output
    return folder, result.output


def test_a_page_a_table_and_figures(pages):
    folder, output = pages
    text = (folder / "images.md").read_text()
    for words in (
        "Mean square error of A, 30 images",
        "paper 0.09; ×",
        "noisyica reproduce images --quick --repeats 1",
        "cores",
        "quick run",
        f"digest of the source files {source.digest()[:12]}",
        source.described(),
    ):
        assert words in text
    assert "/tmp" not in text
    with (folder / "images.csv").open() as file:
        rows = list(csv.DictReader(file))
    first = next(
        r
        for r in rows
        if r["row"] == "SAEM/BG" and r["column"] == "σ = 0.1" and "Table 1" in r["table"]
    )
    assert float(first["paper"]) == 0.09
    assert float(first["ratio"]) == pytest.approx(float(first["ours"]) / 0.09, rel=1e-4)
    assert float(first["ours"]) < 0.05
    for name in ("images-training", "images-estimates"):
        assert f"({name}.png)" in text
        with Image.open(folder / f"{name}.png") as image:
            assert min(image.size) > 200
        assert (folder / f"{name}.png").stat().st_size < 200_000
    assert "noise variance" in output
    assert len((folder / ".cache" / "images.jsonl").read_text().splitlines()) == 16


# ------------------------------------------------------------------- what is read off the numbers


def errors(of_methods, n, table=images_claims.ERROR):
    """Make the entries of a table of errors, from four errors of each method."""
    papers = published.MSE.get(n, {})
    return [
        Entry(table.format(n), method, f"σ = {sigma}", error, 0.0001, paper)
        for method, values in of_methods.items()
        for sigma, error, paper in zip(
            published.SIGMAS, values, papers.get(method, [math.nan] * 4), strict=True
        )
    ]


def image_entries(few, many, fastica):
    """Make entries in which FAM-EM has ``few`` and ``many`` as errors, and FastICA ``fastica``."""
    entries = []
    for n, of_rival in ((30, few), (100, many)):
        methods = {
            "FAM-EM/Log": of_rival,
            "SAEM/Log": [0.02] * 4,
            "SAEM/BG": [0.02] * 4,
            "SAEM/BG, A hidden": [0.01] * 4,
            "FastICA": fastica,
            "SparsePCA": [0.03, 0.03, 0.01, 0.03],
            images_claims.BOUND: [0.01] * 4,
        }
        entries += errors(methods, n) + errors(methods, n, images_claims.SCALED)
        entries += [
            Entry(images_claims.NOISE.format(n), name, f"σ² = {sigma**2:.2g}", sigma**2)
            for name in ("SAEM/Log", "SAEM/BG, A hidden")
            for sigma in published.SIGMAS
        ]
    return entries


def claim(claims, words):
    (found,) = [claim for claim in claims if words in claim.text]
    return found


def test_more_images_and_more_noise_are_judged_as_the_paper_has_them():
    falls = images.read(image_entries([0.04] * 4, [0.01] * 4, [0.08, 0.04, 0.03, 0.02])).claims
    stays = images.read(image_entries([0.5] * 4, [0.49] * 4, [0.02, 0.03, 0.04, 0.08])).claims
    assert claim(falls, "hardly falls").holds is False
    assert "is 0.04, 0.04, 0.04 and 0.04 with 30 images" in claim(falls, "hardly falls").text
    assert claim(stays, "hardly falls").holds is True
    assert claim(falls, "noise is high").holds is False
    assert "4, 2, 1.5 and 1 times that of SAEM/BG," in claim(falls, "noise is high").text
    assert claim(falls, "noise is high").text.endswith("largest at σ = 0.1.")
    assert claim(stays, "noise is high").holds is True


def test_where_others_win_is_said():
    claims = images.read(image_entries([0.04] * 4, [0.01] * 4, [0.02] * 4)).claims
    assert claim(claims, "SparsePCA has 0.5 to 1.5 times the error of SAEM/BG.").text.endswith(
        "It wins at 2 of the 8 settings (n = 30, σ = 0.8; n = 100, σ = 0.8)."
    )
    hidden = claim(claims, "FastICA has 2 to 2 times the error of SAEM/BG, A hidden")
    assert hidden.text.endswith("It wins at none of the 8 settings.")
    all_methods = image_entries(*[[0.04] * 4] * 3)
    for n in (30, 100):
        methods = {"FactorAnalysis, varimax": [0.005] * 4, "SAEM/BG, A sparse": [0.02] * 4}
        all_methods += errors(methods, n)
    assert claim(images.read(all_methods).claims, "components are sparse").text.endswith(
        "varimax wins over our default at 8 of 8 settings, SparsePCA wins over our default at 0 of "
        "8 settings, varimax wins over A sparse at 8 of 8 settings, and SparsePCA wins over A "
        "sparse at 2 of 8 settings."
    )
    assert claim(claims, "maximum likelihood is at or below").target


def test_errors_above_the_papers_count_without_a_spread():
    """With one repeat errors have no standard error, and are compared all the same."""
    entries = [
        Entry(e.table, e.row, e.column, e.ours + 0.1, math.nan, e.paper)
        if e.row == "SAEM/BG" and e.column == "σ = 0.1"
        else e
        for e in image_entries(*[[0.04] * 4] * 3)
    ]
    target = claim(images.read(entries).claims, "maximum likelihood is at or below")
    assert target.holds is False
    assert "SAEM/BG, n = 30, σ = 0.1: 0.120 ± 0.000 against 0.09" in target.text


def test_the_mixture_of_ifa_is_stated():
    assert "(2K + 1)^p = 9" in " ".join(images.read(image_entries(*[[0.1] * 4] * 3)).notes)


@pytest.mark.parametrize(("small", "large"), [(6.5, 3.0), (3.0, 6.5)])
def test_both_ratios_of_times_are_judged_by_one_rule(small, large):
    entries = [
        Entry(mcem.ERROR, method, f"σ = {sigma}", 0.01)
        for method in mcem.METHODS
        for sigma in published.SIGMAS
    ]
    entries += mcem._times(
        {"SAEM": 1.0, "MCEM, 10 draws": small, "MCEM, 30 draws": 30.0},
        {"SAEM": 1.0, "MCEM, 10 draws": large, "MCEM, 30 draws": 30.0},
    )
    claims = mcem.read(entries).claims
    assert claims[0].holds == (small > 6)
    assert claims[1].holds == (large > 6)
    assert "synthetic images" in claims[0].text
    assert mcem.LARGE_NAME in claims[1].text
    assert claims[2].holds


@pytest.mark.parametrize(("fast", "holds"), [(0.01, True), (0.05, False)])
def test_fastica_is_timed_beside_the_others(fast, holds):
    table = {
        "SAEM/BG": {"seconds": Entry(cost.TIME, "SAEM/BG", "seconds", 0.1, paper=26.0)},
        cost.FASTICA: {"seconds": Entry(cost.TIME, cost.FASTICA, "seconds", fast)},
    }
    claims = cost._time_claims(table)
    assert claims[0].text.endswith("which is 260 times as long.")
    assert claims[1].holds is holds
    assert cost.fastica_time(0)["seconds"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_written_anew_from_their_tables(name, tmp_path):
    """The project's own pages stay what they are, but for the code that their sentences are of."""
    folder = Path(__file__).parents[2] / "docs" / "paper"
    for file in folder.glob(f"{name}*"):
        shutil.copy(file, tmp_path)
    result = CliRunner().invoke(app, [name, "--rewrite", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    old, new = ((path / f"{name}.md").read_text().splitlines() for path in (folder, tmp_path))
    assert new[-1].startswith(f"| {page.ANEW} | from the numbers of this run by ")
    assert new[:-1] == [line for line in old if page.ANEW not in line]
    assert "As expected" not in (tmp_path / "README.md").read_text()


def test_there_must_be_a_table_to_write_a_page_from(tmp_path):
    result = CliRunner().invoke(app, ["all", "--rewrite", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert "has no table of all" in " ".join(result.output.split())


# ------------------------------------------------------------------------------------------ figures


def test_means_and_components_have_common_scales():
    """The larger of two models is twice as dark, and a mean that is not there says so."""
    shape, components = (3, 4), np.eye(12)[:2]
    models = {
        "small": (np.arange(12.0), components),
        "large": (2 * np.arange(12.0), 2 * components),
        "none": (np.zeros(12), components),
    }
    figure = drawing.model_sheets(models, shape, 2, 1)
    small, large, none = (axes.images[0].get_array().filled(np.nan) for axes in figure.axes[:3])
    np.testing.assert_allclose(large, 2 * small)
    assert np.isnan(none[:, :4]).all()
    assert [text.get_text() for text in figure.axes[2].texts] == ["no\nmean"]
    assert not figure.axes[0].texts
    own = drawing.model_sheets(models, shape, 2, 1, own_scale=True).axes[1].images[0].get_array()
    assert own[:, 5:].max() == 1


def test_surfaces_are_seen_from_both_sides():
    vertices, faces = inputs.sphere(2)
    vertices = vertices * (3, 2, 1)
    axes = drawing.canvas(3, 3).subplots()
    drawing.surface(axes, vertices, faces, vertices[:, 2], 1.0)
    front, _, behind, _ = axes.collections
    counts = [len(side.get_paths()) for side in (front, behind)]
    assert min(counts) > 0.45 * len(faces)  # all but those that are seen from their edge
    assert front.get_array().mean() * behind.get_array().mean() < -0.1  # the two sides
    lowest = min(path.vertices[:, 1].min() for path in front.get_paths())
    assert lowest > max(path.vertices[:, 1].max() for path in behind.get_paths())


def test_contributions_do_not_depend_on_the_scale_of_coefficients():
    rng = np.random.default_rng(0)
    components, beta, scale = rng.normal(size=(2, 5)), rng.normal(size=(50, 2)), [[4.0], [0.5]]
    np.testing.assert_allclose(
        measures.contributions(components * scale, beta / np.ravel(scale)),
        measures.contributions(components, beta),
    )
    one = measures.contributions(components, np.ones((50, 2)))
    np.testing.assert_allclose(one, components)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "There is no experiment 'nothing': give images"),
        (["nothing", "--rewrite"], "There is no experiment 'nothing': give images"),
        (["images", "--data", "no/such/folder"], "There is no folder"),
    ],
)
def test_errors_are_one_line(arguments, words, tmp_path):
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_runs(name, tmp_path):
    result = CliRunner().invoke(app, [name, "--quick", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / f"{name}.md").is_file()
    assert (tmp_path / f"{name}.csv").is_file()
    assert list(tmp_path.glob(f"{name}-*.png"))
    assert "nan" not in (tmp_path / f"{name}.md").read_text()
