"""The folder that a fit from the command line leaves.

| file | what it is |
|---|---|
| ``run.json`` | where the data came from, options, versions, and how far the run got |
| ``model.npz`` | the fitted estimator (:meth:`noisyica.NoisyICA.load`) |
| ``history.csv`` | one line per iteration |
| ``coefficients.npz``, ``.csv`` or ``.parquet`` | the coefficients' posterior means, and ids |
| ``maps.nii.gz`` | where rows are voxels: the coefficients, one volume per component |
| ``components/`` | the mean and the components in the format of the data |
| ``report.html`` | all of it to look at |
| ``checkpoint.npz`` | while the run is not finished: how far it has got |

Where the prior of the components has an atom at zero, ``components/`` also has the probabilities
that their entries are not zero.

One process at a time writes to the folder (:mod:`noisyica.app.place`). Every file is written as a
whole or not at all. Whenever a run is interrupted, what is in the folder can be read, and
:func:`resume` continues to the result that an undisturbed run would have had.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import re
import shutil
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica import data as readers
from noisyica import report
from noisyica.app.place import REPLACED, Place
from noisyica.app.record import (
    CHECKPOINT,
    COEFFICIENTS,
    COMPONENTS,
    HISTORY,
    MAPS,
    MODEL,
    REPORT,
    TABLES,
    Record,
    Source,
)
from noisyica.data import Data, Lines, Volume, storage
from noisyica.data.files import need
from noisyica.data.held import Held
from noisyica.data.writing import write_volumes
from noisyica.engine.settings import check_settings
from noisyica.estimator import NoisyICA, fit_and_keep_checkpoint
from noisyica.priors import DENSITY
from noisyica.rows.neighbours import smooth_over

VOLUMES = ".nii.gz"
SMOOTH = "smooth"
"""The mixing prior of the command line that needs the layout of the data."""


class Outcome(NamedTuple):
    """A run as far as it has got."""

    folder: Path
    estimator: NoisyICA
    record: Record


def start(
    source: Source,
    settings: dict[str, Any],
    folder: Path,
    table: str = "npz",
    page: bool = True,
    overwrite: bool = False,
) -> Outcome:
    """Fit the data and leave everything in a new folder.

    Nothing is left if the data or the settings are refused. ``table`` is the format of the
    coefficients, ``page`` says whether to make a report, and ``overwrite`` allows to replace a run.
    """
    if table not in TABLES:
        raise ValueError(f"Coefficients are written as {', '.join(TABLES)}, not as {table!r}.")
    if table == "parquet":
        need("pyarrow", "parquet")
    neighbours_later = settings | (
        {"mixing_prior": "normal"} if settings.get("mixing_prior") == SMOOTH else {}
    )
    check_settings(NoisyICA(**neighbours_later))
    with Place(folder) as place:
        place.refuse_occupied(overwrite)
        data = source.read_or_open()
        _with_neighbours(settings, data)  # refuses data that have none
        record = _new_record(source, settings, table, page, data)
        place.begin(record)
        return _continue(folder, record, data)


def resume(folder: Path) -> Outcome:
    """Continue an interrupted run from its last checkpoint; a complete one stays as it is."""
    if not (folder / REPLACED).is_dir():
        record = Record.read(folder)
        if record.status == "complete":
            return Outcome(folder, NoisyICA.load(folder / MODEL), record)
    with Place(folder) as place:
        record = place.resume()
        return _continue(folder, record, _read_same_data(record))


def model_and_data(folder: Path) -> tuple[NoisyICA, Data, Record]:
    """Return the model of a run as far as it has got, its data, and its record."""
    record = Record.read(folder)
    if not (folder / MODEL).is_file():
        raise ValueError(
            f"{folder} has no {MODEL} yet: 'noisyica fit --resume {folder}' continues the run."
        )
    return NoisyICA.load(folder / MODEL), _read_same_data(record), record


def write_report(folder: Path, path: Path | None = None) -> Path:
    """Make the report of a run (again), and return the path of its file."""
    estimator, data, record = model_and_data(folder)
    _learn_errors(estimator, data)
    path = folder / REPORT if path is None else path
    report.write(path, estimator, data, estimator.transform(data.X), record.for_report())
    return path


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that a result may depend on."""
    packages = ("noisyica", "jax", "jaxlib", "numpy", "scipy", "scikit-learn")
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
    }


