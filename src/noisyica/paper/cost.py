"""The time that an iteration takes, and the number of iterations that are needed (Table 3).

The library's speed is also compared with that of the paper's algorithm in plain NumPy
(:mod:`noisyica.paper.transcription`).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica import NoisyICA, priors
from noisyica.paper import drawing, inputs, published, tasks
from noisyica.paper.common import (
    Claim,
    Entry,
    Options,
    Picture,
    Result,
    column,
    computing_time,
    summary,
)
from noisyica.paper.images import sample, truth
from noisyica.paper.measures import mean_square_error
from noisyica.paper.timing import seconds_per_thousand
from noisyica.paper.transcription import PRIORS, saem
from noisyica.rows import starts

N = 100
METHODS: dict[str, dict[str, Any]] = {
    "FAM-EM/Log": {"prior": "log", "algorithm": "fam-em"},
    "MCEM/Log": {"prior": "log", "algorithm": "mcem", "n_draws": 10},
    "SAEM/Log": {"prior": "log"},
    "EM/IFA": {"prior": "ifa", "algorithm": "em"},
    "SAEM/IFA": {"prior": "ifa"},
    "SAEM/BG": {"prior": "bg"},
}
WANTED = {"images": 4, "digits": 25}
"""How many times faster than the transcription the library is meant to be."""
DIGITS_ITERATIONS = 300

TIME = "Time for 1,000 iterations, in seconds (Table 3)"
STEPS = "Iterations to convergence (Table 3)"
RACE = "Beside a plain NumPy transcription, seconds for 1,000 iterations"
ERROR = "Mean square error of A, 100 images, beside the transcription's"


class Measured(NamedTuple):
    """The time that the library or the transcription takes, and what it learns."""

    seconds: float  # for 1,000 iterations
    A: np.ndarray
    noise_variance: float


def iteration_time(method: str, seed: int) -> dict[str, Any]:
    """Return the seconds for 1,000 iterations."""
    options = {"mixing_prior": None, "random_state": seed, **METHODS[method]}
    return {"seconds": seconds_per_thousand(sample(N, 0.5, seed), 2, 1000, **options)[0]}


def convergence(method: str, sigma: float, seed: int, max_iter: int) -> dict[str, Any]:
    """Return the paper's convergence time t_conv from a random start."""
    options = {"mixing_prior": None, "init": "random", "burn_in": 100 / max_iter, **METHODS[method]}
    options |= {"max_iter": max_iter, "tol": 0, "n_init": 1, "noise": "isotropic", "verbose": False}
    ica = NoisyICA(2, random_state=seed, **options)
    return {"iterations": ica.fit(sample(N, sigma, seed)).convergence_time_}


def on_images(prior: str, sigma: float, seed: int, max_iter: int) -> dict[str, Any]:
    """Compare the library with the transcription on the synthetic images."""
    X = sample(N, sigma, seed)
    ours, theirs = _race(X, 2, prior, "fastica", max_iter, max_iter, seed)
    return {
        "ours": ours.seconds,
        "theirs": theirs.seconds,
        "our_mse": mean_square_error(ours.A, truth()),
        "their_mse": mean_square_error(theirs.A, truth()),
    }


def usps_sized(path: str | Path | None) -> inputs.Images:
    """Return the USPS digits, or simulated numbers in an array of the same shape.

    The time of an iteration does not depend on the numbers.
    """
    digits = inputs.digits(path)
    if digits.real:
        return digits
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(7291, 20)) @ rng.normal(size=(20, 256)) + rng.normal(size=(7291, 256))
    return digits._replace(
        X=X / X.std(), description="7,291 x 256 simulated numbers, a stand-in for USPS."
    )


