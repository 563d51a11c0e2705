"""How files that are wrong in some way are made.

Most functions return a function of a folder, which writes the file and returns the path to be read;
the others are such functions themselves.
"""

import gzip
import io
import os
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

from tests.data_files import write_gifti


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


def huge_npy(shape, fortran_order=False):
    """Make a sparse file of numbers in the order of bytes that this machine does not have."""

    def make(folder):
        foreign = np.dtype("f8").newbyteorder("S")
        with (folder / "x.npy").open("wb") as file:
            header = {"descr": foreign.str, "fortran_order": fortran_order, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 8 * int(np.prod(shape)))
        return folder / "x.npy"

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
    """Write a member that says it holds 64 GB; it is 40 MB of zeros, compressed to 40 kB."""
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
    """Write an image that says it has 30,000 x 30,000 pixels."""

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
    """Write a header that says 30,000 x 30,000 x 30,000, and no voxels."""
    header = nibabel.Nifti1Header()
    header.set_data_dtype("f8")
    header.set_data_shape((30_000, 30_000, 30_000))
    header["magic"], header["vox_offset"] = b"n+1", 352
    (folder / "x.nii.gz").write_bytes(gzip.compress(header.binaryblock + bytes(4)))
    return folder / "x.nii.gz"


def gifti(*arrays, name="x.shape.gii"):
    """Each of the arrays is a pair of values and their intent."""
    return lambda folder: write_gifti(folder / name, *((*array, "") for array in arrays))


def in_folder(*makers):
    """Make several files, of which the folder is read."""

    def make(folder):
        (folder / "all").mkdir()
        for maker in makers:
            maker(folder / "all")
        return folder / "all"

    return make


def beside(main, other, option):
    """Make a file, and another that is given as an option."""

    def make(folder):
        return main(folder), {option: other(folder)}

    return make


def cut(maker, part=0.6):
    """Make a file that ends too early."""

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
FIELD = npy(np.ones((2, 4)) * [[1], [2]])
VTK = (
    "# vtk DataFile Version 3.0\ntitle\nASCII\nDATASET POLYDATA\nPOINTS 3 float\n"
    "0 0 0 1 0 0 0 1 0\nPOLYGONS 1 4\n3 0 1 2\nPOINT_DATA 3\n"
)
SCALARS = "SCALARS depth float\nLOOKUP_TABLE default\n1 2 3\n"
PLY = (
    "ply\nformat ascii 1.0\nelement vertex 3\n"
    "property float x\nproperty float y\nproperty float z\nproperty float depth\n"
    "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    "0 0 0 1\n1 0 0 2\n0 1 0 3\n3 0 1 2\n"
)
DAMAGED = "cannot be read"
