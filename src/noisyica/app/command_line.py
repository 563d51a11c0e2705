"""The command line: what each command takes, and what it calls.

``noisyica --help`` imports this module, so whatever takes long to import (JAX, NumPy and all that
uses them) is imported inside the commands.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

import noisyica
from noisyica.app.options import (
    Comparing,
    ComponentsOption,
    DataArgument,
    IterationsOption,
    Learning,
    MeanOption,
    PriorOption,
    PriorsOption,
    Reading,
    RunArgument,
    RunOrModel,
    SeedOption,
    grouped,
    parse_numbers,
)
from noisyica.app.printing import (
    one_line_errors,
    orientation,
    print_outcome,
    print_pairs,
    summary,
)
from noisyica.app.record import MODEL, RECORD, TABLES, Record
from noisyica.paper.command import reproduce

app = typer.Typer(
    help="Probabilistic (noisy) independent component analysis.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Probabilistic (noisy) independent component analysis."""
    if version:
        typer.echo(f"noisyica {noisyica.__version__}")
        raise typer.Exit
    # Compiled code is kept (see noisyica.keep_compiled), by this process and by those it starts.
    os.environ.setdefault("NOISYICA_CACHE", "1")


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the picture and the model.")
    ] = Path("noisyica-demo"),
    n_components: ComponentsOption = 20,
    prior: PriorOption = "bg",
    max_iter: IterationsOption = 400,
    seed: SeedOption = 0,
) -> None:
    """Fit scikit-learn's digits, say what was learnt, and draw it.

    Example: noisyica demo --prior et -o my-demo
    """
    with one_line_errors():
        from noisyica.app import demo as demonstration

        demonstration.run(output, n_components, prior, max_iter, seed)


@app.command(no_args_is_help=True)
@grouped
def fit(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Argument(help="A file or folder of data, one row per observation.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the run.")] = Path(
        "noisyica-run"
    ),
    resume: Annotated[
        Path | None, typer.Option(help="Continue the interrupted run in this folder.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the run that is in the folder.")] = False,
    page: Annotated[
        bool, typer.Option("--report/--no-report", help="Whether to make the report, too.")
    ] = True,
    coefficients: Annotated[
        str, typer.Option(help=f"Format of the coefficients: {', '.join(TABLES)}.")
    ] = "npz",
    *,
    reading: Reading,
    learning: Learning,
) -> None:
    """Learn the components of data; write model, history, coefficients and report to a folder.

    Examples:

    noisyica fit signals.csv --prior log -p 8 -o run

    noisyica fit digits.npz --array X_train --shape 16x16 --prior bg -p 20 -o run

    noisyica fit photographs/ --patch-size 13 --stride 12 -p 20 -o run

    noisyica fit --resume run
    """
    with one_line_errors():
        from noisyica.app import runs

        if (data is None) == (resume is None):
            raise ValueError("Give either data to fit, or --resume with the folder of a run.")
        if resume is not None:
            _refuse_options_of_runs(context, ("resume",))
            outcome = runs.resume(resume)
        else:
            assert data is not None
            outcome = runs.start(
                reading.source(data), learning.settings(), output, coefficients, page, overwrite
            )
        print_outcome(outcome)
        if outcome.record.status == "interrupted":
            raise typer.Exit(130)


def _refuse_options_of_runs(context: typer.Context, allowed: Collection[str]) -> None:
    """Raise a ValueError if other options than those allowed were given beside a run."""
    given = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is not None and source.name == "COMMANDLINE":
            given.append(parameter.opts[0])
    if given:
        raise ValueError(f"The run has its own options: leave out {', '.join(given)}.")


@app.command()
@grouped
def transform(
    run: Annotated[Path, RunOrModel],
    data: DataArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .parquet, .npz, .npy or .nii.gz file.")
    ] = Path("coefficients.csv"),
    *,
    reading: Reading,
) -> None:
    """Compute the coefficients of new rows.

    Example: noisyica transform run new-signals.csv -o coefficients.csv
    """
    with one_line_errors():
        from noisyica.app import runs

        if not output.name.lower().endswith((".csv", ".parquet", ".npz", ".npy", ".nii.gz")):
            raise ValueError(
                f"{output.name}: coefficients are written to .csv, .parquet, .npz, .npy or, for "
                "voxels, .nii.gz."
            )
        estimator = noisyica.NoisyICA.load(run / MODEL if run.is_dir() else run)
        rows = reading.source(data).read_or_open()
        runs.check_like(data, rows, estimator)
        beta = estimator.transform(rows.X)
        runs.write_coefficients(output, beta, rows, estimator.get_feature_names_out())
        typer.echo(f"Wrote {output}: {beta.shape[0]} rows, {beta.shape[1]} coefficients.")


