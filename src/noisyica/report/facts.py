"""What a report says in words: facts about the data, the settings, and a summary of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisyica.data import Data
from noisyica.engine import mixing
from noisyica.engine.reliability import RELIABLE, share_in_words
from noisyica.estimator import NoisyICA
from noisyica.posterior.student import OUTLYING
from noisyica.report import layouts
from noisyica.report.sample import Sample

NAMED = 10
"""The maximum number of outlying rows that are named."""
FEW = 4
"""A parameter of the prior with more values than this is shown by its range."""


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
    tiles = [
        ["Components", str(len(ica.components_)), ica.prior_.label],
        ["Coefficients", *_first_word(ica.describe()["coefficients"])],
        *_reliable_tile(ica),
        [
            "Variance explained",
            f"{100 * ica.explained_variance_ratio_.sum():.1f} %",
            f"by the components; the rest is noise{_or_offset(ica)}",
        ],
        ["Prior of the components", *mixing.in_words(ica)],
        _noise_tile(ica),
        *_outlying_tiles(ica, data),
        [
            "Log likelihood per row",
            number(likelihood),
            f"± {number(error)} (standard error of the mean, if rows are independent)",
        ],
        ["Iterations", str(ica.n_iter_), _why_it_ended(ica)],
        *(_parameter_tile(name, value) for name, value in ica.prior_.parameters.items()),
    ]
    return [dict(zip(("label", "value", "note"), tile, strict=True)) for tile in tiles]


def _first_word(text: str) -> tuple[str, str]:
    """The first of several words that commas divide, and the others."""
    first, _, others = text.partition(", ")
    return first, others


def _reliable_tile(ica: NoisyICA) -> list[list[str]]:
    """How many components are reliable, and which are doubtful, if that was looked at."""
    if not hasattr(ica, "reliability_"):
        return []
    count, others = share_in_words(ica.reliability_)
    note = f"expected cosine with the truth {RELIABLE:g} or more, by halves of the rows; {others}"
    return [["Reliable components", count, note]]


def _mean_log_likelihood(sample: Sample) -> tuple[float, float]:
    """The mean over the rows, and its standard error: that of the rows and of the estimates."""
    m = len(sample.rows)
    spread = sample.log_likelihood.std() / np.sqrt(max(m - 1, 1))
    error = np.sqrt(np.square(sample.error).sum()) / m
    return float(sample.log_likelihood.mean()), float(np.hypot(spread, error))


def _or_offset(ica: NoisyICA) -> str:
    """What else the rest of the variance may be, where rows have offsets."""
    return " and the rows' offsets" if ica.prior_.has_offset else ""


def _noise_tile(ica: NoisyICA) -> list[str]:
    """The standard deviation of the noise; its median if each column has its own."""
    deviation = np.sqrt(np.asarray(ica.noise_variance_))
    note = (
        f"variance {number(deviation**2)}"
        if deviation.ndim == 0
        else f"median of columns; from {number(deviation.min())} to {number(deviation.max())}"
    )
    return ["Noise, standard deviation", number(float(np.median(deviation))), note]


def _outlying_tiles(ica: NoisyICA, data: Data) -> list[list[str]]:
    """The degrees of freedom of Student noise, and the rows of least weight by their ids."""
    if not hasattr(ica, "noise_dof_"):
        return []
    weights = ica.row_weights_
    tiles = [["Degrees of freedom", number(ica.noise_dof_), "of Student noise; many are normal"]]
    if len(weights) == len(data.X):  # the rows that were learnt from
        least = np.argsort(weights, kind="stable")[: min((weights < OUTLYING).sum(), NAMED)]
        named = ", ".join(f"{data.ids[i]} ({weights[i]:.2g})" for i in least)
        note = f"weight below {OUTLYING:g}" + (f"; the least: {named}" if named else "")
        tiles.append(["Outlying rows", f"{(weights < OUTLYING).sum():,}", note])
    return tiles


def _parameter_tile(name: str, parameter: np.ndarray) -> list[str]:
    """A parameter of the prior: all of its values, or their range if they are many."""
    if parameter.size > FEW:
        text = f"{number(parameter.min())} to {number(parameter.max())}"
        return [f"Prior: {name}", text, f"{parameter.size} values"]
    return [f"Prior: {name}", ", ".join(map(number, parameter.ravel())), "learnt"]


def _why_it_ended(ica: NoisyICA) -> str:
    """Whether the fit has converged, in words."""
    if ica.converged_:
        return "converged: what is learnt no longer drifts"
    if ica.algorithm == "saem" and ica.tol > 0:
        return "not converged: still moving at the end"
    return "as many as were asked for; no test of convergence"
