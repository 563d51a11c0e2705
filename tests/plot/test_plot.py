"""Pictures show what was asked for."""

import copy
import io
import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from noisyica import Model, NoisyICA, laws, plot, priors
from noisyica.data import Images, Lines, Mesh, Volume
from noisyica.plot import layouts
from noisyica.posterior.marginal import marginal
from noisyica.posterior.offsets import offsets
from tests.fitted import fitted

N, D, P = 80, 12, 3


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    return Model(rng.normal(size=(D, P)), rng.normal(size=D), 0.1, priors.BernoulliGaussian(0.4))


@pytest.fixture(scope="module")
def X(model):
    return model.sample(N, random_state=0)[0]


@pytest.fixture(scope="module")
def ica(model):
    return fitted(model)


def drawn(figure):
    """Draw a figure, and return those of its axes that show something."""
    figure.savefig(io.BytesIO(), dpi=20)
    return [axes for axes in figure.axes if axes.has_data()]


def test_components_as_images(ica):
    first, *rest = drawn(plot.components(ica, image_shape=(3, 4)))
    assert first.get_title() == "Mean"
    assert np.allclose(first.images[0].get_array(), ica.mean_.reshape(3, 4))
    limit = np.abs(ica.components_).max()
    assert len(rest) == P
    for axes, component, share in zip(
        rest, ica.components_, ica.explained_variance_ratio_, strict=True
    ):
        assert np.allclose(axes.images[0].get_array(), component.reshape(3, 4))
        assert axes.images[0].get_clim() == (-limit, limit)
        assert f"{100 * share:.1f} %" in axes.get_title()


@pytest.mark.parametrize("shape", [(3, 4), (6, 2)])
def test_titles_do_not_overlap(shape):
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(12, 14)), rng.normal(size=12), 1e-2, priors.Laplace())
    many, X = fitted(model), 10 * model.sample(2, random_state=0)[0]
    for figure in (
        plot.components(many, image_shape=shape),
        plot.reconstruction(many, X, image_shape=shape),
        plot.overview(many, X, image_shape=shape),
    ):
        figure.canvas.draw()
        boxes = [axes.title.get_window_extent() for axes in figure.axes if axes.get_title()]
        assert len(boxes) >= 14
        assert min(box.x0 for box in boxes) >= 0
        assert max(box.x1 for box in boxes) <= figure.bbox.x1
        for one, other in itertools.combinations(boxes, 2):
            assert not one.overlaps(other)


def test_rows_in_every_layout():
    values = np.arange(12.0) - 3
    values[4] = np.nan
    times = [f"{0.5 * k}" for k in range(12)]
    (axes,) = drawn(plot.components(values, Lines(np.array(times))))
    assert np.array_equal(axes.lines[-1].get_ydata(), values, equal_nan=True)
    assert [label.get_text() for label in axes.get_xticklabels()] == times
    (axes,) = drawn(plot.components(values, Images(np.array([2, 2, 3]))))
    limit = np.nanmax(np.abs(values))
    assert np.allclose(axes.images[0].get_array()[0, 0], (values[:3] + limit) / (2 * limit))
    mask = np.zeros((3, 4, 2), bool)
    mask[:2, :3] = True
    (axes,) = drawn(plot.components(values, Volume(mask, np.eye(4))))
    assert np.nanmax(axes.images[0].get_array()) == 8
    (axes,) = drawn(plot.components(values, _mesh()))
    assert sum(len(part.get_paths()) for part in axes.collections) == 2 * len(_mesh().faces)


@pytest.fixture
def sparse(ica):
    """An estimator with probabilities of the entries, the last five of which are off."""
    other = copy.copy(ica)
    other.components_probability_ = np.tile(np.where(np.arange(D) < 7, 0.9, 0.2), (P, 1))
    return other


