"""What applying a manifest makes of an object that exists: what its author wrote changes, and nothing else.

Status, and what controllers, the scheduler and the server wrote, stays. The server refuses to change some fields;
then all of the object stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.api.behaviour import GANG_POLICY_CHANGES
from kubectl_dra.api.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate, spec_fields
from kubectl_dra.api.conversion import defaulted, reshaped, without_disabled
from kubectl_dra.api.meta import EMPTY, ObjectMeta, builtins, convert
from kubectl_dra.api.pods import Container, Pod, PodSpec
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.releases import UNTOLD, Release
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.duplicates import essence
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.merge import JSON, canonical, last_applied, merged
from kubectl_dra.cluster.reader import READ
from kubectl_dra.cluster.snapshot import ABSENT, Key, RefusedChange, Snapshot, WrittenKey, stand_in
from kubectl_dra.manifests.changes import value_at

_FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "StorageClass": ("provisioner", "volumeBindingMode"),
    "CSIDriver": ("spec.attachRequired",),
    "CSIStorageCapacity": ("nodeTopology", "storageClassName"),
    "VolumeAttachment": ("spec",),
    "PriorityClass": ("value", "preemptionPolicy"),
    "RuntimeClass": ("handler",),
    "ReplicaSet": ("spec.selector",),
    "StatefulSet": ("spec.selector",),
    "PodGroup": ("spec.schedulingPolicy.basic", "spec.schedulingPolicy.gang", "spec.schedulingConstraints"),
    "Workload": ("spec.podGroups",),
    "PersistentVolume": tuple(
        f"spec.{name}"
        for name in ("csi", "gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "cinder", "portworxVolume")
    ),
    "PersistentVolumeClaim": tuple(
        f"spec.{name}" for name in ("accessModes", "selector", "volumeName", "storageClassName", "volumeMode")
    ),
    "ResourceQuota": ("spec.scopes", "spec.scopeSelector"),
}
"""Fields that the server does not let anybody change, of kinds that are merged field by field (1.36: the validation of
updates in pkg/apis, and ``+k8s:immutable`` of scheduling.k8s.io)."""
_FREE: Final = {"spec.schedulingPolicy.gang": GANG_POLICY_CHANGES}
"""The releases in which some of them may be changed."""
_UNTIL_SET: Final = frozenset(("spec.volumeName", "spec.storageClassName", "spec.csi", "spec.scopeSelector"))
"""Fields of them that may be set where there is nothing yet, or that saved snapshots leave out."""


Applied = tuple[Any, tuple[str, ...]]
"""The object afterwards, and the fields that the server refuses to change; with any, all of it stays."""


class Server(NamedTuple):
    """An API server: its release, and its feature gates, None where they are unknown: it drops the fields of others."""

    release: Release
    gates: Set[str] | None = None


SOME_SERVER: Final = Server(UNTOLD)
"""One of which nothing is known."""


def apply(kind: str, live: Any, new: Any, written: JSON, server: Server = SOME_SERVER) -> Applied:
    """An object of a kind after a manifest was applied to it. ``new`` is what the manifest would make by itself."""
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(live, new, written, server)
    last = last_applied((live if kind == "Namespace" else live.metadata).annotations)
    if kind == "Namespace":
        return _metadata(live, written, last), ()
    before = _body(builtins(live))
    decode = SCHEDULING_KINDS[kind].decode if kind in SCHEDULING_KINDS else READ[kind]
    applied = decode(merged(before, _body(written), _body(last)))
    # Without defaults, which one may write and another leave out.
    after = _body(builtins(applied))
    if refused := tuple(_refused(kind, before, after, server.release)):
        return live, refused
    metadata = _metadata(live.metadata, written, last)
    if canonical(after) == canonical(before):
        return replace(live, metadata=metadata), ()
    if isinstance(applied, ResourceQuota):
        # The quota controller follows within seconds; what is used stays.
        applied = replace(applied, status=replace(live.status, hard=applied.spec.hard))
        return replace(applied, metadata=metadata), ()
    kept = {"status": live.status} if hasattr(live, "status") else {}
    return replace(applied, metadata=metadata, **kept), ()


def _body(raw: JSON) -> dict[str, Any]:
    """What an author can write of an object, besides its metadata."""
    return {name: value for name, value in raw.items() if name not in ("apiVersion", "kind", "metadata", "status")}


def _metadata(live: ObjectMeta, written: JSON, last: JSON) -> ObjectMeta:
    """The metadata after labels and annotations of a manifest were merged into it; the server owns the rest."""
    before, new, old = builtins(live), written.get("metadata") or EMPTY, last.get("metadata") or EMPTY
    maps = {}
    for name in ("labels", "annotations"):
        maps[name] = merged(before.get(name) or {}, new.get(name) or {}, old.get(name) or {}, name)
    if maps["labels"] == live.labels and maps["annotations"] == live.annotations:
        return live
    return replace(live, **maps)


def _refused(kind: str, before: JSON, after: JSON, release: Release) -> Iterator[str]:
    for path in _FIXED.get(kind, ()):
        if path in _FREE and release in _FREE[path]:
            continue
        was, now = (value_at(raw, tuple(path.split("."))) for raw in (before, after))
        if canonical(was) != canonical(now) and not (path in _UNTIL_SET and not was):
            yield path


# --- kinds of resource.k8s.io ----------------------------------------------------------------------


def _claim(live: ResourceClaim, new: ResourceClaim, written: JSON, server: Server) -> Applied:
    own = _asked(live)
    if own not in (
        _asked(new),
        _asked(replace(new, **spec_fields(_kept(written, server).get("spec") or EMPTY))),
    ):
        return live, ("spec",)
    return _with_metadata(live, written), ()


def _asked(claim: ResourceClaim) -> tuple[object, ...]:
    """What a claim's spec says, with the defaults of the API."""

    def plain(request: Any) -> Any:
        if request is None:
            return None
        admin = request.admin_access or None
        return replace(request, admin_access=admin, capacity=request.capacity or None)

    requests = tuple(
        (request.name, plain(request.exactly), tuple(map(plain, request.first_available))) for request in claim.requests
    )
    return requests, claim.constraints, claim.config


