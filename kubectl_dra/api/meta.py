"""Object metadata, as far as allocation or its explanation reads it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Self, TypeVar

import msgspec
from msgspec import field

# Events about the devices of pods.

FAILED_PREPARE: Final = "FailedPrepareDynamicResources"
"""The kubelet's reason where a driver does not prepare the devices of a pod."""
OUT_OF: Final = "OutOf"
"""Prefix of the kubelet's reasons where a node lacks a resource of a pod (pkg/kubelet/lifecycle)."""
DEVICE_EVENTS: Final = (
    "FailedScheduling",
    "FailedResourceClaimCreation",
    FAILED_PREPARE,
    "DeviceTaintManagerEviction",
    "BindingConditionsPending",
    "NotTriggerScaleUp",
    "TriggeredScaleUp",
    "Nominated",
    "Unschedulable",
    "Pipelined",
    "ApplicationFailed",
)
"""Reasons of events about devices. Their messages name claims, devices and nodes; other events may contain anything."""
EVICTION_REASON: Final = "DeletionByDeviceTaintManager"
"""The reason of the condition DisruptionTarget of a pod that the device taint controller evicts."""


# API objects as msgspec structs in the shape of the wire, reduced to the fields that matter.

T = TypeVar("T")
NOT_SAVED: Final = "not saved"
"""The annotation of a field that no snapshot keeps; ``api.core_fields`` explains what other annotations say."""
WORKED_OUT: Final = "worked out"
"""The annotation of an attribute that is no field of the API: it comes from others."""
Amount = str | int | float
"""A quantity as written: text, or a bare number."""


class Wire(msgspec.Struct, frozen=True, kw_only=False, rename="camel", omit_defaults=True, gc=False):
    """Base of all structs decoded from API objects. Fields not named in a subclass are skipped.

    Trees of data have no cycles, so the garbage collector need not know them.
    """

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """This struct from a decoded JSON object. Raises msgspec.ValidationError like ``convert``."""
        return convert(raw, cls)


def convert(raw: Any, kind: type[T]) -> T:
    """A decoded JSON value as ``kind``. As in the API server, null counts as absent.

    Raises msgspec.ValidationError: a value of the wrong type; the message names its path.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(raw), kind)


def without_nulls(raw: Any) -> Any:
    """The value without null members, at any depth."""
    if isinstance(raw, dict):
        return {key: without_nulls(value) for key, value in raw.items() if value is not None}
    if isinstance(raw, list):
        return [without_nulls(value) for value in raw if value is not None]
    return raw


def builtins(value: Wire) -> dict[str, Any]:
    """The object in the shape of the API, without fields that have their default."""
    out: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return out


JSONObject = Mapping[str, Any]
EMPTY: Mapping[str, Any] = {}


_CONTROLLERS: Final = {
    "CronJob": "batch",
    "DaemonSet": "apps",
    "Deployment": "apps",
    "Job": "batch",
    "Node": "",
    "Pod": "",
    "ReplicaSet": "apps",
    "ReplicationController": "",
    "Rollout": "argoproj.io",
    "StatefulSet": "apps",
}
"""The groups of kinds that pods and claims belong to."""


class OwnerReference(Wire, frozen=True):
    """One entry of ``metadata.ownerReferences``."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    api_version: str = ""

    @property
    def own_kind(self) -> str:
        """The kind; where another group has a kind of the same name as a controller of Kubernetes, with the group."""
        group = self.api_version.rpartition("/")[0]
        if self.api_version and group != _CONTROLLERS.get(self.kind, group):
            return f"{self.kind}.{group}"
        return self.kind


class ObjectMeta(Wire, frozen=True):
    """``metadata`` of one object. Timestamps are the RFC 3339 text of the API; empty means not set.

    ``deletion_timestamp`` is when grace period over; ``deleted_at`` is when that time began.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = field(default=(), name="ownerReferences")

    @property
    def key(self) -> str:
        """``namespace/name``, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def deleted_at(self) -> str:
        """Time of the request for deletion; empty if there was none."""
        if not self.deletion_grace_period_seconds:
            return self.deletion_timestamp
        try:
            asked = datetime.fromisoformat(self.deletion_timestamp) - timedelta(
                seconds=self.deletion_grace_period_seconds
            )
        except (OverflowError, ValueError):
            return self.deletion_timestamp
        return asked.isoformat(timespec="seconds").replace("+00:00", "Z")

    def controller(self) -> OwnerReference | None:
        """The owner reference that is the controller, if any."""
        return next((owner for owner in self.owners if owner.controller), None)


class ApiObject(Wire, frozen=True):
    """An object of the API; what it holds besides its metadata is up to its kind."""

    metadata: ObjectMeta = ObjectMeta()


def kind_plural(kind: str) -> str:
    """Several objects of a kind: Nodes, DeviceClasses, CSIStorageCapacities. In lower case, its resource."""
    kind = kind.partition(".")[0]
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("ss") else kind if kind.endswith("s") else f"{kind}s"


def title(raw: Mapping[str, Any]) -> str:
    """An object's kind and name, for people."""
    meta = raw.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = meta.get("name") or meta.get("generateName") or "without a name"
    namespace = meta.get("namespace")
    return f"{raw['kind']} {namespace}/{name}" if namespace else f"{raw['kind']} {name}"
