"""Files that are damaged, hostile, or not what they should be: one line says what is wrong, without a hang or a flood of memory."""

import gzip
import io
import os
import resource
import signal
import struct
import zipfile
import zlib

import h5py
import nibabel
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.io
import zarr
from PIL import Image

from noisyica.app import runs
from noisyica.data import read

X = np.random.default_rng(0).normal(size=(6, 12))
VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.5]], np.float32)
FACES = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]], np.int32)
POINTS, TRIANGLES = "NIFTI_INTENT_POINTSET", "NIFTI_INTENT_TRIANGLE"
TEMPLATE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
VTK = "# vtk DataFile Version 3.0\ntitle\nASCII\nDATASET POLYDATA\nPOINTS 3 float\n0 0 0 1 0 0 0 1 0\nPOLYGONS 1 4\n3 0 1 2\nPOINT_DATA 3\n"
SCALARS = "SCALARS depth float\nLOOKUP_TABLE default\n1 2 3\n"
PLY = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nproperty float depth\n"
PLY += "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0 1\n1 0 0 2\n0 1 0 3\n3 0 1 2\n"


class Hang(BaseException):
    """Raised by a timer; nothing but pytest catches it."""


def _hang(*_):
    raise Hang


@pytest.fixture(autouse=True)
def limits():
    """Half a minute, on however busy a machine, and 300 MB of memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)
    unit = 2**20 if os.uname().sysname == "Darwin" else 2**10
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit < 300


# How the files are made. Each of these returns a function of a folder, which returns the path to be read.


def raw(name, content):
    def make(folder):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder / name

    return make


def npy(array, name="x.npy", **options):
    def make(folder):
        np.save(folder / name, array, **options)
        return folder / name

    return make


def npz(**arrays):
    def make(folder):
        np.savez(folder / "x.npz", **arrays)
        return folder / "x.npz"

    return make


def npy_header(shape, descr="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def zip_bomb(folder):
    """A member that says it holds 64 GB; its bytes are 40 MB of zeros, compressed to 40 kB."""
    with zipfile.ZipFile(folder / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy_header((10**6, 8000)) + bytes(40 * 10**6))
    return folder / "x.npz"


def mat(**variables):
    def make(folder):
        scipy.io.savemat(folder / "x.mat", variables, do_compression=True)
        return folder / "x.mat"

    return make


def hdf5(fill):
    def make(folder):
        with h5py.File(folder / "x.h5", "w") as file:
            fill(file)
        return folder / "x.h5"

    return make


def zarr_store(fill):
    def make(folder):
        fill(zarr.open_group(folder / "x.zarr", mode="w"))
        return folder / "x.zarr"

    return make


def huge_zarr(folder):
    zarr.create_array(folder / "x.zarr", shape=(10**8, 10**7), chunks=(10**3, 10**3), dtype="f8")
    return folder / "x.zarr"


def parquet(**columns):
    def make(folder):
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / "x.parquet")
        return folder / "x.parquet"

    return make


def image_file(name="x.png", shape=(5, 6), **options):
    def make(folder):
        values = np.arange(np.prod(shape)).reshape(shape) % 256
        Image.fromarray(values.astype(np.uint8)).save(folder / name, **options)
        return folder / name

    return make


def png_bomb(folder):
    """An image of 30,000 x 30,000, all of it zeros."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    size = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0)
    content = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", size)
        + chunk(b"IDAT", zlib.compress(bytes(10**6)))
        + chunk(b"IEND", b"")
    )
    (folder / "x.png").write_bytes(content)
    return folder / "x.png"


def frames(folder):
    pictures = [Image.fromarray(np.full((4, 4), value, np.uint8)) for value in (0, 255)]
    pictures[0].save(folder / "x.tif", save_all=True, append_images=pictures[1:])
    return folder / "x.tif"


def nifti(name="x.nii.gz", shape=(3, 3, 2, 4), affine=None, dtype="f4", fill=None):
    def make(folder):
        values = (
            np.random.default_rng(0).integers(1, 9, size=shape).astype(dtype)
            if fill is None
            else np.full(shape, fill, dtype)
        )
        nibabel.Nifti1Image(values, np.eye(4) if affine is None else affine).to_filename(
            folder / name
        )
        return folder / name

    return make