@app.command()
def report(
    run: RunArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The HTML file; by default report.html in the folder."),
    ] = None,
) -> None:
    """Make the report of a run.

    Example: noisyica report run -o digits.html
    """
    with one_line_errors():
        from noisyica.app import runs

        typer.echo(f"Wrote {runs.write_report(run, output)}.")


@app.command()
def info(run: Annotated[Path | None, RunOrModel] = None) -> None:
    """Say what a run or a model contains; without one, what is installed.

    Example: noisyica info run
    """
    with one_line_errors():
        if run is None:
            _print_installed()
        elif run.is_dir():
            record = Record.read(run)
            n, d = record.shape
            print_pairs(
                {
                    "status": record.status,
                    "data": record.source.path,
                    "rows x columns": f"{n} x {d}",
                }
                | orientation(record)
            )
            if (run / MODEL).exists():
                print_pairs(summary(noisyica.NoisyICA.load(run / MODEL)))
        else:
            print_pairs(summary(noisyica.NoisyICA.load(run)))


def _print_installed() -> None:
    """Print versions, optional packages, devices, and the folder of compiled code."""
    from noisyica._jax.cache import folder_of_compiled
    from noisyica._jax.device import device_in_use
    from noisyica.app import runs

    compiled = {"computes on": device_in_use(), "compiled code": folder_of_compiled() or "not kept"}
    print_pairs({**runs.versions(), **compiled, **runs.extras()})


@app.command()
@grouped
def select(
    data: DataArgument,
    n_components: Annotated[
        str, typer.Option("--n-components", "-p", help="Numbers of components: 5, 2-10, or 2,4,8.")
    ] = "1-10",
    prior: PriorsOption = "bg",
    criterion: Annotated[str, typer.Option(help="bic, aic or heldout.")] = "bic",
    mean: MeanOption = "free",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for table.csv, selection.png and model.npz."),
    ] = None,
    max_iter: IterationsOption = 1000,
    seed: SeedOption = 0,
    *,
    reading: Reading,
) -> None:
    """Choose the number of components and the prior.

    Example: noisyica select signals.csv -p 2-12 --prior bg,log --criterion heldout -o choice
    """
    with one_line_errors():
        from noisyica.app import analyses

        X = reading.source(data).read().X
        selection = noisyica.select(
            X,
            parse_numbers(n_components),
            prior.split(","),
            criterion,
            mean=mean,
            max_iter=max_iter,
            random_state=seed,
            verbose=2,
        )
        analyses.show_selection(selection, X)
        if output is not None:
            analyses.write_selection(selection, output)


@app.command()
@grouped
def compare(
    context: typer.Context,
    data: Annotated[
        Path,
        typer.Argument(
            help="A file or folder of data, one row per observation; or the folder of a run, "
            "whose model and data are used."
        ),
    ],
    groups: Annotated[
        str,
        typer.Argument(
            help="The groups of the rows: the name of an array or a column of the data file, "
            "or a file with one label per row."
        ),
    ],
    n_components: ComponentsOption = 5,
    prior: PriorsOption = "bg",
    max_iter: IterationsOption = 1000,
    seed: SeedOption = 0,
    *,
    comparing: Comparing,
    reading: Reading,
) -> None:
    """Test whether groups of rows differ in their coefficients, under one prior or several.

    Examples:

    noisyica compare hippocampi.npz label --array log_jacobian --prior bg,te

    noisyica compare run label --between control,patient

    noisyica compare run diagnosis --covariates age,sex,site --categorical site
    """
    with one_line_errors():
        from noisyica.app import analyses, runs

        if (data / RECORD).is_file():
            _refuse_options_of_runs(context, analyses.OPTIONS_BESIDE_A_RUN)
            fitted, rows, record = runs.model_and_data(data)
            estimators = {str(record.settings["prior"]): fitted}
        else:
            rows = reading.source(data).read()
            estimators = {
                name: noisyica.NoisyICA(
                    n_components, prior=name, max_iter=max_iter, random_state=seed
                )
                for name in prior.split(",")
            }
        analyses.compare(rows, groups, comparing, estimators, seed)


app.command(no_args_is_help=True)(reproduce)


if __name__ == "__main__":
    app()
