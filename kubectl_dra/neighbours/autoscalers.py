"""What autoscalers have said of a pod, and which of their objects tell more: told apart by who wrote the event."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct, ValidationError, convert

from kubectl_dra.api.neighbour_kinds import Conditioned, ConfigMap, NodeClaim
from kubectl_dra.api.pods import Pod, PodCondition
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.data.drivers import parsed
from kubectl_dra.data.messages import (
    AUTOSCALERS,
    CLUSTER_AUTOSCALER,
    COMING,
    KARPENTER,
    LATER,
    NEVER,
    UNKNOWN,
    Speaker,
    Understood,
    all_understood,
)
from kubectl_dra.neighbours.decider import KUEUE
from kubectl_dra.neighbours.kueue import workload_of

_LONGEST = 1_000_000


class BackoffInfo(Struct, frozen=True, rename="camel"):
    """Why a group could not get a node."""

    error_code: str = ""
    error_message: str = ""


class ScaleUpStatus(Struct, frozen=True, rename="camel"):
    """``scaleUp`` of a group: NoActivity, InProgress or Backoff."""

    status: str = ""
    backoff_info: BackoffInfo = BackoffInfo()


class UnreadyCount(Struct, frozen=True, rename="camel"):
    """Nodes that are not ready; ``resource_unready`` of them for their devices, which are not published."""

    total: int = 0
    resource_unready: int = 0


class RegisteredCount(Struct, frozen=True, rename="camel"):
    """Nodes of a group that have joined the cluster."""

    total: int = 0
    ready: int = 0
    unready: UnreadyCount = UnreadyCount()


class NodeCounts(Struct, frozen=True, rename="camel"):
    """``nodeCounts`` of a group."""

    registered: RegisteredCount = RegisteredCount()


class GroupHealth(Struct, frozen=True, rename="camel"):
    """``health`` of a group: its nodes, how many it may have, and how many the cloud was asked for."""

    node_counts: NodeCounts = NodeCounts()
    cloud_provider_target: int = 0
    min_size: int = 0
    max_size: int = 0


class GroupStatus(Struct, frozen=True, rename="camel"):
    """A node group of cluster-autoscaler."""

    name: str = ""
    health: GroupHealth = GroupHealth()
    scale_up: ScaleUpStatus = ScaleUpStatus()


class AutoscalerStatus(Struct, frozen=True, rename="camel"):
    """The status of cluster-autoscaler, as far as it is about its groups."""

    node_groups: tuple[GroupStatus, ...] = ()


def groups_in(text: str) -> tuple[GroupStatus, ...]:
    """The node groups that a status tells of; none where it has another form."""
    if not text or len(text) > _LONGEST:
        return ()
    from yaml import YAMLError

    try:
        return convert(parsed(text), AutoscalerStatus).node_groups
    except (YAMLError, ValidationError, RecursionError, ValueError):
        return ()


NODE_CLAIM: Final = "NodeClaim.karpenter.sh"
NODE_POOL: Final = "NodePool.karpenter.sh"
STATUS_MAP: Final = ("kube-system", "cluster-autoscaler-status")
"""Namespace and name of the ConfigMap, unless ``--status-config-map-name`` says otherwise."""
PROVISION_MINUTES: Final = 15
"""After so long both give up on a node (``--max-node-provision-time``; Karpenter's time for registration)."""
_REASONS: Final = ("TriggeredScaleUp", "NotTriggerScaleUp", "FailedScheduling", "Nominated")
"""Reasons of events with which autoscalers speak of pods. Karpenter has one in common with kube-scheduler."""
_NOMINATED: Final = re.compile(r"nodeclaim/(?P<name>[a-z0-9.-]+)")


class ScaleSign(Struct, frozen=True):
    """The newest event of an autoscaler (``who``) about a pod, and what is known of its message.

    ``claims`` are the NodeClaims that its events have named, in their order.
    """

    who: Speaker
    event: Event
    reasons: tuple[Understood, ...]
    claims: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """What comes of it; empty where the message is not known. A group that may help later counts most."""
        scales = {reason.entry.scale for reason in self.reasons}
        return next((scale for scale in (COMING, LATER, UNKNOWN, NEVER) if scale in scales), "")

    @property
    def deciding(self) -> tuple[Understood, ...]:
        """The reasons that lead to the outcome first, then the others."""
        return tuple(sorted(self.reasons, key=lambda reason: reason.entry.scale != self.outcome))

    @property
    def node_claim(self) -> str:
        """The NodeClaim that the event names; empty if it names none."""
        names = _node_claims([self.event]) if self.who == KARPENTER else ()
        return names[0] if names else ""

    @property
    def group(self) -> str:
        """The node group that the event names; empty if it names none."""
        match = re.search(r"\[\{(\S+) \d+->", self.event.message)
        return match[1] if match is not None else ""


def scale_signs(pod: Pod, snapshot: Snapshot) -> Iterator[ScaleSign]:
    """What each autoscaler said of the pod last."""
    said = snapshot.events_of(pod, *_REASONS)
    for who in AUTOSCALERS:
        own = [event for event in said if event.speaker is who]
        if own:
            claims = _node_claims(own) if who == KARPENTER else ()
            yield ScaleSign(who, own[-1], tuple(all_understood(own[-1].message, who)), claims)


def _node_claims(events: Iterable[Event]) -> tuple[str, ...]:
    matches = (_NOMINATED.search(event.message) for event in events)
    return tuple(dict.fromkeys(match["name"] for match in matches if match is not None))


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The NodeClaim that it waits for, NodePools that do not suit it, cluster-autoscaler's status, asked capacity."""
    for sign in scale_signs(pod, snapshot):
        if sign.who == CLUSTER_AUTOSCALER:
            yield Pointer("ConfigMap", *STATUS_MAP)
        elif sign.node_claim:
            yield Pointer(NODE_CLAIM, name=sign.node_claim)
        elif sign.outcome != COMING:
            yield Pointer(NODE_POOL)
    yield from _requested(pod, snapshot)


def node_claim_of(sign: ScaleSign, snapshot: Snapshot) -> NodeClaim | None:
    """The NodeClaim that an event names, if it was read and is there."""
    return snapshot.others.get(NODE_CLAIM, {}).get(("", sign.node_claim))


def unready_pools(snapshot: Snapshot) -> dict[str, PodCondition]:
    """The NodePools that are not ready, with the condition that says so."""
    pools: dict[tuple[str, str], Conditioned] = dict(snapshot.others.get(NODE_POOL, {}))
    return {
        name: condition
        for (_, name), pool in pools.items()
        for condition in pool.status.conditions
        if condition.type == "Ready" and condition.status == "False"
    }


def groups(snapshot: Snapshot) -> tuple[GroupStatus, ...]:
    """The node groups of cluster-autoscaler, as its status tells; none where that was not read or is none."""
    read: ConfigMap | None = snapshot.others.get("ConfigMap", {}).get(STATUS_MAP)
    return groups_in(read.data.get("status", "")) if read is not None else ()


# ProvisioningRequests: capacity that somebody asks cluster-autoscaler for ahead of the pods, and how that stands. The
# conditions are those of cluster-autoscaler 1.36 (``apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go``).

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


def _requested(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
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


def state_of_request(request: Conditioned) -> ProvisioningState:
    """Stage of a request, with what is said of it."""
    known = {condition.type: condition for condition in request.status.conditions}
    for stage in RequestStage:
        condition = known.get(stage.value)
        if condition is None or condition.status != "True":
            continue
        # While it waits, cluster-autoscaler says there what for.
        telling = known.get(RequestStage.PROVISIONED.value, condition) if stage is RequestStage.ACCEPTED else condition
        said = telling.message or telling.reason
        return ProvisioningState(request.metadata.name, stage, condition.last_transition_time, said)
    return ProvisioningState(request.metadata.name, RequestStage.NEW)
