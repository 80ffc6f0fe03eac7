"""ProvisioningRequests: capacity that somebody asks cluster-autoscaler for ahead of the pods, and how that stands.

The conditions are those of cluster-autoscaler 1.36 (``apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from kubectl_dra.api.neighbour_kinds import Conditioned
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.neighbours.decider import KUEUE
from kubectl_dra.neighbours.kueue import workload_of

PROVISIONING: Final = "ProvisioningRequest.autoscaling.x-k8s.io"
CONSUMES: Final = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations of pods for which capacity was asked: cluster-autoscaler makes no other node for them."""
_OF_KUEUE: Final = f"{KUEUE}managed=true"


class RequestStage(Enum):
    """Stage of a request; the value is the condition that says so. Of several that hold, the first one counts."""

    FAILED = "Failed"
    REVOKED = "CapacityRevoked"
    EXPIRED = "BookingExpired"
    PROVISIONED = "Provisioned"
    ACCEPTED = "Accepted"
    NEW = ""


class ProvisioningState(NamedTuple):
    """Stage of a request, since when, and what is said of it."""

    name: str
    stage: RequestStage
    since: str = ""
    said: str = ""


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The request that a pod names, or those of Kueue where an admission check of its Workload is not ready."""
    if name := consumed(pod):
        yield Pointer(PROVISIONING, pod.metadata.namespace, name)
        return
    workload = workload_of(pod, snapshot)
    if workload is not None and any(check.state != "Ready" for check in workload.status.admission_checks):
        yield Pointer(PROVISIONING, pod.metadata.namespace, labels=_OF_KUEUE)


def consumed(pod: Pod) -> str:
    """The request whose capacity the pod is to use; empty if it names none."""
    annotations = pod.metadata.annotations
    return next((annotations[key] for key in CONSUMES if annotations.get(key)), "")


def request_of(pod: Pod, snapshot: Snapshot) -> Conditioned | None:
    """The request that the pod names, or the newest that Kueue has made for its Workload, if it was read."""
    requests: Mapping[tuple[str, str], Conditioned] = snapshot.others.get(PROVISIONING, {})
    if name := consumed(pod):
        return requests.get((pod.metadata.namespace, name))
    workload = workload_of(pod, snapshot)
    own = [
        request
        for request in requests.values()
        if workload is not None and any(owner.uid == workload.metadata.uid for owner in request.metadata.owners)
    ]
    return max(own, key=lambda request: request.metadata.creation_timestamp, default=None)


def state_of(request: Conditioned) -> ProvisioningState:
    """Stage of a request, with what is said of it."""
    known = {condition.type: condition for condition in request.status.conditions}
    for stage in RequestStage:
        condition = known.get(stage.value)
        if condition is None or condition.status != "True":
            continue
        # While it waits, cluster-autoscaler says there what for.
        telling = known.get(RequestStage.PROVISIONED.value, condition) if stage is RequestStage.ACCEPTED else condition
        return ProvisioningState(
            request.metadata.name, stage, condition.last_transition_time, telling.message or telling.reason
        )
    return ProvisioningState(request.metadata.name, RequestStage.NEW)
