"""What a fit says in words: the right ones for laws, noises and components that are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from noisyica import NoisyICA, priors
from noisyica.engine.findings import describe
from noisyica.laws import Normal, NormalScales
from tests.tools import simulate


def fitted(prior, noise=1.0, **more):
    """Return something like a fitted estimator of three components."""
    given = {
        "prior_": prior.for_components(3),
        "noise_variance_": noise,
        "components_": np.ones((3, 10)),
        "explained_variance_ratio_": np.array([0.3, 0.2, 0.1]),
    }
    return SimpleNamespace(**(given | more))


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (priors.get("log"), "heavy-tailed"),
        (priors.get("lap"), "heavy-tailed"),
        (priors.get("eg"), "very heavy-tailed"),
        (priors.Independent(Normal()), "nearly normal"),
        (priors.BernoulliGaussian(alpha=0.2), "mostly off (80 % zero), not heavy"),
        (priors.BernoulliGaussian(alpha=0.8), "partly off (20 % zero), not heavy"),
        (priors.Independent(NormalScales((1.0, 8.0), (0.95, 0.05))), "very heavy-tailed"),
    ],
    ids=str,
)
def test_coefficients(prior, words):
    """Shares of zeros are of 20,000 draws: their standard error is .3 %."""
    found = describe(fitted(prior))["coefficients"]
    if "off" not in words:
        assert found == words
    else:
        assert found.split(" (")[0] == words.split(" (")[0]
        assert found.endswith(words.rpartition(", ")[2])
        shares = [float(text.split("(")[1].split(" %")[0]) for text in (found, words)]
        assert abs(shares[0] - shares[1]) <= 1.5


def test_noise():
    prior = priors.get("bg")
    assert describe(fitted(prior))["noise"] == "the same in all columns, normal"
    equal = describe(fitted(prior, np.linspace(1, 1.2, 10)))["noise"]
    assert equal == "about equal in all columns, normal"
    unequal = describe(fitted(prior, np.geomspace(0.01, 1, 10)))["noise"]
    assert unequal.startswith("unequal between columns (standard deviation 0.13 to 0.8")
    weights = np.array([0.1, 1.0, 1.2, 0.15])
    student = describe(fitted(prior, noise_dof_=3.0, row_weights_=weights))["noise"]
    assert "3 degrees of freedom" in student
    assert student.endswith("2 of 4 rows outlying")


def test_components():
    probability = np.full((3, 10), 0.2)
    words = describe(fitted(priors.get("bg"), components_probability_=probability))["components"]
    assert words == "3, 60 % of the variance, sparse (20 % of their entries on)"
    words = describe(fitted(priors.get("bg"), reliability_=np.array([0.99, 0.97, 0.5])))
    assert words["components"].endswith("2 of them reliable")


@pytest.mark.slow
def test_a_fit_says_it():
    _, X = simulate("bg", n=200, d=8, p=2)
    X[:4] *= 30
    ica = NoisyICA(2, noise="auto", mixing_prior="sparse", max_iter=60, random_state=0).fit(X)
    words = ica.describe()
    assert list(words) == ["coefficients", "noise", "components"]
    assert "off" in words["coefficients"]
    assert "rows outlying" in words["noise"]
    assert "entries on" in words["components"]
