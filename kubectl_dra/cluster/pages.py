"""One page of a list: its head, then its items one by one, so that a page never stands in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any, Final, Generic, NamedTuple, TypeVar

from orjson import loads

T = TypeVar("T")

# As Go writes a list of Kubernetes objects. In a text the quotes would be escaped, so this is never part of one.
_FIRST: Final = b'"items":[{"metadata":{'
_NEXT: Final = b'},{"metadata":{'
_OPEN: Final = len(b'"items":[')


class Page(NamedTuple):
    """The fields around the items, how many items there are (about, before they are read), and the items."""

    head: dict[str, Any]
    size: int
    items: Iterator[Any]


def split(data: bytes) -> Page | None:
    """Reads a page; None if it is not a list.

    Raises:
        ValueError: not a JSON object; also while the items are read.
    """
    first = data.find(_FIRST)
    if first >= 0:
        end = data.rfind(b"]")
        try:
            head = loads(data[: first + _OPEN] + data[end:])
        except ValueError:
            head = None
        if isinstance(head, dict) and head.get("items") == []:
            return Page(head, data.count(_NEXT) + 1, _items(data, first + _OPEN, end))
    whole = loads(data)
    if not isinstance(whole, dict):
        raise ValueError(type(whole).__name__)
    items = whole.get("items") or []
    return Page(whole, len(items), iter(items)) if isinstance(items, list) else None


def _items(data: bytes, start: int, end: int) -> Iterator[Any]:
    """The items between two offsets; where one is not what it seems to be, the rest is read as a whole."""
    count = 0
    while start < end:
        cut = data.find(_NEXT, start, end) + 1
        try:
            item = loads(data[start : cut or end])
        except ValueError:
            yield from loads(data[data.index(_FIRST) + _OPEN - 1 : end + 1])[count:]
            return
        yield item
        count += 1
        start = cut + 1 if cut else end


class Ahead(Generic[T]):
    """Work that goes on in a thread while the caller does something else."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done: list[T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._done.append(self._work())
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        """Waits for the result; raises what the work raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._done[0]
