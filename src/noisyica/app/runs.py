"""The folder that a fit from the command line leaves.

| file | what it is |
|---|---|
| ``run.json`` | where the data came from, options, versions, and how far it got |
| ``model.npz`` | the fitted estimator (:meth:`noisyica.NoisyICA.load`) |
| ``history.csv`` | a line for each iteration |
| ``coefficients.npz``, ``.csv`` or ``.parquet`` | the posterior means of the coefficients, with the rows' names |
| ``components/`` | mean and components in the format of the data |
| ``report.html`` | all of it to look at |
| ``checkpoint.npz`` | while it is not finished: where it stands |

Every file is written aside and then renamed, and ``run.json`` says "complete" only when all are there. So whatever happens, what is in
the folder can be read, and :func:`resume` goes on to the end that an undisturbed run would have had.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import re
import shutil
import time
import uuid
from datetime import UTC, datetime
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisyica import data as readers
from noisyica import report
from noisyica.data import Data, storage
from noisyica.data.files import need
from noisyica.estimator import NoisyICA

RECORD, MODEL, HISTORY, REPORT, CHECKPOINT, COMPONENTS = (
    "run.json", "model.npz", "history.csv", "report.html", "checkpoint.npz", "components",
)  # fmt: skip
COEFFICIENTS = "coefficients"
OWN = (
    RECORD,
    MODEL,
    HISTORY,
    REPORT,
    CHECKPOINT,
    COMPONENTS,
    f"{COEFFICIENTS}.*",
    f".*{storage.TEMPORARY}",
)
"""What a run leaves in its folder."""
TABLES = ("npz", "csv", "parquet")
"""Formats of the coefficients."""


class Source(NamedTuple):
    """A file or folder of data, and how it is to be read."""

    path: Path
    options: dict[str, Any]

    def read(self) -> Data:
        return readers.read(self.path, **self.options)


class Record(NamedTuple):
    """What ``run.json`` holds."""

    status: str  # "running", "interrupted", "fitted" or "complete"
    source: Source
    settings: dict[str, Any]  # of NoisyICA
    table: str
    page: bool  # whether there is to be a report
    shape: tuple[int, int]
    fingerprint: str
    begun: str
    versions: dict[str, str]
    seconds: float = 0.0

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        paths = {
            name: os.fspath(value) if isinstance(value, Path) else value
            for name, value in self.source.options.items()
        }
        return {**self._asdict(), "source": {"path": os.fspath(self.source.path), "options": paths}}

    def shown(self) -> dict[str, Any]:
        """What a report shows of it: the settings are the estimator's, which the report has."""
        plain = self.plain()
        return {
            name: plain[name] for name in ("source", "begun", "seconds", "fingerprint", "versions")
        }

    @classmethod
    def read(cls, folder: Path) -> Record:
        """The record of a run folder, or an error that says what is wrong with it."""
        path = folder / RECORD
        if not path.is_file():
            raise ValueError(f"{folder} is not the folder of a run: it has no {RECORD}.")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            source = Source(Path(found["source"]["path"]), found["source"]["options"])
            return cls(**{**found, "source": source, "shape": tuple(found["shape"])})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is damaged ({error}).") from error

    def write(self, folder: Path) -> None:
        with storage.whole(folder / RECORD) as file:
            file.write(json.dumps(self.plain(), indent=2).encode())


class Outcome(NamedTuple):
    """A run as far as it got."""

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
    """Fit the data and leave everything in a new folder; nothing is left where the data or the settings are refused."""
    if table not in TABLES:
        raise ValueError(f"Coefficients are written as {', '.join(TABLES)}, not as {table!r}.")
    if table == "parquet":
        need("pyarrow", "parquet")
    NoisyICA(**settings)._check_parameters()
    _refuse_occupied(folder, overwrite)
    data = source.read()
    record = Record(
        status="running",
        source=Source(
            _absolute(source.path),
            {name: _absolute(value) for name, value in source.options.items()},
        ),
        settings=settings,
        table=table,
        page=page,
        shape=(int(data.X.shape[0]), int(data.X.shape[1])),
        fingerprint=readers.fingerprint(data.X),
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )
    new, before = not folder.exists(), _aside(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        record.write(folder)
        return _go_on(folder, record, data)
    except BaseException:
        if not _worth_keeping(folder):
            shutil.rmtree(folder, ignore_errors=True)
            if before is not None:
                before.rename(folder)
            elif not new:
                folder.mkdir()
        raise
    finally:
        if before is not None and before.exists():
            shutil.rmtree(before)


def resume(folder: Path) -> Outcome:
    """Go on with a run that did not end, from its last checkpoint; a complete one is left as it is."""
    record = Record.read(folder)
    for leftover in list(folder.glob(f".*{storage.TEMPORARY}")):
        _remove(leftover)
    if record.status == "complete":
        return Outcome(folder, NoisyICA.load(folder / MODEL), record)
    return _go_on(folder, record, _same_data(record))


def write_report(folder: Path, path: Path | None = None) -> Path:
    """Make the report of a run (again)."""
    record = Record.read(folder)
    if not (folder / MODEL).is_file():
        raise ValueError(
            f"{folder} has no {MODEL} yet: 'noisyica fit --resume {folder}' goes on with the run."
        )
    estimator, data = NoisyICA.load(folder / MODEL), _same_data(record)
    path = folder / REPORT if path is None else path
    report.write(path, estimator, data, estimator.transform(data.X), record.shown())
    return path


def versions() -> dict[str, str]:
    """What the result may depend on."""
    packages = ("noisyica", "jax", "jaxlib", "numpy", "scipy", "scikit-learn")
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
    }


