"""Reading every format, against files that other libraries write; and writing maps and tables so that they are read back exactly."""

import doctest
import hashlib
import importlib
import itertools
import pkgutil
import resource
import sys

import h5py
import meshio
import nibabel
import numpy as np
import pandas
import pytest
import scipy.io
import scipy.sparse
import zarr
from PIL import Image

import noisyica.data
from noisyica.data import (
    Data,
    Images,
    Lines,
    Mesh,
    Volume,
    files,
    fingerprint,
    labels,
    read,
    tables,
    write,
    write_table,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 12))
VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.5]], np.float32)
FACES = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int32)
AFFINE = np.array([[2.0, 0, 0, -3], [0, 2, 0, 4], [0, 0, 2.5, 1], [0, 0, 0, 1]])


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


# Tables


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.csv", "a,b\n1,2.5\n-3e2,4\n"),
        ("windows.csv", "a,b\r\n1,2.5\r\n-3e2,4\r\n"),
        ("bom.csv", "\ufeffa,b\n1,2.5\n-3e2,4\n"),
        ("quotes.csv", '"a","b"\n"1","2.5"\n"-3e2","4"'),
        ("spaces.csv", "a, b\n 1 , 2.5\n-3e2, 4\n\n\n"),
        ("semicolon.csv", "a;b\n1;2,5\n-3e2;4\n"),
        ("tab.tsv", "a\tb\n1\t2.5\n-3e2\t4\n"),
        ("tab.txt", "a\tb\n1\t2.5\n-3e2\t4\n"),
        ("comma.txt", "a,b\n1,2.5\n-3e2,4\n"),
        ("space.txt", "# numbers\na b\n1   2.5\n  -3e2 4\n"),
        ("UPPER.CSV", "a,b\n1,2.5\n-3e2,4\n"),
    ],
)
def test_dialects_of_text(tmp_path, name, text):
    data = read(written(tmp_path / name, text))
    np.testing.assert_array_equal(data.X, [[1, 2.5], [-300, 4]])
    assert list(data.layout.names) == ["a", "b"]
    assert list(data.ids) == ["0", "1"]
    assert not data.others


def test_ids_others_and_missing_entries(tmp_path):
    path = written(
        tmp_path / "t.csv", 'who,a,sex,b,visit\n"Smith, J",1,f,NA,1_2\nLee,,m,nan,3_4\n,3,f,n/a,5\n'
    )
    data = read(path)
    np.testing.assert_array_equal(data.X, [[1, np.nan], [np.nan, np.nan], [3, np.nan]])
    assert list(data.ids) == ["Smith, J", "Lee", ""]
    assert {key: list(value) for key, value in data.others.items()} == {
        "sex": ["f", "m", "f"],
        "visit": ["1_2", "3_4", "5"],
    }
    by_name = read(path, id_column="visit")
    assert list(by_name.ids) == ["1_2", "3_4", "5"]
    assert list(by_name.others) == ["who", "sex"]
    assert (
        list(read(path, id_column=4).ids)
        == list(read(path, id_column="4").ids)
        == list(by_name.ids)
    )
    chosen = read(path, columns=["a"])
    np.testing.assert_array_equal(chosen.X[:, 0], [1, np.nan, 3])
    assert list(chosen.others) == ["sex", "b", "visit"]
    assert list(labels(data, "sex")) == ["f", "m", "f"]


@pytest.mark.parametrize(
    ("text", "ids", "columns"),
    [
        ("id,a\n007,1\n8,2\n", ["007", "8"], ["a"]),
        (",a\n0,1\n1,2\n", ["0", "1"], ["a"]),  # as pandas writes it
        ("1,2\n3,4\n", ["0", "1"], ["column0", "column1"]),
        ("column0,a\n1,2\n3,4\n", ["0", "1"], ["column0", "a"]),
        ("s1,2\ns2,4\n", ["s1", "s2"], ["column1"]),
        ("group,a\nx,2\nx,4\n", ["0", "1"], ["a"]),
        ("id,a\n5,2\n5,4\n", ["0", "1"], ["a"]),  # not all different: no ids, and no data either
        ("7,8\n", ["0"], ["column0", "column1"]),
    ],
)
def test_which_column_is_the_ids(tmp_path, text, ids, columns):
    data = read(written(tmp_path / "t.csv", text))
    assert list(data.ids) == ids
    assert list(data.layout.names) == columns


