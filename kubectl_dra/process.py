"""Limits on work that a stranger's input can make large, names of no files among it, and a fast end of a short run."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn, TypeVar

T = TypeVar("T")


class TooMuch(Exception):
    """The work needs more time or memory than it may have."""


def limited_fork(work: Callable[[], T], seconds: float, megabytes: int) -> T:
    """Do ``work`` in a fork of this process; ``megabytes`` is what it may need beyond what there is already.

    The result must be something that pickle takes. Where there are no forks, the work is done here, without limits.

    Raises TooMuch: it takes longer, or ends without a result.
    """
    if not hasattr(os, "fork"):
        return work()
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        os.close(reader)
        _work(work, writer, seconds, megabytes << 20)
    os.close(writer)
    try:
        data = _all_of(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    try:
        result: T = pickle.loads(data)
    except (EOFError, pickle.UnpicklingError):
        raise TooMuch from None
    return result


def _work(work: Callable[[], object], writer: int, seconds: float, memory: int) -> None:
    """Never returns: nothing of the parent's may run twice, neither its output nor its exit handlers."""
    try:
        # The parent is told by an end without a result.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _limit(seconds, memory)
        data = pickle.dumps(work(), protocol=pickle.HIGHEST_PROTOCOL)
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(0)


def _limit(seconds: float, memory: int) -> None:
    import resource

    with suppress(OSError, ValueError):
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    with suppress(OSError, ValueError):
        most = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _all_of(reader: int, end: float) -> bytes:
    """What the child writes until it ends; nothing where that takes too long."""
    parts: list[bytes] = []
    while (seconds := end - time.monotonic()) > 0 and select.select([reader], [], [], seconds)[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return b""


# A short run of the program: it keeps what it reads, and ends without giving it back object by object.
#
# Collecting garbage would only cost time (3x on large snapshots), and giving back takes a tenth of most runs. What
# waits for hours enables the collector again.

_KEPT: Final[list[object]] = []


def begin() -> None:
    """Stop collecting garbage."""
    gc.disable()


def keep(*objects: object) -> None:
    """Keep objects until the end of a short run; elsewhere, such as in a server, they go when nobody needs them."""
    if not gc.isenabled():
        _KEPT.append(objects)


def end(code: int) -> NoReturn:
    """End the process at once."""
    if os.environ.get("KUBECTL_DRA_DEBUG"):
        # A profiler writes its results at Python's own end.
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def special(path: str) -> str:
    """``a directory``, ``a socket`` or ``a device``; empty for a file or a pipe. Raises OSError, ValueError."""
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else ""
