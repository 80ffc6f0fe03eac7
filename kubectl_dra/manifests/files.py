"""Writes files atomically, and shows their changes as unified diffs."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.source import Source
from kubectl_dra.safe_output import one_line


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


class Through(NamedTuple):
    """A file that was written through a link."""

    link: str
    file: str


class _Pending(NamedTuple):
    file: Rewritten
    target: Path
    before: bytes | None
    new: Path


def replace_files(files: Sequence[Rewritten], named: Collection[str] = ()) -> list[Through]:
    """Replace each file as a whole, keeping mode and owner. Links that are ``named`` are followed, and remain links.

    All new files are complete on the disk before the first takes the place of an old one, and each old one is compared
    once more directly before. A link that is not named is left, and an error unless its file is replaced itself.
    An end in the middle (Ctrl-C, a signal) carries a note that names the files that are new.

    Raises:
        FileError: one has changed meanwhile, cannot be written, or is such a link; says what is written already.
    """
    pending: list[_Pending] = []
    written: list[str] = []
    name = ""
    try:
        for file in files:
            name = file.file
            target = _target(file, named, files)
            if target is None:
                continue
            before = _unchanged(file, target)
            # Known before the file is made, so that it can be tidied up.
            pending.append(_Pending(file, target, before, name_beside(target)))
            write_beside(pending[-1].new, target, file.data)
        for file, target, before, new in pending:
            name = file.file
            if _content(target) != before:
                raise FileError("it changed meanwhile and is left as it is", name)
            new.replace(target)
            written.append(name)
    except FileError as error:
        raise FileError(f"{error.problem} ({_done(written)})", error.file) from None
    except OSError as error:
        raise FileError(f"cannot be written: {error.strerror or error} ({_done(written)})", name) from None
    except BaseException as end:
        # The signal may have come between a replacement and the line that records it.
        last = pending[len(written)] if name and len(written) < len(pending) else None
        if last is not None and last.file.file == name and _content(last.target) == last.file.data:
            written.append(name)
        end.add_note(f"{_done(written)}, of {len(files)} files")
        raise
    finally:
        for item in pending[len(written) :]:
            discard(item.new)
    return [Through(file.file, str(target)) for file, target, *_ in pending if Path(file.file).is_symlink()]


def _done(written: Sequence[str]) -> str:
    return f"written before: {', '.join(written)}" if written else "nothing is written"


def _target(file: Rewritten, named: Collection[str], files: Sequence[Rewritten]) -> Path | None:
    """The file to replace; None for a link to one that is replaced itself, to the same text.

    Raises:
        FileError: a link that was only met in a directory.
    """
    path = Path(file.file)
    target = path.resolve()
    if not path.is_symlink():
        return target
    others = (other for other in files if other is not file and Path(other.file).resolve() == target)
    if any(other.after == file.after and not Path(other.file).is_symlink() for other in others):
        return None
    if file.file not in named:
        raise FileError(f"is a link to {target}, which is only written if the link itself is named", file.file)
    return target


def _unchanged(file: Rewritten, target: Path) -> bytes | None:
    """The bytes of the file to be replaced; None for one that is new.

    Raises:
        FileError: it has changed meanwhile, or is read-only.
        OSError: it can no longer be read.
    """
    content = _content(target)
    if content is None and not file.before:
        return None
    if content != file.source.encode(file.before):
        raise FileError("it changed meanwhile", file.file)
    if not os.access(target, os.W_OK):
        raise FileError("cannot be written: it is read-only", file.file)
    return content


def _content(path: Path) -> bytes | None:
    """The bytes of a file; None if there is none. Raises OSError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def replace_bytes(target: Path, data: bytes) -> None:
    """Write a file, new or existing, atomically. A failure leaves the old file and nothing else.

    Raises:
        OSError: it cannot be written.
    """
    temporary = name_beside(target)
    try:
        write_beside(temporary, target, data)
        temporary.replace(target)
    except BaseException:
        discard(temporary)
        raise


def name_beside(target: Path) -> Path:
    """A name for a temporary file beside ``target``. Known before the file is made, so that it can be tidied up."""
    return target.with_name(f".{target.name[:50]}.{os.urandom(4).hex()}")


def discard(temporary: Path) -> None:
    """Remove a temporary file, if it is there at all."""
    with suppress(OSError):
        temporary.unlink()


