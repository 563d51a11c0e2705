"""A progress line with the time left, shown on a terminal for work that takes more than a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

DELAY = 1.0


class Reporter:
    """Context manager; ``update`` as often as you like. Of several at once only the first is shown: a terminal has one such line."""

    _shown: ClassVar[bool] = False

    def __init__(self, title: str, total: int, enabled: bool) -> None:
        self._console = Console(stderr=True)
        self._enabled = enabled and self._console.is_terminal
        self._title, self._total = title, total
        self._begun = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Reporter:
        return self

    def update(self, done: int, note: str | Callable[[], str] = "") -> None:
        """Say that ``done`` of ``total`` is done; a ``note`` that takes time to make is asked for where it is shown."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            Reporter._shown = False
