"""What commands print: tables, a summary of a fit, and errors and warnings in one line each."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from noisyica.app.record import MODEL, REPORT, Record

if TYPE_CHECKING:
    from noisyica.app.runs import Outcome
    from noisyica.estimator import NoisyICA

SELECTION_HEADINGS = {
    "prior": "prior",
    "n_components": "p",
    "log_likelihood": "log p(x)",
    "standard_error": "+-",
    "aic": "AIC",
    "bic": "BIC",
    "behind": "behind by",
    "behind_error": "+-  ",
    "noise_variance": "noise",
    "alpha": "alpha",
    "gamma": "gamma",
    "converged": "converged",
}
"""The columns of a selection's table that are printed, with their headings."""
EXPENDABLE = ("gamma", "alpha", "noise", "AIC", "+-", "log p(x)", "BIC", "converged")
"""The headings of a selection's table in the order in which they are left out on narrow terminals.

The criterion by which the choice was made is never left out."""
WIDE = 10_000
"""The number of columns of what is not a terminal: a file is not as narrow as one."""


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Print errors that the user can do something about, and warnings, in one line each.

    After such an error the exit code is 1, and after Ctrl-C it is 130. Other errors are defects of
    this library and keep their traceback.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        # What JAX cannot read from or write to its cache of compiled code is compiled again.
        warnings.filterwarnings("ignore", "Error .* persistent compilation cache", UserWarning)
        try:
            yield
        except KeyboardInterrupt:
            Console(stderr=True).print("Interrupted.")
            raise typer.Exit(130) from None
        except Exception as error:
            if not isinstance(error, _expected_errors()):
                raise
            text = " ".join(str(error).split()) or type(error).__name__
            _print_line("[red]Error:[/red]", text)
            raise typer.Exit(1) from None


def _expected_errors() -> tuple[type[Exception], ...]:
    """The errors that bad input and a lack of memory lead to; JAX's own only if it was imported."""
    expected = (ValueError, TypeError, OSError, ImportError, MemoryError)
    return (
        (*expected, sys.modules["jax"].errors.JaxRuntimeError) if "jax" in sys.modules else expected
    )


def _print_warning(message: Any, *_: Any, **__: Any) -> None:
    """Print a warning; the arguments are those of ``warnings.showwarning``."""
    _print_line("[yellow]Warning:[/yellow]", str(message))


def _print_line(label: str, text: str) -> None:
    """Print a label, which may have markup, and a text, in which nothing is markup, to stderr."""
    Console(stderr=True).print(f"{label} {escape(text)}", highlight=False, soft_wrap=True)


def print_outcome(outcome: Outcome) -> None:
    """Say what a run has learnt, where it is, and what can be done next."""
    print_pairs(orientation(outcome.record) | summary(outcome.estimator))
    folder = outcome.folder
    if outcome.record.status == "interrupted":
        typer.echo(f"Interrupted: {folder / MODEL} has what was learnt so far.")
        typer.echo(
            f"'noisyica fit --resume {folder}' continues the run; "
            f"'noisyica report {folder}' shows it as it is."
        )
    else:
        page = f": open {folder / REPORT} in a browser" if outcome.record.page else ""
        typer.echo(f"Wrote {folder}{page}.")


def orientation(record: Record) -> dict[str, str]:
    """What the rows of a series of volumes are, as a pair of name and value; else nothing."""
    n, d = record.shape
    said = {
        "spatial": f"spatial: {n} voxels are the rows, {d} volumes the columns",
        "temporal": f"temporal: {n} volumes are the rows, {d} voxels the columns",
    }
    ica = record.source.options.get("ica")
    return {} if ica is None else {"ICA": said[ica]}


def summary(estimator: NoisyICA) -> dict[str, str]:
    """A fitted estimator in a few pairs of name and value."""
    from noisyica.engine.findings import facts

    return {fact.name: f"{fact.value}, {fact.note}" for fact in facts(estimator, "{:.4g}".format)}


def print_assumptions(who_assumes: str, X: Any) -> None:
    """Say what criteria and p-values assume of the rows X."""
    import numpy as np

    missing = ", and that entries are missing at random" if np.isnan(X).any() else ""
    typer.echo(f"{who_assumes} that rows are independent of each other{missing}.")


def print_pairs(pairs: dict[str, Any]) -> None:
    """Print names in bold, each with its value beside it."""
    table = Table(box=None, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    for name, value in pairs.items():
        table.add_row(name, escape(str(value)))
    _console().print(table)


def print_table(columns: dict[str, list[Any]], expendable: Iterable[str] = ()) -> None:
    """Print columns under their headings; numbers that are missing (NaN) are left blank.

    Where a terminal is too narrow, expendable columns are left out, the first of them first.
    """
    console, left_out = _console(), []
    for name in (*expendable, None):
        table = _table({key: columns[key] for key in columns if key not in left_out})
        room = console.options.update(width=WIDE)
        if name is None or console.measure(table, options=room).maximum <= console.width:
            break
        left_out += [name] if name in columns else []
    console.print(table)
    if left_out:
        typer.echo(f"(The terminal has no room for {', '.join(left_out)}.)")


def _table(columns: dict[str, list[Any]]) -> Table:
    """A table of columns under their headings."""
    table = Table(box=None, header_style="bold")
    for name in columns:
        table.add_column(name, justify="left" if name == "prior" else "right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(_cell, row))
    return table


def _console() -> Console:
    """Standard output; where it is not a terminal nothing is cut or broken into lines."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def _cell(value: Any) -> str:
    """The text of a value in a table."""
    if not isinstance(value, float):
        return str(value)
    return "" if value != value else f"{value:.5g}"
