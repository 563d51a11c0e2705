"""The paper's experiments: what they measure, how they are run and resumed, and what they leave behind."""

import csv
import gzip
import json
import math

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from noisyica import Model, priors
from noisyica.data import Mesh, write
from noisyica.paper import (
    NAMES,
    Claim,
    Entry,
    Settings,
    common,
    components,
    images,
    inputs,
    measures,
    page,
    published,
    tasks,
    transcription,
)
from noisyica.paper.command import reproduce

app = typer.Typer()
app.command()(reproduce)


# ------------------------------------------------------------------------------------------------------------- measures


def test_error_is_the_papers_up_to_order_and_sign():
    truth = images.truth()
    assert truth.shape == (256, 2)
    assert truth.sum(0).tolist() == [13, 25]
    assert measures.mean_square_error(-truth[:, ::-1], truth) == 0
    assert measures.mean_square_error(truth * [-1, 1] + 0.1, truth) == pytest.approx(0.02)
    assert measures.mean_square_error(0 * truth, truth) == pytest.approx(38 / 256)


def test_matching_of_several_columns():
    truth = np.random.default_rng(0).normal(size=(30, 5))
    order, signs = [3, 0, 4, 1, 2], np.array([1, -1, -1, 1, -1])
    np.testing.assert_allclose(measures.matched(truth[:, order] * signs, truth), truth)


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


# --------------------------------------------------------------------------------------------------- the transcription