def _kept(raw: JSON, server: Server) -> JSON:
    """A written object in the form of v1, without what the server drops."""
    today = reshaped(defaulted(raw))
    return today if server.gates is None else without_disabled(today, server.gates, server.release)


def _template(live: ResourceClaimTemplate, new: ResourceClaimTemplate, written: JSON, server: Server) -> Applied:
    dropped = ResourceClaimTemplate.from_json(_kept(written, server))
    if _made(live) not in (_made(new), _made(dropped)):
        return live, ("spec",)
    return _with_metadata(live, written), ()


def _made(template: ResourceClaimTemplate) -> tuple[object, ...]:
    claim = template.claim("", "")
    return claim.metadata.labels, claim.metadata.annotations, *_asked(claim)


def _class(live: DeviceClass, new: DeviceClass, written: JSON, _: Server) -> Applied:
    now, before = written.get("spec") or EMPTY, last_applied(live.metadata.annotations).get("spec") or EMPTY
    changed = {
        name: getattr(new, name)
        for name, field in (
            ("selectors", "selectors"),
            ("config", "config"),
            ("extended_resource_name", "extendedResourceName"),
        )
        if field in now or field in before
    }
    return replace(_with_metadata(live, written), **changed), ()


def _rule(live: DeviceTaintRule, new: DeviceTaintRule, written: JSON, _: Server) -> Applied:
    last = last_applied(live.metadata.annotations)
    taint = live.taint
    said = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    before: dict[str, Any] = {"taint": {name: value for name, value in said.items() if value}}
    if live.selector is not None:
        parts = zip(("driver", "pool", "device"), live.selector, strict=True)
        before["deviceSelector"] = {name: part for name, part in parts if part is not None}
    spec = merged(before, written.get("spec") or {}, last.get("spec"))
    rule = DeviceTaintRule.from_json({"metadata": {"name": live.metadata.name}, "spec": spec})
    taint = rule.taint
    if taint.effect != live.taint.effect and taint.time_added == live.taint.time_added:
        # The server sets it to the time of the change, which is now.
        taint = replace(taint, time_added="")
    unmodelled = live.unmodelled if rule.selector == live.selector else rule.unmodelled
    live = replace(live, selector=rule.selector, taint=taint, unmodelled=unmodelled)
    return _with_metadata(live, written), ()


def _slice(live: ResourceSlice, new: ResourceSlice, _: JSON, __: Server) -> Applied:
    pairs = (
        ("spec.driver", live.driver, new.driver),
        ("spec.pool.name", live.pool, new.pool),
        ("spec.nodeName", live.scope.node_name, new.scope.node_name),
    )
    if refused := tuple(path for path, was, now in pairs if was != now):
        return live, refused
    if essence(live) == essence(new):
        return live, ()
    return replace(new, creation_timestamp=live.creation_timestamp), ()


def _with_metadata(live: Any, written: JSON) -> Any:
    metadata = _metadata(live.metadata, written, last_applied(live.metadata.annotations))
    return live if metadata is live.metadata else replace(live, metadata=metadata)


# A pod that exists: the server lets few fields of its spec be changed.