FOR_DEVELOPERS = ("dev", "docs", "neighbours", "release")
"""Extras that no user needs."""


def extras() -> dict[str, str]:
    """The optional packages by the extra that installs them, with the versions that are there."""
    version_of_extra: dict[str, str] = {}
    for requirement in metadata.requires("noisyica") or []:
        name, _, extra = requirement.partition("; extra == ")
        extra, package = extra.strip("'\""), re.split(r"[<>=!~ [;]", name)[0]
        if extra in ("", "io", *FOR_DEVELOPERS) or package == "noisyica":
            continue
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            version = "not installed"
        if package == extra or f"{extra} (extra)" not in version_of_extra:
            version_of_extra[f"{extra} (extra)"] = f"{package} {version}"
    return version_of_extra


def write_coefficients(path: Path, beta: np.ndarray, data: Data, names: Any) -> None:
    """Write the coefficients of rows in the format that the ending of the path says.

    Tables have the ids of the rows, too. Volumes are for rows that are voxels.
    """
    ids = np.asarray(data.ids, str)
    if path.name.lower().endswith(VOLUMES):
        stem = path.with_name(path.name[: -len(VOLUMES)])
        write_volumes(beta.T.astype(np.float32), _places(data, path), stem)
    elif path.suffix == ".npz":
        with storage.whole(path) as file:
            np.savez(file, coefficients=beta, ids=ids, names=np.asarray(names, str))
    elif path.suffix == ".npy":
        with storage.whole(path) as file:
            np.save(file, beta)
    else:
        readers.write_table(path, beta, ids, [str(name) for name in names])


def check_like(path: Path, rows: Data, estimator: NoisyICA) -> None:
    """Refuse voxels with other numbers of volumes than the model has, in words of volumes."""
    count, d = rows.X.shape[1], estimator.components_.shape[1]
    if rows.places is not None and count != d:
        raise ValueError(
            f"{path} has {count} volumes, and the model {d} columns. If these are time points, "
            "give a file with as many; if they are voxels, read volumes as rows (ica temporal)."
        )


# ---------------------------------------------------------------------------------- private


