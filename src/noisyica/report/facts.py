"""What a report says in words: facts about the data, the settings, and a summary of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.data import Data
from noisyica.engine import findings
from noisyica.estimator import NoisyICA
from noisyica.posterior.student import outlying_below
from noisyica.report import layouts
from noisyica.report.sample import Sample

NAMED = 10
"""The maximum number of outlying rows that are named."""


def about_data(data: Data, sample: Sample, settings: dict[str, Any]) -> list[list[str]]:
    """Facts about the data, as pairs of label and value."""
    n, d = data.X.shape
    missing = np.isnan(sample.X).mean()
    low, high = number(np.nanmin(sample.X)), number(np.nanmax(sample.X))
    facts = [
        ["Rows", f"{n:,}"],
        ["Columns", f"{d:,}"],
        ["What a row is", layouts.in_words(data.layout)],
        ["Values", f"{low} to {high}, mean {number(np.nanmean(sample.X))}"],
        ["Missing", f"{100 * missing:.2g} %, taken to be at random" if missing else "none"],
    ]
    if data.others:
        facts.append(["Beside the numbers", ", ".join(map(str, data.others))])
    if settings.get("fingerprint"):
        facts.append(["Fingerprint", str(settings["fingerprint"])])
    return facts


def left_out(ica: NoisyICA, data: Data, sample: Sample, shown: int, held: int) -> list[str]:
    """Sentences on what the page leaves out.

    The page holds ``shown`` components, and ``held`` rows in its explorer.
    """
    n, p = len(data.X), len(ica.components_)
    notes = []
    if len(sample.rows) < n:
        notes.append(f"Statistics are of {len(sample.rows):,} of the {n:,} rows, drawn at random.")
    if held < n:
        notes.append(
            f"The explorer holds {held:,} of the {n:,} rows: the least likely ones, "
            "and others drawn at random."
        )
    if shown < p:
        notes.append(
            f"To keep the file small, it holds {shown} of the {p} components: in the explorer, "
            "what the others add is left out."
        )
    return notes


def settings_in_groups(ica: NoisyICA, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Settings under headings: those of the run, those of the estimator, and each nested group."""
    run = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    run.pop("fingerprint", None)  # it stands with the data
    nested = {name: value for name, value in settings.items() if isinstance(value, dict)}
    groups = {"run": run, "estimator": _estimator_settings(ica), **nested}
    return [
        {"title": str(title).capitalize(), "pairs": _flatten(pairs)}
        for title, pairs in groups.items()
        if pairs
    ]


def _estimator_settings(ica: NoisyICA) -> dict[str, Any]:
    """The estimator's settings, without those that have no effect on the result."""
    settings = ica.get_params(deep=False)
    if not isinstance(settings["init"], str):
        settings["init"] = f"array of shape {np.shape(settings['init'])}"
    return {name: value for name, value in settings.items() if name not in ("callback", "verbose")}


def _flatten(settings: dict[str, Any], prefix: str = "") -> list[list[str]]:
    """Nested settings as pairs of name and value; the names of groups come before a dot."""
    pairs: list[list[str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            pairs += _flatten(value, f"{prefix}{name}.")
        else:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            pairs.append([f"{prefix}{name}", text])
    return pairs


def number(value: float) -> str:
    """A number with about four digits and a true minus sign."""
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
    return text.replace("-", "−")


def in_words(label: Any) -> str:
    """A value beside a row's numbers, such as its class or its age, as text."""
    return number(float(label)) if isinstance(label, float | np.floating) else str(label)


def summary(ica: NoisyICA, data: Data, sample: Sample) -> list[dict[str, str]]:
    """The tiles at the top of the page, each with a label, a value and a note."""
    likelihood, error = _mean_log_likelihood(sample)
    found = findings.facts(ica, number)
    row = findings.Fact(
        "log likelihood per row",
        number(likelihood),
        f"± {number(error)} (standard error of the mean, if rows are independent)",
    )
    place = next(k for k, fact in enumerate(found) if fact.name == "iterations")
    found.insert(place, row)
    return [
        {
            "label": fact.name[0].upper() + fact.name[1:],
            "value": fact.value,
            "note": fact.note + (_named(ica, data) if fact.name == "outlying rows" else ""),
        }
        for fact in found
    ]


def _mean_log_likelihood(sample: Sample) -> tuple[float, float]:
    """The mean over the rows, and its standard error: that of the rows and of the estimates."""
    m = len(sample.rows)
    spread = sample.log_likelihood.std() / np.sqrt(max(m - 1, 1))
    error = np.sqrt(np.square(sample.error).sum()) / m
    return float(sample.log_likelihood.mean()), float(np.hypot(spread, error))


def _named(ica: NoisyICA, data: Data) -> str:
    """The rows of least weight by their ids, if the data are those that were learnt from."""
    weights = ica.row_weights_
    if len(weights) != len(data.X):
        return ""
    count = int((weights < outlying_below(ica.noise_dof_)).sum())
    least = np.argsort(weights, kind="stable")[: min(count, NAMED)]
    named = ", ".join(f"{data.ids[i]} ({weights[i]:.2g})" for i in least)
    return f"; the least: {named}" if named else ""