def test_transcription_learns():
    """From a poor start; with the coefficients known, the noise variance has a standard error of 1.6 %."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 2))
    X, _ = Model(A, np.full(20, 3.0), 0.25, priors.BernoulliGaussian(0.6)).sample(
        400, random_state=1
    )
    found, noise = transcription.saem(X, A + 0.5 * rng.normal(size=A.shape), "bg", 200, 0)
    assert noise == pytest.approx(0.25, rel=0.06)
    assert measures.cosines(found, A).max(0).min() > 0.99


@pytest.mark.parametrize(
    ("name", "variance", "state"),
    [
        ("log", np.pi**2 / 12, {}),
        ("bg", 0.3, {"alpha": 0.3}),
        ("ifa", 1 + 0.7 * 2**2, {"weight": 0.7, "centre": 2.0}),
    ],
)
def test_transcription_draws_from_the_posterior(name, variance, state):
    """With one component the posterior mean is a quotient of integrals over the prior, here means over many prior draws."""
    A, sigma2 = np.array([[0.5], [-0.3]]), 0.6
    X = np.array([[0.2, -0.1], [1.5, -0.4], [-2.0, 0.3]])
    rng, sampler = np.random.default_rng(0), transcription.SAMPLERS[name]
    beta = np.asarray(sampler.propose(rng, 200_000, state)["beta"])
    assert beta.var() == pytest.approx(variance, rel=0.03)
    weight = np.exp(-np.square(X[:, None] - beta[:, None] * A[:, 0]).sum(2) / (2 * sigma2))
    many = np.repeat(X, 2000, 0)
    hidden = {key: value[:, None] for key, value in sampler.propose(rng, len(many), state).items()}
    for _ in range(20):
        transcription._sweep(rng, sampler, state, hidden, many - hidden["beta"] @ A.T, A, sigma2)
    found = hidden["beta"].reshape(3, 2000)
    np.testing.assert_allclose(
        found.mean(1), weight @ beta / weight.sum(1), atol=4.5 * found.std() / np.sqrt(2000)
    )


# ----------------------------------------------------------------------------------------------------- running, resuming

CALLS: list[int] = []


def double(x: int) -> dict:
    CALLS.append(x)
    return {"twice": np.float64(2 * x), "square": np.arange(2.0) * x / 3}


def slow_double(x: int) -> dict:
    return {"twice": 2 * x}


def test_a_run_goes_on_where_it_was(tmp_path):
    CALLS.clear()
    settings = Settings(cache=tmp_path / "cache", verbose=False)
    first = tasks.run(settings, "try", double, [{"x": 1}, {"x": 2}])
    assert [r["twice"] for r in first] == [2, 4]
    assert first[1]["square"] == [0, 0.666667]
    path = tmp_path / "cache" / "try.jsonl"
    path.write_text(path.read_text() + '["torn li')  # the machine stopped while writing
    again = tasks.run(settings, "try", double, [{"x": 3}, {"x": 2}, {"x": 1}])
    assert CALLS == [1, 2, 3]
    assert [r["twice"] for r in again] == [6, 4, 2]
    assert again[2] == first[0]
    assert tasks.run(settings, "try", double, [{"x": 3}])[0] == again[0]
    assert CALLS == [1, 2, 3]
    assert sum(line.startswith('["torn') for line in path.read_text().splitlines()) == 1
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"


def found_in(x: int, data: str, fingerprint: str) -> dict:
    CALLS.append(x)
    return {}


def test_data_are_known_by_what_they_are(tmp_path):
    CALLS.clear()
    for folder, fingerprint in (("here", "a"), ("there", "a"), ("there", "b")):
        tasks.run(
            Settings(cache=tmp_path, verbose=False),
            "try",
            found_in,
            [{"x": 1, "data": folder, "fingerprint": fingerprint}],
        )
    assert CALLS == [1, 1]


def test_processes_give_the_same_in_the_same_order():
    cases = [{"x": x} for x in range(4)]
    found = tasks.run(Settings(jobs=2, verbose=False), "try", slow_double, cases)
    assert [(r["x"], r["twice"]) for r in found] == [(0, 0), (1, 2), (2, 4), (3, 6)]


def test_seeds_and_choices():
    assert Settings(quick=True, seed=5).seeds(2, 50) == [5, 6]
    assert Settings(repeats=3).seeds(2, 50) == [0, 1, 2]
    assert Settings(quick=True).choose(1, 2) == 1
    mean, error = common.summary([1.0, 3.0, math.nan])
    assert (mean, error) == (2.0, pytest.approx(1.0))


# ---------------------------------------------------------------------------------------------------------------- pages


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
    assert (
        page.claims([Claim("Seen.", False), Claim("Said.")])
        == "- **Not as expected.** Seen.\n- Said."
    )


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
    smaller.setattr(
        images, "METHODS", {k: images.METHODS[k] for k in ("SAEM/BG", "SAEM/BG, A hidden")}
    )
    smaller.setattr(images, "OTHERS", {"FastICA": images.OTHERS["FastICA"]})
    smaller.setattr(images, "RIVALS", ())
    smaller.setattr(Settings, "choose", lambda self, quick, full: 60 if quick == 300 else (30,))
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "There is no experiment 'nothing': give images"),
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


# ----------------------------------------------------------------------------------------------------------------- data


def digits_files(folder):
    rng = np.random.default_rng(0)
    X, y = rng.integers(-1000, 1000, size=(12, 256)) / 1000, np.arange(12) % 10
    np.savez(folder / "usps.npz", X_train=(X * 1000).astype(np.int16), y_train=y, scale=1e-3)
    with gzip.open(folder / "zip.train.gz", "wt") as file:
        file.writelines(
            f"{label:.4f} {' '.join(map(str, row))} \n" for label, row in zip(y, X, strict=True)
        )
    lines = (
        f"{label + 1} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row))
        for label, row in zip(y, X, strict=True)
    )
    (folder / "usps").write_text("\n".join(lines) + "\n")
    return X, y


def test_digits_in_the_common_formats(tmp_path):
    X, y = digits_files(tmp_path)
    for name in ("usps.npz", "zip.train.gz", "usps"):
        found = inputs.digits(tmp_path / name)
        np.testing.assert_allclose(found.X, X, atol=1e-9)
        np.testing.assert_array_equal(found.labels, y)
        assert found.real
    assert inputs.digits(tmp_path).description.endswith("from usps.npz.")
    stand_in = inputs.digits(None)
    assert stand_in.X.shape == (1797, 64)
    assert "stand-in" in stand_in.description
    assert inputs.case(None, stand_in) != inputs.case(None, stand_in._replace(X=stand_in.X + 1))
    np.savez(tmp_path / "usps.npz", other=X)
    inputs.digits.cache_clear()
    with pytest.raises(ValueError, match=r"usps.npz has no array 'X_train': it has other"):
        inputs.digits(tmp_path)


def test_patches(tmp_path):
    (tmp_path / "Faces").mkdir()
    grey = np.random.default_rng(0).integers(0, 256, size=(30, 40), dtype=np.uint8)
    Image.fromarray(grey).save(tmp_path / "Faces" / "a.png")
    found = inputs.faces(tmp_path, 100)
    assert found.X.shape == (2 * 3, 169)
    corner = grey[12:25, 24:37].astype(float).ravel() / 255
    np.testing.assert_allclose(found.X[5], corner - corner.mean(), atol=1e-6)
    assert inputs.faces(tmp_path, 4).X.shape == (4, 169)
    assert "4 of the 6" in inputs.faces(tmp_path, 4).description
    (tmp_path / "Faces" / "b.jpg").write_text("no image")
    inputs.faces.cache_clear()
    with pytest.raises(ValueError, match=r"b.jpg cannot be read"):
        inputs.faces(tmp_path, 4)
    assert "stand-in" in inputs.faces(None, 100).description


def test_sphere_and_simulated_surfaces():
    vertices, faces = inputs.sphere(2)
    assert (len(vertices), len(faces)) == (162, 320)
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    volume = (np.cross(b - a, c - a) * a).sum() / 6
    assert volume == pytest.approx(4 / 3 * np.pi, rel=0.05)
    surfaces = inputs.surfaces(None)
    assert surfaces.X.shape == (101, 642)
    assert not surfaces.real


def test_surfaces_of_a_file(tmp_path):
    vertices, faces = inputs.sphere(1)
    labels = np.array(
        ["control", "tle_ipsilateral", "tle_contralateral", "unaffected_other_side_missing"] * 3
    )
    X = np.random.default_rng(0).normal(size=(12, len(vertices)))
    np.savez(
        tmp_path / "surfaces.npz",
        log_jacobian=X,
        template_vertices=vertices,
        faces=faces,
        label=labels,
    )
    found = inputs.surfaces(tmp_path)
    assert found.X.shape == (9, 42)
    assert found.real
    assert json.loads(json.dumps(inputs.case(tmp_path, found)))["data"] == str(tmp_path)
    np.savez(
        tmp_path / "surfaces.npz",
        log_jacobian=X,
        template_vertices=vertices,
        faces=faces,
        label=labels[[1] * 12],
    )
    inputs.surfaces.cache_clear()
    with pytest.raises(ValueError, match=r"label must hold control"):
        inputs.surfaces(tmp_path)


def test_surfaces_from_gifti(tmp_path):
    vertices, mesh = inputs.sphere(1)
    values = np.random.default_rng(0).normal(size=(6, len(vertices))).astype(np.float32)
    for i, row in enumerate(values):
        _, shape = write(row, Mesh(vertices, mesh), tmp_path / f"all/s{i}", ["field"])
        (tmp_path / "surfaces").mkdir(exist_ok=True)
        shape.rename(tmp_path / "surfaces" / shape.name)
    (tmp_path / "all" / "s0.surf.gii").rename(tmp_path / "surfaces.surf.gii")
    (tmp_path / "surfaces.txt").write_text("control\ncontrol\nmild\nsevere\nsevere\ncontrol\n")
    found = inputs.surfaces(tmp_path)
    np.testing.assert_array_equal(found.X, values)
    np.testing.assert_array_equal(found.faces, mesh)
    assert found.groups == {"all patients": ("mild", "severe"), "mild patients": ("mild",)}
    (tmp_path / "surfaces.txt").write_text("ill\n" * 6)
    inputs.surfaces.cache_clear()
    with pytest.raises(ValueError, match="must hold control and other labels; it has ill"):
        inputs.surfaces(tmp_path)
