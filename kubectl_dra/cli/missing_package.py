"""A package that only some commands need and that is not installed: what to run, for the way this was installed."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path
from typing import Final

from kubectl_dra.errors import UsageError

_PROGRAM: Final = "the program that needs no Python has it inside: https://github.com/kubectl-dra/kubectl-dra#install"


def missing_package(command: str, package: str) -> UsageError:
    """The error of a command that needs a package."""
    how = _how_to_add(package, command, Path(sys.prefix))
    return UsageError(f"{command} needs {package}, which is not installed; {how}")


def _how_to_add(package: str, command: str, prefix: Path) -> str:
    """What to run; ``prefix`` is where this Python has its packages."""
    python = shlex.quote(sys.executable)
    if (prefix / "pipx_metadata.json").exists():
        return f"run: pipx inject kubectl-dra {package}"
    pip = importlib.util.find_spec("pip") is not None
    if (prefix / "uv-receipt.toml").exists() or (not pip and _is_of_uv(prefix)):
        return f"run: uv pip install --python {python} {package}"
    if not pip:
        return _PROGRAM
    archive = os.environ.get("KUBECTL_DRA_ARCHIVE", "")
    if archive and sys.prefix == sys.base_prefix:
        # Into the system's own Python pip installs nothing on many distributions.
        own = shlex.quote(str(Path.home() / ".kubectl-dra"))
        start = f"{own}/bin/python {shlex.quote(archive)} {command}"
        return f"run: {python} -m venv {own} && {own}/bin/pip install {package} && {start}"
    return f"run: {python} -m pip install {package}"


def _is_of_uv(prefix: Path) -> bool:
    """Whether uv made this virtual environment."""
    try:
        return "\nuv = " in f"\n{(prefix / 'pyvenv.cfg').read_text(encoding='utf-8')}"
    except OSError:
        return False
