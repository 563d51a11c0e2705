"""Files of models and checkpoints: whatever is damaged in them, a ValueError names the file."""

import contextlib
import io
import json
import zipfile

import numpy as np
import pytest

from noisyica import Model, NoisyICA
from noisyica.engine import checkpoint
from tests.fitted import fitted

FLIPS = 400


def flipped(content, rng):
    """The bytes with one bit flipped."""
    place = int(rng.integers(8 * len(content)))
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


@contextlib.contextmanager
def refusal(path):
    """Take note of a ValueError, which has to name the file."""
    said = []
    try:
        yield said
    except ValueError as error:
        said.append(str(error))
    assert all(str(path) in message for message in said)


def rewritten(content, changes):
    """The bytes of a .npz file with some of its arrays replaced (None: left out), CRCs and all."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files} | changes
    made = io.BytesIO()
    np.savez(made, **{name: array for name, array in arrays.items() if array is not None})
    return made.getvalue()


@pytest.fixture(scope="module")
def model():
    return Model(np.random.default_rng(0).normal(size=(5, 2)), np.arange(5), 0.25, "ifa")


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.npz"
    fitted(model).save(path)
    return path


def assert_same(one, other):
    for name in ("components_", "mean_", "noise_variance_", "explained_variance_", "n_iter_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert repr(one.prior_) == repr(other.prior_)
    assert one.get_params().keys() == other.get_params().keys()
    assert one.history_.keys() == other.history_.keys()
    for name, values in one.history_.items():
        np.testing.assert_array_equal(values, other.history_[name])


def test_a_flipped_bit_is_refused_or_changes_nothing(saved):
    content, whole, rng = saved.read_bytes(), NoisyICA.load(saved), np.random.default_rng(0)
    refused = 0
    for _ in range(FLIPS):
        saved.write_bytes(flipped(content, rng))
        with refusal(saved) as said:
            assert_same(NoisyICA.load(saved), whole)
        refused += len(said)
    assert refused > FLIPS / 2


@pytest.mark.parametrize(
    ("offset", "value"),  # of the flags (8) and of the method (10) in the directory of the file
    [(8, 1), (8, 32), (8, 64), (10, 12), (10, 14), (10, 97)],
)
def test_methods_that_zip_files_may_have(saved, offset, value):
    """Encryption, patches, methods of compression: Python has an exception of its own for each."""
    content = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        content[archive.start_dir + offset] = value
    saved.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        NoisyICA.load(saved)


def test_a_header_that_hides_numbers(saved):
    """A shape that is too small is no damage to NumPy, which then reads fewer numbers."""
    content = saved.read_bytes()
    begin = content.index(b"(2, 5)")
    with zipfile.ZipFile(saved) as archive:  # the file with another header, and the right CRC
        members = {item.filename: archive.read(item) for item in archive.infolist()}
    assert begin > 0
    members["components_.npy"] = members["components_.npy"].replace(b"(2, 5)", b"(1, 5)")
    with zipfile.ZipFile(saved, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    with pytest.raises(ValueError, match="more entries"):
        NoisyICA.load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"components_": None}, "components_"),
        ({"components_": np.full((2, 5), np.nan)}, "NaN"),
        ({"components_": np.ones(5)}, "damaged"),
        ({"mean_": np.zeros(4)}, "mean must be 5"),
        ({"noise_variance_": np.array(-1.0)}, "noise_variance"),
        ({"explained_variance_": np.ones(3)}, "explained_variance_ has shape"),
        ({"n_features_in_": np.array(6)}, "n_features_in_ is 6"),
        ({"description": np.array("{")}, "damaged"),
        ({"description": np.array("[]")}, "damaged"),
        ({"description": np.array('{"format": 1}')}, "settings"),
        ({"description": np.array('{"format": 99}')}, "newer version"),
        ({"description": np.array("[" * 100_000)}, "damaged"),
    ],
)
def test_contents_that_do_not_fit_together(saved, changes, message):
    saved.write_bytes(rewritten(saved.read_bytes(), changes))
    with pytest.raises(ValueError, match=message) as caught:
        NoisyICA.load(saved)
    assert str(saved) in str(caught.value)


def test_settings_that_do_not_exist(saved):
    with np.load(saved) as file:
        description = json.loads(str(file["description"]))
    description["settings"]["colour"] = "red"
    changes = {"description": np.array(json.dumps(description))}
    saved.write_bytes(rewritten(saved.read_bytes(), changes))
    with pytest.raises(ValueError, match="colour"):
        NoisyICA.load(saved)


def test_a_damaged_checkpoint(model, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    path, X = tmp_path / "checkpoint.npz", model.sample(20, random_state=0)[0]

    def stop(iteration, model):
        if iteration > 10:
            raise RuntimeError

    def fit(callback=None):
        settings = {"max_iter": 60, "tol": 0, "random_state": 0, "verbose": False}
        NoisyICA(2, "ifa", checkpoint=path, callback=callback, **settings).fit(X)

    with pytest.raises(RuntimeError):
        fit(stop)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    damaged = [flipped(content, rng) for _ in range(30)]
    damaged += [
        rewritten(content, {"0/position/0": np.zeros(3)}),
        rewritten(content, {"0/position/1": None}),
    ]
    refused = 0
    for changed in damaged:
        path.write_bytes(changed)
        with refusal(path) as said:
            fit()
        refused += len(said)
    assert refused > len(damaged) / 2
