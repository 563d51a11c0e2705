"""Rows that are held elsewhere, in files or by Dask: read as the same rows in memory are."""

import subprocess
import sys
import tracemalloc

import dask.array
import h5py
import numpy as np
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
import scipy.sparse
import xarray
import zarr

from noisyica import Model, NoisyICA, data
from noisyica.data import held as kinds
from noisyica.data.held import Held
from noisyica.engine import holding
from noisyica.posterior import evidence
from noisyica.rows import source
from noisyica.rows.held import held
from tests.data_files import put

N, D = 700, 5
KINDS = (
    *("memmap", "memmap in columns", "hdf5", "hdf5 in chunks", "zarr", "zarr in chunks"),
    *("parquet", "dataset", "dask", "dask in columns", "dask sparse", "xarray", "sparse", "own"),
)


class Own:
    """An array of a kind that no one has heard of, which counts what it is asked for."""

    def __init__(self, values):
        self._values, self.shape, self.dtype = values, values.shape, values.dtype
        self.most = self.all = 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.most = max(self.most, rows.stop - rows.start)
        self.all += rows.stop - rows.start
        return self._values[rows]


def elsewhere(kind, X, path):
    """Return rows of an array that are held elsewhere."""
    chunk = (97, min(2, X.shape[1]))
    if kind.startswith("memmap"):
        np.save(path / "X.npy", np.asfortranarray(X) if kind.endswith("columns") else X)
        return np.load(path / "X.npy", mmap_mode="r")
    if kind.startswith("hdf5"):
        file = h5py.File(path / "X.h5", "w")
        return file.create_dataset("X", data=X, chunks=chunk if "chunks" in kind else None)
    if kind.startswith("zarr"):
        group = zarr.open_group(path / "X.zarr", mode="w")
        put(group, "X", X, chunks=chunk if "chunks" in kind else X.shape)
        return group["X"]
    if kind in ("parquet", "dataset"):
        table = pyarrow.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
        pyarrow.parquet.write_table(table, path / "X.parquet", row_group_size=97)
        if kind == "parquet":
            return pyarrow.parquet.ParquetFile(path / "X.parquet")
        return pyarrow.dataset.dataset(path / "X.parquet")
    if kind == "dask sparse":
        return dask.array.from_array(X, (97, -1)).map_blocks(scipy.sparse.csr_array)
    if kind.startswith("dask"):
        return dask.array.from_array(X, (97, 2 if kind.endswith("columns") else X.shape[1]))
    if kind == "xarray":
        return xarray.DataArray(dask.array.from_array(X, (97, -1)), dims=["row", "column"])
    if kind == "sparse":
        return scipy.sparse.csr_array(X)
    return Own(X)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(N, 2)) * (rng.random((N, 2)) < 0.4)
    return 3 + B @ rng.normal(size=(2, D)) + 0.3 * rng.normal(size=(N, D))


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    """A kind of rows, which are read in pieces of a few of them."""
    monkeypatch.setattr(kinds, "BYTES", 3000)
    return request.param


def test_rows_are_read_by_slices_and_by_numbers(X, kind, tmp_path):
    rows = held(elsewhere(kind, X, tmp_path))
    assert rows.shape == X.shape
    assert len(rows) == N
    assert rows.dtype == X.dtype
    assert rows.ndim == 2
    assert rows.size == X.size
    assert rows.nbytes == X.nbytes
    for part in (
        *(slice(None), slice(5, 9), slice(90, 300), slice(-3, None), slice(650, 9999)),
        *(slice(9, 5), slice(20, 400, 7), slice(None, None, -1)),
        *(np.array([0]), np.array([3, 96, 97, 98, 500, 699]), np.arange(50, 60)),
        *(np.array([699, 0, 0, 300, 97, -1]), [5, 4], np.arange(N) % 3 == 1),
        *(np.array([], int), np.zeros(N, bool)),
    ):
        read = rows[part]
        assert read.dtype == X.dtype
        np.testing.assert_array_equal(read, X[part])
        read += 1.0  # a copy
    np.testing.assert_array_equal(rows[:], X)
    np.testing.assert_array_equal(np.asarray(rows), X)
    for wrong in (np.array([N]), np.array([-N - 1]), np.array([0.5]), np.zeros((2, 2), int), 3):
        with pytest.raises(IndexError):
            rows[wrong]


