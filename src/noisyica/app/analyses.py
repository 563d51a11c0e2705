"""What ``noisyica compare`` and ``noisyica select`` do with their options."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import typer

from noisyica.analysis.groups import compare_groups
from noisyica.analysis.labels import listed
from noisyica.analysis.selection import Selection
from noisyica.app.printing import (
    EXPENDABLE,
    SELECTION_HEADINGS,
    print_assumptions,
    print_table,
)
from noisyica.data import Data, labels
from noisyica.estimator import NoisyICA

OPTIONS_BESIDE_A_RUN = (
    "data",
    "groups",
    "between",
    "n_draws",
    "n_refits",
    "n_permutations",
    "seed",
)
"""The arguments of ``noisyica compare`` that a run does not decide."""


def compare(
    data: Data,
    groups: str,
    between: str | None,
    estimators: dict[str, NoisyICA],
    n_draws: int,
    n_refits: int,
    n_permutations: int,
    seed: int,
) -> None:
    """Compare two groups of rows in each of the models, and print what comes out under its name."""
    label, two = _labels(data, groups, between)
    for name, estimator in estimators.items():
        comparison = compare_groups(
            data.X,
            label,
            estimator,
            between=two,
            n_draws=n_draws,
            n_refits=n_refits,
            n_permutations=n_permutations,
            random_state=seed,
        )
        typer.echo(f"{name}: {comparison!r}\n{comparison.table()}")
    print_assumptions("The p-values assume", data.X)


def _labels(
    data: Data, groups: str, between: str | None
) -> tuple[np.ndarray, tuple[str, str] | None]:
    """Return the labels of all rows, and which two to compare, if that was said."""
    label = labels(data, groups)
    if between is None:
        kinds = list(dict.fromkeys(label.tolist()))
        if len(kinds) > 2:
            raise ValueError(
                f"{groups} has {len(kinds)} kinds of labels ({listed(kinds)}), but two can be "
                f"compared: choose them, such as --between {kinds[0]},{kinds[1]}."
            )
        return label, None
    names = [name.strip() for name in between.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise ValueError(
            f"--between {between!r}: give two labels, separated by a comma, such as "
            "control,patient."
        )
    return label.astype(str), (names[0], names[1])


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
