"""Operators that install what DRA drivers need: whether one of them is not ready, in its own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_dra.api.operators import OperatorPolicy
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import catalogue

_OF_DRIVER: Final[Mapping[str, str]] = {
    "gpu.nvidia.com": "ClusterPolicy.nvidia.com",
    "compute-domain.nvidia.com": "ClusterPolicy.nvidia.com",
    "sriovnetwork.k8snetworkplumbingwg.io": "NicClusterPolicy.mellanox.com",
}
"""The kind in which the operator that installs a driver, or what it needs on a node, has its state."""
_READY: Final = ("", "ready", "ignored")


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The operator of each driver that a pod needs and that publishes no device."""
    for driver in sorted(_drivers(pod, snapshot) & _OF_DRIVER.keys()):
        if not any(slice_.driver == driver and slice_.devices for slice_ in snapshot.slices):
            yield Pointer(_OF_DRIVER[driver])


def not_ready(driver: str, snapshot: Snapshot) -> tuple[str, OperatorPolicy] | None:
    """The policy of a driver's operator that is not ready, with its kind as ``api.neighbour_kinds`` has it."""
    kind = _OF_DRIVER.get(driver, "")
    policies: Mapping[tuple[str, str], OperatorPolicy] = snapshot.others.get(kind, {})
    operator_policy = next((policy for policy in policies.values() if policy.status.state not in _READY), None)
    return (kind, operator_policy) if operator_policy is not None else None


def words_of(policy: OperatorPolicy) -> str:
    """Why it is not ready: the message of a condition, else the parts that are not."""
    said = [
        condition.message for condition in policy.status.conditions if condition.message and condition.status == "True"
    ]
    said += [
        condition.message for condition in policy.status.conditions if condition.message and condition.status != "True"
    ]
    parts = [part.name for part in policy.status.applied_states if part.state not in (*_READY, "ignore")]
    return said[0] if said else f"not ready: {', '.join(parts)}" if parts else ""


def _drivers(pod: Pod, snapshot: Snapshot) -> set[str]:
    """The known drivers whose classes the pod's claims ask for."""
    space, statuses = pod.metadata.namespace, pod.claim_statuses
    classes: set[str] = set()
    for pod_claim in pod.claims:
        claim = snapshot.claims.get((space, pod_claim.claim_name or statuses.get(pod_claim.name) or ""))
        template = snapshot.templates.get((space, pod_claim.template_name))
        if claim is None and template is not None:
            claim = template.claim("", space)
        classes.update(spec.device_class for spec in (claim.alternatives() if claim is not None else ()))
    drivers = (catalogue().of_class(name) for name in classes)
    return {driver.name for driver in drivers if driver is not None}
