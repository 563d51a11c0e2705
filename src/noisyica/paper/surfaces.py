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
    Reading,
    Record,
    Result,
    column,
    computing_time,
    papers_prior,
    rows,
    summary,
    where,
)
from noisyica.paper.measures import contributions, matched_cosines

EIGHT, P, DRAWS = ("log", "lap", "eg", "bg", "ebg", "et", "te", "teoff"), 5, 50
COMPARISONS = tuple(published.P_VALUES)
P_VALUES, AGREEMENT = "p-values, controls against ", "Agreement of refits"
GAMMA = "gamma against p (et)"


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
    components = contributions(ica.components_, ica.transform(surfaces.X))
    outcome: dict[str, Any] = {"mean": ica.mean_, "components": components}
    for name, patients in surfaces.groups.items():
        kept = np.isin(surfaces.labels, ("control", *patients))
        groups = np.where(surfaces.labels[kept] == "control", "control", "patient")
        options: dict[str, Any] = {
            "n_draws": DRAWS,
            "n_permutations": permutations,
            "random_state": seed,
            "verbose": False,
        }
        test = compare_groups(surfaces.X[kept], groups, ica, **options)
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
    entries = _entries(records, gammas, surfaces.called)
    reading = read(entries, surfaces.real)
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
        reading.claims,
        [_components(where(records, seed=seeds[0]), surfaces), *reading.charts],
        reading.notes,
        "Each cell has our number.",
        computing_time(records, gammas),
    )


def _table(comparison: str, called: str) -> str:
    """Return the title of the table of a comparison, with what the patients are here."""
    theirs = f"the paper's Table {4 + COMPARISONS.index(comparison)}"
    if called != comparison:
        theirs += f" has {comparison}"
    return f"{P_VALUES}{called} ({theirs})"


def stability(records: Sequence[Record]) -> float:
    """Return the mean absolute cosine of the first fit's components with their matches in others.

    It is NaN if there is only one fit.
    """
    first, *others = (np.array(record["components"]).T for record in records)
    if not others:
        return np.nan
    return float(np.mean([matched_cosines(first, other) for other in others]))


def _entries(
    records: list[dict[str, Any]], gammas: list[dict[str, Any]], called: dict[str, str]
) -> list[Entry]:
    entries = []
    for name in COMPARISONS:
        for prior in EIGHT:
            table = _table(name, called[name])
            entries += _p_values(where(records, prior=prior), name, prior, table)
    for prior in EIGHT:
        agreement = stability(where(records, prior=prior))
        entries.append(Entry(AGREEMENT, prior, "mean cosine of matched components", agreement))
    for record in gammas:
        row = f"p = {record['p']}"
        entries.append(Entry(GAMMA, row, "gamma", record["gamma"]))
    return entries


def _p_values(records: list[Record], name: str, prior: str, table: str) -> list[Entry]:
    """Return a row of the table of a comparison, from the refits of one model."""
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


def read(entries: Sequence[Entry], real: bool) -> Reading:
    """Return what the page says of the numbers."""
    tables = dict.fromkeys(e.table for e in entries if e.table.startswith(P_VALUES))
    claims = [claim for table in tables for claim in _p_value_claims(entries, table, real)]
    agreement = {e.row: e.ours for e in entries if e.table == AGREEMENT and np.isfinite(e.ours)}
    if agreement:
        least = min(agreement, key=lambda prior: agreement[prior])
        cosines = ", ".join(f"{cosine:.3f} ({prior})" for prior, cosine in agreement.items())
        text = (
            f"The mean cosine of the components of refits is {cosines}. It is lowest for {least}; "
            "the paper calls teoff unstable."
        )
        claims.append(Claim(text, least == "teoff" if real else None))
    gammas = {e.row: e.ours for e in entries if e.table == GAMMA}
    series = ", ".join(f"{gamma:.2f} ({p})" for p, gamma in gammas.items())
    falls = all(after <= before + 0.01 for before, after in pairwise(gammas.values()))
    text = (
        "The paper's gamma of the et model is about 1/2 for small p and falls as p grows. Ours "
        f"{'falls' if falls else 'does not fall'}: {series}."
    )
    claims.append(Claim(text, falls if real else None))
    notes = [
        "The ratios to the paper's p-values say little: these are other people, with another "
        "disease or none. What can be compared is which models agree. No p-value can be less than "
        "1 over the number of permutations plus one."
    ]
    return Reading(claims, notes, [_gamma(gammas)])


