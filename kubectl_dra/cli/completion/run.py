"""What ``completion`` does: print a script."""

from __future__ import annotations

import sys

from kubectl_dra.cli.completion.flags import CompletionFlags
from kubectl_dra.cli.completion.scripts import script
from kubectl_dra.cli.options import ConnectionFlags


def run(asked: CompletionFlags, _: ConnectionFlags) -> int:
    """Prints; returns the exit code."""
    sys.stdout.write(script(asked.shell.value))
    return 0