@pytest.mark.parametrize("dtype", ["float32", ">f8", "float16", "int16", "uint8", "bool"])
def test_all_types_of_numbers_are_read(X, dtype, tmp_path):
    X = (X > 3).astype(dtype) if dtype == "bool" else np.round(X).astype(dtype)
    for kind in ("memmap", "hdf5 in chunks", "zarr", "dask"):
        if (kind, dtype) == ("zarr", ">f8"):  # which versions 3 of the format do not all have
            continue
        rows = held(elsewhere(kind, X, tmp_path))
        assert rows.dtype == X.dtype.newbyteorder("=")
        np.testing.assert_array_equal(rows[40:], X[40:])
        floats = rows.floats()
        assert floats.dtype == ("float32" if dtype == "float32" else "float64")
        assert floats[:2].dtype == floats.dtype
        np.testing.assert_array_equal(floats[[1, 9]], X[[1, 9]].astype(float))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_matrices_of_all_formats_are_rows(X, form, kind):
    X = np.where(X > 3, X, 0.0)
    sparse = getattr(scipy.sparse, f"{form}_{kind}")(X)
    rows = held(sparse)
    assert rows.nbytes == X.nbytes
    np.testing.assert_array_equal(rows[90:400], X[90:400])
    np.testing.assert_array_equal(rows[[699, 0, 0]], X[[699, 0, 0]])
    counts = held(sparse.astype("i4"))
    assert counts.floats()[:9].dtype == "float64"


@pytest.mark.slow
def test_a_sparse_matrix_is_learnt_from_as_the_dense_one_is(X, monkeypatch):
    X = np.where(X > 3, X, 0.0)
    X[5, 2] = np.nan  # stored, so that it is missing
    sparse = scipy.sparse.csc_array(X)
    assert np.isnan(sparse.data).sum() == 1
    options = {"max_iter": 30, "tol": 0, "n_init": 1, "random_state": 0}
    dense = NoisyICA(2, **options).fit(X)
    same = NoisyICA(2, **options).fit(sparse)
    np.testing.assert_allclose(same.components_, dense.components_, rtol=1e-5)
    np.testing.assert_array_equal(dense.transform(sparse), dense.transform(X))
    np.testing.assert_allclose(dense.score_samples(sparse), dense.score_samples(X))
    monkeypatch.setattr(holding, "MOST_FROM_DISK", 0)  # each sweep makes the rows dense anew
    streamed = NoisyICA(2, **options).fit(sparse)
    np.testing.assert_allclose(streamed.components_, dense.components_, rtol=1e-3)


def test_what_is_in_memory_is_not_held_elsewhere(X, tmp_path):
    import jax.numpy as jnp
    import pandas

    np.save(tmp_path / "X.npy", X)
    for values in (
        *(X, X.tolist(), X[0, 0], None, "X", 3, pandas.DataFrame(X), pandas.Series(X[:, 0])),
        *(jnp.asarray(X), np.ma.masked_less(X, 0)),
        *(xarray.DataArray(X), np.load(tmp_path / "X.npy", mmap_mode="c")),
        # a copy, though its class is that of a memory map
        np.load(tmp_path / "X.npy", mmap_mode="r") + 1,
    ):
        assert held(values) is None
    assert held(np.load(tmp_path / "X.npy", mmap_mode="r")[5:9, 1:]) is not None


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        (np.zeros(9), ValueError, r"X has shape \(9,\): it must have two axes, rows and columns"),
        (np.zeros((9, 2, 2)), ValueError, r"X has shape \(9, 2, 2\)"),
        (np.zeros((9, 2), complex), TypeError, "X holds complex128, not numbers"),
        (np.zeros((9, 2), "S3"), TypeError, r"X holds \|S3, not numbers"),
        (np.zeros((9, 2), "M8[s]"), TypeError, r"X holds datetime64\[s\], not numbers"),
        (np.zeros((1, 2)), ValueError, r"X has 1 row \(shape \(1, 2\)\): at least 2 x 1"),
        (np.zeros((9, 0)), ValueError, r"X has no columns \(shape \(9, 0\)\)"),
    ],
)
def test_what_cannot_be_rows_is_refused(values, error, said):
    with pytest.raises(error, match=said):
        NoisyICA(1).fit(Own(values))


def test_dask_that_is_no_array_of_known_size_is_refused(X):
    rows = dask.array.from_array(X, (97, -1))
    with pytest.raises(ValueError, match=r"call X\.compute_chunk_sizes\(\)"):
        NoisyICA(1).fit(rows[rows[:, 0] > 3])

    class Frame:
        def __dask_graph__(self): ...

    with pytest.raises(TypeError, match=r"give X\.to_dask_array\(lengths=True\)"):
        NoisyICA(1).fit(Frame())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["fit", "transform", "score_samples"])
def test_infinite_entries_are_found_where_they_are(X, method, weighted, monkeypatch):
    monkeypatch.setattr(source, "NUMBERS_AT_A_TIME", 100 * D)
    ica = NoisyICA(2, max_iter=5, tol=0, random_state=0, verbose=False).fit(X)
    X[513, 3] = -np.inf
    weight = None if not weighted or method != "fit" else 1.0 * (np.arange(N) % 2 == 1)
    options = {} if weight is None else {"sample_weight": weight}
    with pytest.raises(ValueError, match="X has an infinite number in row 513, column 3: replace"):
        getattr(ica, method)(Own(X), **options)