def write_beside(temporary: Path, target: Path, data: bytes) -> None:
    """Make the complete file ``temporary`` with the mode and owner of ``target``, ready to replace it.

    Raises:
        OSError: it cannot be written; the caller removes what is there of it.
    """
    before = target.stat() if target.exists() else None
    with os.fdopen(new_private_file(temporary), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    if before is not None:
        _as_before(temporary, before)
    else:
        temporary.chmod(0o666 & ~_umask())


def new_private_file(path: Path) -> int:
    """The descriptor, for writing, of a new file that only its owner may read. Raises OSError: it exists already."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def _as_before(temporary: Path, before: os.stat_result) -> None:
    now = temporary.stat()
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid) and hasattr(os, "chown"):
        os.chown(temporary, before.st_uid, before.st_gid)
    temporary.chmod(before.st_mode & 0o7777)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def unified_diff(file: Rewritten) -> str:
    """The change as a unified diff; empty if there is none."""

    return unified(one_line(file.file.lstrip("/")), file.before, file.after)


# Unified diffs. ``difflib`` is slow on long files, or shows more than what changed.
#
# Lines that occur once before and once after are matched with each other (patience diff); ``difflib`` compares
# only what lies between them.

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_CONTEXT: Final = 3
_MANY: Final = 500


class Hunk(NamedTuple):
    """``before[start:end]`` becomes ``after[new_start:new_end]``."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified(name: str, before: str, after: str) -> str:
    """The change of a text as a unified diff; empty if there is none."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    out: list[str] = []
    for group in _grouped(hunks(old, new)):
        first, last = group[0], group[-1]
        start, end = max(0, first.start - _CONTEXT), min(len(old), last.end + _CONTEXT)
        new_start = first.new_start - (first.start - start)
        new_end = last.new_end + (end - last.end)
        out.append(f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@\n")
        at = start
        for hunk in group:
            out += [f" {line}" for line in old[at : hunk.start]]
            out += [f"-{line}" for line in old[hunk.start : hunk.end]]
            out += [f"+{line}" for line in new[hunk.new_start : hunk.new_end]]
            at = hunk.end
        out += [f" {line}" for line in old[at:end]]
    if out:
        out = [f"--- a/{name}\n", f"+++ b/{name}\n", *out]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in out)


def hunks(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """The changes, in order; lines between hunks are equal."""
    out: list[Hunk] = []
    at = new_at = 0
    for start, new_start, size in (*_equal(before, after, 0, 0), (len(before), len(after), 0)):
        if start > at or new_start > new_at:
            out.append(Hunk(at, start, new_at, new_start))
        at, new_at = start + size, new_start + size
    return out


def _equal(before: Sequence[str], after: Sequence[str], at: int, new_at: int) -> Iterator[tuple[int, int, int]]:
    """Blocks of equal lines: their start before and after (from ``at`` and ``new_at``), and their length."""
    least = min(len(before), len(after))
    head = next((index for index in range(least) if before[index] != after[index]), least)
    tail = next((count for count in range(least - head) if before[-1 - count] != after[-1 - count]), least - head)
    if head:
        yield at, new_at, head
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    yield from _between(old, new, at + head, new_at + head)
    if tail:
        yield at + len(before) - tail, new_at + len(after) - tail, tail


def _between(old: Sequence[str], new: Sequence[str], at: int, new_at: int) -> Iterator[tuple[int, int, int]]:
    if not old or not new:
        return
    anchors = _anchors(old, new)
    if not anchors:
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, old, new, autojunk=len(old) > _MANY)
        yield from ((at + block.a, new_at + block.b, block.size) for block in matcher.get_matching_blocks()[:-1])
        return
    start = new_start = 0
    for index, new_index in (*anchors, (len(old), len(new))):
        yield from _equal(old[start:index], new[new_start:new_index], at + start, new_at + new_start)
        if index < len(old):
            yield at + index, new_at + new_index, 1
        start, new_start = index + 1, new_index + 1


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that occur once on each side: the longest sequence that is in the same order."""
    counts, new_counts = Counter(old), Counter(new)
    places = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(index, places[line]) for index, line in enumerate(old) if counts[line] == 1 and line in places]
    # The longest run that rises on both sides: the smallest last line of runs of each length, and who came before.
    ends: list[int] = []
    runs: list[int] = []
    earlier: list[int] = []
    for number, (_, new_index) in enumerate(pairs):
        length = bisect_left(ends, new_index)
        earlier.append(runs[length - 1] if length else -1)
        ends[length : length + 1] = [new_index]
        runs[length : length + 1] = [number]
    out: list[tuple[int, int]] = []
    number = runs[-1] if runs else -1
    while number >= 0:
        out.append(pairs[number])
        number = earlier[number]
    return out[::-1]


def _grouped(changes: Sequence[Hunk]) -> Iterator[list[Hunk]]:
    """Hunks that are close enough together to be shown as one."""
    group: list[Hunk] = []
    for hunk in changes:
        if group and hunk.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _span(start: int, end: int) -> str:
    """First line and number of lines, in ``diff`` notation."""
    if end - start == 1:
        return str(start + 1)
    return f"{start + (end > start)},{end - start}"
