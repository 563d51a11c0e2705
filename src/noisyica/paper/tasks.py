"""Cases of an experiment, run one after the other or by several processes, and remembered: a run that was broken off goes on."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from noisyica.paper.common import Settings
from noisyica.progress import Reporter

Case = dict[str, Any]
"""Arguments by name, of what JSON can hold."""


def run(
    settings: Settings,
    experiment: str,
    function: Callable[..., Case],
    cases: Sequence[Case],
    timed: bool = False,
) -> list[Case]:
    """The case and what ``function(**case)`` gives, for each case; known ones come from the cache.

    Parameters
    ----------
    settings : Settings
    experiment : str
        Names the cache.
    function : callable
        Of a module, so that other processes find it; gives a dictionary of numbers, texts and arrays.
    cases : sequence of dict
    timed : bool
        Whether the function measures time: then one process does all.
    """
    path = None if settings.cache is None else settings.cache / f"{experiment}.jsonl"
    known = _read(path)
    keys = [_key(function, case) for case in cases]
    missing = [i for i, key in enumerate(keys) if key not in known]
    jobs = 1 if timed else min(settings.jobs, len(missing))
    with Reporter(f"reproduce {experiment}", len(cases), settings.verbose) as reporter:
        reporter.update(len(cases) - len(missing))
        for done, (i, found) in enumerate(
            _results(function, [(i, cases[i]) for i in missing], jobs), 1
        ):
            known[keys[i]] = json.loads(
                json.dumps(found, default=_plain)
            )  # the same numbers, whether new or remembered
            _append(path, keys[i], known[keys[i]])
            reporter.update(len(cases) - len(missing) + done)
    return [{**case, **known[key]} for case, key in zip(cases, keys, strict=True)]


def _results(
    function: Callable[..., Case], cases: list[tuple[int, Case]], jobs: int
) -> Iterator[tuple[int, Case]]:
    if jobs <= 1:
        for i, case in cases:
            yield i, _one(function, case)
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _one_thread)
    try:
        waiting = {pool.submit(_one, function, case): i for i, case in cases}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    os.environ["NPROC"] = "1"  # read by XLA
    threadpool_limits(1)


def _one(function: Callable[..., Case], case: Case) -> Case:
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # the methods that are compared are run for a set number of iterations
        found = function(**case)
    return {**found, "spent": time.perf_counter() - begun}


def _key(function: Callable[..., Case], case: Case) -> str:
    """Where the data are does not matter: a case says by a fingerprint what they are."""
    known = {name: value for name, value in case.items() if name != "data"}
    text = json.dumps(
        [version("noisyica"), function.__module__, function.__qualname__, known], sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _plain(value: Any) -> Any:
    """Arrays as lists, with the digits that pictures and measures need."""
    if isinstance(value, np.ndarray):
        return np.vectorize(lambda v: float(f"{v:.6g}"), otypes=[float])(value).tolist()
    return value.item()


def _read(path: Path | None) -> dict[str, Case]:
    known: dict[str, Case] = {}
    if path is None or not path.is_file():
        return known
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            key, found = json.loads(line)
        except ValueError:  # a line that was being written when the run ended
            continue
        known[key] = found
    return known


def _append(path: Path | None, key: str, found: Case) -> None:
    """One line in one write: whole, or the last one and skipped by :func:`_read`."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    torn = path.is_file() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    with path.open("ab") as file:
        file.write(b"\n" * torn + json.dumps([key, found]).encode() + b"\n")
