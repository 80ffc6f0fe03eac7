"""Raw objects to a Snapshot: checks shapes, converts old versions, and settles duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.classes import DeviceClass
from kubectl_dra.api.conversion import VERSIONS, reshaped
from kubectl_dra.api.fields import mismatch, struct_mismatch
from kubectl_dra.api.meta import EMPTY, ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.api.versions import GROUP, PLURALS, Release, parse_release
from kubectl_dra.cluster.quick import SliceChecker
from kubectl_dra.cluster.snapshot import (
    ABSENT,
    CORE_KINDS,
    DRA_KINDS,
    KINDS,
    UNSUPPORTED,
    Event,
    Gap,
    ResourceQuota,
    Snapshot,
)
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.workloads import pod_templates

_NAMESPACED: Final = frozenset(("ResourceClaim", "ResourceClaimTemplate", "Pod", "ResourceQuota", "Event"))
MADE_BY: Final = "kubectl-dra/made-by"
"""Annotation of a pod that stands for those of a workload: the workload's kind and name."""
_EVENT_ABOUT: Final = frozenset(("Pod", "ResourceClaim"))


class Place(NamedTuple):
    """Where an object was read: an input, the line of its document, and its index in a List."""

    source: str
    line: int = 0
    item: int | None = None

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        item = f" (item {self.item})" if self.item is not None else ""
        return f"{self.source}{line}{item}"