def huge_nifti(folder):
    """A header that says 30,000 x 30,000 x 30,000, and no voxels."""
    header = nibabel.Nifti1Header()
    header.set_data_dtype("f8")
    header.set_data_shape((30_000, 30_000, 30_000))
    header["magic"], header["vox_offset"] = b"n+1", 352
    (folder / "x.nii.gz").write_bytes(gzip.compress(header.binaryblock + bytes(4)))
    return folder / "x.nii.gz"


def gifti(*arrays, name="x.shape.gii"):
    def make(folder):
        parts = [nibabel.gifti.GiftiDataArray(values, intent=intent) for values, intent in arrays]
        nibabel.gifti.GiftiImage(darrays=parts).to_filename(folder / name)
        return folder / name

    return make


def in_folder(*makers):
    """Several files, of which the folder is read."""

    def make(folder):
        (folder / "all").mkdir()
        for maker in makers:
            maker(folder / "all")
        return folder / "all"

    return make


def beside(main, other, option):
    """A file, with another that is given as an option."""

    def make(folder):
        return main(folder), {option: other(folder)}

    return make


def cut(maker, part=0.6):
    """A file that ends too early."""

    def make(folder):
        path = maker(folder)
        content = path.read_bytes()
        path.write_bytes(content[: int(part * len(content))])
        return path

    return make


def loop(folder):
    (folder / "x.csv").symlink_to(folder / "x.csv")
    return folder / "x.csv"


def pipe(folder):
    os.mkfifo(folder / "x.csv")
    return folder / "x.csv"


def unreadable(folder):
    if os.getuid() == 0:
        pytest.skip("root may read everything")
    path = raw("x.csv", "1,2\n")(folder)
    path.chmod(0)
    return path


def missing(name):
    return lambda folder: folder / name


def empty_folder(name):
    return lambda folder: (folder / name).mkdir() or folder / name


TABLE = raw("x.csv", "who,a,b\ns1,1,2\ns2,3,4\n")
DEPTHS = gifti(
    (np.arange(4, dtype="f4"), "NIFTI_INTENT_SHAPE"), (np.ones(4, "f4"), "NIFTI_INTENT_SHAPE")
)
FIELD = npy(np.ones((2, 4)) * [[1], [2]])
DAMAGED = "cannot be read"

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

