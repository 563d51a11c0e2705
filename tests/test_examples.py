"""The worked examples run, draw pictures, and show what their conclusions say.

Those that need other libraries are run in tests/neighbours.
"""

import re

import numpy as np
import pytest

from tests.examples import NEIGHBOURS, PATHS, SMALLER, check_quickly, run, text_of

OURS = [name for name in PATHS if name not in NEIGHBOURS]


@pytest.mark.parametrize("name", PATHS)
def test_an_example_has_a_title_a_question_and_a_conclusion(name):
    text = text_of(name)
    title, line, space, question = text.removeprefix('"""\n').split("\n")[:4]
    assert len(line) == len(title)
    assert set(line) == {"="}
    assert (space, question.startswith("**The question.** ")) == ("", True)
    assert len(re.findall(r"^# %%$", text, re.MULTILINE)) >= 4
    conclusion = text.split("# Conclusion\n# ----------\n#\n")[1]
    assert len(conclusion.split()) > 40
    assert "plt.show()" in text


@pytest.mark.parametrize("name", PATHS)
def test_no_result_stands_in_a_conclusion_as_a_number(name):
    """Results are printed by the example: in words they would be wrong with the next version."""
    assert not re.search(r"\d\.\d|\d ?%", text_of(name).split("# Conclusion\n")[1])


def test_what_is_made_smaller_is_in_an_example():
    assert set(SMALLER) <= set(PATHS)


@pytest.mark.parametrize("name", OURS)
def test_an_example_runs(name):
    check_quickly(name)


# ---------------------------------------------------------------- what the conclusions rest on


def denoising(v):
    decibels = v["decibels"]
    assert decibels["noisyica"] > 0.5 + max(decibels["PCA"], decibels["dictionary learning"])
    assert v["sigma"] < np.sqrt(v["ica"].noise_variance_) < 1.1 * v["sigma"]


def parts(v):
    cosines = {name: cosines for name, (_, cosines) in v["learnt"].items()}
    assert cosines["noisyica"].min() > 0.98
    assert cosines["noisyica"].mean() > max(cosines["NMF"].mean(), cosines["NMF, 10 parts"].mean())


def foetal_ecg(v):
    correlation = {name: value for name, (_, value) in v["found"].items()}
    assert correlation["noisyica"] > correlation["FastICA, noise known"] + 0.05
    assert correlation["FastICA, noise known"] > correlation["FastICA"] + 0.3
    assert v["hits"] >= len(v["child"]) - 1
    assert v["false"] <= 2


def gene_expression(v):
    cosines = {name: v["matched"](rows)[1] for name, rows in v["found"].items()}
    assert cosines["teoff"].min() > 0.85
    assert cosines["bg"].min() < 0.5
    assert abs(cosines["teoff"].mean() - cosines["bg, one component more"].mean()) < 0.03
    assert max(cosines[name].min() for name in cosines if "FastICA" in name) < 0.8
    assert v["error"] < 0.3 * v["offset"].std()


def sparse_nonnegative(v):
    of_spectra = {name: cosines.mean() for name, (_, cosines) in v["learnt_spectra"].items()}
    assert of_spectra["noisyica"] > of_spectra["NMF"]  # of strong noise
    sparse, dense, others = (cosines.mean() for _, cosines in v["learnt_genes"].values())
    assert sparse > dense + 0.03
    assert abs(sparse - others) < 0.03
    assert (v["called"] & ~v["true"]).sum() < 0.05 * v["called"].sum()


def how_many(v):
    assert (v["chosen"].best_.prior, len(v["chosen"].best_.components_)) == ("bg", 5)
    fits = v["fits"]
    assert [len(ica.components_) for ica in fits.values()] == [5, 5]
    assert fits["sparse"].reliability_.min() > 0.96
    assert v["cosines"]["sparse"].min() > 0.96
    assert np.median(fits["normal"].reliability_) < 0.8
    assert v["cosines"]["normal"].min() < 0.8


def missing_values(v):
    errors = v["errors"]
    assert errors["noisyica"] < 0.9 * errors["ten nearest rows"]
    assert 0.9 < errors["noisyica"] / errors["iterated regressions"] < 1.1
    np.testing.assert_allclose(v["held"], v["levels"], atol=0.06)


def own_law(v):
    for name in ("log", "adaptive"):
        behind = v["own"] - v["fits"][name].score_samples(v["new"])
        assert behind.mean() > 2 * behind.std() / np.sqrt(len(behind))
    assert v["fits"]["own"].prior_.law.a > 1.5
    assert all(v["cosines"](ica).min() > 0.95 for ica in v["fits"].values())


def surface_groups(v):
    age, disease, *others = v["order"]
    without, given = (v[name].component_p_values_adjusted for name in ("without_age", "given_age"))
    assert max(without[age], without[disease], given[disease]) < 0.05
    assert min(given[age], *given[others]) > 0.05
    smooth, plain = (np.abs(v["cosines"](v[name].components_)).max(1) for name in ("ica", "plain"))
    assert smooth.mean() > plain.mean()


def dask_cluster(v):
    assert v["difference"] < 0.01 * np.abs(v["here"].components_).max()
    units = v["units"]
    assert np.abs(units[0] @ units[1].T).max(1).min() > 0.99


def gpu(v):
    for ica in v["fits"].values():
        assert ica.noise_variance_ == pytest.approx(1, abs=0.01)
    assert "computes on" in v["told"].stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_an_example_shows_what_its_conclusion_says(name):
    variables, _ = run(name)
    globals()[name](variables)
