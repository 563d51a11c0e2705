"""Files that are damaged, hostile, or not what they should be.

One line must say what is wrong with them, without a hang or a flood of memory.
"""

import os
import resource
import signal

import numpy as np
import pyarrow
import pytest

from noisyica.app import runs
from noisyica.data import read
from tests import bad_pictures
from tests.bad_files import (
    DAMAGED,
    PLY,
    SCALARS,
    TABLE,
    VTK,
    cut,
    empty_folder,
    gifti,
    hdf5,
    huge_npy,
    huge_zarr,
    image_file,
    in_folder,
    loop,
    mat,
    missing,
    nifti,
    npy,
    npy_header,
    npz,
    parquet,
    pipe,
    raw,
    unreadable,
    zarr_store,
    zip_bomb,
)
from tests.data_files import X, put


class Hang(BaseException):
    """What a timer raises; nothing but pytest catches it."""


def _hang(*_):
    raise Hang


@pytest.fixture(autouse=True)
def limits():
    """Let a test take at most half a minute, as machines may be busy, and 300 MB of memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)
    unit = 2**20 if os.uname().sysname == "Darwin" else 2**10
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit < 300


# The call itself is wrong, whatever the file.
CALLS = {
    "columns as text": (TABLE, {"columns": "ab"}, "columns is a list"),
    "shape and mesh": (TABLE, {"shape": (1, 2), "mesh": "m.gii"}, "not both"),
    "shape of one number": (npy(X), {"shape": (12,)}, "shape is .height, width."),
    "shape with zero": (npy(X), {"shape": (0, 12)}, "shape must be at least 1"),
    "shape of fractions": (npy(X), {"shape": (3.5, 4)}, "shape must be whole numbers"),
    "stride of zero": (
        image_file(),
        {"patch_size": 2, "stride": 0},
        "stride must be at least 1, not 0",
    ),
    "negative stride": (
        image_file(),
        {"patch_size": 2, "stride": -1},
        "stride must be at least 1, not -1",
    ),
    "stride alone": (image_file(), {"stride": 2}, "give a patch_size"),
    "patch of zero": (image_file(), {"patch_size": 0}, "patch_size must be at least 1"),
    "patch of words": (image_file(), {"patch_size": "big"}, "patch_size must be whole numbers"),
    "size of three": (image_file(), {"size": (2, 2, 3)}, "size is .height, width."),
}

TOO_LARGE = "would take 8 TiB, but this machine has"

CASES = bad_pictures.CASES | {
    # paths
    "no file": (missing("x.csv"), {}, "There is no file"),
    "no folder": (missing("none/x.npy"), {}, "There is no file"),
    "name that is too long": (missing("x" * 5000 + ".csv"), {}, "There is no file"),
    "zero byte in the name": (missing("x\0.csv"), {}, "There is no file"),
    "links in a circle": (loop, {}, "There is no file"),
    "pipe": (pipe, {}, "neither a file nor a folder"),
    "no permission": (unreadable, {}, "Permission denied"),
    "unknown ending": (raw("x.docx", "1 2"), {}, "files of this kind are not known"),
    "no ending": (raw("x", "1 2"), {}, "files of this kind are not known"),
    "folder with a file's name": (empty_folder("x.npy"), {}, "is a folder, not a file"),
    "empty folder": (empty_folder("x"), {}, "no images, volumes or surfaces"),
    "folder of other files": (in_folder(TABLE), {}, "no images, volumes or surfaces"),
    "folder of two kinds": (in_folder(image_file(), nifti()), {}, "images and volumes"),
    **{
        f"empty {end}": (raw(f"x.{end}", ""), {}, "is empty")
        for end in ("csv", "npy", "npz", "mat", "h5", "parquet", "png", "nii", "gii", "vtk")
    },
    # options that are for other files
    "array of a table": (TABLE, {"array": "X"}, "array is for .npz files, MATLAB files"),
    "patches of a table": (TABLE, {"patch_size": 3}, "patch_size is for images"),
    "voxels of a table": (TABLE, {"ica": "spatial"}, "ica is for volumes"),
    "mask of an array": (npy(X), {"mask": "mask.nii"}, "mask is for volumes"),
    "shape that does not fit": (
        npy(X),
        {"shape": (3, 5)},
        "has 12 columns: they are not images of 3 x 5",
    ),
    # text
    "only blank lines": (raw("x.csv", "\n\n  \n"), {}, "is empty"),
    "header alone": (raw("x.csv", "a,b\n"), {}, "no rows of numbers"),
    "no numbers": (raw("x.csv", "a,b\nx,y\nz,w\n"), {}, "no rows of numbers"),
    "short line": (
        raw("x.csv", "a,b,c\n1,2,3\n\n4,5\n"),
        {},
        "line 4 has 2 columns, the first one 3",
    ),
    "long line": (raw("x.txt", "1 2\n3 4\n5 6 7\n"), {}, "line 3 has 3 columns, the first one 2"),
    "short line with semicolons": (raw("x.csv", "a;b;c\n1;2;3\n4;5\n"), {}, "line 3 has 2 columns"),
    "quote that is left open": (
        raw("x.csv", 'a,b\n1,"2\n3,4\n5,6\n'),
        {},
        "unexpected end of data",
    ),
    "binary": (raw("x.csv", bytes(range(256)) * 4), {}, "cannot be read as text"),
    "UTF-16": (raw("x.csv", "a,b\n1,2\n".encode("utf-16")), {}, "UTF-16"),
    "Latin-1": (
        raw("x.csv", "a,é\n1,2\n".encode("latin-1")),
        {},
        r"cannot be read as UTF-8 \(byte 2\)",
    ),
    "cell without end": (raw("x.csv", 'a,b\n1,"' + "9" * 200_000), {}, DAMAGED),
    "infinity": (raw("x.csv", "a,b\n1,2\n3,-inf\n"), {}, "infinite number in row '1', column 'b'"),
    "number too large": (
        raw("x.csv", "a,b\n1,2\n1e999,4\n"),
        {},
        "infinite number in row '1', column 'a'",
    ),
    "word among numbers": (
        raw("x.csv", "a,b\n1,2\n1.5.1,4\n5,6\n"),
        {},
        "column 'a' is of numbers, but row 2 has '1.5.1'",
    ),
    "ids that repeat": (
        raw("x.csv", "k,a\ns1,1\ns1,2\n"),
        {"id_column": "k"},
        "2 rows with the id 's1'",
    ),
    "id column that is not there": (
        TABLE,
        {"id_column": "whom"},
        "no column 'whom': it has who, a, b",
    ),
    "id column beyond the last": (TABLE, {"id_column": 3}, "no column 3"),
    "id column twice": (raw("x.csv", "k,k,a\nx,y,1\nz,w,2\n"), {"id_column": "k"}, "2 columns 'k'"),
    "column that is not there": (TABLE, {"columns": ["a", "c"]}, "no column 'c'"),
    "column of text": (TABLE, {"columns": ["who"]}, "column 'who' is not of numbers"),
    "no columns": (TABLE, {"columns": []}, "no columns of numbers to use"),
    "text columns of one name": (raw("x.csv", "a,k,k\n1,x,y\n2,z,w\n"), {}, "2 columns 'k'"),
    # Parquet
    "text as Parquet": (raw("x.parquet", "a,b\n1,2\n"), {}, DAMAGED),
    "Parquet cut short": (cut(parquet(a=[1.0, 2.0])), {}, DAMAGED),
    "Parquet of words": (parquet(a=["x", "y"]), {}, "no rows of numbers"),
    "Parquet of dates": (
        parquet(a=pyarrow.array([1, 2], pyarrow.date32())),
        {},
        "no rows of numbers",
    ),
    "Parquet of lists": (
        parquet(a=[1.0], b=[[1, 2]]),
        {},
        "column 'b' holds list.*name the columns to use",
    ),
    "Parquet of bytes": (parquet(a=[1.0], b=[b"x"]), {}, "column 'b' holds binary"),
    "Parquet without rows": (
        parquet(a=pyarrow.array([], pyarrow.float64())),
        {},
        "no rows of numbers",
    ),
    "Parquet with infinity": (
        parquet(a=[1.0, float("inf")]),
        {},
        "infinite number in row '1', column 'a'",
    ),
    "Parquet without the id column": (parquet(a=[1.0]), {"id_column": "k"}, "no column 'k'"),
    # NumPy
    "text as .npy": (raw("x.npy", "1 2 3"), {}, DAMAGED),
    ".npy cut short": (cut(npy(X)), {}, "is cut short"),
    ".npy cut in its header": (cut(npy(X), 0.1), {}, DAMAGED),
    ".npy that claims 10^15 numbers": (
        raw("x.npy", npy_header((10**9, 10**6)) + bytes(100)),
        {},
        "is cut short",
    ),
    ".npy of the other order of bytes that does not fit into memory": (
        huge_npy((2**20, 2**20)),
        {},
        TOO_LARGE,
    ),
    ".npy of images in Fortran's order that does not fit into memory": (
        huge_npy((2**20, 2**10, 2**10), fortran_order=True),
        {},
        TOO_LARGE,
    ),
    ".npy of negative shape": (raw("x.npy", npy_header((-1, 5)) + bytes(100)), {}, "its shape is"),
    ".npy with code in its header": (
        raw("x.npy", b"\x93NUMPY\x01\x00\x40\x00" + b"__import__('os').getcwd()".ljust(64)),
        {},
        DAMAGED,
    ),
    ".npy of objects": (
        npy(np.array([[1, "a"], [None, 2]], object), allow_pickle=True),
        {},
        "Python objects, which are not read",
    ),
    ".npy of words": (npy(np.array([["a", "b"]])), {}, "holds <U1, not numbers"),
    ".npy of complex numbers": (npy(X * 1j), {}, "holds complex128, not numbers"),
    ".npy of dates": (npy(np.array([["2020-01-01"]], "M8[D]")), {}, "holds datetime64"),
    ".npy of structures": (npy(np.zeros(3, [("a", "f8"), ("b", "i4")])), {}, "not numbers"),
    ".npy of one axis": (npy(X[0]), {}, r"shape \(12,\): data must have two axes"),
    ".npy of no axis": (npy(np.array(3.0)), {}, r"shape \(\): data must have two axes"),
    ".npy of five axes": (npy(np.ones((1, 2, 1, 2, 1))), {}, "data must have two axes"),
    ".npy of four axes that are no colours": (
        npy(np.ones((2, 3, 4, 5))),
        {},
        "data must have two axes",
    ),
    ".npy without rows": (npy(X[:0]), {}, "there are no numbers in it"),
    ".npy without columns": (npy(X[:, :0]), {}, "there are no numbers in it"),
    ".npy with infinity": (
        npy(np.where(np.arange(72).reshape(6, 12) == 38, np.inf, X)),
        {},
        "infinite number in row '3', column 'column2'",
    ),
    "text as .npz": (raw("x.npz", "1 2 3"), {}, DAMAGED),
    ".npz cut short": (cut(npz(X=X)), {}, DAMAGED),
    ".npz without arrays": (npz(), {}, "has no arrays"),
    ".npz without tables": (npz(a=X[0], b=X[1]), {}, "has the arrays a, b: say which"),
    ".npz with two tables": (npz(a=X, b=X), {}, "has the arrays a, b: say which"),
    ".npz without that array": (npz(a=X, b=X), {"array": "c"}, "has no array 'c': it has a, b"),
    ".npz of objects": (npz(a=np.array([[None]])), {}, "Python objects, which are not read"),
    ".npz without those ids": (
        npz(a=X, who=np.arange(5)),
        {"id_column": "who"},
        "no array 'who' with one value for each of the 6 rows",
    ),
    ".npz with ids that repeat": (
        npz(a=X, who=np.zeros(6, int)),
        {"id_column": "who"},
        "6 rows with the id '0'",
    ),
    ".npz that is a bomb": (zip_bomb, {}, "claims to hold 59.6 GiB in"),
    # MATLAB, HDF5, Zarr
    "text as .mat": (raw("x.mat", "1 2 3\n" * 40), {}, DAMAGED),
    ".mat cut short": (cut(mat(X=X)), {}, DAMAGED),
    ".mat without that array": (mat(X=X), {"array": "Y"}, "has no array 'Y': it has X"),
    ".mat of structures": (mat(s={"a": X}), {}, "has no arrays"),
    ".mat of complex numbers": (mat(X=X * 1j), {}, "holds complex128, not numbers"),
    ".mat of words": (mat(X=np.array(["ab", "cd"])), {}, "not numbers"),
    ".mat with two tables": (mat(X=X, Y=X), {}, "say which"),
    "text as HDF5": (raw("x.h5", "1 2 3"), {}, DAMAGED),
    "HDF5 cut short": (cut(hdf5(lambda file: file.update(X=np.ones((50, 50))))), {}, DAMAGED),
    "HDF5 without that array": (
        hdf5(lambda file: file.update(X=X)),
        {"array": "Y"},
        "has no array 'Y': it has X",
    ),
    "HDF5 group": (
        hdf5(lambda file: file.update({"g/X": X, "g/Y": X})),
        {"array": "g"},
        "'g' is a group, not an array: it has g/X, g/Y",
    ),
    "HDF5 without arrays": (hdf5(lambda file: file.create_group("g")), {}, "has no arrays"),
    "HDF5 of words": (hdf5(lambda file: file.update(X=[["a", "b"]])), {}, "not numbers"),
    "HDF5 of one axis": (hdf5(lambda file: file.update(X=X[0])), {}, "data must have two axes"),
    "HDF5 that claims 10^12 numbers": (
        hdf5(lambda f: f.create_dataset("X", (10**6, 10**6), "f8", chunks=(9, 9))),
        {},
        "claims to hold 7.276 TiB in 0",
    ),
    "Zarr that is not there": (empty_folder("x.zarr"), {}, DAMAGED),
    "Zarr without that array": (
        zarr_store(lambda group: put(group, "X", X)),
        {"array": "Y"},
        "has no array 'Y'",
    ),
    "Zarr group": (
        zarr_store(lambda group: put(group, "g/X", X)),
        {"array": "g"},
        "'g' is a group",
    ),
    "Zarr without arrays": (zarr_store(lambda group: None), {}, "has no arrays"),
    "Zarr that claims 10^15 numbers": (huge_zarr, {}, "claims to hold 7276 TiB"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line(tmp_path, case):
    make, options, message = CASES[case]
    path = make(tmp_path)
    if isinstance(path, tuple):
        path, options = path
    with pytest.raises(ValueError, match=message) as caught:
        read(path, **options)
    assert not isinstance(caught.value, UnicodeError), "an error of Python's own"
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    if message == TOO_LARGE:  # of a run, such rows are left in the file
        return
    run = tmp_path.with_name(f"{tmp_path.name}-run")
    with pytest.raises(ValueError, match=message):
        runs.start(runs.Source(path, options), {"n_components": 2}, run)
    assert not run.exists()


@pytest.mark.parametrize("case", CALLS)
def test_bad_calls(tmp_path, case):
    make, options, message = CALLS[case]
    with pytest.raises((ValueError, TypeError), match=message):
        read(make(tmp_path), **options)


GOOD = {
    "csv": TABLE,
    "npy": npy(X),
    "npz": npz(X=X, who=np.arange(6)),
    "mat": mat(X=X),
    "h5": hdf5(lambda file: file.update(X=X)),
    "parquet": parquet(a=[1.0, 2.0], b=["x", "y"]),
    "png": image_file(),
    "nii": nifti("x.nii"),
    "nii.gz": nifti(),
    "gii": gifti((np.arange(4, dtype="f4"), "SHAPE")),
    "vtk": raw("x.vtk", VTK + SCALARS),
    "ply": raw("x.ply", PLY),
}
OWN = ("csv", "npy", "npz", "vtk", "ply", "nii", "gii")
"""Formats whose bytes are read by Python or NumPy, where flipped bits cannot end the process."""


@pytest.mark.parametrize("kind", GOOD)
def test_damage_anywhere(tmp_path, kind):
    path = GOOD[kind](tmp_path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    broken = [content[:at] for at in np.linspace(1, len(content) - 1, 25).astype(int)]
    for _ in range(25 if kind in OWN else 0):
        changed = np.frombuffer(content, np.uint8).copy()
        changed[rng.integers(len(changed), size=3)] = rng.integers(256, size=3)
        broken.append(changed.tobytes())
    errors = []
    for damaged in broken:
        path.write_bytes(damaged)
        try:
            read(path)  # what is left may be data still
        except ValueError as error:
            errors.append(str(error))
    assert len(errors) >= 10
    assert all(str(path) in error and "\n" not in error for error in errors)
