"""What an iteration costs, and how many are needed (Table 3); and the library's speed beside the paper's sampler in plain NumPy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from noisyica import NoisyICA, priors
from noisyica.paper import drawing, inputs, published, tasks
from noisyica.paper.common import Claim, Entry, Picture, Result, Settings, column, summary
from noisyica.paper.images import sample, truth
from noisyica.paper.measures import mean_square_error
from noisyica.paper.timing import seconds_per_thousand
from noisyica.paper.transcription import SAMPLERS, saem
from noisyica.rows import starts as initialise

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
"""How many times faster than the transcription we mean to be."""


def iteration_time(method: str, seed: int) -> dict[str, Any]:
    """Seconds for 1,000 iterations."""
    options = {"mixing_prior": None, "random_state": seed, **METHODS[method]}
    return {"seconds": seconds_per_thousand(sample(N, 0.5, seed), 2, 1000, **options)[0]}


def convergence(method: str, sigma: float, seed: int, max_iter: int) -> dict[str, Any]:
    """The paper's t_conv from a random start."""
    options = {"mixing_prior": None, "init": "random", "burn_in": 100 / max_iter, **METHODS[method]}
    ica = NoisyICA(2, max_iter=max_iter, tol=0, random_state=seed, verbose=False, **options).fit(
        sample(N, sigma, seed)
    )
    return {"iterations": ica.convergence_time_}


def on_images(prior: str, sigma: float, seed: int, max_iter: int) -> dict[str, Any]:
    """Us and the transcription on the synthetic images."""
    X = sample(N, sigma, seed)
    ours, theirs = _race(X, 2, prior, "fastica", max_iter, max_iter, seed)
    errors = {
        f"{who}_mse": mean_square_error(found.pop("A"), truth())
        for who, found in (("our", ours), ("their", theirs))
    }
    return {"ours": ours["seconds"], "theirs": theirs["seconds"], **errors}


def usps_sized(path: str | Path | None) -> inputs.Images:
    """USPS, or numbers drawn in the same shape: what an iteration takes does not depend on the numbers."""
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
    """Us and the transcription on the digits, with 20 components."""
    X = usps_sized(data).X
    ours, theirs = _race(X, 20, prior, "pca", max_iter, their_iter, seed)
    return {
        "ours": ours["seconds"],
        "theirs": theirs["seconds"],
        "our_noise": ours["noise"],
        "their_noise": theirs["noise"],
    }


