"""A Snapshot from files: what ``kubectl get -o json`` or ``-o yaml`` wrote, packed or not; or directories."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kubectl_dra.cluster.builder import Place, SnapshotBuilder
from kubectl_dra.cluster.client import Progress
from kubectl_dra.cluster.snapshot import KINDS, Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import Document, NotAnObject, Skipped, TemplateError, each, parse
from kubectl_dra.manifests.objects import is_object, objects
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.stream import LARGE, NotAList, list_items, yaml_list

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"
_GZIP: Final = b"\x1f\x8b\x08"
LARGEST_UNPACKED: Final = 2 * 10**9
"""Bytes that a packed input may unpack to: a few kilobytes can be made to unpack to terabytes."""
STEP: Final = 500
"""Progress is told whenever so many objects were read."""
SAID: Final = "kubectl-dra"
"""The field of a List in which ``kubectl dra snapshot`` says what it could not read."""
_SAID_FIRST: Final = re.compile(rf'\s*\{{\s*(?:"(?:apiVersion|kind)"\s*:\s*"[^"]*"\s*,\s*)*"{SAID}"\s*:\s*')
_SAID: Final = re.compile(rf'"{SAID}"\s*:')


def read_snapshot(
    paths: Sequence[str],
    *,
    namespace: str = "default",
    stdin: bytes | None = None,
    workloads: bool = False,
    compact: bool = False,
    progress: Progress | None = None,
) -> Snapshot:
    """Reads a snapshot from files, directories (with all their ``SUFFIXES`` files) and ``-``.

    Objects without a namespace are put into ``namespace``. In a directory, files that hold no Kubernetes
    objects, and templates, are left out with a note; a file that is named must hold objects. With ``workloads``,
    a pod stands for each pod template of a Deployment, Job and the like; ``compact`` shares devices that are alike
    (see ``Snapshot.individual``). ``progress`` is told of large files.

    Raises:
        InputError: a path that cannot be read, text that is not YAML, an object that makes no sense, or two
            different objects of one name.
    """
    builder = SnapshotBuilder(namespace, workloads=workloads, compact=compact)
    add_files(builder, paths, stdin=stdin, progress=progress)
    return builder.build()


def add_files(
    builder: SnapshotBuilder, paths: Sequence[str], *, stdin: bytes | None = None, progress: Progress | None = None
) -> None:
    """Reads the paths as ``read_snapshot`` does, into a builder."""
    if not paths:
        raise InputError("no snapshot is named: give a file, a directory, or - for standard input")
    for path in paths:
        if path == STDIN:
            builder.source("standard input")
            data = sys.stdin.buffer.read() if stdin is None else stdin
            _add_source(builder, decode(_unpacked(data, "standard input"), "standard input"), progress)
            continue
        builder.source(path)
        if Path(path).is_dir():
            _add_directory(builder, Path(path), progress)
        else:
            _add_source(builder, read_source(path), progress)


def read_source(path: str) -> Source:
    """The text of a file, packed by gzip or not. Raises InputError, saying why it cannot be read."""
    try:
        return decode(_unpacked(Path(path).read_bytes(), path), path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file or directory") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InputError(f"{path!r}: not a file name") from None


def _unpacked(data: bytes, name: str) -> bytes:
    """What gzip packed, known by its first bytes; anything else as it is.

    Raises:
        InputError: it is damaged, or cut off, or unpacks to more than any snapshot has.
    """
    if not data.startswith(_GZIP):
        return data
    import gzip
    import zlib
    from io import BytesIO

    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
            text = packed.read(LARGEST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: cannot be unpacked by gzip, it is damaged or cut off: {error}") from None
    if len(text) > LARGEST_UNPACKED:
        raise InputError(f"{name}: unpacks to more than {LARGEST_UNPACKED // 10**9} GB, which no snapshot has")
    return text


def manifest_files(directory: Path) -> Iterator[Path]:
    """The manifest files below a directory, sorted by path; hidden files and directories are skipped.

    Raises:
        InputError: a directory that cannot be read.
    """
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise InputError(f"{directory}: cannot be read: {error.strerror or error}") from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            # A link to a directory could lead back to where it came from.
            if not entry.is_symlink():
                yield from manifest_files(entry)
        elif entry.suffix.lower() in SUFFIXES:
            yield entry


def _add_directory(builder: SnapshotBuilder, directory: Path, progress: Progress | None) -> None:
    found = False
    for file in manifest_files(directory):
        try:
            source = read_source(str(file))
            if _add_large(builder, source, progress):
                found = True
                continue
            documents = parse(source)
        except (TemplateError, NotAnObject) as error:
            builder.note(f"left out: {error}")
            continue
        usable = []
        for document in documents:
            if is_object(document.object):
                usable.append(document)
            else:
                builder.note(f"left out: {file}:{document.line}: not a Kubernetes object")
        found = found or bool(usable)
        _add(builder, usable)
    if not found:
        raise InputError(f"{directory}: no Kubernetes object in any of its {', '.join(SUFFIXES)} files")


def _add_source(builder: SnapshotBuilder, source: Source, progress: Progress | None) -> None:
    if not _add_large(builder, source, progress):
        _add(builder, _documents(source))


def _documents(source: Source) -> Iterator[Document]:
    """The documents one by one, as ``parse`` gives them together."""
    empty = True
    for found in each(source):
        if isinstance(found, Skipped):
            raise found.error
        empty = False
        yield found
    if empty:
        raise NotAnObject("there is nothing in it", source.name)


def _add_large(builder: SnapshotBuilder, source: Source, progress: Progress | None) -> bool:
    """Takes a large List item by item; False if it is not that, and has to be read as a whole."""
    if len(source.text) < LARGE:
        return False
    json_text = source.text.lstrip()[:1] == "{"
    return _add_json(builder, source, progress) if json_text else _add_yaml(builder, source, progress)


def _add_yaml(builder: SnapshotBuilder, source: Source, progress: Progress | None) -> bool:
    try:
        head, items = yaml_list(source)
        if SAID in head:
            builder.said(head[SAID], source.name)
        return _add_items(builder, source, items, progress)
    except NotAList:
        return False


def _add_json(builder: SnapshotBuilder, source: Source, progress: Progress | None) -> bool:
    first = _SAID_FIRST.match(source.text)
    if first is None and _SAID.search(source.text):
        return False
    try:
        if first is not None:
            builder.said(json.JSONDecoder().raw_decode(source.text, first.end())[0], source.name)
        return _add_items(builder, source, list_items(source), progress)
    except (NotAList, json.JSONDecodeError):
        return False


def _add_items(
    builder: SnapshotBuilder, source: Source, items: Iterator[tuple[int, Any]], progress: Progress | None
) -> bool:
    for index, item in items:
        if not is_object(item):
            raise InputError(f"{source.name}:1: item {index} of the List has no apiVersion and kind")
        if item["kind"].endswith("List"):
            return False
        builder.add(item, Place(source.name, 1, index))
        if progress is not None and index % STEP == 0:
            progress(f"{source.name}: {index} objects")
    return True


def _add(builder: SnapshotBuilder, documents: Iterable[Document]) -> None:
    for document in documents:
        kind = document.object.get("kind")
        if isinstance(kind, str) and kind.endswith("List") and kind.removesuffix("List") in KINDS:
            builder.present(kind.removesuffix("List"))
        if kind == "List" and SAID in document.object:
            builder.said(document.object[SAID], f"{document.name}:{document.line}")
        for found in objects((document,)):
            item = found.path[-1] if found.path else None
            builder.add(found.object, Place(document.name, document.line, item if isinstance(item, int) else None))
