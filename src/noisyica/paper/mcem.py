"""MCEM against SAEM with the logistic prior: error and time (the figure of MCEM and SAEM)."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.paper import drawing, published, tasks
from noisyica.paper.common import Claim, Entry, Picture, Result, Settings, column, summary, where
from noisyica.paper.images import SIDE, sample, truth
from noisyica.paper.measures import matched, mean_square_error
from noisyica.paper.timing import seconds_per_thousand

N, DRAWS = 100, (10, 30)
LARGE = (5000, 256, 20)
METHODS: dict[str, dict[str, Any]] = {
    "SAEM": {"algorithm": "saem"},
    **{f"MCEM, {m} draws": {"algorithm": "mcem", "n_draws": m} for m in DRAWS},
}


def estimate(method: str, sigma: float, seed: int, max_iter: int) -> dict[str, Any]:
    """One fit: error and seconds."""
    options = {"prior": "log", "mixing_prior": None, "random_state": seed, **METHODS[method]}
    seconds, ica = seconds_per_thousand(sample(N, sigma, seed), 2, max_iter, **options)
    return {
        "mse": mean_square_error(ica.mixing_, truth()),
        "seconds": seconds,
        "A": matched(ica.mixing_, truth()),
    }


def on_many_rows(method: str, seed: int, max_iter: int) -> dict[str, Any]:
    """Seconds where sweeps take most of the time."""
    n, d, p = LARGE
    rng = np.random.default_rng(seed)
    X = rng.laplace(size=(n, p)) @ rng.normal(size=(p, d)) + rng.normal(size=(n, d))
    options = {
        "prior": "log",
        "mixing_prior": None,
        "init": "pca",
        "random_state": seed,
        **METHODS[method],
    }
    return {"seconds": seconds_per_thousand(X, p, max_iter, **options)[0]}


def run(settings: Settings) -> Result:
    """All methods and noise levels."""
    seeds, max_iter = settings.seeds(2, 20), settings.choose(500, 1000)
    cases = [
        {"method": method, "sigma": sigma, "seed": seed, "max_iter": max_iter}
        for method in METHODS
        for sigma in published.SIGMAS
        for seed in seeds
    ]
    records = tasks.run(settings, "mcem", estimate, cases, timed=True)
    entries = [
        Entry(
            "Mean square error of A",
            method,
            f"σ = {sigma}",
            *summary(column(records, "mse", method=method, sigma=sigma)),
        )
        for method in METHODS
        for sigma in published.SIGMAS
    ]
    seconds = {
        method: float(np.median(column(records, "seconds", method=method))) for method in METHODS
    }
    per_thousand, over = "Time (median)", "times SAEM's"
    for method in METHODS:
        entries.append(Entry(per_thousand, method, "seconds for 1,000 iterations", seconds[method]))
        claimed = METHODS[method].get("n_draws", np.nan)
        entries.append(
            Entry(per_thousand, method, over, seconds[method] / seconds["SAEM"], np.nan, claimed)
        )
    large = tasks.run(
        settings,
        "mcem",
        on_many_rows,
        [{"method": m, "seed": settings.seed, "max_iter": 22} for m in METHODS],
        timed=True,
    )
    ratios = {record["method"]: record["seconds"] / large[0]["seconds"] for record in large}
    size = "{:,} x {}, p = {}".format(*LARGE)
    for method, ratio in ratios.items():
        entries.append(
            Entry(
                per_thousand,
                method,
                f"times SAEM's, {size}",
                ratio,
                np.nan,
                METHODS[method].get("n_draws", np.nan),
            )
        )
    return Result(
        "MCEM against SAEM",
        "MCEM draws the hidden variables m times in each iteration, SAEM once. The paper compares them with the logistic prior on the "
        "synthetic images, with 10 and 30 draws, and finds similar errors and a time that is about m times as long. (Its table is part of "
        "a picture, so that its errors and times are not among our numbers.)",
        f"The synthetic images of the first experiment, {N} in a training set, simulated anew for each repeat.",
        {
            "repeats": len(seeds),
            "iterations": max_iter,
            "fit": "maximum likelihood (mixing_prior=None)",
        },
        entries,
        _claims(records, seconds, ratios, size),
        [_picture(where(records, seed=seeds[0]))],
        seconds=sum(record["spent"] for record in (*records, *large)),
    )


def _claims(
    records: list[dict[str, Any]], seconds: dict[str, float], ratios: dict[str, float], size: str
) -> list[Claim]:
    claims = []
    for m in DRAWS:
        method = f"MCEM, {m} draws"
        ratio = seconds[method] / seconds["SAEM"]
        claims.append(Claim(
            f"An iteration of MCEM with {m} draws takes {ratios[method]:.1f} times as long as SAEM's on {size}, where draws take the time. "
            f"On the synthetic images it takes {ratio:.1f} times as long ({seconds[method]:.2f} s for 1,000; SAEM {seconds['SAEM']:.2f}): "
            "the M-step, which is paid once however many draws it has, has a larger share there.",
            0.6 * m < ratios[method] < 1.4 * m,
        ))  # fmt: skip
        errors = [
            np.mean(column(records, "mse", method=method, sigma=s))
            / np.mean(column(records, "mse", method="SAEM", sigma=s))
            for s in published.SIGMAS
        ]
        levels = ", ".join(map(str, published.SIGMAS))
        claims.append(Claim(
            f"Its error is SAEM's times {', '.join(f'{e:.2f}' for e in errors)} at σ = {levels}.",
            bool(np.all(np.abs(np.log(errors)) < np.log(1.25))),
        ))  # fmt: skip
    return claims


def _picture(records: list[Any]) -> Picture:
    by_place = {(r["method"], r["sigma"]): np.array(r["A"]).T for r in records}
    cells = [
        [drawing.mosaic(by_place[method, sigma], 2, (SIDE, SIDE)) for sigma in published.SIGMAS]
        for method in METHODS
    ]
    figure = drawing.table_of_images(
        cells, list(METHODS), [f"σ = {sigma}" for sigma in published.SIGMAS], 1.5, 1.6
    )
    return Picture(
        "estimates",
        figure,
        "The two components by SAEM and MCEM from the same training set of 100 images; one colour scale.",
    )