def test_text_that_appears_late(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 2)
    path = written(tmp_path / "t.csv", "a,b\n1,1\n2,2\n3,x\n4,y\n5,z\n")
    data = read(path)
    np.testing.assert_array_equal(data.X[:, 0], [1, 2, 3, 4, 5])
    assert list(data.others["b"]) == ["1", "2", "x", "y", "z"]


@pytest.mark.parametrize("quote", ["", '"'])
def test_tables_of_many_columns(tmp_path, quote):
    wide = RNG.normal(size=(2, 8000))
    path = written(
        tmp_path / "t.csv",
        "\n".join(
            ",".join([f"{quote}s{i}{quote}", *map(repr, row.tolist())])
            for i, row in enumerate(wide)
        ),
    )
    data = read(path)
    np.testing.assert_array_equal(data.X, wide)
    assert list(data.ids) == ["s0", "s1"]


def test_rows_of_a_table_are_images(tmp_path):
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", fmt="%.17g")
    data = read(tmp_path / "t.csv", shape=(3, 4))
    np.testing.assert_array_equal(data.X, X)
    assert isinstance(data.layout, Images)
    assert list(data.layout.shape) == [3, 4]
    assert list(read(tmp_path / "t.csv", shape=(2, 2, 3)).layout.shape) == [2, 2, 3]


def test_parquet(tmp_path):
    frame = pandas.DataFrame(
        {
            "a": [1.5, np.nan, 3.0],
            "b": pandas.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "sex": pandas.Categorical(["f", "m", "f"]),
            "day": pandas.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
            "note": ["x", None, "z"],
        },
        index=["s1", "s2", "s3"],
    )
    frame.to_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet")
    np.testing.assert_array_equal(data.X, [[1.5, 1, 1], [np.nan, np.nan, 0], [3, 3, 1]])
    assert list(data.layout.names) == ["a", "b", "flag"]
    assert list(data.ids) == ["s1", "s2", "s3"]
    assert list(data.others["sex"]) == ["f", "m", "f"]
    assert list(data.others["note"]) == ["x", "", "z"]
    assert data.others["day"][1] == np.datetime64("2020-01-02")
    chosen = read(tmp_path / "t.parquet", id_column="day", columns=["b", "a"])
    np.testing.assert_array_equal(chosen.X, data.X[:, [1, 0]])
    assert chosen.ids[0].startswith("2020-01-01")
    assert "flag" in chosen.others
    frame[["a"]].astype("float32").reset_index(drop=True).to_parquet(tmp_path / "single.parquet")
    single = read(tmp_path / "single.parquet")
    assert single.X.dtype == np.float32
    assert list(single.ids) == ["0", "1", "2"]


# Arrays


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f4", "i2", ">i4", "u1", "?", "g"])
def test_types_of_numbers(tmp_path, dtype):
    values = (X * 3).astype(dtype)
    np.save(tmp_path / "x.npy", values)
    data = read(tmp_path / "x.npy")
    np.testing.assert_array_equal(data.X, values)
    assert data.X.dtype.isnative
    assert data.X.dtype.itemsize <= 8


def test_npy_is_mapped(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(X))
    for name in ("x.npy", "fortran.npy"):
        data = read(tmp_path / name)
        assert isinstance(data.X, np.memmap)
        assert not data.X.flags.writeable
        np.testing.assert_array_equal(data.X, X)


@pytest.mark.parametrize(
    ("shape", "image"), [((6, 3, 4), [3, 4]), ((6, 2, 2, 3), [2, 2, 3]), ((6, 3, 4, 1), [3, 4])]
)
def test_arrays_of_images(tmp_path, shape, image):
    np.save(tmp_path / "x.npy", X.reshape(shape))
    data = read(tmp_path / "x.npy")
    np.testing.assert_array_equal(data.X, X)
    assert list(data.layout.shape) == image


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    who = np.array([f"s{i}" for i in range(6)])
    save(
        tmp_path / "x.npz",
        odd=np.arange(5),
        X=X,
        who=who,
        group=np.arange(6),
        word=np.array(list("abcdef"), "S1"),
        Y=2 * X,
    )
    data = read(tmp_path / "x.npz", "X", id_column="who")
    np.testing.assert_array_equal(data.X, X)
    assert isinstance(data.X, np.memmap) == (save is np.savez)
    assert list(data.ids) == list(who)
    assert list(data.others) == ["group", "word"]
    assert list(data.others["word"]) == list("abcdef")
    save(tmp_path / "images.npz", pictures=X.reshape(6, 3, 4), group=np.arange(6))
    assert list(read(tmp_path / "images.npz").layout.shape) == [3, 4]


