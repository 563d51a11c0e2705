"""The command line and its help, public names, and what the documents say: all of it is run."""

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from jax.errors import JaxRuntimeError
from typer.testing import CliRunner

import noisyica
from noisyica import NoisyICA, plot, priors
from noisyica.app import analyses, demo, options, printing
from noisyica.app.command_line import app
from noisyica.app.printing import print_assumptions
from noisyica.data import read
from noisyica.engine import mixing
from tests.tools import some_slow

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG_DOCUMENTS = [
    ROOT / "docs" / name for name in ("neuro.md", "scale.md", "groups.md", "answers.md")
]
LONG_EXAMPLES = ("analysis.selection", "partial", "plot.fits", "report")


def test_demo(tmp_path):
    result = CliRunner().invoke(
        app, ["demo", "-o", str(tmp_path / "out"), "-p", "6", "--max-iter", "150"]
    )
    assert result.exit_code == 0, result.output
    for word in ("Noise", "alpha", "Log likelihood", "Components on per image", "digits.png"):
        assert word in result.output
    picture = matplotlib.image.imread(tmp_path / "out" / "digits.png")
    assert picture.shape[0] > 300
    assert picture[..., :3].std() > 0.02
    assert NoisyICA.load(tmp_path / "out" / "digits.npz").components_.shape == (6, 64)


def test_demo_errors_are_one_line(tmp_path):
    result = CliRunner().invoke(
        app, ["demo", "-o", str(tmp_path), "--prior", "nonsense", "--max-iter", "2"]
    )
    assert result.exit_code == 1
    assert "Unknown prior 'nonsense'" in result.output
    assert "Traceback" not in result.output
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(
        app, ["demo", "-o", str(tmp_path / "file"), "-p", "2", "--max-iter", "2"]
    )
    assert result.exit_code == 1
    assert "Error" in result.output


def test_errors_of_jax_are_one_line(tmp_path, monkeypatch):
    def fail(*_):
        raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nwhile trying to allocate")

    monkeypatch.setattr(demo, "run", fail)
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert result.output == "Error: RESOURCE_EXHAUSTED: Out of memory while trying to allocate\n"


