"""Pods (core/v1): the parts that determine their claims and where they run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

from msgspec import field
from msgspec.structs import replace

from kubectl_dra.api.meta import NOT_SAVED, WORKED_OUT, Amount, ApiObject, Wire, builtins, convert
from kubectl_dra.api.nodes import Affinity, PodAffinityTerm, Toleration, TopologySpreadConstraint
from kubectl_dra.api.plugins import ContainerWaiting, NodePlugin, Terminated, plugin_in
from kubectl_dra.api.volumes import PodVolume

ENDED: Final = ("Succeeded", "Failed")
"""The phases of pods that have ended and no longer need their devices."""


class ClaimSource(Wire, frozen=True):
    """``source`` of a pod's claim entry, as used before 1.31."""

    claim_name: Annotated[str, "claim"] = field(default="", name="resourceClaimName")
    template_name: Annotated[str, "template"] = field(default="", name="resourceClaimTemplateName")


class PodClaim(Wire, frozen=True):
    """One entry of ``spec.resourceClaims``; at most one of the two names is set in a valid pod."""

    name: Annotated[str, "podclaim"] = ""
    claim_name: Annotated[str, "claim"] = field(default="", name="resourceClaimName")
    template_name: Annotated[str, "template"] = field(default="", name="resourceClaimTemplateName")
    source: ClaimSource | None = None


class ContainerClaim(Wire, frozen=True):
    """One entry of a container's ``resources.claims``: an entry of the pod, and optionally one of its requests."""

    name: Annotated[str, "podclaim"] = ""
    request: Annotated[str, "request"] = ""


class ResourceRequirements(Wire, frozen=True):
    """``resources`` of a container or a pod, quantities as written."""

    requests: Annotated[dict[str, Amount], "resource"] = {}
    limits: Annotated[dict[str, Amount], "resource"] = {}
    claims: tuple[ContainerClaim, ...] = ()

    def effective(self) -> dict[str, str]:
        """The requests, including those given only by ``limits``, as the API server defaults them."""
        return {name: str(value) for name, value in {**self.limits, **self.requests}.items()}


class ContainerPort(Wire, frozen=True):
    """One entry of a container's ``ports``; ``host_port`` 0 means none."""

    container_port: int = 0
    host_port: int = 0
    protocol: Annotated[str, "keep"] = "TCP"
    host_ip: Annotated[str, "keep"] = field(default="", name="hostIP")


class RestartRule(Wire, frozen=True):
    """One entry of a container's ``restartPolicyRules``."""

    action: Annotated[str, "keep"] = ""


class Container(Wire, frozen=True):
    """A container: name, resources, ports, image."""

    name: Annotated[str, "container"] = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: Annotated[str, "keep"] = ""
    ports: tuple[ContainerPort, ...] = ()
    image: Annotated[str, NOT_SAVED] = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()

    @property
    def init(self) -> bool:
        """Whether it is an init container (sidecars are)."""
        return False

    @property
    def requests(self) -> dict[str, str]:
        """What it requests, by resource name; limits stand in for missing requests."""
        return self.resources.effective()

    @property
    def claims(self) -> tuple[tuple[str, str], ...]:
        """The claims that it uses, as (entry of the pod, request)."""
        return tuple((claim.name, claim.request) for claim in self.resources.claims)

    @property
    def long_lived(self) -> bool:
        """Regular containers and sidecars (init containers that restart always)."""
        return not self.init or self.restart_policy == "Always"


class InitContainer(Container, frozen=True):
    """An entry of ``spec.initContainers``."""

    @property
    def init(self) -> bool:
        """Always true."""
        return True


class SchedulingGate(Wire, frozen=True):
    """One entry of ``spec.schedulingGates``."""

    name: Annotated[str, "key"] = ""


class SchedulingGroup(Wire, frozen=True):
    """``spec.schedulingGroup``: the PodGroup that the pod is scheduled with (1.36 and later)."""

    pod_group_name: Annotated[str, "podgroup"] = ""


class WorkloadReference(Wire, frozen=True):
    """``spec.workloadRef``: the PodGroup reference of 1.35."""

    name: Annotated[str, "workload"] = ""
    pod_group: Annotated[str, "podgroup"] = ""
    pod_group_replica_key: Annotated[str, "scrambled"] = ""


