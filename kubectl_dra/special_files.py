"""What stands under a file's name, where it is no file."""

from __future__ import annotations

import stat
from pathlib import Path


def special(path: str) -> str:
    """``a directory``, ``a socket`` or ``a device``; empty for a file or a pipe. Raises OSError, ValueError."""
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else ""
