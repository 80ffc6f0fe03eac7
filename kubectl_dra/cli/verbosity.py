"""``-v=LEVEL``, with kubectl's meaning: how much is said on standard error about what is done. Any command takes it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from kubectl_dra.console import lines

TIMES: Final = 1
"""From this level on: versions, and how long it took."""
REQUESTS: Final = 6
"""From this level on: every request to the API server, with the status and the size of its answer."""
_FLAG: Final = re.compile(r"(?:-v|--v)=([0-9]{1,18})\Z|-(v+)\Z")
_LEVEL: Final = re.compile(r"[0-9]{1,2}\Z")


def taken_out(arguments: Sequence[str]) -> tuple[list[str], int]:
    """The arguments without ``-v=LEVEL`` (or -v LEVEL, -v, -vv, ...), and the highest level given, else 0."""
    rest: list[str] = []
    level = 0
    words = iter(range(len(arguments)))
    for index in words:
        word = arguments[index]
        if word == "--":
            rest += arguments[index:]
            break
        match = _FLAG.match(word)
        if match is None:
            rest.append(word)
        elif word == "-v" and _LEVEL.match("".join(arguments[index + 1 : index + 2])):
            level = max(level, int(arguments[next(words)]))
        else:
            level = max(level, int(match[1]) if match[1] else len(match[2]))
    return rest, level


def begin(level: int) -> Callable[[], None]:
    """Starts to say what is done; the result ends it."""
    if level < TIMES:
        return lambda: None
    import platform

    from kubectl_dra import __version__

    started = time.monotonic()
    _say(f"kubectl-dra {__version__}, Python {platform.python_version()} on {platform.system().lower()}")
    stop = _follow_requests() if level >= REQUESTS else lambda: None

    def end() -> None:
        stop()
        _say(f"took {time.monotonic() - started:.2f} s")

    return end


def _follow_requests() -> Callable[[], None]:
    from kubectl_dra.cluster.transport import Sent, observers

    def observe(sent: Sent) -> None:
        size = f", {sent.size:,} bytes" if sent.size else ""
        _say(f"{sent.method} {sent.url} {sent.status} in {sent.seconds * 1000:.0f} ms{size}")

    observers.append(observe)
    return lambda: observers.remove(observe)


def _say(sentence: str) -> None:
    lines((f"-v: {sentence}",), sys.stderr)
