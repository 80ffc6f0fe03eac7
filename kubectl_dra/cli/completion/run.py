"""What ``completion`` does: print a script."""

from __future__ import annotations

from kubectl_dra.cli.completion.flags import CompletionFlags
from kubectl_dra.cli.completion.scripts import script
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.console import put


def run(asked: CompletionFlags, _: ConnectionFlags) -> int:
    """Prints; returns the exit code."""
    put(script(asked.shell.value))
    return 0
