"""Handwritten digits: 20 components of all models; how well their components tell digits apart (the figure of USPS)."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica import NoisyICA, priors
from noisyica.paper import drawing, inputs, tasks
from noisyica.paper.common import Claim, Entry, Picture, Result, Settings, column, summary, where
from noisyica.paper.measures import hoyer, nearest_class, purity

P = 20
CENSORED, CONTINUOUS = ("bg", "ebg", "et", "te", "teoff"), ("log", "lap", "eg", "ifa")
FITS: dict[str, str | None] = {"A hidden": "normal", "maximum likelihood": None}
MEASURES = {
    "purity": "purity",
    "one_sided": "purity, one sign",
    "nearest": "cosine with a class",
    "sparsity": "sparsity of coefficients",
    "noise": "noise variance",
}


def estimate(
    prior: str, fit: str, seed: int, max_iter: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """One fit and its measures."""
    digits = inputs.digits(data)
    options: dict[str, Any] = {
        "mixing_prior": FITS[fit],
        "max_iter": max_iter,
        "tol": 0,
        "verbose": False,
    }
    ica = NoisyICA(P, prior=prior, random_state=seed, **options).fit(digits.X)
    beta = ica.transform(digits.X)
    return {
        "purity": float(purity(beta, digits.labels, top(len(beta))).mean()),
        "one_sided": float(purity(beta, digits.labels, top(len(beta)), one_sided=True).mean()),
        "nearest": float(nearest_class(ica.components_, digits.X, digits.labels).mean()),
        "sparsity": hoyer(beta),
        "noise": float(ica.noise_variance_),
        "mean": ica.mean_,
        "components": ica.components_,
    }


def top(n: int) -> int:
    """How many images count as those in which a component is most active: 100 of USPS."""
    return max(10, round(n * 100 / 7291))


def run(settings: Settings) -> Result:
    """All priors, with A hidden and at its maximum of likelihood."""
    digits = inputs.digits(settings.data)
    seeds, max_iter = settings.seeds(1, 3), settings.choose(150, 1000)
    fits = settings.choose(("A hidden",), tuple(FITS))
    where_from = inputs.case(settings.data, digits)
    cases = [
        {"prior": prior, "fit": fit, "seed": seed, "max_iter": max_iter, **where_from}
        for fit in fits
        for prior in priors.TABLE
        for seed in seeds
    ]
    records = tasks.run(settings, "digits", estimate, cases)
    largest = float(np.unique(digits.labels, return_counts=True)[1].max() / len(digits.labels))
    return Result(
        "Handwritten digits",
        f"{P} components of each model. The paper finds that components of the censored models (whose coefficients are 0 with a positive "
        "probability) are well-formed digits, and those of the others mixtures of several. We measure it: the *purity* of a component is "
        f"the share of the most frequent digit among the {top(len(digits.X))} images in which its coefficient (posterior mean) is largest "
        "in size; with *one sign*, in which it is largest with the sign for which that is purer. The *cosine with a class* is that of the "
        "component with the mean of the digit it is nearest to, less the mean of all.",
        digits.description,
        {"repeats": len(seeds), "iterations": max_iter, "components": P},
        _entries(records, fits),
        _claims(records, fits, largest),
        [_picture(where(records, seed=seeds[0], fit=fit), fit, digits.shape) for fit in fits],
        [
            "Components are averaged over, as they are: none is selected. The paper shows its most representative results."
        ],
        seconds=sum(record["spent"] for record in records),
    )


def _entries(records: list[dict[str, Any]], fits: tuple[str, ...]) -> list[Entry]:
    return [
        Entry(
            f"All models, {fit}", prior, head, *summary(column(records, name, prior=prior, fit=fit))
        )
        for fit in fits
        for prior in priors.TABLE
        for name, head in MEASURES.items()
    ]


def _claims(records: list[dict[str, Any]], fits: tuple[str, ...], largest: float) -> list[Claim]:
    claims = [
        Claim(
            f"By chance the purity would be about {largest:.2f}, the share of the most frequent digit."
        )
    ]
    for fit in fits:
        for measure in ("purity", "one_sided"):
            mean = {
                prior: float(np.mean(column(records, measure, prior=prior, fit=fit)))
                for prior in priors.TABLE
            }
            purer = [prior for prior in CENSORED if mean[prior] > mean["log"]]
            listed = ", ".join(f"{prior} {mean[prior]:.3f}" for prior in CENSORED)
            text = f"{fit.capitalize()}, {MEASURES[measure]}: {listed}, against {mean['log']:.3f} for log"
            others = ", ".join(f"{prior} {mean[prior]:.3f}" for prior in CONTINUOUS[1:])
            claims.append(
                Claim(
                    f"{text} ({others}); {len(purer)} of {len(CENSORED)} censored models are purer than log.",
                    len(purer) == 5,
                )
            )
    return claims


def _picture(records: list[Any], fit: str, shape: tuple[int, int]) -> Picture:
    models = {r["prior"]: (np.array(r["mean"]), np.array(r["components"])) for r in records}
    figure = drawing.model_sheets(models, shape, 10, 2)
    name = "components" if FITS[fit] else "likelihood"
    return Picture(
        name,
        figure,
        f"Mean (first, less its average) and {P} components of each model, {fit}; each model in the unit of its largest entry.",
    )