def on_digits(
    prior: str, seed: int, max_iter: int, their_iter: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """Compare the library with the transcription on the digits, with 20 components."""
    X = usps_sized(data).X
    ours, theirs = _race(X, 20, prior, "pca", max_iter, their_iter, seed)
    return {
        "ours": ours.seconds,
        "theirs": theirs.seconds,
        "our_noise": ours.noise_variance,
        "their_noise": theirs.noise_variance,
    }


def _race(
    X: np.ndarray, p: int, prior: str, start: str, our_iter: int, their_iter: int, seed: int
) -> tuple[Measured, Measured]:
    """Run the library and the transcription from the same start."""
    rng = np.random.RandomState(seed)
    A, _ = starts.start(X - X.mean(0), p, priors.get(prior).for_components(p), start, rng)
    seconds, ica = seconds_per_thousand(
        X, p, our_iter, prior=prior, mixing_prior=None, init=A, random_state=seed
    )
    ours = Measured(seconds, ica.mixing_, float(ica.noise_variance_))
    begun = time.perf_counter()
    A, noise_variance = saem(X, A, prior, their_iter, seed)
    seconds = 1000 * (time.perf_counter() - begun) / their_iter
    return ours, Measured(seconds, A, noise_variance)


class Records(NamedTuple):
    """The records of the four parts of the experiment."""

    times: list[dict[str, Any]]
    on_images: list[dict[str, Any]]
    on_digits: list[dict[str, Any]]
    convergence: list[dict[str, Any]]


def _records(options: Options, seeds: list[int], digits: dict[str, Any], t_max: int) -> Records:
    """Run all cases. Times are measured one after the other in this process."""
    max_iter = options.choose(300, 1000)
    times = [{"method": method, "seed": seed} for method in METHODS for seed in seeds]
    on_images_cases = [
        {"prior": prior, "sigma": sigma, "seed": seed, "max_iter": max_iter}
        for prior in PRIORS
        for sigma in published.SIGMAS
        for seed in seeds[:5]
    ]
    on_digits_cases = [{"prior": prior, **digits} for prior in ("log", "bg")]
    convergence_cases = [
        {"method": method, "sigma": sigma, "seed": seed, "max_iter": t_max}
        for method in METHODS
        for sigma in published.SIGMAS
        for seed in seeds
    ]
    return Records(
        tasks.run(options, "cost", iteration_time, times, timed=True),
        tasks.run(options, "cost", on_images, on_images_cases, timed=True),
        tasks.run(options, "cost", on_digits, on_digits_cases, timed=True),
        tasks.run(options, "cost", convergence, convergence_cases),
    )


def run(options: Options) -> Result:
    """Run the experiment: times, the races against the transcription, and convergence."""
    seeds = options.seeds(2, 10)
    t_max, their_iter = options.choose(1000, 5000), options.choose(5, 30)
    digits = usps_sized(options.data)
    on_data = {
        "seed": options.seed,
        "max_iter": DIGITS_ITERATIONS,
        "their_iter": their_iter,
        **inputs.case(options.data, digits),
    }
    records = _records(options, seeds, on_data, t_max)
    shape = " x ".join(f"{k:,}" for k in digits.X.shape)
    entries = _table3(records) + _race_times(records, shape) + _race_errors(records)
    return Result(
        "What it costs",
        "The paper's Table 3: the seconds for 1,000 iterations of six algorithms on the synthetic "
        "images, and the iterations to convergence by its t_conv, the first iteration after which "
        "A stays within a thousandth of its first distance from where it ends. Then the library's "
        "SAEM beside a plain NumPy transcription of the paper's sampler (Metropolis steps with "
        "proposals from the prior, in a loop over components, vectorised over rows), from the same "
        "starts, on this machine.",
        f"Synthetic images, {N} in a training set, with σ = 0.5 for the times (the paper does not "
        f"say which σ it has); digits: {digits.description}",
        {
            "repeats": len(seeds),
            "iterations to convergence": f"of {t_max:,}, from random starts, "
            "the first 100 with step 1",
            "iterations of the transcription on digits": their_iter,
            "fit": "maximum likelihood (mixing_prior=None); MCEM with 10 draws",
            "times": "without compiling (2 to 5 s, once for each shape and prior) and the start",
        },
        entries,
        _claims(entries) + (_noise_claims(records) if their_iter >= 100 else []),
        [_picture(entries)],
        [
            "The paper does not say where its algorithms start. t_conv is relative to the start: "
            "from FastICA, the library's default, A begins so near to where it ends that a "
            "thousandth of the distance is less than the last steps of a stochastic algorithm."
        ],
        "Each cell has our mean, plus or minus its standard error over the repeats, or, for times, "
        "our median.",
        computing_time(*records),
    )


def _table3(records: Records) -> list[Entry]:
    """Return the numbers of the paper's Table 3."""
    entries = []
    for method in METHODS:
        seconds = float(np.median(column(records.times, "seconds", method=method)))
        entries.append(Entry(TIME, method, "seconds", seconds, np.nan, published.SECONDS[method]))
    for method in METHODS:
        for sigma, theirs in zip(published.SIGMAS, published.CONVERGENCE[method], strict=True):
            iterations = column(records.convergence, "iterations", method=method, sigma=sigma)
            entries.append(Entry(STEPS, method, f"σ = {sigma}", *summary(iterations), theirs))
    return entries


def _race_times(records: Records, shape: str) -> list[Entry]:
    """Return the times of the library and of the transcription, and their ratio."""
    entries = []
    for place, group in (
        (f"{N} x 256, p = 2", records.on_images),
        (f"{shape}, p = 20", records.on_digits),
    ):
        for prior in dict.fromkeys(record["prior"] for record in group):
            ours, theirs = (
                float(np.median(column(group, who, prior=prior))) for who in ("ours", "theirs")
            )
            row = f"{prior}, {place}"
            entries += [
                Entry(RACE, row, "noisyica", ours),
                Entry(RACE, row, "transcription", theirs),
                Entry(RACE, row, "transcription / noisyica", theirs / ours),
            ]
    return entries


def _race_errors(records: Records) -> list[Entry]:
    """Return the errors of the library and of the transcription."""
    entries = []
    for prior in PRIORS:
        for who, measure in (("noisyica", "our_mse"), ("transcription", "their_mse")):
            for sigma in published.SIGMAS:
                errors = column(records.on_images, measure, prior=prior, sigma=sigma)
                entries.append(Entry(ERROR, f"{prior}, {who}", f"σ = {sigma}", *summary(errors)))
    return entries


def _claims(entries: list[Entry]) -> list[Claim]:
    claims = []
    for e in entries:
        if e.table == TIME and "SAEM" in e.row:
            text = (
                f"{e.row}: {e.ours:.2f} s for 1,000 iterations, where the paper has "
                f"{e.paper:.0f} s on a machine of about 2010: {1 / e.ratio:.0f} times as fast."
            )
            claims.append(Claim(text))
        if e.table == RACE and e.column == "transcription / noisyica":
            wanted = WANTED["digits" if e.row.endswith("p = 20") else "images"]
            text = f"{e.row}: {e.ours:.1f} times as fast as the transcription (wanted: {wanted})."
            claims.append(Claim(text, e.ours >= wanted))
    ours, theirs = (
        np.mean([e.ours for e in entries if e.table == ERROR and e.row.endswith(who)])
        for who in ("noisyica", "transcription")
    )
    text = (
        f"The mean error over priors and noise levels is {ours:.3f}, that of the transcription "
        f"{theirs:.3f}."
    )
    return [*claims, Claim(text, bool(ours <= 1.05 * theirs))]


def _noise_claims(records: Records) -> list[Claim]:
    """Compare the noise variances on the digits, where the transcription has run long enough."""
    return [
        Claim(
            f"{record['prior']} on the digits: the noise variance is {record['our_noise']:.4g} "
            f"after {record['max_iter']} iterations, that of the transcription "
            f"{record['their_noise']:.4g} after {record['their_iter']}.",
            record["our_noise"] <= 1.02 * record["their_noise"],
        )
        for record in records.on_digits
    ]


def _picture(entries: list[Entry]) -> Picture:
    figure = drawing.canvas(10, 3.6)
    left, right = figure.subplots(1, 2)
    times = [e for e in entries if e.table == TIME]
    at = np.arange(len(times))
    left.barh(at - 0.2, [e.ours for e in times], 0.4, label="noisyica")
    left.barh(at + 0.2, [e.paper for e in times], 0.4, label="paper")
    left.set_yticks(at, [e.row for e in times])
    left.invert_yaxis()
    left.set_xscale("log")
    left.set_xlabel("seconds for 1,000 iterations")
    left.legend(fontsize=8)
    for i, method in enumerate(METHODS):
        row = [e for e in entries if e.table == STEPS and e.row == method]
        ours, theirs = [e.ours for e in row], [e.paper for e in row]
        right.plot(published.SIGMAS, ours, color=f"C{i}", marker="o", markersize=4, label=method)
        right.plot(published.SIGMAS, theirs, color=f"C{i}", linestyle=":")
    right.set_yscale("log")
    right.set_xlabel("σ (dotted: paper)")
    right.set_ylabel("iterations to convergence")
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return Picture(
        "times",
        figure,
        "Left: the time for 1,000 iterations. Right: iterations to convergence, ours (lines) and "
        "the paper's (dotted).",
    )
