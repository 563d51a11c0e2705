"""The command ``noisyica reproduce``."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from noisyica.paper import NAMES

if TYPE_CHECKING:
    from noisyica.paper.common import Settings


def reproduce(
    name: Annotated[str, typer.Argument(help=f"Which experiment: {', '.join(NAMES)}, or all.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the pages, tables and figures.")
    ] = Path("noisyica-paper"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Minutes instead of hours: fewer repeats, iterations and sizes."
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the real data (USPS, Caltech faces, hippocampi); stand-ins are used for what it lacks."
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Repeats of each case, instead of the experiment's own number."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes. Times are always measured in one.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first repeat.")] = 0,
) -> None:
    """Run an experiment of the paper and write a page with the paper's figures beside ours.

    Finished cases are kept in OUTPUT/.cache: a run that was broken off goes on where it was.

    Example: noisyica reproduce images --quick -o results
    """
    from noisyica.paper.common import Settings

    try:
        _reproduce(name, Settings(quick, data, repeats, jobs, seed, output / ".cache"), output)
    except (ValueError, TypeError, OSError, ImportError) as error:
        Console(stderr=True).print(f"[red]Error:[/red] {error}", highlight=False)
        raise typer.Exit(1) from None


def _reproduce(name: str, settings: Settings, output: Path) -> None:
    from noisyica.paper import page

    if name not in (*NAMES, "all"):
        raise ValueError(f"There is no experiment {name!r}: give {', '.join(NAMES)} or all.")
    if settings.data is not None and not settings.data.exists():
        raise ValueError(
            f"There is no folder {settings.data}: --data takes the folder with the real data."
        )
    for each in NAMES if name == "all" else (name,):
        typer.echo(f"{each} ...")
        found = importlib.import_module(f"noisyica.paper.{each}").run(settings)
        typer.echo(page.claims(found.claims).replace("**", ""))
        typer.echo(f"Wrote {', '.join(map(os.fspath, page.write(each, found, settings, output)))}.")
    typer.echo(f"Wrote {page.write_index(output)}.")