def _race(
    X: np.ndarray, p: int, prior: str, start: str, our_iter: int, their_iter: int, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Seconds for 1,000 iterations, A and noise of both, from the same start."""
    A, _ = initialise.start(
        X - X.mean(0), p, priors.get(prior).for_components(p), start, np.random.RandomState(seed)
    )
    seconds, ica = seconds_per_thousand(
        X, p, our_iter, prior=prior, mixing_prior=None, init=A, random_state=seed
    )
    ours = {"seconds": seconds, "A": ica.mixing_, "noise": float(ica.noise_variance_)}
    begun = time.perf_counter()
    A, noise = saem(X, A, prior, their_iter, seed)
    return ours, {
        "seconds": 1000 * (time.perf_counter() - begun) / their_iter,
        "A": A,
        "noise": noise,
    }


def run(settings: Settings) -> Result:
    """Times one after the other in this process; then iterations to convergence."""
    seeds = settings.seeds(2, 10)
    t_max, max_iter, their_iter = (
        settings.choose(1000, 5000),
        settings.choose(300, 1000),
        settings.choose(5, 30),
    )
    digits = usps_sized(settings.data)
    on_data = {
        "seed": settings.seed,
        "max_iter": 300,
        "their_iter": their_iter,
        **inputs.case(settings.data, digits),
    }

    def timed(function: Any, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return tasks.run(settings, "cost", function, cases, timed=True)

    times = timed(
        iteration_time, [{"method": method, "seed": seed} for method in METHODS for seed in seeds]
    )
    small = timed(
        on_images,
        [
            {"prior": q, "sigma": s, "seed": seed, "max_iter": max_iter}
            for q in SAMPLERS
            for s in published.SIGMAS
            for seed in seeds[:5]
        ],
    )
    large = timed(on_digits, [{"prior": prior, **on_data} for prior in ("log", "bg")])
    cases = [
        {"method": method, "sigma": sigma, "seed": seed, "max_iter": t_max}
        for method in METHODS
        for sigma in published.SIGMAS
        for seed in seeds
    ]
    steps = tasks.run(settings, "cost", convergence, cases)
    shape = " x ".join(f"{k:,}" for k in digits.X.shape)
    entries = _table3(times, steps) + _races(small, large, shape)
    return Result(
        "What it costs",
        "The paper's Table 3: seconds for 1,000 iterations of six algorithms on the synthetic images, and iterations to convergence by its "
        "t_conv, the first after which A stays within a thousandth of its first distance from where it ends. And the same SAEM beside a "
        "plain NumPy transcription of the paper's sampler (Metropolis steps with proposals from the prior, looping over components, "
        "vectorised over rows), from the same starts, on this machine.",
        f"Synthetic images, {N} in a training set, σ = 0.5 for the times (the paper does not say which); digits: {digits.description}",
        {
            "repeats": len(seeds),
            "iterations to convergence": f"of {t_max:,}, from random starts, the first 100 with step 1",
            "iterations of the transcription on digits": their_iter,
            "fit": "maximum likelihood (mixing_prior=None); MCEM with 10 draws",
            "times": "compiling (2 to 5 s, once for each shape and prior) and the start left out",
        },
        entries,
        _claims(entries, large, their_iter),
        [_picture(entries)],
        [
            "The paper does not say where its algorithms start. t_conv is relative to the start: from FastICA, the library's default, A "
            "begins so near to where it ends that a thousandth of the distance is less than the last steps of a stochastic algorithm."
        ],
        "Cells: ours (mean, plus or minus a standard error over the repeats; times are medians).",
        sum(record["spent"] for record in (*times, *small, *large, *steps)),
    )


TIME, STEPS = (
    "Time for 1,000 iterations, in seconds (Table 3)",
    "Iterations to convergence (Table 3)",
)
RACE, ERROR = (
    "Beside a plain NumPy transcription, seconds for 1,000 iterations",
    "Mean square error of A, 100 images, beside the transcription's",
)


def _table3(times: list[dict[str, Any]], steps: list[dict[str, Any]]) -> list[Entry]:
    entries = []
    for method in METHODS:
        seconds = float(np.median(column(times, "seconds", method=method)))
        entries.append(Entry(TIME, method, "seconds", seconds, np.nan, published.SECONDS[method]))
    for method in METHODS:
        for sigma, theirs in zip(published.SIGMAS, published.CONVERGENCE[method], strict=True):
            entries.append(
                Entry(
                    STEPS,
                    method,
                    f"σ = {sigma}",
                    *summary(column(steps, "iterations", method=method, sigma=sigma)),
                    theirs,
                )
            )
    return entries


def _races(small: list[dict[str, Any]], large: list[dict[str, Any]], shape: str) -> list[Entry]:
    entries = []
    for place, records in ((f"{N} x 256, p = 2", small), (f"{shape}, p = 20", large)):
        for prior in dict.fromkeys(record["prior"] for record in records):
            ours, theirs = (
                float(np.median(column(records, who, prior=prior))) for who in ("ours", "theirs")
            )
            for head, value in (
                ("noisyica", ours),
                ("transcription", theirs),
                ("transcription / noisyica", theirs / ours),
            ):
                entries.append(Entry(RACE, f"{prior}, {place}", head, value))
    for prior in SAMPLERS:
        for who in ("our", "their"):
            name = f"{prior}, {'noisyica' if who == 'our' else 'transcription'}"
            for sigma in published.SIGMAS:
                entries.append(
                    Entry(
                        ERROR,
                        name,
                        f"σ = {sigma}",
                        *summary(column(small, f"{who}_mse", prior=prior, sigma=sigma)),
                    )
                )
    return entries


def _claims(entries: list[Entry], large: list[dict[str, Any]], their_iter: int) -> list[Claim]:
    claims = []
    for e in entries:
        if e.table == TIME and "SAEM" in e.row:
            text = (
                f"{e.row}: {e.ours:.2f} s for 1,000 iterations, where the paper has {e.paper:.0f} s"
            )
            claims.append(
                Claim(f"{text} on a machine of about 2010: {1 / e.ratio:.0f} times as fast.")
            )
        if e.table == RACE and e.column == "transcription / noisyica":
            wanted = WANTED["images" if "p = 2" in e.row and "p = 20" not in e.row else "digits"]
            claims.append(
                Claim(
                    f"{e.row}: {e.ours:.1f} times as fast as the transcription (wanted: {wanted}).",
                    e.ours >= wanted,
                )
            )
    errors = {
        who: np.mean([e.ours for e in entries if e.table == ERROR and e.row.endswith(who)])
        for who in ("noisyica", "transcription")
    }
    claims.append(
        Claim(
            f"The mean error over priors and noise levels is {errors['noisyica']:.3f}, the transcription's {errors['transcription']:.3f}.",
            bool(errors["noisyica"] <= 1.05 * errors["transcription"]),
        )
    )
    for record in large if their_iter >= 100 else []:
        text = f"{record['prior']} on the digits: noise variance {record['our_noise']:.4g} after 300 iterations, the transcription's "
        claims.append(
            Claim(
                f"{text}{record['their_noise']:.4g} after {their_iter}.",
                record["our_noise"] <= 1.02 * record["their_noise"],
            )
        )
    return claims


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
        right.plot(
            published.SIGMAS,
            [e.ours for e in row],
            color=f"C{i}",
            marker="o",
            markersize=4,
            label=method,
        )
        right.plot(published.SIGMAS, [e.paper for e in row], color=f"C{i}", linestyle=":")
    right.set_yscale("log")
    right.set_xlabel("σ (dotted: paper)")
    right.set_ylabel("iterations to convergence")
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return Picture(
        "times",
        figure,
        "Left: time for 1,000 iterations. Right: iterations to convergence, ours (lines) and the paper's (dotted).",
    )