def _new_record(
    source: Source, settings: dict[str, Any], table: str, page: bool, data: Data
) -> Record:
    """The record of a run that begins now; that voxels are rows is told, asked for or not."""
    options = {name: _absolute(value) for name, value in source.options.items()}
    options |= {"ica": "spatial"} if data.places is not None else {}
    return Record(
        status="running",
        source=Source(_absolute(source.path), options),
        settings=settings,
        table=table,
        page=page,
        shape=(int(data.X.shape[0]), int(data.X.shape[1])),
        fingerprint=readers.fingerprint(data.X),
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def _continue(folder: Path, record: Record, data: Data) -> Outcome:
    """Take a run from wherever it stands to its end, or to an interruption by Ctrl-C."""
    begun = time.monotonic()

    def reached(status: str) -> Record:
        seconds = round(record.seconds + time.monotonic() - begun, 2)
        updated = record._replace(status=status, seconds=seconds)
        updated.write(folder)
        return updated

    if record.status == "complete":
        return Outcome(folder, NoisyICA.load(folder / MODEL), record)
    if record.status == "fitted":
        estimator = NoisyICA.load(folder / MODEL)
    else:
        estimator, interrupted = _fit(folder, record, data)
        updated = reached("interrupted" if interrupted else "fitted")
        if interrupted:
            return Outcome(folder, estimator, updated)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    beta, names = estimator.transform(data.X), estimator.get_feature_names_out()
    write_coefficients(folder / f"{COEFFICIENTS}.{record.table}", beta, data, names)
    if data.places is not None:
        write_coefficients(folder / MAPS, beta, data, names)
    _write_components(folder / COMPONENTS, estimator, data, record.source.path)
    if record.page:
        _learn_errors(estimator, data)
        report.write(folder / REPORT, estimator, data, beta, reached("fitted").for_report())
    return Outcome(folder, estimator, reached("complete"))


def _fit(folder: Path, record: Record, data: Data) -> tuple[NoisyICA, bool]:
    """Fit and write the model and its history; also say whether Ctrl-C ended the fit early."""
    settings = _with_neighbours(record.settings, data)
    estimator = NoisyICA(**settings, checkpoint=folder / CHECKPOINT)
    interrupted = False
    try:
        fit_and_keep_checkpoint(estimator, data.X)
    except KeyboardInterrupt:
        if not hasattr(estimator, "components_"):
            raise
        interrupted = True
    estimator.checkpoint = None
    (folder / REPORT).unlink(missing_ok=True)  # it may show an earlier, interrupted model
    estimator.save(folder / MODEL)
    _write_history(folder / HISTORY, estimator.history_)
    return estimator, interrupted


def _with_neighbours(settings: dict[str, Any], data: Data) -> dict[str, Any]:
    """Return the settings of a fit to these data, whose layout says what smooth components are."""
    if settings.get("mixing_prior") != SMOOTH:
        return settings
    return settings | {"mixing_prior": smooth_over(data.layout)}


def _learn_errors(estimator: NoisyICA, data: Data) -> None:
    """Compute the standard errors of the components of a table, which its report shows.

    They need all rows in memory, and are left out where these are larger, and where the prior has
    no density of which they could be told.
    """
    table = isinstance(data.layout, Lines) and not data.layout.signal
    if (
        table
        and DENSITY.of(estimator.prior_)
        and not isinstance(data.X, Held)
        and not hasattr(estimator, "standard_errors_")
    ):
        estimator.standard_errors(data.X)


def _places(data: Data, path: Path) -> Volume:
    """Return the volume whose voxels the rows are, or raise a ValueError if they are none."""
    if data.places is None:
        raise ValueError(f"{path.name}: only the coefficients of voxels are written as volumes.")
    return data.places


def _absolute(value: Any) -> Any:
    """A path made absolute; links stay, since what they point to may have another ending."""
    return Path(os.path.abspath(value)) if isinstance(value, Path) else value


def _read_same_data(record: Record) -> Data:
    """Read the data of a run again, and raise a ValueError if they have changed."""
    data = record.source.read_or_open()
    if readers.fingerprint(data.X) != record.fingerprint:
        raise ValueError(
            f"{record.source.path} has changed since the run began: "
            "the run cannot continue with other data."
        )
    return data


def _write_history(path: Path, history: dict[str, np.ndarray]) -> None:
    """Write the history as a table with one line per iteration and one column per number."""
    columns: dict[str, np.ndarray] = {}
    for name, values in history.items():
        flat = values.reshape(len(values), -1)
        names = (
            [name]
            if values.ndim == 1
            else [f"{name}_{'_'.join(map(str, i))}" for i in np.ndindex(*values.shape[1:])]
        )
        columns |= dict(zip(names, flat.T, strict=True))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    with storage.whole(path) as file:
        file.write(text.getvalue().encode())


def _write_components(folder: Path, estimator: NoisyICA, data: Data, source: Path) -> None:
    """Write the mean and the components in the format of the data, replacing the folder at once.

    If it is known with which probability each entry is not zero, this is written in the same way.
    """
    unfinished = folder.with_name(f".{folder.name}{storage.TEMPORARY}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    names = [str(name) for name in estimator.get_feature_names_out()]
    maps = np.vstack([estimator.mean_, estimator.components_])
    readers.write(maps, data.layout, unfinished / "components", ["mean", *names], like=source)
    if hasattr(estimator, "components_probability_"):
        maps, stem = estimator.components_probability_, unfinished / "components_probability"
        readers.write(maps, data.layout, stem, names, like=source)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
