"""Runs the cases of an experiment, in one process or several, and remembers their results.

A run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from noisyica.paper import source
from noisyica.paper.common import Options
from noisyica.progress import Reporter

Case = dict[str, Any]
"""The arguments of a function by name, of types that JSON can hold."""
Outcome = dict[str, Any]
"""Numbers, texts and arrays by name: the result of one case."""


def run(
    options: Options,
    experiment: str,
    function: Callable[..., Outcome],
    cases: Sequence[Case],
    timed: bool = False,
) -> list[dict[str, Any]]:
    """Run ``function(**case)`` for each case that the cache does not know.

    Parameters
    ----------
    options : Options
    experiment : str
        The name of the cache's file.
    function : callable
        A function of a module, so that other processes can import it.
    cases : sequence of dict
    timed : bool
        Whether the function measures time. Then all cases are run in this process.

    Returns
    -------
    list of dict
        A record for each case: its arguments, its outcome, and the seconds that it took ("spent").
    """
    path = None if options.cache is None else options.cache / f"{experiment}.jsonl"
    known = _read(path)
    keys = [_key(function, case) for case in cases]
    missing = [i for i, key in enumerate(keys) if key not in known]
    jobs = 1 if timed else min(options.jobs, len(missing))
    done = len(cases) - len(missing)
    with Reporter(f"reproduce {experiment}", len(cases), options.verbose) as reporter:
        reporter.update(done)
        for i, outcome in _outcomes(function, [(i, cases[i]) for i in missing], jobs):
            # new outcomes are rounded like those that come from the cache
            known[keys[i]] = json.loads(json.dumps(outcome, default=_for_json))
            _append(path, keys[i], known[keys[i]])
            done += 1
            reporter.update(done)
    return [{**case, **known[key]} for case, key in zip(cases, keys, strict=True)]


def _outcomes(
    function: Callable[..., Outcome], cases: list[tuple[int, Case]], jobs: int
) -> Iterator[tuple[int, Outcome]]:
    """Yield the number of each case and its outcome, in the order in which they are finished."""
    if jobs <= 1:
        for i, case in cases:
            yield i, _run_one(function, case)
        return
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _use_one_thread)
    try:
        waiting = {pool.submit(_run_one, function, case): i for i, case in cases}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _use_one_thread() -> None:
    """Limit a process to one thread, since there are as many processes as were asked for."""
    os.environ["NPROC"] = "1"  # read by XLA
    threadpool_limits(1)


def _run_one(function: Callable[..., Outcome], case: Case) -> Outcome:
    """Run one case, and add the seconds that it took to its outcome."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        # methods are compared after a fixed number of iterations, converged or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        outcome = function(**case)
    return {**outcome, "spent": time.perf_counter() - begun}


def _key(function: Callable[..., Outcome], case: Case) -> str:
    """Return what a case is known by in the cache.

    Data are known by their fingerprint, which is part of the case. Their folder does not matter.
    The code is known by the digest of its files: a version alone would let edited code return
    what it computed before.
    """
    arguments = {name: value for name, value in case.items() if name != "data"}
    text = json.dumps(
        [source.digest(), function.__module__, function.__qualname__, arguments], sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _for_json(value: Any) -> Any:
    """Return an array as lists, with as many digits as pictures and measures need."""
    if isinstance(value, np.ndarray):
        return np.vectorize(lambda v: float(f"{v:.6g}"), otypes=[float])(value).tolist()
    return value.item()


def _read(path: Path | None) -> dict[str, Outcome]:
    """Read the outcomes in the cache by their keys."""
    known: dict[str, Outcome] = {}
    if path is None or not path.is_file():
        return known
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            key, outcome = json.loads(line)
        except ValueError:  # a line that was being written when the run was interrupted
            continue
        known[key] = outcome
    return known


def _append(path: Path | None, key: str, outcome: Outcome) -> None:
    """Add a line to the cache.

    A line is written at once. If it is not written whole, it is the last one, which
    :func:`_read` skips, and the next one begins on a line of its own.
    """
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    torn = path.is_file() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    with path.open("ab") as file:
        file.write(b"\n" * torn + json.dumps([key, outcome]).encode() + b"\n")