_FREE_OF_POD: Final = frozenset(
    ("schedulingGates", "tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "priority")
)
"""Fields that may change, in one direction, or that the server computes from others."""
_WHILE_GATED: Final = frozenset(("nodeSelector", "affinity"))
"""Fields that may become narrower as long as a scheduling gate keeps the pod."""
_NOT_SAVED: Final = frozenset(("priorityClassName", "hostUsers", "runtimeClassName", "serviceAccountName"))
"""Fields that ``kubectl dra snapshot`` leaves out: where there is nothing, nothing is known."""


def _pod(live: Pod, _: Pod, written: JSON, __: Server) -> Applied:
    before = builtins(live.spec)
    written_spec = {name: value for name, value in (written.get("spec") or {}).items() if name != "nodeName"}
    after = merged(before, written_spec)
    node = (written.get("spec") or {}).get("nodeName") or live.node_name
    spec = convert(after, PodSpec)
    free = _FREE_OF_POD | _WHILE_GATED if live.spec.scheduling_gates else _FREE_OF_POD
    refused = [f"spec.{name}" for name in _differing(before, builtins(spec)) if name not in free]
    if node != live.node_name:
        refused.append("spec.nodeName")
    if refused:
        return live, tuple(refused)
    changes: dict[str, Any] = {}
    # Those that the server added itself stay.
    if more := tuple(toleration for toleration in spec.tolerations if toleration not in live.spec.tolerations):
        changes["tolerations"] = (*live.spec.tolerations, *more)
    if "schedulingGates" in written_spec:
        changes["scheduling_gates"] = spec.scheduling_gates
    if live.spec.scheduling_gates:
        changes.update(node_selector=spec.node_selector, affinity=spec.affinity)
    changes["containers"] = _with_images(live.spec.containers, spec.containers)
    changes["init_containers"] = _with_images(live.spec.init_containers, spec.init_containers)
    changes = {name: value for name, value in changes.items() if value != getattr(live.spec, name)}
    pod = replace(live, spec=replace(live.spec, **changes)) if changes else live
    return _with_metadata(pod, written), ()


def are_alike(live: PodSpec, new: PodSpec) -> bool:
    """Whether a pod that exists is as one that would be created, but for volumes, which its controller may add."""
    other = {"volumes", "tolerations", "priority", "preemptionPolicy"}
    same = not set(_differing(builtins(live), builtins(new))) - other
    return same and _tolerated(live) == _tolerated(new) and (live.priority or 0) == (new.priority or 0)


def has_all_of(live: Pod, written: JSON, priority: int | None) -> bool:
    """Whether a pod that exists says all that its template says now, with this priority; images are not compared.

    What else it says may have been added by the server, a controller or a webhook.
    """
    before = builtins(live.spec)
    spec = convert(merged(before, written.get("spec") or {}), PodSpec)
    same = not set(_differing(before, builtins(spec))) - _FREE_OF_POD
    return same and _tolerated(spec) <= _tolerated(live.spec) and (live.spec.priority or 0) == (priority or 0)


def _tolerated(spec: PodSpec) -> set[str]:
    """The tolerations but for those with which a node is left after a while, which the server adds."""
    return {str(toleration) for toleration in spec.tolerations if toleration.toleration_seconds is None}


def _differing(before: JSON, after: JSON) -> Iterator[str]:
    for name in {**before, **after}:
        was, now = _said(name, before.get(name)), _said(name, after.get(name))
        if was != now and not (name in _NOT_SAVED and not was):
            yield name


def _said(name: str, value: Any) -> Any:
    """What a field says that may not change, without what saved snapshots leave out."""
    if name in ("containers", "initContainers"):
        return [_container(item) for item in value or ()]
    if name == "volumes":
        # Any other volume can be used on every node.
        return [_without_empty(canonical(item)) for item in value or () if item.keys() - {"name", "image"}]
    return _without_empty(canonical(value, name))


def _container(raw: JSON) -> Any:
    kept = {**raw, "image": None, "ports": [port for port in raw.get("ports") or () if port.get("hostPort")]}
    return _without_empty(canonical(kept))


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = {name: _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in fields.items() if not _empty(item)}
    return [_without_empty(item) for item in value] if isinstance(value, list) else None if _empty(value) else value


def _empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str | list | dict) and not value)


def _with_images(live: Sequence[Container], written: Sequence[Container]) -> tuple[Any, ...]:
    images = {container.name: container.image for container in written}
    return tuple(replace(container, image=images.get(container.name) or container.image) for container in live)


_SPECIAL: Final[Mapping[str, Callable[[Any, Any, JSON, Server], Applied]]] = {
    "DeviceClass": _class,
    "DeviceTaintRule": _rule,
    "Pod": _pod,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
    "ResourceSlice": _slice,
}


# Lays a manifest over a snapshot: the state after applying it.

K = TypeVar("K", str, Key)


