"""Reading images, volumes and surfaces, against files that other libraries write."""

import itertools
import resource

import meshio
import nibabel
import numpy as np
import pytest
from PIL import Image

from noisyica.data import Volume, read
from tests.data_files import AFFINE, FACES, FIELDS, MASK, VERTICES, write_gifti, write_text

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
    nibabel.Nifti1Image(values, AFFINE).to_filename(folder / "all.nii.gz")
    nibabel.Nifti1Image(MASK.astype(np.uint8), AFFINE).to_filename(folder / "mask.nii")
    (folder / "each").mkdir()
    for t in range(5):
        nibabel.Nifti1Image(values[..., t], AFFINE).to_filename(
            folder / "each" / f"s{t}.nii{'.gz' * (t % 2)}"
        )
    return folder, values


def test_volumes(brains):
    folder, values = brains
    changing = np.ones(MASK.shape, bool)
    changing[0, 0, 0] = changing[1, 2, 1] = False
    for path, options in ((folder / "all.nii.gz", {"ica": "temporal"}), (folder / "each", {})):
        data = read(path, **options)
        assert data.places is None
        assert isinstance(data.layout, Volume)
        np.testing.assert_array_equal(data.layout.mask, changing)
        np.testing.assert_array_equal(data.layout.affine, AFFINE)
        np.testing.assert_array_equal(data.X, [values[..., t][changing] for t in range(5)])
        masked = read(path, mask=folder / "mask.nii", **options)
        np.testing.assert_array_equal(masked.X, values[MASK].T)
        assert masked.X.dtype == np.float32
    among = folder / "each" / "mask.nii"  # a mask among the volumes is none of them
    among.write_bytes((folder / "mask.nii").read_bytes())
    np.testing.assert_array_equal(read(folder / "each", mask=among).X, values[MASK].T)
    among.unlink()
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
    stored = np.random.default_rng(0).integers(-9, 9, size=(2, 2, 2, 3)).astype(np.int16)
    image = nibabel.Nifti1Image(stored, AFFINE)
    image.header.set_slope_inter(0.5, 10)
    image.to_filename(tmp_path / "x.nii")
    raw = np.frombuffer((tmp_path / "x.nii").read_bytes()[-48:], np.int16).reshape(
        (2, 2, 2, 3), order="F"
    )
    nibabel.Nifti1Image(np.ones((2, 2, 2), np.uint8), AFFINE).to_filename(tmp_path / "mask.nii")
    np.testing.assert_allclose(
        read(tmp_path / "x.nii", mask=tmp_path / "mask.nii", ica="temporal").X,
        (raw * 0.5 + 10).reshape(8, 3).T,
        atol=1e-6,
    )


# Surfaces


SURFACE = ((VERTICES, "POINTSET", ""), (FACES, "TRIANGLE", ""))


def test_gifti(tmp_path):
    write_gifti(
        tmp_path / "x.func.gii",
        *((values, "NONE", f"t{i}") for i, values in enumerate(FIELDS)),
    )
    write_gifti(tmp_path / "x.surf.gii", *SURFACE)
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
        write_gifti(
            tmp_path / f"s{i}.shape.gii",
            (values, "SHAPE", "thickness"),
            (values * 2, "SHAPE", "area"),
        )
    write_gifti(tmp_path / "template.surf.gii", *SURFACE)
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
    data = read(write_text(tmp_path / "x.vtk", POLYDATA))
    np.testing.assert_array_equal(data.X, [[0.5, 1.5, 2.5, 3.5], [9, 8, 7, 6]])
    assert list(data.ids) == ["depth", "a name"]
    np.testing.assert_array_equal(data.layout.vertices, VERTICES)
    meshio.obj.write(tmp_path / "m.obj", meshio.Mesh(VERTICES, [("triangle", FACES)]))
    np.save(tmp_path / "f.npy", FIELDS)
    for surface in ("x.vtk", "m.obj"):
        layout = read(tmp_path / "f.npy", mesh=tmp_path / surface).layout
        np.testing.assert_array_equal(layout.vertices, VERTICES)
        np.testing.assert_array_equal(layout.faces, FACES)
    relative = write_text(
        tmp_path / "r.obj",
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nv 0 0 1.5\n"
        "f -4/1/1 -3/2/1 -2/3/1\nf 1//1 2//1 4//1\n",
    )
    np.testing.assert_array_equal(
        read(tmp_path / "f.npy", mesh=relative).layout.faces, [[0, 1, 2], [0, 1, 3]]
    )
