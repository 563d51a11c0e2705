"""Groups of options that several commands have, and how typer is told of them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from noisyica import priors
from noisyica.app.runs import Source

READING, LEARNING = "Reading the data", "Learning"


def reading(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=READING)


def learning(text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=LEARNING, **more)


def sizes(text: str | None) -> tuple[int, ...] | None:
    """The numbers of "16x16" or "16,16"."""
    if text is None:
        return None
    try:
        found = tuple(int(part) for part in text.lower().replace(",", "x").split("x"))
    except ValueError:
        raise ValueError(f"{text!r} is not a size: give height x width, such as 16x16.") from None
    if min(found) < 1:
        raise ValueError(f"{text!r} is not a size: heights and widths are at least 1.")
    return found


@dataclass
class Reading:
    """How a file or folder is read: what :func:`noisyica.data.read` takes."""

    array: Annotated[
        str | None, reading("Which array of a .npz, .mat, HDF5 or Zarr holds the rows.")
    ] = None
    id_column: Annotated[str | None, reading("Which column of a table holds the rows' names.")] = (
        None
    )
    columns: Annotated[
        str | None, reading("Which columns of a table are data: names with commas between.")
    ] = None
    shape: Annotated[str | None, reading("Rows are images of this size, such as 16x16.")] = None
    mesh: Annotated[
        Path | None,
        reading("A surface whose vertices the columns are: GIFTI, VTK, PLY, OBJ or .npz."),
    ] = None
    mask: Annotated[
        Path | None, reading("A NIfTI volume: voxels that are not 0 are the columns.")
    ] = None
    patch_size: Annotated[
        int | None, reading("Cut images into square patches of so many pixels.")
    ] = None
    stride: Annotated[int | None, reading("Pixels from one patch to the next.")] = None
    colour: Annotated[bool, reading("Keep the images' colours.")] = False
    size: Annotated[str | None, reading("Resize images to this size, such as 64x64.")] = None
    centre_patches: Annotated[bool, reading("Remove each patch's mean.")] = False

    def source(self, path: Path) -> Source:
        """The file, with the options that were given."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["shape"], values["size"] = sizes(self.shape), sizes(self.size)
        values["columns"] = (
            None if self.columns is None else [name.strip() for name in self.columns.split(",")]
        )
        return Source(
            path,
            {
                name: value
                for name, value in values.items()
                if value is not None and value is not False
            },
        )


@dataclass
class Learning:
    """The settings of :class:`noisyica.NoisyICA`, under the same names."""

    n_components: Annotated[
        str, learning("Number of components, or auto.", "--n-components", "-p")
    ] = "auto"
    prior: Annotated[str, learning(f"One of {', '.join(priors.TABLE)}.")] = "bg"
    algorithm: Annotated[str, learning("saem, mcem, em, fam-em or sem.")] = "saem"
    sampler: Annotated[str, learning("gibbs or metropolis.")] = "gibbs"
    mean: Annotated[str, learning("free, zero, shift or offset.")] = "free"
    noise: Annotated[str, learning("isotropic or diagonal.")] = "isotropic"
    mixing_prior: Annotated[str, learning("normal, or none for maximum likelihood.")] = "normal"
    init: Annotated[str, learning("auto, pca, fastica or random.")] = "auto"
    n_init: Annotated[int, learning("Starts, of which the likeliest is kept.", min=1)] = 1
    n_draws: Annotated[int, learning("Sweeps an iteration of mcem.", min=1)] = 10
    burn_in: Annotated[float, learning("Share of the iterations with step 1.", min=0, max=1)] = 0.5
    kappa: Annotated[float, learning("The step falls as t^-kappa.", min=0.5, max=1)] = 0.9
    max_iter: Annotated[int, learning("Most iterations.", min=1)] = 1000
    tol: Annotated[float, learning("When to stop; 0: after all iterations.", min=0)] = 1e-3
    dtype: Annotated[str, learning("float32 or float64.")] = "float32"
    transform_algorithm: Annotated[
        str, learning("Coefficients: mean, or map for the most probable ones.")
    ] = "mean"
    boundaries: Annotated[bool, learning("Truncate on random boundaries.")] = False
    random_state: Annotated[
        int,
        learning("Decides everything random.", "--random-state", "--seed", min=0, max=2**32 - 1),
    ] = 0

    def settings(self) -> dict[str, Any]:
        """What NoisyICA takes."""
        values = dataclasses.asdict(self)
        if self.n_components != "auto":
            try:
                values["n_components"] = int(self.n_components)
            except ValueError:
                raise ValueError(
                    f"--n-components {self.n_components!r} is neither a number nor auto."
                ) from None
        values["mixing_prior"] = None if self.mixing_prior.lower() == "none" else self.mixing_prior
        return values


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command as typer takes it: a parameter that is a group of options (a dataclass) becomes those options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            parameters.append(
                parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )
            continue
        kinds = get_type_hints(groups[name], include_extras=True)
        for field in dataclasses.fields(groups[name]):
            kind = {"default": field.default, "annotation": kinds[field.name]}
            parameters.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, **kind))

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
