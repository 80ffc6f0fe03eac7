"""What ``completion`` does: print the script that makes a shell call ``kubectl-dra __complete``, from ``shells/``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubectl_dra.cli.flags import CompletionFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.safe_output import put

FILES: Final = {
    "bash": "kubectl-dra.bash",
    "zsh": "_kubectl-dra",
    "fish": "kubectl-dra.fish",
    "powershell": "kubectl-dra.ps1",
    "kubectl": "kubectl_complete-dra",
}
"""Shell to the name of its file."""


def script(shell: str) -> str:
    """The script for a shell."""
    return Path(__file__).with_name("shells").joinpath(FILES[shell]).read_text(encoding="utf-8")


def run(flags: CompletionFlags, _: ConnectionFlags) -> int:
    """Prints; returns the exit code."""
    put(script(flags.shell.value))
    return 0
