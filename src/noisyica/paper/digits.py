"""Handwritten digits: 20 components of all models, and how well these tell digits apart.

The paper has a figure of the components learnt from USPS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisyica import NoisyICA, priors
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
from noisyica.paper.measures import contributions, hoyer, nearest_class, purity

P = 20
CENSORED, CONTINUOUS = ("bg", "ebg", "et", "te", "teoff"), ("log", "lap", "eg", "ifa")
FITS: dict[str, str | None] = {
    "A hidden": "normal",
    "A sparse": "sparse",
    "maximum likelihood": None,
}
SPOKEN = {"purity": "purity", "purity, one sign": "purity with one sign"}
"""How a sentence calls these measures."""
TABLE = "All models, {}"
PICTURES = {"A hidden": "components", "A sparse": "sparse", "maximum likelihood": "likelihood"}
"""The names of the pictures of these."""
MEASURES = {
    "purity": "purity",
    "one_sided": "purity, one sign",
    "nearest": "cosine with a class",
    "sparsity": "sparsity of coefficients",
    "noise": "noise variance",
}
"""The measures of a fit, and their names in the tables."""


def estimate(
    prior: str, fit: str, seed: int, max_iter: int, data: str | None, fingerprint: str
) -> dict[str, Any]:
    """Fit one model, and return its measures, its mean, and its components in the data's unit."""
    digits = inputs.digits(data)
    options: dict[str, Any] = {
        "noise": "isotropic",
        "mixing_prior": FITS[fit],
        "max_iter": max_iter,
        "tol": 0,
        "n_init": 1,
        "verbose": False,
    }
    ica = NoisyICA(P, prior=papers_prior(prior), random_state=seed, **options).fit(digits.X)
    beta = ica.transform(digits.X)
    top = most_active(len(beta))
    return {
        "purity": float(purity(beta, digits.labels, top).mean()),
        "one_sided": float(purity(beta, digits.labels, top, one_sided=True).mean()),
        "nearest": float(nearest_class(ica.components_, digits.X, digits.labels).mean()),
        "sparsity": hoyer(beta),
        "noise": float(ica.noise_variance_),
        "mean": ica.mean_,
        "components": contributions(ica.components_, beta),
    }


def most_active(n: int) -> int:
    """Return how many of n images count as those in which a component is most active.

    They are 100 of the images of USPS.
    """
    return max(10, round(n * 100 / 7291))


def run(options: Options) -> Result:
    """Run the experiment: all priors, with A hidden or sparse, and by maximum likelihood."""
    digits = inputs.digits(options.data)
    seeds, max_iter = options.seeds(1, 3), options.choose(150, 1000)
    fits = options.choose(("A hidden",), tuple(FITS))
    on_data = inputs.case(options.data, digits)
    cases = [
        {"prior": prior, "fit": fit, "seed": seed, "max_iter": max_iter, **on_data}
        for fit in fits
        for prior in priors.PAPER
        for seed in seeds
    ]
    records = tasks.run(options, "digits", estimate, cases)
    largest = float(np.unique(digits.labels, return_counts=True)[1].max() / len(digits.labels))
    entries = _entries(records, fits)
    reading = read(entries)
    return Result(
        "Handwritten digits",
        f"{P} components of each model. The paper finds that components of the censored models "
        "(whose coefficients are 0 with a positive probability) are well-formed digits, and those "
        "of the others mixtures of several. We measure it: the *purity* of a component is the "
        f"share of the most frequent digit among the {most_active(len(digits.X))} images in which "
        "its coefficient (posterior mean) has the largest absolute value. For the purity with *one "
        "sign*, the images are those in which the coefficient is largest, or those in which it is "
        "smallest, whichever are purer. The *cosine with a class* is that of the component with "
        "the mean of the digit it is nearest to, from which the mean of all images is subtracted.",
        f"{digits.description} The most frequent digit has {largest:.0%} of the images, which is "
        "about the purity that chance would give.",
        {"repeats": len(seeds), "iterations": max_iter, "components": P},
        entries,
        reading.claims,
        [_picture(where(records, seed=seeds[0], fit=fit), fit, digits.shape) for fit in fits],
        reading.notes,
        seconds=computing_time(records),
    )


def _entries(records: list[dict[str, Any]], fits: tuple[str, ...]) -> list[Entry]:
    return [
        Entry(TABLE.format(fit), prior, head, *summary(column(records, name, prior=prior, fit=fit)))
        for fit in fits
        for prior in priors.PAPER
        for name, head in MEASURES.items()
    ]


def read(entries: Sequence[Entry], real: bool = False) -> Reading:
    """Return what the page says of the numbers."""
    tables = {fit: rows(entries, TABLE.format(fit)) for fit in FITS}
    claims = [
        _claim(table, fit, MEASURES[measure])
        for fit, table in tables.items()
        if table
        for measure in ("purity", "one_sided")
    ]
    notes = [
        "Measures are averages over all components: none is selected. The paper shows its most "
        "representative results, of four of the models, and says in words what they look like: "
        "it measures nothing."
    ]
    return Reading(claims, notes)


def _claim(table: dict[str, dict[str, Entry]], fit: str, measure: str) -> Claim:
    """Compare the censored models with the logistic model."""
    mean = {prior: row[measure].ours for prior, row in table.items()}
    censored, others = (
        ", ".join(f"{mean[prior]:.3f} ({prior})" for prior in names)
        for names in (CENSORED, CONTINUOUS[1:])
    )
    purer = [prior for prior in CENSORED if mean[prior] > mean["log"]]
    return Claim(
        f"{fit.capitalize()}: {len(purer)} of {len(CENSORED)} censored models are purer than log. "
        f"The {SPOKEN[measure]} is {mean['log']:.3f} for log; for the censored models it is "
        f"{censored}; for the other continuous models it is {others}.",
        len(purer) == len(CENSORED),
    )


def _picture(records: list[Record], fit: str, shape: tuple[int, int]) -> Picture:
    models = {r["prior"]: (np.array(r["mean"]), np.array(r["components"])) for r in records}
    return Picture(
        PICTURES[fit],
        drawing.model_sheets(models, shape, 10, 2),
        f"The mean (first, its average subtracted) and the {P} components of each model, {fit}. "
        "Each component is multiplied by the root mean square of its coefficients; all components "
        "are on one colour scale, and so are all means. The model teoff has no mean, "
        "but an offset for each image: its first place is empty.",
    )
