"""The picture of learnt laws shows these laws, and the coefficients beside them."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from noisyica import Model, plot, priors
from noisyica.laws import NormalScales
from noisyica.plot.densities import SELDOM, histograms
from noisyica.priors.adaptive import SCALES
from tests.fitted import fitted

WEIGHTS = np.array([[0.97, 0, 0, 0, 0.02, 0.01, 0, 0], [0.001, 0, 0.1, 0.2, 0.5, 0.199, 0, 0]])


def own(weights):
    """Return the adaptive prior of components that have these weights (p, K)."""
    return priors.Adaptive()._with(NormalScales(SCALES, np.maximum(weights, 1e-9)), len(weights))


@pytest.fixture
def ica():
    model = Model(np.random.default_rng(0).normal(size=(6, 2)), None, 0.1, "adaptive")
    estimator = fitted(model)
    estimator.prior_ = own(WEIGHTS)
    return estimator


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("with_values", [False, True])
def test_each_component_has_its_law(ica, with_values):
    beta = np.random.default_rng(1).normal(size=(500, 2)) * [0, 1] if with_values else None
    axes = plot.density(ica, beta).axes
    for j, one in enumerate(axes):
        x, y = one.lines[0].get_data()
        away = np.abs(x) > 0.01
        np.testing.assert_allclose(y[away], ica.prior_.density(x[away])[j], rtol=1e-5)
        assert bool(one.patches) == with_values
    titles = [one.get_title() for one in axes]
    assert titles == ["Component 0: 97 % exactly 0", "Component 1"]
    assert WEIGHTS[1, 0] < SELDOM
    assert [len(one.lines) for one in axes] == [2, 1]  # no stem where zeros are next to impossible
    np.testing.assert_allclose(axes[0].lines[1].get_data(), [[0.0], [0.97]], atol=1e-6)


def test_bars_and_atom_are_all_coefficients(ica):
    """Bars integrate to the share that is not zero; a law's density does so, to its own."""
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(4000, 2)) * (rng.random((4000, 2)) < [0.3, 1])
    found = histograms(ica.prior_, draws)
    np.testing.assert_allclose(found.shares[:, 0], (draws == 0).mean(0))
    area = (found.heights * np.diff(found.edges)).sum(1)
    np.testing.assert_allclose(area + found.shares[:, 0], 1, atol=0.005)
    assert found.top(0) >= found.heights[0].max()


@pytest.mark.parametrize("p", [1, 12])
def test_any_number_of_components(ica, p):
    ica.components_, ica.prior_ = np.eye(p, 13), own(np.repeat(WEIGHTS[1:], p, 0))
    figure = plot.density(ica)
    figure.canvas.draw()  # where axes have no room, a warning is an error
    assert sum(one.has_data() for one in figure.axes) == p


def test_bands_are_each_component_s_own(ica):
    """Of coefficients without zeros, activation shows where the prior has nine tenths of them."""
    wide = np.array([[0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 0.0]])
    ica.prior_ = own(wide)
    band = plot.activation(ica, np.ones((10, 2))).patches[0].get_data()
    # a quantile of 20,000 normal draws has a standard error of .013
    np.testing.assert_allclose(band.values, [1.645, 4 * 1.645], rtol=0.04)
    np.testing.assert_allclose(band.baseline, [-1.645, -4 * 1.645], rtol=0.04)
