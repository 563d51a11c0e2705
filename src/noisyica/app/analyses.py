"""What ``noisyica compare`` and ``noisyica select`` do with their options."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import typer

from noisyica.analysis.groups import compare_groups
from noisyica.analysis.labels import is_missing
from noisyica.analysis.selection import Selection
from noisyica.app.options import Comparing
from noisyica.app.printing import (
    EXPENDABLE,
    SELECTION_HEADINGS,
    print_assumptions,
    print_table,
)
from noisyica.data import Data, labels
from noisyica.data.text_tables import MISSING
from noisyica.estimator import NoisyICA

OPTIONS_BESIDE_A_RUN = (
    "data",
    "groups",
    "between",
    "covariates",
    "categorical",
    "n_draws",
    "n_refits",
    "n_permutations",
    "seed",
)
"""The arguments of ``noisyica compare`` that a run does not decide."""


def compare(
    data: Data, groups: str, comparing: Comparing, estimators: dict[str, NoisyICA], seed: int
) -> None:
    """Compare groups of rows in each of the models, and print what comes out under its name."""
    label, between = _labels(data, groups, comparing.between)
    covariates = _covariates(data, comparing.covariates, comparing.categorical)
    for name, estimator in estimators.items():
        comparison = compare_groups(
            data.X,
            label,
            estimator,
            between=between,
            covariates=covariates,
            n_draws=comparing.n_draws,
            n_refits=comparing.n_refits,
            n_permutations=comparing.n_permutations,
            random_state=seed,
        )
        typer.echo(f"{name}: {comparison!r}\n{comparison.table()}")
    print_assumptions("The p-values assume", data.X)


def _labels(
    data: Data, groups: str, between: str | None
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return the labels of all rows, and which ones to compare, if that was said."""
    label = labels(data, groups)
    if between is None:
        missing = np.flatnonzero([_is_missing(value) for value in label.tolist()])
        if missing.size:
            raise ValueError(
                f"{groups} has no label in {missing.size} of its rows, such as row "
                f"{missing[0] + 1}: give these rows a label, or say which groups to compare, such "
                "as --between control,patient."
            )
        return label, None
    names = _names(between)
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"--between {between!r}: give two labels or more, separated by commas, such as "
            "control,patient."
        )
    return label.astype(str), tuple(names)


def _covariates(
    data: Data, covariates: str | None, categorical: str | None
) -> dict[str, np.ndarray] | None:
    """Return the values of each covariate: numbers, or text if it is a category."""
    kinds = [] if categorical is None else _names(categorical)
    values = {} if covariates is None else {name: labels(data, name) for name in _names(covariates)}
    for name in kinds:
        if name not in values:
            raise ValueError(
                f"--categorical {name}: it is not among --covariates, which are "
                f"{', '.join(values) or 'not given'}."
            )
    return {name: _values(name, column, name in kinds) for name, column in values.items()} or None


def _values(name: str, column: np.ndarray, categorical: bool) -> np.ndarray:
    """Return numbers if all values are numbers, and text if none is; missing ones are None or NaN.

    What stands for a missing value in a table stands for one in a file of text, too.
    """
    texts = np.empty(len(column), dtype=object)
    for i, value in enumerate(column.tolist()):
        texts[i] = None if _is_missing(value) else str(value).strip()
    given = [i for i, text in enumerate(texts) if text is not None]
    words = [i for i in given if not _is_number(texts[i])]
    if categorical or len(words) == len(given):
        return texts
    if words:
        raise ValueError(
            f"{texts[words[0]]!r} in row {words[0] + 1} of {name} is no number: mend it, or name "
            "the column in --categorical."
        )
    return texts.astype(float)


def _is_missing(value: Any) -> bool:
    """Return whether a value is missing, or text that stands for a missing one."""
    return is_missing(value) or str(value).strip().lower() in MISSING


def _is_number(text: str) -> bool:
    """Return whether text is a number; Python takes 1_2 for one, too."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _names(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in text.split(",")]


def show_selection(selection: Selection, X: np.ndarray) -> None:
    """Print the table of a selection among fits to X, and what was chosen."""
    table, criterion, best = _columns(selection), selection.criterion, selection.best_
    headings = {name: SELECTION_HEADINGS[name] for name in SELECTION_HEADINGS if name in table}
    print_table(
        {heading: table[name] for name, heading in headings.items()},
        expendable=[name for name in EXPENDABLE if name.lower() != criterion],
    )
    p = len(best.components_)
    typer.echo(
        f"Chosen by {criterion}: {p} components, {best.prior_!r}, "
        f"noise variance {np.mean(best.noise_variance_):.4g}."
    )
    if selection.edge_ is not None:
        other = "larger" if selection.edge_ == "largest" else "smaller"
        typer.echo(
            f"{p} is the {selection.edge_} number of components tried: a {other} one may be "
            "better. Try more with -p."
        )
    print_assumptions("The criterion assumes", X)


def _columns(selection: Selection) -> dict[str, list[Any]]:
    """The columns of a selection's table by name."""
    return {name: list(selection.table_[name]) for name in selection.table_}


def write_selection(selection: Selection, folder: Path) -> None:
    """Write the table, the picture and the best model of a selection to a folder."""
    import matplotlib

    table = _columns(selection)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in ("table.csv", "selection.png", "model.npz")]
    with paths[0].open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    matplotlib.use("agg")  # there is no window to draw on
    figure: Any = selection.plot().figure
    figure.savefig(paths[1], dpi=150)
    selection.best_.save(paths[2])
    typer.echo(f"Wrote {paths[0]}, {paths[1]} and {paths[2]}.")