class SnapshotBuilder:
    """Collects objects, then builds a Snapshot of them. Use once."""

    def __init__(self, namespace: str = "default", *, workloads: bool = False) -> None:
        """``workloads``: a Deployment, Job and the like stands for a pod of each of its templates."""
        self._namespace = namespace
        self._workloads = workloads
        self._objects: dict[str, dict[Any, tuple[dict[str, Any], Place]]] = {kind: {} for kind in KINDS}
        self._slices = SliceChecker()
        self._present: set[str] = set()
        self._gaps: list[Gap] = []
        self._notes: list[str] = []
        self._sources: list[str] = []
        self._release: Release | None = None

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Takes an object with apiVersion and kind; kinds that no snapshot holds are ignored.

        Raises:
            InputError: a field of the wrong type, or another object of the same kind, namespace and name.
        """
        kind = raw["kind"]
        group, _, version = str(raw["apiVersion"]).rpartition("/")
        if group == GROUP:
            if kind in DRA_KINDS and version in VERSIONS:
                self._keep(kind, _checked(raw, kind, version, place, self._slices), place)
            elif kind in PLURALS:
                self._unsupported(kind, raw["apiVersion"], place)
        elif kind in CORE_KINDS and (group == "" or (group == "events.k8s.io" and kind == "Event")):
            self._keep(kind, _checked(raw, kind, "v1", place, self._slices), place)
        elif self._workloads:
            for pod in _pods_of(raw):
                self._keep("Pod", _checked(pod, "Pod", "v1", place, self._slices), place)

    def forget(self, kind: str) -> None:
        """Drops the objects of a kind, because they will be added anew."""
        self._objects[kind].clear()

    def present(self, kind: str) -> None:
        """Says that the input lists the kind completely, even if there is no object of it."""
        self._present.add(kind)

    def gap(self, gap: Gap) -> None:
        """Records something that could not be read, once."""
        if gap not in self._gaps:
            self._gaps.append(gap)

    def note(self, sentence: str) -> None:
        """Records a sentence for the user, once."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def source(self, name: str) -> None:
        """Records an input."""
        self._sources.append(name)

    def server_release(self, release: Release) -> None:
        """Records the release that the API server itself reported."""
        self._release = release

    def said(self, said: Any, place: str) -> None:
        """Takes what ``kubectl dra snapshot`` says of the cluster beside its objects (see ``cluster.save``).

        Raises:
            InputError: it is not of that form.
        """
        try:
            for kind in said.get("read") or ():
                self.present(str(kind))
            for entry in said.get("gaps") or ():
                self.gap(Gap(*(str(entry.get(name) or "") for name in Gap._fields)))
            for sentence in said.get("notes") or ():
                self.note(str(sentence))
            if said.get("serverVersion"):
                self.server_release(parse_release(str(said["serverVersion"])))
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(f"{place}: kubectl-dra is not what kubectl dra snapshot writes: {error}") from None

    def build(self, expected: Iterable[str] = KINDS) -> Snapshot:
        """The Snapshot. An expected kind without any object or gap becomes a gap itself.

        Raises:
            InputError: an object that cannot be understood.
        """
        known = self._present | {gap.kind for gap in self._gaps}
        for kind in expected:
            if not self._objects[kind] and kind not in known:
                self._gaps.append(Gap(kind, ABSENT))
        release, release_source = self._release, "server" if self._release else ""
        if release is None:
            release, release_source = self._kubelet_release()
        nodes = self._typed("Node", Node.from_json)
        return Snapshot(
            slices=tuple(self._typed("ResourceSlice", ResourceSlice.from_json)),
            classes={entry.name: entry for entry in self._typed("DeviceClass", DeviceClass.from_json)},
            claims={
                (entry.metadata.namespace, entry.metadata.name): entry
                for entry in self._typed("ResourceClaim", ResourceClaim.from_json)
            },
            templates={
                (entry.metadata.namespace, entry.metadata.name): entry
                for entry in self._typed("ResourceClaimTemplate", ResourceClaimTemplate.from_json)
            },
            pods={
                (entry.metadata.namespace, entry.metadata.name): entry for entry in self._typed("Pod", Pod.from_json)
            },
            nodes={entry.name: entry for entry in nodes},
            taint_rules=tuple(self._typed("DeviceTaintRule", DeviceTaintRule.from_json)),
            quotas=tuple(self._typed("ResourceQuota", _quota)),
            namespaces={entry.name: entry for entry in self._typed("Namespace", _namespace)},
            events=tuple(event for event in self._typed("Event", _event) if event.kind in _EVENT_ABOUT),
            gaps=tuple(self._gaps),
            notes=tuple(self._notes),
            release=release,
            release_source=release_source,
            sources=tuple(self._sources),
        )

    def _keep(self, kind: str, raw: dict[str, Any], place: Place) -> None:
        meta = raw.get("metadata") or EMPTY
        name, namespace = meta.get("name") or "", ""
        if kind in _NAMESPACED:
            namespace = meta.get("namespace") or ""
            if not namespace:
                namespace = self._namespace
                raw = {**raw, "metadata": {**meta, "namespace": namespace}}
        objects = self._objects[kind]
        key = (namespace, name)
        if not name:
            if kind == "Event":
                return
            if not meta.get("generateName"):
                raise InputError(f"{place}: this {kind} has no metadata.name")
            # Not created yet: the server will choose the name, so any that is free will do.
            name = f"{meta['generateName']}{len(objects):05}"
            raw = {**raw, "metadata": {**raw["metadata"], "name": name}}
            key = (namespace, name)
            self.note(f"{place}: this {kind} has only a generateName; it is called {name} here")
        before = objects.get(key)
        if before is None:
            objects[key] = (raw, place)
        elif _newer(before[0], raw):
            objects[key] = (raw, place)
            self._note_duplicate(kind, key, place, before[1])
        elif _newer(raw, before[0]):
            self._note_duplicate(kind, key, before[1], place)
        elif _essence(before[0]) != _essence(raw):
            title = f"{namespace}/{name}" if namespace else name
            raise InputError(
                f"two different objects are called {kind} {title}: {before[1]} and {place}; leave one of them out"
            )

    def _note_duplicate(self, kind: str, key: tuple[str, str], kept: Place, left: Place) -> None:
        title = "/".join(part for part in key if part)
        self.note(f"{kind} {title} is there twice: the newer one at {kept} is used, not {left}")

    def _unsupported(self, kind: str, api_version: str, place: Place) -> None:
        if kind in DRA_KINDS:
            self.gap(Gap(kind, UNSUPPORTED, detail=f"{api_version} at {place}"))
        else:
            self.note(f"{place}: {api_version} {kind} plays no part in an allocation today; it is ignored")

    def _typed(self, kind: str, read: Callable[[Any], Any]) -> list[Any]:
        objects = self._objects[kind]
        out = []
        # Raw objects go as their typed form comes, to keep the peak of memory low.
        for key in list(objects):
            raw, place = objects.pop(key)
            try:
                out.append(read(raw))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise InputError(f"{place}: {_title(raw)} cannot be understood: {error}") from error
        return out

    def _kubelet_release(self) -> tuple[Release | None, str]:
        best: tuple[Release, str] | None = None
        for raw, _ in self._objects["Node"].values():
            info = (raw.get("status") or EMPTY).get("nodeInfo") or EMPTY
            version = info.get("kubeletVersion")
            if not isinstance(version, str) or not version:
                continue
            try:
                release = parse_release(version)
            except ValueError:
                continue
            if best is None or release > best[0]:
                best = (release, str((raw.get("metadata") or EMPTY).get("name")))
        if best is None:
            return None, ""
        return best[0], f"kubelet of node {best[1]}; the API server may be newer"


