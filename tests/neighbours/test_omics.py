"""AnnData: components of genes go in and out, through files, and on to new cells."""

import doctest
import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import NMF, PCA

from noisyica import NoisyICA, laws, omics
from noisyica.engine.convergence import match

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")

# AnnData is made for pandas 2 so far, and sets options that version 3 has given up
pytestmark = pytest.mark.filterwarnings(
    "ignore:The 'mode.chained_assignment' option", "ignore:The 'future.infer_string' option"
)
ROOT = Path(__file__).parents[2]
CELLS, GENES, P = 300, 40, 3
HOW = {
    **{"prior": laws.Exponential(), "mixing_prior": "nonnegative", "mean": "zero"},
    **{"noise": "isotropic", "max_iter": 200, "tol": 0, "random_state": 0, "verbose": False},
}


def programmes(seed, n=CELLS, d=GENES, p=P, noise=0.3):
    """Return cells (n, d) of sparse programmes that are not negative, and these (p, d)."""
    rng = np.random.default_rng(seed)
    truth = rng.exponential(size=(p, d)) * (rng.random((p, d)) < 0.3)
    usage = rng.exponential(size=(n, p)) * (rng.random((n, p)) < 0.5)
    return usage @ truth + noise * rng.normal(size=(n, d)), truth


def annotated(X):
    """Return an AnnData of cells in two batches, of different ages, with genes of their own names.

    Names are objects: some versions of AnnData cannot write the strings of pandas 3.
    """
    n, d = X.shape
    rng = np.random.default_rng(1)
    batch = np.where(rng.random(n) < 0.5, "b1", "b2").astype(object)
    obs = {"batch": batch, "age": rng.normal(50, 9, size=n), "lane": rng.integers(3, size=n)}
    cells = pandas.Index([f"cell{i}" for i in range(n)], dtype=object)
    genes = pandas.Index([f"gene{i}" for i in range(d)], dtype=object)
    frame = pandas.DataFrame(obs, index=cells)
    frame["batch"] = pandas.Categorical(batch, pandas.Index(["b1", "b2"], dtype=object))
    return anndata.AnnData(X, obs=frame, var=pandas.DataFrame(index=genes))


@pytest.fixture(scope="module")
def fitted():
    X, _ = programmes(0)
    adata = annotated(X)
    assert omics.fit(adata, P, **HOW) is None
    return adata


def test_results_are_those_of_the_estimator(fitted):
    ica = NoisyICA(P, **HOW).fit(fitted.X)
    np.testing.assert_array_equal(fitted.obsm["X_noisyica"], ica.transform(fitted.X))
    np.testing.assert_array_equal(fitted.varm["noisyica_components"], ica.mixing_)
    np.testing.assert_array_equal(fitted.varm["noisyica_std"], ica.components_std_.T)
    probability = ica.components_probability_.T
    np.testing.assert_array_equal(fitted.varm["noisyica_probability"], probability)
    summary = fitted.uns["noisyica"]
    assert summary["noise_variance"] == ica.noise_variance_
    assert summary["prior"] == repr(ica.prior_)
    assert list(summary["genes"]) == list(fitted.var_names)
    np.testing.assert_array_equal(
        summary["explained_variance_ratio"], ica.explained_variance_ratio_
    )


def test_a_file_keeps_all_of_it(fitted, tmp_path):
    fitted.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    for name in fitted.varm:
        np.testing.assert_array_equal(again.varm[name], fitted.varm[name])
    ica, same = omics.estimator(fitted), omics.estimator(again)
    assert repr(same) == repr(ica)
    assert repr(same.prior_) == repr(ica.prior_)
    np.testing.assert_array_equal(same.history_["scale"], ica.history_["scale"])
    new = annotated(programmes(0)[0][:40])
    omics.transform(new, again)
    np.testing.assert_array_equal(new.obsm["X_noisyica"], fitted.obsm["X_noisyica"][:40])


