"""How many components? Eight intervals, and models with 2 to 50 components (the figures of 6, 8 and 15, and of alpha against p)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from noisyica import Model, NoisyICA, priors
from noisyica.paper import drawing, published, tasks
from noisyica.paper.common import Claim, Entry, Picture, Result, Settings, column, summary, where
from noisyica.paper.measures import cosines

ROWS, INTERVALS, WIDTH, ALPHA, SHIFT, SIGMA = 1000, 8, 12, 0.5, 2.0, 0.5
SHOWN = (6, 8, 15)
FITS: dict[str, str | None] = {"maximum likelihood": None, "A hidden": "normal"}
RECOVERED, DULL = 0.9, 0.1
"""A component is an interval's if their cosine is at least the one, and off if its norm is less than the other of the largest."""


def truth() -> np.ndarray:
    """The intervals' indicators, as columns."""
    return np.kron(np.eye(INTERVALS), np.ones((WIDTH, 1)))


def estimate(p: int, fit: str, seed: int, max_iter: int) -> dict[str, Any]:
    """One fit: alpha, what became of the intervals, and the components."""
    X, _ = Model(
        truth(), noise_variance=SIGMA**2, prior=priors.BernoulliGaussian(ALPHA, shift=SHIFT)
    ).sample(ROWS, random_state=seed)
    options: dict[str, Any] = {
        "mean": "shift",
        "mixing_prior": FITS[fit],
        "max_iter": max_iter,
        "tol": 0,
        "verbose": False,
    }
    ica = NoisyICA(p, prior="bg", random_state=seed, **options).fit(X)
    return {
        "alpha": float(ica.prior_.parameters["alpha"]),
        **fates(ica.mixing_),
        "components": ica.components_,
    }


def fates(A: np.ndarray) -> dict[str, int]:
    """How many intervals are recovered, and how many components are merged (of several intervals), repeated, noise, or off."""
    norms = np.linalg.norm(A, axis=0)
    off = norms < DULL * norms.max()
    own = cosines(A, truth())
    own[off] = 0
    loads = np.abs(truth().T @ A) / WIDTH
    inside = (
        np.square(loads).sum(0) * WIDTH / np.maximum(norms**2, 1e-300)
    )  # the share of a component that intervals explain
    second, first = np.sort(loads, axis=0)[-2:]
    merged = ~off & (inside > 0.5) & (second > 0.3 * first)
    recovered = own.max(0) >= RECOVERED
    return {
        "recovered": int(recovered.sum()),
        "merged": int(merged.sum()),
        "repeated": int((own >= RECOVERED).sum() - recovered.sum()),
        "noise": int((~off & (inside <= 0.5)).sum()),
        "off": int(off.sum()),
    }


def run(settings: Settings) -> Result:
    """All numbers of components, with A at its maximum of likelihood and hidden."""
    full = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50)
    sizes, max_iter = settings.choose((2, 4, 6, 8, 15, 30), full), settings.choose(200, 1000)
    seeds = settings.seeds(1, 5)
    cases = [
        {"p": p, "fit": fit, "seed": seed, "max_iter": max_iter}
        for fit in FITS
        for p in sizes
        for seed in seeds
    ]
    records = tasks.run(settings, "components", estimate, cases)
    return Result(
        "How many components?",
        f"{ROWS:,} signals are made of {INTERVALS} components, indicators of intervals that do not overlap, with shifted "
        f"Bernoulli-Gaussian coefficients (alpha = {ALPHA}, mu = {SHIFT:g}), and models with fewer, as many and more "
        "components are learnt. The paper shows those with 6, 8 and 15, and alpha against their number p.",
        f"Simulated: intervals of {WIDTH} samples, noise with σ = {SIGMA} (the paper gives neither), anew for each repeat.",
        {"repeats": len(seeds), "iterations": max_iter, "prior": "bg with mean='shift'"},
        _entries(records, sizes),
        _claims(records, sizes),
        [_components(where(records, seed=seeds[0])), _alpha(records, sizes)],
        [
            "With A hidden (the library's default) components that the data do not support are switched off: what remains is the number "
            "of components that there are, and only these count among those expected to be on."
        ],
        seconds=sum(record["spent"] for record in records),
    )