class PodSpec(Wire, frozen=True):
    """``spec`` of a pod, as far as the scheduler reads it. ``Pod.node_name`` is apart, so that pods can share it."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[InitContainer, ...] = ()
    scheduler_name: Annotated[str, "scheduler"] = "default-scheduler"
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    priority: int | None = None
    priority_class_name: Annotated[str, NOT_SAVED] = ""
    preemption_policy: Annotated[str, "keep"] = ""
    node_selector: Annotated[dict[str, str], "labels"] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    host_network: bool = False
    host_users: Annotated[bool | None, NOT_SAVED] = None
    volumes: tuple[PodVolume, ...] = ()
    overhead: Annotated[dict[str, Amount], "resource"] = {}
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodClaim, ...] = ()
    runtime_class_name: Annotated[str, NOT_SAVED] = ""
    service_account_name: Annotated[str, NOT_SAVED] = ""
    active_deadline_seconds: Annotated[int | None, NOT_SAVED] = None
    termination_grace_period_seconds: Annotated[int | None, NOT_SAVED] = None


class TemplateMeta(Wire, frozen=True):
    """``metadata`` of a pod template."""

    labels: Annotated[dict[str, str], "labels"] = {}


class PodTemplateSpec(Wire, frozen=True):
    """The pods that something makes."""

    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()


class PodCondition(Wire, frozen=True):
    """One entry of ``status.conditions``."""

    type: Annotated[str, "condition"] = ""
    status: Annotated[str, "keep"] = ""
    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "message"] = ""
    last_transition_time: Annotated[str, "time"] = ""
    observed_generation: int = 0


_NO_CONDITION: Final = PodCondition()


class ClaimStatus(Wire, frozen=True):
    """One entry of ``status.resourceClaimStatuses``. No claim name means that no claim is needed."""

    name: Annotated[str, "podclaim"] = ""
    resource_claim_name: Annotated[str | None, "claim"] = None


class ExtendedClaimStatus(Wire, frozen=True):
    """``status.extendedResourceClaimStatus``: the claim that the scheduler made for extended resources."""

    resource_claim_name: Annotated[str, "claim"] = ""


class MappedResource(Wire, frozen=True):
    """What the devices of a claim stand for of one of the node's resources."""

    name: Annotated[str, "resource"] = ""
    quantity: Amount | None = None


class OverheadResource(Wire, frozen=True):
    """What the devices of a claim take besides, once for the pod and for each container that uses the claim."""

    name: Annotated[str, "resource"] = ""
    per_pod: Amount | None = None
    per_container: Amount | None = None


class NodeResourcesOfClaim(Wire, frozen=True):
    """One entry of ``status.nodeAllocatableResourceClaimStatuses``; in 1.36 ``resources`` are all there is."""

    resource_claim_name: Annotated[str, "claim"] = ""
    containers: Annotated[tuple[str, ...], "container"] = ()
    resources: Annotated[dict[str, Amount], "resource"] = {}
    mapping: tuple[MappedResource, ...] = ()
    overhead: tuple[OverheadResource, ...] = ()


class ContainerState(Wire, frozen=True):
    """``state`` of a container, as far as it says why the container does not run."""

    waiting: ContainerWaiting | None = None
    terminated: Terminated | None = None


class ResourceHealth(Wire, frozen=True):
    """One device of a container: its ID, and ``Healthy``, ``Unhealthy`` or ``Unknown``, with the driver's words."""

    resource_id: str = field(default="", name="resourceID")
    health: Annotated[str, "keep"] = ""
    message: Annotated[str, "drop"] = ""


class ResourceStatus(Wire, frozen=True):
    """One entry of ``allocatedResourcesStatus``: ``claim:NAME/REQUEST`` or an extended resource, and its devices."""

    name: Annotated[str, "source"] = ""
    resources: tuple[ResourceHealth, ...] = ()


class ContainerStatus(Wire, frozen=True):
    """One entry of ``status.containerStatuses``: what the kubelet gives the container, and what keeps it."""

    name: Annotated[str, "container"] = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    restart_count: int = 0
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Annotated[dict[str, Amount], "resource"] = {}


class PodStatus(Wire, frozen=True):
    """``status`` of a pod. ``reason`` and ``message`` say why the kubelet or a controller ended it."""

    phase: Annotated[str, "keep"] = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: Annotated[str, "node"] = ""
    start_time: Annotated[str, "time"] = ""
    resource_claim_statuses: tuple[ClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Annotated[dict[str, Amount], "resource"] = {}
    node_allocatable_resource_claim_statuses: tuple[NodeResourcesOfClaim, ...] = ()
    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "said"] = ""


class BoundSpec(Wire, frozen=True):
    """The part of a pod's ``spec`` that differs from node to node: the node to which the pod is bound."""

    node_name: Annotated[str, "node"] = ""


class _BoundPod(Wire, frozen=True):
    spec: BoundSpec = BoundSpec()