def extras() -> dict[str, str]:
    """Which optional libraries are there: by extra, their versions."""
    found: dict[str, str] = {}
    for requirement in metadata.requires("noisyica") or []:
        name, _, extra = requirement.partition("; extra == ")
        extra, package = extra.strip("'\""), re.split(r"[<>=!~ ]", name)[0]
        if extra in ("", "dev", "io") or package == "noisyica":
            continue
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            version = "not installed"
        found[f"{extra} (extra)"] = f"{package} {version}"
    return found


# ------------------------------------------------------------------------------------------------------------ private


def _go_on(folder: Path, record: Record, data: Data) -> Outcome:
    """From wherever the run stands to its end."""
    begun = time.monotonic()

    def reached(status: str) -> Record:
        now = record._replace(
            status=status, seconds=round(record.seconds + time.monotonic() - begun, 2)
        )
        now.write(folder)
        return now

    if record.status == "fitted":
        estimator = NoisyICA.load(folder / MODEL)
    else:
        estimator = NoisyICA(**record.settings, checkpoint=folder / CHECKPOINT)
        interrupted = False
        try:
            estimator._fit(data.X, {})
        except KeyboardInterrupt:
            if not hasattr(estimator, "components_"):
                raise
            interrupted = True
        estimator.checkpoint = None
        (folder / REPORT).unlink(missing_ok=True)  # of an earlier, interrupted model
        estimator.save(folder / MODEL)
        _write_history(folder / HISTORY, estimator.history_)
        now = reached("interrupted" if interrupted else "fitted")
        if interrupted:
            return Outcome(folder, estimator, now)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    beta = estimator.transform(data.X)
    write_coefficients(
        folder / f"{COEFFICIENTS}.{record.table}", beta, data.ids, estimator.get_feature_names_out()
    )
    _write_components(folder / COMPONENTS, estimator, data, record.source.path)
    if record.page:
        report.write(folder / REPORT, estimator, data, beta, reached("fitted").shown())
    return Outcome(folder, estimator, reached("complete"))


def _refuse_occupied(folder: Path, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the run.")
    found = [path.name for path in folder.iterdir()] if folder.exists() else []
    if not found:
        return
    if not all(any(fnmatch(name, pattern) for pattern in OWN) for name in found):
        raise ValueError(
            f"{folder} is not empty, and has more in it than a run leaves: name another."
        )
    if not overwrite:
        raise ValueError(
            f"{folder} holds a run already: name another folder, go on with it (--resume), or replace it (--overwrite)."
        )


def _aside(folder: Path) -> Path | None:
    """Move a run that is to be replaced out of the way, till the new one has learnt something."""
    if not folder.exists() or not any(folder.iterdir()):
        return None
    before = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.replaced")
    folder.rename(before)
    return before


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _worth_keeping(folder: Path) -> bool:
    return (folder / CHECKPOINT).exists() or (folder / MODEL).exists()


def _absolute(value: Any) -> Any:
    """Not resolved: a link may have another ending than what it points to."""
    return Path(os.path.abspath(value)) if isinstance(value, Path) else value


def _same_data(record: Record) -> Data:
    """The data of a run, read again, and found to be the same."""
    data = record.source.read()
    if readers.fingerprint(data.X) != record.fingerprint:
        raise ValueError(
            f"{record.source.path} is no longer what the run was begun with: it cannot go on with other data."
        )
    return data


def _write_history(path: Path, history: dict[str, np.ndarray]) -> None:
    """A line for each iteration, a column for each number."""
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


def write_coefficients(path: Path, beta: np.ndarray, ids: np.ndarray, names: Any) -> None:
    """Coefficients with the rows' names, in the format that the file's name says."""
    if path.suffix == ".npz":
        with storage.whole(path) as file:
            np.savez(
                file, coefficients=beta, ids=np.asarray(ids, str), names=np.asarray(names, str)
            )
    elif path.suffix == ".npy":
        with storage.whole(path) as file:
            np.save(file, beta)
    else:
        readers.write_table(path, beta, ids, [str(name) for name in names])


def _write_components(folder: Path, estimator: NoisyICA, data: Data, source: Path) -> None:
    """The mean and the components in the format of the data, in a folder that is replaced as a whole."""
    aside = folder.with_name(f".{folder.name}{storage.TEMPORARY}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    p = len(estimator.components_)
    names = ["mean", *(f"{j:0{len(str(p - 1))}}" for j in range(p))]
    readers.write(
        np.vstack([estimator.mean_, estimator.components_]),
        data.layout,
        aside / "components",
        names,
        like=source,
    )
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)
