"""Anatomical surfaces: 5 components of eight models, tests between groups, and gamma against p.

The paper has Tables 4 and 5, and four figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from noisyica import NoisyICA, compare_groups
from noisyica.paper import drawing, inputs, published, tasks
from noisyica.paper.common import (
    Claim,
    Entry,
    Options,
    Picture,
    Record,
    Result,
    column,
    computing_time,
    papers_prior,
    summary,
    where,
)
from noisyica.paper.measures import matched_cosines

EIGHT, P, DRAWS = ("log", "lap", "eg", "bg", "ebg", "et", "te", "teoff"), 5, 50
COMPARISONS = tuple(published.P_VALUES)
AGREEMENT = "Agreement of refits"


def estimate(
    prior: str, seed: int, max_iter: int, permutations: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """Fit one model to all rows, and return it with the p-values of both comparisons."""
    surfaces = inputs.surfaces(data)
    ica = NoisyICA(
        P,
        prior=papers_prior(prior),
        noise="isotropic",
        max_iter=max_iter,
        tol=0,
        n_init=1,
        random_state=seed,
        verbose=False,
    )
    ica.fit(surfaces.X)
    outcome: dict[str, Any] = {"mean": ica.mean_, "components": ica.components_}
    for name, patients in surfaces.groups.items():
        rows = np.isin(surfaces.labels, ("control", *patients))
        groups = np.where(surfaces.labels[rows] == "control", "control", "patient")
        options: dict[str, Any] = {
            "n_draws": DRAWS,
            "n_permutations": permutations,
            "random_state": seed,
            "verbose": False,
        }
        test = compare_groups(surfaces.X[rows], groups, ica, **options)
        outcome |= {
            f"{name}: mean": test.p_value,
            f"{name}: sd": test.p_value_std,
            f"{name}: of mean": test.p_value_of_mean,
        }
    return outcome


def censoring(
    p: int, seed: int, max_iter: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """Return gamma of the ternary model with p components."""
    options: dict[str, Any] = {
        "prior": "et",
        "noise": "isotropic",
        "n_init": 1,
        "mixing_prior": None,
        "max_iter": max_iter,
        "tol": 0,
        "verbose": False,
    }
    ica = NoisyICA(p, random_state=seed, **options).fit(inputs.surfaces(data).X)
    return {"gamma": float(ica.prior_.parameters["gamma"])}


def run(options: Options) -> Result:
    """Run the experiment: refits of eight models, and gamma against p."""
    surfaces = inputs.surfaces(options.data)
    seeds, max_iter = options.seeds(2, 10), options.choose(200, 1000)
    permutations = options.choose(1000, 10_000)
    sizes = options.choose((2, 5, 10), (2, 3, 5, 8, 10, 15, 20, 30))
    same = {"max_iter": max_iter, **inputs.case(options.data, surfaces)}
    cases = [
        {"prior": prior, "seed": seed, "permutations": permutations, **same}
        for prior in EIGHT
        for seed in seeds
    ]
    records = tasks.run(options, "surfaces", estimate, cases)
    cases = [{"p": p, "seed": options.seed, **same} for p in sizes]
    gammas = tasks.run(options, "surfaces", censoring, cases)
    entries = _entries(records, gammas)
    return Result(
        "Anatomical surfaces",
        f"{P} components of eight models of a scalar field on a surface, and a test between "
        "groups: Hotelling's T² of the coefficients, with a p-value by "
        f"{permutations:,} permutations, for each of {DRAWS} draws of their posterior. Models are "
        "learnt from all rows. The paper's Tables 4 and 5 have the mean and the standard deviation "
        f"over draws; it made 50 refits, of which there are {len(seeds)} here.",
        surfaces.description,
        {
            "refits": len(seeds),
            "iterations": max_iter,
            "permutations": permutations,
            "fit": "A hidden (the default); gamma against p: maximum likelihood",
        },
        entries,
        _claims(entries, gammas, surfaces.real),
        [_components(where(records, seed=seeds[0]), surfaces), _gamma(gammas)],
        [
            "The ratios to the paper's p-values say little: these are other people, with another "
            "disease or none. What can be compared is which models agree. No p-value can be less "
            f"than 1/{permutations + 1:,}."
        ],
        "Each cell has our number.",
        computing_time(records, gammas),
    )


def _table(comparison: str) -> str:
    """Return the title of the table of a comparison."""
    return f"p-values, controls against {comparison} (Table {4 + COMPARISONS.index(comparison)})"


def stability(records: Sequence[Record]) -> float:
    """Return the mean absolute cosine of the first fit's components with their matches in others.

    It is NaN if there is only one fit.
    """
    first, *others = (np.array(record["components"]).T for record in records)
    if not others:
        return np.nan
    return float(np.mean([matched_cosines(first, other) for other in others]))


def _entries(records: list[dict[str, Any]], gammas: list[dict[str, Any]]) -> list[Entry]:
    entries = []
    for name in COMPARISONS:
        for prior in EIGHT:
            entries += _p_values(where(records, prior=prior), name, prior)
    for prior in EIGHT:
        agreement = stability(where(records, prior=prior))
        entries.append(Entry(AGREEMENT, prior, "mean cosine of matched components", agreement))
    for record in gammas:
        row = f"p = {record['p']}"
        entries.append(Entry("gamma against p (et)", row, "gamma", record["gamma"]))
    return entries


def _p_values(records: list[Record], name: str, prior: str) -> list[Entry]:
    """Return a row of the table of a comparison, from the refits of one model."""
    table = _table(name)
    means = column(records, f"{name}: mean")
    over_draws = float(np.sqrt(np.mean(np.square(column(records, f"{name}: sd")))))
    over_refits = float(np.std(means, ddof=1)) if len(means) > 1 else np.nan
    of_means = summary(column(records, f"{name}: of mean"))[0]
    their_mean, their_spread = published.P_VALUES[name][prior]
    return [
        Entry(table, prior, "mean", float(np.mean(means)), np.nan, their_mean),
        Entry(table, prior, "sd over draws", over_draws, np.nan, their_spread),
        Entry(table, prior, "sd over refits", over_refits),
        Entry(table, prior, "of the posterior means", of_means),
    ]


def _claims(entries: list[Entry], gammas: list[dict[str, Any]], real: bool) -> list[Claim]:
    claims = [claim for name in COMPARISONS for claim in _p_value_claims(entries, name, real)]
    agreement = {e.row: e.ours for e in entries if e.table == AGREEMENT}
    least = min(agreement, key=lambda prior: agreement[prior])
    listed = ", ".join(f"{prior} {cosine:.3f}" for prior, cosine in agreement.items())
    text = f"Components of refits agree with a mean cosine of {listed}: least for {least}."
    claims.append(Claim(text, least == "teoff" if real else None))
    series = ", ".join(f"{record['gamma']:.2f} (p = {record['p']})" for record in gammas)
    falls = all(after <= before + 0.01 for before, after in pairwise(column(gammas, "gamma")))
    return [*claims, Claim(f"gamma of the et model falls with p: {series}.", falls)]


def _p_value_claims(entries: list[Entry], name: str, real: bool) -> list[Claim]:
    """Say how small the p-values of a comparison are, and how much they vary."""
    mean, over_draws, over_refits = (
        {e.row: e.ours for e in entries if e.table == _table(name) and e.column == head}
        for head in ("mean", "sd over draws", "sd over refits")
    )
    least, most = min(mean, key=lambda q: mean[q]), max(mean, key=lambda q: mean[q])
    below = sum(mean[prior] < 0.05 for prior in EIGHT)
    size = (
        f"Controls against {name}: the mean p-value is {mean[least]:.2g} ({least}) to "
        f"{mean[most]:.2g} ({most}); it is below 0.05 for {below} of {len(EIGHT)} models."
    )
    spread = {prior: np.hypot(over_draws[prior], over_refits[prior]) for prior in EIGHT}
    worst = max(spread, key=lambda prior: spread[prior])
    others = [spread[prior] for prior in EIGHT if prior != "teoff"]
    variation = (
        f"The spread of p-values over draws and refits is {spread['teoff']:.2g} for the offset "
        f"model, {min(others):.2g} to {max(others):.2g} for the others; it is largest for {worst}."
    )
    return [Claim(size), Claim(variation, worst == "teoff" if real else None)]


def _components(records: list[Record], surfaces: inputs.Surfaces) -> Picture:
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
    bar = figure.colorbar(image, ax=grid, shrink=0.4, fraction=0.02)
    bar.set_label("share of the 99 % quantile of its size", fontsize=8)
    return Picture(
        "components",
        figure,
        "The mean and the components on the mesh, seen along its thinnest axis; each has its own "
        "unit, as in the paper.",
    )


def _gamma(gammas: list[dict[str, Any]]) -> Picture:
    figure = drawing.canvas(5, 3.4)
    axes = figure.subplots()
    drawing.curve(
        axes,
        column(gammas, "p"),
        {"et": column(gammas, "gamma")},
        "number of components p",
        "gamma = P(Y = 1) = P(Y = -1)",
    )
    axes.set_ylim(0, 0.52)
    return Picture(
        "gamma",
        figure,
        "The probability that a component is on with either sign in the et model, against the "
        "number of components.",
    )
