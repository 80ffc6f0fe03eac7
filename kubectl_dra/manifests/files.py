"""Writes files atomically, and shows their changes as a unified diff."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.source import Source


class Rewritten(NamedTuple):
    """A file's text before and after; ``source`` keeps its encoding and byte order mark."""

    file: str
    before: str
    after: str
    source: Source

    @property
    def data(self) -> bytes:
        """The bytes of the file after the change, in the encoding it had."""
        return self.source.encode(self.after)


def replace_file(file: Rewritten) -> None:
    """Replaces the file by its new text: all of it or nothing, with the mode and owner it had. Links stay links.

    Raises:
        FileError: it changed meanwhile, or cannot be written.
    """
    try:
        replace_bytes(unchanged(file), file.data)
    except OSError as error:
        raise FileError(f"cannot be written: {error.strerror or error}", file.file) from None


def unchanged(file: Rewritten) -> Path:
    """The file that is to be replaced, links followed.

    Raises:
        FileError: it changed meanwhile, or is read-only.
        OSError: it cannot be read any more.
    """
    target = Path(file.file).resolve()
    if target.read_bytes() != file.source.encode(file.before):
        raise FileError("it changed meanwhile; nothing is written", file.file)
    if not os.access(target, os.W_OK):
        raise FileError("cannot be written: it is read-only", file.file)
    return target


def replace_bytes(target: Path, data: bytes) -> None:
    """Puts the bytes in the place of a file, new or not, at once; what fails leaves the old file and nothing else.

    Raises:
        OSError: it cannot be written.
    """
    made = beside(target, data)
    try:
        made.replace(target)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def beside(target: Path, data: bytes) -> Path:
    """A new file beside ``target``, complete on the disk, with the mode and owner of that: what takes its place.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    before = target.stat() if target.exists() else None
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if before is not None:
            _as_before(made, before)
        else:
            made.chmod(0o666 & ~_umask())
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    return made


def _as_before(made: Path, before: os.stat_result) -> None:
    now = made.stat()
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid) and hasattr(os, "chown"):
        os.chown(made, before.st_uid, before.st_gid)
    made.chmod(before.st_mode & 0o7777)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def unified_diff(file: Rewritten) -> str:
    """The change as a unified diff; empty where there is none."""
    from kubectl_dra.manifests.diff import unified

    return unified(file.file.lstrip("/"), file.before, file.after)
