"""Changes of what an alias or a merge key (``<<``) brings to several places, so that each place gets what is meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.manifests.changes import MISSING, Append, Change, Delete, EditRefused, Set, below, changed, found_at
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.nodes import Crossing, written_key
from kubectl_dra.manifests.places import ELSEWHERE
from kubectl_dra.manifests.values import Node, is_merge

MERGE: Final = "<<"
_UNREAD: Final = ("x-", ".", "_")
"""Prefixes of keys whose parts are only referred to; Kubernetes knows none of these fields."""


def unshared(document: Document, changes: Sequence[Change]) -> list[Change]:
    """The changes, made where the text has what they change.

    What all places of a part become alike is changed where it is written. A place that becomes something else gets its
    own text: a key beside the merge key, a value in place of the alias, or all entries in place of the merge key.

    Raises:
        EditRefused: a place cannot get its own text.
    """
    crossings = list(_crossings(document, changes))
    if not crossings:
        return list(changes)
    meant = _Meant(document, changes)
    out: list[Change] = []
    own: dict[FieldPath, Change] = {}
    for change, crossed in zip(changes, crossings, strict=True):
        last = crossed is not None and len(crossed.path) == len(change.path) and not isinstance(change, Append)
        if crossed is None or (last and not crossed.merged and isinstance(change, Delete)):
            if not meant.comes_by_merge(change):
                out.append(change)
        elif last and not crossed.merged and isinstance(change, Set):
            own[change.path] = change
        elif meant.alike(crossed):
            continue
        elif last and isinstance(change, Delete):
            own.update({written.path: written for written in meant.written_out(crossed.path[:-1])})
        else:
            own[crossed.path] = Set(crossed.path, meant.value(crossed.path))
    return [*out, *own.values()]


def with_unread(document: Document, changes: Sequence[Change], objects: Sequence[FieldPath]) -> list[Change]:
    """The changes of some objects and, where they are about a part that is written below a key that Kubernetes does
    not know, the same change there: if all places that have the part become alike.
    """
    crossings = list(_crossings(document, changes))
    if not any(crossings):
        return list(changes)
    meant = _Meant(document, changes)
    added: dict[FieldPath, Change] = {}
    for change, crossed in zip(changes, crossings, strict=True):
        there = meant.written(crossed.source) if crossed is not None else None
        if crossed is None or there is None or not _is_unread(there, objects):
            continue
        rest = change.path[len(crossed.path) - crossed.merged :]
        left = found_at(document.object, there)
        emptied = isinstance(change, Delete) and len(rest) == len(left) == 1
        if rest and not emptied and below(left, rest[0]) is not None and meant.alike(crossed, but=there):
            added.setdefault((*there, *rest), replace(change, path=(*there, *rest)))
    return [*changes, *added.values()]


def _is_unread(path: FieldPath, objects: Sequence[FieldPath]) -> bool:
    return any(
        path[: len(at)] == at and len(path) > len(at) and str(path[len(at)]).startswith(_UNREAD) for at in objects
    )


def _crossings(document: Document, changes: Sequence[Change]) -> Iterator[Crossing | None]:
    text = document.source.text
    span = document.root.start_mark.index, document.root.end_mark.index
    if text.find(MERGE, *span) < 0 and (text.find("&", *span) < 0 or text.find("*", *span) < 0):
        return
    yield from (document.finder.crossing(change.path) for change in changes)


def _no_places(_: Node) -> list[Any]:
    return []


class _Meant:
    """What a document is meant to be after its changes, by paths from before them."""

    def __init__(self, document: Document, changes: Sequence[Change]) -> None:
        self._finder = document.finder
        self._new = changed(document.object, changes)
        self._gone = {change.path for change in changes if isinstance(change, Delete)}
        self._set = {change.path: change.value for change in changes if isinstance(change, Set)}
        self._values = ByIdentity[Node, list[FieldPath]]()
        """The paths of each node: first where it is written, if that is not behind a merge key."""
        self._merging = ByIdentity[Node, list[tuple[FieldPath, Node]]]()
        """The mappings that merge each node."""
        self._parts: dict[FieldPath, list[Node]] = {}
        """What each mapping merges."""
        for path, node in self._finder.places():
            self._values.of(node, _no_places).append(path)
            if node.id == "mapping":
                sources = [source for source, *_ in self._finder.entries(node).values()]
                merged = list({id(source): source for source in sources if source is not node}.values())
                for source in merged:
                    self._merging.of(source, _no_places).append((path, node))
                if merged:
                    self._parts[path] = merged

    def value(self, path: FieldPath) -> Any:
        """The value at a path. Raises EditRefused if there is none."""
        value = self._value(path)
        if value is MISSING:
            raise EditRefused(ELSEWHERE)
        return value

    def _value(self, path: FieldPath) -> Any:
        now: list[str | int] = []
        for length, part in enumerate(path, 1):
            if path[:length] in self._gone:
                return MISSING
            if isinstance(part, int):
                part -= sum(1 for index in range(part) if (*path[: length - 1], index) in self._gone)
            now.append(part)
        return found_at(self._new, tuple(now))

    def written(self, source: Node) -> FieldPath | None:
        """Where a node is written; None if only a merge key leads there."""
        return next((path for path in self._values.get(source) or () if not self._finder.crossing(path)), None)

    def alike(self, crossed: Crossing, but: FieldPath | None = None) -> bool:
        """Whether all places of a part become what it becomes where it is written; ``but``: all others, alike."""
        source = crossed.source
        there = self.written(source)
        if there is None or self._value(there) is MISSING:
            return False
        like = there if but is None else crossed.path[: len(crossed.path) - crossed.merged]
        if crossed.merged:
            keys: list[FieldPath] = [crossed.path[-1:]]
        else:
            keys = [(), *((key,) for key in (self._finder.entries(source) if source.id == "mapping" else ()))]
        for key in keys:
            places = list(self._values[source])
            if key:
                merging = self._merging.get(source) or ()
                places += [path for path, node in merging if self._comes_from(node, key[0]) is source]
            wanted = self._value((*like, *key))
            if any(self._value((*path, *key)) != wanted for path in places if path != but):
                return False
        return True

    def _comes_from(self, node: Node, key: str | int) -> Node | None:
        """The mapping in whose text the key of a mapping is."""
        entry = self._finder.entries(node).get(key)
        return None if entry is None else entry[0]

    def comes_by_merge(self, change: Change) -> bool:
        """Whether a new key comes by a merge key anyway, as the part that is merged gets it, too."""
        if not isinstance(change, Set):
            return False
        around, key = change.path[:-1], change.path[-1]
        for source in self._parts.get(around, ()):
            there = (self._values.get(source) or [()])[0]
            places = [path for path, _ in self._merging[source]]
            if self._set.get((*there, key), MISSING) == change.value:
                return all(self._value((*path, key)) == change.value for path in places)
        return False

    def written_out(self, path: FieldPath) -> Iterator[Change]:
        """The changes that put the entries of a mapping in place of its merge key.

        Raises:
            EditRefused: a key before the merge key has another value.
        """
        node = next(node for places in self._merging.by_id.values() for there, node in places if there == path)
        own = {written_key(key) for key, _ in node.value if not is_merge(key)}
        yield Delete((*path, MERGE))
        for name, (source, *_) in self._finder.entries(node).items():
            value = self._value((*path, name))
            if source is node or value is MISSING:
                continue
            if name in own:
                raise EditRefused(ELSEWHERE)
            yield Set((*path, name), value)
