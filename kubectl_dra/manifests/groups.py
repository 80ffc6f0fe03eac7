"""The groups of Kubernetes' own kinds, and which other groups can only be mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.api.releases import GROUP, LIFECYCLES
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, key_of
from kubectl_dra.text import edit_distance, nearest

BUILT_IN: Final = frozenset(
    f"{group}.k8s.io"
    for group in (
        *("admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization"),
        *("certificates", "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver"),
        *("networking", "node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration"),
    )
)
"""Groups of Kubernetes itself that have a dot. A group without one is Kubernetes' own, too, or does not exist."""
OWN: Final[Mapping[str, str]] = {
    **{kind: group for group, kind in (*TEMPLATES, *SPECS) if "." not in group},
    **dict.fromkeys(("Namespace", "ResourceQuota"), ""),
    **{life.kind: GROUP for life in LIFECYCLES},
}
"""The group of each kind of Kubernetes' own that some rule is about."""
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        (
            *("Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "LimitRange", "List", "Namespace"),
            *("Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController"),
            *("ResourceQuota", "Secret", "Service", "ServiceAccount", "Status"),
        )
    ),
    "apps": frozenset(("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
    "batch": frozenset(("CronJob", "Job")),
    GROUP: frozenset(life.kind for life in LIFECYCLES),
}
"""All kinds of the groups of Kubernetes that pods and their claims are in."""
_FORMER: Final = ("extensions",)
"""Groups that had kinds which others have now."""
_INSTEAD: Final = ("k8s.io", "resource.kubernetes.io")
"""Groups that do not exist and stand for resource.k8s.io."""
_NO_MISSPELLING: Final = ".x-k8s.io"
"""End of the groups of Kubernetes' own projects outside of its core."""
_LETTERS: Final = 2
"""So many letters of resource.k8s.io can be wrong: no registered group is as near."""


def shares_kind(group: str, kind: str) -> bool:
    """Whether an object has the kind of another group's: what holds for that kind does not hold for it."""
    return OWN.get(kind, group) != group


def right_group(group: str, kind: str) -> str | None:
    """The group that is meant; None if the group is right, or may have such a kind of its own."""
    right = OWN.get(kind)
    if right is None or group == right or group in _FORMER:
        return None
    if "." not in group or group in BUILT_IN:
        return right
    if right == GROUP and (group in _INSTEAD or _is_misspelt(group)):
        return right
    return None


def unknown_object(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    """Of an object that no API server knows: its version with its kind, and what is meant, empty if nothing is like it.

    None of every other object: a group that is not Kubernetes' own may have any kind.
    """
    group, kind = key_of(raw)
    if kind.endswith("List"):
        return None
    own = f"{raw['apiVersion']} {kind}"
    if (right := right_group(group, kind)) is not None:
        return own, f"{right}/v1" if right else "v1"
    known = _KINDS.get(group)
    if known is None or kind in known:
        return None
    near = nearest(kind, sorted(known), 1) or nearest(kind, sorted(set().union(*_KINDS.values())), 1)
    return own, near[0] if near else ""


def may_make_pods(raw: Mapping[str, Any]) -> bool:
    """Whether an object of a kind that is not known has containers, so that its controller may make pods of them."""
    key = key_of(raw)
    if "." not in key[0] or key[0] in BUILT_IN or key in TEMPLATES or key in SPECS:
        return False
    return _has_containers(raw.get("spec"))


def _has_containers(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value.get("containers"), list) or any(map(_has_containers, value.values()))
    return isinstance(value, list) and any(map(_has_containers, value))


def _is_misspelt(group: str) -> bool:
    return not group.endswith(_NO_MISSPELLING) and edit_distance(group.lower(), GROUP, _LETTERS) is not None
