"""Streams that are produced side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from kubectl_dra.cluster.transport import side_by_side


def counting(number: int) -> Iterator[int]:
    yield from range(number)


def failing() -> Iterator[int]:
    yield 1
    raise OSError("away")


def ended(before: set[threading.Thread]) -> bool:
    """Whether the threads that were started since end within some seconds."""
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    return set(threading.enumerate()) <= before


def test_all_results_come() -> None:
    found = sorted(side_by_side([lambda: counting(3), lambda: counting(2), lambda: counting(0)], workers=2))
    assert found == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_an_error_ends_all_producers() -> None:
    before = set(threading.enumerate())
    with pytest.raises(OSError, match="away"):
        list(side_by_side([failing, *[lambda: counting(1000)] * 20]))
    assert ended(before)


def test_who_stops_consuming_ends_all_producers() -> None:
    before = set(threading.enumerate())
    results = side_by_side([lambda: counting(1000)] * 20)
    next(results)
    time.sleep(0.05)
    del results
    assert ended(before)