def test_mesh_in_npz(tmp_path):
    field = RNG.normal(size=(5, 4)).astype("f4")
    np.savez(
        tmp_path / "m.npz",
        sphere=VERTICES / 2,
        template_vertices=VERTICES,
        faces=FACES,
        field=field,
        volume=np.arange(5),
    )
    data = read(tmp_path / "m.npz")  # the only array whose columns are the mesh's vertices
    np.testing.assert_array_equal(data.X, field)
    assert isinstance(data.layout, Mesh)
    np.testing.assert_array_equal(data.layout.vertices, VERTICES)
    np.testing.assert_array_equal(data.layout.faces, FACES)
    np.save(tmp_path / "field.npy", field)
    np.testing.assert_array_equal(
        read(tmp_path / "field.npy", mesh=tmp_path / "m.npz").layout.faces, FACES
    )


def test_places_of_voxels_are_no_mesh(tmp_path):
    places = np.argwhere(np.ones((2, 3, 2)))
    np.savez(tmp_path / "v.npz", X=X, millimetres=places * 2.5, places=places)
    assert isinstance(read(tmp_path / "v.npz", "X").layout, Lines)


def matlab_73(path, **variables):
    """What MATLAB writes with -v7.3: HDF5 after 512 bytes of its own, axes reversed, text as codes, cells as references."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            if isinstance(value, list):
                cells = file.create_group("#refs#")
                for i, word in enumerate(value):
                    cells[str(i)] = np.array([[ord(letter)] for letter in word], np.uint16)
                    cells[str(i)].attrs["MATLAB_class"] = np.bytes_("char")
                file[name] = np.array(
                    [[cells[str(i)].ref for i in range(len(value))]], h5py.ref_dtype
                )
                file[name].attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                file[name] = value.T
                file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


@pytest.mark.parametrize("version", ["5", "7.3"])
def test_mat(tmp_path, version):
    path = tmp_path / "x.mat"
    words = [f"s{i}" for i in range(6)]
    age = np.arange(6.0)[:, None]
    if version == "5":
        cells = np.empty((6, 1), object)
        cells[:, 0] = words
        scipy.io.savemat(
            path, {"X": X, "who": cells, "age": age, "rest": {"a": 1}}, do_compression=True
        )
    else:
        matlab_73(path, X=X, who=words, age=age)
    data = read(path)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.others["age"], age[:, 0])
    assert list(data.others["who"]) == words
    assert list(read(path, "X", id_column="who").ids) == words
    np.testing.assert_array_equal(read(path, "age").X, age)


@pytest.mark.parametrize("version", ["5", "7.3"])
def test_images_in_mat(tmp_path, version):
    images = X.reshape(6, 3, 4)
    scipy.io.savemat(tmp_path / "x.mat", {"images": images}) if version == "5" else matlab_73(
        tmp_path / "x.mat", images=images
    )
    data = read(tmp_path / "x.mat")
    np.testing.assert_array_equal(data.X, X)
    assert list(data.layout.shape) == [3, 4]


def test_mat_has_faces_from_one_and_sparse_matrices(tmp_path):
    field = np.eye(4)[:3]
    scipy.io.savemat(
        tmp_path / "m.mat",
        {"field": scipy.sparse.csc_matrix(field), "vertices": VERTICES, "faces": FACES + 1.0},
    )
    data = read(tmp_path / "m.mat", "field")
    np.testing.assert_array_equal(data.X, field)
    np.testing.assert_array_equal(data.layout.faces, FACES)


def test_hdf5(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("group/data", data=X, chunks=(2, 12), compression="gzip")
        file["group/who"] = [f"s{i}" for i in range(6)]
        file["other"] = np.zeros((3, 4))
    data = read(tmp_path / "x.h5", "/group/data", id_column="group/who")
    np.testing.assert_array_equal(data.X, X)
    assert data.ids[5] == "s5"


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(tmp_path, version):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=version)
    group.create_array("deep/data", data=X, chunks=(2, 5))
    group.create_array("age", data=np.arange(6))
    for data in (
        read(tmp_path / "x.zarr"),
        read(tmp_path / "x.zarr", "deep/data"),
        read(tmp_path / "x.zarr" / "deep" / "data"),
    ):
        np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(read(tmp_path / "x.zarr").others["age"], np.arange(6))


# Images


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Two colour images of different sizes, and something that is none."""
    folder = tmp_path_factory.mktemp("pictures")
    for name, shape in (("b.png", (9, 7, 3)), ("a.bmp", (6, 8, 3))):
        Image.fromarray(np.random.default_rng(len(name)).integers(0, 256, shape, np.uint8)).save(
            folder / name
        )
    (folder / "notes.md").write_text("no image")
    return folder


