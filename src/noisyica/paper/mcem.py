"""MCEM against SAEM with the logistic prior: error and time (the paper's figure of the two)."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.paper import drawing, published, tasks
from noisyica.paper.common import (
    Claim,
    Entry,
    Options,
    Picture,
    Record,
    Result,
    column,
    computing_time,
    summary,
    where,
)
from noisyica.paper.images import SIDE, sample, truth
from noisyica.paper.measures import matched, mean_square_error
from noisyica.paper.timing import seconds_per_thousand

N, DRAWS = 100, (10, 30)
LARGE = (5000, 256, 20)
"""Rows, columns and components of data on which draws take most of the time."""
LARGE_NAME = "{:,} x {}, p = {}".format(*LARGE)
METHODS: dict[str, dict[str, Any]] = {
    "SAEM": {"algorithm": "saem"},
    **{f"MCEM, {m} draws": {"algorithm": "mcem", "n_draws": m} for m in DRAWS},
}
ERROR, TIME = "Mean square error of A", "Time (median)"


def estimate(method: str, sigma: float, seed: int, max_iter: int) -> dict[str, Any]:
    """Fit one training set, and return the error, the seconds per 1,000 iterations, and A."""
    options = {"prior": "log", "mixing_prior": None, "random_state": seed, **METHODS[method]}
    seconds, ica = seconds_per_thousand(sample(N, sigma, seed), 2, max_iter, **options)
    return {
        "mse": mean_square_error(ica.mixing_, truth()),
        "seconds": seconds,
        "A": matched(ica.mixing_, truth()),
    }


def on_many_rows(method: str, seed: int, max_iter: int) -> dict[str, Any]:
    """Return the seconds per 1,000 iterations on data on which draws take most of the time."""
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


def run(options: Options) -> Result:
    """Run the experiment: all methods at all noise levels, and their times on many rows."""
    seeds, max_iter = options.seeds(2, 20), options.choose(500, 1000)
    cases = [
        {"method": method, "sigma": sigma, "seed": seed, "max_iter": max_iter}
        for method in METHODS
        for sigma in published.SIGMAS
        for seed in seeds
    ]
    records = tasks.run(options, "mcem", estimate, cases, timed=True)
    cases = [{"method": method, "seed": options.seed, "max_iter": 22} for method in METHODS]
    large = tasks.run(options, "mcem", on_many_rows, cases, timed=True)
    seconds = {
        method: float(np.median(column(records, "seconds", method=method))) for method in METHODS
    }
    ratios = {record["method"]: record["seconds"] / large[0]["seconds"] for record in large}
    return Result(
        "MCEM against SAEM",
        "MCEM draws the hidden variables m times in each iteration, SAEM once. The paper compares "
        "them with the logistic prior on the synthetic images, with 10 and 30 draws, and finds "
        "similar errors and a time that is about m times as long. (Its table is part of a picture, "
        "so that its errors and times are not among our numbers.)",
        f"The synthetic images of the first experiment, {N} in a training set, simulated anew for "
        "each repeat.",
        {
            "repeats": len(seeds),
            "iterations": max_iter,
            "fit": "maximum likelihood (mixing_prior=None)",
        },
        _errors(records) + _times(seconds, ratios),
        _claims(records, seconds, ratios),
        [_picture(where(records, seed=seeds[0]))],
        seconds=computing_time(records, large),
    )


def _errors(records: list[dict[str, Any]]) -> list[Entry]:
    """Return the table of errors."""
    return [
        Entry(
            ERROR,
            method,
            f"σ = {sigma}",
            *summary(column(records, "mse", method=method, sigma=sigma)),
        )
        for method in METHODS
        for sigma in published.SIGMAS
    ]


def _times(seconds: dict[str, float], ratios: dict[str, float]) -> list[Entry]:
    """Return the table of times; the paper's ratio to SAEM is the number of draws."""
    entries = []
    for method, options in METHODS.items():
        ratio, draws = seconds[method] / seconds["SAEM"], options.get("n_draws", np.nan)
        entries += [
            Entry(TIME, method, "seconds for 1,000 iterations", seconds[method]),
            Entry(TIME, method, "times SAEM's", ratio, np.nan, draws),
        ]
    for method, ratio in ratios.items():
        draws = METHODS[method].get("n_draws", np.nan)
        entries.append(Entry(TIME, method, f"times SAEM's, {LARGE_NAME}", ratio, np.nan, draws))
    return entries


def _claims(
    records: list[dict[str, Any]], seconds: dict[str, float], ratios: dict[str, float]
) -> list[Claim]:
    claims = []
    for m in DRAWS:
        method = f"MCEM, {m} draws"
        ratio = seconds[method] / seconds["SAEM"]
        text = (
            f"An iteration of MCEM with {m} draws takes {ratios[method]:.1f} times as long as one "
            f"of SAEM on {LARGE_NAME}, where draws take most of the time. On the synthetic images "
            f"it takes {ratio:.1f} times as long ({seconds[method]:.2f} s for 1,000 iterations; "
            f"SAEM {seconds['SAEM']:.2f}): there the M-step, which is paid once however many draws "
            "there are, has a larger share."
        )
        claims.append(Claim(text, 0.6 * m < ratios[method] < 1.4 * m))
        errors = [
            np.mean(column(records, "mse", method=method, sigma=sigma))
            / np.mean(column(records, "mse", method="SAEM", sigma=sigma))
            for sigma in published.SIGMAS
        ]
        times = ", ".join(f"{error:.2f}" for error in errors)
        levels = ", ".join(map(str, published.SIGMAS))
        text = f"Its error is that of SAEM times {times} at σ = {levels}."
        claims.append(Claim(text, bool(np.all(np.abs(np.log(errors)) < np.log(1.25)))))
    return claims


def _picture(records: list[Record]) -> Picture:
    by_place = {(r["method"], r["sigma"]): np.array(r["A"]).T for r in records}
    cells = [
        [drawing.mosaic(by_place[method, sigma], 2, (SIDE, SIDE)) for sigma in published.SIGMAS]
        for method in METHODS
    ]
    heads = [f"σ = {sigma}" for sigma in published.SIGMAS]
    return Picture(
        "estimates",
        drawing.table_of_images(cells, list(METHODS), heads, 1.5, 1.6),
        "The two components learnt by SAEM and MCEM from the same training set of 100 images, all "
        "on one colour scale.",
    )