def test_entries_that_are_off_are_grey(sparse, X):
    on, layout = np.arange(D) < 7, Images(np.array([3, 4]))
    figure = plot.components(sparse, layout)
    mean, *rest = drawn(figure)
    assert figure.get_suptitle().endswith("grey: probably zero")
    assert len(mean.images) == 1
    for axes in rest:
        grey = axes.images[1].get_array()
        assert np.array_equal(np.ma.getmaskarray(grey), on.reshape(3, 4))
    *_, part = drawn(plot.reconstruction(sparse, X, [0], layout))
    assert np.array_equal(np.ma.getmaskarray(part.images[1].get_array()), on.reshape(3, 4))
    _, axes, *_ = drawn(plot.components(sparse))
    whole, coloured = axes.lines[-2:]
    assert np.allclose(whole.get_ydata(), sparse.components_[0])
    assert np.array_equal(np.isnan(coloured.get_ydata()), ~on)
    assert whole.get_color() == layouts.OFF
    _, axes, *_ = drawn(plot.components(sparse, Images(np.array([2, 2, 3]))))
    pixels = axes.images[0].get_array().ravel()
    assert np.array_equal(pixels == 0.5, ~on)


def test_entries_that_are_off_are_grey_in_tables(sparse):
    names = np.array([f"gene {word}" for word in "abcdefghijkl"])
    sparse.standard_errors_ = {"components": np.full((P, D), 0.1)}
    _, axes, *_ = drawn(plot.components(sparse, Lines(names)))
    greys = [bar.get_facecolor()[:3] == to_rgb(layouts.OFF) for bar in axes.patches]
    assert greys == [False] * 7 + [True] * 5
    faint = [label.get_color() == "0.6" for label in axes.get_yticklabels()]
    assert faint == greys
    errors = axes.collections[0].get_colors()
    assert [tuple(ink[:3]) == to_rgb(layouts.OFF) for ink in errors] == greys


def test_entries_that_are_off_are_grey_in_volumes_and_meshes(sparse):
    mask = np.zeros((3, 4, 2), bool)
    mask[:2, :3] = True
    layout, on = Volume(mask, np.eye(4)), np.arange(D) < 7
    _, axes, *_ = drawn(plot.components(sparse, layout))
    where = layouts.peak(layout, sparse.components_[0])
    expected = layouts.mosaic(layout, np.where(on, np.nan, 1.0), where)
    assert np.array_equal(np.ma.getmaskarray(axes.images[1].get_array()), np.isnan(expected))
    sparse.components_probability_ = np.zeros((P, D))
    _, axes, *_ = drawn(plot.components(sparse, _mesh()))
    colours = axes.collections[0].get_facecolors()[:, :3]
    assert np.allclose(colours, colours[:, :1])


