"""The command ``noisyica reproduce``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from noisyica.paper import NAMES

if TYPE_CHECKING:
    from noisyica.paper.common import Options


def reproduce(
    name: Annotated[str, typer.Argument(help=f"The experiment: {', '.join(NAMES)}, or all.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for the pages, tables and figures."),
    ] = Path("noisyica-paper"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Take minutes instead of hours, with fewer repeats, iterations and sizes.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The folder with the real data (USPS, Caltech faces, hippocampi). "
            "Stand-ins are used for what it lacks."
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1, help="The number of repeats of each case, instead of the experiment's own."
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            min=1, help="The number of processes. Times are always measured in a single one."
        ),
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="The random seed of the first repeat.")] = 0,
    rewrite: Annotated[
        bool,
        typer.Option(
            "--rewrite",
            help="Run nothing: write the sentences, the tables and the charts of the pages in "
            "OUTPUT anew, from their tables (CSV).",
        ),
    ] = False,
) -> None:
    """Run an experiment of the paper, and write a page with the paper's numbers beside ours.

    Finished cases are kept in OUTPUT/.cache: an interrupted run goes on where it stopped, as long
    as the code of noisyica is the same. Edited code computes everything anew.

    Example: noisyica reproduce images --quick -o results
    """
    from noisyica.paper.common import Options

    with _errors_of_one_line():
        if rewrite:
            _rewrite(name, output)
        else:
            _reproduce(name, Options(quick, data, repeats, jobs, seed, output / ".cache"), output)


@contextmanager
def _errors_of_one_line() -> Iterator[None]:
    """Say what went wrong in one line, and exit."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        Console(stderr=True).print(f"[red]Error:[/red] {error}", highlight=False)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted: the same command goes on where it stopped.")
        raise typer.Exit(130) from None


def _reproduce(name: str, options: Options, output: Path) -> None:
    """Run one experiment or all of them, and write their pages and the index."""
    from noisyica.paper import page

    if options.data is not None and not options.data.exists():
        raise ValueError(
            f"There is no folder {options.data}: --data takes the folder with the real data."
        )
    for experiment in _chosen(name):
        typer.echo(f"{experiment} ...")
        result = importlib.import_module(f"noisyica.paper.{experiment}").run(options)
        typer.echo(page.claims(result.claims).replace("**", ""))
        written = page.write(experiment, result, options, output)
        typer.echo(f"Wrote {', '.join(map(os.fspath, written))}.")
    typer.echo(f"Wrote {page.write_index(output)}.")


def _rewrite(name: str, output: Path) -> None:
    """Write the pages that are there, and the index, anew from their tables."""
    from noisyica.paper import page

    there = [experiment for experiment in _chosen(name) if (output / f"{experiment}.csv").is_file()]
    if not there:
        raise ValueError(f"{output} has no table of {name}: run the experiment first.")
    for experiment in there:
        typer.echo(f"Wrote {', '.join(map(os.fspath, page.renew(experiment, output)))}.")
    typer.echo(f"Wrote {page.write_index(output)}.")


def _chosen(name: str) -> tuple[str, ...]:
    """Return the names of the experiments that a name stands for."""
    if name not in (*NAMES, "all"):
        raise ValueError(f"There is no experiment {name!r}: give {', '.join(NAMES)} or all.")
    return NAMES if name == "all" else (name,)
