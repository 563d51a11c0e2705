"""A line on the terminal that shows progress and the time left of work that takes seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

DELAY = 1.0
"""Seconds before the line is shown: shorter work shows none."""


class Reporter:
    """A context manager that shows how much of some work is done; call ``update`` at any rate.

    A terminal has room for one such line: while one reporter shows its line, others show nothing.
    """

    _shown: ClassVar[bool] = False

    def __init__(self, title: str, total: int, enabled: bool, lines: bool = False) -> None:
        self._console = Console(stderr=True)
        self._enabled = enabled and self._console.is_terminal
        self._lines = lines and not self._console.is_terminal
        self._title, self._total = title, total
        self._begun = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Reporter:
        return self

    def update(self, done: int, note: str | Callable[[], str] = "") -> None:
        """Say that ``done`` of ``total`` is done.

        A ``note`` that takes time to make can be a function, which is called only if it is shown.
        """
        if not self._enabled or time.monotonic() - self._begun < DELAY:
            return
        if self._bar is None:
            if Reporter._shown:
                return
            Reporter._shown = True
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(
                *columns, TextColumn("{task.fields[note]}"), console=self._console, transient=True
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._total, note="")
        self._bar.update(self._task, completed=done, note=note if isinstance(note, str) else note())

    def line(self, text: str) -> None:
        """Write a line of its own where there is no terminal, if such lines were asked for."""
        if self._lines:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            Reporter._shown = False