def test_new_cells_are_matched_by_the_names_of_their_genes(fitted):
    X = np.asarray(fitted.X)[:50]
    order = np.random.default_rng(0).permutation(GENES)
    more = np.concatenate([X[:, order], np.full((50, 1), 7.0)], 1)
    new = annotated(more)
    new.var_names = [*fitted.var_names[order], "other"]
    found = omics.transform(new, fitted, copy=True)
    assert "X_noisyica" not in new.obsm
    np.testing.assert_array_equal(found.obsm["X_noisyica"], fitted.obsm["X_noisyica"][:50])
    with pytest.raises(ValueError, match="2 of the 40 genes of the fit are not in adata: gene3, g"):
        omics.transform(fitted[:, [i for i in range(GENES) if i not in (3, 5)]], fitted)


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array"])
def test_sparse_layers_are_learnt_from_as_dense_ones_are(form):
    X = np.maximum(programmes(1)[0], 0)
    options = HOW | {"max_iter": 40, "n_init": 1}
    dense = annotated(X)
    omics.fit(dense, P, **options)
    sparse = annotated(np.zeros_like(X))
    sparse.layers["counts"] = getattr(scipy.sparse, form)(X)
    found = omics.fit(sparse, P, layer="counts", copy=True, key_added="ica", **options)
    assert not sparse.uns
    assert not sparse.obsm
    expected = dense.varm["noisyica_components"]
    np.testing.assert_allclose(found.varm["ica_components"], expected, rtol=1e-4, atol=1e-4)
    again = omics.transform(found, found, key="ica", copy=True)
    np.testing.assert_array_equal(again.obsm["X_ica"], found.obsm["X_ica"])


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_a_file_that_stays_on_disk_is_learnt_from(form, tmp_path):
    X = np.maximum(programmes(1)[0], 0)
    options = HOW | {"max_iter": 20, "n_init": 1}
    memory = annotated(getattr(scipy.sparse, f"{form}_matrix")(X))
    memory.write_h5ad(tmp_path / "cells.h5ad")
    disk = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    try:
        _ = disk.X[:2] if form == "csr" else None
    except AttributeError as error:
        pytest.skip(f"This AnnData does not know this SciPy, and cannot read rows: {error}")
    omics.fit(disk, P, **options)
    omics.fit(memory, P, **options)
    for name in ("noisyica_components", "noisyica_std"):
        np.testing.assert_array_equal(disk.varm[name], memory.varm[name])


# ---- covariates


def shifted(sparse=False):
    """Return cells whose genes depend on batch, age and lane, and the cells without that."""
    X, truth = programmes(2)
    adata = annotated(X)
    rng = np.random.default_rng(5)
    design = np.column_stack(
        [
            adata.obs["batch"] == "b2",
            adata.obs["age"] - 50,
            *(adata.obs["lane"] == k for k in (1, 2)),
        ]
    )
    moved = X + design @ (rng.normal(size=(4, GENES)) * [[2.0], [0.2], [2.0], [2.0]])
    adata.X = scipy.sparse.csr_matrix(moved) if sparse else moved
    return adata, X, truth


@pytest.mark.parametrize("sparse", [False, True])
def test_effects_of_covariates_are_those_of_least_squares(sparse):
    adata, _, _ = shifted(sparse)
    options = HOW | {"max_iter": 2, "n_init": 1}
    omics.fit(adata, P, covariates=["age", "batch"], batch_key="lane", **options)
    stored = adata.uns["noisyica"]["covariates"]
    assert json.loads(stored["levels"]) == {
        "age": None,
        "batch": ["b1", "b2"],
        "lane": ["0", "1", "2"],
    }
    dummies = pandas.get_dummies(
        adata.obs.astype({"lane": "category"})[["age", "batch", "lane"]], drop_first=True
    )
    design = np.column_stack([np.ones(len(dummies)), dummies.to_numpy(float)])
    X = adata.X.toarray() if sparse else adata.X
    expected = np.linalg.lstsq(design, X, rcond=None)[0][1:]
    np.testing.assert_allclose(stored["effects"], expected, atol=1e-10)
    from noisyica.omics.annotated import kept_in

    rows = kept_in(adata, "noisyica").rows(adata)
    residual = X - (design[:, 1:] - design[:, 1:].mean(0)) @ expected
    np.testing.assert_allclose(rows[:], residual, atol=1e-9)
    np.testing.assert_allclose(rows[[7, 3]], residual[[7, 3]], atol=1e-9)
    np.testing.assert_allclose(rows[:].mean(0), X.mean(0), atol=1e-9)  # genes keep their means


