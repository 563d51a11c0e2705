"""Explained variance: one definition, and its parts sum to the whole."""

import numpy as np
import pytest

from noisyica import Model, NoisyICA, priors
from noisyica.app.printing import summary
from noisyica.data import Data, Lines
from noisyica.engine.explained import explained_variance
from noisyica.engine.statistics import Mixing, Statistics
from noisyica.report import facts, sample
from tests.tools import some_slow


def averages(X, B, m, mixing=None):
    """The statistics of rows with known coefficients and offsets."""
    n = len(X)
    return Statistics(
        x=X.mean(0),
        xx=np.square(X).mean(0),
        b=B.mean(0),
        bb=B.T @ B / n,
        xb=X.T @ B / n,
        m=m.mean(),
        mb=m @ B / n,
        mx=m @ X / n,
        mm=m @ m / n,
        prior=None,
        mixing=mixing,
    )


def test_shares_sum_to_the_variance_of_what_is_added():
    rng = np.random.default_rng(0)
    A, m = rng.normal(size=(7, 3)), rng.laplace(size=50)
    B = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)) + 4.0  # correlated, and not centred
    X = B @ A.T + m[:, None]
    noise = rng.uniform(0.1, 2.0, 7)
    shares, total = explained_variance(A, averages(X, B, m), noise, np.arange(3))
    assert total == pytest.approx(X.var(0).sum() + noise.sum(), rel=1e-12)
    without, smaller = explained_variance(A, averages(X, B, 0 * m), noise, np.arange(3))
    assert smaller == pytest.approx((B @ A.T).var(0).sum() + noise.sum(), rel=1e-12)
    assert without.sum() == pytest.approx((B @ A.T).var(0).sum(), rel=1e-12)
    by_themselves = B.var(0) * np.square(A).sum(0)
    assert np.allclose(without / without.sum(), by_themselves / by_themselves.sum())
    assert np.allclose(shares / shares.sum(), by_themselves / by_themselves.sum())
    # some of the components
    some, total = explained_variance(A, averages(X, B, 0 * m), 1.5, np.array([2, 0]))
    signal = B[:, [2, 0]] @ A[:, [2, 0]].T
    assert total == pytest.approx(signal.var(0).sum() + 7 * 1.5, rel=1e-12)
    assert some.sum() == pytest.approx(signal.var(0).sum(), rel=1e-12)


def test_uncertain_mixing_adds_its_variance():
    """A's posterior variance is that of draws of A, whose columns are independent."""
    rng = np.random.default_rng(1)
    mean, deviation = rng.normal(size=(5, 2)), rng.uniform(0.2, 1.0, (5, 2))
    B = rng.normal(size=(400, 2))
    mixing = Mixing(mean, mean**2 + deviation**2, mean @ B.mean(0), np.zeros(5))
    stored = averages(B @ mean.T, B, np.zeros(400), mixing)
    total = explained_variance(mean, stored, 0.0, np.arange(2))[1]
    draws = [
        (B @ (mean + deviation * rng.normal(size=mean.shape)).T).var(0).sum() for _ in range(4000)
    ]
    assert abs(total - np.mean(draws)) < 4 * np.std(draws) / np.sqrt(4000)


def test_share_of_few_wide_rows_is_the_true_one():
    """Sixty rows of 600 columns: a hidden A is shrunk, but what it explains is not."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(600, 6))
    X, beta = Model(A, None, 8.0, "bg").sample(60, random_state=1)
    ica = NoisyICA(6, noise="isotropic", max_iter=200, tol=0, random_state=0, verbose=False).fit(X)
    truth = (beta @ A.T).var(0).sum() / X.var(0).sum()
    share = ica.explained_variance_ratio_.sum()
    noise = 600 * ica.noise_variance_ / X.var(0).sum()
    assert share == pytest.approx(truth, abs=0.02)
    assert share == pytest.approx(1 - noise, abs=0.03)
    assert (np.diff(ica.explained_variance_) <= 0).all()


@pytest.mark.parametrize("prior", some_slow(["bg", "te", "teoff"], "teoff"))
def test_shares_and_noise_are_the_whole(prior):
    """Even after two iterations, and with more components than columns."""
    X = np.random.default_rng(0).normal(size=(40, 5)) @ np.diag([9.0, 3.0, 1.0, 1.0, 1.0])
    ica = NoisyICA(
        8, prior=prior, noise="isotropic", max_iter=2, tol=0, random_state=0, verbose=False
    ).fit(X)
    ratio, noise = ica.explained_variance_ratio_, 5 * ica.noise_variance_
    total = ica.explained_variance_.sum() / ratio.sum()
    assert (ratio >= 0).all()
    assert ratio.sum() < 1
    rest = total - ica.explained_variance_.sum() - noise
    if prior == "teoff":
        assert rest > 0  # the offset's
    else:
        assert rest == pytest.approx(0, abs=1e-9 * total)


@pytest.mark.slow
def test_terminal_and_report_say_the_same():
    rng = np.random.default_rng(0)
    model = Model(rng.normal(size=(30, 3)), None, 4.0, priors.BernoulliGaussian(0.5))
    X = model.sample(40, random_state=0)[0]
    ica = NoisyICA(3, max_iter=30, tol=0, random_state=0, verbose=False).fit(X)
    text = f"{100 * ica.explained_variance_ratio_.sum():.1f} %"
    printed = summary(ica)
    assert printed["variance explained"].startswith(text)
    data = Data(X, {}, np.arange(40).astype(str), Lines(np.arange(30).astype(str)))
    looked = sample.look(ica, data, None)
    tiles = {tile["label"]: tile["value"] for tile in facts.summary(ica, data, looked)}
    assert tiles.pop("Variance explained") == text
    # all else that is printed is said on the page, too
    said = {name.lower(): value for name, value in printed.items() if name != "variance explained"}
    assert all(said.pop(name.lower(), value).startswith(value) for name, value in tiles.items())
    assert not said
