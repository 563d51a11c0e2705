"""The paper's experiments: their measures, how they are run and resumed, and their pages."""

import csv
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

import noisyica
from noisyica import Model, priors
from noisyica.paper import (
    NAMES,
    Claim,
    Entry,
    Options,
    common,
    components,
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
    surfaces,
    tasks,
    transcription,
)
from noisyica.paper.command import reproduce

app = typer.Typer()
app.command()(reproduce)


# ----------------------------------------------------------------------------------------- measures


def test_error_is_the_papers_up_to_order_and_sign():
    truth = images.truth()
    assert truth.shape == (256, 2)
    assert truth.sum(0).tolist() == [13, 25]
    assert measures.mean_square_error(-truth[:, ::-1], truth) == 0
    assert measures.mean_square_error(truth * [-1, 1] + 0.1, truth) == pytest.approx(0.02)
    assert measures.mean_square_error(0 * truth, truth) == pytest.approx(38 / 256)


def test_columns_are_matched_with_the_truth():
    truth = np.random.default_rng(0).normal(size=(30, 5))
    order, signs = [3, 0, 4, 1, 2], np.array([1, -1, -1, 1, -1])
    np.testing.assert_allclose(measures.matched(truth[:, order] * signs, truth), truth)


def test_matched_cosines():
    A = np.eye(4)[:, :3]
    B = np.array([[0, 2.0, 0, 0], [0, 0, -3.0, 3.0], [0.5, 0, 0, 0]]).T
    np.testing.assert_allclose(measures.matched_cosines(A, B), [1, 1, np.sqrt(0.5)])


def test_stability_of_refits():
    """A refit that agrees has cosines of 1; one that lost one of three components has 2/3."""
    first = {"components": np.eye(4)[:3]}
    lost = {"components": np.eye(4)[[2, 0, 3]]}
    assert surfaces.stability([first, first]) == pytest.approx(1)
    assert surfaces.stability([first, first, lost]) == pytest.approx(5 / 6)
    assert math.isnan(surfaces.stability([first]))


def test_purity():
    labels = np.repeat([0, 1, 2], 10)
    beta = np.zeros((30, 3))
    beta[:10, 0] = np.arange(10) + 1  # one digit
    beta[:5, 1], beta[10:15, 1] = 1, -1  # two, by sign
    beta[::3, 2] = 1  # all alike
    np.testing.assert_allclose(measures.purity(beta, labels, 10), [1, 0.5, 0.4])
    np.testing.assert_allclose(measures.purity(beta, labels, 5, one_sided=True)[:2], [1, 1])


def test_area_and_roughness():
    rng = np.random.default_rng(0)
    flat, spot, noise = np.ones(400), np.eye(400)[37], rng.normal(size=400)
    board = np.indices((20, 20)).sum(0).ravel() % 2 * 2.0 - 1
    np.testing.assert_allclose(
        measures.effective_area(np.stack([flat, spot, board])), [1, 1 / 400, 1]
    )
    rough = measures.roughness(np.stack([flat, board, noise]), (20, 20))
    np.testing.assert_allclose(rough[:2], [0, 2])
    assert rough[2] == pytest.approx(1, abs=0.15)
    assert measures.hoyer(np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])) == pytest.approx(1)
    assert measures.hoyer(np.array([[2.0, -2, 2, 2]])) == pytest.approx(0)


def test_fates_of_intervals():
    truth = components.truth()
    assert components.fates(truth) == {
        "recovered": 8,
        "merged": 0,
        "repeated": 0,
        "noise": 0,
        "off": 0,
    }
    merged = np.column_stack([truth[:, :6], truth[:, 6] + truth[:, 7]])
    assert components.fates(merged) == {
        "recovered": 6,
        "merged": 1,
        "repeated": 0,
        "noise": 0,
        "off": 0,
    }
    noise = np.tile([1.0, -1.0], 48)[:, None]
    more = np.column_stack([truth, truth[:, 0] * 0.7, noise, 0.001 * truth[:, 1]])
    assert components.fates(more) == {
        "recovered": 8,
        "merged": 0,
        "repeated": 1,
        "noise": 1,
        "off": 1,
    }


# -------------------------------------------------------------------------------- the transcription


def test_transcription_learns():
    """From a poor start it finds A and the noise.

    If the coefficients were known, the noise variance would have a standard error of 1.6 %.
    """
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 2))
    model = Model(A, np.full(20, 3.0), 0.25, priors.BernoulliGaussian(0.6))
    X, _ = model.sample(400, random_state=1)
    learnt, noise = transcription.saem(X, A + 0.5 * rng.normal(size=A.shape), "bg", 200, 0)
    assert noise == pytest.approx(0.25, rel=0.06)
    assert measures.cosines(learnt, A).max(0).min() > 0.99


@pytest.mark.parametrize(
    ("prior", "variance"),
    [
        (transcription.Logistic(), np.pi**2 / 12),
        (transcription.BernoulliGaussian(alpha=0.3), 0.3),
        (transcription.Mixture(weight=0.7, centre=2.0), 1 + 0.7 * 2**2),
    ],
    ids=["log", "bg", "ifa"],
)
def test_transcription_draws_from_the_posterior(prior, variance):
    """The chains end with the posterior mean.

    With one component that is a quotient of integrals over the prior, which are here means over
    many draws from it.
    """
    A, sigma2 = np.array([[0.5], [-0.3]]), 0.6
    X = np.array([[0.2, -0.1], [1.5, -0.4], [-2.0, 0.3]])
    rng = np.random.default_rng(0)
    beta = prior.draw(rng, 200_000)["beta"]
    assert beta.var() == pytest.approx(variance, rel=0.03)
    weight = np.exp(-np.square(X[:, None] - beta[:, None] * A[:, 0]).sum(2) / (2 * sigma2))
    many = np.repeat(X, 2000, 0)
    parameters = transcription.Parameters(np.zeros(2), A, sigma2, prior)
    hidden = {name: values[:, None] for name, values in prior.draw(rng, len(many)).items()}
    for _ in range(20):
        transcription.simulate(rng, many, hidden, parameters)
    drawn = hidden["beta"].reshape(3, 2000)
    np.testing.assert_allclose(
        drawn.mean(1), weight @ beta / weight.sum(1), atol=4.5 * drawn.std() / np.sqrt(2000)
    )


