"""``--watch`` of the lists: look again every few seconds, until it is interrupted."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

from kubectl_dra.cli.live import passes
from kubectl_dra.console import clear_screen, put
from kubectl_dra.errors import ClusterError

SECONDS: Final = 5.0

Look = Callable[[], tuple[Any, Callable[[], None]]]
"""Reads the cluster: what there is, to be compared with what was before, and what prints it. Raises ClusterError."""


def watched(look: Look) -> NoReturn:
    """Prints in place on a terminal, else again when something has changed. Raises ClusterError at the first look."""
    from kubectl_dra.report.paint import tell

    # This may take hours, and each look leaves garbage.
    gc.enable()
    shown: Any = None
    while True:
        try:
            answer, show = look()
        except ClusterError as error:
            if shown is None or not passes(error):
                raise
            tell(f"note: {error}; asking again")
            time.sleep(SECONDS)
            continue
        if sys.stdout.isatty():
            clear_screen()
            show()
        elif answer != shown:
            put("\n" if shown is not None else "")
            show()
        sys.stdout.flush()
        shown = answer
        time.sleep(SECONDS)
