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

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.codec import decoded
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.meta import ObjectMeta, builtins, convert
from kubectl_dra.api.neighbour_kinds import LAYER_ANNOTATIONS, NEIGHBOUR_KINDS, kind_here
from kubectl_dra.api.nodes import PRESSURES
from kubectl_dra.api.plugins import DaemonSet, plugin_in
from kubectl_dra.api.pods import ContainerStatus, PodSpec
from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.api.schema import Field, change_items
from kubectl_dra.api.volumes import PodVolume
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cel import CompileError, Environment, compile_expression
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.files import METADATA_KEY, add_files
from kubectl_dra.cluster.identities import Json
from kubectl_dra.cluster.kinds import CORE_KINDS, SCHEDULING_KINDS
from kubectl_dra.cluster.plugin_copies import save_plugin, slim
from kubectl_dra.cluster.pod_lists import tells
from kubectl_dra.cluster.reader import Page, item_of, page
from kubectl_dra.cluster.snapshot import ABSENT, EVERY_KIND, Gap, Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.files import discard, name_beside, new_private_file

SCHEMA_VERSION: Final = "1"
_VOLUMES: Final = (
    *("persistentVolumeClaim", "ephemeral", "csi", "gcePersistentDisk", "awsElasticBlockStore"),
    *("iscsi", "rbd", "azureDisk", "cinder", "portworxVolume"),
)
"""The volume types that affect where a pod can run."""
_KEPT_ANNOTATIONS: Final = (
    *("resource.kubernetes.io/", "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node"),
    *("storage.alpha.kubernetes.io/migrated-plugins", *LAYER_ANNOTATIONS),
)
"""Prefixes of the annotations that have an effect."""


class Recorder(SnapshotBuilder):
    """A builder that also keeps the reduced objects for a file. Read ``items`` before calling ``build``."""

    def __init__(self, namespace: str = "default") -> None:
        super().__init__(namespace)
        # By the identity of their place, which the builder keeps with the object that it chooses.
        self._came = ByIdentity[Place, Json]()

    def add(self, raw: Json, place: Place) -> None:
        place = Place(*place)
        try:
            item = reduced(raw)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # What the builder says of it comes first; what cannot be written is not kept.
            builder = SnapshotBuilder(self._namespace)
            builder.add(raw, place)
            if not builder._gaps:
                raise InputError(f"{place}: this {raw.get('kind')} cannot be understood: {error}") from None
            for gap in builder._gaps:
                self.gap(gap)
            return
        super().add(raw, place)
        self._came.put(place, item)

    def add_page(self, given: Page, kind: str, place: Place) -> list[Gap]:
        # The objects are wanted as they came.
        raw = page(given.data) if given.objects is not None else None
        return super().add_page(raw or given, kind, place)

    def add_item(self, data: Any, place: Place, kind: str = "", api_version: str = "") -> None:
        raw = {"apiVersion": api_version, "kind": kind, **item_of(data, place)}
        if not all(isinstance(raw[field], str) for field in ("apiVersion", "kind")):
            raise InputError(f"{place}: this item of the List has no apiVersion and kind")
        self.add(raw, place)

    def items(self) -> list[Json]:
        """The reduced objects of the snapshot (see ``reduced``), by kind, in the order in which they were added."""
        out: list[Json] = []
        for kind in EVERY_KIND:
            for (namespace, name), kept in self._objects[kind].items():
                (item,) = self._came.each((kept.place,))
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
    out["notes"] = [note for note in snapshot.notes if note not in snapshot.refound]
    return out


def reduced(raw: Mapping[str, Any]) -> Json:
    """An object without the parts that no command reads.

    All kinds lose managedFields and annotations without effect. Pods lose images, commands, arguments,
    environment, volumes that exist on every node, and most of the status; those in which drivers run keep what tells
    that (see ``cluster.plugin_copies``). Nodes lose addresses, images and
    machine identities. Kinds of resource.k8s.io keep their whole spec and status.
    """
    kind = kind_here(raw["kind"], str(raw["apiVersion"]))
    metadata = _metadata(raw.get("metadata") or {}, kind)
    out: Json = {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "metadata": metadata}
    if kind in SCHEDULING_KINDS:
        whole = SCHEDULING_KINDS[kind].decode(decoded(raw, kind) if kind in NEIGHBOUR_KINDS else raw)
        kept = builtins(slim(whole) if isinstance(whole, DaemonSet) else whole)
        kept.pop("metadata", None)
        out.update(_saved(kept, kind) if kind in NEIGHBOUR_KINDS else kept)
    elif kind not in CORE_KINDS:
        out.update({key: raw[key] for key in ("spec", "status") if key in raw})
    elif kind == "Pod":
        out.update(spec=_pod_spec(raw.get("spec") or {}), status=_pod_status(raw))
        if (plugin := plugin_in(raw)) is not None:
            save_plugin(out, plugin)
    else:
        parts = {key: raw.get(key) or {} for key in ("spec", "status") if key in fields(kind)}
        out.update(_saved({**{key: raw[key] for key in raw if key not in out}, **parts}, kind))
        if kind == "Node" and "conditions" in out["status"]:
            out["status"]["conditions"] = list(_conditions(out["status"]["conditions"] or ()))
    return out


