"""Random data and random settings: a finite fit, or an error that says why there is none.

    python benchmarks/fuzz.py --count 1000 --seed 0
    python benchmarks/fuzz.py --count 500 --laws

Data are of few shapes, so that little has to be compiled. A pair is a failure when it ends in
anything but a fit whose attributes and answers are all finite, or a ValueError or TypeError of the
library's own, with a text. Each pair has a number, which decides it: ``--only NUMBER`` repeats one.
"""

from __future__ import annotations

import argparse
import collections
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from noisyica import NoisyICA, Smooth, priors
from noisyica.priors import to_plain

SHAPES = ((32, 6), (32, 6), (32, 6), (32, 6), (7, 6), (2, 6), (1, 6), (32, 1))
COMPILED = {
    "n_components": (1, 2, 2, 2, 2, "auto", "auto", 8, 40),
    "prior": tuple(priors.TABLE),
    "algorithm": ("saem", "saem", "saem", "mcem", "em", "fam-em", "sem"),
    "sampler": ("gibbs", "gibbs", "gibbs", "metropolis"),
    "mean": ("free", "free", "zero", "shift", "offset"),
    "noise": ("isotropic", "diagonal", "student", "auto"),
    "mixing_prior": ("normal", None),
    "dtype": ("float32", "float32", "float64"),
    "boundaries": (False, False, False, True),
}
WITH_LAWS = {
    "algorithm": ("saem", "saem", "mcem", "sem"),
    "mixing_prior": ("sparse", "nonnegative", Smooth(shape=(3, 2))),
}
"""What replaces the above with ``--laws``: laws for the entries of A."""
OTHERS = {
    "init": ("auto", "pca", "fastica", "random"),
    "n_draws": (2, (1, 2)),
    "burn_in": (0.5, 0.0, 1.0),
    "kappa": (0.9, 0.5, 1.0),
    "max_iter": (1, 12, 12, 12, 25),
    "tol": (0, 1e-3),
    "transform_algorithm": ("mean", "map"),
}
NONSENSE = (None, -1, 0, 1.5, "nonsense", np.nan, [], (1, 2, 3), {}, np.inf, True)
FINITE = ("components_", "mean_", "noise_variance_", "explained_variance_", "mixing_")


