"""Raw objects to a Snapshot: checks shapes, converts old versions, and resolves duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import json

from kubectl_dra.api.codec import Mismatch, decoded, mismatch, struct_mismatch
from kubectl_dra.api.conversion import VERSIONS, reshaped
from kubectl_dra.api.meta import EMPTY, ObjectMeta, title
from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import GROUP, PLURALS, Release, parse_release
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.cluster.duplicates import Kept, Makers, Place, essence, newer
from kubectl_dra.cluster.impossible_objects import in_claim, in_slice
from kubectl_dra.cluster.kinds import CORE_KINDS, SCHEDULING_KINDS, further_kind, is_namespaced
from kubectl_dra.cluster.reader import READ, Page, Reader, item_of, page, type_of
from kubectl_dra.cluster.snapshot import (
    ABSENT,
    DRA_KINDS,
    EVERY_KIND,
    UNREADABLE,
    UNSUPPORTED,
    Gap,
    Key,
    Snapshot,
    StandIn,
    WrittenKey,
)
from kubectl_dra.cluster.time_read import newest
from kubectl_dra.data.messages import Speaker
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import fields_at

_CLAIMS: Final = ("ResourceClaim", "ResourceClaimTemplate")
_MOST_NOTED: Final = 5
_EVENT_ABOUT: Final = frozenset(("Pod", "ResourceClaim", "DaemonSet", "ReplicaSet", "VirtualMachineInstance"))
_TYPED: Final = frozenset(
    (("ResourceSlice", f"{GROUP}/v1"), ("ResourceClaim", f"{GROUP}/v1"), ("Pod", "v1"), ("Node", "v1"))
)
"""Kinds that are decoded directly from text."""


class NestedList(Exception):
    """An item of a list is a list."""


class _Malformed(InputError):
    """A field of an object has a wrong type, or its name is missing."""


class SnapshotBuilder:
    """Collects objects, then builds a Snapshot from them. Use once."""

    def __init__(
        self,
        namespace: str = "default",
        *,
        workloads: bool = False,
        compact: bool = False,
        reader: Reader | None = None,
        only: str = "",
    ) -> None:
        """``workloads``: the objects are manifests. A Deployment, Job and so on stands for one pod per template, and
        all are also kept as written. ``compact``: devices that look alike are shared (see ``Snapshot.individual``). A
        ``reader`` shares what several builders read. ``only``: objects of another namespace than this are an error, as
        for kubectl.
        """
        self._namespace, self._only = namespace, only
        self._workloads = workloads
        self._objects: dict[str, dict[Any, Kept]] = {kind: {} for kind in EVERY_KIND}
        self._reader = reader or Reader(compact=compact)
        # Kubelet version -> the first node that has it.
        self._kubelets: dict[str, str] = {}
        self._present: set[str] = set()
        self._gaps: list[Gap] = []
        self._notes: list[str] = []
        self._claims_read: dict[WrittenKey, tuple[Mapping[str, Any], Place]] = {}
        self._sources: list[str] = []
        self._server = self._context = self._read_at = ""
        self._served: Mapping[str, str] | None = None
        self._release: Release | None = None
        self._rule_version = ""
        self._written: dict[WrittenKey, Mapping[str, Any]] = {}
        self._makers = Makers(namespace)
        self._stand_ins: list[tuple[dict[str, Any], Place]] = []

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Add an object with apiVersion and kind. Kinds that no snapshot holds are ignored.

        Raises:
            InputError: a field of the wrong type, or a different object of the same kind, namespace and name.
        """
        kind = raw["kind"]
        group, _, version = str(raw["apiVersion"]).rpartition("/")
        if group == GROUP:
            if kind in DRA_KINDS and version in VERSIONS:
                self._keep(kind, raw, version, place)
            elif kind in PLURALS:
                self._unsupported(kind, raw["apiVersion"], place)
        elif kind in CORE_KINDS and (group == "" or (group == "events.k8s.io" and kind == "Event")):
            self._keep(kind, raw, "v1", place)
        elif further := further_kind(raw, manifest=self._workloads):
            try:
                self._keep(further, raw, version, place)
            except _Malformed as error:
                if further not in NEIGHBOUR_KINDS:
                    raise
                # Another version of its layer wrote it, or anybody: the rest can be read.
                meta = raw.get("metadata")
                space = str(meta.get("namespace") or "") if isinstance(meta, dict) else ""
                self.gap(Gap(further, UNREADABLE, space, str(error)))
        if self._workloads and kind != "Pod":
            from kubectl_dra.cluster.workload_pods import pods_of

            try:
                pods = list(pods_of(raw))
            except InputError as error:
                raise InputError(f"{place}: {kind}: {error}") from None
            if pods and self._makers.take(raw, place):
                self._stand_ins += ((pod, place) for pod in pods)

    def _stand_in(self, pod: dict[str, Any], place: Place) -> None:
        """Keep a pod that stands for those of a workload, called as no other one."""
        from kubectl_dra.cluster.workload_pods import free_name

        meta, own = pod["metadata"], self._objects["Pod"]
        space = meta.get("namespace") or self._namespace
        same, stands_for = own.get((space, meta["name"])), StandIn.of(meta["annotations"])
        there = StandIn.of(same.object.metadata.annotations) if same is not None else None
        if same is not None and (there and there.kind) != (stands_for and stands_for.kind):
            name = free_name(meta["name"], {name for of, name in own if of == space})
            pod = {**pod, "metadata": {**meta, "name": name}}
        self._keep("Pod", pod, "v1", place)

    def add_page(self, given: Page, kind: str, place: Place) -> list[Gap]:
        """Add the objects of a page. Invalid ones become gaps, because the rest can be read."""
        if given.objects is not None:
            with suppress(InputError):
                pods = ((self._reader.pod(text), text.metadata.resource_version) for text in given.objects)
                if all(
                    pod is not None and self._add_found(kind, pod, pod.metadata, version, place)
                    for pod, version in pods
                ):
                    return []
            # Something is unusual: once more, object by object. What was taken already is the same.
            again = page(given.data)
            assert again is not None
            given = again
        gaps: list[Gap] = []
        for item in given.items:
            try:
                self.add_item(item, place, given.item_kind, given.api_version)
            except NestedList:
                gaps.append(Gap(kind, UNREADABLE, detail=f"{place}: a list in a list"))
            except InputError as error:
                # The server is newer or odder than what is known here.
                gaps.append(Gap(kind, UNREADABLE, detail=str(error)))
        return gaps

    def _add_found(self, kind: str, decoded: Any, meta: ObjectMeta, version: str, place: Place) -> bool:
        """Keep what the reader decoded. False if its name or namespace is missing. Raises InputError."""
        if not meta.name or not (meta.namespace or not is_namespaced(kind)):
            return False
        space = meta.namespace if is_namespaced(kind) else ""
        self._hold(kind, (space, meta.name), Kept(decoded, place, meta.uid, version))
        return True

    def add_item(self, data: Any, place: Place, kind: str = "", api_version: str = "") -> None:
        """Add the JSON text of a list item; ``kind`` and ``api_version`` apply if it lacks its own.

        Raises:
            NestedList: the item is itself a list.
            InputError: as ``add``, or not an object with apiVersion and kind.
        """
        api_version, kind = type_of(data, api_version, kind)
        if not kind or not api_version:
            raise InputError(f"{place}: this item of the List has no apiVersion and kind")
        if kind.endswith("List"):
            raise NestedList
        if (kind, api_version) in _TYPED and not self._workloads:
            found = self._reader.read(kind, data)
            if found is not None and self._add_found(kind, *found, place):
                return
        raw = item_of(data, place)
        self.add({**raw, "apiVersion": api_version, "kind": kind}, place)

    @property
    def speakers(self) -> frozenset[Speaker]:
        """The sources of the events so far."""
        return frozenset(kept.object.speaker for kept in self._objects["Event"].values())

    @property
    def pods(self) -> Iterator[Pod]:
        """The pods so far."""
        return (kept.object for kept in self._objects["Pod"].values())

    def forget(self, kind: str) -> None:
        """Drop the objects of a kind, before they are added anew."""
        self._objects[kind].clear()
        if kind == "Node":
            self._kubelets.clear()

    def drop(self, kind: str, key: Key) -> Kept | None:
        """Drop an object, such as one that was deleted, or is added anew; returns it."""
        self._claims_read.pop((kind, *key), None)
        kept: Kept | None = self._objects[kind].pop(key, None)
        return kept

    def kept(self, kind: str) -> Mapping[Key, Kept]:
        """The objects of a kind so far."""
        return self._objects[kind]

    def adopt(self, kind: str, other: SnapshotBuilder) -> None:
        """Add all that another builder has of a kind."""
        self._objects[kind].update(other._objects[kind])
        self._kubelets = {**other._kubelets, **self._kubelets}
        self._rule_version = other._rule_version or self._rule_version
        self._claims_read.update(other._claims_read)
        self.present(kind)

    def present(self, kind: str) -> None:
        """Record that the input lists the kind completely, even if it has no objects of it."""
        self._present.add(kind)

    def gap(self, gap: Gap) -> None:
        """Record something that could not be read, once."""
        if gap not in self._gaps:
            self._gaps.append(gap)

    def note(self, sentence: str) -> None:
        """Record a sentence for the user, once."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def source(self, name: str) -> None:
        """Record an input."""
        self._sources.append(name)

    def cluster(self, server: str, context: str, served: Mapping[str, str] | None) -> None:
        """Record a live cluster as the input: its address, the context, and what it serves."""
        self.source(server)
        self._server, self._context, self._served = server, context, served

    def read_at(self, time: str) -> None:
        """Record when a cluster was read; of several times, the latest."""
        self._read_at = max(self._read_at, time)

    def server_release(self, release: Release) -> None:
        """Record the release that the API server reported."""
        self._release = release

    def said(self, said: Any, place: str) -> None:
        """Add what ``kubectl dra snapshot`` recorded about the cluster besides its objects (see
        ``cluster.save``).

        Raises InputError: not of that form.
        """
        try:
            for kind in said.get("read") or ():
                self.present(str(kind))
            for gap in said.get("gaps") or ():
                self.gap(Gap(*(str(gap.get(name) or "") for name in Gap._fields)))
            for sentence in said.get("notes") or ():
                self.note(str(sentence))
            if said.get("readAt"):
                self.read_at(str(said["readAt"]))
            if said.get("serverVersion"):
                self.server_release(parse_release(str(said["serverVersion"])))
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(f"{place}: kubectl-dra is not what kubectl dra snapshot writes: {error}") from None

    def build(self, *, complete: bool = False) -> Snapshot:
        """The Snapshot. Each kind without objects that was not listed becomes a gap.

        ``complete``: the user says, or it is known, that nothing else exists.

        Raises:
            InputError: an invalid object.
        """
        for pod, place in self._stand_ins:
            self._stand_in(pod, place)
        known = self._present | {gap.kind for gap in self._gaps}
        if not complete:
            absent = (kind for kind, objects in self._objects.items() if not objects and kind not in known)
            self._gaps += [Gap(kind, ABSENT) for kind in absent]
        release, release_source = self._release, "server" if self._release else ""
        if release is None:
            release, release_source = self._kubelet_release()
        slices = tuple(self._all("ResourceSlice"))
        earlier = len(self._notes)
        self._note_never_stored(slices)
        return Snapshot(
            slices=slices,
            classes=self._by_name("DeviceClass"),
            claims=self._by_key("ResourceClaim"),
            templates=self._by_key("ResourceClaimTemplate"),
            pods=self._by_key("Pod"),
            nodes=self._by_name("Node"),
            taint_rules=tuple(self._all("DeviceTaintRule")),
            rule_version=self._rule_version,
            quotas=tuple(self._all("ResourceQuota")),
            namespaces=self._by_name("Namespace"),
            others={kind: self._by_key(kind) for kind in SCHEDULING_KINDS if self._objects[kind]},
            events=tuple(event for event in self._all("Event") if event.kind in _EVENT_ABOUT),
            gaps=tuple(self._gaps),
            notes=tuple(self._notes),
            refound=tuple(self._notes[earlier:]),
            release=release,
            release_source=release_source,
            sources=tuple(self._sources),
            server=self._server,
            context=self._context,
            served=self._served,
            read_at=self._read_at or newest(self._all("Pod"), self._all("ResourceClaim"), self._all("Event")),
            written=self._written,
            workloads=tuple(self._makers.taken),
            individual=frozenset(column for slice_ in slices if (own := slice_.individual) for column in own.columns),
            declared=complete,
        )

    def _note_never_stored(self, slices: Iterable[ResourceSlice]) -> None:
        """Say of objects that no server has stored: what follows from them is not to be relied on."""
        mistakes = [(str(place), kind, in_claim(raw, kind)) for (kind, *_), (raw, place) in self._claims_read.items()]
        mistakes += [(f"ResourceSlice {slice_.name}", "ResourceSlice", in_slice(slice_)) for slice_ in slices]
        wrong = [(where, kind, mistake) for where, kind, mistake in mistakes if mistake]
        for where, kind, mistake in wrong[:_MOST_NOTED]:
            self.note(f"{where}: no API server stores such a {kind}: {mistake}; answers about it may mean nothing")
        if len(wrong) > _MOST_NOTED:
            self.note(f"{len(wrong) - _MOST_NOTED} more objects that no API server stores")

    def _keep(self, kind: str, raw: dict[str, Any], version: str, place: Place) -> None:
        meta = raw.get("metadata") or EMPTY
        if not isinstance(meta, dict):
            raise _mismatched(struct_mismatch(meta, "ObjectMeta", path=("metadata",)), raw, place)
        written = raw
        name, namespace = meta.get("name") or "", ""
        if is_namespaced(kind):
            namespace = meta.get("namespace") or ""
            if not namespace:
                namespace = self._namespace
                raw = {**raw, "metadata": {**meta, "namespace": namespace}}
            elif self._only and namespace != self._only:
                raise InputError(
                    f'{place}: the namespace from the provided object "{namespace}" does not match the namespace '
                    f'"{self._only}"; use -n {namespace}, or leave -n out'
                )
        objects = self._objects[kind]
        if kind == "DeviceTaintRule":
            self._rule_version = version
        if not name:
            if kind == "Event":
                return
            if not meta.get("generateName"):
                raise _Malformed(f"{place}: this {kind} has no metadata.name")
            # Not created yet: the server will choose the name, so any that is free will do.
            name = f"{meta['generateName']}{len(objects):05}"
            raw = {**raw, "metadata": {**raw["metadata"], "name": name}}
            self.note(f"{place}: this {kind} has only a generateName; it is called {name} here")
        decoded = self._typed(kind, raw, version, place)
        if isinstance(decoded, Mismatch):
            raise _mismatched(decoded, written, place)
        if kind in _CLAIMS and not self._workloads:
            self._claims_read[kind, namespace, name] = raw, place
        self._hold(kind, (namespace, name), Kept(decoded, place, meta.get("uid"), meta.get("resourceVersion")))
        if self._workloads:
            self._written[kind, namespace, name] = written

    def _hold(self, kind: str, key: tuple[str, str], kept: Kept) -> None:
        """Keep an object, or choose between two with the same name. Raises InputError if they differ."""
        objects, place = self._objects[kind], kept.place
        before = objects.get(key)
        if before is not None and not newer(before, kept):
            if newer(kept, before):
                self._note_duplicate(kind, key, before.place, place)
            elif essence(before.object) != essence(kept.object):
                stands_for = StandIn.of(kept.object.metadata.annotations) if kind == "Pod" else None
                called = stands_for.workload if stands_for else f"{kind} {'/'.join(filter(None, key))}"
                where = f"{before.place} and {place}"
                raise InputError(f"two different objects are called {called}: {where}; leave one of them out")
            return
        if before is not None:
            self._note_duplicate(kind, key, place, before.place)
        objects[key] = kept
        if kind == "Node" and (version := kept.object.status.node_info.kubelet_version):
            self._kubelets.setdefault(version, key[1])

    def _note_duplicate(self, kind: str, key: tuple[str, str], kept: Place, place: Place) -> None:
        title = "/".join(part for part in key if part)
        # An event may change between two lists that both have it.
        if kind != "Event":
            self.note(f"{kind} {title} is there twice: the newer one at {kept} is used, not {place}")

    def _unsupported(self, kind: str, api_version: str, place: Place) -> None:
        if kind in DRA_KINDS:
            self.gap(Gap(kind, UNSUPPORTED, detail=f"{api_version} at {place}"))
        else:
            self.note(f"{place}: {api_version} {kind} no longer affects allocation and is ignored")

    def _typed(self, kind: str, raw: dict[str, Any], version: str, place: Place) -> Any:
        """The object as the snapshot holds it, or a Mismatch. Raises InputError if it is invalid."""
        try:
            if kind in NEIGHBOUR_KINDS:
                return mismatch(raw, kind) or SCHEDULING_KINDS[kind].decode(decoded(raw, kind))
            if kind in SCHEDULING_KINDS:
                wrong = struct_mismatch(raw.get("metadata"), "ObjectMeta", path=("metadata",))
                return wrong or SCHEDULING_KINDS[kind].decode(raw)
            if kind in ("Namespace", "ResourceQuota", "Event"):
                wrong = struct_mismatch(raw.get("metadata"), "ObjectMeta", path=("metadata",))
            else:
                wrong = mismatch(raw, kind, version)
            if wrong is not None:
                return wrong
            today = reshaped(decoded(raw, kind, version)) if kind in DRA_KINDS else raw
            found = self._reader.read(kind, json.encode(today)) if (kind, today["apiVersion"]) in _TYPED else None
            return READ[kind](today) if found is None else found.object
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _Malformed(f"{place}: {title(raw)} cannot be understood: {error}") from error

    def _all(self, kind: str) -> Iterator[Any]:
        return (kept.object for kept in self._objects[kind].values())

    def _by_name(self, kind: str) -> dict[str, Any]:
        return {name: kept.object for (_, name), kept in self._objects[kind].items()}

    def _by_key(self, kind: str) -> dict[Key, Any]:
        return {key: kept.object for key, kept in self._objects[kind].items()}

    def _kubelet_release(self) -> tuple[Release | None, str]:
        nodes: dict[Release, str] = {}
        for version, node in self._kubelets.items():
            with suppress(ValueError):
                nodes.setdefault(parse_release(version), node)
        if not nodes:
            return None, ""
        newest = max(nodes)
        return newest, f"kubelet of node {nodes[newest]}; the API server may be newer"


def _mismatched(wrong: Mismatch | None, raw: Mapping[str, Any], place: Place) -> InputError:
    stands_for = StandIn.of(fields_at(raw, "metadata", "annotations"))
    return _Malformed(f"{place}: {f'the pods of {stands_for.workload}' if stands_for else title(raw)}: {wrong}")
