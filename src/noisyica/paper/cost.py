"""The time that an iteration takes, and the number of iterations that are needed (Table 3).

The library's speed is also compared with that of the paper's algorithm in plain NumPy
(:mod:`noisyica.paper.transcription`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import FastICA
from threadpoolctl import threadpool_limits

from noisyica import NoisyICA, priors
from noisyica.paper import drawing, inputs, published, tasks
from noisyica.paper.common import (
    Claim,
    Entry,
    Options,
    Picture,
    Reading,
    Result,
    column,
    computing_time,
    numbers,
    rows,
    summary,
)
from noisyica.paper.images import sample, truth
from noisyica.paper.images_claims import IFA_CLASSES
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
FASTICA = "FastICA, a whole fit"
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


def fastica_time(seed: int) -> dict[str, Any]:
    """Return the seconds that a whole fit by FastICA takes, with PCA and until it stops."""
    X = sample(N, 0.5, seed)
    with threadpool_limits(1):  # several threads of BLAS would only wait for each other
        begun = time.perf_counter()
        FastICA(2, whiten="unit-variance", random_state=seed, max_iter=1000).fit(X)
        return {"seconds": time.perf_counter() - begun}


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
    """The records of the parts of the experiment."""

    times: list[dict[str, Any]]
    fastica: list[dict[str, Any]]
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
        tasks.run(options, "cost", fastica_time, [{"seed": seed} for seed in seeds], timed=True),
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
    reading = read(entries)
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
            "times": "without compiling (2 to 5 s, once for each shape and prior) and the start; "
            "of FastICA, the whole fit, PCA included, with one BLAS thread",
        },
        entries,
        reading.claims + (_noise_claims(records) if their_iter >= 100 else []),
        reading.charts,
        reading.notes,
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
    fast = float(np.median(column(records.fastica, "seconds")))
    entries.append(Entry(TIME, FASTICA, "seconds", fast))
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
            mine, theirs = (
                float(np.median(column(group, who, prior=prior))) for who in ("ours", "theirs")
            )
            row = f"{prior}, {place}"
            entries += [
                Entry(RACE, row, "noisyica", mine),
                Entry(RACE, row, "transcription", theirs),
                Entry(RACE, row, "transcription / noisyica", theirs / mine),
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


def read(entries: Sequence[Entry], real: bool = False) -> Reading:
    """Return what the page says of the numbers."""
    claims = _time_claims(rows(entries, TIME)) + _convergence_claims(rows(entries, STEPS))
    for place, row in rows(entries, RACE).items():
        ratio = row["transcription / noisyica"].ours
        wanted = WANTED["digits" if place.endswith("p = 20") else "images"]
        text = (
            f"{place}: the library is {ratio:.1f} times as fast as the transcription. The target "
            f"is {wanted} times."
        )
        claims.append(Claim(text, ratio >= wanted, target=True))
    mine, theirs = (
        np.mean([e.ours for e in entries if e.table == ERROR and e.row.endswith(who)])
        for who in ("noisyica", "transcription")
    )
    text = (
        f"The mean error over priors and noise levels is {mine:.3f}, that of the transcription "
        f"{theirs:.3f}. The target is no more than 1.05 times the transcription's."
    )
    claims.append(Claim(text, bool(mine <= 1.05 * theirs), target=True))
    notes = [
        "The paper does not say where its algorithms start. t_conv is relative to the start: "
        "from FastICA, the library's default, A begins so near to where it ends that a "
        "thousandth of the distance is less than the last steps of a stochastic algorithm. "
        "Distances are not measured on A itself, but on the projections of its columns on four "
        "random directions, whose size estimates that of A's changes.",
        IFA_CLASSES,
    ]
    return Reading(claims, notes, [_picture(entries)])


def _time_claims(table: dict[str, dict[str, Entry]]) -> list[Claim]:
    """Compare the times of SAEM with the paper's, and that of FastICA with all of them."""
    seconds = {method: row["seconds"] for method, row in table.items()}
    claims = [
        Claim(
            f"{method} takes {entry.ours:.2f} s for 1,000 iterations. The paper has "
            f"{entry.paper:.0f} s, on a machine of about 2010, which is {1 / entry.ratio:,.0f} "
            "times as long."
        )
        for method, entry in seconds.items()
        if "SAEM" in method
    ]
    if FASTICA in seconds:
        fast = seconds.pop(FASTICA).ours
        least = min(seconds, key=lambda method: seconds[method].ours)
        text = (
            f"A whole fit by FastICA, after PCA, takes {fast:.2g} s, and 1,000 iterations of "
            f"{least} take {seconds[least].ours:.2g} s, {seconds[least].ours / fast:.2g} times as "
            "long. The paper says that FastICA is much faster than any of these methods, which we "
            "take for at least 5 times."
        )
        claims.append(Claim(text, seconds[least].ours >= 5 * fast))
    return claims


