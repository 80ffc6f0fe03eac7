"""The kinds that the scheduler reads besides devices, claims, pods and nodes, those that run drivers, and those of the
layers around it: where they are served, how to decode them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api import plugins, policy, volumes
from kubectl_dra.api.meta import Wire, kind_plural
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


def _row(
    kind: str, group: str, namespaced: bool, struct: type[Wire], versions: tuple[str, ...] = ("v1",)
) -> tuple[str, SchedulingKind]:
    return kind, SchedulingKind(group, versions, kind_plural(kind).lower(), namespaced, struct.from_json)


SCHEDULING_KINDS: Final[Mapping[str, SchedulingKind]] = dict(
    (
        _row("PersistentVolumeClaim", "", True, volumes.PersistentVolumeClaim),
        _row("PersistentVolume", "", False, volumes.PersistentVolume),
        _row("StorageClass", "storage.k8s.io", False, volumes.StorageClass),
        _row("CSIDriver", "storage.k8s.io", False, volumes.CSIDriver),
        _row("CSINode", "storage.k8s.io", False, volumes.CSINode),
        _row("CSIStorageCapacity", "storage.k8s.io", True, volumes.CSIStorageCapacity),
        _row("VolumeAttachment", "storage.k8s.io", False, volumes.VolumeAttachment),
        _row("PriorityClass", "scheduling.k8s.io", False, policy.PriorityClass),
        _row("RuntimeClass", "node.k8s.io", False, policy.RuntimeClass),
        _row("PodDisruptionBudget", "policy", True, policy.PodDisruptionBudget),
        _row("LimitRange", "", True, policy.LimitRange),
        _row("ServiceAccount", "", True, policy.ServiceAccount),
        _row("Service", "", True, policy.PodSelecting),
        _row("ReplicationController", "", True, policy.PodSelecting),
        _row("ReplicaSet", "apps", True, policy.PodSelecting),
        _row("StatefulSet", "apps", True, policy.PodSelecting),
        _row("PodGroup", "scheduling.k8s.io", True, policy.PodGroup, _PODGROUPS),
        _row("Workload", "scheduling.k8s.io", True, policy.Workload, _PODGROUPS),
        # No plugin of the scheduler reads it: it makes the pods of drivers, or cannot.
        _row("DaemonSet", "apps", True, plugins.DaemonSet),
        # No plugin either: who decides about a pod before the scheduler, or beside it.
        *(_row(kind, row.group, row.namespaced, row.struct, row.versions) for kind, row in NEIGHBOUR_KINDS.items()),
    )
)
"""The known kinds by name. They are read only if something needs them; see ``scheduling.kinds_to_read``, and of other
layers ``neighbours.pointers``.
"""


CORE_KINDS: Final = ("Pod", "Node", "Namespace", "ResourceQuota", "Event")
CORE_PLURALS: Final[Mapping[str, str]] = {kind: kind_plural(kind).lower() for kind in CORE_KINDS}


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
