"""The kinds that the scheduler reads besides devices, claims, pods and nodes, those that run drivers, and those of the
layers around it: where they are served, how to decode them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api import plugins, policy, volumes
from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.api.releases import GROUP, PLURALS


class SchedulingKind(NamedTuple):
    """One kind: group, versions that can be read (newest first), plural, scope, decoder from a JSON object."""

    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool
    decode: Callable[[Mapping[str, Any]], Any]


_PODGROUPS = ("v1beta1", "v1alpha3", "v1alpha2", "v1alpha1")

SCHEDULING_KINDS: Final[Mapping[str, SchedulingKind]] = {
    "PersistentVolumeClaim": SchedulingKind(
        "", ("v1",), "persistentvolumeclaims", True, volumes.PersistentVolumeClaim.from_json
    ),
    "PersistentVolume": SchedulingKind("", ("v1",), "persistentvolumes", False, volumes.PersistentVolume.from_json),
    "StorageClass": SchedulingKind("storage.k8s.io", ("v1",), "storageclasses", False, volumes.StorageClass.from_json),
    "CSIDriver": SchedulingKind("storage.k8s.io", ("v1",), "csidrivers", False, volumes.CSIDriver.from_json),
    "CSINode": SchedulingKind("storage.k8s.io", ("v1",), "csinodes", False, volumes.CSINode.from_json),
    "CSIStorageCapacity": SchedulingKind(
        "storage.k8s.io", ("v1",), "csistoragecapacities", True, volumes.CSIStorageCapacity.from_json
    ),
    "VolumeAttachment": SchedulingKind(
        "storage.k8s.io", ("v1",), "volumeattachments", False, volumes.VolumeAttachment.from_json
    ),
    "PriorityClass": SchedulingKind(
        "scheduling.k8s.io", ("v1",), "priorityclasses", False, policy.PriorityClass.from_json
    ),
    "RuntimeClass": SchedulingKind("node.k8s.io", ("v1",), "runtimeclasses", False, policy.RuntimeClass.from_json),
    "PodDisruptionBudget": SchedulingKind(
        "policy", ("v1",), "poddisruptionbudgets", True, policy.PodDisruptionBudget.from_json
    ),
    "LimitRange": SchedulingKind("", ("v1",), "limitranges", True, policy.LimitRange.from_json),
    "ServiceAccount": SchedulingKind("", ("v1",), "serviceaccounts", True, policy.ServiceAccount.from_json),
    "Service": SchedulingKind("", ("v1",), "services", True, policy.PodSelecting.from_json),
    "ReplicationController": SchedulingKind("", ("v1",), "replicationcontrollers", True, policy.PodSelecting.from_json),
    "ReplicaSet": SchedulingKind("apps", ("v1",), "replicasets", True, policy.PodSelecting.from_json),
    "StatefulSet": SchedulingKind("apps", ("v1",), "statefulsets", True, policy.PodSelecting.from_json),
    "PodGroup": SchedulingKind("scheduling.k8s.io", _PODGROUPS, "podgroups", True, policy.PodGroup.from_json),
    "Workload": SchedulingKind("scheduling.k8s.io", _PODGROUPS, "workloads", True, policy.Workload.from_json),
    # No plugin of the scheduler reads it: it makes the pods of drivers, or cannot.
    "DaemonSet": SchedulingKind("apps", ("v1",), "daemonsets", True, plugins.DaemonSet.from_json),
    # No plugin either: who decides about a pod before the scheduler, or beside it.
    **{
        name: SchedulingKind(row.group, row.versions, row.plural, row.namespaced, row.struct.from_json)
        for name, row in NEIGHBOUR_KINDS.items()
    },
}
"""The known kinds by name. They are read only if something needs them; see ``scheduling.kinds_to_read``, and of other
layers ``neighbours.pointers``.
"""


CORE_PLURALS: Final[Mapping[str, str]] = {
    "Pod": "pods",
    "Node": "nodes",
    "Namespace": "namespaces",
    "ResourceQuota": "resourcequotas",
    "Event": "events",
}


_NAMESPACED: Final = frozenset(
    (
        *("ResourceClaim", "ResourceClaimTemplate", "Pod", "ResourceQuota", "Event"),
        *(name for name, kind in SCHEDULING_KINDS.items() if kind.namespaced),
    )
)


def is_namespaced(kind: str) -> bool:
    """Whether objects of a kind that is read are in namespaces."""
    return kind in _NAMESPACED


def further_kind(raw: Mapping[str, Any], *, manifest: bool) -> str:
    """The name in ``SCHEDULING_KINDS`` of an object's kind; empty if it is none of them, or the object is not read.

    Of other layers those are read of a ``manifest`` that say so.
    """
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    kind = kind_here(raw["kind"], str(raw["apiVersion"]))
    known, row, meta = SCHEDULING_KINDS.get(kind), NEIGHBOUR_KINDS.get(kind), raw.get("metadata")
    if known is None or group != known.group or version not in known.versions:
        return ""
    name = str(meta.get("name")) if isinstance(meta, dict) else ""
    return kind if row is None or ((row.written or not manifest) and row.reads(name, raw)) else ""


def is_namespaced_resource(plural: str) -> bool:
    """Whether a resource is that of such a kind."""
    return any(resource_of(kind).plural == plural for kind in _NAMESPACED)


MAKER_PLURALS: Final[Mapping[tuple[str, str], str]] = {
    ("", "ReplicationController"): "replicationcontrollers",
    ("apps", "Deployment"): "deployments",
    ("apps", "ReplicaSet"): "replicasets",
    ("apps", "StatefulSet"): "statefulsets",
    ("batch", "Job"): "jobs",
    ("batch.volcano.sh", "Job"): "jobs",
    ("jobset.x-k8s.io", "JobSet"): "jobsets",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkersets",
}
"""What makes pods and is read whole, where a manifest of it may change its pods: by group and kind."""


class ResourceName(NamedTuple):
    """A kind as RBAC and addresses name it: its plural and its group, which is empty for the core one."""

    plural: str
    group: str


def resource_of(kind: str) -> ResourceName:
    """The resource of any kind that is read."""
    if kind in CORE_PLURALS:
        return ResourceName(CORE_PLURALS[kind], "")
    if kind == "Deployment":
        return ResourceName(MAKER_PLURALS["apps", kind], "apps")
    known = SCHEDULING_KINDS.get(kind)
    return ResourceName(known.plural, known.group) if known is not None else ResourceName(PLURALS[kind], GROUP)


def neighbour_root(kind: str, served: Mapping[str, str] | None) -> str:
    """Where a kind of another layer is: in the version of ``served``, in the newest if the server lists none."""
    row = NEIGHBOUR_KINDS[kind]
    version = (served or {}).get(kind) or row.versions[0]
    return f"/apis/{row.group}/{version}" if row.group else f"/api/{version}"


def kind_plural(kind: str) -> str:
    """Several objects of a kind: Nodes, DeviceClasses, CSIStorageCapacities."""
    kind = kind.partition(".")[0]
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"