def test_rows_and_columns_without_numbers_are_named(X):
    ica = NoisyICA(2, max_iter=5, tol=0, random_state=0, verbose=False).fit(X)
    X[[7, 600]] = np.nan
    for call in (ica.fit, ica.transform, ica.score_samples):
        with pytest.raises(ValueError, match=r"observed in 2 of the rows of X \(7, 600\)"):
            call(Own(X))
    with pytest.raises(ValueError, match="X has 4 features, but NoisyICA is expecting 5"):
        ica.transform(Own(X[:, :4]))
    with pytest.raises(ValueError, match="X has 4 columns, but the model has 5 dimensions"):
        ica.model_.map(Own(X[:, :4]))


# ------------------------------------------------------------------- the same results, to the bit


def assert_same(a, b):
    for name in ("components_", "mean_", "components_std_", "n_iter_", "noise_variance_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name, values in a.history_.items():
        np.testing.assert_array_equal(values, b.history_[name])


SETTINGS = {"max_iter": 20, "tol": 0, "random_state": 0, "verbose": False}


@pytest.mark.parametrize("missing", [False, True])
def test_everything_is_the_same_to_the_bit_as_for_an_array(X, kind, missing, tmp_path, monkeypatch):
    """Rows are also read in blocks of a few, and more than one of the posterior's blocks."""
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
        X[:, 0] = 1.0 + np.arange(N)  # so that no row is empty
    monkeypatch.setattr(source, "NUMBERS_AT_A_TIME", 60 * D)
    rows = elsewhere(kind, X, tmp_path)
    ica = NoisyICA(2, **SETTINGS).fit(X)
    again = NoisyICA(2, **SETTINGS).fit(rows)
    assert_same(ica, again)
    assert again.n_features_in_ == D
    beta, std = ica.transform(X, return_std=True)
    for part, expected in zip(again.transform(rows, return_std=True), (beta, std), strict=True):
        assert type(part) is np.ndarray
        assert part.dtype == float
        np.testing.assert_array_equal(part, expected)
    scores = again.score_samples(rows)
    if hasattr(scores, "compute"):  # of a Dask array: rounded by its own blocks
        np.testing.assert_allclose(scores, ica.score_samples(X), rtol=1e-13)
    else:
        np.testing.assert_array_equal(scores, ica.score_samples(X))
    if not missing:
        model = ica.model_
        np.testing.assert_array_equal(model.map(rows), model.map(X))
        draws = (model.posterior_sample(part, n_draws=2, random_state=0) for part in (rows, X))
        np.testing.assert_array_equal(*draws)
    (tmp_path / "B").mkdir()
    coefficients = elsewhere(kind, beta, tmp_path / "B")
    np.testing.assert_array_equal(ica.inverse_transform(coefficients), ica.inverse_transform(beta))


@pytest.mark.filterwarnings("ignore:The likelihood of:RuntimeWarning")
@pytest.mark.parametrize("prior", ["bg", pytest.param("te", marks=pytest.mark.slow)])
def test_likelihoods_by_draws_are_the_same_to_the_bit(X, prior, monkeypatch):
    """Some rows are done again: they are chosen from rows that are held elsewhere, too."""
    again = []

    class Noted(evidence.Chosen):
        def __init__(self, X, numbers):
            again.append(len(numbers))
            super().__init__(X, numbers)

    monkeypatch.setattr(evidence, "Chosen", Noted)
    A = np.random.default_rng(1).normal(size=(D, 3 if prior == "te" else 8))
    model = Model(A, X.mean(0), noise_variance=0.01, prior=prior)
    options = {"n_particles": 4, "method": "annealed" if prior == "te" else "sequential"}
    values = [
        model.log_likelihood(rows, return_std=True, n_temperatures=10, **options)
        for rows in (X[:150], Own(X[:150]))
    ]
    np.testing.assert_array_equal(*values)
    assert again
    assert 0 < max(again) < 150
    assert again[: len(again) // 2] == again[len(again) // 2 :]


def test_weights_and_integers_are_the_same_to_the_bit(X, tmp_path):
    X, weight = np.round(10 * X).astype(np.int16), np.arange(N) % 3
    ica = NoisyICA(2, **SETTINGS).fit(X, sample_weight=weight)
    for kind in ("memmap", "hdf5 in chunks", "parquet", "dask"):
        rows = elsewhere(kind, X, tmp_path)
        assert_same(ica, NoisyICA(2, **SETTINGS).fit(rows, sample_weight=weight))
        assert ica.score(rows) == ica.score(X)


def test_single_precision_is_the_same_to_the_bit(X, tmp_path):
    X = X.astype(np.float32)
    ica = NoisyICA(2, **SETTINGS).fit(X)
    for kind in ("memmap", "zarr in chunks", "parquet", "dask"):
        rows = elsewhere(kind, X, tmp_path)
        assert_same(ica, NoisyICA(2, **SETTINGS).fit(rows))
        np.testing.assert_array_equal(ica.transform(rows), ica.transform(X))


def test_a_checkpoint_knows_the_rows_wherever_they_are(X, tmp_path):
    """An interrupted fit of an array goes on with the same rows in a file, and with no others."""
    path = tmp_path / "checkpoint.npz"

    def fit(rows, callback=None):
        settings = SETTINGS | {"max_iter": 120, "checkpoint": path, "callback": callback}
        ica = NoisyICA(2, **settings)
        ica._fit(rows, None)
        return ica

    whole = fit(X)
    path.unlink()
    begun = fit(X, lambda iteration, model: iteration >= 40)
    assert begun.n_iter_ < 120
    assert path.exists()
    with pytest.raises(ValueError, match="belongs to a fit of other data"):
        fit(elsewhere("hdf5", X + 1e-9, tmp_path))
    assert_same(fit(elsewhere("hdf5 in chunks", X, tmp_path)), whole)


def test_results_are_written_where_they_should_be(X, tmp_path):
    ica = NoisyICA(2, **SETTINGS).fit(X)
    for algorithm in ("mean", "map"):
        ica.transform_algorithm = algorithm
        out = np.lib.format.open_memmap(tmp_path / "B.npy", "w+", "f8", (N, 2))
        assert ica.transform(X, out=out) is out
        np.testing.assert_array_equal(out, ica.transform(X))
    single = np.empty((N, D), np.float32)
    assert ica.inverse_transform(out, out=single) is single
    np.testing.assert_array_equal(single, ica.inverse_transform(out).astype(np.float32))
    for wrong in (np.empty((N, 3)), np.empty((N, 2), int), [[0.0]], np.broadcast_to(0.0, (N, 2))):
        with pytest.raises(ValueError, match=r"out must be an array .* of shape \(700, 2\)"):
            ica.transform(X, out=wrong)


def test_coefficients_have_to_be_known(X):
    ica = NoisyICA(2, **SETTINGS).fit(X)
    B = np.zeros((9, 2))
    B[3, 1] = np.nan
    with pytest.raises(ValueError, match="B has entries that are missing or infinite"):
        ica.inverse_transform(Own(B))
    with pytest.raises(ValueError, match="B has 3 columns, but there are 2 components"):
        ica.inverse_transform(Own(np.zeros((9, 3))))


# ------------------------------------------------------------------------------- how much is read


def test_each_piece_is_read_once_per_pass_and_a_few_rows_at_a_time(X, monkeypatch):
    monkeypatch.setattr(kinds, "BYTES", 30 * D * 8)
    monkeypatch.setattr(source, "NUMBERS_AT_A_TIME", 70 * D)
    rows = Own(X)
    assert sum(len(part) for _, part in source.Rows(held(rows)).blocks()) == N
    assert rows.most == 30
    assert rows.all == N
    ica = NoisyICA(2, **SETTINGS).fit(X)
    rows.all = 0
    ica.transform(rows)
    assert rows.most == 30
    assert rows.all == 2 * N  # one pass to check, one to compute
    rows.all = 0
    ica.score_samples(rows)
    assert rows.most == 30
    assert rows.all == 2 * N


def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    """The posterior of rows from a file takes less memory than a tenth of the rows."""
    n, d = 100_000, 50
    X = np.random.default_rng(0).normal(size=(n, d))
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["X"] = X
    model = Model(np.eye(d)[:, :1], prior="bg")
    model.posterior_mean(X[:5000]), model.log_likelihood(X[:5000])  # compiles
    del X
    monkeypatch.setattr(source, "NUMBERS_AT_A_TIME", 2**15)
    monkeypatch.setattr(kinds, "BYTES", 2**16)
    rows = data.open(tmp_path / "X.h5").X
    tracemalloc.start()
    model.posterior_mean(rows)
    model.log_likelihood(rows)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < rows.nbytes / 3  # blocks of 4,096 rows in double precision, twice over


def test_libraries_are_imported_for_their_own_rows_only():
    program = (
        "import sys; sys.modules['pandas'] = None;"  # which scikit-learn imports, and it pyarrow
        "import numpy, noisyica.data, noisyica.estimator; from noisyica.rows.held import held;"
        "assert held(numpy.zeros((2, 2))) is None;"
        "found = {'h5py', 'zarr', 'pyarrow', 'dask', 'xarray'} & set(sys.modules);"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_held_object_is_its_own_kind(X):
    rows = held(Own(X))
    assert isinstance(rows, Held)
    assert held(rows) is rows
