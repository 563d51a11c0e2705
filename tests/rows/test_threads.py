"""Work on parts of the rows by several threads: in order, and not too far ahead."""

import threading
import time

import pytest

from noisyica.rows import threads


@pytest.fixture(params=[1, 3], ids=lambda count: f"{count} threads")
def count(request, monkeypatch):
    monkeypatch.setattr(threads.os, "cpu_count", lambda: request.param)
    return request.param


def test_results_come_in_the_order_of_the_parts(count):
    def slow_at_first(part):
        time.sleep(0.01 * (10 - part))
        return part, threading.get_ident()

    results = list(threads.each(slow_at_first, range(10)))
    assert [part for part, _ in results] == list(range(10))
    assert len({thread for _, thread in results}) == count


def test_alone_there_is_no_other_thread(count):
    found = set(threads.each(lambda _: threading.get_ident(), range(5), alone=True))
    assert found == {threading.get_ident()}


def test_an_error_in_a_thread_is_raised(count):
    def fails(part):
        if part == 4:
            raise ValueError("part 4")
        return part

    results = threads.each(fails, range(100))
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="part 4"):
        next(results)


def test_few_results_wait(count):
    begun = []
    results = threads.each(begun.append, range(100))
    next(results)
    time.sleep(0.05)
    assert len(begun) <= count + 1
    results.close()