def _p_value_claims(entries: Sequence[Entry], table: str, real: bool) -> list[Claim]:
    """Say how small the p-values of a comparison are, and how much they vary."""
    of_models = rows(entries, table)
    patients = table.removeprefix(P_VALUES).split(" (", 1)[0]
    mean = {prior: row["mean"].ours for prior, row in of_models.items()}
    least, most = min(mean, key=lambda q: mean[q]), max(mean, key=lambda q: mean[q])
    below = sum(value < 0.05 for value in mean.values())
    size = (
        f"Controls against {patients}: the mean p-value is {mean[least]:.2g} ({least}) to "
        f"{mean[most]:.2g} ({most}); it is below 0.05 for {below} of {len(mean)} models."
    )
    spread = {
        prior: float(np.hypot(row["sd over draws"].ours, np.nan_to_num(row["sd over refits"].ours)))
        for prior, row in of_models.items()
    }
    worst = max(spread, key=lambda prior: spread[prior])
    others = [value for prior, value in spread.items() if prior != "teoff"]
    variation = (
        f"Controls against {patients}: the spread of p-values over draws and refits is "
        f"{spread['teoff']:.2g} for teoff, and {min(others):.2g} to {max(others):.2g} for the "
        f"others; it is largest for {worst}. The paper has it largest for teoff."
    )
    return [Claim(size), Claim(variation, worst == "teoff" if real else None)]


def _components(records: list[Record], surfaces: inputs.Surfaces) -> Picture:
    figure = drawing.canvas(9.5, 1.75 * len(records) + 0.4)
    grid = figure.subplots(len(records), P + 1)
    means = [np.array(record["mean"]) for record in records]
    components = [np.array(record["components"]) for record in records]
    units = [drawing.unit(means), *[drawing.unit(components)] * P]
    for i, record in enumerate(records):
        for j, values in enumerate(np.vstack([means[i], components[i]])):
            grid[i, j].set_title(f"{record['prior']}: {j or 'mean'}", fontsize=8)
            if not values.any():
                grid[i, j].text(0.5, 0.5, "no mean", ha="center", fontsize=8)
                grid[i, j].set_axis_off()
                continue
            image = drawing.surface(
                grid[i, j], surfaces.vertices, surfaces.faces, values / units[j], 1.0
            )
    bar = figure.colorbar(image, ax=grid, shrink=0.4, fraction=0.02)
    label = f"share of the {drawing.LARGEST:.1%} quantile of all components; means: of all means"
    bar.set_label(label, fontsize=8)
    return Picture(
        "components",
        figure,
        "The mean and the components on the mesh, each seen from both sides along the mesh's "
        "thinnest axis. Each component is multiplied by the root mean square of its coefficients; "
        "all components are on one colour scale, and so are all means (in the paper each has its "
        "own). The model teoff has no mean, but an offset for each surface: its first "
        "place is empty.",
    )


def _gamma(gammas: dict[str, float]) -> Picture:
    figure = drawing.canvas(5, 3.4)
    axes = figure.subplots()
    drawing.curve(
        axes,
        [int(p.removeprefix("p = ")) for p in gammas],
        {"et": list(gammas.values())},
        "number of components p",
        "gamma = P(Y = 1) = P(Y = -1)",
    )
    axes.axhline(0.5, color="0.6", linestyle=":", label="always on")
    axes.legend(fontsize=8)
    axes.set_ylim(0, 0.52)
    return Picture(
        "gamma",
        figure,
        "Gamma of the et model against the number of components. Gamma is the probability of each "
        "of the two signs, as in the paper: a component is on with the probability 2 gamma.",
    )
