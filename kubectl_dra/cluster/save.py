"""A cluster's objects for a file: raw as the API serves them, reduced to what the other commands read.

The file is a ``v1`` List, as ``kubectl get -o json`` writes it, with one more field, ``kubectl-dra``:

    schemaVersion   "1"
    serverVersion   the API server's release, if it was asked
    readAt          when the cluster was read; of files that do not say, the newest time in them
    read            the kinds that were listed, even if they have no objects
    gaps            what could not be read: kind, reason, and if known namespace and detail
    notes           sentences about what was ignored or chosen while reading

``cluster.files`` reads it back, so that ``explain`` has the same gaps with the file as it had with the
cluster.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from kubectl_dra.api.claims import Request
from kubectl_dra.api.meta import builtins, convert
from kubectl_dra.api.pods import PodSpec
from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.api.volumes import PodVolume
from kubectl_dra.cel import CompileError, Environment, compile_expression
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.copies import Place
from kubectl_dra.cluster.files import SAID, add_files
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.reader import Page, page
from kubectl_dra.cluster.snapshot import ABSENT, EVERY_KIND, Gap, Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.files import discard, name_beside, new_private_file

SCHEMA_VERSION: Final = "1"
Json = dict[str, Any]
_META: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "generateName",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
    "finalizers",
)
_POD_SPEC: Final = (
    "nodeName",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "workloadRef",
    "priority",
    "preemptionPolicy",
    "resources",
    "hostNetwork",
    "resourceClaims",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "overhead",
)
_POD_STATUS: Final = (
    *("phase", "conditions", "resourceClaimStatuses", "extendedResourceClaimStatus"),
    "nodeAllocatableResourceClaimStatuses",
    *("nominatedNodeName", "startTime", "resources", "allocatedResources", "reason", "message"),
)
_CONTAINER_STATUS: Final = ("name", "state", "resources", "allocatedResources", "allocatedResourcesStatus")
_VOLUMES: Final = (
    *("persistentVolumeClaim", "ephemeral", "csi", "gcePersistentDisk", "awsElasticBlockStore"),
    *("iscsi", "rbd", "azureDisk", "cinder", "portworxVolume"),
)
"""The volume types that affect where a pod can run."""
_EVENT: Final = (
    "involvedObject",
    "regarding",
    "reason",
    "message",
    "note",
    "type",
    "count",
    "deprecatedCount",
    "series",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
    "source",
    "deprecatedSource",
    "reportingComponent",
    "reportingController",
)
_KEPT_ANNOTATIONS: Final = (
    *("resource.kubernetes.io/", "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node"),
    "storage.alpha.kubernetes.io/migrated-plugins",
)
"""Prefixes of the annotations that have an effect."""


class Recorder(SnapshotBuilder):
    """A builder that also keeps the reduced objects for a file. Read ``items`` before calling ``build``."""

    def __init__(self, namespace: str = "default") -> None:
        super().__init__(namespace)
        # By the identity of their place, which the builder keeps with the object that it chooses.
        self._came: dict[int, tuple[Json, Place]] = {}

    def add(self, raw: Json, place: Place) -> None:
        place = Place(*place)
        try:
            item = reduced(raw)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # What the builder would say of it comes first; what cannot be written is not kept.
            SnapshotBuilder().add(raw, place)
            raise InputError(f"{place}: this {raw.get('kind')} cannot be understood: {error}") from None
        super().add(raw, place)
        self._came[id(place)] = (item, place)

    def add_page(self, given: Page, kind: str, place: Place) -> list[Gap]:
        # The objects are wanted as they came.
        raw = page(given.data) if given.objects is not None else None
        return super().add_page(raw or given, kind, place)

    def add_item(self, data: Any, place: Place, kind: str = "", api_version: str = "") -> None:
        raw = {"apiVersion": api_version, "kind": kind, **msgspec.json.decode(data)}
        if not all(isinstance(raw[field], str) for field in ("apiVersion", "kind")):
            raise InputError(f"{place}: this item of the List has no apiVersion and kind")
        self.add(raw, place)

    def items(self) -> list[Json]:
        """The reduced objects of the snapshot (see ``reduced``), by kind, in the order in which they were added."""
        out: list[Json] = []
        for kind in EVERY_KIND:
            for (namespace, name), kept in self._objects[kind].items():
                item = self._came[id(kept.place)][0]
                item["metadata"] = {"name": name, **item["metadata"]}
                if namespace:
                    item["metadata"]["namespace"] = namespace
                out.append(item)
        return out


def record_files(paths: Sequence[str]) -> Recorder:
    """Read files and directories as ``cluster.files.read_snapshot`` does. Raises InputError."""
    recorder = Recorder()
    add_files(recorder, paths)
    return recorder


def said(snapshot: Snapshot) -> Json:
    """The field ``kubectl-dra`` of the file: what the objects themselves do not tell."""
    out: Json = {"schemaVersion": SCHEMA_VERSION}
    if snapshot.release is not None and snapshot.release_source == "server":
        major, minor, patch = snapshot.release
        out["serverVersion"] = f"v{major}.{minor}.{patch}"
    if snapshot.read_at:
        out["readAt"] = snapshot.read_at
    absent = {gap.kind for gap in snapshot.gaps if gap.reason == ABSENT}
    out["read"] = [kind for kind in EVERY_KIND if kind not in absent]
    out["gaps"] = [
        {name: value for name, value in gap._asdict().items() if value} for gap in snapshot.gaps if gap.reason != ABSENT
    ]
    out["notes"] = list(snapshot.notes)
    return out


def reduced(raw: Mapping[str, Any]) -> Json:
    """An object without the parts that no command reads.

    All kinds lose managedFields and annotations without effect. Pods lose images, commands, arguments,
    environment, volumes that exist on every node, and most of the status. Nodes lose addresses, images and
    machine identities. Kinds of resource.k8s.io keep their whole spec and status.
    """
    kind = raw["kind"]
    out: Json = {"apiVersion": raw["apiVersion"], "kind": kind, "metadata": _metadata(raw.get("metadata") or {}, kind)}
    if kind == "Pod":
        out["spec"] = _pod_spec(raw.get("spec") or {})
        out["status"] = {**_some(raw.get("status"), _POD_STATUS), **_container_statuses(raw)}
    elif kind == "Node":
        out["spec"] = _some(raw.get("spec"), ("taints", "unschedulable"))
        out["status"] = _node_status(raw.get("status") or {})
    elif kind == "Event":
        out.update(_some(raw, _EVENT))
    elif kind == "ResourceQuota":
        out["spec"] = _some(raw.get("spec"), ("hard",))
        out["status"] = _some(raw.get("status"), ("hard", "used"))
    elif kind in SCHEDULING_KINDS:
        kept = msgspec.json.decode(msgspec.json.encode(SCHEDULING_KINDS[kind].decode(raw)))
        out.update({key: value for key, value in kept.items() if key != "metadata"})
    elif kind != "Namespace":
        out.update(_some(raw, ("spec", "status")))
    return out


def _metadata(raw: Mapping[str, Any], kind: str) -> Json:
    out = _some(raw, _META)
    if kind == "Event":
        out.pop("labels", None)
    annotations = {
        key: value for key, value in (raw.get("annotations") or {}).items() if key.startswith(_KEPT_ANNOTATIONS)
    }
    if annotations:
        out["annotations"] = annotations
    return out


def _pod_spec(spec: Mapping[str, Any]) -> Json:
    out = _some(spec, _POD_SPEC)
    for key in ("initContainers", "containers"):
        if spec.get(key):
            out[key] = [_container(entry) for entry in spec[key]]
    volumes = builtins(PodSpec(volumes=convert(spec.get("volumes") or [], tuple[PodVolume, ...]))).get("volumes") or ()
    # Any other volume can be used on every node.
    kept = [entry for entry in volumes if any(kind in entry for kind in _VOLUMES)]
    if kept:
        out["volumes"] = kept
    return out


def _container(raw: Mapping[str, Any]) -> Json:
    out = _some(raw, ("name", "resources", "restartPolicy", "restartPolicyRules"))
    ports = [
        _some(port, ("containerPort", "hostPort", "hostIP", "protocol"))
        for port in raw.get("ports") or ()
        if port.get("hostPort")
    ]
    if ports:
        out["ports"] = ports
    return out


def _container_statuses(pod: Mapping[str, Any]) -> Json:
    """The statuses of containers that wait, whose devices have a health, or that were given other than they ask for;
    and of a pod that is being deleted, of those that have ended.
    """
    out: Json = {}
    ending = bool((pod.get("metadata") or {}).get("deletionTimestamp"))
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    for name, containers in (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers")):
        asked = {
            entry.get("name"): (entry.get("resources") or {}).get("requests") for entry in spec.get(containers) or ()
        }
        kept = [_some(entry, _CONTAINER_STATUS) for entry in status.get(name) or () if _tells(entry, asked, ending)]
        if kept:
            out[name] = kept
    return out


def _tells(entry: Mapping[str, Any], asked: Mapping[Any, Any], ending: bool) -> bool:
    state = entry.get("state") or {}
    if state.get("waiting") or entry.get("allocatedResourcesStatus") or (ending and state.get("terminated")):
        return True
    requests = asked.get(entry.get("name")) or {}
    given = (entry.get("resources") or {}).get("requests", requests)
    return bool(given != requests or entry.get("allocatedResources", requests) != requests)


def _node_status(status: Mapping[str, Any]) -> Json:
    out = _some(status, ("allocatable", "declaredFeatures"))
    conditions = [entry for entry in status.get("conditions") or () if entry.get("type") == "Ready"]
    if conditions:
        out["conditions"] = [_some(entry, ("type", "status", "reason", "lastTransitionTime")) for entry in conditions]
    version = (status.get("nodeInfo") or {}).get("kubeletVersion")
    if version:
        out["nodeInfo"] = {"kubeletVersion": version}
    return out


def _some(raw: Mapping[str, Any] | None, keys: Iterable[str]) -> Json:
    return {key: raw[key] for key in keys if key in raw} if raw else {}


def write_list(items: Sequence[Json], head: Mapping[str, Any], stream: TextIO, *, yaml: bool = False) -> None:
    """Write the List; in JSON, one object per line."""
    if yaml:
        from yaml import dump

        try:
            from yaml import CSafeDumper as Dumper
        except ImportError:
            from yaml import SafeDumper as Dumper  # type: ignore[assignment]
        whole = {"apiVersion": "v1", "kind": "List", SAID: head, "items": list(items)}
        dump(whole, stream, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
        return
    stream.write(f'{{"apiVersion":"v1","kind":"List","{SAID}":{_line(head)},"items":[\n')
    for index, item in enumerate(items):
        stream.write((",\n" if index else "") + _line(item))
    stream.write("\n]}\n")


def _line(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (OverflowError, TypeError, UnicodeError):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_target(path: Path, *, force: bool) -> None:
    """Raise InputError if the file cannot be written there or already exists."""
    if path.is_dir():
        raise InputError(f"{path}: is a directory; name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no directory {path.parent}")
    if path.exists() and not force:
        raise InputError(f"{path} exists already; give --force to replace it")


def write_file(path: Path, write: Callable[[TextIO], object], *, force: bool) -> None:
    """Write a file atomically, readable only by its owner.

    Raises:
        InputError: it cannot be written, or exists and ``force`` is not given.
    """
    check_target(path, force=force)
    made = name_beside(path)
    try:
        with os.fdopen(new_private_file(made), "w", encoding="utf-8") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        check_target(path, force=force)
        made.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        discard(made)


# Whether selectors give the same verdicts on the devices of two snapshots: checks what anonymizing replaced.


def disagreements(before: Snapshot, after: Snapshot) -> list[str]:
    """A sentence for each selector of ``before`` whose counterpart in ``after`` gives another verdict.

    Both hold the same objects in the same order. All errors count as equal.
    """
    from kubectl_dra.cel.columns import DeviceTable

    release = before.release or UNTOLD
    environment = Environment.for_release(release, stored=True)
    tables = [
        DeviceTable([device for entry in snapshot.slices for device in entry.devices]) for snapshot in (before, after)
    ]
    judged: set[tuple[str, str]] = set()
    out: list[str] = []
    for (where, expression), (_, other) in zip(_selectors(before), _selectors(after), strict=True):
        if expression == other and before.slices is after.slices:
            continue
        if (expression, other) in judged:
            continue
        judged.add((expression, other))
        verdicts: list[list[object]] = []
        for text, table in zip((expression, other), tables, strict=True):
            try:
                program = compile_expression(environment, text)
            except CompileError:
                verdicts.append([])
                continue
            verdicts.append([v if isinstance(v, bool) else None for v in program.evaluate_devices(table)])
        if len(verdicts[0]) != len(verdicts[1]):
            out.append(f"a selector of {where} does not compile in one of both")
        elif wrong := sum(one != two for one, two in zip(*verdicts, strict=True)):
            out.append(f"a selector of {where} gives another answer on {wrong:,} devices than before")
    return out


def _selectors(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for name, device_class in snapshot.classes.items():
        for expression in device_class.selectors:
            if expression is not None:
                yield f"DeviceClass {name}", expression
    for claim in snapshot.claims.values():
        yield from _of(f"ResourceClaim {claim.key}", claim.requests)
    for (namespace, name), template in snapshot.templates.items():
        yield from _of(f"ResourceClaimTemplate {namespace}/{name}", template.claim(name, namespace).requests)


def _of(where: str, requests: tuple[Request, ...]) -> Iterator[tuple[str, str]]:
    for request in requests:
        for alternative in request.alternatives():
            for expression in alternative.selectors:
                if expression is not None:
                    yield where, expression