def _convergence_claims(table: dict[str, dict[str, Entry]]) -> list[Claim]:
    """Say whether iterations to convergence depend on the noise as in the paper."""
    claims = []
    for kind, methods, falls in (
        ("Deterministic algorithms", ("FAM-EM/Log", "EM/IFA"), True),
        ("SAEM", ("SAEM/Log", "SAEM/IFA", "SAEM/BG"), False),
    ):
        ends = {method: numbers(table[method])[[0, -1]] for method in methods}
        steps = "; ".join(
            f"{name} {low:,.0f} and {high:,.0f}" for name, (low, high) in ends.items()
        )
        text = (
            f"{kind}: the paper sees {'fewer' if falls else 'more'} iterations to convergence at "
            f"high noise than at low noise. Ours at σ = {published.SIGMAS[0]} and "
            f"{published.SIGMAS[-1]}: {steps}."
        )
        claims.append(Claim(text, all(bool((low > high) == falls) for low, high in ends.values())))
    return claims


def _noise_claims(records: Records) -> list[Claim]:
    """Compare the noise variances on the digits, where the transcription has run long enough."""
    return [
        Claim(
            f"{record['prior']} on the digits: the noise variance is {record['our_noise']:.4g} "
            f"after {record['max_iter']} iterations, that of the transcription "
            f"{record['their_noise']:.4g} after {record['their_iter']}.",
            record["our_noise"] <= 1.02 * record["their_noise"],
            target=True,
        )
        for record in records.on_digits
    ]


def _picture(entries: Sequence[Entry]) -> Picture:
    figure = drawing.canvas(10, 3.6)
    left, right = figure.subplots(1, 2)
    times = [e for e in entries if e.table == TIME]
    at, mine, theirs = np.arange(len(times)), [e.ours for e in times], [e.paper for e in times]
    left.hlines(at, mine, theirs, color="0.8", zorder=0)
    left.plot(mine, at, "o", label="noisyica")
    left.plot(theirs, at, "x", markersize=7, label="paper")
    left.set_yticks(at, [e.row for e in times])
    left.invert_yaxis()
    left.set_xscale("log")
    left.set_xlabel("seconds for 1,000 iterations")
    left.grid(axis="x", alpha=0.3)
    left.legend(fontsize=8)
    for i, method in enumerate(METHODS):
        row = [e for e in entries if e.table == STEPS and e.row == method]
        iterations, papers = [e.ours for e in row], [e.paper for e in row]
        right.plot(
            published.SIGMAS, iterations, color=f"C{i}", marker="o", markersize=4, label=method
        )
        right.plot(published.SIGMAS, papers, color=f"C{i}", linestyle=":", marker="x")
    right.set_yscale("log")
    right.set_xlabel("σ (crosses, dotted: paper)")
    right.set_ylabel("iterations to convergence")
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    of_fastica = " (of FastICA, for a whole fit)" if FASTICA in [e.row for e in times] else ""
    return Picture(
        "times",
        figure,
        f"Left: the time for 1,000 iterations{of_fastica}, ours (dots) and the "
        "paper's (crosses). Right: iterations to convergence, ours (lines) and the paper's "
        "(crosses, dotted). Both scales are logarithmic.",
    )