def _pods_of(workload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A pod for each template of a workload, named after the workload and what tells its templates apart."""
    meta = workload.get("metadata") or EMPTY
    found = list(pod_templates(workload))
    shared = set.intersection(*(set(template.path) for template in found)) if found else set()
    for template in found:
        parts = [str(meta.get("name") or meta.get("generateName") or "pod").rstrip("-")]
        if len(found) > 1:
            parts += [str(step).removesuffix("Template").lower() for step in template.path if step not in shared]
        made = template.content.get("metadata") or EMPTY
        metadata: dict[str, Any] = {
            "name": "-".join(parts),
            "labels": made.get("labels") or {},
            "annotations": {**(made.get("annotations") or {}), MADE_BY: _title(workload)},
        }
        if meta.get("namespace"):
            metadata["namespace"] = meta["namespace"]
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.content["spec"]}


def _title(raw: Mapping[str, Any]) -> str:
    meta = raw.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = meta.get("name") or meta.get("generateName") or "without a name"
    namespace = meta.get("namespace")
    return f"{raw['kind']} {namespace}/{name}" if namespace else f"{raw['kind']} {name}"


def _checked(raw: dict[str, Any], kind: str, version: str, place: Place, slices: SliceChecker) -> dict[str, Any]:
    """The object in its v1 shape. Raises InputError for a field of the wrong type."""
    if kind == "ResourceSlice":
        wrong = slices.mismatch(raw, version)
    elif kind in ("Namespace", "ResourceQuota", "Event"):
        wrong = struct_mismatch(raw.get("metadata"), "ObjectMeta", path=("metadata",))
    else:
        wrong = mismatch(raw, kind, version)
    if wrong is not None:
        raise InputError(f"{place}: {_title(raw)}: {wrong}")
    return reshaped(raw) if kind in DRA_KINDS else raw


def _newer(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether both are states of one object, and the second is the later one."""
    old, new = before.get("metadata") or EMPTY, after.get("metadata") or EMPTY
    if not old.get("uid") or old.get("uid") != new.get("uid"):
        return False
    try:
        return int(new["resourceVersion"]) > int(old["resourceVersion"])
    except (KeyError, TypeError, ValueError):
        return False


def _essence(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What makes two copies of an object different ones: all but the server's book-keeping."""
    out = dict(raw)
    meta = out.get("metadata") or EMPTY
    ignored = ("resourceVersion", "managedFields", "generation", "creationTimestamp", "uid", "selfLink")
    out["metadata"] = {key: meta[key] for key in meta if key not in ignored}
    return out


def _namespace(raw: Mapping[str, Any]) -> ObjectMeta:
    return ObjectMeta.from_json(raw.get("metadata") or EMPTY)


def _quota(raw: Mapping[str, Any]) -> ResourceQuota:
    spec, status = raw.get("spec") or EMPTY, raw.get("status") or EMPTY
    hard = status.get("hard") or spec.get("hard") or EMPTY
    return ResourceQuota(
        metadata=_namespace(raw),
        hard={key: str(value) for key, value in hard.items()},
        used={key: str(value) for key, value in (status.get("used") or EMPTY).items()},
    )


def _event(raw: Mapping[str, Any]) -> Event:
    about = raw.get("involvedObject") or raw.get("regarding") or EMPTY
    series = raw.get("series") or EMPTY
    first = raw.get("firstTimestamp") or raw.get("deprecatedFirstTimestamp") or raw.get("eventTime") or ""
    last = series.get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("deprecatedLastTimestamp")
    source = raw.get("source") or raw.get("deprecatedSource") or EMPTY
    return Event(
        kind=about.get("kind") or "",
        namespace=about.get("namespace") or (raw.get("metadata") or EMPTY).get("namespace") or "",
        name=about.get("name") or "",
        uid=about.get("uid") or "",
        reason=raw.get("reason") or "",
        message=raw.get("message") or raw.get("note") or "",
        type=raw.get("type") or "",
        count=int(series.get("count") or raw.get("count") or raw.get("deprecatedCount") or 1),
        first=first,
        last=last or first,
        component=raw.get("reportingComponent") or raw.get("reportingController") or source.get("component") or "",
    )
