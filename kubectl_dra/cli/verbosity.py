"""``-v=LEVEL``, with kubectl's meaning: how much is said on standard error about what is done. Any command takes it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

TIMES: Final = 1
"""From this level on: versions, and how long it took."""
REQUESTS: Final = 6
"""From this level on: every request to the API server, with the status and the size of its answer."""
_FLAG: Final = re.compile(r"(?:-v|--v)=(\d+)\Z|-(v+)\Z")


def taken_out(arguments: Sequence[str]) -> tuple[list[str], int]:
    """The arguments without ``-v=LEVEL`` (or -v, -vv, ...), and the highest level given; 0 where there is none."""
    rest: list[str] = []
    level = 0
    for index, word in enumerate(arguments):
        if word == "--":
            rest += arguments[index:]
            break
        found = _FLAG.match(word)
        if found is None:
            rest.append(word)
        else:
            level = max(level, int(found[1]) if found[1] else len(found[2]))
    return rest, level


def begin(level: int) -> Callable[[], None]:
    """Starts to say what is done; the result ends it."""
    if level < TIMES:
        return lambda: None
    import platform

    from kubectl_dra import __version__

    started = time.monotonic()
    _say(f"kubectl-dra {__version__}, Python {platform.python_version()} on {platform.system().lower()}")
    if level >= REQUESTS:
        _follow_requests()
    return lambda: _say(f"took {time.monotonic() - started:.2f} s")


def _follow_requests() -> None:
    import logging

    class Requests(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # scheme, host, port, method, path, protocol, status, length of the answer
            values: Any = record.args
            if isinstance(values, tuple) and len(values) == 8:
                _say(f"{values[3]} {values[0]}://{values[1]}:{values[2]}{values[4]} {values[6]}")

    logger = logging.getLogger("urllib3.connectionpool")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.handlers = [Requests()]


def _say(sentence: str) -> None:
    sys.stderr.write(f"-v: {sentence}\n")
