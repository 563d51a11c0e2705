"""Noisy ICA of EEG, against MNE's own ICA on simulated recordings whose artefacts are known."""

import doctest
import pickle
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import mne
import numpy as np
import pytest
import sklearn

from noisyica import NoisyICA
from noisyica.eeg import (
    clean,
    cleaning,
    fit_ica,
    fitting,
    library,
    removal,
    simulate,
    simulation,
    sources,
)
from noisyica.eeg.removal import what_they_add
from noisyica.eeg.unmixing import axes, uncorrelated

mne.set_log_level("error")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
QUICK = {"n_init": 1, "verbose": False, "random_state": 0, "max_iter": 200, "tol": 0}


def quick(p=10, **settings):
    """An estimator that is quick, but good enough to see artefacts."""
    return NoisyICA(p, **{**QUICK, **settings})


def artefacts(simulated, of_sources):
    """Which source is the blink's and which the heartbeat's, by correlation with the truth."""
    courses = [part[np.abs(part).max(1).argmax()] for part in simulated[1:]]
    found = np.corrcoef(np.vstack([*courses, of_sources]))[:2, 2:]
    return np.abs(found).argmax(1).tolist()


def left_over(simulated, cleaned):
    """How far cleaned EEG is from EEG without artefacts (noise and all), r.m.s., in microvolts."""
    return 1e6 * np.sqrt(np.square(cleaned.get_data("eeg") - simulated.clean).mean())


@pytest.fixture(scope="module")
def simulated():
    return simulate(seconds=40, noise=5e-6, random_state=0)


@pytest.fixture(scope="module")
def ica(simulated):
    return fit_ica(simulated.raw, estimator=quick())


def test_each_ica_has_a_model_of_its_own(simulated):
    estimator = quick(5, max_iter=30, noise="isotropic")
    first = fit_ica(simulated.raw, estimator=estimator)
    cleaned = clean(simulated.raw, first, exclude=[0]).get_data("eeg")
    second = fit_ica(simulated.raw.copy().crop(0, 10), estimator=estimator)
    assert first.noisy_ is not second.noisy_
    assert not hasattr(estimator, "components_")
    with sklearn.config_context(transform_output="pandas"):
        again = clean(simulated.raw, first, exclude=[0]).get_data("eeg")
    np.testing.assert_array_equal(again, cleaned)


@pytest.mark.parametrize("wrong", [None, 0.99, True])
def test_what_mne_takes_for_n_components_is_explained(simulated, wrong):
    with pytest.raises(ValueError, match="'auto' or an integer"):
        fit_ica(simulated.raw, wrong)


# ---- the linear unmixing


