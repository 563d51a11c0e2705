"""The data of the paper's experiments: the formats they are read from, and the stand-ins."""

import gzip
import json

import numpy as np
import pytest
from PIL import Image

from noisyica.data import Mesh, write
from noisyica.paper import inputs


def digits_files(folder):
    rng = np.random.default_rng(0)
    X, y = rng.integers(-1000, 1000, size=(12, 256)) / 1000, np.arange(12) % 10
    np.savez(folder / "usps.npz", X_train=(X * 1000).astype(np.int16), y_train=y, scale=1e-3)
    with gzip.open(folder / "zip.train.gz", "wt") as file:
        file.writelines(
            f"{label:.4f} {' '.join(map(str, row))} \n" for label, row in zip(y, X, strict=True)
        )
    lines = (
        f"{label + 1} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row))
        for label, row in zip(y, X, strict=True)
    )
    (folder / "usps").write_text("\n".join(lines) + "\n")
    return X, y


def test_digits_in_the_common_formats(tmp_path):
    X, y = digits_files(tmp_path)
    for name in ("usps.npz", "zip.train.gz", "usps"):
        digits = inputs.digits(tmp_path / name)
        np.testing.assert_allclose(digits.X, X, atol=1e-9)
        np.testing.assert_array_equal(digits.labels, y)
        assert digits.real
    assert inputs.digits(tmp_path).description.endswith("from usps.npz.")
    stand_in = inputs.digits(None)
    assert stand_in.X.shape == (1797, 64)
    assert "stand-in" in stand_in.description
    assert inputs.case(None, stand_in) != inputs.case(None, stand_in._replace(X=stand_in.X + 1))
    np.savez(tmp_path / "usps.npz", other=X)
    inputs.digits.cache_clear()
    with pytest.raises(ValueError, match=r"usps.npz has no array 'X_train': it has other"):
        inputs.digits(tmp_path)


def test_patches(tmp_path):
    (tmp_path / "Faces").mkdir()
    grey = np.random.default_rng(0).integers(0, 256, size=(30, 40), dtype=np.uint8)
    Image.fromarray(grey).save(tmp_path / "Faces" / "a.png")
    patches = inputs.faces(tmp_path, 100)
    assert patches.X.shape == (2 * 3, 169)
    corner = grey[12:25, 24:37].astype(float).ravel() / 255
    np.testing.assert_allclose(patches.X[5], corner - corner.mean(), atol=1e-6)
    assert inputs.faces(tmp_path, 4).X.shape == (4, 169)
    assert "4 of the 6" in inputs.faces(tmp_path, 4).description
    (tmp_path / "Faces" / "b.jpg").write_text("no image")
    inputs.faces.cache_clear()
    with pytest.raises(ValueError, match=r"b.jpg cannot be read"):
        inputs.faces(tmp_path, 4)
    assert "stand-in" in inputs.faces(None, 100).description


def test_sphere_and_simulated_surfaces():
    vertices, faces = inputs.sphere(2)
    assert (len(vertices), len(faces)) == (162, 320)
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    volume = (np.cross(b - a, c - a) * a).sum() / 6
    assert volume == pytest.approx(4 / 3 * np.pi, rel=0.05)
    surfaces = inputs.surfaces(None)
    assert surfaces.X.shape == (101, 642)
    assert not surfaces.real


def test_surfaces_of_a_file(tmp_path):
    vertices, faces = inputs.sphere(1)
    labels = np.array(
        ["control", "tle_ipsilateral", "tle_contralateral", "unaffected_other_side_missing"] * 3
    )
    X = np.random.default_rng(0).normal(size=(12, len(vertices)))
    arrays = {"log_jacobian": X, "template_vertices": vertices, "faces": faces}
    np.savez(tmp_path / "surfaces.npz", **arrays, label=labels)
    surfaces = inputs.surfaces(tmp_path)
    assert surfaces.X.shape == (9, 42)
    assert surfaces.real
    assert surfaces.called["mild patients"] == "patients of the other side"
    assert "3 controls, and patients with temporal lobe epilepsy on the same side (3)" in (
        surfaces.description
    )
    assert "evenly spread" not in surfaces.description
    assert json.loads(json.dumps(inputs.case(tmp_path, surfaces)))["data"] == str(tmp_path)
    of = np.where(np.arange(12) < 4, "one", "two")  # of the controls one is in the first
    of[labels != "control"] = "two"
    np.savez(tmp_path / "surfaces.npz", **arrays, label=labels, dataset=of)
    inputs.surfaces.cache_clear()
    assert (
        "2 data sets (one, two), over which the groups are not evenly spread: one has 33% of the "
        "controls, 0% of the same side, 0% of the other side."
    ) in inputs.surfaces(tmp_path).description
    np.savez(tmp_path / "surfaces.npz", **arrays, label=labels[[1] * 12])
    inputs.surfaces.cache_clear()
    with pytest.raises(ValueError, match=r"label must hold control"):
        inputs.surfaces(tmp_path)


def test_surfaces_from_gifti(tmp_path):
    vertices, mesh = inputs.sphere(1)
    values = np.random.default_rng(0).normal(size=(6, len(vertices))).astype(np.float32)
    for i, row in enumerate(values):
        _, shape = write(row, Mesh(vertices, mesh), tmp_path / f"all/s{i}", ["field"])
        (tmp_path / "surfaces").mkdir(exist_ok=True)
        shape.rename(tmp_path / "surfaces" / shape.name)
    (tmp_path / "all" / "s0.surf.gii").rename(tmp_path / "surfaces.surf.gii")
    (tmp_path / "surfaces.txt").write_text("control\ncontrol\nmild\nsevere\nsevere\ncontrol\n")
    surfaces = inputs.surfaces(tmp_path)
    np.testing.assert_array_equal(surfaces.X, values)
    np.testing.assert_array_equal(surfaces.faces, mesh)
    assert surfaces.groups == {"all patients": ("mild", "severe"), "mild patients": ("mild",)}
    assert surfaces.called["mild patients"] == "mild patients"
    (tmp_path / "surfaces.txt").write_text("ill\n" * 6)
    inputs.surfaces.cache_clear()
    with pytest.raises(ValueError, match="must hold control and other labels; it has ill"):
        inputs.surfaces(tmp_path)
