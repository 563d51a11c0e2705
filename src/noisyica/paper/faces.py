"""Patches of faces: 20 components of eight models, 100 of two; texture against shape (the two figures of Caltech's faces)."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica import NoisyICA
from noisyica.paper import drawing, inputs, tasks
from noisyica.paper.common import Claim, Entry, Picture, Result, Settings, column, summary, where
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


def estimate(
    prior: str, p: int, seed: int, max_iter: int, most: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """One fit and its measures."""
    patches = inputs.faces(data, most)
    ica = NoisyICA(p, prior=prior, max_iter=max_iter, tol=0, random_state=seed, verbose=False).fit(
        patches.X
    )
    rows = patches.X[np.random.default_rng(seed).permutation(len(patches.X))[:ROWS_MEASURED]]
    draws = ica.model_.posterior_sample(rows, n_draws=20, n_warmup=30, random_state=seed)
    alive = (
        np.linalg.norm(ica.components_, axis=1)
        > 0.01 * np.linalg.norm(ica.components_, axis=1).max()
    )
    return {
        "on": float((draws[..., alive] != 0).mean()),
        "sparsity": hoyer(draws.mean(0)[:, alive]),
        "area": float(effective_area(ica.components_[alive]).mean()),
        "roughness": float(roughness(ica.components_[alive], patches.shape).mean()),
        "noise": float(ica.noise_variance_),
        "mean": ica.mean_,
        "components": ica.components_,
    }


def run(settings: Settings) -> Result:
    """Eight models with 20 components, two with many."""
    most, max_iter, many = (
        settings.choose(1500, 10**6),
        settings.choose(100, 1000),
        settings.choose(40, 100),
    )
    models = settings.choose(("log", "lap", "bg", "et"), EIGHT)
    patches = inputs.faces(settings.data, most)
    seeds = settings.seeds(1, 1)
    same = {"max_iter": max_iter, "most": most, **inputs.case(settings.data, patches)}
    cases = [
        {"prior": prior, "p": p, "seed": seed, **same}
        for p, names in ((FEW, models), (many, TWO))
        for prior in names
        for seed in seeds
    ]
    records = tasks.run(settings, "faces", estimate, cases)
    first = where(records, seed=seeds[0])
    return Result(
        "Patches of faces",
        f"{FEW} components of {len(models)} models, and {many} of the logistic and the Bernoulli-Gaussian. The paper sees similar "
        "patterns in all models with few components, and with many textures in Log and shapes in BG. We measure it: the *effective area* "
        "is the share of pixels that a component lives on, (sum a²)² / (d sum a⁴); its *roughness* the mean square difference of "
        "neighbouring pixels, 0 for a constant and 1 for white noise; *sparsity* is Hoyer's, of an image's coefficients (posterior "
        "means), from 0 to 1.",
        patches.description
        + " The paper has 499,697 patches; of which grid, and whether their means were left out, it does not say.",
        {"repeats": len(seeds), "iterations": max_iter, "fit": "A hidden (the default)"},
        _entries(records),
        _claims(records, many),
        [
            _picture(where(first, p=FEW), "components", patches.shape, 10, 2),
            _picture(where(first, p=many), "many", patches.shape, 10, 2),
        ],
        [
            "The mean of a patch is left out because it has most of the variance, and one constant component would have it: the offset "
            "model (teoff) then has no offset to find."
        ],
        seconds=sum(record["spent"] for record in records),
    )


def _entries(records: list[dict[str, Any]]) -> list[Entry]:
    return [
        Entry(f"{p} components", prior, head, *summary(column(records, name, prior=prior, p=p)))
        for prior, p in dict.fromkeys((record["prior"], record["p"]) for record in records)
        for name, head in MEASURES.items()
    ]


def _claims(records: list[dict[str, Any]], many: int) -> list[Claim]:
    claims = []
    for p in (FEW, many):
        log, bg = (
            {name: float(np.mean(column(records, name, prior=prior, p=p))) for name in MEASURES}
            for prior in TWO
        )
        text = f"{p} components: roughness {log['roughness']:.3f} for log and {bg['roughness']:.3f} for bg, effective area {log['area']:.2f} "
        text += f"and {bg['area']:.2f}; sparsity of the coefficients {log['sparsity']:.2f} and {bg['sparsity']:.2f} ({bg['on']:.0%} on in bg)."
        textured = bool(log["roughness"] > bg["roughness"]) if p == many else None
        claims.append(
            Claim(
                text + (" The paper has textures in log and shapes in bg." if p == many else ""),
                textured,
            )
        )
    return claims


def _picture(
    records: list[Any], name: str, shape: tuple[int, int], columns: int, across: int
) -> Picture:
    models = {r["prior"]: (np.array(r["mean"]), np.array(r["components"])) for r in records}
    p = len(records[0]["components"])
    figure = drawing.model_sheets(models, shape, columns, across, own=True)
    return Picture(
        name,
        figure,
        f"Mean (first, less its average) and {p} components of each model, each in the unit of its largest entry.",
    )
