"""Tables of Polars and pandas go in, and come out of ``transform``."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from noisyica import NoisyICA

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
HOW = {"noise": "isotropic", "max_iter": 50, "tol": 0, "random_state": 0, "verbose": False}
X = load_iris().data


def table(library):
    """Return the rows as a table of a library."""
    module = pytest.importorskip(library)
    if library == "pandas":
        return module.DataFrame(X, columns=NAMES, index=[f"flower{i}" for i in range(len(X))])
    return module.DataFrame(X, schema=NAMES)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_tables_come_out_with_names(library):
    rows = table(library)
    ica = NoisyICA(2, **HOW).fit(rows)
    assert list(ica.feature_names_in_) == NAMES
    expected = ica.transform(rows)
    assert type(expected) is np.ndarray
    found = ica.set_output(transform=library).transform(rows)
    assert type(found).__module__.startswith(library)
    assert list(found.columns) == ["component0", "component1"] == list(ica.get_feature_names_out())
    np.testing.assert_array_equal(found.to_numpy(), expected)
    if library == "pandas":
        assert list(found.index) == list(rows.index)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_tables_go_through_pipelines(library):
    rows = table(library)
    pipeline = make_pipeline(StandardScaler(), NoisyICA(2, **HOW)).set_output(transform=library)
    found = pipeline.fit_transform(rows)
    assert type(found).__module__.startswith(library)
    assert list(found.columns) == ["component0", "component1"]
    assert list(pipeline[-1].feature_names_in_) == NAMES


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_columns_in_another_order_are_refused(library):
    rows = table(library)
    ica = NoisyICA(2, **HOW).fit(rows)
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        ica.transform(rows[NAMES[::-1]])


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_rows_of_dask_come_out_as_tables(library):
    array = pytest.importorskip("dask.array")
    ica = NoisyICA(2, **HOW).fit(X)
    expected = ica.transform(X)
    found = ica.set_output(transform=library).transform(array.from_array(X, chunks=(50, 4)))
    assert type(found).__module__.startswith(library)
    assert list(found.columns) == ["component0", "component1"]
    np.testing.assert_allclose(found.to_numpy(), expected, atol=1e-6)