def test_defects_keep_their_traceback(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyError("a defect")

    monkeypatch.setattr(demo, "run", fail)
    assert isinstance(CliRunner().invoke(app, ["demo", "-o", str(tmp_path)]).exception, KeyError)


@pytest.fixture
def files(tmp_path):
    """The same rows in several formats, with ids and groups where the format can hold them."""
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(40, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(40, 5))
    groups = np.where(np.arange(40) % 2, "patient", "control")
    np.save(tmp_path / "rows.npy", X)
    np.savez(tmp_path / "rows.npz", X=X, group=groups, ages=np.arange(40))
    lines = ["id,a,b,c,d,e,group"] + [
        f"s{i},{','.join(map(repr, map(float, x)))},{g}"
        for i, (x, g) in enumerate(zip(X, groups, strict=True))
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "rows.txt").write_text("\n".join(" ".join(map(repr, map(float, x))) for x in X))
    (tmp_path / "groups.txt").write_text("\n".join(groups) + "\n")
    return tmp_path, X


def test_data_are_the_same_in_every_format(files):
    folder, X = files
    for name in ("rows.npy", "rows.npz", "rows.csv", "rows.txt"):
        data = read(folder / name)
        np.testing.assert_array_equal(data.X, X)
        assert (name in ("rows.npz", "rows.csv")) == ("group" in data.others)
    (folder / "holes.csv").write_text("a,b\n1,\n,2\n3,NA\n")
    np.testing.assert_array_equal(
        read(folder / "holes.csv").X, [[1, np.nan], [np.nan, 2], [3, np.nan]]
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.npy", None, "There is no file"),
        ("data.xyz", b"1 2", "files of this kind are not known"),
        ("data.npy", b"not numpy", "cannot be read|not numbers"),
        ("data.npz", b"not a zip file", "cannot be read"),
        ("data.csv", b"", "is empty"),
        ("data.csv", b"a,b\n1,2\n3\n", "line 3 has 1 columns, the first one 2"),
        ("data.csv", b"a,b\nx,y\n", "no rows of numbers"),
        ("data.csv", b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / name)


def test_select_and_compare(files):
    folder, _ = files
    options = ["-p", "2", "--max-iter", "20"]
    result = CliRunner().invoke(
        app,
        ["select", str(folder / "rows.csv"), *options, "--prior", "bg", "-o", str(folder / "out")],
    )
    assert result.exit_code == 0, result.output
    assert "Chosen by bic: 2 components" in result.output
    assert "The criterion assumes that rows are independent of each other.\n" in result.output
    assert (
        (folder / "out" / "table.csv").read_text().startswith("prior,n_components,log_likelihood")
    )
    assert matplotlib.image.imread(folder / "out" / "selection.png").std() > 0.02
    assert NoisyICA.load(folder / "out" / "model.npz").components_.shape == (2, 5)
    for groups in ("group", str(folder / "groups.txt")):
        result = CliRunner().invoke(
            app,
            [
                "compare",
                str(folder / "rows.npz"),
                groups,
                "--array",
                "X",
                *options,
                "--n-draws",
                "3",
            ],
        )
        assert result.exit_code == 0, result.output
        assert "bg: GroupComparison('control': 20 rows, 'patient': 20 rows" in result.output
        assert "The p-values assume that rows are independent of each other.\n" in result.output


def test_missing_entries_are_one_more_assumption(capsys):
    print_assumptions("The criterion assumes", np.array([[1.0, np.nan]]))
    assert "independent of each other, and that entries are missing at" in capsys.readouterr().out


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_compare_learns_from_all_rows(files, monkeypatch):
    """Two of three groups are compared, in the model of all rows, fitted now or in a run."""
    folder, X = files
    monkeypatch.chdir(folder)
    three = np.array(["control", "mild", "severe", "mild"])[np.arange(40) % 4]
    (folder / "three.txt").write_text("\n".join(three) + "\n")
    ages, sites = np.arange(40) % 7, np.arange(40) // 14
    (folder / "ages.txt").write_text("\n".join(map(str, ages)) + "\n")
    (folder / "sites.txt").write_text("\n".join(map(str, sites)) + "\n")
    how = ["three.txt", "--between", "severe,control", "--n-draws", 3]
    fitted_now = invoke("compare", "rows.npy", *how, "-p", 2, "--max-iter", 20)
    assert fitted_now.exit_code == 0, fitted_now.output
    ica = NoisyICA(2, max_iter=20, random_state=0).fit(X)
    expected = noisyica.compare_groups(
        X, three, ica, between=("severe", "control"), n_draws=3, random_state=0
    )
    assert expected.table() in fitted_now.output
    assert "'severe': 10 rows, 'control': 10 rows" in fitted_now.output
    result = invoke("fit", "rows.npy", "-p", 2, "--max-iter", 20, "-o", "run", "--no-report")
    assert result.exit_code == 0, result.output
    given = ["--covariates", "ages.txt,sites.txt", "--categorical", "sites.txt", "--n-draws", 3]
    of_all = invoke("compare", "run", "three.txt", *given)
    assert of_all.exit_code == 0, of_all.output
    expected = noisyica.compare_groups(
        X, three, ica, covariates={"a": ages, "s": sites.astype(str)}, n_draws=3, random_state=0
    )
    assert expected.table() in of_all.output
    assert "given ages.txt, sites.txt=1, sites.txt=2, p_value" in of_all.output
    of_run = invoke("compare", "run", *how)
    assert of_run.exit_code == 0, of_run.output
    assert of_run.output == fitted_now.output
    refused = invoke("compare", "run", *how, "--prior", "log", "--array", "X")
    assert refused.exit_code == 1
    assert "leave out --prior, --array" in " ".join(refused.output.split())


def test_compare_refuses_what_is_missing_or_no_number(files, monkeypatch):
    """Blank lines are no group, and one bad cell does not make categories of numbers."""
    folder, _ = files
    monkeypatch.chdir(folder)
    how = ["-p", 2, "--max-iter", 5, "--n-draws", 2]
    groups, ages = np.array(["control", "patient"] * 20, object), np.arange(40).astype(object) % 7

    def refused(*arguments):
        result = invoke("compare", "rows.npy", *arguments, *how)
        assert result.exit_code == 1, result.output
        return " ".join(result.output.split())

    for missing in ("", "NA"):
        groups[[2, 7]] = missing
        (folder / "some.txt").write_text("\n".join(groups) + "\n")
        message = refused("some.txt")
        assert "some.txt has no label in 2 of its rows, such as row 3" in message
        assert "--between control,patient" in message
    two = invoke("compare", "rows.npy", "some.txt", "--between", "control,patient", *how)
    assert two.exit_code == 0, two.output
    assert "'control': 19 rows, 'patient': 19 rows" in two.output
    ages[2] = "1O"
    (folder / "age.txt").write_text("\n".join(map(str, ages)) + "\n")
    message = refused("groups.txt", "--covariates", "age.txt")
    assert "'1O' in row 3 of age.txt is no number: mend it, or name the column in" in message
    categories = ["--covariates", "age.txt", "--categorical", "age.txt"]
    result = invoke("compare", "rows.npy", "groups.txt", *categories, *how)
    assert result.exit_code == 0, result.output
    assert "age.txt=1O" in result.output


def test_missing_values_of_covariates_of_any_kind():
    """None and pandas.NA are not the texts "None" and "<NA>"."""
    pandas = pytest.importorskip("pandas")
    column = np.array([1, None, "NA", pandas.NA, " 2 "], dtype=object)
    np.testing.assert_array_equal(
        analyses._values("age", column, False), [1, np.nan, np.nan, np.nan, 2]
    )
    assert analyses._values("age", column, True).tolist() == ["1", None, None, None, "2"]


@pytest.mark.slow
def test_fit_with_student_noise(tmp_path, monkeypatch):
    """The terminal and the report say which rows of a table are outlying."""
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(80, 2)) @ rng.normal(size=(2, 12)) + 0.5 * rng.normal(size=(80, 12))
    X[[7, 30]] += 5 * rng.normal(size=(2, 12))
    monkeypatch.chdir(tmp_path)
    lines = [",".join([f"row-{i}", *(f"{value:.4f}" for value in row)]) for i, row in enumerate(X)]
    (tmp_path / "rows.csv").write_text("\n".join(["id," + ",".join("abcdefghijkl"), *lines]) + "\n")
    result = invoke(
        *("fit", "rows.csv", "-p", 2, "--max-iter", 50, "--noise", "student", "-o", "run")
    )
    assert result.exit_code == 0, result.output
    output = " ".join(result.output.split())
    assert "of Student noise" in output
    assert re.search(r"outlying rows \d+ of 80, weight below 0\.\d+, a fifth of", output)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Degrees of freedom of the noise" in page
    named = re.search(r"a fifth of the usual one; the least: ([^\"]*)", page).group(1)
    assert set(re.findall(r"row-\d+", named)[:2]) == {"row-7", "row-30"}
    assert NoisyICA.load(tmp_path / "run" / "model.npz").row_weights_.shape == (80,)


@pytest.mark.parametrize("name", ["sparse", "nonnegative"])
@pytest.mark.slow
def test_fit_with_sparse_components(files, monkeypatch, name):
    """The shares of entries that are on are printed, and their probabilities are written."""
    folder, X = files
    monkeypatch.chdir(folder)
    how = ["-p", 2, "--max-iter", 20, "--mixing-prior", name, "-o", "run"]
    result = invoke("fit", "rows.csv", *how)
    assert result.exit_code == 0, result.output
    ica = NoisyICA.load(folder / "run" / "model.npz")
    shares = ", ".join(f"{100 * share:.0f} %" for share in ica.components_probability_.mean(1))
    assert f"on by component: {shares}" in " ".join(result.output.split())
    written = read(folder / "run" / "components" / "components_probability.csv")
    np.testing.assert_array_equal(written.X, ica.components_probability_)
    assert written.ids.tolist() == ica.get_feature_names_out().tolist()
    assert written.layout.names.tolist() == list("abcde")
    assert "entries are zero or" in (folder / "run" / "report.html").read_text()


def test_fit_with_smooth_components(files, monkeypatch):
    """The layout says what neighbours are; a table has none, and nothing is left of the run."""
    folder, X = files
    monkeypatch.chdir(folder)
    np.save("images.npy", X[:, :4])
    how = ["-p", 2, "--max-iter", 20, "--mixing-prior", "smooth", "-o", "run"]
    refused = invoke("fit", "rows.csv", *how)
    assert refused.exit_code == 1
    assert "these are the columns of a table" in " ".join(refused.output.split())
    assert not Path("run").exists()
    result = invoke("fit", "images.npy", "--shape", "2x2", *how)
    assert result.exit_code == 0, result.output
    assert "smooth, neighbouring entries are alike" in " ".join(result.output.split())
    assert repr(NoisyICA.load("run/model.npz").mixing_prior) == "Smooth(shape=(2, 2))"
    assert "neighbouring entries are alike" in Path("run/report.html").read_text()
    assert invoke("fit", "--resume", "run").exit_code == 0


def test_help_lists_all_mixing_priors():
    assert all(name in options.MIXING for name in (*mixing.NAMES, "smooth"))


@pytest.mark.slow
def test_select_tells_of_progress_and_edges(files, monkeypatch):
    """A line for each fit, a word about the end of the range, and a table that is not cut."""
    monkeypatch.chdir(files[0])
    monkeypatch.setenv("COLUMNS", "50")
    result = invoke("select", "rows.npy", "-p", "1-2", "--max-iter", 20)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if " of 2: " in line]
    assert [line.split(",")[:2] for line in lines] == [
        ["1 of 2: prior bg", " 1 component"],
        ["2 of 2: prior bg", " 2 components"],
    ]
    header, *rows, chosen, edge, assumed = (
        line for line in result.output.splitlines() if line not in lines
    )
    assert header.split()[:3] == ["prior", "p", "log"]
    assert header.split()[-4:] == ["BIC", "noise", "alpha", "converged"]
    assert [float(row.split()[5]) for row in rows] == pytest.approx(
        [float(line.split()[-1]) for line in lines], rel=1e-4
    )
    assert "Chosen by bic: 2 components" in chosen
    assert edge.startswith("2 is the largest number of components tried")
    assert assumed == "The criterion assumes that rows are independent of each other."


