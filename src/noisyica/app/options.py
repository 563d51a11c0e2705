"""Options that several commands have, and how typer is told of groups of them.

Nothing here imports NumPy or JAX, so that ``noisyica --help`` answers at once.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from noisyica.app.record import Source

PRIORS = ("log", "lap", "eg", "ifa", "bg", "ebg", "et", "te", "teoff", "adaptive")
"""The names in ``noisyica.priors.TABLE``, which takes long to import."""
MEANS = "free, zero, shift, shift-after, offset or offset-logistic."
MIXING = (
    "Entries of the components: normal, sparse (zero or normal), nonnegative (zero or positive), "
    "smooth (neighbours are alike: images, volumes, surfaces, signals), or none for maximum "
    "likelihood."
)
SEED_HELP = "Random seed: the same seed gives the same result."
LARGEST_SEED = 2**32 - 1

DataArgument = Annotated[
    Path, typer.Argument(help="A file or folder of data, one row per observation.")
]
RunArgument = Annotated[Path, typer.Argument(help="The folder of a run.")]
RunOrModel = typer.Argument(help="The folder of a run, or a saved model (.npz).")
PriorOption = Annotated[str, typer.Option(help=f"One of {', '.join(PRIORS)}.")]
PriorsOption = Annotated[
    str, typer.Option(help=f"One or several of {', '.join(PRIORS)}, separated by commas.")
]
ComponentsOption = Annotated[
    int, typer.Option("--n-components", "-p", min=1, help="Number of components.")
]
MeanOption = Annotated[str, typer.Option(help=MEANS)]
IterationsOption = Annotated[int, typer.Option(min=1, help="The maximum number of iterations.")]
SeedOption = Annotated[
    int, typer.Option("--random-state", "--seed", min=0, max=LARGEST_SEED, help=SEED_HELP)
]


def reading(text: str) -> Any:
    """An option that is shown among those that say how data are read."""
    return typer.Option(help=text, rich_help_panel="Reading the data")


def learning(text: str, *names: str, **more: Any) -> Any:
    """An option that is shown among those that say how the components are learnt."""
    return typer.Option(*names, help=text, rich_help_panel="Learning", **more)


def parse_size(text: str | None) -> tuple[int, ...] | None:
    """The numbers in a size such as "16x16" or "16,16"; None if there is none."""
    if text is None:
        return None
    try:
        size = tuple(int(part) for part in text.lower().replace(",", "x").split("x"))
    except ValueError:
        raise ValueError(f"{text!r} is not a size: give height x width, such as 16x16.") from None
    if min(size) < 1:
        raise ValueError(f"{text!r} is not a size: heights and widths are at least 1.")
    return size


def parse_numbers(text: str) -> list[int]:
    """The integers that "5", "2-10" or "2,4,8" stands for."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            numbers += range(int(first), int(last or first) + 1)
        except ValueError:
            raise ValueError(
                f"{text!r} is not a list of numbers: give 5, 2-10, or 2,4,8."
            ) from None
    return numbers


