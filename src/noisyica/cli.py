"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import noisyica
from noisyica import priors

app = typer.Typer(help="Probabilistic (noisy) independent component analysis.", no_args_is_help=True, add_completion=False)


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Probabilistic (noisy) independent component analysis."""
    if version:
        typer.echo(f"noisyica {noisyica.__version__}")
        raise typer.Exit


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture and the model.")] = Path("noisyica-demo"),
    n_components: Annotated[int, typer.Option("--n-components", "-p", min=1, help="Number of components.")] = 20,
    prior: Annotated[str, typer.Option(help=f"One of {', '.join(priors.TABLE)}.")] = "bg",
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything random.")] = 0,
) -> None:
    """Fit scikit-learn's digits, say what was found, and draw it.

    Example: noisyica demo --prior et -o my-demo
    """
    from noisyica import demo as demonstration

    try:
        demonstration.run(output, n_components, prior, max_iter, seed)
    except (ValueError, TypeError, OSError) as error:
        Console(stderr=True).print(f"[red]Error:[/red] {error}", highlight=False)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
