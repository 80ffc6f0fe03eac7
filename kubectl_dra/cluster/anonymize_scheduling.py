"""Replaces names in objects that only scheduling reads (volumes, classes, budgets, groups) and in those parts
of pods.

The fields are few and well known (``api`` decodes no others), so one table maps each field name to its
treatment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.cluster.anonymize_parts import LEFT_OUT, Json, Parts

_NAMES: Final[Mapping[str, str]] = {
    "claimName": "volumeclaim",
    "volumeName": "volume",
    "storageClassName": "storageclass",
    "nodeName": "node",
    "nodeID": "node",
    "priorityClassName": "priorityclass",
    "runtimeClassName": "runtimeclass",
    "serviceAccountName": "account",
    "persistentVolumeName": "volume",
    "volumeAttributesClassName": "storageclass",
}
"""Fields that hold the name of an object, and the name's category."""
_LABELS: Final = frozenset(("matchLabels", "labels", "nodeSelector"))
_KEYS: Final = frozenset(("matchLabelKeys", "mismatchLabelKeys", "topologyKeys"))
_AMOUNTS: Final = frozenset(("capacity", "requests", "limits", "podFixed", "overhead", "max", "min", "default"))
_DRIVERS: Final = frozenset(("driver", "provisioner", "attacher"))
_HANDLES: Final = frozenset(("volumeHandle", "pdName", "volumeID", "uid", "image", "iqn", "targetPortal", "pool"))
_SAID: Final = frozenset(
    (
        *("accessModes", "volumeMode", "phase", "volumeBindingMode", "preemptionPolicy", "operator", "type"),
        *("maxSkew", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "protocol"),
        *("scopeName", "scopes", "storage", "count", "maximumVolumeSize", "hostIP"),
    )
)


class SchedulingParts(Parts):
    """Replaces names, depending on the field that holds them."""

    def content(self, raw: Mapping[str, Any]) -> Json:
        """An object without its apiVersion, kind and metadata, or a part of one."""
        heads = ("apiVersion", "kind", "metadata")
        return {key: self._value(key, value) for key, value in raw.items() if key not in heads}

    def _value(self, key: str, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float) or key in _SAID:
            return value
        if key == "capacity" and isinstance(value, str):
            return value
        if key == "selector" and isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()):
            return self._new.labels(value)
        if key in _LABELS:
            return self._new.labels(value)
        if key in _AMOUNTS and isinstance(value, Mapping):
            return self._new.resources(value)
        if key in ("nodeSelectorTerms", "nodeAffinity") and isinstance(value, list):
            return self._node_selector({"nodeSelectorTerms": value})["nodeSelectorTerms"]
        if key == "matchExpressions":
            return [self._requirement(entry) for entry in value]
        if key == "matchLabelExpressions":
            return [
                {
                    "key": self._new.key(entry.get("key") or ""),
                    "values": [self._new.value(entry.get("key") or "", one) for one in entry.get("values") or ()],
                }
                for entry in value
            ]
        if key in _KEYS:
            return [self._new.key(entry) for entry in value]
        if key == "topologyKey":
            return self._new.key(value)
        if key == "namespaces":
            return [self._new.namespace(entry) for entry in value]
        if key == "drivers":
            return [{**self.content(entry), "name": self._driver(entry.get("name") or "")} for entry in value]
        if key == "claimRef":
            return self._reference(value)
        if key == "volumes":
            return [self.volume(entry) for entry in value]
        if isinstance(value, Mapping):
            return self.content(value)
        if isinstance(value, list):
            return [self.content(entry) if isinstance(entry, Mapping) else LEFT_OUT for entry in value]
        return self._text(key, value)

    def _text(self, key: str, value: str) -> str:
        if key in _NAMES:
            return self._new.names.of(_NAMES[key], value)
        if key in _DRIVERS:
            return self._driver(value)
        return self._new.names.scrambled(value) if key in _HANDLES else LEFT_OUT

    def _driver(self, name: str) -> str:
        return self._new.storage_driver(name)

    def _reference(self, raw: Mapping[str, Any]) -> Json:
        """A reference to a volume's claim."""
        out: Json = {"kind": raw.get("kind") or ""}
        if raw.get("name"):
            out["name"] = self._new.names.of("volumeclaim", raw["name"])
        if raw.get("namespace"):
            out["namespace"] = self._new.namespace(raw["namespace"])
        if raw.get("uid"):
            out["uid"] = self._new.names.scrambled(raw["uid"])
        return out

    def volume(self, raw: Mapping[str, Any]) -> Json:
        """One of a pod's volumes."""
        return {**self.content(raw), "name": self._new.names.of("podvolume", raw.get("name") or "")}


CATEGORIES: Final[Mapping[str, str]] = {
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
}
"""The category of the names of each kind."""