def overlay(base: Snapshot, manifest: Snapshot, server: Server = SOME_SERVER) -> Snapshot:
    """The snapshot after the objects of a manifest were applied; see ``apply`` for those that exist already.

    A pod that stands for those of a workload is left out where a pod of that name exists.

    What was not read of the cluster remains a gap: a manifest says nothing of what else there is.
    """
    on = _Applying(manifest.written, server, base.created)
    others = {
        kind: on.applied(kind, base.others.get(kind, {}), manifest.others.get(kind, {}))
        for kind in {**base.others, **manifest.others}
    }
    pods = {key: pod for key, pod in manifest.pods.items() if key not in base.pods or stand_in(pod) is None}
    slices, new = ({slice_.name: slice_ for slice_ in snapshot.slices} for snapshot in (base, manifest))
    return replace(
        base,
        slices=tuple(on.applied("ResourceSlice", slices, new).values()),
        classes=on.applied("DeviceClass", base.classes, manifest.classes),
        claims=on.applied("ResourceClaim", base.claims, manifest.claims),
        templates=on.applied("ResourceClaimTemplate", base.templates, manifest.templates),
        pods=on.applied("Pod", base.pods, pods),
        nodes=on.applied("Node", base.nodes, manifest.nodes),
        taint_rules=tuple(
            on.applied("DeviceTaintRule", _by_key(base.taint_rules), _by_key(manifest.taint_rules)).values()
        ),
        quotas=tuple(on.applied("ResourceQuota", _by_key(base.quotas), _by_key(manifest.quotas)).values()),
        namespaces=on.applied("Namespace", base.namespaces, manifest.namespaces),
        others=others,
        notes=(*base.notes, *manifest.notes),
        sources=(*base.sources, *manifest.sources),
        individual=base.individual | manifest.individual,
        written={**base.written, **manifest.written},
        workloads=(*base.workloads, *manifest.workloads),
        created=on.created,
        refused=on.refused(base.refused),
    )


def with_events(base: Snapshot, more: Snapshot) -> Snapshot:
    """The snapshot with further events, read later."""
    return replace(base, events=tuple(dict.fromkeys((*base.events, *more.events))))


def with_kinds(base: Snapshot, more: Snapshot, kinds: Iterable[str], server: Server = SOME_SERVER) -> Snapshot:
    """The snapshot with objects of further kinds, read later; ``more`` has gaps for those that could not be read.

    What a manifest brought to the snapshot is applied to them.
    """
    on = _Applying(base.written, server, base.created)
    wanted = frozenset(kinds)
    read = {kind: more.others.get(kind, {}) for kind in wanted if kind in SCHEDULING_KINDS}
    return replace(
        base,
        others={
            **base.others,
            **{kind: on.applied(kind, live, base.others.get(kind, {})) for kind, live in read.items()},
        },
        quotas=tuple(on.applied("ResourceQuota", _by_key(more.quotas), _by_key(base.quotas)).values()),
        gaps=(
            *(gap for gap in base.gaps if gap.kind not in wanted or gap.reason != ABSENT),
            *(gap for gap in more.gaps if gap.kind in wanted and gap not in base.gaps),
        ),
        created=on.created,
        refused=on.refused(base.refused),
    )


class _Applying:
    """Applies the objects of a manifest, and remembers what that creates and what the server refuses.

    ``created`` was created before; what is found in the cluster after all was not.
    """

    def __init__(
        self, written: Mapping[WrittenKey, Mapping[str, Any]], server: Server, created: frozenset[WrittenKey]
    ) -> None:
        self._written = written
        self._server = server
        self.created = created
        self._refused: dict[WrittenKey, RefusedChange] = {}

    def applied(self, kind: str, live: Mapping[K, Any], new: Mapping[K, Any]) -> dict[K, Any]:
        """The objects of a kind: those that exist and those that are new, by their keys."""
        out = {**live, **new}
        for key in new:
            namespace, name = key if isinstance(key, tuple) else ("", key)
            written = self._written.get((kind, namespace, name))
            there = frozenset({(kind, namespace, name)})
            self.created = self.created - there if key in live else self.created | there
            if key in live and written is not None:
                out[key], fields = apply(kind, live[key], new[key], written, self._server)
                if fields:
                    self._refused[kind, namespace, name] = RefusedChange(kind, namespace, name, fields)
        return out

    def refused(self, before: Iterable[RefusedChange]) -> tuple[RefusedChange, ...]:
        """All that is refused, each object once."""
        return tuple({**{refused_change[:3]: refused_change for refused_change in before}, **self._refused}.values())


def _by_key(entries: Iterable[Any]) -> dict[Key, Any]:
    return {(item.metadata.namespace, item.metadata.name): item for item in entries}
