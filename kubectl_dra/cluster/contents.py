"""The bytes of an input, gzipped or not, with limits on size and waiting time."""

from __future__ import annotations

import mmap
import os
import shlex
import stat
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from select import select
from typing import Any, Final

from kubectl_dra.errors import InputError

STDIN: Final = "-"
LARGEST_UNPACKED: Final = 2 * 10**9
"""Limit in bytes for an input, and for the unpacked content of a gzipped one."""
PIPE_SECONDS: Final = 60.0
"""Seconds that a named pipe may have no writer, or a silent one."""
_GZIP: Final = b"\x1f\x8b"
_STEP: Final = 1 << 20
_LARGE: Final = 16 << 20
_SUSPECT: Final = 64 << 20
_RATIO: Final = 300
"""Lists of equal objects compress to a fiftieth; blanks to a thousandth."""

Read = Callable[[int], bytes]
"""Returns at most that many bytes; none at the end."""


class Pages:
    """Bytes in memory of their own, of which the beginning can be given back while the rest is still read."""

    def __init__(self, size: int) -> None:
        """Raises OSError, ValueError: there is no such memory."""
        self.data: Final = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._given_back = 0

    def give_back(self, end: int) -> None:
        """Nobody reads anything before ``end`` again."""
        size = end - self._given_back
        if size >= _STEP:
            size -= size % mmap.PAGESIZE
            self.data.madvise(mmap.MADV_DONTNEED, self._given_back, size)
            self._given_back += size


def large(path: str) -> Pages | None:
    """The content of a large file; None for any other input, which ``contents`` reads."""
    if not hasattr(mmap, "MADV_DONTNEED") or path == STDIN:
        return None
    try:
        size = Path(path).stat().st_size
        if not _LARGE <= size <= LARGEST_UNPACKED or not Path(path).is_file():
            return None
        with Path(path).open("rb", buffering=0) as stream:
            pages = Pages(size)
            # A file that changes meanwhile is read anew.
            return pages if stream.readinto(pages.data) == size and not stream.read(1) else None
    except (OSError, ValueError):
        return None


def contents(path: str) -> bytes:
    """The content of a file; ``-`` is standard input.

    Raises InputError: unreadable, not a file, damaged, or larger than any snapshot.
    """
    from kubectl_dra.process import special

    if path == STDIN:
        return unpacked(sys.stdin.buffer.read, "standard input")
    try:
        kind = "" if Path(path).is_file() else special(path)
        if kind == "a directory":
            raise InputError(f"{path}: is a directory")
        if kind:
            raise InputError(f"{path}: is {kind}, not a file; for standard input write {STDIN}")
        if stat.S_ISFIFO(Path(path).stat().st_mode):
            return _of_pipe(path)
        with Path(path).open("rb") as stream:
            if stream.peek(2).startswith(_GZIP):
                return unpacked(stream.read, path)
            # At once, so that it does not stand in memory twice.
            data = stream.read(LARGEST_UNPACKED + 1)
        if len(data) > LARGEST_UNPACKED:
            raise _too_large(path, "holds")
        return data
    except FileNotFoundError:
        if "://" in path:
            how = f"curl -fsSL {shlex.quote(path)} | kubectl dra ... {STDIN}"
            raise InputError(f"{path}: only files are read; pipe it in, and read {STDIN}: {how}") from None
        raise InputError(f"{path}: there is no such file or directory") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InputError(f"{path!r}: not a file name") from None


def unpacked(read: Read, name: str) -> bytes:
    """The output of ``read``, unpacked if its first bytes show that it is gzipped.

    Raises InputError: damaged, truncated, or larger than any snapshot when unpacked.
    """
    counted = _Counted(read)
    packed = counted.begin().startswith(_GZIP)
    source: Any = counted
    if packed:
        import gzip

        source = gzip.GzipFile(fileobj=counted)  # type: ignore[call-overload]
    out: list[bytes] = []
    size = 0
    try:
        while part := source.read(_STEP):
            size += len(part)
            if size > LARGEST_UNPACKED:
                raise _too_large(name, "unpacks to" if packed else "holds")
            if size > _SUSPECT and size > _RATIO * counted.size:
                raise InputError(f"{name}: unpacks to more than {_RATIO} times its size, which no snapshot does")
            out.append(part)
    except (OSError, EOFError, zlib.error) as error:
        if not packed:
            raise
        raise InputError(f"{name}: cannot be unpacked by gzip, it is damaged or cut off: {error}") from None
    return b"".join(out)


def _too_large(name: str, does: str) -> InputError:
    return InputError(f"{name}: {does} more than {LARGEST_UNPACKED // 10**9} GB, which no snapshot has")


class _Counted:
    """A stream that counts the bytes read and can show its first bytes."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._first = b""
        self.size = 0

    def begin(self) -> bytes:
        self._first = self._read(_STEP)
        return self._first

    def read(self, size: int) -> bytes:
        data, self._first = (self._first[:size], self._first[size:]) if self._first else (self._read(size), b"")
        self.size += len(data)
        return data


def beginning(path: str, size: int) -> bytes:
    """The first bytes of a small file or named pipe, at most ``size``.

    Raises OSError, ValueError: it cannot be read; InputError: nobody writes into the pipe.
    """
    if not Path(path).is_fifo():
        with Path(path).open("rb") as stream:
            return stream.read(size)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        out = b""
        while len(out) < size and (part := _waited(handle, size - len(out), path)):
            out += part
        return out
    finally:
        os.close(handle)


def _of_pipe(path: str) -> bytes:
    """The content of a named pipe, such as a shell makes for ``<(command)``. Raises OSError, InputError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return unpacked(lambda size: _waited(handle, size, path), path)
    finally:
        os.close(handle)


def _waited(handle: int, size: int, path: str) -> bytes:
    end = time.monotonic() + PIPE_SECONDS
    while True:
        # Before the first writer a pipe looks as if it had ended.
        if not select([handle], (), (), max(end - time.monotonic(), 0))[0]:
            raise InputError(f"{path}: nothing was written into this pipe for {PIPE_SECONDS:g} s")
        try:
            return os.read(handle, size)
        except BlockingIOError:
            continue
