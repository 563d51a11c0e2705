"""Pictures of tables: named columns, standard errors, classes, and figures that are shown."""

import subprocess
import sys
import types

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest

from noisyica import Model, NoisyICA, plot
from noisyica.data import Lines
from noisyica.plot.classes import between
from tests.fitted import fitted
from tests.plot.test_plot import drawn

NAMES = np.array([f"gene {word}" for word in "abcdefghijklmnopqrstuvwxyz"])


@pytest.fixture(scope="module")
def frame():
    """A table of 26 named columns."""
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(26, 3)), rng.normal(size=26), 0.1, "lap")
    return pandas.DataFrame(model.sample(40, random_state=0)[0], columns=NAMES)


@pytest.fixture(scope="module")
def table(frame):
    """A short fit of it."""
    settings = {"max_iter": 4, "tol": 0, "random_state": 0, "verbose": False}
    return NoisyICA(3, prior="lap", **settings).fit(frame)


def labels_of(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_top_columns_by_name_with_errors(table):
    table.standard_errors_ = {"components": np.full((3, 26), 0.07)}
    mean, *rest = drawn(plot.components(table))
    del table.standard_errors_
    assert mean.get_title() == "Mean"
    for j, axes in enumerate(rest):
        component = table.components_[j]
        top = np.argsort(-np.abs(component))[:20]
        assert labels_of(axes) == NAMES[top].tolist()
        assert np.allclose([bar.get_width() for bar in axes.patches], component[top])
        segments = axes.collections[0].get_segments()
        assert np.allclose([np.ptp(line[:, 0]) for line in segments], 0.14)
        assert axes.get_title() == (
            f"Component {j}: {100 * table.explained_variance_ratio_[j]:.1f} %"
        )
        assert all(len(line.get_xdata()) < 3 for line in axes.lines)  # nothing joins the columns


def test_few_columns_keep_their_order(table):
    values = np.array([1.0, -5.0, 3.0])
    (axes,) = drawn(plot.components(values, Lines(np.array(["b", "c", "a"]))))
    assert labels_of(axes) == ["b", "c", "a"]
    assert [bar.get_width() for bar in axes.patches] == [1, -5, 3]


@pytest.mark.parametrize(
    ("names", "ordered", "signal"),
    [
        (["0.5", "1.0", "1.5"], None, True),
        (["column0", "column1", "column2"], None, True),
        (["3", "1", "2"], None, False),
        (["age", "height", "weight"], None, False),
        (["age", "height", "weight"], True, True),
        (["1", "2", "3"], False, False),
    ],
)
def test_which_columns_are_a_signal(names, ordered, signal):
    layout = Lines(np.array(names), ordered)
    assert layout.signal == signal
    (axes,) = drawn(plot.components(np.arange(3.0), layout))
    assert any(len(line.get_xdata()) == 3 for line in axes.lines) == signal


def test_reconstruction_of_a_data_frame(table, frame):
    """Rows are taken by their place, whatever the index, and names raise no warning."""
    moved = frame.set_index(np.arange(100, 140))
    axes = drawn(plot.reconstruction(table, moved, rows=[0, 3], n_parts=1))
    row = frame.to_numpy()[3]
    assert axes[4].get_title() == "Row 3"
    names = labels_of(axes[4])
    assert names == labels_of(axes[5]) == labels_of(axes[7])
    places = [int(np.flatnonzero(name == NAMES)[0]) for name in names]
    assert np.allclose(axes[4].lines[-1].get_xdata(), row[places])
    assert set(places) == set(np.argsort(-np.abs(row - table.mean_))[:20])
    assert axes[7].get_title().startswith("Component ")


def test_coefficients_by_class(table, frame):
    labels = np.where(np.arange(40) < 15, "x", "y")
    beta = table.transform(frame)
    axes = drawn(plot.coefficients(table, frame, labels))
    assert len(axes) == 3
    assert labels_of(axes[0]) == ["x (15)", "y (25)"]
    medians = [line.get_xdata() for line in axes[1].lines if line.get_markersize() == 4]
    expected = [np.median(beta[labels == one, 1]) for one in "xy"]
    assert np.allclose(np.concatenate(medians), expected)
    for j, one in enumerate(axes):
        index = (labels == "y").astype(int)
        assert one.get_title() == f"Component {j}: {100 * between(beta[:, j], index):.0f} %"
    again = drawn(plot.coefficients(table, beta, labels))
    assert [one.get_title() for one in again] == [one.get_title() for one in axes]
    with pytest.raises(ValueError, match="40 different values"):
        plot.coefficients(table, beta, np.arange(40))
    with pytest.raises(ValueError, match="one for each of the 40 rows"):
        plot.coefficients(table, beta, labels[:7])


def test_share_between_classes():
    """It is the R^2 of the regression on indicators of the classes."""
    rng = np.random.default_rng(0)
    index = rng.integers(0, 4, 50)
    beta = rng.normal(size=50) + 0.8 * index
    design = np.eye(4)[index]
    left = beta - design @ np.linalg.lstsq(design, beta, rcond=None)[0]
    assert between(beta, index) == pytest.approx(1 - left.var() / beta.var())
    assert between(np.zeros(50), index) == 0


def test_overview_of_a_table_has_its_columns(table, frame):
    """They were an image before, of any shape that holds them."""
    axes = drawn(plot.overview(table, frame, n_rows=2))
    assert [one.get_title() for one in axes[:6]] == [
        "Mean",
        *(f"Component {j}: {100 * s:.1f} %" for j, s in enumerate(table.explained_variance_ratio_)),
        "Row 0",
        "Reconstruction",
    ]
    assert all(set(labels_of(one)) <= set(NAMES) for one in axes)
    assert not any(one.images for one in axes)


def test_figures_belong_to_pyplot(table, frame):
    model = Model(np.eye(4, 2), None, 0.1, "lap")
    several = fitted(model)
    several.stability_ = np.ones((2, 2))
    made = [
        plot.components(table),
        plot.reconstruction(table, frame, rows=[0]),
        plot.overview(table, frame, image_shape=(2, 13)),
        plot.coefficients(table, frame, np.zeros(40)),
        plot.convergence(table),
        plot.activation(table, table.transform(frame)).figure,
        plot.stability(several).figure,
    ]
    assert [figure.number for figure in made] == plt.get_fignums()
    axes = plt.figure().subplots()
    plot.stability(several, axes)
    assert len(plt.get_fignums()) == len(made) + 1  # what is given is drawn on


def test_notebook_shows_a_figure_once(table, monkeypatch):
    """As the value of a cell it is shown at once, and pyplot has nothing to show at its end."""
    shown = []
    module = types.ModuleType("IPython.display")
    module.Image, module.display = bytes, shown.append
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    figure = plot.components(table)
    figure._ipython_display_()
    assert [image[:4] for image in shown] == [b"\x89PNG"]
    assert not plt.get_fignums()
    figure._ipython_display_()  # in a later cell
    assert len(shown) == 2


def test_importing_chooses_no_backend():
    code = "import sys, noisyica.plot; print('matplotlib.pyplot' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]