@pytest.mark.parametrize("colour", [False, True])
def test_patches(pictures, colour):
    data = read(pictures, patch_size=3, stride=2, colour=colour)
    expected, ids = [], []
    for name in ("a.bmp", "b.png"):
        image = np.asarray(Image.open(pictures / name).convert("RGB" if colour else "L")) / 255
        for i, j in itertools.product(
            range(0, image.shape[0] - 2, 2), range(0, image.shape[1] - 2, 2)
        ):
            expected.append(image[i : i + 3, j : j + 3].ravel())
            ids.append(f"{name}:{i}:{j}")
    np.testing.assert_allclose(data.X, expected, atol=1e-7)
    assert list(data.ids) == ids
    assert data.X.dtype == np.float32
    assert list(data.layout.shape) == ([3, 3, 3] if colour else [3, 3])
    centred = read(pictures, patch_size=3, stride=2, colour=colour, centre_patches=True).X
    np.testing.assert_allclose(
        centred, expected - np.mean(expected, axis=1, keepdims=True), atol=1e-6
    )
    assert len(read(pictures, patch_size=3).X) == 2 * 2 + 3 * 2
    assert len(read(pictures / "b.png", patch_size=3).X) == 3 * 2


def test_whole_images(pictures, tmp_path):
    data = read(pictures, size=(4, 5))
    assert data.X.shape == (2, 20)
    assert list(data.ids) == ["a.bmp", "b.png"]
    small = Image.open(pictures / "b.png").convert("L").resize((5, 4), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(data.X[1], np.asarray(small).ravel() / 255, atol=1e-7)
    deep = np.array([[0, 1000], [40000, 65535]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    np.testing.assert_allclose(read(tmp_path).X[0], deep.ravel() / 65535, atol=1e-7)
    np.testing.assert_allclose(
        read(tmp_path / "deep.png", colour=True).X[0], np.repeat(deep.ravel(), 3) / 65535, atol=1e-7
    )


# Volumes


@pytest.fixture(scope="module")
def brains(tmp_path_factory):
    """Five volumes in one file and in a folder, two voxels of which never change, and a mask."""
    folder = tmp_path_factory.mktemp("brains")
    values = np.random.default_rng(3).normal(size=(3, 4, 2, 5)).astype(np.float32)
    values[0, 0, 0] = 7
    values[1, 2, 1] = np.nan
    values[2, 2, 1, 2] = np.nan
    mask = np.zeros((3, 4, 2), np.uint8)
    mask[0, :2] = mask[2, 3, 1] = 1
    nibabel.Nifti1Image(values, AFFINE).to_filename(folder / "all.nii.gz")
    nibabel.Nifti1Image(mask, AFFINE).to_filename(folder / "mask.nii")
    (folder / "each").mkdir()
    for t in range(5):
        nibabel.Nifti1Image(values[..., t], AFFINE).to_filename(
            folder / "each" / f"s{t}.nii{'.gz' * (t % 2)}"
        )
    return folder, values, mask != 0


def test_volumes(brains):
    folder, values, mask = brains
    changing = np.ones(mask.shape, bool)
    changing[0, 0, 0] = changing[1, 2, 1] = False
    for path in (folder / "all.nii.gz", folder / "each"):
        data = read(path)
        assert isinstance(data.layout, Volume)
        np.testing.assert_array_equal(data.layout.mask, changing)
        np.testing.assert_array_equal(data.layout.affine, AFFINE)
        np.testing.assert_array_equal(data.X, [values[..., t][changing] for t in range(5)])
        masked = read(path, mask=folder / "mask.nii")
        np.testing.assert_array_equal(masked.X, values[mask].T)
        assert masked.X.dtype == np.float32
    (folder / "each" / "mask.nii").write_bytes(
        (folder / "mask.nii").read_bytes()
    )  # a mask among the volumes is none of them
    np.testing.assert_array_equal(
        read(folder / "each", mask=folder / "each" / "mask.nii").X, values[mask].T
    )
    (folder / "each" / "mask.nii").unlink()
    assert list(read(folder / "each").ids) == [
        "s0.nii",
        "s1.nii.gz",
        "s2.nii",
        "s3.nii.gz",
        "s4.nii",
    ]


def test_folders_of_many_files(tmp_path):
    for i in range(30):
        nibabel.Nifti1Image(np.full((2, 2, 2), i, np.float32), AFFINE).to_filename(
            tmp_path / f"{i:02}.nii.gz"
        )
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with (tmp_path / "00.nii.gz").open() as file:
        lowest = file.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 8, limits[1]))
    try:
        data = read(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    np.testing.assert_array_equal(data.X, np.repeat(np.arange(30.0)[:, None], 8, axis=1))


def test_scaled_integers(tmp_path):
    stored = RNG.integers(-9, 9, size=(2, 2, 2, 3)).astype(np.int16)
    image = nibabel.Nifti1Image(stored, AFFINE)
    image.header.set_slope_inter(0.5, 10)
    image.to_filename(tmp_path / "x.nii")
    raw = np.frombuffer((tmp_path / "x.nii").read_bytes()[-48:], np.int16).reshape(
        (2, 2, 2, 3), order="F"
    )
    nibabel.Nifti1Image(np.ones((2, 2, 2), np.uint8), AFFINE).to_filename(tmp_path / "mask.nii")
    np.testing.assert_allclose(
        read(tmp_path / "x.nii", mask=tmp_path / "mask.nii").X,
        (raw * 0.5 + 10).reshape(8, 3).T,
        atol=1e-6,
    )


# Surfaces


def gifti(path, *arrays):
    """(values, intent, name) for each array."""
    parts = [
        nibabel.gifti.GiftiDataArray(
            values, intent=intent, meta=nibabel.gifti.GiftiMetaData({"Name": name} if name else {})
        )
        for values, intent, name in arrays
    ]
    nibabel.gifti.GiftiImage(darrays=parts).to_filename(path)


FIELDS = RNG.normal(size=(3, 4)).astype(np.float32)
SURFACE = ((VERTICES, "NIFTI_INTENT_POINTSET", ""), (FACES, "NIFTI_INTENT_TRIANGLE", ""))


def test_gifti(tmp_path):
    gifti(
        tmp_path / "x.func.gii",
        *((values, "NIFTI_INTENT_NONE", f"t{i}") for i, values in enumerate(FIELDS)),
    )
    gifti(tmp_path / "x.surf.gii", *SURFACE)
    data = read(tmp_path / "x.func.gii", mesh=tmp_path / "x.surf.gii")
    np.testing.assert_array_equal(data.X, FIELDS)
    assert list(data.ids) == ["t0", "t1", "t2"]
    np.testing.assert_array_equal(data.layout.vertices, VERTICES)
    np.testing.assert_array_equal(data.layout.faces, FACES)
    assert list(read(tmp_path / "x.func.gii").layout.names) == [
        "vertex0",
        "vertex1",
        "vertex2",
        "vertex3",
    ]
    np.testing.assert_array_equal(read(tmp_path / "x.func.gii", "t1").X, FIELDS[1:2])


def test_folder_of_gifti(tmp_path):
    for i, values in enumerate(FIELDS):
        gifti(
            tmp_path / f"s{i}.shape.gii",
            (values, "NIFTI_INTENT_SHAPE", "thickness"),
            (values * 2, "NIFTI_INTENT_SHAPE", "area"),
        )
    gifti(tmp_path / "template.surf.gii", *SURFACE)
    data = read(tmp_path, "area")
    np.testing.assert_array_equal(data.X, 2 * FIELDS)
    assert list(data.ids) == ["s0.shape.gii", "s1.shape.gii", "s2.shape.gii"]
    np.testing.assert_array_equal(data.layout.faces, FACES)


WRITERS = {
    "text-4.2.vtk": lambda path, mesh: meshio.vtk.write(path, mesh, "4.2", binary=False),
    "binary-4.2.vtk": lambda path, mesh: meshio.vtk.write(path, mesh, "4.2", binary=True),
    "text-5.1.vtk": lambda path, mesh: meshio.vtk.write(path, mesh, "5.1", binary=False),
    "binary-5.1.vtk": lambda path, mesh: meshio.vtk.write(path, mesh, "5.1", binary=True),
    "text.ply": lambda path, mesh: meshio.ply.write(path, mesh, binary=False),
    "binary.ply": lambda path, mesh: meshio.ply.write(path, mesh, binary=True),
}


@pytest.mark.parametrize("name", WRITERS)
def test_surfaces_that_meshio_writes(tmp_path, name):
    fields = {"depth": FIELDS[0].astype(float), "area": FIELDS[1].astype(float)}
    WRITERS[name](tmp_path / name, meshio.Mesh(VERTICES, [("triangle", FACES)], point_data=fields))
    data = read(tmp_path / name)
    np.testing.assert_allclose(data.X, FIELDS[:2], rtol=1e-6)
    assert list(data.ids) == ["depth", "area"]
    np.testing.assert_allclose(data.layout.vertices, VERTICES, rtol=1e-6)
    np.testing.assert_array_equal(data.layout.faces, FACES)
    np.testing.assert_array_equal(read(tmp_path, "area").X, data.X[1:])


POLYDATA = """# vtk DataFile Version 3.0

ASCII
DATASET POLYDATA
POINTS 4 float
0 0 0 1 0 0
0 1 0 0 0 1.5

POLYGONS 4 16
3 0 1 2
3 0 1 3
3 0 2 3
3 1 2 3

METADATA
INFORMATION 0

CELL_DATA 4
SCALARS of_cells int 1
LOOKUP_TABLE default
1 2 3 4
POINT_DATA 4
NORMALS normals float
0 0 1 0 0 1 0 0 1 0 0 1
SCALARS depth double
LOOKUP_TABLE default
0.5 1.5
2.5 3.5
FIELD FieldData 2
pair 2 4 int
1 2 3 4 5 6 7 8
a%20name 1 4 float
9 8 7 6
"""


def test_polydata_and_obj(tmp_path):
    data = read(written(tmp_path / "x.vtk", POLYDATA))
    np.testing.assert_array_equal(data.X, [[0.5, 1.5, 2.5, 3.5], [9, 8, 7, 6]])
    assert list(data.ids) == ["depth", "a name"]
    np.testing.assert_array_equal(data.layout.vertices, VERTICES)
    meshio.obj.write(tmp_path / "m.obj", meshio.Mesh(VERTICES, [("triangle", FACES)]))
    np.save(tmp_path / "f.npy", FIELDS)
    for surface in ("x.vtk", "m.obj"):
        layout = read(tmp_path / "f.npy", mesh=tmp_path / surface).layout
        np.testing.assert_array_equal(layout.vertices, VERTICES)
        np.testing.assert_array_equal(layout.faces, FACES)
    relative = written(
        tmp_path / "r.obj",
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nv 0 0 1.5\nf -4/1/1 -3/2/1 -2/3/1\nf 1//1 2//1 4//1\n",
    )
    np.testing.assert_array_equal(
        read(tmp_path / "f.npy", mesh=relative).layout.faces, [[0, 1, 2], [0, 1, 3]]
    )


# Writing


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
def test_volumes_are_written(tmp_path, brains, dtype):
    mask = brains[2]
    maps = RNG.normal(size=(3, mask.sum())).astype(dtype)
    volumes, stored_mask = write(maps, Volume(mask, AFFINE), tmp_path / "maps")
    data = read(volumes, mask=stored_mask)
    np.testing.assert_array_equal(data.X, maps)
    assert data.X.dtype == maps.dtype
    np.testing.assert_array_equal(data.layout.mask, mask)
    np.testing.assert_array_equal(data.layout.affine, AFFINE)
    np.testing.assert_array_equal(read(volumes).layout.mask, mask)
    image = nibabel.load(volumes)
    assert image.shape == (3, 4, 2, 3)
    assert (image.get_fdata()[~mask] == 0).all()


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
    assert [
        path.name
        for path in write(FIELDS, Mesh(VERTICES, FACES), tmp_path / "z", like=tmp_path / "in")
    ] == ["z.vtk"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert [path.name for path in write(FIELDS, Mesh(VERTICES, FACES), tmp_path / "y")] == ["y.vtk"]


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


def test_a_failure_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_table(tmp_path / "t.csv", X[:, :1], range(6), ["a"])
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_table(path, 2 * X[:, :1], range(6), ["a"])
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


def test_fingerprint(tmp_path, monkeypatch):
    expected = hashlib.sha256(b"(6, 12) <f8" + X.astype("<f8").tobytes()).hexdigest()
    assert fingerprint(X) == expected
    monkeypatch.setattr("noisyica.data.rows.CHUNK", 30)
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    assert fingerprint(read(tmp_path / "x.npy").X) == fingerprint(X) == expected
    changed = X.copy()
    changed[5, 11] += 1e-15
    others = [changed, X[:5], X.reshape(12, 6), X.astype("f4"), X.T]
    assert len({expected, *map(fingerprint, others)}) == 6
    with pytest.raises(TypeError, match="Python objects"):
        fingerprint(np.array([{}]))


# Layouts, labels, libraries


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lines(np.zeros((2, 2))), "one axis"),
        (lambda: Images(np.array([3, 4, 2])), "height, width, 3"),
        (lambda: Images(np.array([3, 0])), "height, width"),
        (lambda: Volume(np.ones((2, 2), bool), np.eye(4)), "three axes"),
        (lambda: Volume(np.zeros((2, 2, 2), bool), np.eye(4)), "empty"),
        (lambda: Volume(np.ones((2, 2, 2), bool), np.full((4, 4), np.nan)), "finite matrix"),
        (lambda: Mesh(VERTICES[:, :2], FACES), "three coordinates"),
        (lambda: Mesh(VERTICES * np.nan, FACES), "not finite"),
        (lambda: Mesh(VERTICES, FACES + 1), "none of the 4 vertices"),
        (lambda: Mesh(VERTICES, FACES - 1), "none of the 4 vertices"),
        (lambda: Mesh(VERTICES, FACES * 1.0), "indices of vertices"),
        (lambda: Mesh(VERTICES, FACES[:, :2]), "three corners"),
    ],
)
def test_layouts_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_labels(tmp_path):
    data = Data(X, {}, np.arange(6).astype(str), Lines(np.arange(12).astype(str)))
    words = ["a", "b c", "é", "a", "", "b"]
    for text in ("\ufeff" + "\n".join(words), "\r\n".join(words) + "\n"):
        assert list(labels(data, str(written(tmp_path / "l.txt", text)))) == words
    np.save(tmp_path / "l.npy", np.arange(6))
    assert list(labels(data, str(tmp_path / "l.npy"))) == list(range(6))
    np.save(tmp_path / "objects.npy", np.array([None] * 6), allow_pickle=True)
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\n")
    for name, message in (
        ("none.txt", "neither a file"),
        ("objects.npy", "cannot be read"),
        ("bad.txt", "cannot be read"),
    ):
        with pytest.raises(ValueError, match=message):
            labels(data, str(tmp_path / name))
    np.save(tmp_path / "zero.npy", np.array(3))
    with pytest.raises(ValueError, match=r"shape \(\)"):
        labels(data, str(tmp_path / "zero.npy"))


