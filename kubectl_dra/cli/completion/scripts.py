"""The scripts that make shells call ``kubectl-dra __complete``, in ``shells/``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
