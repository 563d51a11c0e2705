"""Writing maps and tables so that they are read back exactly; and fingerprints."""

import hashlib
import resource
import sys

import meshio
import nibabel
import numpy as np
import pytest
from PIL import Image

from noisyica.data import Images, Lines, Mesh, Volume, fingerprint, read, write, write_table
from tests.data_files import AFFINE, FACES, FIELDS, MASK, VERTICES, X


def test_lines_are_written(tmp_path):
    layout = Lines(np.array([f"gene, {j}" for j in range(12)]))
    for like, ending in ((None, ".csv"), ("x.parquet", ".parquet")):
        (path,) = write(X, layout, tmp_path / "out" / "maps.v1", names=list("abcdef"), like=like)
        assert path == tmp_path / "out" / f"maps.v1{ending}"
        data = read(path)
        np.testing.assert_array_equal(data.X, X)
        assert list(data.ids) == list("abcdef")
        assert list(data.layout.names) == list(layout.names)


@pytest.mark.parametrize("shape", [(3, 4), (2, 2, 3)])
def test_images_are_written(tmp_path, shape):
    exact, *pngs = write(X, Images(np.array(shape)), tmp_path, names=[f"map {i}" for i in range(6)])
    data = read(exact)
    np.testing.assert_array_equal(data.X, X)
    assert tuple(data.layout.shape) == shape
    assert [path.name for path in pngs] == [f"maps-map_{i}.png" for i in range(6)]
    grey = np.asarray(Image.open(pngs[2])).astype(float)
    assert grey.shape == shape
    np.testing.assert_allclose(
        (grey.ravel() - 127.5) / 127.5, X[2] / np.abs(X[2]).max(), atol=0.5 / 127.5 + 1e-9
    )
    (_, flat) = write(np.zeros((1, 12)), Images(np.array(shape)), tmp_path / "flat")
    assert (np.asarray(Image.open(flat)) == 128).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_volumes_are_written(tmp_path, dtype):
    maps = np.random.default_rng(0).normal(size=(3, MASK.sum())).astype(dtype)
    volumes, stored_mask = write(maps, Volume(MASK, AFFINE), tmp_path / "maps")
    data = read(volumes, mask=stored_mask, ica="temporal")
    np.testing.assert_array_equal(data.X, maps)
    assert data.X.dtype == maps.dtype
    np.testing.assert_array_equal(data.layout.mask, MASK)
    np.testing.assert_array_equal(data.layout.affine, AFFINE)
    np.testing.assert_array_equal(read(volumes, ica="temporal").layout.mask, MASK)
    image = nibabel.load(volumes)
    assert image.shape == (3, 4, 2, 3)
    assert (image.get_fdata()[~MASK] == 0).all()


@pytest.mark.parametrize(
    ("like", "names"),
    [(None, ["x.surf.gii", "x.shape.gii"]), ("in.vtk", ["x.vtk"]), ("in.ply", ["x.ply"])],
)
def test_meshes_are_written(tmp_path, like, names):
    paths = write(FIELDS, Mesh(VERTICES, FACES), tmp_path / "x", names=["a", "b", "c"], like=like)
    assert [path.name for path in paths] == names
    data = read(paths[-1], mesh=paths[0])
    np.testing.assert_array_equal(data.X, FIELDS)
    assert list(data.ids) == ["a", "b", "c"]
    np.testing.assert_array_equal(data.layout.vertices, VERTICES)
    np.testing.assert_array_equal(data.layout.faces, FACES)


