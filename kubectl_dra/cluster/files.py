"""A Snapshot from files or directories: the output of ``kubectl get -o json`` or ``-o yaml``, gzipped or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from mmap import mmap
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import DecodeError, Raw, field, json
from msgspec.structs import replace

from kubectl_dra.api.meta import title
from kubectl_dra.api.neighbour_kinds import kind_here
from kubectl_dra.cluster.builder import NestedList, SnapshotBuilder
from kubectl_dra.cluster.contents import STDIN, Pages, contents, large, unpacked
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.reader import Page
from kubectl_dra.cluster.snapshot import ABSENT, EVERY_KIND, Gap, Progress, Snapshot
from kubectl_dra.cluster.time_read import stamp
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import Document, NotAnObject, Skipped, TemplateError, each_document, parse
from kubectl_dra.manifests.objects import (
    NotAList,
    is_object,
    may_make_pods,
    object_key,
    objects,
    unknown_object,
    yaml_list,
)
from kubectl_dra.manifests.source import Source, decode


class _OneObject(SnapshotBuilder):
    """Keeps the one object that is looked for, and no other."""

    def __init__(self, kind: str, name: str, namespace: str) -> None:
        # Where workloads are wanted every item is given to ``add`` as it is written.
        super().__init__(namespace, workloads=True)
        self._wanted = ((kind, namespace, name), (kind, "", name))
        self.found: dict[str, Any] | None = None

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Keep it if it is the one."""
        if object_key(raw) in self._wanted:
            self.found = raw


