"""Reading arrays, against files that other libraries write; memory; and layouts and labels."""

import doctest
import hashlib
import importlib
import pkgutil
import sys
import tracemalloc

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import zarr

import noisyica.data
from noisyica.data import Data, Images, Lines, Mesh, Volume, files, fingerprint, labels, read
from tests.data_files import FACES, VERTICES, X, put, write_text

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
    field = np.random.default_rng(0).normal(size=(5, 4)).astype("f4")
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
    """Write what MATLAB writes with -v7.3.

    That is HDF5 after 512 bytes of its own, with the axes reversed, text as codes of letters, and
    cells as references.
    """
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
    if version == "5":
        scipy.io.savemat(tmp_path / "x.mat", {"images": images})
    else:
        matlab_73(tmp_path / "x.mat", images=images)
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
    put(group, "deep/data", X, chunks=(2, 5))
    put(group, "age", np.arange(6))
    for data in (
        read(tmp_path / "x.zarr"),
        read(tmp_path / "x.zarr", "deep/data"),
        read(tmp_path / "x.zarr" / "deep" / "data"),
    ):
        np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(read(tmp_path / "x.zarr").others["age"], np.arange(6))


# Memory


def allocated(call):
    """Return what a call returns, and the largest number of bytes that it held at a time."""
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["rows", "fortran", "images", "npz"])
def test_memory_maps_are_not_read_whole(tmp_path, kind):
    """Of 96 MB, neither reading nor the fingerprint holds more than a part at a time."""
    shape = (24_000, 20, 50) if kind == "images" else (24_000, 1_000)
    values = np.ones(shape, np.float32, order="F" if kind == "fortran" else "C")
    values[-1, -1] = -3.5
    path = tmp_path / ("x.npz" if kind == "npz" else "x.npy")
    np.savez(path, values=values) if kind == "npz" else np.save(path, values)
    data, most = allocated(lambda: read(path))
    assert isinstance(data.X, np.memmap)
    assert most < 50e6
    digest, most = allocated(lambda: fingerprint(data.X))
    assert most < 50e6
    assert digest == hashlib.sha256(b"(24000, 1000) <f4" + values.tobytes()).hexdigest()


def test_infinite_numbers_are_found_anywhere(tmp_path):
    values = np.ones((24_000, 1_000), np.float32)
    values[-1, 3] = np.inf
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(ValueError, match="infinite number in row '23999', column 'column3'"):
        read(tmp_path / "x.npy")


def test_fingerprint_of_a_long_row(tmp_path):
    values = np.ones((1, 12_000_000))
    np.save(tmp_path / "x.npy", values)
    digest, most = allocated(lambda: fingerprint(np.load(tmp_path / "x.npy", mmap_mode="r")))
    assert most < 50e6
    assert digest == hashlib.sha256(b"(1, 12000000) <f8" + values.tobytes()).hexdigest()


@pytest.mark.parametrize("last", [[0.0, 1.0, 2.5], [0.0, 1.0, 9.0], [0.0, 1.0, 1.0]])
def test_large_arrays_that_are_no_mesh(tmp_path, last):
    """144 MB that look like the corners of triangles until their last row."""
    points = np.tile([0.0, 1.0, 2.0], (6_000_000, 1))
    points[-1] = last
    np.savez(tmp_path / "x.npz", X=np.eye(4)[:2], vertices=VERTICES, points=points)
    data, most = allocated(lambda: read(tmp_path / "x.npz", "X"))
    assert isinstance(data.layout, Lines)
    assert most < 80e6


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
        assert list(labels(data, str(write_text(tmp_path / "l.txt", text)))) == words
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
        ("h5py", "hdf5", "x.h5"),
        ("zarr", "zarr", "x.zarr"),
        ("pyarrow.parquet", "parquet", "x.parquet"),
        ("nibabel", "neuro", "x.nii"),
        ("nibabel", "neuro", "x.gii"),
        ("PIL.Image", "images", "x.png"),
    ],
)
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