@pytest.mark.parametrize(
    ("library", "extra", "name"),
    [
        ("h5py", "hdf5", "x.h5"), ("zarr", "zarr", "x.zarr"), ("pyarrow.parquet", "parquet", "x.parquet"), ("nibabel", "neuro", "x.nii"),
        ("nibabel", "neuro", "x.gii"), ("PIL.Image", "images", "x.png"),
    ],
)  # fmt: skip
def test_libraries_that_are_missing(tmp_path, monkeypatch, library, extra, name):
    if name.endswith("zarr"):
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'noisyica\[{extra}\]'"):
        read(tmp_path / name)


def test_sizes_that_are_refused():
    files.check_size("x", 2**30, 1)
    with pytest.raises(ValueError, match=r"x claims to hold 2 GiB in 1 bytes"):
        files.check_size("x", 2**31, 1)
    with pytest.raises(ValueError, match=r"x would take 1.049e\+06 TiB, but this machine has"):
        files.check_size("x", 2**60, 2**60)


@pytest.mark.parametrize(
    "name",
    [module.name for module in pkgutil.iter_modules(noisyica.data.__path__, "noisyica.data.")],
)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_a_column_called_id_and_columns_called_alike(tmp_path):
    path = write_table(tmp_path / "t.csv", X[:, :2], [f"s{i}" for i in range(6)], ["id", "id_0"])
    assert path.read_text().startswith("id_1,id,id_0\ns0,")
    np.testing.assert_array_equal(read(path).X, X[:, :2])
    (tmp_path / "alike.csv").write_text("a,a,c\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match="2 columns 'a'"):
        read(tmp_path / "alike.csv")