def test_programmes_are_found_under_batches_and_new_cells_are_corrected_alike(tmp_path):
    adata, _, truth = shifted(sparse=True)
    options = HOW | {"mean": "free", "mixing_prior": "sparse", "n_init": 1}
    plain = omics.fit(adata, P, copy=True, **options)
    omics.fit(adata, P, covariates=["age", "batch"], batch_key="lane", **options)
    cosines = [
        np.abs(match(truth.T, cells.varm["noisyica_components"])[0]).mean()
        for cells in (plain, adata)
    ]
    assert cosines[0] < 0.8 < 0.95 < cosines[1]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    some = again[200:260].copy()  # too few for their own means to be those of all
    some.obsm.clear()
    omics.transform(some, again)
    np.testing.assert_array_equal(some.obsm["X_noisyica"], adata.obsm["X_noisyica"][200:260])
    some.obs["lane"] = 9
    with pytest.raises(ValueError, match="'lane' has values whose effect was not learnt: 9"):
        omics.transform(some, again)


def bad_covariates():
    """Return changes of cells, covariates, and what is said of them."""
    nan = {"age": [np.nan, *range(CELLS - 1)]}
    twin = {"twin": lambda obs: 2 * obs["age"] + 1}
    return [
        ({}, "dose", KeyError, "obs has no column 'dose': it has batch, age, lane"),
        (nan, "age", ValueError, "'age' of obs is missing in 1 cells"),
        ({"age": [np.inf, *range(CELLS - 1)]}, "age", ValueError, "'age' of obs is infinite"),
        (twin, ["age", "twin"], ValueError, r"covariates \(age, twin\) cannot be told apart"),
        ({"one": "b1"}, "one", ValueError, r"covariates \(one\) cannot be told apart"),
    ]


@pytest.mark.parametrize(("change", "names", "error", "said"), bad_covariates())
def test_covariates_that_cannot_be_regressed_out_are_refused(change, names, error, said):
    adata = annotated(programmes(0)[0])
    adata.obs = adata.obs.assign(**change)
    with pytest.raises(error, match=said):
        omics.fit(adata, P, covariates=names, **HOW)
    assert not adata.uns


def test_covariates_and_missing_entries_do_not_go_together():
    X = programmes(0)[0]
    X[4, 7] = np.nan
    with pytest.raises(ValueError, match=r"1 genes have some, such as that of number 7"):
        omics.fit(annotated(X), P, covariates="age", **HOW)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda a: omics.fit(np.zeros((3, 2))), TypeError, "must be an AnnData; got ndarray"),
        (lambda a: omics.fit(a, layer="raw"), KeyError, "has no layer 'raw': it has none"),
        (lambda a: omics.fit(a, colour=1), TypeError, "unexpected keyword argument 'colour'"),
        (lambda a: omics.estimator(a), KeyError, "no fit with the key 'noisyica'"),
        (lambda a: omics.top_genes(a, key="x"), KeyError, "no 'x_components'"),
        (lambda a: omics.top_genes(a, 0), ValueError, "n must be an integer of at least 1"),
    ],
)
def test_what_is_wrong_is_said(call, error, said):
    with pytest.raises(error, match=said):
        call(annotated(programmes(0)[0]))


def test_genes_of_the_same_name_are_refused():
    adata = annotated(programmes(0)[0])
    adata.var_names = ["a", "a", *adata.var_names[2:]]
    with pytest.raises(ValueError, match=r"\(a\): call adata.var_names_make_unique"):
        omics.fit(adata, P, **HOW)


# ---- genes


def test_top_genes_are_those_of_the_largest_weights(fitted):
    table = omics.top_genes(fitted, 3)
    assert list(table.columns) == ["component", "gene", "weight", "z", "probability"]
    ica = omics.estimator(fitted)
    for j in range(P):
        part = table[table["component"] == j]
        order = np.argsort(-np.abs(ica.components_[j]))[:3]
        assert list(part["gene"]) == [f"gene{i}" for i in order]
        np.testing.assert_array_equal(part["weight"], ica.components_[j, order])
        z = ica.components_[j, order] / ica.components_std_[j, order]
        np.testing.assert_allclose(part["z"], z)
        on = ica.components_probability_[j, order]
        np.testing.assert_array_equal(part["probability"], on)


def with_weights(weights, **more):
    """Return an AnnData that has components (genes, p), as if they had been learnt."""
    adata = annotated(np.zeros((4, len(weights))))
    adata.varm["noisyica_components"] = np.asarray(weights, float)
    for name, values in more.items():
        adata.varm[f"noisyica_{name}"] = np.asarray(values, float)
    return adata


