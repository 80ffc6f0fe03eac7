"""Writes files atomically, and shows their changes as unified diffs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kubectl_dra.console import one_line
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.source import Source


class Rewritten(NamedTuple):
    """A file's text before and after. ``source`` keeps its encoding and byte order mark."""

    file: str
    before: str
    after: str
    source: Source

    @property
    def data(self) -> bytes:
        """The bytes of the file after the change, in its original encoding."""
        return self.source.encode(self.after)


def replace_file(file: Rewritten) -> None:
    """Replace the file's text atomically, keeping mode and owner. Links remain links.

    Raises:
        FileError: it has changed meanwhile, or cannot be written.
    """
    try:
        replace_bytes(unchanged(file), file.data)
    except OSError as error:
        raise FileError(f"cannot be written: {error.strerror or error}", file.file) from None


def unchanged(file: Rewritten) -> Path:
    """The file to be replaced, with links followed.

    Raises:
        FileError: it has changed meanwhile, or is read-only.
        OSError: it can no longer be read.
    """
    target = Path(file.file).resolve()
    if target.read_bytes() != file.source.encode(file.before):
        raise FileError("it changed meanwhile; nothing is written", file.file)
    if not os.access(target, os.W_OK):
        raise FileError("cannot be written: it is read-only", file.file)
    return target


def replace_bytes(target: Path, data: bytes) -> None:
    """Write a file, new or existing, atomically. A failure leaves the old file and nothing else.

    Raises:
        OSError: it cannot be written.
    """
    made = name_beside(target)
    try:
        write_beside(made, target, data)
        made.replace(target)
    except BaseException:
        discard(made)
        raise


def name_beside(target: Path) -> Path:
    """A name for a temporary file beside ``target``. Known before the file is made, so that it can be tidied up."""
    return target.with_name(f".{target.name[:50]}.{os.urandom(4).hex()}")


def discard(made: Path) -> None:
    """Remove a temporary file, if it is there at all."""
    with suppress(OSError):
        made.unlink()


def write_beside(made: Path, target: Path, data: bytes) -> None:
    """Make the complete file ``made`` with the mode and owner of ``target``, ready to replace it.

    Raises:
        OSError: it cannot be written; the caller removes what is there of it.
    """
    before = target.stat() if target.exists() else None
    with os.fdopen(new_private_file(made), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    if before is not None:
        _as_before(made, before)
    else:
        made.chmod(0o666 & ~_umask())


def new_private_file(path: Path) -> int:
    """The descriptor, for writing, of a new file that only its owner may read. Raises OSError: it exists already."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


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
    """The change as a unified diff; empty if there is none."""
    from kubectl_dra.manifests.diff import unified

    return unified(one_line(file.file.lstrip("/")), file.before, file.after)