CASES = {
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
        zarr_store(lambda group: group.create_array("X", data=X)),
        {"array": "Y"},
        "has no array 'Y'",
    ),
    "Zarr group": (
        zarr_store(lambda group: group.create_array("g/X", data=X)),
        {"array": "g"},
        "'g' is a group",
    ),
    "Zarr without arrays": (zarr_store(lambda group: None), {}, "has no arrays"),
    "Zarr that claims 10^15 numbers": (huge_zarr, {}, "claims to hold 7276 TiB"),
    # images
    "text as image": (raw("x.png", "1 2 3"), {}, DAMAGED),
    "image cut short": (cut(image_file(shape=(50, 60))), {}, DAMAGED),
    "damaged image among good ones": (
        in_folder(image_file("a.jpg"), cut(image_file("b.jpg", (5, 6)), 0.9)),
        {},
        r"b\.jpg cannot be read",
    ),
    "image that is a bomb": (png_bomb, {}, "decompression bomb|pixels"),
    "images of different sizes": (
        in_folder(image_file("a.png"), image_file("b.png", (5, 7))),
        {},
        "b.png has 5 x 7 pixels, a.png has 5 x 6: give a size",
    ),
    "patch larger than the image": (
        image_file(),
        {"patch_size": 6},
        "has 5 x 6 pixels: there is no patch of 6 x 6",
    ),
    "several frames": (frames, {}, "has 2 frames"),
    # volumes
    "text as volume": (raw("x.nii", "1 2 3"), {}, DAMAGED),
    "volume cut short": (cut(nifti("x.nii")), {}, DAMAGED),
    "compressed volume cut short": (cut(nifti()), {}, DAMAGED),
    "not compressed, though its name says so": (
        lambda folder: nifti("x.nii")(folder).rename(folder / "x.nii.gz"),
        {},
        DAMAGED,
    ),
    "volume that claims 216 TB": (huge_nifti, {}, "claims to hold"),
    "volume of colours": (
        nifti(dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")], fill=0),
        {},
        "not numbers",
    ),
    "volume of complex numbers": (nifti(dtype="c8"), {}, "not numbers"),
    "flat volume": (nifti(shape=(3, 3)), {}, "volumes have three axes"),
    "volume of five axes": (nifti(shape=(2, 2, 2, 2, 2)), {}, "volumes have three axes"),
    "volumes that are all the same": (nifti(fill=3), {}, "no voxel differs"),
    "one volume without a mask": (nifti(shape=(3, 3, 2)), {}, "no voxel differs"),
    "volumes of different shapes": (
        in_folder(nifti("a.nii", (3, 3, 2)), nifti("b.nii", (3, 3, 3))),
        {},
        r"b.nii has shape \(3, 3, 3\), a.nii has",
    ),
    "volumes in different places": (
        in_folder(nifti("a.nii", (3, 3, 2)), nifti("b.nii", (3, 3, 2), 2 * np.eye(4))),
        {},
        "another affine than a.nii",
    ),
    "four axes in a folder": (
        in_folder(nifti("a.nii"), nifti("b.nii")),
        {},
        "every file must hold one volume",
    ),
    "volume with infinity": (
        beside(nifti(fill=np.inf), nifti("m.nii", (3, 3, 2), fill=1), "mask"),
        {},
        "infinite number in row '0', column 0",
    ),
    "mask and nothing else": (
        lambda folder: (in_folder(nifti("m.nii"))(folder), {"mask": folder / "all/m.nii"}),
        {},
        "no volumes in the folder",
    ),
    "mask that is not there": (
        beside(nifti(), missing("m.nii"), "mask"),
        {},
        "There is no file .*m.nii for the mask",
    ),
    "mask of another shape": (
        beside(nifti(), nifti("m.nii", (3, 3, 3)), "mask"),
        {},
        "m.nii has shape .* a mask needs the same grid",
    ),
    "mask of four axes": (
        beside(nifti(), nifti("m.nii"), "mask"),
        {},
        "a mask needs the same grid",
    ),
    "mask in another place": (
        beside(nifti(), nifti("m.nii", (3, 3, 2), 2 * np.eye(4)), "mask"),
        {},
        "another affine than the volumes",
    ),
    "empty mask": (
        beside(nifti(), nifti("m.nii", (3, 3, 2), fill=0), "mask"),
        {},
        "m.nii is an empty mask",
    ),
    "text as mask": (beside(nifti(), raw("m.nii", "1"), "mask"), {}, "m.nii cannot be read"),
    # surfaces
    "text as GIFTI": (raw("x.gii", "1 2 3"), {}, DAMAGED),
    "GIFTI cut short": (cut(DEPTHS), {}, DAMAGED),
    "GIFTI without arrays": (gifti(), {}, "no numbers at its vertices"),
    "GIFTI without that array": (DEPTHS, {"array": "area"}, "no array 'area': it has 0, 1"),
    "GIFTI of different lengths": (
        gifti((np.ones(4, "f4"), "NIFTI_INTENT_SHAPE"), (np.ones(5, "f4"), "NIFTI_INTENT_SHAPE")),
        {},
        "different lengths",
    ),
    "folder of surfaces without numbers": (
        in_folder(raw("a.obj", TEMPLATE + "f 1 2 3\n")),
        {},
        "no numbers at their vertices",
    ),
    "folder with files of two arrays": (in_folder(DEPTHS), {}, "say which of them holds the rows"),
    "rows of different lengths": (
        in_folder(
            *(
                gifti((np.ones(n, "f4"), "NIFTI_INTENT_SHAPE"), name=f"s{n}.shape.gii")
                for n in (4, 5)
            )
        ),
        {},
        "s5.shape.gii has 5 vertices, s4",
    ),
    "faces that differ": (
        in_folder(
            raw("a.vtk", VTK + SCALARS), raw("b.vtk", VTK.replace("0 1 2\n", "0 2 1\n") + SCALARS)
        ),
        {},
        "other faces than a.vtk",
    ),
    "text as VTK": (raw("x.vtk", "1 2 3"), {}, DAMAGED),
    "VTK cut short": (cut(raw("x.vtk", VTK + SCALARS), 0.97), {}, "is cut short"),
    "VTK of no surface": (
        raw("x.vtk", VTK.replace("POLYDATA", "STRUCTURED_GRID")),
        {},
        "it is no surface",
    ),
    "VTK of squares": (
        raw("x.vtk", VTK.replace("1 4\n3 0 1 2", "1 5\n4 0 1 2 0")),
        {},
        "not all triangles",
    ),
    "VTK without numbers": (raw("x.vtk", VTK), {}, "no numbers at its vertices"),
    "VTK that claims 10^15 points": (
        raw("x.vtk", VTK.replace("POINTS 3", "POINTS 1000000000000000")),
        {},
        "it claims 3000000000000000 numbers",
    ),
    "VTK with faces out of range": (
        raw("x.vtk", VTK.replace("0 1 2\n", "0 1 3\n") + SCALARS),
        {},
        "a corner that is none of the 3 vertices",
    ),
    "VTK with an unknown section": (
        raw("x.vtk", VTK + "NONSENSE 3\n"),
        {},
        "section NONSENSE is not known",
    ),
    "VTK with infinity": (
        raw("x.vtk", VTK + SCALARS.replace("1 2 3", "1 inf 3")),
        {},
        "infinite number in row 'depth', column 1",
    ),
    "text as PLY": (raw("x.ply", "1 2 3"), {}, "no PLY header"),
    "PLY cut in its header": (cut(raw("x.ply", PLY), 0.5), {}, "no PLY header"),
    "PLY cut short": (cut(raw("x.ply", PLY), 0.97), {}, "is cut short"),
    "PLY that claims 10^15 vertices": (
        raw("x.ply", PLY.replace("vertex 3", f"vertex {10**15}")),
        {},
        "is cut short",
    ),
    "binary PLY that claims 10^15 vertices": (
        raw(
            "x.ply",
            PLY.replace("ascii", "binary_big_endian").replace("vertex 3", f"vertex {10**15}"),
        ),
        {},
        DAMAGED,
    ),
    "PLY of squares": (
        raw("x.ply", PLY.replace("\n3 0 1 2", "\n4 0 1 2 0")),
        {},
        "not all triangles",
    ),
    "mesh that is not there": (
        beside(FIELD, missing("m.gii"), "mesh"),
        {},
        "There is no file .*m.gii for the mesh",
    ),
    "mesh of unknown ending": (beside(FIELD, raw("m.stl", "x"), "mesh"), {}, "a mesh is read from"),
    "mesh of more vertices": (
        beside(FIELD, raw("m.obj", TEMPLATE + "v 1 1 1\nf 1 2 3\n"), "mesh"),
        {},
        "m.obj has 5 vertices, but the data have 4 columns",
    ),
    "mesh with faces out of range": (
        beside(FIELD, raw("m.obj", TEMPLATE + "f 1 2 9\n"), "mesh"),
        {},
        "m.obj: A face has a corner",
    ),
    "mesh of squares": (
        beside(FIELD, raw("m.obj", TEMPLATE + "f 1 2 3 4\n"), "mesh"),
        {},
        "m.obj cannot be read .*three corners",
    ),
    "mesh without faces": (beside(FIELD, raw("m.obj", TEMPLATE), "mesh"), {}, "no faces"),
    "mesh of words": (beside(FIELD, raw("m.obj", "v a b c\n"), "mesh"), {}, "m.obj cannot be read"),
    "GIFTI that is no mesh": (
        beside(FIELD, gifti((VERTICES, POINTS), name="m.gii"), "mesh"),
        {},
        "m.gii has no surface in it",
    ),
    "GIFTI with faces out of range": (
        beside(FIELD, gifti((VERTICES, POINTS), (FACES + 1, TRIANGLES), name="m.gii"), "mesh"),
        {},
        "m.gii: A face has",
    ),
    ".npz that is no mesh": (
        lambda folder: (FIELD(folder), {"mesh": npz(v=VERTICES)(folder)}),
        {},
        "x.npz holds no mesh of 4 vertices",
    ),
    ".npz with faces out of range": (
        lambda folder: (FIELD(folder), {"mesh": npz(v=VERTICES, f=FACES + 5)(folder)}),
        {},
        "holds no mesh of 4 vertices",
    ),
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
    "gii": gifti((np.arange(4, dtype="f4"), "NIFTI_INTENT_SHAPE")),
    "vtk": raw("x.vtk", VTK + SCALARS),
    "ply": raw("x.ply", PLY),
}
OWN = ("csv", "npy", "npz", "vtk", "ply", "nii", "gii")
"""Whose bytes are read by Python or NumPy: flipped bits cannot end the process."""


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
