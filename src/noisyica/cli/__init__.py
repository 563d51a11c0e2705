"""The command line."""

from __future__ import annotations

import contextlib
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

import noisyica
from noisyica import priors

app = typer.Typer(help="Probabilistic (noisy) independent component analysis.", no_args_is_help=True, add_completion=False)


DATA = Annotated[Path, typer.Argument(help=".npy, .npz, .csv, .tsv or .txt: a row for each observation.")]
ARRAY = Annotated[str | None, typer.Option(help="Which array of a .npz holds the rows.")]
PRIORS = Annotated[str, typer.Option(help=f"One or several of {', '.join(priors.TABLE)}, with commas between.")]
MEAN = Annotated[str, typer.Option(help="free, zero, shift or offset.")]
MAX_ITER = Annotated[int, typer.Option(min=1, help="Iterations.")]
SEED = Annotated[int, typer.Option(min=0, help="Decides everything random.")]


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
    max_iter: MAX_ITER = 400,
    seed: SEED = 0,
) -> None:
    """Fit scikit-learn's digits, say what was found, and draw it.

    Example: noisyica demo --prior et -o my-demo
    """
    from noisyica import demo as demonstration

    with _plain_errors():
        demonstration.run(output, n_components, prior, max_iter, seed)


@app.command()
def select(
    data: DATA,
    n_components: Annotated[str, typer.Option("--n-components", "-p", help="Numbers of components: 5, 2-10, or 2,4,8.")] = "1-10",
    prior: PRIORS = "bg",
    criterion: Annotated[str, typer.Option(help="bic, aic or heldout.")] = "bic",
    mean: MEAN = "free",
    array: ARRAY = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for table.csv, selection.png and model.npz.")] = None,
    max_iter: MAX_ITER = 1000,
    seed: SEED = 0,
) -> None:
    """Choose the number of components and the prior.

    Example: noisyica select signals.csv -p 2-12 --prior bg,log --criterion heldout -o choice
    """
    from noisyica.data import read

    with _plain_errors():
        X = read(data, array).X
        result = noisyica.select(X, _numbers(n_components), prior.split(","), criterion, mean=mean, max_iter=max_iter, random_state=seed)
        table = {name: list(result.table_[name]) for name in result.table_}
        _print_table({heading: table[name] for name, heading in _HEADINGS.items() if name in table})
        best = result.best_
        typer.echo(
            f"Chosen by {criterion}: {len(best.components_)} components, {best.prior_!r}, noise variance {best.noise_variance_:.4g}."
        )
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            with (output / "table.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(table)
                writer.writerows(zip(*table.values(), strict=True))
            figure: Any = result.plot().figure
            figure.savefig(output / "selection.png", dpi=150)
            best.save(output / "model.npz")
            typer.echo(f"Wrote {output / 'table.csv'}, {output / 'selection.png'} and {output / 'model.npz'}.")


@app.command()
def compare(
    data: DATA,
    groups: Annotated[
        str, typer.Argument(help="The rows' groups: a name in the data file (array or column), or a file with a label for each row.")
    ],
    between: Annotated[str | None, typer.Option(help="Two labels, such as control,patient, where there are more.")] = None,
    n_components: Annotated[int, typer.Option("--n-components", "-p", min=1, help="Number of components.")] = 5,
    prior: PRIORS = "bg",
    array: ARRAY = None,
    n_draws: Annotated[int, typer.Option(min=1, help="Posterior draws of the coefficients.")] = 50,
    n_refits: Annotated[int, typer.Option(min=1, help="Fits from different seeds.")] = 1,
    n_permutations: Annotated[int, typer.Option(min=1, help="Permutations of the labels.")] = 1000,
    max_iter: MAX_ITER = 1000,
    seed: SEED = 0,
) -> None:
    """Test whether two groups of rows differ in their coefficients, for one prior or several.

    Example: noisyica compare hippocampi.npz label --array log_jacobian --between control,patient --prior bg,te
    """
    from noisyica.data import labels, read

    with _plain_errors():
        rows = read(data, array)
        X, label = rows.X, labels(rows, groups)
        if between is not None:
            two = [name.strip() for name in between.split(",")]
            wanted = np.isin(label.astype(str), two)
            X, label = X[wanted], label[wanted]
        for name in prior.split(","):
            estimator = noisyica.NoisyICA(n_components, prior=name, max_iter=max_iter, random_state=seed)
            counts: dict[str, Any] = {"n_draws": n_draws, "n_refits": n_refits, "n_permutations": n_permutations}
            found = noisyica.compare_groups(X, label, estimator, random_state=seed, **counts)
            typer.echo(f"{name}: {found!r}\n{found.table()}")


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors of the user's making end in one line, not a traceback; warnings, too, are one line."""

    def one_line(message: Any, *_: Any, **__: Any) -> None:
        Console(stderr=True).print(f"[yellow]Warning:[/yellow] {message}", highlight=False)

    with warnings.catch_warnings():
        warnings.showwarning = one_line
        try:
            yield
        except (ValueError, TypeError, OSError, ImportError) as error:
            Console(stderr=True).print(f"[red]Error:[/red] {error}", highlight=False, markup=True)
            raise typer.Exit(1) from None


def _numbers(text: str) -> list[int]:
    """The integers that "5", "2-10" or "2,4,8" stands for."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            found += range(int(first), int(last or first) + 1)
        except ValueError:
            raise ValueError(f"{text!r} is not a list of numbers: give 5, 2-10, or 2,4,8.") from None
    return found


_HEADINGS = {
    "prior": "prior", "n_components": "p", "log_likelihood": "log p(x)", "standard_error": "+-", "aic": "AIC", "bic": "BIC",
    "behind": "behind by", "behind_error": "+-  ", "noise_variance": "noise", "alpha": "alpha", "gamma": "gamma", "converged": "converged",
}  # fmt: skip
"""What is shown of the table on a terminal: it has to fit."""


def _print_table(table: dict[str, list[Any]]) -> None:
    from rich.table import Table

    shown = Table(box=None, header_style="bold")
    for name in table:
        shown.add_column(name, justify="left" if name == "prior" else "right", no_wrap=True)
    for row in zip(*table.values(), strict=True):
        shown.add_row(*("" if value != value else f"{value:.5g}" if isinstance(value, float) else str(value) for value in row))
    Console().print(shown)


if __name__ == "__main__":
    app()
