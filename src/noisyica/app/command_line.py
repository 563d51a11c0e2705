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
from jax.errors import JaxRuntimeError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import noisyica
from noisyica import priors
from noisyica.app import runs
from noisyica.app.options import Learning, Reading, grouped
from noisyica.estimator import NoisyICA
from noisyica.paper.command import reproduce

app = typer.Typer(
    help="Probabilistic (noisy) independent component analysis.",
    no_args_is_help=True,
    add_completion=False,
)


DATA = Annotated[Path, typer.Argument(help="A file or folder of data, a row for each observation.")]
RUN = Annotated[Path, typer.Argument(help="The folder of a run.")]
PRIORS = Annotated[
    str, typer.Option(help=f"One or several of {', '.join(priors.TABLE)}, with commas between.")
]
MEAN = Annotated[str, typer.Option(help="free, zero, shift or offset.")]
MAX_ITER = Annotated[int, typer.Option(min=1, help="Iterations.")]
SEED = Annotated[
    int,
    typer.Option(
        "--random-state", "--seed", min=0, max=2**32 - 1, help="Decides everything random."
    ),
]


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Probabilistic (noisy) independent component analysis."""
    if version:
        typer.echo(f"noisyica {noisyica.__version__}")
        raise typer.Exit


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the picture and the model.")
    ] = Path("noisyica-demo"),
    n_components: Annotated[
        int, typer.Option("--n-components", "-p", min=1, help="Number of components.")
    ] = 20,
    prior: Annotated[str, typer.Option(help=f"One of {', '.join(priors.TABLE)}.")] = "bg",
    max_iter: MAX_ITER = 400,
    seed: SEED = 0,
) -> None:
    """Fit scikit-learn's digits, say what was found, and draw it.

    Example: noisyica demo --prior et -o my-demo
    """
    from noisyica.app import demo as demonstration

    with _plain_errors():
        demonstration.run(output, n_components, prior, max_iter, seed)


@app.command(no_args_is_help=True)
@grouped
def fit(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Argument(help="A file or folder of data, a row for each observation.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the run.")] = Path(
        "noisyica-run"
    ),
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder, which was interrupted.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the run that is in the folder.")] = False,
    page: Annotated[
        bool, typer.Option("--report/--no-report", help="Whether to make the report, too.")
    ] = True,
    coefficients: Annotated[
        str, typer.Option(help=f"Format of the coefficients: {', '.join(runs.TABLES)}.")
    ] = "npz",
    *,
    reading: Reading,
    learning: Learning,
) -> None:
    """Learn the components of data, and leave model, history, coefficients and a report in a folder.

    Examples:

    noisyica fit signals.csv --prior log -p 8 -o run

    noisyica fit digits.npz --array X_train --shape 16x16 --prior bg -p 20 -o run

    noisyica fit photographs/ --patch-size 13 --stride 12 -p 20 -o run

    noisyica fit --resume run
    """
    with _plain_errors():
        if (data is None) == (resume is None):
            raise ValueError("Give either data to fit, or --resume with the folder of a run.")
        if resume is not None:
            others = [
                name for name in context.params if name != "resume" and _was_given(context, name)
            ]
            if others:
                raise ValueError(
                    f"--resume goes on with the options of the run: leave out {', '.join(others)}."
                )
            outcome = runs.resume(resume)
        else:
            assert data is not None
            outcome = runs.start(
                reading.source(data), learning.settings(), output, coefficients, page, overwrite
            )
        _tell(outcome)
        if outcome.record.status == "interrupted":
            raise typer.Exit(130)


@app.command()
@grouped
def transform(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a saved model (.npz).")],
    data: DATA,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .parquet, .npz or .npy file.")
    ] = Path("coefficients.csv"),
    *,
    reading: Reading,
) -> None:
    """Find the coefficients of new rows.

    Example: noisyica transform run new-signals.csv -o coefficients.csv
    """
    with _plain_errors():
        if output.suffix.lower() not in (".csv", ".parquet", ".npz", ".npy"):
            raise ValueError(
                f"{output.name}: coefficients are written to .csv, .parquet, .npz or .npy."
            )
        estimator = NoisyICA.load(run / runs.MODEL if run.is_dir() else run)
        rows = reading.source(data).read()
        beta = estimator.transform(rows.X)
        runs.write_coefficients(output, beta, rows.ids, estimator.get_feature_names_out())
        typer.echo(f"Wrote {output}: {beta.shape[0]} rows, {beta.shape[1]} coefficients.")


@app.command()
def report(
    run: RUN,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The HTML file; by default report.html in the folder."),
    ] = None,
) -> None:
    """Make the report of a run.

    Example: noisyica report run -o digits.html
    """
    with _plain_errors():
        typer.echo(f"Wrote {runs.write_report(run, output)}.")


@app.command()
def info(
    run: Annotated[
        Path | None, typer.Argument(help="The folder of a run, or a saved model (.npz).")
    ] = None,
) -> None:
    """Say what a run or a model holds; without one, what is installed.

    Example: noisyica info run
    """
    import jax

    with _plain_errors():
        if run is None:
            devices = ", ".join(sorted({str(device.device_kind) for device in jax.devices()}))
            _print_pairs({**runs.versions(), "computes on": devices, **runs.extras()})
        elif run.is_dir():
            record = runs.Record.read(run)
            _print_pairs(
                {
                    "status": record.status,
                    "data": record.source.path,
                    "rows x columns": "{} x {}".format(*record.shape),
                }
            )
            if (run / runs.MODEL).exists():
                _print_pairs(_summary(NoisyICA.load(run / runs.MODEL)))
        else:
            _print_pairs(_summary(NoisyICA.load(run)))


@app.command()
@grouped
def select(
    data: DATA,
    n_components: Annotated[
        str, typer.Option("--n-components", "-p", help="Numbers of components: 5, 2-10, or 2,4,8.")
    ] = "1-10",
    prior: PRIORS = "bg",
    criterion: Annotated[str, typer.Option(help="bic, aic or heldout.")] = "bic",
    mean: MEAN = "free",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for table.csv, selection.png and model.npz."),
    ] = None,
    max_iter: MAX_ITER = 1000,
    seed: SEED = 0,
    *,
    reading: Reading,
) -> None:
    """Choose the number of components and the prior.

    Example: noisyica select signals.csv -p 2-12 --prior bg,log --criterion heldout -o choice
    """
    with _plain_errors():
        X = reading.source(data).read().X
        result = noisyica.select(
            X,
            _numbers(n_components),
            prior.split(","),
            criterion,
            mean=mean,
            max_iter=max_iter,
            random_state=seed,
        )
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
            typer.echo(
                f"Wrote {output / 'table.csv'}, {output / 'selection.png'} and {output / 'model.npz'}."
            )


@app.command()
@grouped
def compare(
    data: DATA,
    groups: Annotated[
        str,
        typer.Argument(
            help="The rows' groups: a name in the data file (array or column), or a file with a label for each row."
        ),
    ],
    between: Annotated[
        str | None, typer.Option(help="Two labels, such as control,patient, where there are more.")
    ] = None,
    n_components: Annotated[
        int, typer.Option("--n-components", "-p", min=1, help="Number of components.")
    ] = 5,
    prior: PRIORS = "bg",
    n_draws: Annotated[int, typer.Option(min=1, help="Posterior draws of the coefficients.")] = 50,
    n_refits: Annotated[int, typer.Option(min=1, help="Fits from different seeds.")] = 1,
    n_permutations: Annotated[int, typer.Option(min=1, help="Permutations of the labels.")] = 1000,
    max_iter: MAX_ITER = 1000,
    seed: SEED = 0,
    *,
    reading: Reading,
) -> None:
    """Test whether two groups of rows differ in their coefficients, for one prior or several.

    Example: noisyica compare hippocampi.npz label --array log_jacobian --between control,patient --prior bg,te
    """
    from noisyica.data import labels

    with _plain_errors():
        rows = reading.source(data).read()
        X, label = rows.X, labels(rows, groups)
        if between is not None:
            two = [name.strip() for name in between.split(",")]
            wanted = np.isin(label.astype(str), two)
            X, label = X[wanted], label[wanted]
        for name in prior.split(","):
            estimator = noisyica.NoisyICA(
                n_components, prior=name, max_iter=max_iter, random_state=seed
            )
            counts: dict[str, Any] = {
                "n_draws": n_draws,
                "n_refits": n_refits,
                "n_permutations": n_permutations,
            }
            found = noisyica.compare_groups(X, label, estimator, random_state=seed, **counts)
            typer.echo(f"{name}: {found!r}\n{found.table()}")


app.command(no_args_is_help=True)(reproduce)


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors of the user's making end in one line, not a traceback; warnings, too, are one line."""

    def one_line(message: Any, *_: Any, **__: Any) -> None:
        Console(stderr=True).print(
            f"[yellow]Warning:[/yellow] {escape(str(message))}", highlight=False, soft_wrap=True
        )

    with warnings.catch_warnings():
        warnings.showwarning = one_line
        try:
            yield
        except (ValueError, TypeError, OSError, ImportError, MemoryError, JaxRuntimeError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            Console(stderr=True).print(
                f"[red]Error:[/red] {escape(text)}", highlight=False, soft_wrap=True
            )
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            Console(stderr=True).print("Interrupted.")
            raise typer.Exit(130) from None


def _tell(outcome: runs.Outcome) -> None:
    """Say what was learnt, where it is, and what can be done next."""
    _print_pairs(_summary(outcome.estimator))
    if outcome.record.status == "interrupted":
        typer.echo(f"Interrupted: {outcome.folder / runs.MODEL} has what was learnt so far.")
        typer.echo(
            f"Go on with 'noisyica fit --resume {outcome.folder}'; 'noisyica report {outcome.folder}' shows it as it is."
        )
    else:
        page = f": open {outcome.folder / runs.REPORT} in a browser" if outcome.record.page else ""
        typer.echo(f"Wrote {outcome.folder}{page}.")


def _summary(estimator: NoisyICA) -> dict[str, str]:
    p, d = estimator.components_.shape
    values = {
        name: np.array2string(np.asarray(value), precision=4, threshold=10)
        for name, value in estimator.prior_.parameters.items()
    }
    return {
        "components": f"{p} of {d} columns, {100 * estimator.explained_variance_ratio_.sum():.1f} % of the variance",
        "prior": str(
            estimator.prior if isinstance(estimator.prior, str) else type(estimator.prior_).__name__
        ),
        **values,
        "noise variance": f"{np.mean(estimator.noise_variance_):.4g}",
        "iterations": f"{estimator.n_iter_} ({'converged' if estimator.converged_ else 'not seen to converge'})",
    }


def _print_pairs(pairs: dict[str, Any]) -> None:
    table = Table(box=None, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    for name, value in pairs.items():
        table.add_row(name, escape(str(value)))
    Console().print(table)


def _numbers(text: str) -> list[int]:
    """The integers that "5", "2-10" or "2,4,8" stands for."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            found += range(int(first), int(last or first) + 1)
        except ValueError:
            raise ValueError(
                f"{text!r} is not a list of numbers: give 5, 2-10, or 2,4,8."
            ) from None
    return found


_HEADINGS = {
    "prior": "prior", "n_components": "p", "log_likelihood": "log p(x)", "standard_error": "+-", "aic": "AIC", "bic": "BIC",
    "behind": "behind by", "behind_error": "+-  ", "noise_variance": "noise", "alpha": "alpha", "gamma": "gamma", "converged": "converged",
}  # fmt: skip
"""What is shown of the table on a terminal: it has to fit."""


def _print_table(table: dict[str, list[Any]]) -> None:
    shown = Table(box=None, header_style="bold")
    for name in table:
        shown.add_column(name, justify="left" if name == "prior" else "right", no_wrap=True)
    for row in zip(*table.values(), strict=True):
        shown.add_row(
            *(
                "" if value != value else f"{value:.5g}" if isinstance(value, float) else str(value)
                for value in row
            )
        )
    Console().print(shown)


if __name__ == "__main__":
    app()
