"""The data of the experiments.

They are the user's own copies of the real data sets, or stand-ins for those that are not there,
which are simulated or come with scikit-learn.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from noisyica.data import Mesh, labels, read

PATCH, STRIDE = 13, 12
PICTURES = (".jpg", ".jpeg", ".png")
HIPPOCAMPI = ("hippocampus_spharm_left.npz", "hippocampus.npz", "surfaces.npz")
LABELS = ("control", "tle_ipsilateral", "tle_contralateral")


class Images(NamedTuple):
    """A data set of images, with the pixels of one in each row."""

    X: np.ndarray
    shape: tuple[int, int]
    labels: np.ndarray  # empty where there are none
    description: str
    real: bool


class Surfaces(NamedTuple):
    """A data set of surfaces, with the values at the vertices of a common mesh in each row."""

    X: np.ndarray
    vertices: np.ndarray
    faces: np.ndarray
    labels: np.ndarray
    groups: dict[str, tuple[str, ...]]  # the labels of the patients, by the paper's comparison
    called: dict[str, str]  # what the patients of a comparison are here
    description: str
    real: bool


def case(path: str | Path | None, data: Images | Surfaces) -> dict[str, str | None]:
    """Return the arguments of a case that say where its data are, and what they are."""
    return {
        "data": None if path is None else str(path),
        "fingerprint": f"{data.X.shape} {zlib.crc32(data.X.tobytes()):08x}",
    }


# --------------------------------------------------------------------------------------- digits


@lru_cache(maxsize=1)
def digits(path: str | Path | None) -> Images:
    """Read the USPS digits, or return those of scikit-learn.

    ``path`` is a file ``usps.npz``, ``zip.train.gz``, ``usps.h5``, ``usps`` or ``usps.bz2`` (the
    last two in LibSVM's format), or a folder that has one.
    """
    file = _find(path, DIGITS)
    if file is None:
        from sklearn.datasets import load_digits

        X, digit = load_digits(return_X_y=True)
        text = f"scikit-learn's digits ({len(X):,} images of 8 x 8 pixels), a stand-in for USPS."
        return Images(X, (8, 8), digit, text, False)
    X, digit = DIGITS[file.name](file)
    X = np.asarray(X, float)
    if X.ndim != 2 or X.shape[1] != 256 or len(digit) != len(X):
        raise ValueError(
            f"{file} has images of shape {X.shape}: USPS has 256 pixels per row, and a label for "
            "each row."
        )
    text = f"USPS ({len(X):,} images of 16 x 16 pixels), from {file.name}."
    return Images(X, (16, 16), np.asarray(digit).astype(int), text, True)


def _npz_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the arrays "X_train", which "scale" multiplies where it is there, and "y_train"."""
    with np.load(path, allow_pickle=False) as file:
        _need(path, file.files, "X_train", "y_train")
        scale = float(file["scale"]) if "scale" in file.files else 1.0
        return file["X_train"] * scale, file["y_train"]


def _zip_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read lines of text, each with the label and then the pixels."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = np.array([line.split() for line in file], float)
    return rows[:, 1:], rows[:, 0]


def _h5_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the arrays "data" and "target" of the group "train"."""
    digits = read(path, "train/data")
    return digits.X, labels(digits, "train/target")


def _svm_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read LibSVM's format, in which the labels go from 1 to 10."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path), n_features=256)
    return X.toarray(), y - 1


DIGITS: dict[str, Callable[[Path], tuple[np.ndarray, np.ndarray]]] = {
    "usps.npz": _npz_digits,
    "zip.train.gz": _zip_digits,
    "usps.h5": _h5_digits,
    "usps": _svm_digits,
    "usps.bz2": _svm_digits,
}
"""The functions that read the pixels and the labels, by the name of the file."""


# ---------------------------------------------------------------------------------------- faces


@lru_cache(maxsize=1)
def faces(path: str | Path | None, max_patches: int) -> Images:
    """Cut grey 13 x 13 patches, on a grid with step 12, out of images.

    The images are those of the folders ``caltech_faces`` or ``Faces``, or of the given folder
    itself; where there are none, the two photographs of scikit-learn. If there are more than
    ``max_patches``, so many are drawn at random.
    """
    folder = _picture_folder(path)
    if folder is None:
        from sklearn.datasets import load_sample_images

        photographs = load_sample_images().images
        patches = np.concatenate([_patches(image.mean(2) / 255.0) for image in photographs])
        origin = "the two photographs that scikit-learn ships, a stand-in for Caltech's faces"
    else:
        patches = read(folder, patch_size=PATCH, stride=STRIDE, centre_patches=True).X
        origin = f"the images of the folder {folder.name}"
    total = len(patches)
    if total > max_patches:
        chosen = np.random.default_rng(0).choice(total, max_patches, replace=False)
        patches = patches[np.sort(chosen)]
    part = f"{len(patches):,} of the {total:,}" if len(patches) < total else f"The {total:,}"
    text = (
        f"{part} grey {PATCH} x {PATCH} patches (from 0 to 1, the mean of each subtracted), on a "
        f"grid with step {STRIDE}, of {origin}."
    )
    return Images(patches, (PATCH, PATCH), np.empty(0), text, folder is not None)


def _patches(image: np.ndarray) -> np.ndarray:
    """Return the patches of an image as rows, each less its mean."""
    windows = np.lib.stride_tricks.sliding_window_view(image, (PATCH, PATCH))[::STRIDE, ::STRIDE]
    patches = windows.reshape(-1, PATCH * PATCH)
    return (patches - patches.mean(1, keepdims=True)).astype(np.float32)


def _picture_folder(path: str | Path | None) -> Path | None:
    """Return the first folder that has images."""
    if path is None or not Path(path).is_dir():
        return None
    for folder in (Path(path) / "caltech_faces", Path(path) / "Faces", Path(path)):
        if folder.is_dir() and any(file.suffix.lower() in PICTURES for file in folder.iterdir()):
            return folder
    return None


# ------------------------------------------------------------------------------------- surfaces


@lru_cache(maxsize=1)
def surfaces(path: str | Path | None) -> Surfaces:
    """Read fields on surfaces, or simulate some on a sphere.

    ``path`` is an .npz file with log-Jacobians on hippocampi, or a folder that has one, or a
    folder with GIFTI files in ``surfaces/``.
    """
    file = _find(path, HIPPOCAMPI)
    if file is not None:
        return _hippocampi(file)
    if path is not None and (Path(path) / "surfaces").is_dir():
        return _gifti_surfaces(Path(path))
    return _simulated_surfaces()


def _hippocampi(path: Path) -> Surfaces:
    """Read the log-Jacobians of hippocampi from an .npz file."""
    names = ("log_jacobian", "template_vertices", "faces", "label")
    with np.load(path, allow_pickle=False) as file:
        _need(path, file.files, *names)
        X, vertices, mesh, label = (file[name] for name in names)
    kept = np.isin(label, LABELS)
    if not (label[kept] == "control").any() or len(np.unique(label[kept])) < 3:
        raise ValueError(
            f"{path}: label must hold {LABELS[0]}, {LABELS[1]} and {LABELS[2]}; it has "
            f"{', '.join(np.unique(label))}."
        )
    text = (
        f"Log-Jacobians of {kept.sum()} left hippocampi on a mesh of {len(vertices):,} vertices: "
        f"{_counts(path, label)}. The paper's 101 surfaces are of controls and of patients with "
        "Alzheimer's disease, and not public. Its mild group has no counterpart here: in its place "
        "are the patients whose epilepsy is of the other side."
    )
    groups = {"all patients": LABELS[1:], "mild patients": LABELS[2:]}
    called = {"all patients": "all patients", "mild patients": "patients of the other side"}
    return Surfaces(X[kept].astype(float), vertices, mesh, label[kept], groups, called, text, True)


def _counts(path: Path, label: np.ndarray) -> str:
    """Say how many hippocampi of each group there are, and from which data sets they come.

    The groups are not evenly spread over the data sets. Where a file does not say which surface is
    from which, in an array "dataset", the page cannot either.
    """
    controls, same_side, other_side = (int((label == name).sum()) for name in LABELS)
    text = (
        f"{controls} controls, and patients with temporal lobe epilepsy on the same side "
        f"({same_side}) or on the other ({other_side})"
    )
    with np.load(path, allow_pickle=False) as file:
        of = file["dataset"] if "dataset" in file.files else np.full(len(label), "one")
    names = np.unique(of[np.isin(label, LABELS)]).tolist()
    if len(names) < 2:
        return text
    shares = ", ".join(
        f"{np.mean(of[label == name] == names[0]):.0%} of the {what}"
        for name, what in zip(LABELS, ("controls", "same side", "other side"), strict=True)
    )
    return (
        f"{text}. They come from {len(names)} data sets ({', '.join(names)}), over which the "
        f"groups are not evenly spread: {names[0]} has {shares}. Differences between the data sets "
        "can thus look like differences between the groups: this is a test of the program, not of "
        "the disease"
    )


def _gifti_surfaces(folder: Path) -> Surfaces:
    """Read GIFTI files: one per person in ``surfaces/``, and the mesh ``surfaces.surf.gii``.

    ``surfaces.txt`` has a label for each person on a line of its own: control, or another one.
    """
    rows = read(folder / "surfaces", mesh=folder / "surfaces.surf.gii")
    label, mesh = labels(rows, str(folder / "surfaces.txt")), rows.layout
    others = tuple(name for name in np.unique(label).tolist() if name != "control")
    if "control" not in label or not others or not isinstance(mesh, Mesh):
        raise ValueError(
            f"{folder / 'surfaces.txt'} must hold control and other labels; it has "
            f"{', '.join(np.unique(label))}."
        )
    mild = "mild" if "mild" in others else others[0]
    counts = ", ".join(f"{(label == name).sum()} {name}" for name in ("control", *others))
    text = (
        f"Fields on {len(label)} surfaces of {len(mesh.vertices):,} vertices, from GIFTI files: "
        f"{counts} ({mild} is in the place of the paper's mild group)."
    )
    groups = {"all patients": others, "mild patients": (mild,)}
    called = {"all patients": "all patients", "mild patients": f"{mild} patients"}
    X = rows.X.astype(float)
    return Surfaces(X, mesh.vertices, mesh.faces, label, groups, called, text, True)


def _simulated_surfaces() -> Surfaces:
    """Simulate five smooth bumps on a sphere with Laplacian coefficients.

    Patients have less of the first bump than controls, and severe patients less than mild ones.
    """
    vertices, mesh = sphere(3)
    rng = np.random.default_rng(0)
    label = np.repeat(["control", "mild", "severe"], (57, 32, 12))
    centres = rng.normal(size=(5, 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    bumps = np.exp(6 * (vertices @ centres.T - 1))
    beta = rng.laplace(size=(len(label), 5)) / np.sqrt(2)
    beta[:, 0] -= 0.5 * (label == "mild") + 1.2 * (label == "severe")
    X = 0.1 * (beta @ bumps.T + 0.3 * rng.normal(size=(len(label), len(vertices))))
    text = (
        f"Fields simulated on a sphere of {len(vertices)} vertices (57 controls, 32 mild and 12 "
        "severe patients, as many as in the paper, who have less of one of five smooth "
        "components), a stand-in for the hippocampi."
    )
    groups = {"all patients": ("mild", "severe"), "mild patients": ("mild",)}
    called = {"all patients": "all simulated patients", "mild patients": "simulated mild patients"}
    return Surfaces(X, vertices, mesh, label, groups, called, text, False)


def sphere(divisions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices (n, 3) and the faces of a mesh on the unit sphere.

    It is an icosahedron of which each triangle is divided into four, ``divisions`` times.
    """
    from scipy.spatial import ConvexHull

    golden = (1 + np.sqrt(5)) / 2
    corners = [
        np.roll((0, a, b * golden), turn) for turn in range(3) for a in (-1, 1) for b in (-1, 1)
    ]
    vertices = np.array(corners) / np.sqrt(1 + golden**2)
    for _ in range(divisions):
        faces = ConvexHull(vertices).simplices
        edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)), axis=0)
        middles = vertices[edges].mean(1)
        middles /= np.linalg.norm(middles, axis=1, keepdims=True)
        vertices = np.concatenate([vertices, middles])
    return vertices, _outward(vertices, ConvexHull(vertices).simplices)


def _outward(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the faces with their corners in the order in which their normals point outwards."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    flipped = (np.cross(b - a, c - a) * a).sum(1) < 0
    return np.where(flipped[:, None], faces[:, ::-1], faces)


# ---------------------------------------------------------------------------------------- files


def _find(path: str | Path | None, names: Collection[str]) -> Path | None:
    """Return the first of these files in a folder, or the path itself if it is one of them."""
    if path is None:
        return None
    path = Path(path)
    if path.is_file():
        return path if path.name in names else None
    return next((path / name for name in names if (path / name).is_file()), None)


def _need(path: Path, present: list[str], *names: str) -> None:
    """Raise an error if one of these arrays is not among those of the file."""
    missing = [name for name in names if name not in present]
    if missing:
        raise ValueError(f"{path} has no array {missing[0]!r}: it has {', '.join(present)}.")