@pytest.mark.parametrize(("width", "last"), [(90, "converged"), (60, "converged"), (30, "BIC")])
def test_tables_on_narrow_terminals(monkeypatch, capsys, width, last):
    """What matters is shown, what is not is named, and no number is cut."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    headings = list(printing.SELECTION_HEADINGS.values())
    columns = {name: [12345.678] for name in headings if name not in ("behind by", "+-  ")}
    expendable = [name for name in printing.EXPENDABLE if name != "BIC"]
    printing.print_table(columns, expendable)
    header, row, *note = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert header.split()[-1] == last
    assert "BIC" in header
    assert "…" not in header + row
    assert len(row) <= width
    assert bool(note) == (width < 90)
    left_out = set(columns) - set(re.split(r" {2,}", header.strip()))
    assert all(name in note[0] for name in left_out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["select", "rows.csv", "-p", "2-x"], "is not a list of numbers"),
        (["select", "rows.csv", "--prior", "bg,gauss"], "Unknown prior 'gauss'"),
        (["select", "rows.npz", "--array", "Y"], "has no array 'Y'"),
        (["select", "missing.csv"], "There is no file"),
        (["fit", "rows.csv", "--mixing-prior", "flat"], "'normal', 'sparse', 'nonnegative', None"),
        (["compare", "rows.csv", "sex"], "neither a file nor one value"),
        (["compare", "rows.csv", "group", "--between", "patient,other"], "No row has the label"),
        (["compare", "rows.csv", "group", "--between", "patient"], "give two labels"),
        (["compare", "rows.csv", "group", "--covariates", "age"], "neither a file nor one value"),
        (["compare", "rows.csv", "group", "--covariates", "group"], "groups follow from the"),
        (
            ["compare", "rows.npz", "group", "--array", "X", "--categorical", "ages"],
            "--categorical ages: it is not among --covariates, which are not given",
        ),
    ],
)
def test_errors_are_one_line(files, monkeypatch, arguments, message):
    monkeypatch.chdir(files[0])
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_version_and_help():
    assert (
        CliRunner().invoke(app, ["--version"]).output.strip() == f"noisyica {noisyica.__version__}"
    )
    assert "demo" in CliRunner().invoke(app, ["--help"]).output
    assert subprocess.run(
        [sys.executable, "-m", "noisyica", "--version"], capture_output=True, check=True
    ).stdout.startswith(b"noisyica")


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_does_not_wait_for_jax(arguments):
    """What takes seconds to import is not imported to show help."""
    program = f"""
