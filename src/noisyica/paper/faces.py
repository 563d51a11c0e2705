"""Patches of faces: 20 components of eight models, and 100 of two; texture against shape.

The paper has two figures of components learnt from Caltech's faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisyica import NoisyICA
from noisyica.paper import drawing, inputs, tasks
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
from noisyica.paper.measures import effective_area, hoyer, roughness

EIGHT, TWO, FEW = ("log", "lap", "eg", "bg", "ebg", "et", "te", "teoff"), ("log", "bg"), 20
ROWS_MEASURED = 5000
MEASURES = {
    "on": "share of coefficients on",
    "sparsity": "sparsity of coefficients",
    "area": "effective area",
    "roughness": "roughness",
    "noise": "noise variance",
}
"""The measures of a fit, and their names in the tables."""
SEEN = {"roughness": ".3f", "effective area": ".2f", "sparsity of coefficients": ".2f"}
"""The measures that are spoken of, and the formats of their numbers."""


def estimate(
    prior: str,
    p: int,
    seed: int,
    max_iter: int,
    max_patches: int,
    data: str | None,
    fingerprint: str,
) -> dict[str, Any]:
    """Fit one model, and return its measures, its mean and its components."""
    patches = inputs.faces(data, max_patches)
    ica = NoisyICA(
        p,
        prior=papers_prior(prior),
        noise="isotropic",
        max_iter=max_iter,
        tol=0,
        n_init=1,
        random_state=seed,
        verbose=False,
    )
    ica.fit(patches.X)
    some = patches.X[np.random.default_rng(seed).permutation(len(patches.X))[:ROWS_MEASURED]]
    draws = ica.model_.posterior_sample(some, n_draws=20, n_warmup=30, random_state=seed)
    norms = np.linalg.norm(ica.components_, axis=1)
    alive = norms > 0.01 * norms.max()
    return {
        "on": float((draws[..., alive] != 0).mean()),
        "sparsity": hoyer(draws.mean(0)[:, alive]),
        "area": float(effective_area(ica.components_[alive]).mean()),
        "roughness": float(roughness(ica.components_[alive], patches.shape).mean()),
        "noise": float(ica.noise_variance_),
        "mean": ica.mean_,
        "components": ica.components_,
    }


def run(options: Options) -> Result:
    """Run the experiment: models with 20 components, and two with many."""
    max_patches, max_iter = options.choose(1500, 10**6), options.choose(100, 1000)
    many, models = options.choose(40, 100), options.choose(("log", "lap", "bg", "et"), EIGHT)
    patches = inputs.faces(options.data, max_patches)
    seeds = options.seeds(1, 1)
    on_data = inputs.case(options.data, patches)
    same = {"max_iter": max_iter, "max_patches": max_patches, **on_data}
    cases = [
        {"prior": prior, "p": p, "seed": seed, **same}
        for p, names in ((FEW, models), (many, TWO))
        for prior in names
        for seed in seeds
    ]
    records = tasks.run(options, "faces", estimate, cases)
    first = where(records, seed=seeds[0])
    entries = _entries(records)
    reading = read(entries)
    return Result(
        "Patches of faces",
        f"{FEW} components of {len(models)} models, and {many} of the logistic and the "
        "Bernoulli-Gaussian. The paper sees similar patterns in all models with few components, "
        "and with many components textures in Log and shapes in BG. We measure it: the *effective "
        "area* is the share of pixels that a component occupies, (sum a²)² / (d sum a⁴); its "
        "*roughness* is the mean square difference of neighbouring pixels, 0 for a constant and 1 "
        "for white noise; *sparsity* is Hoyer's, of an image's coefficients (posterior means), "
        "from 0 to 1.",
        f"{patches.description} The paper has 499,697 patches; it does not say on which grid, "
        "nor whether their means were subtracted.",
        {"repeats": len(seeds), "iterations": max_iter, "fit": "A hidden (the default)"},
        entries,
        reading.claims,
        [
            _picture(where(first, p=FEW), "components", patches.shape),
            _picture(where(first, p=many), "many", patches.shape),
        ],
        reading.notes,
        seconds=computing_time(records),
    )


def _entries(records: list[dict[str, Any]]) -> list[Entry]:
    return [
        Entry(f"{p} components", prior, head, *summary(column(records, name, prior=prior, p=p)))
        for prior, p in dict.fromkeys((record["prior"], record["p"]) for record in records)
        for name, head in MEASURES.items()
    ]


def read(entries: Sequence[Entry], real: bool = False) -> Reading:
    """Return what the page says of the numbers."""
    claims = []
    for table in dict.fromkeys(entry.table for entry in entries):
        log, bg = (rows(entries, table)[prior] for prior in TWO)
        seen = ", the ".join(
            f"{measure} is {log[measure].ours:{form}} for log and {bg[measure].ours:{form}} for bg"
            for measure, form in SEEN.items()
        )
        text = f"{table}: the {seen} ({bg[MEASURES['on']].ours:.0%} on in bg)."
        if table == f"{FEW} components":
            claims.append(Claim(text))
            continue
        text += (
            " The paper sees textures in log and shapes in bg, which we take for less roughness "
            "in bg."
        )
        claims.append(Claim(text, log["roughness"].ours > bg["roughness"].ours))
    notes = [
        "The mean of a patch is subtracted because it has most of the variance, which would take "
        "up one constant component. The offset model (teoff) then has no offset to find."
    ]
    return Reading(claims, notes)


def _picture(records: list[Record], name: str, shape: tuple[int, int]) -> Picture:
    models = {r["prior"]: (np.array(r["mean"]), np.array(r["components"])) for r in records}
    p = len(records[0]["components"])
    return Picture(
        name,
        drawing.model_sheets(models, shape, 10, 2, own_scale=True),
        f"The mean (first, its average subtracted) and the {p} components of each model. Each is "
        "divided by its own largest entry: this shows their patterns, although their sizes differ "
        "widely."
        + (" The model teoff has no mean: its first place is empty." if "teoff" in models else ""),
    )