def test_gene_sets_have_two_sides_and_no_doubtful_genes(tmp_path):
    weights = [[3, 0.5], [-2, 0], [1, 0.2], [0, 0.4]]
    omics.write_gmt(with_weights(weights), tmp_path / "sets.gmt", n=2)
    assert (tmp_path / "sets.gmt").read_text().splitlines() == [
        "noisyica_0_up\tof 4 genes\tgene0\tgene2",
        "noisyica_0_down\tof 4 genes\tgene1",
        "noisyica_1_up\tof 4 genes\tgene0\tgene3",
    ]
    probability = [[1, 0.4], [1, 0], [0.2, 0.9], [0, 0.6]]
    omics.write_gmt(with_weights(weights, probability=probability), tmp_path / "sets.gmt")
    sets = [line.split("\t")[2:] for line in (tmp_path / "sets.gmt").read_text().splitlines()]
    assert sets == [["gene0"], ["gene1"], ["gene3", "gene2"]]


def test_ranked_lists_have_all_genes_in_order(tmp_path):
    adata = with_weights([[3, 0.5], [-2, 0], [1, 0.2], [0, 0.4]])
    paths = omics.write_rnk(adata, tmp_path / "ranks")
    assert [path.name for path in paths] == ["noisyica_0.rnk", "noisyica_1.rnk"]
    table = pandas.read_csv(paths[0], sep="\t", header=None)
    assert list(table[0]) == ["gene0", "gene2", "gene3", "gene1"]
    assert list(table[1]) == [3, 1, 0, -2]


# ---- stability


def test_consensus_of_cells_is_written_beside_the_fit(fitted):
    adata = fitted.copy()
    found = omics.consensus(adata, 4, groups="lane", random_state=0)
    assert adata.uns["noisyica_consensus"]["stability"].shape == (P,)
    np.testing.assert_array_equal(adata.varm["noisyica_consensus_components"].T, found.components)
    np.testing.assert_array_equal(adata.varm["noisyica_consensus_std"].T, found.components_std)
    assert (found.stability > 0.95).all()
    table = omics.top_genes(adata, 5, key="noisyica_consensus")
    assert list(table.columns) == ["component", "gene", "weight", "z"]
    part = adata[:, ::-1].copy()
    omics.consensus(part, 4, groups="lane", random_state=0)
    np.testing.assert_array_equal(
        part.varm["noisyica_consensus_components"][::-1],
        adata.varm["noisyica_consensus_components"],
    )
    with pytest.raises(KeyError, match="obs has no column 'donor'"):
        omics.consensus(adata, 4, groups="donor")
    omics.fit(adata, P, **HOW)  # of which there is no consensus yet
    assert "noisyica_consensus" not in adata.uns
    assert "noisyica_consensus_components" not in adata.varm


# ---- recovery


def test_programmes_are_found_at_least_as_well_as_by_nmf_and_pca():
    """Normal noise, which is the model: benchmarks/gene_programmes.py has counts, too."""
    options = HOW | {"n_init": 1}
    differences = {"NMF": [], "PCA": []}
    for seed in range(4):
        X, truth = programmes(10 + seed, noise=1.0)
        adata = annotated(X)
        omics.fit(adata, P, **(options | {"random_state": seed}))
        others = {
            "NMF": NMF(P, max_iter=2000, random_state=seed).fit(np.maximum(X, 0)).components_,
            "PCA": PCA(P).fit(X).components_,
        }
        ours = np.abs(match(truth.T, adata.varm["noisyica_components"])[0]).mean()
        assert ours > 0.95
        for name, components in others.items():
            theirs = np.abs(match(truth.T, components.T)[0]).mean()
            differences[name].append(ours - theirs)
    for name, values in differences.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert np.mean(values) > 2 * error, (name, values)


# ---- the page and the examples


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "omics.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 4
    namespace: dict = {}
    for text in blocks:
        exec(compile(text, "omics.md", "exec"), namespace)


@pytest.mark.parametrize("module", ["fitting", "genes"])
def test_examples_run(module):
    """Those that the main environment leaves out, since AnnData is not there."""
    found = doctest.testmod(importlib.import_module(f"noisyica.omics.{module}"))
    assert found.failed == 0
    assert found.attempted
