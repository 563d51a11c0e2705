"""Files that are opened, not read: the same rows as those that `read` gives, a part at a time."""

import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
import zarr

from noisyica import data
from noisyica.data import files, opening
from noisyica.data.held import Held
from tests.data_files import put

N = 300


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 12)).astype(np.float32)


def write_hdf5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return path


def table(X):
    names = np.array([f"s{i}" for i in range(len(X))])
    columns = {"who": names, "sex": np.where(X[:, 0] > 0, "f", "m")}
    return columns | {f"x{j}": X[:, j] for j in range(3)}


def agree(path, **options):
    """Read a file and open it; check that both give the same, and return what was opened."""
    read, opened = data.read(path, **options), data.open(path, **options)
    assert isinstance(opened.X, Held)
    assert opened.X.shape == read.X.shape
    assert opened.X.dtype == read.X.dtype
    np.testing.assert_array_equal(opened.X[7:200], read.X[7:200])
    np.testing.assert_array_equal(opened.X[[290, 3]], read.X[[290, 3]])
    np.testing.assert_array_equal(opened.ids, read.ids)
    assert opened.others.keys() == read.others.keys()
    for name, values in read.others.items():
        np.testing.assert_array_equal(opened.others[name], values)
    assert type(opened.layout) is type(read.layout)
    for field in opened.layout.__dict__ if hasattr(opened.layout, "__dict__") else ():
        np.testing.assert_array_equal(getattr(opened.layout, field), getattr(read.layout, field))
    assert data.fingerprint(opened.X) == data.fingerprint(read.X)
    return opened


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", "?"])
def test_npy(X, order, dtype, tmp_path):
    X = np.array(10 * X).astype(dtype, order=order)
    np.save(tmp_path / "X.npy", X)
    agree(tmp_path / "X.npy")
    agree(tmp_path / "X.npy", shape=(3, 4))
    np.save(tmp_path / "images.npy", np.asarray(X.reshape(N, 3, 4), order=order))
    assert agree(tmp_path / "images.npy").X.shape == (N, 12)


def test_hdf5(X, tmp_path):
    who = np.arange(N) * 2
    path = write_hdf5(tmp_path / "X.h5", rows=X, who=who, images=X.reshape(N, 3, 4))
    agree(path)
    agree(path, array="images")
    assert list(agree(path, id_column="who").ids[:2]) == ["0", "2"]
    with pytest.raises(ValueError, match="has no array 'what'"):
        data.open(path, "what")


def test_zarr(X, tmp_path):
    group = zarr.open_group(tmp_path / "X.zarr", mode="w")
    put(group, "rows", X, chunks=(40, 12))
    put(group, "age", np.arange(N))
    agree(tmp_path / "X.zarr")


@pytest.mark.parametrize("index", [False, True])
def test_parquet(X, index, tmp_path):
    path, columns = tmp_path / "X.parquet", table(X)
    frame = pandas.DataFrame(columns)
    (frame.set_index("who") if index else frame).to_parquet(path, row_group_size=90)
    agree(path)
    assert agree(path, columns=["x2", "x0"]).X.shape == (N, 2)
    if not index:
        assert agree(path, id_column="x1").X.shape == (N, 2)


def test_numbers_of_parquet_are_those_that_are_read(X, tmp_path):
    columns = {
        "id": np.arange(N) + 10,
        "whole": pyarrow.array([None if i % 7 == 0 else i for i in range(N)]),
        "single": X[:, 0],
        "day": np.datetime64("2020-01-01") + np.arange(N),
        "word": ["a", "b", None] * (N // 3),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "X.parquet", row_group_size=80)
    opened = agree(tmp_path / "X.parquet")
    assert opened.X.shape == (N, 2)
    assert opened.X.dtype == float
    assert np.isnan(opened.X[:1][0, 0])
    assert opened.ids[0] == "10"
    with pytest.raises(ValueError, match="column 'word' is not of numbers"):
        data.open(tmp_path / "X.parquet", columns=["word"])


def test_other_files_are_read(X, tmp_path):
    np.savetxt(tmp_path / "X.csv", X, delimiter=",")
    opened = data.open(tmp_path / "X.csv")
    np.testing.assert_array_equal(opened.X, data.read(tmp_path / "X.csv").X)
    assert type(opened.X) is np.ndarray


def test_wrong_files_are_refused_as_they_are_read(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((3, 2), complex))
    with pytest.raises(ValueError, match="holds complex128, not numbers"):
        data.open(tmp_path / "X.npy")
    with pytest.raises(ValueError, match="There is no file"):
        data.open(tmp_path / "Y.npy")
    with pytest.raises(ValueError, match="patch_size is for images"):
        data.open(tmp_path / "X.npy", patch_size=3)
    pyarrow.parquet.write_table(pyarrow.table({"a": np.zeros(0)}), tmp_path / "X.parquet")
    with pytest.raises(ValueError, match="has no rows of numbers"):
        data.open(tmp_path / "X.parquet")


def test_damage_that_is_found_late_names_the_file(X, tmp_path):
    path = tmp_path / "X.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(50, 12), compression="gzip")
        offset = file["X"].id.get_chunk_info(3).byte_offset
    content = bytearray(path.read_bytes())
    content[offset : offset + 40] = b"\xff" * 40
    path.write_bytes(content)
    opened = data.open(path)
    with pytest.raises(ValueError, match=r"X\.h5 cannot be read \(.*is it damaged"):
        opened.X[140:210]


def test_files_are_opened_where_they_are_large_for_the_memory(X, tmp_path, monkeypatch):
    path = write_hdf5(tmp_path / "X.h5", rows=X)
    assert files.available_memory() > 2 * X.nbytes
    assert type(opening.read_or_open(path).X) is np.ndarray
    for memory, opened in ((2 * X.nbytes, False), (2 * X.nbytes - 1, True)):
        monkeypatch.setattr(opening, "available_memory", lambda memory=memory: memory)
        assert isinstance(opening.read_or_open(path, array="rows").X, Held) == opened
    np.savetxt(tmp_path / "X.csv", X, delimiter=",")
    assert type(opening.read_or_open(tmp_path / "X.csv").X) is np.ndarray


def test_memory_that_is_not_known_is_taken_as_enough(monkeypatch):
    monkeypatch.setattr(files.Path, "read_text", lambda self: "MemTotal: 3 kB\n")
    known = files.available_memory()
    assert 2**20 < known < float("inf")
    monkeypatch.setattr(files.os, "sysconf_names", {}, raising=False)
    assert files.available_memory() == float("inf")
