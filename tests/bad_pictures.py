"""Images, volumes and surfaces that are wrong: a file, how it is read, and what the error says."""

import numpy as np

from tests.bad_files import (
    DAMAGED,
    FIELD,
    PLY,
    SCALARS,
    VTK,
    beside,
    cut,
    frames,
    gifti,
    huge_nifti,
    image_file,
    in_folder,
    missing,
    nifti,
    npz,
    png_bomb,
    raw,
)
from tests.data_files import FACES, VERTICES

TEMPLATE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
DEPTHS = gifti((np.arange(4, dtype="f4"), "SHAPE"), (np.ones(4, "f4"), "SHAPE"))

CASES = {
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
    "one volume that is no series": (
        nifti(shape=(3, 3, 2)),
        {"ica": "spatial"},
        "not one file with several volumes",
    ),
    "a folder as a series": (
        in_folder(nifti("a.nii", (3, 3, 2)), nifti("b.nii", (3, 3, 2))),
        {"ica": "temporal"},
        "not one file with several volumes",
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
        gifti((np.ones(4, "f4"), "SHAPE"), (np.ones(5, "f4"), "SHAPE")),
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
        in_folder(*(gifti((np.ones(n, "f4"), "SHAPE"), name=f"s{n}.shape.gii") for n in (4, 5))),
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
        beside(FIELD, gifti((VERTICES, "POINTSET"), name="m.gii"), "mesh"),
        {},
        "m.gii has no surface in it",
    ),
    "GIFTI with faces out of range": (
        beside(FIELD, gifti((VERTICES, "POINTSET"), (FACES + 1, "TRIANGLE"), name="m.gii"), "mesh"),
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