def kinds_of_data(rng: np.random.Generator, n: int, d: int) -> dict[str, Callable[[], Any]]:
    """Return functions that make rows, or something like rows, by what they are."""
    X = rng.laplace(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    return {
        "normal": lambda: X,
        "shifted": lambda: X + 10.0 ** rng.integers(-3, 12),
        "scaled": lambda: X * 10.0 ** rng.integers(-45, 46),
        "far scaled": lambda: X * 10.0 ** rng.integers(-320, 308),
        "columns scaled": lambda: X * 10.0 ** rng.integers(-30, 31, d),
        "columns shifted": lambda: X + 10.0 ** rng.integers(-5, 16, d),
        "constant columns": lambda: np.where(rng.random(d) < 0.5, 3.7, X),
        "constant rows": lambda: np.where(rng.random((n, 1)) < 0.7, 3.7, X),
        "all constant": lambda: np.full((n, d), rng.choice([0.0, 1.0, 1e-300, 1e300])),
        "zeros": lambda: np.zeros((n, d)),
        "missing": lambda: np.where(rng.random((n, d)) < rng.random(), np.nan, X),
        "infinite": lambda: np.where(rng.random((n, d)) < 0.02, np.inf, X),
        "integers": lambda: np.round(X * 3).astype(int),
        "counts": lambda: rng.poisson(0.2, (n, d)),
        "binary": lambda: rng.random((n, d)) < 0.3,
        "one entry": lambda: np.where(np.arange(n * d).reshape(n, d) == 3, 1.0, 0.0),
        "duplicates": lambda: X[rng.integers(0, max(n // 4, 1), n)],
        "copied columns": lambda: X[:, rng.integers(0, d, d)],
        "outliers": lambda: np.where(rng.random((n, d)) < 0.01, 10.0 ** rng.integers(1, 20), X),
        "cauchy": lambda: rng.standard_cauchy((n, d)) ** 3,
        "noise free": lambda: rng.laplace(size=(n, 2)) @ rng.normal(size=(2, d)),
        "rank one": lambda: np.outer(rng.normal(size=n), rng.normal(size=d)),
        "half precision": lambda: X.astype(np.float16),
        "single precision": lambda: (
            X.astype(np.float32) * np.float32(10.0 ** rng.integers(-44, 37))
        ),
        "objects": lambda: X.astype(object),
        "text": lambda: X.astype(str),
        "words": lambda: np.full((n, d), "word"),
        "complex": lambda: X + 1j,
        "three axes": lambda: X[None],
        "one axis": lambda: X[0],
        "nothing": lambda: X[:0],
        "no columns": lambda: X[:, :0],
        "list": lambda: X.tolist(),
        "none": lambda: None,
        "denormal": lambda: X * 1e-310,
        "large": lambda: np.sign(X) * 1.7e308,
    }


def some_settings(rng: np.random.Generator, kinds: int) -> dict[str, Any]:
    """Return random settings, some of which are not possible."""
    number = rng.integers(kinds)
    kind = np.random.default_rng(number)
    settings = {name: values[kind.integers(len(values))] for name, values in COMPILED.items()}
    settings["prior"] = list(priors.TABLE)[number % len(priors.TABLE)]
    settings |= {name: values[rng.integers(len(values))] for name, values in OTHERS.items()}
    settings["random_state"] = int(rng.integers(1000))
    if rng.random() < 0.15:
        name = list(settings)[rng.integers(len(settings))]
        settings[name] = NONSENSE[rng.integers(len(NONSENSE))]
    return settings


def finite(value: Any) -> bool:
    """Return whether all numbers in a value are finite."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(finite, value))
    if isinstance(value, (str, type(None))):
        return True
    return bool(np.isfinite(np.asarray(value, float)).all())


def outcome(X: Any, settings: dict[str, Any], weight: Any = None, answers: bool = True) -> str:
    """Return how a fit to X ended: "fitted", "refused", or what was wrong.

    ``answers`` says whether it is asked for coefficients and the likelihood of rows, too.
    """
    ica = NoisyICA(verbose=False, **settings)
    try:
        ica.fit(X, sample_weight=weight)
        asked = {"transform": ica.transform(X[:2]), "score": ica.score(X[:2])} if answers else {}
    except (ValueError, TypeError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        said = ("noisyica" in where or "sklearn" in where) and len(str(error)) > 15
        return "refused" if said else f"unclear {type(error).__name__}: {error}"
    wrong = [part for part in FINITE if not finite(getattr(ica, part))]
    if not finite(to_plain(ica.prior_)):
        wrong.append("prior_")
    if not finite(ica.history_):
        wrong.append("history_")
    if not (np.asarray(ica.noise_variance_) > 0).all():
        wrong.append("noise of zero")
    wrong += [name for name, value in asked.items() if not finite(value)]
    return f"not finite: {', '.join(wrong)}" if wrong else "fitted"


def pair(number: int, kinds: int) -> tuple[str, str, dict[str, Any]]:
    """Return how a pair ended, the data's name and the settings."""
    rng = np.random.default_rng(number)
    n, d = SHAPES[rng.integers(len(SHAPES))]
    of_data = kinds_of_data(rng, n, d)
    name = str(rng.choice(list(of_data)))
    X, settings = of_data[name](), some_settings(rng, kinds)
    weight = rng.uniform(0, 3, np.shape(X)[0]) if np.ndim(X) and rng.random() < 0.1 else None
    # answers take as long as the fit
    try:
        return outcome(X, settings, weight, answers=number % 3 == 0), name, settings
    except Exception as error:
        traceback.print_exc(limit=-4)
        return f"{type(error).__name__}: {error}", name, settings


def main() -> None:
    """Try pairs one after the other, and say how they ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first pair")
    text = "the number of combinations of those settings for which code is compiled"
    parser.add_argument("--kinds", type=int, default=27, help=text)
    parser.add_argument("--only", type=int, help="the number of the only pair to try")
    parser.add_argument("--laws", action="store_true", help="laws for the entries of A")
    options = parser.parse_args()
    COMPILED.update(WITH_LAWS if options.laws else {})
    first, count = (options.only, 1) if options.only is not None else (options.seed, options.count)
    ends: collections.Counter[str] = collections.Counter()
    begun = time.time()
    for number in range(first, first + count):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)
            warnings.filterwarnings("ignore", module="sklearn")
            end, name, settings = pair(number, options.kinds)
        if end not in ("fitted", "refused"):
            print(f"{number}: {name}: {end}\n    {settings}", flush=True)
        ends[end if end in ("fitted", "refused") else "FAILED"] += 1
        if (number + 1) % 100 == 0:
            print(
                f"{number + 1 - first} tried in {time.time() - begun:.0f} s: {dict(ends)}",
                flush=True,
            )
    print(dict(ends))


if __name__ == "__main__":
    main()
