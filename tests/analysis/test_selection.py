"""Scores, information criteria, and the choice of the number of components and of the prior."""

import sys

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import noisyica
from noisyica import Model, NoisyICA, Selection, laws, plot, priors
from tests.tools import matched_cosine, simulate

INTERVALS = np.kron(np.eye(4), np.ones((6, 1)))


def test_score_aic_and_bic_are_of_the_likelihood():
    model, X = simulate("bg", n=75, d=12, p=2)
    ica = NoisyICA(2, prior="bg", max_iter=50, tol=0, random_state=0).fit(X)
    likelihood = ica.model_.log_likelihood(X)
    np.testing.assert_array_equal(ica.score_samples(X), likelihood)
    assert ica.score(X) == likelihood.mean()
    assert ica.n_parameters_ == 12 * 2 + 12 + 1 + 1  # A, the mean, the noise, alpha
    assert ica.aic(X) == pytest.approx(-2 * likelihood.sum() + 2 * 38)
    assert ica.bic(X) == pytest.approx(-2 * likelihood.sum() + np.log(75) * 38)


@pytest.mark.parametrize(
    ("prior", "count"),
    [
        ("log", 0),
        ("ifa", 2),
        ("bg", 1),
        ("te", 1),
        ("teoff", 2),  # and the scale of its offset
        (priors.GaussianMixture((1.0, 2.0), (0.5, 0.3, 0.2)), 4),
        (
            priors.GaussianMixture(
                (1.0,), (0.5, 0.5), shared=False, symmetric=False
            ).for_components(3),
            6,
        ),
        (priors.BernoulliGaussian().shifted(), 2),
        (priors.Logistic().shifted(), 1),
        (priors.Offset("bg"), 2),
        (laws.Mixture((laws.Dirac(), laws.Laplace(), laws.Normal()), (0.5, 0.3, 0.2)), 2),
    ],
    ids=str,
)
def test_number_of_parameters(prior, count):
    assert priors.get(prior).n_parameters == count


@pytest.mark.slow
def test_grid_search():
    X, _ = Model(INTERVALS[:12, :2], noise_variance=0.1, prior="bg").sample(150, random_state=0)
    search = GridSearchCV(
        NoisyICA(max_iter=100, tol=0, random_state=0), {"n_components": [1, 2]}, cv=2, refit=False
    ).fit(X)
    assert search.best_params_ == {"n_components": 2}


@pytest.mark.slow
def test_bic_finds_the_number_of_components_and_pictures_it():
    X, _ = Model(
        INTERVALS, noise_variance=0.25, prior=priors.BernoulliGaussian(0.5, shift=2.0)
    ).sample(400, random_state=0)
    result = noisyica.select(
        X,
        n_components=[5, 3, 4],
        priors="bg",
        mean="shift",
        max_iter=300,
        random_state=0,
        verbose=False,
    )
    assert list(result.table_["n_components"]) == [3, 4, 5]
    assert result.best_.n_components == 4
    assert result.best_.mixing_prior is None
    assert matched_cosine(INTERVALS, result.best_.mixing_) > 0.99
    assert result.table_["bic"][1] == pytest.approx(result.best_.bic(X))
    assert result.table_["alpha"][1] == pytest.approx(0.5, abs=0.06)
    # a fit with more components is never offered worse than what the last one left
    assert (np.diff(result.table_["log_likelihood"]) > -0.1).all()
    assert repr(result).startswith("Selection(best: 4 components, prior BernoulliGaussian(alpha=")
    axes = result.plot()
    assert axes.get_ylabel() == "BIC (the lower the better)"
    assert [line.get_label() for line in axes.get_lines()][-1] == "chosen"
    assert plot.selection(result, axes) is axes


@pytest.mark.slow
def test_held_out_likelihood_finds_the_prior(monkeypatch):
    model = Model(
        np.random.default_rng(0).normal(size=(16, 3)),
        noise_variance=0.25,
        prior=priors.BernoulliGaussian(0.3),
    )
    X, _ = model.sample(400, random_state=0)
    monkeypatch.setitem(sys.modules, "pandas", None)  # then the table is a dictionary
    result = noisyica.select(
        X, 3, ["lap", "bg"], "heldout", cv=2, max_iter=200, tol=0, verbose=False
    )
    assert isinstance(result.table_, dict)
    assert isinstance(result.best_.prior_, priors.BernoulliGaussian)
    assert result.best_.n_features_in_ == 16
    behind, error = (result.table_[name] for name in ("behind", "behind_error"))
    assert behind[1] == error[1] == 0
    assert behind[0] > 4 * error[0] > 0
    assert result.plot().get_ylabel() == "mean log likelihood of held-out rows"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": []}, "n_components must be one or several integers of at least 1"),
        ({"n_components": [0, 2]}, "n_components must be one or several integers of at least 1"),
        ({"priors": []}, "priors must name at least one prior"),
        ({"priors": ["bg", "gauss"]}, "Unknown prior 'gauss'"),
        ({"criterion": "cv"}, "criterion='cv' is not known. Choose 'bic', 'aic' or 'heldout'"),
        ({"criterion": "heldout", "cv": 1}, "cv must be an integer from 2 to"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        noisyica.select(np.random.default_rng(0).normal(size=(20, 4)), **change)


@pytest.mark.parametrize(
    ("best", "tried", "edge"),
    [
        (4, [2, 3, 4], "largest"),
        (2, [2, 3, 4], "smallest"),
        (1, [1, 2], None),
        (3, [2, 3, 4], None),
        (3, [3, 3], None),
    ],
)
def test_the_end_of_the_range_is_mentioned(best, tried, edge):
    ica = NoisyICA(best)
    ica.components_, ica.prior_ = np.zeros((best, 5)), priors.get("bg")
    result = Selection(ica, [{"n_components": p} for p in tried], "bic")
    assert result.edge_ == edge
    assert (f"the {edge} number tried" in repr(result)) == (edge is not None)