def test_no_other_uncorrelated_sources_are_closer():
    """Many rotations and small turns of the sources lower the sum of correlations."""
    rng = np.random.default_rng(0)
    A, variance = rng.normal(size=(6, 4)), rng.uniform(0.2, 2, 4)
    S = (A * variance) @ A.T + np.eye(6)
    rows, along = axes(A, S)
    np.testing.assert_allclose(rows @ rows.T, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(rows[4:] @ A, 0, atol=1e-12)
    np.testing.assert_allclose(np.diag(rows @ S @ rows.T), along)
    U = uncorrelated(rows[:4] @ A, along[:4], variance) @ rows[:4]
    np.testing.assert_allclose(U @ S @ U.T, np.eye(4), atol=1e-10)

    def correlations(U):
        """Correlation of u_j . x with beta_j: cov(x, beta_j) is a_j c_j."""
        return np.sum(np.diag(U @ A) * np.sqrt(variance))

    best = correlations(U)
    for size in (0.01, 0.1, 1.0):
        for _ in range(50):
            skew = rng.normal(size=(4, 4))
            turn, _ = np.linalg.qr(np.eye(4) + size * (skew - skew.T))
            turn *= np.sign(np.diag(turn))
            assert correlations(turn @ U) < best


def test_without_noise_the_maps_are_the_components():
    rng = np.random.default_rng(1)
    A, variance = rng.normal(size=(5, 3)), np.array([0.5, 1.0, 2.0])
    rows, along = axes(A, (A * variance) @ A.T)
    U = uncorrelated(rows[:3] @ A, along[:3], variance)
    np.testing.assert_allclose(rows[:3].T @ np.linalg.inv(U), A * np.sqrt(variance), atol=1e-10)


def test_components_that_are_nothing_do_no_harm():
    A = np.random.default_rng(2).normal(size=(5, 3))
    A[:, 1] = 0
    rows, along = axes(A, A @ A.T + np.eye(5))
    assert np.isfinite(uncorrelated(rows[:3] @ A, along[:3], np.array([1.0, 0.0, 1.0]))).all()


# ---- an ICA object of MNE


def test_it_is_an_ica_of_mne(simulated, ica):
    assert type(ica) is mne.preprocessing.ICA
    assert ica.ch_names == simulated.raw.ch_names[:32]
    assert (ica.n_components_, ica.n_samples_, ica.current_fit) == (10, 4000, "raw")
    assert "noisyica" in repr(ica)
    S = ica.get_sources(simulated.raw).get_data()
    np.testing.assert_allclose(np.cov(S), np.eye(10), atol=1e-8)
    left = ica.apply(simulated.raw.copy()).get_data()
    np.testing.assert_allclose(left, simulated.raw.get_data(), atol=1e-12)  # nothing excluded


def test_maps_and_sources_are_those_of_the_noisy_model(simulated, ica):
    maps, A = ica.get_components(), ica.noisy_.mixing_
    strong = ica.noisy_.explained_variance_ratio_ > 0.02
    assert strong.sum() >= 3
    cosine = np.sum(maps * A, 0) / np.linalg.norm(maps, axis=0) / np.linalg.norm(A, axis=0)
    assert (cosine[strong] > 0.9).all()
    linear, own = (
        f.get_data() for f in (ica.get_sources(simulated.raw), sources(simulated.raw, ica))
    )
    for j in np.flatnonzero(strong):
        assert np.corrcoef(linear[j], own[j])[0, 1] > 0.8  # posterior means shrink to zero
    data = simulated.raw.get_data("eeg")
    expected = ica.noisy_.transform(data.T / data.std())  # one channel type: one scale
    differ = np.abs(own.T - expected) > 1e-4  # rounding can turn a draw
    assert differ.mean() < 1e-3


def test_clean_returns_a_copy_without_what_the_components_add(simulated, ica):
    out = [0, 2]
    data = simulated.raw.get_data("eeg")
    rows = data.T / data.std()
    expected = data - data.std() * what_they_add(rows, rows, ica.noisy_, out).T
    before = simulated.raw.get_data()
    cleaned = clean(simulated.raw, ica, exclude=out)
    np.testing.assert_allclose(cleaned.get_data("eeg"), expected, atol=1e-11)
    np.testing.assert_array_equal(simulated.raw.get_data(), before)
    np.testing.assert_array_equal(cleaned.get_data(["EOG", "ECG"]), before[32:])


def test_saved_and_read_it_does_the_same(simulated, ica, tmp_path):
    raw = simulated.raw
    ica = ica.copy()
    ica.exclude = [0, 3]
    ica.save(tmp_path / "recording-ica.fif")
    ica.noisy_.save(tmp_path / "recording.npz")
    read = mne.preprocessing.read_ica(tmp_path / "recording-ica.fif")
    ours, theirs = (one.get_sources(raw).get_data() for one in (ica, read))
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    ours, theirs = (one.apply(raw.copy()).get_data() for one in (ica, read))
    np.testing.assert_allclose(theirs, ours, atol=1e-12)
    with pytest.raises(ValueError, match="NoisyICA.load"):
        clean(raw, read)
    read.noisy_ = NoisyICA.load(tmp_path / "recording.npz")
    np.testing.assert_allclose(clean(raw, read).get_data(), clean(raw, ica).get_data(), atol=1e-12)


def test_mne_finds_the_artefacts(simulated, ica):
    blink, heart = artefacts(simulated, ica.get_sources(simulated.raw).get_data())
    assert blink != heart
    # of ten scores none can be three standard deviations above the mean, MNE's default
    by_correlation = {"measure": "correlation", "threshold": 0.6}
    assert ica.find_bads_eog(simulated.raw, **by_correlation)[0] == [blink]
    ecg = ica.find_bads_ecg(simulated.raw, method="correlation", **by_correlation)[0]
    assert ecg == [heart]


def test_mne_draws_it(simulated, ica):
    figure = ica.plot_components(show=False)
    figure = figure[0] if isinstance(figure, list) else figure
    assert len(figure.axes) >= 10
    matplotlib.pyplot.close("all")
    ica.plot_overlay(simulated.raw, exclude=[0], show=False)
    matplotlib.pyplot.close("all")


# ---- what MNE's users have


def test_epochs(simulated, ica):
    epochs = mne.make_fixed_length_epochs(simulated.raw, duration=1.0, preload=True)
    fitted = fit_ica(epochs, estimator=quick(max_iter=50))
    assert (fitted.current_fit, fitted.n_samples_) == ("epochs", 4000)
    cleaned = clean(epochs, ica, exclude=[0])
    whole = clean(simulated.raw, ica, exclude=[0]).get_data()
    np.testing.assert_allclose(np.hstack(cleaned.get_data()), whole, atol=1e-11)
    assert sources(epochs, ica).get_data().shape == (40, 10, 100)
    evoked = epochs.average(picks="all")
    assert sources(evoked, ica).data.shape == (10, 100)
    with pytest.raises(TypeError, match="Clean the epochs, and average them then"):
        clean(evoked, ica, exclude=[0])


def test_bad_channels_annotations_and_decimation(simulated):
    raw = simulated.raw.copy()
    raw.info["bads"] = ["T7"]
    raw.set_annotations(mne.Annotations([10.0], [5.0], ["bad_jump"]))
    raw._data[:, 1000:1500] = 1.0  # a volt, which is left out
    ica = fit_ica(raw, estimator=quick(max_iter=50), decim=2)
    assert "T7" not in ica.ch_names
    assert ica.noisy_.components_.shape == (10, 31)
    assert ica.n_samples_ == 1750
    assert np.abs(ica.noisy_.mean_).max() < 1
    # nothing is learnt from the bad segment, which is cleaned all the same
    cleaned = clean(raw, ica, exclude=[0]).get_data("eeg")
    shorter = raw.copy().crop(0, 9.99)
    good = mne.concatenate_raws([shorter, raw.copy().crop(15, None)])
    good.set_annotations(None)
    expected = clean(good, ica, exclude=[0]).get_data("eeg")
    np.testing.assert_allclose(np.delete(cleaned, np.s_[1000:1500], 1), expected, atol=1e-11)


@pytest.mark.parametrize("lost", ["reference", "projector", "interpolated"])
def test_data_of_less_than_full_rank(lost):
    simulated = simulate(40, noise=1e-5, average_reference=lost == "reference", random_state=1)
    raw = simulated.raw
    if lost == "projector":
        raw = raw.copy().set_eeg_reference(projection=True).apply_proj()
    elif lost == "interpolated":
        raw = raw.copy()
        raw.info["bads"] = ["Cz"]
        raw.interpolate_bads(origin=(0, 0, 0))
    ica = fit_ica(raw, estimator=quick())
    noise = np.sqrt(ica.noisy_.noise_variance_) * raw.get_data("eeg").std()
    assert 7e-6 < np.median(noise) < 14e-6  # the sensors' median is 1e-5, brain that is left above
    for cleaned in (ica.apply(raw.copy(), exclude=[0]), clean(raw, ica, exclude=[0])):
        values = np.linalg.eigvalsh(np.cov(cleaned.get_data("eeg")))
        assert values[0] < 1e-9 * values[-1]  # the rank is as before
    with pytest.raises(ValueError, match="data have rank 31 .* take at most 31"):
        fit_ica(raw, n_components=32)


def test_noise_covariance(simulated):
    """Whitened by the sensors' own noise, which they know, all have the same noise."""
    raw = simulated.raw
    quiet = simulate(40, noise=1e-12, random_state=0).raw
    noise = raw.get_data("eeg") - quiet.get_data("eeg")
    names = raw.ch_names[:32]
    cov = mne.Covariance(np.cov(noise), names, bads=[], projs=[], nfree=4000)
    with_cov = fit_ica(raw, estimator=quick(noise="isotropic"), noise_cov=cov)
    assert with_cov.noise_cov is cov
    assert 1 < with_cov.noisy_.noise_variance_ < 1.7  # noise, and the brain that is left
    assert np.ptp(np.log(np.diag(cov.data))) > 1
    left = with_cov.apply(raw.copy()).get_data()
    np.testing.assert_allclose(left, raw.get_data(), atol=1e-12)
    blink = artefacts(simulated, with_cov.get_sources(raw).get_data())[0]
    assert left_over(simulated, clean(raw, with_cov, [blink])) < 0.7 * left_over(simulated, raw)


def test_warnings_and_errors(simulated, ica, monkeypatch):
    raw = simulated.raw.copy().crop(0, 5)
    with raw.info._unlock():
        raw.info["highpass"] = 0.0
    with pytest.warns(RuntimeWarning, match="high-pass filtered"):
        fit_ica(raw, estimator=quick(3, max_iter=5), verbose="warning")
    raw = simulated.raw.copy()
    raw._data[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        fit_ica(raw, n_components=5)
    with pytest.raises(ValueError, match="NaN or infinite: leave these out"):
        clean(raw, ica, exclude=[0])
    raw = simulated.raw.copy()
    raw.set_annotations(mne.Annotations([0], [1e3], ["bad"]))
    with pytest.raises(ValueError, match="All segments are annotated as bad"):
        clean(raw, ica, exclude=[0])
    with pytest.raises(ValueError, match="there are 10 components"):
        clean(simulated.raw, ica, exclude=[10])
    for fitted in (ica, ica.copy(), pickle.loads(pickle.dumps(ica))):
        with pytest.raises(RuntimeError, match="cannot be fitted again. Call noisyica.eeg.fit_ica"):
            fitted.fit(simulated.raw)
    monkeypatch.setitem(__import__("sys").modules, "mne", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'noisyica[mne]'")):
        library.mne()


# ---- taking components out, where all else has a covariance that no model of channels has


def mixed(wrong=0.0, n=40_000, d=12, seed=0):
    """Rows with a sparse component among normal noise that is far from independent.

    The model that is returned with them has the component's map, turned by an angle whose sine is
    ``wrong``, and knows nothing of how noise goes together.
    """
    rng = np.random.default_rng(seed)
    a, off = np.linalg.qr(rng.normal(size=(d, 2)))[0].T
    root = rng.normal(size=(d, d)) * np.geomspace(1, 0.3, d)
    beta = 3 * rng.normal(size=n) * (rng.random(n) < 0.1)
    part = np.outer(beta, a)
    rows = part + rng.normal(size=(n, d)) @ root.T
    turned = np.sqrt(1 - wrong**2) * a + wrong * off
    model = SimpleNamespace(
        mixing_=turned[:, None],
        explained_variance_=np.array([0.9]),
        noise_variance_=np.diag(root @ root.T),
    )
    return rows, part, model, a, root @ root.T


def exact(rows, a, S):
    """The posterior mean of the component in ``mixed``, by Bayes' rule, in closed form."""
    precision = a @ np.linalg.solve(S, a)
    b = rows @ np.linalg.solve(S, a)
    log_odds = np.log(0.1 / 0.9) - 0.5 * np.log1p(9 * precision) + 0.5 * b**2 / (precision + 1 / 9)
    return np.outer(b / (precision + 1 / 9) / (1 + np.exp(-log_odds)), a)


def test_what_a_component_adds_is_nearly_its_exact_posterior_mean():
    rows, part, model, a, S = mixed()
    found = what_they_add(rows, rows, model, [0])
    error, best = (np.square(f - part).mean() for f in (found, exact(rows, a, S)))
    assert best < error < 1.5 * best  # what it learns beside the rows, it learns of 40,000 rows
    independent = exact(rows, a, np.diag(np.diag(S)))  # as the noisy model would have it
    assert error < 0.1 * np.square(independent - part).mean()


def test_a_wrong_direction_is_mended_where_rows_tell_it(monkeypatch):
    rows, part, model, *_ = mixed(wrong=0.3)
    error = np.square(what_they_add(rows, rows, model, [0]) - part).mean()
    monkeypatch.setattr(removal, "STEPS", 30)  # which would show if five had not been enough
    longer = np.square(what_they_add(rows, rows, model, [0]) - part).mean()
    assert error == pytest.approx(longer, rel=0.01)
    monkeypatch.setattr(removal, "ANGLE", 1e-9)  # the model's direction is believed
    believed = np.square(what_they_add(rows, rows, model, [0]) - part).mean()
    assert error < 0.2 * believed


def test_nothing_tells_the_direction_of_a_normal_component():
    """Newton's step is noise there; the direction is left to the noisy model."""
    rng = np.random.default_rng(3)
    A = np.linalg.qr(rng.normal(size=(8, 2)))[0]
    rows = rng.normal(size=(3000, 2)) @ A.T * 2 + 0.5 * rng.normal(size=(3000, 8))
    model = SimpleNamespace(
        mixing_=A[:, :1], explained_variance_=np.array([4.0]), noise_variance_=np.full(8, 0.25)
    )
    found = what_they_add(rows, rows, model, [0])
    along = found.T @ found
    direction = np.linalg.eigh(along)[1][:, -1]
    assert abs(direction @ A[:, 0]) > 0.98
    expected = rows @ A[:, 0] * 4 / 4.25
    assert np.square(found @ A[:, 0] - expected).mean() < 0.1 * np.square(expected).mean()


def test_a_component_that_is_nothing_adds_nothing():
    rows, _, model, *_ = mixed(n=2000)
    model.mixing_ = np.column_stack([model.mixing_, np.zeros(12)])
    model.explained_variance_ = np.array([0.9, 0.0])
    assert not what_they_add(rows, rows, model, [1]).any()
    both, one = (what_they_add(rows, rows, model, out) for out in ([0, 1], [0]))
    np.testing.assert_array_equal(both, one)


def test_a_flat_stretch_teaches_nothing():
    """Many equal rows would say that there is hardly any noise."""
    rows, _, model, *_ = mixed(n=4000)
    flat = np.concatenate([rows, np.repeat(rows[-1:], 2000, axis=0)])
    expected = what_they_add(rows, rows, model, [0])
    np.testing.assert_allclose(what_they_add(rows, flat, model, [0]), expected, rtol=1e-9)


# ---- artefacts removed


def removed(noise, seed):
    """What MNE's algorithms and ours leave of artefacts, or take besides them, in microvolts."""
    simulated = simulate(30, noise=noise, random_state=seed)
    raw, found = simulated.raw, {}
    for method in ("picard", "infomax"):
        ica = mne.preprocessing.ICA(10, method=method, random_state=seed).fit(raw)
        out = artefacts(simulated, ica.get_sources(raw).get_data())
        found[method] = left_over(simulated, ica.apply(raw.copy(), exclude=out))
    ica = fit_ica(raw, estimator=quick(random_state=seed))
    out = artefacts(simulated, ica.get_sources(raw).get_data())
    found["apply"] = left_over(simulated, ica.apply(raw.copy(), exclude=out))
    found["clean"] = left_over(simulated, clean(raw, ica, exclude=out))
    return found


@pytest.mark.filterwarnings("ignore:The noise variance of .* ran to zero:UserWarning")
@pytest.mark.parametrize("noise", [1e-6, 1e-5])
def test_artefacts_are_removed_better_than_by_mne(noise):
    found = [removed(noise, seed) for seed in range(3)]
    for other in ("picard", "infomax", "apply"):
        gain = np.array([one[other] - one["clean"] for one in found])
        assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))
        assert gain.min() > 0


# ---- the page and the examples


@pytest.mark.parametrize("module", [cleaning, fitting, simulation])
def test_docstring_examples(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short fits
        assert doctest.testmod(module).failed == 0


def test_the_page_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "eeg.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda *_, **__: None)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page's fit is short of rest
        exec(compile("\n".join(blocks), "docs/eeg.md", "exec"), names)
    assert len(names["blinks"]) == len(names["beats"]) == 1
    difference = names["cleaned"].get_data("eeg") - names["raw"].get_data("eeg")
    assert np.abs(difference).max() > 5e-5
    matplotlib.pyplot.close("all")