def _entries(records: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[Entry]:
    entries = []
    for fit in FITS:
        table = f"Models with p components, {fit}"
        for p in sizes:
            mine = where(records, p=p, fit=fit)
            entries.append(Entry(table, f"p = {p}", "alpha", *summary(column(mine, "alpha"))))
            known = published.EXPECTED_ON.get(p, np.nan) if FITS[fit] is None else np.nan
            entries.append(
                Entry(table, f"p = {p}", "expected on", *summary(_expected(mine, fit)), known)
            )
            for fate in ("recovered", "merged", "repeated", "noise", "off"):
                entries.append(Entry(table, f"p = {p}", fate, summary(column(mine, fate))[0]))
    return entries


def _expected(records: Sequence[Mapping[str, Any]], fit: str) -> list[float]:
    """alpha p, or, where superfluous components are switched off, alpha times those that are not."""
    return [
        record["alpha"] * (record["p"] - (record["off"] if FITS[fit] else 0)) for record in records
    ]


def _claims(records: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[Claim]:
    claims = []
    for fit in FITS:
        alphas = [float(np.mean(column(records, "alpha", p=p, fit=fit))) for p in sizes]
        rises = sum(b > a + 0.01 for a, b in pairwise(alphas))
        series = ", ".join(f"{a:.2f} (p = {p})" for p, a in zip(sizes, alphas, strict=True))
        falls = (
            "falls with p"
            if not rises
            else f"falls with p except for {rises} of {len(alphas) - 1} steps"
        )
        claims.append(
            Claim(
                f"{fit.capitalize()}: alpha {falls}: {series}.",
                rises == 0 if FITS[fit] is None else None,
            )
        )
        for p, wanted in ((6, "merged"), (8, "recovered"), (15, "repeated")):
            mean = {
                fate: np.mean(column(records, fate, p=p, fit=fit))
                for fate in ("recovered", "merged", "repeated", "noise", "off")
            }
            said = ", ".join(f"{value:.3g} {fate}" for fate, value in mean.items())
            holds = {
                "merged": mean["merged"] >= 1,
                "recovered": mean["recovered"] == 8,
                "repeated": mean["repeated"] + mean["noise"] >= 1,
            }
            paper_says = {
                "merged": "two intervals in one component",
                "recovered": "all eight",
                "repeated": "some repeated, some noise",
            }
            text = f"{fit.capitalize()}, p = {p} (the paper sees {paper_says[wanted]}): {said}."
            claims.append(Claim(text, bool(holds[wanted]) if FITS[fit] is None or p < 15 else None))
    return claims


def _components(records: list[Any]) -> Picture:
    figure = drawing.canvas(10, 6)
    grid = figure.subplots(len(FITS), len(SHOWN), squeeze=False)
    for i, fit in enumerate(FITS):
        for j, p in enumerate(SHOWN):
            components = np.array(where(records, p=p, fit=fit)[0]["components"])
            order = np.argsort(np.abs(components @ truth()).argmax(1), kind="stable")
            axes = grid[i, j]
            image = axes.imshow(
                components[order],
                cmap=drawing.SIGNED,
                vmin=-2,
                vmax=2,
                aspect="auto",
                interpolation="nearest",
            )
            axes.set_title(f"{fit}, p = {p}", fontsize=9)
            axes.set_xticks(np.arange(0, INTERVALS * WIDTH + 1, WIDTH), [])
            axes.set_yticks([])
            axes.set_ylabel("components", fontsize=8)
            axes.set_xlabel("samples (ticks: ends of the intervals)", fontsize=8)
    figure.colorbar(image, ax=grid, shrink=0.6)
    return Picture(
        "found",
        figure,
        "Components of models with 6, 8 and 15 (one a line, by the interval they have most of); one colour scale.",
    )


def _alpha(records: list[dict[str, Any]], sizes: tuple[int, ...]) -> Picture:
    figure = drawing.canvas(9, 3.5)
    left, right = figure.subplots(1, 2)
    lines = {
        fit: [float(np.mean(column(records, "alpha", p=p, fit=fit))) for p in sizes] for fit in FITS
    }
    drawing.curve(left, sizes, lines, "number of components p", "alpha")
    drawing.curve(
        right,
        sizes,
        {
            fit: [float(np.mean(_expected(where(records, p=p, fit=fit), fit))) for p in sizes]
            for fit in FITS
        },
        "number of components p",
        "expected number of components on",
    )
    for axes, value in ((left, ALPHA), (right, ALPHA * INTERVALS)):
        axes.plot(
            INTERVALS, value, "o", color="red", markersize=10, fillstyle="none", label="truth"
        )
        axes.legend(fontsize=8)
    return Picture(
        "alpha",
        figure,
        "Estimated alpha, and the number of components that are on, against the number of components; the truth in red.",
    )