def test_what_meshio_and_nibabel_make_of_written_meshes(tmp_path, monkeypatch):
    write(FIELDS, Mesh(VERTICES, FACES), tmp_path / "x")
    vertices, faces = nibabel.load(tmp_path / "x.surf.gii").agg_data(("pointset", "triangle"))
    np.testing.assert_array_equal(vertices, VERTICES)
    np.testing.assert_array_equal(faces, FACES)
    np.testing.assert_array_equal(nibabel.load(tmp_path / "x.shape.gii").agg_data("shape"), FIELDS)
    write(FIELDS.astype(float), Mesh(VERTICES, FACES), tmp_path / "x", like="x.ply")
    mesh = meshio.ply.read(tmp_path / "x.ply")
    np.testing.assert_array_equal(mesh.cells_dict["triangle"], FACES)
    np.testing.assert_array_equal(mesh.point_data["component2"], FIELDS[2])
    (tmp_path / "in").mkdir()
    meshio.vtk.write(tmp_path / "in" / "a.vtk", meshio.Mesh(VERTICES, [("triangle", FACES)]))
    files = write(FIELDS, Mesh(VERTICES, FACES), tmp_path / "z", like=tmp_path / "in")
    assert [file.name for file in files] == ["z.vtk"]
    monkeypatch.setitem(sys.modules, "nibabel", None)  # as if it were not installed
    files = write(FIELDS, Mesh(VERTICES, FACES), tmp_path / "y")
    assert [file.name for file in files] == ["y.vtk"]


@pytest.mark.parametrize("name", ["beta.csv", "beta.parquet"])
def test_tables_are_written_as_a_whole(tmp_path, name):
    ids = np.array(["001", "Smith, J", 'with "quotes"', "é", "5", "line\nbreak"])
    values = X[:, :2].copy()
    values[1, 1] = np.nan
    path = write_table(tmp_path / name, values, ids, ["a", "b"])
    data = read(path)
    np.testing.assert_array_equal(data.X, values)
    assert list(data.ids) == list(ids)
    before = path.read_bytes()

    class Broken(list):
        def __iter__(self):
            yield "one"
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write_table(path, values, Broken(ids), ["a", "b"])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_failure_while_writing_leaves_the_old_file(tmp_path, name):
    """The disk is full, or may hold no larger files, in the middle of a table."""
    path = write_table(tmp_path / name, X[:, :1], range(6), ["a"])
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_table(path, np.random.default_rng(0).normal(size=(10**5, 1)), range(10**5), ["a"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda folder: write(X[:, :5], Images(np.array([3, 4])), folder / "x"),
            r"shape \(6, 5\), but the layout is of 12 numbers",
        ),
        (
            lambda folder: write(X, Images(np.array([3, 4])), folder / "x", names=["a"]),
            "There are 6 maps",
        ),
        (
            lambda folder: write(
                X[:2], Images(np.array([3, 4])), folder / "x", names=["a b", "a_b"]
            ),
            "do not make different names of files",
        ),
        (
            lambda folder: write(
                FIELDS[:2], Mesh(VERTICES, FACES), folder / "x", names=["a b", "a_b"], like="x.ply"
            ),
            "different names of a PLY",
        ),
        (
            lambda folder: write_table(folder / "t.csv", X, range(5), range(12)),
            "there are 5 ids and 12 names",
        ),
        (
            lambda folder: write_table(folder / "t.xls", X, range(6), range(12)),
            "written as .csv or .parquet",
        ),
        (
            lambda folder: write_table(folder / "t.csv", X[:, :2], range(6), ["a", "a"]),
            "must differ",
        ),
    ],
)
def test_what_cannot_be_written(tmp_path, call, message):
    with pytest.raises(ValueError, match=message):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_column_called_id_and_columns_called_alike(tmp_path):
    path = write_table(tmp_path / "t.csv", X[:, :2], [f"s{i}" for i in range(6)], ["id", "id_0"])
    assert path.read_text().startswith("id_1,id,id_0\ns0,")
    np.testing.assert_array_equal(read(path).X, X[:, :2])
    (tmp_path / "alike.csv").write_text("a,a,c\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match="2 columns 'a'"):
        read(tmp_path / "alike.csv")


def test_fingerprint(tmp_path):
    expected = hashlib.sha256(b"(6, 12) <f8" + X.astype("<f8").tobytes()).hexdigest()
    assert fingerprint(X) == expected
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    assert fingerprint(read(tmp_path / "x.npy").X) == fingerprint(X) == expected
    changed = X.copy()
    changed[5, 11] += 1e-15
    others = [changed, X[:5], X.reshape(12, 6), X.astype("f4"), X.T]
    assert len({expected, *map(fingerprint, others)}) == 6
    with pytest.raises(TypeError, match="Python objects"):
        fingerprint(np.array([{}]))