def _conditions(raw: Iterable[Json]) -> Iterator[Json]:
    """Whether a node is ready, and what it runs out of; in words only where something is wrong."""
    for condition in raw:
        kind, good = condition.get("type"), condition.get("status") == "True"
        if kind == "Ready" and good:
            yield {name: value for name, value in condition.items() if name not in ("reason", "message")}
        elif kind == "Ready" or (kind in PRESSURES and good):
            yield condition


def _saved(raw: Mapping[str, Any], struct: str) -> Json:
    """What a snapshot keeps of a struct: the fields whose rows say so."""
    return {
        name: raw[name] and change_items(raw[name], row, _saved_item, row)
        for name, row in fields(struct).items()
        if row.saved and name in raw
    }


def _saved_item(value: Any, row: Field) -> Any:
    return value if row.scalar or value is None else _saved(value, row.type)


def _metadata(raw: Mapping[str, Any], kind: str) -> Json:
    out = {key: raw[key] for key in ObjectMeta.__struct_encode_fields__ if key in raw}
    if kind == "Event":
        out.pop("labels", None)
    annotations = {
        key: value for key, value in (out.pop("annotations", None) or {}).items() if key.startswith(_KEPT_ANNOTATIONS)
    }
    if annotations:
        out["annotations"] = annotations
    return out


def _pod_spec(spec: Mapping[str, Any]) -> Json:
    out = _saved({key: spec[key] for key in spec if key != "volumes"}, "PodSpec")
    for container in (*(out.get("initContainers") or ()), *(out.get("containers") or ())):
        ports = [port for port in container.pop("ports", None) or () if port.get("hostPort")]
        if ports:
            container["ports"] = ports
    volumes = builtins(PodSpec(volumes=convert(spec.get("volumes") or [], tuple[PodVolume, ...]))).get("volumes") or ()
    # Any other volume can be used on every node.
    kept = [volume for volume in volumes if any(kind in volume for kind in _VOLUMES)]
    if kept:
        out["volumes"] = kept
    return out


def _pod_status(pod: Mapping[str, Any]) -> Json:
    """With the statuses of containers, if one of them tells something."""
    ending = bool((pod.get("metadata") or {}).get("deletionTimestamp"))
    spec, out = pod.get("spec") or {}, _saved(pod.get("status") or {}, "PodStatus")
    for name, containers in (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers")):
        requested = {
            container.get("name"): (container.get("resources") or {}).get("requests") or {}
            for container in spec.get(containers) or ()
        }
        statuses = out.pop(name, None) or ()
        # As in a live read, one that runs stays beside one that tells: a pod has ended when all have.
        if any(
            tells(convert(status, ContainerStatus), requested.get(status.get("name"), {}), ending=ending)
            for status in statuses
        ):
            out[name] = statuses
    return out


def write_list(items: Sequence[Json], head: Mapping[str, Any], stream: TextIO, *, yaml: bool = False) -> None:
    """Write the List; in JSON, one object per line."""
    if yaml:
        from kubectl_dra.manifests.yaml_output import write_yaml

        whole = {"apiVersion": "v1", "kind": "List", METADATA_KEY: head, "items": list(items)}
        write_yaml(whole, stream, width=120)
        return
    stream.write(f'{{"apiVersion":"v1","kind":"List","{METADATA_KEY}":{_line(head)},"items":[\n')
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

    Raises InputError: it cannot be written, or exists and ``force`` is not given.
    """
    check_target(path, force=force)
    temporary = name_beside(path)
    try:
        with os.fdopen(new_private_file(temporary), "w", encoding="utf-8") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        check_target(path, force=force)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        discard(temporary)


# Whether selectors give the same verdicts on the devices of two snapshots: checks what anonymizing replaced.


def disagreements(before: Snapshot, after: Snapshot) -> list[str]:
    """A sentence for each selector of ``before`` whose counterpart in ``after`` gives another verdict.

    Both hold the same objects in the same order. All errors count as equal.
    """
    from kubectl_dra.cel.columns import DeviceTable

    release = before.release or UNTOLD
    environment = Environment.for_release(release, stored=True)
    tables = [
        DeviceTable([device for slice_ in snapshot.slices for device in slice_.devices]) for snapshot in (before, after)
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
        elif wrong := sum(first != two for first, two in zip(*verdicts, strict=True)):
            out.append(f"a selector of {where} gives another answer on {wrong:,} devices than before")
    return out


def _selectors(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for name, device_class in snapshot.classes.items():
        for expression in device_class.selectors:
            if expression is not None:
                yield f"DeviceClass {name}", expression
    for claim in snapshot.claims.values():
        yield from _of(f"ResourceClaim {claim.key}", claim)
    for (namespace, name), template in snapshot.templates.items():
        yield from _of(f"ResourceClaimTemplate {namespace}/{name}", template.claim(name, namespace))


def _of(where: str, claim: ResourceClaim) -> Iterator[tuple[str, str]]:
    selectors = (expression for spec in claim.alternatives() for expression in spec.selectors)
    return ((where, expression) for expression in selectors if expression is not None)