class _ManifestBuilder(SnapshotBuilder):
    """The objects of a manifest: one that no API server takes is an error, as what it would make is missing."""

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Add an object, or note that it may make pods which are left out.

        Raises InputError: as any builder, and for a kind that Kubernetes does not have in this group.
        """
        if (unknown := unknown_object(raw)) is not None:
            what, meant = unknown
            hint = f"; did you mean {meant}?" if meant else ""
            raise InputError(f"{place}: {what} is not an object of Kubernetes{hint}")
        if may_make_pods(raw):
            self.note(f"{place}: {title(raw)} has containers, and its kind is not known: its pods are left out")
        super().add(raw, place)


def saved_object(paths: Sequence[str], kind: str, name: str, namespace: str) -> dict[str, Any] | None:
    """The object of this name; None if the files have none. Raises InputError for files that cannot be read."""
    builder = _OneObject(kind, name, namespace)
    add_files(builder, paths)
    return builder.found


SUFFIXES: Final = (".yaml", ".yml", ".json")
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
LARGE: Final = 1_000_000
"""Size in bytes from which reading item by item pays off."""
STEP: Final = 500
"""Progress is reported after each so many objects."""
METADATA_KEY: Final = "kubectl-dra"
"""The field of a List in which ``kubectl dra snapshot`` records what it could not read."""


def read_snapshot(
    paths: Sequence[str],
    *,
    namespace: str = "default",
    stdin: bytes | None = None,
    workloads: bool = False,
    compact: bool = False,
    complete: bool = False,
    progress: Progress | None = None,
    only: str = "",
    stored: bool = False,
) -> Snapshot:
    """Read a snapshot from files, directories (all files with ``SUFFIXES``) and ``-``.

    Objects without a namespace are put into ``namespace``. Files in a directory that hold no Kubernetes
    objects, or are templates, are skipped with a note; a file that is named must hold objects. With
    ``workloads``, each pod template of a Deployment, Job and so on becomes a pod; ``compact`` shares devices
    that look alike (see ``Snapshot.individual``). ``complete``: the user says that nothing else exists.
    ``progress`` is told of large files. ``only``: the namespace that was typed, which objects may leave out.
    ``stored``: what makes pods is kept as it is as well (see ``Snapshot.stored``).

    Raises:
        InputError: an unreadable path, invalid YAML, an invalid object or one of another namespace than ``only``, or
            two different objects of one name.
    """
    make = SnapshotBuilder
    if stored:
        from kubectl_dra.cluster.pointed_objects import StoredBuilder

        make = StoredBuilder
    elif workloads:
        make = _ManifestBuilder
    builder = make(namespace, workloads=workloads, compact=compact, only=only)
    add_files(builder, paths, stdin=stdin, progress=progress)
    snapshot = builder.build(complete=complete)
    if snapshot.pods or snapshot.whole or snapshot.is_gap("Pod"):
        return snapshot
    # A file may say that pods were read and have none: a reservation for one shows that they were left out.
    reserved = any(user.is_pod for claim in snapshot.claims.values() for user in claim.reserved_for)
    return replace(snapshot, gaps=(*snapshot.gaps, Gap("Pod", ABSENT))) if reserved else snapshot


def add_files(
    builder: SnapshotBuilder, paths: Sequence[str], *, stdin: bytes | None = None, progress: Progress | None = None
) -> None:
    """Read the paths into a builder, as ``read_snapshot`` does."""
    if not paths:
        raise InputError("no snapshot is named: give a file, a directory, or - for standard input")
    for path in paths:
        if path == STDIN:
            builder.source("standard input")
            data = contents(STDIN) if stdin is None else unpacked(BytesIO(stdin).read, "standard input")
            _add_data(builder, data, "standard input", progress)
            continue
        builder.source(path)
        if Path(path).is_dir():
            _add_directory(builder, Path(path), progress)
        elif not _add_pages(builder, path, progress):
            _add_data(builder, contents(path), path, progress)


def manifest_files(directory: Path) -> Iterator[Path]:
    """The manifest files below a directory, sorted by path. Hidden files and directories are skipped.

    Raises InputError: a directory that cannot be read.
    """
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise InputError(f"{directory}: cannot be read: {error.strerror or error}") from None
    for path in entries:
        if path.name.startswith("."):
            continue
        if path.is_dir():
            # A link to a directory could lead back to where it came from.
            if not path.is_symlink():
                yield from manifest_files(path)
        elif path.suffix.lower() in SUFFIXES:
            yield path


def _add_directory(builder: SnapshotBuilder, directory: Path, progress: Progress | None) -> None:
    any_usable = False
    for file in manifest_files(directory):
        try:
            if _add_pages(builder, str(file), progress):
                any_usable = True
                continue
            data = contents(str(file))
            if _add_large(builder, data, str(file), progress):
                any_usable = True
                continue
            documents = parse(decode(data, str(file)))
        except (TemplateError, NotAnObject) as error:
            builder.note(f"left out: {error}")
            continue
        usable = []
        for document in documents:
            if is_object(document.object):
                usable.append(document)
            else:
                builder.note(f"left out: {file}:{document.line}: not a Kubernetes object")
        any_usable = any_usable or bool(usable)
        _add(builder, usable)
    if not any_usable:
        raise InputError(f"{directory}: no Kubernetes object in any of its {', '.join(SUFFIXES)} files")


def _add_pages(builder: SnapshotBuilder, path: str, progress: Progress | None) -> bool:
    """Read a large List in JSON from a file. False if it is anything else."""
    pages = large(path)
    return pages is not None and _is_json(pages.data) and _add_json(builder, pages.data, path, progress, pages)


def _add_data(builder: SnapshotBuilder, data: bytes, name: str, progress: Progress | None) -> None:
    if not _add_large(builder, data, name, progress):
        _add(builder, _documents(decode(data, name)))


def _documents(source: Source) -> Iterator[Document]:
    """The documents one by one; ``parse`` returns them all together."""
    empty = True
    for document in each_document(source):
        if isinstance(document, Skipped):
            raise document.error
        empty = False
        yield document
    if empty:
        raise NotAnObject("there is nothing in it", source.name)


def _add_large(builder: SnapshotBuilder, data: bytes, name: str, progress: Progress | None) -> bool:
    """Read a large List item by item. False if the input is not one and must be read as a whole."""
    if len(data) < LARGE:
        return False
    if data.startswith(_UTF16):
        data = decode(data, name).text.encode()
    data = data.removeprefix(_BOM)
    if _is_json(data):
        return _add_json(builder, data, name, progress)
    return _add_yaml(builder, decode(data, name), progress)


def _add_yaml(builder: SnapshotBuilder, source: Source, progress: Progress | None) -> bool:
    try:
        head, items = yaml_list(source)
        if METADATA_KEY in head:
            builder.said(head[METADATA_KEY], source.name)
        return _add_items(builder, source, items, progress)
    except NotAList:
        return False


def _is_json(data: bytes | mmap) -> bool:
    return data[:256].lstrip()[:1] == b"{"


def _add_json(
    builder: SnapshotBuilder, data: bytes | mmap, name: str, progress: Progress | None, pages: Pages | None = None
) -> bool:
    """Read a List in JSON. ``pages`` are the memory of the data, which is given back as it is read."""
    try:
        objects_read = _list.decode(data)
    except (DecodeError, UnicodeDecodeError):
        return False
    if not objects_read.kind.endswith("List") or objects_read.entries is None:
        return False
    if objects_read.said is not None:
        builder.said(json.decode(objects_read.said), name)
    if (kind := kind_here(objects_read.item_kind, objects_read.api_version)) in EVERY_KIND:
        builder.present(kind)
    # Items of a PodList and the like do not say what they are.
    version = objects_read.api_version if objects_read.item_kind else ""
    done = 0
    for index, item in enumerate(objects_read.items):
        try:
            builder.add_item(item, Place(name, 1, index), objects_read.item_kind, version)
        except NestedList:
            return False
        except UnicodeDecodeError:
            raise InputError(f"{name}: not a text file: item {index} of the List is not UTF-8") from None
        if pages is not None:
            # Without the blanks between items this is less than has been read.
            done += len(memoryview(item))
            pages.give_back(done)
        if progress is not None and index % STEP == 0:
            progress(f"{name}: {index} objects")
    return True


class _List(Page, frozen=True, rename="camel"):
    """A List in a file, with what ``kubectl dra snapshot`` records besides the items."""

    said: Raw | None = field(default=None, name=METADATA_KEY)


_list: Final = json.Decoder(_List)


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
        if isinstance(kind, str) and kind.endswith("List"):
            listed = kind_here(kind.removesuffix("List"), str(document.object.get("apiVersion")))
            if listed in EVERY_KIND:
                builder.present(listed)
        if kind == "List" and METADATA_KEY in document.object:
            builder.said(document.object[METADATA_KEY], f"{document.name}:{document.line}")
        for manifest in objects((document,)):
            item = manifest.path[-1] if manifest.path else None
            builder.add(manifest.object, Place(document.name, document.line, item if isinstance(item, int) else None))


# A folder of snapshots, each called after the time at which it was taken; the oldest go.

_NAME: Final = re.compile(r"snapshot-(\d{4}-\d\d-\d\dT\d{6}Z)\.json")
_FORM: Final = "%Y-%m-%dT%H%M%SZ"


class TakenSnapshot(NamedTuple):
    """A snapshot of the folder."""

    at: datetime
    path: Path


def path_at(folder: Path, at: datetime) -> Path:
    """The file of a snapshot that is taken now."""
    return folder / f"snapshot-{at.astimezone(UTC).strftime(_FORM)}.json"


def taken(folder: Path) -> Sequence[TakenSnapshot]:
    """The snapshots in a folder, oldest first; other files do not count. Raises InputError: no folder."""
    try:
        names = {path.name: path for path in folder.iterdir()}
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None
    matches = ((_NAME.fullmatch(name), path) for name, path in names.items())
    recordings: list[TakenSnapshot] = []
    for match, path in matches:
        if match is not None:
            recordings.append(TakenSnapshot(datetime.strptime(match[1], _FORM).replace(tzinfo=UTC), path))
    return sorted(recordings)


def drop_oldest(folder: Path, keep: int) -> None:
    """Delete all but the newest. Raises InputError."""
    for old in taken(folder)[:-keep]:
        try:
            old.path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{old.path}: cannot be deleted: {error.strerror or error}") from None


def last_before(folder: Path, at: datetime) -> TakenSnapshot:
    """The newest snapshot that was taken at that time or before. Raises InputError: there is none."""
    known = taken(folder)
    before = [snapshot for snapshot in known if snapshot.at <= at]
    if before:
        return before[-1]
    hint = f"; the oldest is of {stamp(known[0].at)}" if known else "; kubectl dra snapshot --every 10m makes them"
    raise InputError(f"{folder}: there is no snapshot of {stamp(at)} or before{hint}")