import sys
from typer.testing import CliRunner
from noisyica.app.command_line import app

result = CliRunner().invoke(app, {arguments!r})
assert result.exit_code == 0 and "noisy" in result.output, result.output
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    imported = set(output.decode().split())
    assert {"noisyica", "typer"} <= imported
    assert not imported & {"jax", "jaxlib", "sklearn", "scipy", "matplotlib", "numpy"}


def test_help_lists_all_priors():
    assert tuple(priors.TABLE) == options.PRIORS


def test_public_names():
    for name in noisyica.__all__:
        assert getattr(noisyica, name) is not None
    assert set(noisyica.__all__) | {"data", "report", "__version__"} <= set(dir(noisyica))
    program = "import noisyica; print(noisyica.data.read, noisyica.report.write, noisyica.plot)"
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    star = "from noisyica import *; print(NoisyICA, Model, priors.get, laws, select, plot)"
    subprocess.run([sys.executable, "-c", star], capture_output=True, check=True)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        noisyica.nonsense  # noqa: B018
    with pytest.raises(ImportError):
        from noisyica import nonsense  # noqa: F401


def test_overview_wants_images_that_fit():
    X = np.random.default_rng(0).normal(size=(40, 12))
    ica = NoisyICA(2, max_iter=10, tol=0, random_state=0).fit(X)
    assert plot.overview(ica, X, image_shape=(3, 4), n_rows=2)
    with pytest.raises(ValueError, match="does not hold the 12 columns"):
        plot.overview(ica, X, image_shape=(5, 5))