@pytest.mark.parametrize(
    "prior",
    [transcription.BernoulliGaussian(alpha=0.3), transcription.Mixture(weight=0.7, centre=3.0)],
    ids=["bg", "ifa"],
)
def test_transcription_learns_the_parameters_of_the_prior(prior):
    """From many draws of the prior itself the M-step gives its parameters back."""
    hidden = prior.draw(np.random.default_rng(0), 100_000)
    learnt = prior.maximised(prior.statistics(hidden))
    for name, value in vars(prior).items():
        assert getattr(learnt, name) == pytest.approx(value, rel=0.02)


# ----------------------------------------------------------------------------- running and resuming

CALLS: list[int] = []


def double(x: int) -> dict:
    CALLS.append(x)
    return {"twice": np.float64(2 * x), "square": np.arange(2.0) * x / 3}


def simple_double(x: int) -> dict:
    return {"twice": 2 * x}


def test_a_run_goes_on_where_it_was(tmp_path):
    CALLS.clear()
    options = Options(cache=tmp_path / "cache", verbose=False)
    first = tasks.run(options, "try", double, [{"x": 1}, {"x": 2}])
    assert [r["twice"] for r in first] == [2, 4]
    assert first[1]["square"] == [0, 0.666667]
    path = tmp_path / "cache" / "try.jsonl"
    path.write_text(path.read_text() + '["torn li')  # the machine stopped while writing
    again = tasks.run(options, "try", double, [{"x": 3}, {"x": 2}, {"x": 1}])
    assert CALLS == [1, 2, 3]
    assert [r["twice"] for r in again] == [6, 4, 2]
    assert again[2] == first[0]
    assert tasks.run(options, "try", double, [{"x": 3}])[0] == again[0]
    assert CALLS == [1, 2, 3]
    assert sum(line.startswith('["torn') for line in path.read_text().splitlines()) == 1
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"


def count_calls(x: int, data: str, fingerprint: str) -> dict:
    CALLS.append(x)
    return {}


def test_data_are_known_by_what_they_are(tmp_path):
    CALLS.clear()
    for folder, fingerprint in (("here", "a"), ("there", "a"), ("there", "b")):
        tasks.run(
            Options(cache=tmp_path, verbose=False),
            "try",
            count_calls,
            [{"x": 1, "data": folder, "fingerprint": fingerprint}],
        )
    assert CALLS == [1, 1]


def test_edited_code_computes_anew(tmp_path, monkeypatch):
    """A version does not change when code is edited, a digest of the files does."""
    CALLS.clear()
    for digest in ("a", "a", "b", "a"):
        monkeypatch.setattr(source, "digest", lambda digest=digest: digest)
        tasks.run(Options(cache=tmp_path, verbose=False), "try", double, [{"x": 1}])
    assert CALLS == [1, 1]


def test_digest_knows_names_and_contents(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "in" / "b.py").write_text("y = 1")

    def digest():
        source.digest.cache_clear()
        return source.digest(tmp_path)

    seen = [digest()]
    (tmp_path / "notes.txt").write_text("no code")
    assert digest() == seen[0]
    (tmp_path / "in" / "b.py").write_text("y = 2")
    seen.append(digest())
    (tmp_path / "in" / "b.py").rename(tmp_path / "in" / "c.py")
    seen.append(digest())
    (tmp_path / "a.py").write_text("x = 1y")  # the same bytes, cut elsewhere
    (tmp_path / "in" / "c.py").write_text(" = 2")
    seen.append(digest())
    assert len(set(seen)) == 4
    source.digest.cache_clear()
    assert source.digest() == source.digest(source.PACKAGE) != seen[0]


def test_pages_name_the_commit_or_the_version(tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        answer = subprocess.run(
            ["git", *who, "-C", str(tmp_path), *arguments], capture_output=True, check=True
        )
        return answer.stdout.decode().strip()

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    version = f"version {noisyica.__version__}"
    assert source.described(package) == version
    git("init")
    source.described.cache_clear()
    assert source.described(package) == version  # installed below a checkout of something else
    git("add", ".")
    git("commit", "-m", "first")
    source.described.cache_clear()
    assert source.described(package) == f"commit {git('rev-parse', '--short=10', 'HEAD')}"
    (package / "__init__.py").write_text("x = 1")
    source.described.cache_clear()
    assert source.described(package).endswith(", with changes that are not committed")


def test_processes_give_the_same_in_the_same_order():
    cases = [{"x": x} for x in range(4)]
    records = tasks.run(Options(jobs=2, verbose=False), "try", simple_double, cases)
    assert [(r["x"], r["twice"]) for r in records] == [(0, 0), (1, 2), (2, 4), (3, 6)]


def test_seeds_and_choices():
    assert Options(quick=True, seed=5).seeds(2, 50) == [5, 6]
    assert Options(repeats=3).seeds(2, 50) == [0, 1, 2]
    assert Options(quick=True).choose(1, 2) == 1
    mean, error = common.summary([1.0, 3.0, math.nan])
    assert (mean, error) == (2.0, pytest.approx(1.0))


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
