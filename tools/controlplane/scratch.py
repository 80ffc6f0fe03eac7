"""A directory for everything a control plane writes; see scratch.go, which shares the habits and cleans the same."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "kubectl-dra-controlplane-"
SUFFIX = ".lock"


@contextmanager
def scratch_directory() -> Iterator[tuple[Path, int]]:
    """A new directory, removed after the block, and the file descriptor that keeps it from being cleaned away.

    Processes that inherit the descriptor keep the directory too. First removes the directories whose processes were
    all killed.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*{SUFFIX}"):
        _remove_abandoned(path)
    while True:
        descriptor, name = tempfile.mkstemp(SUFFIX, PREFIX)
        # Another control plane that starts may take the new file for an abandoned one, until it is locked.
        if _lock(descriptor, Path(name)):
            break
        os.close(descriptor)
    directory = Path(name.removesuffix(SUFFIX))
    try:
        directory.mkdir(mode=0o700)
        yield directory, descriptor
    finally:
        _remove(Path(name))
        os.close(descriptor)


def _remove_abandoned(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return
    try:
        if _lock(descriptor, path):
            _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Delete the directory of a lock file, then the file: while any of it is left, a later start can find it."""
    directory = Path(str(path).removesuffix(SUFFIX))
    shutil.rmtree(directory, ignore_errors=True)
    if not directory.exists():
        path.unlink(missing_ok=True)


def _lock(descriptor: int, path: Path) -> bool:
    """Lock an open file, if nobody has and it is still the one of its name."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