NEIGHBOURS = ("noisyica.eeg.", "noisyica.neuro.", "noisyica.omics.")
"""Rooms whose examples need other libraries: tests/neighbours runs them."""
MODULES = [
    m.name
    for m in pkgutil.walk_packages(noisyica.__path__, "noisyica.")
    if not m.name.endswith("__main__") and not m.name.startswith(NEIGHBOURS)
]


@pytest.mark.parametrize("name", some_slow(MODULES, *(f"noisyica.{m}" for m in LONG_EXAMPLES)))
def test_docstring_examples(name):
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failures == 0


@pytest.mark.parametrize("document", some_slow(DOCUMENTS, *LONG_DOCUMENTS), ids=lambda d: d.name)
def test_documents_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for kind, text in re.findall(r"```(python|console)\n(.*?)```", document.read_text(), re.DOTALL):
        if kind == "python":
            exec(compile(text, document.name, "exec"), namespace)
            continue
        for line in text.splitlines():
            _, command, *arguments = shlex.split(line)
            assert command == "noisyica"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, f"{line}: {result.output}"


def test_commands_in_readme_exist():
    commands = re.findall(
        r"^(make \w+|noisyica [^\n]*)$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert {"make demo", "make test"} <= set(commands)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands:
        if command.startswith("make"):
            assert command.split()[1] in targets
        else:
            assert CliRunner().invoke(app, [command.split()[1], "--help"]).exit_code == 0


def test_versions_agree():
    text = {
        name: (ROOT / name).read_text()
        for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")
    }
    assert f'version = "{noisyica.__version__}"' in text["pyproject.toml"]
    assert re.search(rf"^version: ['\"]?{noisyica.__version__}", text["CITATION.cff"], re.MULTILINE)
    assert f"## [{noisyica.__version__}]" in text["CHANGELOG.md"]
