"""Fits and the pages of their reports, for the tests of what a page holds and of how it works."""

import base64
import functools
import json
import re

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from sklearn.datasets import load_digits

from noisyica import Model, NoisyICA, laws, priors, report
from noisyica.data import Data, Images, Lines, Mesh, Volume
from tests.fitted import fitted

EVIL = (
    "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>&amp;"
)
N, D, P = 256, 64, 6
SHIFTED = laws.Mixture((laws.Dirac(), laws.Normal(2.0)), (0.6, 0.4))


def sphere(count):
    """A closed mesh with ``count`` vertices, longer than it is wide."""
    k = np.arange(count) + 0.5
    height, angle = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], 1)
    return Mesh(points * [1.0, 2.0, 0.7], ConvexHull(points).simplices)


def read_payload(page):
    """What the text of a page holds for its script."""
    text = re.search(r'id="payload">(.*?)</script>', page, re.DOTALL).group(1)
    return json.loads(text)


def unpack(packed):
    """The array that was packed, as ``arrays.js`` reads it."""
    raw = np.frombuffer(
        base64.b64decode(packed["data"]), np.dtype(packed["type"]).newbyteorder("<")
    ).reshape(packed["shape"])
    if "scale" not in packed:
        return raw
    lost = raw == np.iinfo(raw.dtype).min
    flat = (
        raw.reshape(len(raw), -1) * np.array(packed["scale"])[:, None]
        + np.array(packed["offset"])[:, None]
    )
    return np.where(lost, np.nan, flat.reshape(raw.shape))


@functools.cache
def fit_of_digits():
    """A fit of the digits, and their coefficients."""
    X = load_digits().data[:N]
    settings = {"prior": "bg", "noise": "isotropic", "max_iter": 40, "tol": 0}
    ica = NoisyICA(P, random_state=0, verbose=False, **settings).fit(X)
    return ica, ica.transform(X)


def digits(layout, ids=None, others=None):
    """Images of digits, as if they had the given layout."""
    return Data(
        load_digits().data[:N],
        others or {},
        np.arange(N).astype(str) if ids is None else ids,
        layout,
    )


LAYOUTS = {
    "images": Images(np.array([8, 8])),
    "lines": Lines(np.array([f"c{j} {EVIL}" for j in range(D)]), ordered=True),
    "table": Lines(np.array([f"c{j} {EVIL}" for j in range(D)])),
    "volume": Volume(np.ones((4, 4, 4), bool), np.diag([2.0, 2.0, 3.0, 1.0])),
    "mesh": sphere(D),
}


def write_pages(folder):
    """Write a report of the digits in each layout to the folder, all with hostile names."""
    ica, coefficients = fit_of_digits()
    ids = np.array([f"row {i} {EVIL}" for i in range(N)])
    targets = load_digits().target[:N]
    for kind, layout in LAYOUTS.items():
        others = {f"digit {EVIL}": targets, "note": np.array([EVIL] * N)}
        settings = {"data": EVIL, "fingerprint": "f00", "versions": {"noisyica": "1"}}
        report.write(
            folder / f"{kind}.html",
            ica,
            digits(layout, ids, others),
            coefficients,
            settings,
            f"Digits {EVIL}",
        )


def quick_report(path, ica, X, beta, layout):
    """Write a report without sampling, which takes long to compile: all draws are ``beta``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Model,
            "log_likelihood",
            lambda self, X, **_: (np.arange(len(X), dtype=float), np.zeros(len(X))),
        )
        patch.setattr(
            Model, "posterior_sample", lambda self, X, n_draws, **_: np.tile(beta, (n_draws, 1, 1))
        )
        report.write(path, ica, Data(X, {}, np.arange(len(X)).astype(str), layout), beta)


def write_odd_page(path):
    """Write a report of an unusual fit, and return the estimator and the rows.

    It has missing values, an offset per row, a law that is not centred at zero, noise of each
    column's own, and more components than columns.
    """
    rng = np.random.default_rng(0)
    n, d, p = 60, 12, 30
    model = Model(
        rng.normal(size=(d, p)), None, rng.uniform(0.05, 0.5, d), priors.Offset(SHIFTED, 2.0)
    )
    beta = np.where(rng.random((n, p)) < 0.4, rng.normal(2, 1, (n, p)), 0.0)
    X = (
        rng.laplace(scale=2.0, size=(n, 1))
        + beta @ model.mixing.T
        + np.sqrt(model.noise_variance) * rng.normal(size=(n, d))
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    ica = fitted(model, mean="offset", noise="diagonal")
    quick_report(path, ica, X.astype(np.float32), beta, Lines(np.arange(d).astype(str)))
    return ica, X
