"""A short run of the program: it keeps what it reads, and ends without giving it back object by object.

Collecting garbage would only cost time (3x on large snapshots), and giving back takes a tenth of most runs. What waits
for hours enables the collector again.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final, NoReturn

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
