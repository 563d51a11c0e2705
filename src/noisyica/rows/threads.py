"""Work on one part of the rows after the other, by several threads ahead of the one that asks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

MOST_THREADS = 8
"""The maximum number of threads: more would wait for the memory, and each takes some of it."""


def each(
    function: Callable[[Part], Result], parts: Iterable[Part], alone: bool = False
) -> Iterator[Result]:
    """Yield the results of a function for all parts, in their order.

    With ``alone``, no other threads are used, as is right where reading the rows takes the time.
    """
    threads = 1 if alone else min(MOST_THREADS, os.cpu_count() or 1)
    if threads == 1:
        yield from map(function, parts)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for part in parts:
            waiting.append(pool.submit(function, part))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
