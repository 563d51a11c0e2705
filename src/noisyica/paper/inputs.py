"""The data of the experiments: the user's own copies of the real sets, or stand-ins that come with the library's dependencies."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from noisyica.data import Mesh, labels, read

PATCH, STRIDE = 13, 12
PICTURES = (".jpg", ".jpeg", ".png")


class Images(NamedTuple):
    """Rows of pixels."""

    X: np.ndarray
    shape: tuple[int, int]
    labels: np.ndarray  # empty where there are none
    description: str
    real: bool


class Surfaces(NamedTuple):
    """Values at the vertices of a mesh."""

    X: np.ndarray
    vertices: np.ndarray
    faces: np.ndarray
    labels: np.ndarray
    groups: dict[
        str, tuple[str, ...]
    ]  # labels of the patients in each comparison with the label "control"
    description: str
    real: bool


def case(path: str | Path | None, data: Images | Surfaces) -> dict[str, str | None]:
    """What a case of an experiment says of its data: where they are, and what they are."""
    return {
        "data": None if path is None else str(path),
        "fingerprint": f"{data.X.shape} {zlib.crc32(data.X.tobytes()):08x}",
    }


# ---------------------------------------------------------------------------------------------------------------- digits


@lru_cache(maxsize=1)
def digits(path: str | Path | None) -> Images:
    """USPS from ``usps.npz``, ``zip.train.gz``, ``usps.h5`` or LibSVM's ``usps`` (in a folder, or that file); else scikit-learn's."""
    found = _find(path, DIGITS)
    if found is None:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return Images(
            X,
            (8, 8),
            y,
            f"scikit-learn's digits ({len(X):,} images of 8 x 8 pixels), a stand-in for USPS.",
            False,
        )
    X, digit = DIGITS[next(name for name in DIGITS if found.name == name)](found)
    X = np.asarray(X, float)
    if X.ndim != 2 or X.shape[1] != 256 or len(digit) != len(X):
        raise ValueError(
            f"{found} has images of shape {X.shape}: USPS has 256 pixels in a row, and a label for each row."
        )
    return Images(
        X,
        (16, 16),
        np.asarray(digit).astype(int),
        f"USPS ({len(X):,} images of 16 x 16 pixels), from {found.name}.",
        True,
    )


def _npz_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        _need(path, file.files, "X_train", "y_train")
        scale = float(file["scale"]) if "scale" in file.files else 1.0
        return file["X_train"] * scale, file["y_train"]


def _zip_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = np.array([line.split() for line in file], float)
    return rows[:, 1:], rows[:, 0]


def _h5_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    digits = read(path, "train/data")
    return digits.X, labels(digits, "train/target")


def _svm_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path), n_features=256)
    return X.toarray(), y - 1  # its labels go from 1 to 10


DIGITS: dict[str, Callable[[Path], tuple[np.ndarray, np.ndarray]]] = {
    "usps.npz": _npz_digits,
    "zip.train.gz": _zip_digits,
    "usps.h5": _h5_digits,
    "usps": _svm_digits,
    "usps.bz2": _svm_digits,
}


# ----------------------------------------------------------------------------------------------------------------- faces


@lru_cache(maxsize=1)
def faces(path: str | Path | None, most: int) -> Images:
    """Grey 13 x 13 patches on a grid with step 12, of ``caltech_faces``, ``Faces`` or the folder's own images, or of scikit-learn's two.

    ``most``: no more patches than that, drawn at random.
    """
    folder = _picture_folder(path)
    if folder is None:
        from sklearn.datasets import load_sample_images

        patches = np.concatenate(
            [_patches(image.mean(2) / 255.0) for image in load_sample_images().images]
        )
        origin = "the two photographs that scikit-learn ships, a stand-in for Caltech's faces"
    else:
        patches = read(folder, patch_size=PATCH, stride=STRIDE, centre_patches=True).X
        origin = f"the images of the folder {folder.name}"
    total = len(patches)
    if total > most:
        patches = patches[np.sort(np.random.default_rng(0).choice(total, most, replace=False))]
    part = f"{len(patches):,} of the {total:,}" if len(patches) < total else f"the {total:,}"
    text = f"{part} grey {PATCH} x {PATCH} patches (from 0 to 1, each less its mean), on a grid with step {STRIDE}, of {origin}."
    return Images(patches, (PATCH, PATCH), np.empty(0), text, folder is not None)


def _patches(image: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(image, (PATCH, PATCH))[::STRIDE, ::STRIDE]
    patches = windows.reshape(-1, PATCH * PATCH)
    return (patches - patches.mean(1, keepdims=True)).astype(np.float32)


def _picture_folder(path: str | Path | None) -> Path | None:
    if path is None or not Path(path).is_dir():
        return None
    for folder in (Path(path) / "caltech_faces", Path(path) / "Faces", Path(path)):
        if folder.is_dir() and any(file.suffix.lower() in PICTURES for file in folder.iterdir()):
            return folder
    return None


# -------------------------------------------------------------------------------------------------------------- surfaces


@lru_cache(maxsize=1)
def surfaces(path: str | Path | None) -> Surfaces:
    """Log-Jacobians on a hippocampus from an .npz of the folder (or that file), or GIFTI files, else fields simulated on a sphere."""
    found = _find(path, ("hippocampus_spharm_left.npz", "hippocampus.npz", "surfaces.npz"))
    if found is None:
        return (
            _simulated_surfaces()
            if path is None or not (Path(path) / "surfaces").is_dir()
            else _gifti_surfaces(Path(path))
        )
    with np.load(found, allow_pickle=False) as file:
        _need(found, file.files, "log_jacobian", "template_vertices", "faces", "label")
        X, vertices, mesh, label = (
            file[name] for name in ("log_jacobian", "template_vertices", "faces", "label")
        )
    wanted = np.isin(label, ("control", "tle_ipsilateral", "tle_contralateral"))
    if not (label[wanted] == "control").any() or len(np.unique(label[wanted])) < 3:
        raise ValueError(
            f"{found}: label must hold control, tle_ipsilateral and tle_contralateral; it has {', '.join(np.unique(label))}."
        )
    counts = {
        name: int((label == name).sum())
        for name in ("control", "tle_ipsilateral", "tle_contralateral")
    }
    return Surfaces(
        X[wanted].astype(float), vertices, mesh, label[wanted],
        {"all patients": ("tle_ipsilateral", "tle_contralateral"), "mild patients": ("tle_contralateral",)},
        f"log-Jacobians of {wanted.sum()} left hippocampi on a mesh of {len(vertices):,} vertices: {counts['control']} controls, and "
        f"patients with temporal lobe epilepsy on the same side ({counts['tle_ipsilateral']}) or on the other "
        f"({counts['tle_contralateral']}, taken for the paper's mild group). The paper's 101 surfaces are "
        "of controls and of patients with Alzheimer's disease, and not public.",
        True,
    )  # fmt: skip


def _gifti_surfaces(folder: Path) -> Surfaces:
    """``surfaces/``, a file for each person; the mesh ``surfaces.surf.gii``; and ``surfaces.txt``, a line for each: control, or another."""
    rows = read(folder / "surfaces", mesh=folder / "surfaces.surf.gii")
    label, mesh = labels(rows, str(folder / "surfaces.txt")), rows.layout
    others = tuple(name for name in np.unique(label).tolist() if name != "control")
    if "control" not in label or not others or not isinstance(mesh, Mesh):
        raise ValueError(
            f"{folder / 'surfaces.txt'} must hold control and other labels; it has {', '.join(np.unique(label))}."
        )
    mild = "mild" if "mild" in others else others[0]
    counts = ", ".join(f"{(label == name).sum()} {name}" for name in ("control", *others))
    text = f"fields on {len(label)} surfaces of {len(mesh.vertices):,} vertices, from GIFTI files: {counts} ({mild} is the mild group)."
    return Surfaces(
        rows.X.astype(float),
        mesh.vertices,
        mesh.faces,
        label,
        {"all patients": others, "mild patients": (mild,)},
        text,
        True,
    )


def _simulated_surfaces() -> Surfaces:
    """Five smooth bumps on a sphere with Laplacian coefficients; patients have less of the first, the mild ones not much."""
    vertices, mesh = sphere(3)
    rng = np.random.default_rng(0)
    labels = np.repeat(["control", "mild", "severe"], (57, 32, 12))
    centres = rng.normal(size=(5, 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    bumps = np.exp(6 * (vertices @ centres.T - 1))
    beta = rng.laplace(size=(len(labels), 5)) / np.sqrt(2)
    beta[:, 0] -= 0.5 * (labels == "mild") + 1.2 * (labels == "severe")
    X = 0.1 * (beta @ bumps.T + 0.3 * rng.normal(size=(len(labels), len(vertices))))
    return Surfaces(
        X, vertices, mesh, labels, {"all patients": ("mild", "severe"), "mild patients": ("mild",)},
        f"fields simulated on a sphere of {len(vertices)} vertices (57 controls, 32 mild and 12 severe patients, as many as in the paper, "
        "who have less of one of five smooth components), a stand-in for the hippocampi.",
        False,
    )  # fmt: skip


def sphere(divisions: int) -> tuple[np.ndarray, np.ndarray]:
    """An icosahedron whose triangles are divided by four so many times, on the unit sphere: vertices (n, 3) and faces."""
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
        vertices = np.concatenate(
            [vertices, middles / np.linalg.norm(middles, axis=1, keepdims=True)]
        )
    return vertices, _outward(vertices, ConvexHull(vertices).simplices)


def _outward(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    flipped = (np.cross(b - a, c - a) * a).sum(1) < 0
    return np.where(flipped[:, None], faces[:, ::-1], faces)


def _find(path: str | Path | None, names: object) -> Path | None:
    """The first of these files in the folder, or the file itself if it has one of these names; None without one."""
    if path is None:
        return None
    folder = Path(path)
    wanted = [folder.name] if folder.is_file() else list(names)  # type: ignore[call-overload]
    root = folder.parent if folder.is_file() else folder
    return next((root / name for name in wanted if name in names and (root / name).is_file()), None)  # type: ignore[operator]


def _need(path: Path, has: list[str], *names: str) -> None:
    missing = [name for name in names if name not in has]
    if missing:
        raise ValueError(f"{path} has no array {missing[0]!r}: it has {', '.join(has)}.")
