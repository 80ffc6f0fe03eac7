"""Removes names that identify the owner, so that ``explain`` still gives the same answers.

Nothing stays that ``harmless`` does not know: ``Identities`` says per kind of name what it becomes, the rows of
fields say of which kind each is, and a last look at every text of the result replaces what they left. Left out: opaque
configuration, driver data, comments in selectors, unknown fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.allocation.extended_resources import MADE_FOR_EXTENDED
from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.cluster.anonymize_fields import LEFT_OUT, Fields, Json
from kubectl_dra.cluster.harmless import is_harmless
from kubectl_dra.cluster.identities import KEPT_NAMESPACES, Identities
from kubectl_dra.errors import InputError

_SELECTED = "volume.kubernetes.io/selected-node"
_ANNOTATIONS = (
    *(MADE_FOR_EXTENDED, "pv.kubernetes.io/bind-completed"),
    "storage.alpha.kubernetes.io/migrated-plugins",
)
_LABELLED = frozenset(("Node", "Namespace", "Pod", "PersistentVolume", "PodDisruptionBudget"))
_CATEGORIES = (
    "node namespace pod claim template class pool slice rule quota podgroup volumeclaim volume storageclass csidriver "
    "workload localqueue clusterqueue cohort flavor queue nodepool nodeclaim admissioncheck "
    "provisioningrequest "
    "priorityclass owner scheduler driver podclaim request key value"
)

CATEGORIES: Final[Mapping[str, str]] = {
    "ResourceSlice": "slice",
    "DeviceClass": "class",
    "ResourceClaim": "claim",
    "ResourceClaimTemplate": "template",
    "DeviceTaintRule": "rule",
    "Pod": "pod",
    "Node": "node",
    "Namespace": "namespace",
    "ResourceQuota": "quota",
    "Event": "event",
    "PersistentVolumeClaim": "volumeclaim",
    "PersistentVolume": "volume",
    "StorageClass": "storageclass",
    "CSIDriver": "csidriver",
    "CSINode": "node",
    "CSIStorageCapacity": "storagecapacity",
    "VolumeAttachment": "attachment",
    "PriorityClass": "priorityclass",
    "RuntimeClass": "runtimeclass",
    "PodDisruptionBudget": "budget",
    "LimitRange": "limitrange",
    "ServiceAccount": "account",
    "PodGroup": "podgroup",
    "Workload": "workload",
    "Service": "service",
    "ReplicationController": "owner",
    "ReplicaSet": "owner",
    "StatefulSet": "owner",
    "DaemonSet": "owner",
    **{kind: row.category for kind, row in NEIGHBOUR_KINDS.items()},
}
"""The category of the names of each kind."""


class Anonymizer:
    """Replaces names in objects of one cluster. The same name becomes the same everywhere."""

    def __init__(self, items: Iterable[Mapping[str, Any]], seed: str) -> None:
        """``items`` are all objects that will be replaced; ``seed`` determines the new values of serial numbers."""
        items = list(items)
        specs = [item.get("spec") or {} for item in items if item["kind"] == "ResourceSlice"]
        self._new = Identities({spec.get("driver") or "" for spec in specs} - {""}, seed)
        self._fields = Fields(self._new)
        for item in items:
            self.item(item)
        self._new.settled()
        for pod in (item for item in items if item["kind"] == "Pod"):
            for volume in pod["spec"].get("volumes") or ():
                if volume.get("ephemeral"):
                    self._new.names.compose(
                        "volumeclaim", ("pod", pod["metadata"]["name"]), ("podvolume", volume["name"])
                    )
        self._new.names.words(_CATEGORIES.split())

    def names(self) -> dict[str, dict[str, str]]:
        """The mapping from original to replacement names, by category (node, pod …)."""
        given = self._new.names.given()
        nodes = given.get("node", {})
        given["value"] = {name: other for name, other in given.pop("value", {}).items() if name not in nodes}
        return given

    def namespace(self, name: str) -> str:
        """The replacement of a namespace's name."""
        return self._new.namespace(name)

    def text(self, message: str) -> str:
        """A message with the names in it replaced."""
        return self._new.names.text(message)

    def said(self, said: Mapping[str, Any]) -> Json:
        """What a snapshot says about itself; see ``cluster.save``."""
        out = {**said, "anonymized": True, "notes": [self.text(note) for note in said.get("notes") or ()]}
        out["gaps"] = [self._new.checked({**gap}) for gap in said.get("gaps") or ()]
        for gap in out["gaps"]:
            if "detail" in gap:
                gap["detail"] = self.text(gap["detail"])
            if gap.get("namespace", "default") not in KEPT_NAMESPACES:
                gap["namespace"] = self._new.names.known("namespace", gap["namespace"]) or LEFT_OUT
        return out

    def item(self, raw: Mapping[str, Any]) -> Json:
        """An object whose kind is in ``cluster.snapshot.KINDS``, in the form of ``cluster.save.reduced``.

        Raises:
            InputError: an invalid object.
        """
        kind, meta = kind_here(raw["kind"], str(raw["apiVersion"])), raw.get("metadata") or {}
        category = CATEGORIES[kind]
        try:
            metadata = self._metadata(meta, category, labels=kind in _LABELLED)
            out: Json = {
                "apiVersion": raw["apiVersion"],
                "kind": raw["kind"],
                "metadata": metadata,
                **self._fields.content(raw),
            }
            return self._new.checked(out) if self._new.names.frozen else out
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{kind} {meta.get('name') or ''} cannot be understood: {error}") from None

    def _metadata(self, meta: Mapping[str, Any], category: str, *, labels: bool) -> Json:
        out: Json = {"name": self._new.name(category, meta.get("name") or "")}
        if meta.get("namespace"):
            out["namespace"] = self._new.namespace(meta["namespace"])
        if meta.get("uid"):
            out["uid"] = self._new.names.scrambled(meta["uid"])
        if meta.get("generateName"):
            out["generateName"] = f"{category}-"
        for key in ("resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"):
            if meta.get(key):
                out[key] = meta[key]
        if labels and meta.get("labels"):
            out["labels"] = self._new.labels(meta["labels"])
        annotations = self._annotations(meta.get("annotations") or {})
        if annotations:
            out["annotations"] = annotations
        if meta.get("finalizers"):
            out["finalizers"] = [self._new.key(name) for name in meta["finalizers"]]
        if meta.get("ownerReferences"):
            out["ownerReferences"] = [self._owner(owner) for owner in meta["ownerReferences"]]
        return out

    def _annotations(self, raw: Mapping[str, Any]) -> Json:
        """The annotations that affect answers; they name nothing but nodes and objects of other layers."""
        out: Json = {key: raw[key] for key in _ANNOTATIONS if key in raw}
        out |= self._new.naming(raw)
        if _SELECTED in raw:
            out[_SELECTED] = self._new.names.of("node", raw[_SELECTED])
        return out

    def _owner(self, raw: Mapping[str, Any]) -> Json:
        kind, version = raw.get("kind") or "", raw.get("apiVersion") or ""
        of_layer = NEIGHBOUR_KINDS.get(kind_here(kind, version))
        known_kinds = {"Pod": "pod", "Node": "node", "ResourceClaim": "claim", "PodGroup": "podgroup"}
        if of_layer is not None:
            known_kinds[kind] = of_layer.category
        known = is_harmless(kind) and is_harmless(version)
        out: Json = {
            "apiVersion": version if known else "example.com/v1",
            "kind": kind if known else "Owner",
            "name": self._new.names.of(known_kinds.get(kind, "owner"), raw.get("name") or ""),
            "uid": self._new.names.scrambled(raw.get("uid") or ""),
        }
        if "controller" in raw:
            out["controller"] = raw["controller"]
        return out