def _mesh():
    """Return a bent strip of triangles with 12 vertices."""
    k = np.arange(12)
    return Mesh(
        np.stack([k // 2, 2.0 * (k % 2), 0.1 * k**1.5 / 4], 1),
        np.stack([k[:-2], k[1:-1], k[2:]], 1),
    )


def test_volume_is_cut_through_its_peak():
    mask = np.ones((4, 5, 3), bool)
    mask[0] = False
    volume = np.random.default_rng(0).normal(size=mask.shape)
    volume[2, 1, 2] = 9.0
    sizes = np.diag([1.0, 1.0, 2.0, 1.0])
    image = layouts.mosaic(Volume(mask, sizes), volume[mask])
    inside = np.where(mask, volume, np.nan)
    assert image.shape == (6, 4 + 4 + 5 + 3)  # the third axis has voxels twice as long
    assert np.array_equal(image[0:5, :4], inside[:, :, 2].T[::-1], equal_nan=True)
    assert np.array_equal(image[:, 5:9], np.repeat(inside[:, 1, :].T[::-1], 2, 0), equal_nan=True)
    assert np.array_equal(image[:, 10:15], np.repeat(inside[2].T[::-1], 2, 0), equal_nan=True)
    assert layouts.peak(Volume(mask, sizes), np.zeros(mask.sum())).tolist() == [2, 2, 1]


def test_mesh_is_painted_from_back_to_front():
    points = np.array([[0, 0, 0], [9, 0, 0], [0, 4, 0], [0, 0, 1], [9, 0, 1], [0, 4, 1.0]])
    axes = Figure().subplots()
    layouts.draw(
        axes,
        np.array([-1, -1, -1, 1, 1, 1.0]),
        Mesh(points, np.array([[3, 4, 5], [0, 1, 2]])),
        layouts.signed_scale(np.ones(1)),
    )
    front, back = (part.get_facecolor() for part in axes.collections)
    red, blue = front[1], front[0]  # the triangle at z = 1 is nearer to the viewer in front
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    assert back[1][2] > back[1][0]
    turned = layouts.upright(np.random.default_rng(0).normal(size=(20, 3)) * [1, 3, 2])
    assert np.all(np.diff(np.ptp(turned, 0)) < 0)


def test_upright_is_a_rotation():
    points = np.random.default_rng(1).normal(size=(9, 3)) * [1, 2, 5]
    turned = layouts.upright(points)
    basis = np.linalg.lstsq(points - 0.5 * (points.max(0) + points.min(0)), turned, rcond=None)[0]
    assert np.allclose(basis @ basis.T, np.eye(3))
    assert np.linalg.det(basis) == pytest.approx(1)


def shaded(axes):
    """Return from where to where the iterations are shaded; older Matplotlib draws a polygon."""
    patch = axes.patches[0]
    x = patch.get_path().vertices @ [1.0, 0.0]
    if hasattr(patch, "get_bbox"):  # a rectangle's path is the unit square
        x = np.array([patch.get_bbox().x0, patch.get_bbox().x1])
    return x.min(), x.max()


def test_convergence(ica, model):
    axes = {one.get_title(): one for one in drawn(plot.convergence(ica))}
    assert set(axes) == {
        "noise variance",
        "norms of the components",
        "log p(x | coefficients) of a row",
        "prior: alpha",
    }
    assert np.array_equal(
        axes["prior: alpha"].lines[0].get_ydata(), ica.history_["alpha"], equal_nan=True
    )
    assert len(axes["norms of the components"].lines) == P
    assert shaded(axes["noise variance"]) == (0, 2)
    assert len(axes["noise variance"].lines) == 1  # it ran all its iterations
    stopped = fitted(model, algorithm="sem")
    stopped.converged_ = True
    axes = drawn(plot.convergence(stopped))[0]
    assert axes.lines[1].get_xdata()[0] == 4
    assert shaded(axes)[1] == 0  # all its steps are full


def test_activation(ica, X):
    posterior = ica.model_.posterior_sample(X, n_draws=50, n_warmup=50, random_state=0)
    axes = plot.activation(ica, X)
    assert np.allclose([bar.get_height() for bar in axes.patches], (posterior != 0).mean((0, 1)))
    assert np.allclose(axes.collections[0].get_segments()[0][:, 1], ica.prior_.alpha)
    means = ica.transform(X)
    assert (means != 0).all()
    axes = plot.activation(ica, means)
    assert np.allclose(axes.lines[0].get_ydata(), np.median(means, 0))
    with pytest.raises(ValueError, match="12 columns.*3 columns.*got shape"):
        plot.activation(ica, X[:, :5])


def test_reconstruction(ica, X):
    axes = drawn(plot.reconstruction(ica, X, rows=[7], image_shape=(3, 4), n_parts=2))
    beta = ica.transform(X[[7]])
    fitted = ica.inverse_transform(beta)[0]
    parts = beta[0][:, None] * ica.components_
    first = int(np.argmax(np.square(parts).sum(1)))
    expected = [X[7], fitted, X[7] - fitted, parts[first]]
    for one, values in zip(axes, expected, strict=False):
        assert np.allclose(one.images[0].get_array().ravel(), values)
    assert axes[3].get_title() == f"Component {first}: {beta[0, first]:+.2f}"
    assert len(axes) == 5
    assert axes[0].images[0].get_clim() == axes[1].images[0].get_clim()
    with pytest.raises(ValueError, match="indices of the 80 rows"):
        plot.reconstruction(ica, X, rows=[80])


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_reconstruction_of_sparse_rows(ica, X, form):
    sparse = getattr(scipy.sparse, f"{form}_matrix")(X)
    options = {"rows": [7, 2], "image_shape": (3, 4), "n_parts": 2}
    for one, other in zip(
        drawn(plot.reconstruction(ica, sparse, **options)),
        drawn(plot.reconstruction(ica, X, **options)),
        strict=True,
    ):
        shown = (axis.images[0].get_array().ravel() for axis in (one, other))
        np.testing.assert_allclose(*shown, atol=1e-6)


def test_stability(model):
    ica = fitted(model)
    ica.stability_ = np.array([[0.99, 0.9, 0.3], [0.98, 0.7, 0.4]])
    axes = plot.stability(ica)
    assert np.allclose(axes.lines[0].get_ydata(), ica.stability_[0])
    assert plot.stability(ica, axes) is axes
    with pytest.raises(ValueError, match="n_init"):
        plot.stability(NoisyICA(2))


def test_wrong_layouts(ica):
    with pytest.raises(ValueError, match="of 4 columns, but there are 12"):
        plot.components(ica, Lines(np.array(list("abcd"))))
    with pytest.raises(ValueError, match="not both"):
        plot.components(ica, Lines(np.array(list("abcd"))), image_shape=(3, 4))


def test_overview_reads_only_the_rows_that_it_shows(ica, X, tmp_path):
    many = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (10**6, D))
    many[:2] = X[:2]
    tracemalloc.start()
    figure = plot.overview(ica, many, image_shape=(3, 4), n_rows=2)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 40e6  # all rows are 48 MB, and 96 MB in double precision
    rows = [axes for axes in drawn(figure) if axes.get_title().startswith("Row ")]
    assert np.allclose([axes.images[0].get_array().ravel() for axes in rows], X[:2])


@pytest.mark.parametrize(
    "prior",
    [
        priors.ExponentialBernoulliGaussian(0.4),
        priors.SingleScaleTernary(0.2),
        priors.Independent(
            laws.Mixture((laws.Dirac(), laws.Dirac(1.0), laws.Normal(2.0)), (0.5, 0.2, 0.3))
        ),
        priors.Offset(priors.GaussianMixture((2.0,), (0.5, 0.5), shared=False), 3.0),
    ],
    ids=lambda prior: type(prior).__name__,
)
def test_marginal_law_of_a_coefficient(prior):
    """Atoms and density add up to one, and agree with draws."""
    grid = np.linspace(-9, 9, 361)
    law = marginal(prior, 2, grid)
    share = (law.draws[:, :, None] == law.atoms).mean(0)
    assert np.abs(law.weights - share).max(initial=0) < 0.015
    assert np.allclose(law.density.sum(1) * 0.05 + law.weights.sum(1), 1, atol=0.01)
    at_atoms = (law.draws[:, :, None] == law.atoms[law.atoms < 0.5]).sum(2).mean(0)
    below = (law.draws <= 0.525).mean(0) - at_atoms
    assert np.allclose(law.density[:, grid < 0.51].sum(1) * 0.05, below, atol=0.02)


def test_offset_given_coefficients():
    """The offsets agree with quadrature."""
    rng = np.random.default_rng(0)
    model = Model(
        rng.normal(size=(3, 1)), None, np.array([0.5, 1.0, 2.0]), priors.Offset("lap", 0.7)
    )
    X, beta = rng.normal(size=(4, 3)), rng.normal(size=(4, 1))
    X[1, 2] = np.nan
    mu = np.linspace(-20, 20, 40001)
    left = X - beta @ model.mixing.T
    logs = (
        -0.5 * np.nansum(np.square(left[:, :, None] - mu) / np.array([0.5, 1.0, 2.0])[:, None], 1)
        - np.abs(mu) / 0.7
    )
    weight = np.exp(logs - logs.max(1, keepdims=True))
    mean = (weight * mu).sum(1) / weight.sum(1)
    assert np.allclose(offsets(model, X, beta), mean, atol=1e-4)
    many = offsets(model, np.repeat(X, 3000, 0), np.repeat(beta, 3000, 0), seed=1).reshape(4, 3000)
    spread = np.sqrt((weight * mu**2).sum(1) / weight.sum(1) - mean**2)
    assert np.all(np.abs(many.mean(1) - mean) < 4 * spread / np.sqrt(3000))
    assert np.allclose(many.std(1), spread, rtol=0.1)
