"""The worked examples with MNE and nilearn run, draw, and show what their conclusions say."""

import pytest

from tests.examples import NEIGHBOURS, check_quickly, run

pytestmark = pytest.mark.filterwarnings("ignore:::(mne|nilearn)")


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_an_example_runs(name):
    check_quickly(name)


def eeg_artefacts(v):
    errors = v["errors"]
    names = ("noisyica, clean", "noisyica, apply", "Infomax, apply", "nothing taken out")
    assert [*sorted(errors, key=errors.get)] == [*names]
    elsewhere = {name: error[~v["near"]].mean() for name, error in v["by_channel"].items()}
    assert elsewhere["noisyica, apply"] < elsewhere["nothing taken out"]
    assert elsewhere["nothing taken out"] < elsewhere["Infomax, apply"]
    left = {name: v["true"][0] - values[0] for name, values in v["microvolts"].items()}
    left = {name: values[v["dips"]].mean() for name, values in left.items()}
    assert left["noisyica, clean"] > left["noisyica, apply"] > left["Infomax, apply"]


def resting_state(v):
    assert (v["correlations"] > v["correlations_of_canica"] + 0.05).all()
    assert v["correlations_of_canica"].min() > 0.5
    assert (v["on"] & (v["maps"] > 0)).sum() > 0.9 * v["on"].sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_an_example_shows_what_its_conclusion_says(name):
    variables, _ = run(name)
    globals()[name](variables)