class Pod(ApiObject, frozen=True):
    """A v1 Pod. ``node_name`` is ``spec.nodeName``, the node to which it is bound; empty if it is not bound.

    ``plugin`` is what is kept of a pod in which a driver may run; None of all others.
    """

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    node_name: Annotated[str, "node"] = ""
    plugin: Annotated[NodePlugin | None, WORKED_OUT] = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Pod:
        """A pod as the API has it. Raises msgspec.ValidationError."""
        return replace(convert(raw, cls), node_name=convert(raw, _BoundPod).spec.node_name, plugin=plugin_in(raw))

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.metadata.key

    @property
    def claims(self) -> tuple[PodClaim, ...]:
        """``spec.resourceClaims``, in the current shape."""
        return tuple(
            pod_claim
            if pod_claim.source is None
            else PodClaim(
                pod_claim.name,
                pod_claim.claim_name or pod_claim.source.claim_name,
                pod_claim.template_name or pod_claim.source.template_name,
            )
            for pod_claim in self.spec.resource_claims
        )

    @property
    def containers(self) -> tuple[Container, ...]:
        """Init containers, then containers."""
        return (*self.spec.init_containers, *self.spec.containers)

    @property
    def scheduler_name(self) -> str:
        """The scheduler that the pod asks for."""
        return self.spec.scheduler_name or "default-scheduler"

    @property
    def scheduling_gates(self) -> tuple[str, ...]:
        """The names of the pod's scheduling gates."""
        return tuple(gate.name for gate in self.spec.scheduling_gates)

    @property
    def pod_group(self) -> str:
        """The PodGroup that the pod is scheduled with; empty if there is none."""
        return self.spec.scheduling_group.pod_group_name if self.spec.scheduling_group else ""

    @property
    def priority(self) -> int:
        """``spec.priority``; 0 if the pod has none."""
        return self.spec.priority or 0

    @property
    def phase(self) -> str:
        return self.status.phase

    @property
    def conditions(self) -> tuple[PodCondition, ...]:
        return self.status.conditions

    @property
    def claim_statuses(self) -> Mapping[str, str | None]:
        """Maps an entry of ``spec.resourceClaims`` to the generated claim; None if no claim is needed."""
        return {status.name: status.resource_claim_name for status in self.status.resource_claim_statuses}

    @property
    def claim_names(self) -> frozenset[str]:
        """The claims that the pod uses, named by it or made for it."""
        if not self.spec.resource_claims and not self.extended_resource_claim:
            return frozenset()
        statuses = self.claim_statuses
        names = (claim.claim_name or statuses.get(claim.name) or "" for claim in self.claims)
        return frozenset((*names, self.extended_resource_claim)) - {""}

    @property
    def extended_resource_claim(self) -> str:
        """The claim that the scheduler made for the pod's extended resources; empty if there is none."""
        extended_claim_status = self.status.extended_resource_claim_status
        return extended_claim_status.resource_claim_name if extended_claim_status else ""

    @property
    def only_placed(self) -> bool:
        """Whether no cluster has it: it was placed to see whether it fits."""
        return ONLY_PLACED in self.metadata.annotations

    @property
    def finished(self) -> bool:
        """Whether the pod has ended and no longer needs its devices."""
        return self.status.phase in ENDED

    @property
    def required_anti_affinity(self) -> tuple[PodAffinityTerm, ...]:
        """What keeps other pods away from where it is."""
        return self.spec.affinity.pod_anti_affinity.required if self.spec.affinity is not None else ()

    @property
    def is_queued(self) -> bool:
        """Whether it is the scheduler's to place; one that is being deleted is not."""
        return not self.node_name and not self.finished and not self.metadata.deletion_timestamp

    def condition(self, kind: str) -> PodCondition:
        """The condition of that type; one without a type where there is none."""
        return next((condition for condition in self.status.conditions if condition.type == kind), _NO_CONDITION)

    def spec_json(self) -> dict[str, Any]:
        """``spec`` in the shape of the API, limited to the fields that were read."""
        node = {"nodeName": self.node_name} if self.node_name else {}
        return {**builtins(self.spec), **node}


@cache
def version_of(image: str) -> str:
    """The version that an image's tag says; empty if it has none, or one that says nothing."""
    name = image.partition("@")[0].rpartition("/")[2]
    tag = name.partition(":")[2]
    return tag if any(char.isdigit() for char in tag) else ""


# What a pod belongs to.

_HASHES: Final[Mapping[str, str]] = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
ONLY_PLACED: Final = "kubectl-dra/only-placed"
"""An annotation of pods that were placed to see whether they fit."""
MAKES_AGAIN: Final = frozenset(
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController", "Rollout")
)
"""Kinds that make another pod when one ends."""


class Owner(NamedTuple):
    """The object that a pod's life depends on, in the pod's namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def owner_of(pod: Pod) -> Owner | None:
    """What controls the pod; a Deployment's ReplicaSet is told by the hash in its name. None: nothing does."""
    owner = pod.metadata.controller()
    if owner is None:
        return None
    for label, kind in _HASHES.items():
        hashed = pod.metadata.labels.get(label)
        if owner.own_kind == "ReplicaSet" and hashed and owner.name.endswith(f"-{hashed}"):
            return Owner(kind, owner.name.removesuffix(f"-{hashed}"))
    return Owner(owner.own_kind, owner.name)


def replaced_by(pod: Pod) -> Owner | None:
    """The owner that makes another pod in place of this one; None where nothing does."""
    return owner if (owner := owner_of(pod)) is not None and owner.kind in MAKES_AGAIN else None
