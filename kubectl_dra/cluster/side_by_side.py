"""Several streams at once: each is produced in its own thread, and all are consumed in the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

HANDFUL: Final = 6
"""Requests at a time: few enough for a server's fair queues."""
_AHEAD: Final = 2
_LOOK_SECONDS: Final = 0.2
"""How often a producer that waits for room looks whether anybody still consumes."""


class _End(NamedTuple):
    error: BaseException | None


def side_by_side(jobs: Sequence[Callable[[], Iterable[T]]], workers: int = HANDFUL) -> Iterator[tuple[int, T]]:
    """The results of the jobs as they arrive, each with the job's index.

    Producers run only slightly ahead of the consumer. The first error of any job is raised; the other jobs
    then end.
    """
    queue: Queue[tuple[int, T | _End]] = Queue(_AHEAD)
    waiting = iter(tuple(enumerate(jobs)))
    stopped = Event()

    def handed_over(item: tuple[int, T | _End]) -> bool:
        """Whether the consumer still wants it. Waits for room."""
        while not stopped.is_set():
            with suppress(Full):
                queue.put(item, timeout=_LOOK_SECONDS)
                return True
        return False

    def work() -> None:
        # Taking the next job is one step of the interpreter, so no two threads get the same.
        for index, job in waiting:
            try:
                for item in job():
                    if not handed_over((index, item)):
                        return
            except BaseException as error:
                handed_over((index, _End(error)))
                return
            if not handed_over((index, _End(None))):
                return

    for _ in range(min(workers, len(jobs))):
        Thread(target=work, daemon=True).start()
    left = len(jobs)
    try:
        while left:
            index, item = queue.get()
            if not isinstance(item, _End):
                yield index, item
            elif item.error is not None:
                raise item.error
            else:
                left -= 1
    finally:
        stopped.set()
