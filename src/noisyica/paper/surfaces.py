"""Anatomical surfaces: 5 components of eight models, tests between groups, and gamma against p (Tables 4 and 5, and four figures)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from noisyica import NoisyICA, compare_groups
from noisyica.engine.convergence import similarity
from noisyica.paper import drawing, inputs, published, tasks
from noisyica.paper.common import Claim, Entry, Picture, Result, Settings, column, summary, where

EIGHT, P, DRAWS = ("log", "lap", "eg", "bg", "ebg", "et", "te", "teoff"), 5, 50
COMPARISONS = tuple(published.P_VALUES)


def estimate(
    prior: str, seed: int, max_iter: int, permutations: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """One fit to all rows, and the p-values of both comparisons."""
    surfaces = inputs.surfaces(data)
    ica = NoisyICA(P, prior=prior, max_iter=max_iter, tol=0, random_state=seed, verbose=False).fit(
        surfaces.X
    )
    found: dict[str, Any] = {"mean": ica.mean_, "components": ica.components_}
    for name, patients in surfaces.groups.items():
        rows = np.isin(surfaces.labels, ("control", *patients))
        groups = np.where(surfaces.labels[rows] == "control", "control", "patient")
        how: dict[str, Any] = {
            "n_draws": DRAWS,
            "n_permutations": permutations,
            "random_state": seed,
            "verbose": False,
        }
        test = compare_groups(surfaces.X[rows], groups, ica, **how)
        found |= {
            f"{name}: mean": test.p_value,
            f"{name}: sd": test.p_value_std,
            f"{name}: of mean": test.p_value_of_mean,
        }
    return found


def censoring(
    p: int, seed: int, max_iter: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """gamma of the ternary model with p components."""
    options: dict[str, Any] = {
        "prior": "et",
        "mixing_prior": None,
        "max_iter": max_iter,
        "tol": 0,
        "verbose": False,
    }
    return {
        "gamma": float(
            NoisyICA(p, random_state=seed, **options)
            .fit(inputs.surfaces(data).X)
            .prior_.parameters["gamma"]
        )
    }


def run(settings: Settings) -> Result:
    """Refits of eight models, then gamma against p."""
    surfaces = inputs.surfaces(settings.data)
    seeds, max_iter, permutations = (
        settings.seeds(2, 10),
        settings.choose(200, 1000),
        settings.choose(1000, 10_000),
    )
    sizes = settings.choose((2, 5, 10), (2, 3, 5, 8, 10, 15, 20, 30))
    here = inputs.case(settings.data, surfaces)
    cases = [
        {"prior": q, "seed": seed, "max_iter": max_iter, "permutations": permutations, **here}
        for q in EIGHT
        for seed in seeds
    ]
    records = tasks.run(settings, "surfaces", estimate, cases)
    gammas = tasks.run(
        settings,
        "surfaces",
        censoring,
        [{"p": p, "seed": settings.seed, "max_iter": max_iter, **here} for p in sizes],
    )
    entries = _entries(records, gammas)
    return Result(
        "Anatomical surfaces",
        f"{P} components of eight models of a scalar field on a surface, and a test between groups: Hotelling's T² of the coefficients, "
        f"with a p-value by {permutations:,} permutations, for each of {DRAWS} draws of their posterior. Models are learnt from all rows. "
        f"The paper's Tables 4 and 5 have mean and standard deviation over draws; it made 50 refits, of which there are {len(seeds)} here.",
        surfaces.description,
        {
            "refits": len(seeds),
            "iterations": max_iter,
            "permutations": permutations,
            "fit": "A hidden (the default); gamma against p: maximum likelihood",
        },
        entries,
        _claims(entries, gammas, surfaces.real),
        [_picture(where(records, seed=seeds[0]), surfaces), _gamma(gammas)],
        [
            "The ratios to the paper's p-values say little: these are other people, with another disease or none. What can be compared is "
            f"which models agree. No p-value can be less than 1/{permutations + 1:,}."
        ],
        "Cells: ours.",
        sum(record["spent"] for record in (*records, *gammas)),
    )  # fmt: skip


def _table(comparison: str) -> str:
    return f"p-values, controls against {comparison} (Table {4 + COMPARISONS.index(comparison)})"


def stability(records: Sequence[Mapping[str, Any]]) -> float:
    """Mean |cosine| of the components of the first fit with their matches in the others; NaN for one."""
    A = [np.array(record["components"]).T for record in records]
    return float(similarity(A[0], A[1:]).mean()) if len(A) > 1 else np.nan


def _entries(records: list[dict[str, Any]], gammas: list[dict[str, Any]]) -> list[Entry]:
    entries = []
    for name in COMPARISONS:
        for prior in EIGHT:
            mine = where(records, prior=prior)
            means = column(mine, f"{name}: mean")
            over_draws = float(np.sqrt(np.mean(np.square(column(mine, f"{name}: sd")))))
            known = published.P_VALUES[name][prior]
            entries += [
                Entry(_table(name), prior, "mean", float(np.mean(means)), np.nan, known[0]),
                Entry(_table(name), prior, "sd over draws", over_draws, np.nan, known[1]),
                Entry(
                    _table(name),
                    prior,
                    "sd over refits",
                    float(np.std(means, ddof=1)) if len(means) > 1 else np.nan,
                ),
                Entry(
                    _table(name),
                    prior,
                    "of the posterior means",
                    summary(column(mine, f"{name}: of mean"))[0],
                ),
            ]
    for prior in EIGHT:
        entries.append(
            Entry(
                "Agreement of refits",
                prior,
                "mean cosine of matched components",
                stability(where(records, prior=prior)),
            )
        )
    for record in gammas:
        entries.append(
            Entry("gamma against p (et)", f"p = {record['p']}", "gamma", record["gamma"])
        )
    return entries


def _claims(entries: list[Entry], gammas: list[dict[str, Any]], real: bool) -> list[Claim]:
    claims = []
    for name in COMPARISONS:
        mean = {e.row: e.ours for e in entries if e.table == _table(name) and e.column == "mean"}
        spread = {e.row: np.hypot(e.ours, f.ours) for e, f in _pairs(entries, name)}
        worst = max(spread, key=lambda prior: spread[prior])
        others = [spread[prior] for prior in EIGHT if prior != "teoff"]
        low = [prior for prior in EIGHT if mean[prior] < 0.05]
        claims.append(Claim(
            f"Controls against {name}: mean p-value {min(mean.values()):.2g} ({min(mean, key=lambda q: mean[q])}) to "
            f"{max(mean.values()):.2g} ({max(mean, key=lambda q: mean[q])}); below 0.05 for {len(low)} of {len(EIGHT)} models."
        ))  # fmt: skip
        claims.append(Claim(
            f"The spread of p-values over draws and refits is {spread['teoff']:.2g} for the offset model, {min(others):.2g} to "
            f"{max(others):.2g} for the others; largest for {worst}.",
            worst == "teoff" if real else None,
        ))  # fmt: skip
    agreement = {e.row: e.ours for e in entries if e.table == "Agreement of refits"}
    least = min(agreement, key=lambda q: agreement[q])
    listed = ", ".join(f"{q} {v:.3f}" for q, v in agreement.items())
    claims.append(
        Claim(
            f"Components of refits agree with a mean cosine of {listed}: least for {least}.",
            least == "teoff" if real else None,
        )
    )
    values = [record["gamma"] for record in gammas]
    series = ", ".join(f"{record['gamma']:.2f} (p = {record['p']})" for record in gammas)
    claims.append(
        Claim(
            f"gamma of the et model falls with p: {series}.",
            all(b <= a + 0.01 for a, b in pairwise(values)),
        )
    )
    return claims


def _pairs(entries: list[Entry], name: str) -> list[tuple[Entry, Entry]]:
    draws, refits = (
        [e for e in entries if e.table == _table(name) and e.column == f"sd over {what}"]
        for what in ("draws", "refits")
    )
    return list(zip(draws, refits, strict=True))


def _picture(records: list[Any], surfaces: inputs.Surfaces) -> Picture:
    figure = drawing.canvas(9.5, 1.2 * len(records) + 0.4)
    grid = figure.subplots(len(records), P + 1)
    for i, record in enumerate(records):
        for j, values in enumerate(np.vstack([record["mean"], record["components"]])):
            unit = max(float(np.quantile(np.abs(values), 0.99)), 1e-12)
            image = drawing.surface(
                grid[i, j], surfaces.vertices, surfaces.faces, values / unit, 1.0
            )
            grid[i, j].set_title(str(j), fontsize=8)
        grid[i, 0].set_title(f"{record['prior']}: mean", fontsize=9)
    figure.colorbar(image, ax=grid, shrink=0.4, fraction=0.02).set_label(
        "share of its 99 % quantile in size", fontsize=8
    )
    return Picture(
        "components",
        figure,
        "Mean and components on the mesh, seen along its thinnest axis; each in its own unit, as in the paper.",
    )


def _gamma(gammas: list[dict[str, Any]]) -> Picture:
    figure = drawing.canvas(5, 3.4)
    axes = figure.subplots()
    drawing.curve(
        axes,
        [r["p"] for r in gammas],
        {"et": [r["gamma"] for r in gammas]},
        "number of components p",
        "gamma = P(Y = 1) = P(Y = -1)",
    )
    axes.set_ylim(0, 0.52)
    return Picture(
        "gamma",
        figure,
        "Probability that a component is on with either sign in the et model, against the number of components.",
    )
