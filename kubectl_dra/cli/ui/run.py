"""What ``ui`` does: find out whether there is a terminal, then show the screen until somebody ends it."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.cli.missing_package import missing_package
from kubectl_dra.cli.options import Color
from kubectl_dra.cli.ui import UiFlags
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import UsageError

if TYPE_CHECKING:
    from kubectl_dra.cli.options import ConnectionFlags


def run(flags: UiFlags, connection: ConnectionFlags) -> int:
    """Shows the screen; returns the exit code.

    Raises:
        DraError: wrong usage, no terminal, a missing package, input that cannot be read, a cluster that does not
            answer.
    """
    try:
        import textual  # noqa: F401
    except ImportError:
        raise missing_package("ui", "textual") from None
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("ui needs a terminal; kubectl dra top, explain, claims and devices print the same")
    if os.environ.get("TERM") == "dumb":
        raise UsageError("ui needs a terminal that can move its cursor, and TERM is dumb")
    from kubectl_dra.cli.explain.reading import scheduler_config
    from kubectl_dra.cli.release import assumed
    from kubectl_dra.cli.ui.source import source_of
    from kubectl_dra.ui.app import Screens

    # What is wrong with it is said before anything is read.
    assumed(Snapshot(), flags.release, flags.gates)
    scheduler_config(flags, UNTOLD)
    if flags.color is Color.never:
        os.environ["NO_COLOR"] = "1"
    # This may take hours, and each view leaves garbage.
    gc.enable()
    screens = Screens(source_of(flags, connection))
    screens.run(mouse=False)
    if screens.failure is not None:
        raise screens.failure
    if screens.interrupted:
        raise KeyboardInterrupt
    return screens.return_code or 0
