"""MCEM against SAEM with the logistic prior: error and time (the paper's figure of the two)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisyica.paper import drawing, published, tasks
from noisyica.paper.common import (
    Claim,
    Entry,
    Options,
    Picture,
    Reading,
    Record,
    Result,
    column,
    computing_time,
    listed,
    numbers,
    rows,
    summary,
    where,
)
from noisyica.paper.images import SIDE, sample, truth
from noisyica.paper.images_claims import LEVELS
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
SECONDS, RATIO = "seconds for 1,000 iterations", "times SAEM's"
LARGE_RATIO = f"times SAEM's, {LARGE_NAME}"


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
    entries = _errors(records) + _times(seconds, ratios)
    reading = read(entries)
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
        entries,
        reading.claims,
        [_picture(where(records, seed=seeds[0]))],
        reading.notes,
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
            Entry(TIME, method, SECONDS, seconds[method]),
            Entry(TIME, method, RATIO, ratio, np.nan, draws),
        ]
    for method, ratio in ratios.items():
        draws = METHODS[method].get("n_draws", np.nan)
        entries.append(Entry(TIME, method, LARGE_RATIO, ratio, np.nan, draws))
    return entries


def read(entries: Sequence[Entry], real: bool = False) -> Reading:
    """Return what the page says of the numbers."""
    errors, times = rows(entries, ERROR), rows(entries, TIME)
    claims = []
    for m in DRAWS:
        method = f"MCEM, {m} draws"
        claims += _time_claims(m, times[method], times["SAEM"])
        ratios = numbers(errors[method]) / numbers(errors["SAEM"])
        text = (
            f"The error of MCEM with {m} draws is {listed(ratios, '.2f')} times that of SAEM at "
            f"σ = {LEVELS}."
        )
        claims.append(Claim(text, bool((np.abs(np.log(ratios)) < np.log(1.25)).all())))
    rule = (
        "The paper says that MCEM with m draws takes about m times as long as SAEM, on its own "
        "synthetic images. Both ratios of times are judged by the same rule: they agree with the "
        "paper if they are between 0.6 m and 1.4 m. On the images the M-step, which is paid once "
        f"however many draws there are, has a larger share of the time than on {LARGE_NAME}, where "
        "draws take most of it. Errors agree if they differ by less than a quarter."
    )
    return Reading(claims, [rule])


def _time_claims(m: int, of_mcem: dict[str, Entry], of_saem: dict[str, Entry]) -> list[Claim]:
    """Say how many times as long as an iteration of SAEM one of MCEM with m draws takes."""
    small, large = of_mcem[RATIO].ours, of_mcem[LARGE_RATIO].ours
    images = (
        f"On the paper's synthetic images an iteration of MCEM with {m} draws takes {small:.1f} "
        f"times as long as one of SAEM ({of_mcem[SECONDS].ours:.2f} s for 1,000 iterations; SAEM "
        f"{of_saem[SECONDS].ours:.2f} s)."
    )
    many_rows = (
        f"On {LARGE_NAME}, which is no data set of the paper, an iteration of MCEM with {m} draws "
        f"takes {large:.1f} times as long as one of SAEM."
    )
    return [
        Claim(text, bool(0.6 * m < ratio < 1.4 * m))
        for text, ratio in ((images, small), (many_rows, large))
    ]


def _picture(records: list[Record]) -> Picture:
    by_place = {(r["method"], r["sigma"]): np.array(r["A"]).T for r in records}
    cells = [[drawing.mosaic(truth().T, 2, (SIDE, SIDE))] * len(published.SIGMAS)]
    cells += [
        [drawing.mosaic(by_place[method, sigma], 2, (SIDE, SIDE)) for sigma in published.SIGMAS]
        for method in METHODS
    ]
    heads = [f"σ = {sigma}" for sigma in published.SIGMAS]
    return Picture(
        "estimates",
        drawing.table_of_images(cells, ["truth", *METHODS], heads, 1.5, 1.6),
        "The true components, and those learnt by SAEM and MCEM from the same training set of 100 "
        "images, all on one colour scale.",
    )