def number_or_auto(name: str, text: str) -> int | str:
    """The integer that the option ``name`` was given, or "auto"."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        option = "--" + name.replace("_", "-")
        raise ValueError(f"{option} {text!r} is neither a number nor auto.") from None


@dataclass
class Reading:
    """How a file or folder is read: the options of :func:`noisyica.data.read`."""

    array: Annotated[
        str | None, reading("Which array of a .npz, .mat, HDF5 or Zarr file holds the rows.")
    ] = None
    id_column: Annotated[str | None, reading("Which column of a table holds the rows' names.")] = (
        None
    )
    columns: Annotated[
        str | None, reading("Which columns of a table are data: names separated by commas.")
    ] = None
    shape: Annotated[str | None, reading("Rows are images of this size, such as 16x16.")] = None
    mesh: Annotated[
        Path | None,
        reading("A surface with one vertex per column: GIFTI, VTK, PLY, OBJ or .npz."),
    ] = None
    mask: Annotated[
        Path | None, reading("A NIfTI volume: only voxels in which it is not 0 are read.")
    ] = None
    ica: Annotated[
        str | None,
        reading(
            "For a NIfTI file with several volumes: spatial (rows are voxels, coefficients are "
            "maps; the default) or temporal (rows are volumes)."
        ),
    ] = None
    patch_size: Annotated[
        int | None, reading("Cut images into square patches with sides of this many pixels.")
    ] = None
    stride: Annotated[int | None, reading("Distance from one patch to the next, in pixels.")] = None
    colour: Annotated[bool, reading("Keep the images' colours.")] = False
    size: Annotated[str | None, reading("Resize images to this size, such as 64x64.")] = None
    centre_patches: Annotated[bool, reading("Subtract the mean of each patch.")] = False

    def source(self, path: Path) -> Source:
        """The file or folder, with those options that were given."""
        values = dataclasses.asdict(self)
        values["shape"], values["size"] = parse_size(self.shape), parse_size(self.size)
        if self.columns is not None:
            values["columns"] = [name.strip() for name in self.columns.split(",")]
        given = {
            name: value
            for name, value in values.items()
            if value is not None and value is not False  # 0 is passed on, and refused
        }
        return Source(path, given)


@dataclass
class Learning:
    """The settings of :class:`noisyica.NoisyICA`, under the same names."""

    n_components: Annotated[
        str, learning("Number of components, or auto.", "--n-components", "-p")
    ] = "auto"
    prior: Annotated[str, learning(f"One of {', '.join(PRIORS)}.")] = "bg"
    algorithm: Annotated[str, learning("saem, mcem, em, fam-em or sem.")] = "saem"
    sampler: Annotated[str, learning("gibbs or metropolis.")] = "gibbs"
    mean: Annotated[str, learning(MEANS)] = "free"
    noise: Annotated[str, learning("auto, isotropic, diagonal or student.")] = "auto"
    mixing_prior: Annotated[str, learning(MIXING)] = "normal"
    init: Annotated[str, learning("auto, pca, fastica, varimax or random.")] = "auto"
    n_init: Annotated[
        str,
        learning(
            "Number of starts; the result of highest likelihood is kept. auto is one start. Unless "
            "it is 1, the reliability of components is estimated."
        ),
    ] = "auto"
    n_draws: Annotated[int, learning("Sweeps per iteration of mcem.", min=1)] = 10
    burn_in: Annotated[float, learning("Share of iterations whose step is 1.", min=0, max=1)] = 0.5
    kappa: Annotated[float, learning("Later steps are t^-kappa.", min=0.5, max=1)] = 0.9
    max_iter: Annotated[int, learning("The maximum number of iterations.", min=1)] = 1000
    tol: Annotated[
        float, learning("Tolerated drift when saem stops; 0 runs all iterations.", min=0)
    ] = 1e-3
    dtype: Annotated[str, learning("float32 or float64.")] = "float32"
    transform_algorithm: Annotated[
        str, learning("Coefficients: mean (of the posterior), or map (the most probable ones).")
    ] = "mean"
    device: Annotated[
        str, learning("Where to compute: auto (a GPU if there is one), cpu or gpu.")
    ] = "auto"
    boundaries: Annotated[bool, learning("Truncate on random boundaries.")] = False
    random_state: Annotated[
        int,
        learning(SEED_HELP, "--random-state", "--seed", min=0, max=LARGEST_SEED),
    ] = 0

    def settings(self) -> dict[str, Any]:
        """The arguments of NoisyICA."""
        values = dataclasses.asdict(self)
        for name in ("n_components", "n_init"):
            values[name] = number_or_auto(name, values[name])
        values["mixing_prior"] = None if self.mixing_prior.lower() == "none" else self.mixing_prior
        return values


@dataclass
class Comparing:
    """Which groups are compared given what, and how often."""

    between: Annotated[
        str | None,
        typer.Option(
            help="The labels to compare if there are more, such as control,patient; "
            "the model is learnt from all rows."
        ),
    ] = None
    covariates: Annotated[
        str | None,
        typer.Option(
            help="What else may explain the coefficients, such as age,sex: names of arrays or "
            "columns of the data file, or files with one value per row. Groups are compared at "
            "equal covariates. Text stands for categories."
        ),
    ] = None
    categorical: Annotated[
        str | None,
        typer.Option(help="Those covariates whose numbers stand for categories, such as site."),
    ] = None
    n_draws: Annotated[int, typer.Option(min=1, help="Posterior draws of the coefficients.")] = 50
    n_refits: Annotated[int, typer.Option(min=1, help="Fits from different seeds.")] = 1
    n_permutations: Annotated[int, typer.Option(min=1, help="Permutations of the labels.")] = 1000


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn each parameter that is a group of options (a dataclass) into the options of the group.

    The function that is returned has one parameter per option, as typer wants it; it makes the
    groups of them and calls ``command``.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _parameters_of(groups[name])
        else:
            parameters.append(
                parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        made = {
            name: group(**{f.name: values.pop(f.name) for f in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters_of(group: Any) -> list[inspect.Parameter]:
    """One keyword parameter per field of a group of options."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]
