"""The kinds of the layers around the scheduler: queues, gangs, autoscalers, operators, and what is read of them.

Their structs are the table of what a snapshot and an anonymized copy keep of them (``api.core_fields``). A kind is
called by its own name and its group, ``Workload.kueue.x-k8s.io``, for several groups have a Workload or a PodGroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from msgspec import field

from kubectl_dra.api import gangs, kueue
from kubectl_dra.api.meta import ApiObject, Wire, kind_plural
from kubectl_dra.api.pods import PodCondition


class ConditionedStatus(Wire, frozen=True):
    conditions: tuple[PodCondition, ...] = ()


class Conditioned(ApiObject, frozen=True):
    """An object of which only the conditions are read."""

    status: ConditionedStatus = ConditionedStatus()


class ConfigMap(ApiObject, frozen=True):
    """A v1 ConfigMap. What it holds may be anything: an anonymized copy has its keys, and what it maps for Kueue."""

    data: Annotated[dict[str, str], "settings"] = {}


class OperatorPart(Wire, frozen=True):
    """A part of what the network operator installs: ready, notReady, ignore or error."""

    name: Annotated[str, "keep"] = ""
    state: Annotated[str, "keep"] = ""


class OperatorStatus(Wire, frozen=True):
    """``status``: ready, notReady or ignored, in conditions (GPU operator) or parts (network operator) why."""

    state: Annotated[str, "keep"] = ""
    conditions: tuple[PodCondition, ...] = ()
    applied_states: tuple[OperatorPart, ...] = ()


class OperatorPolicy(ApiObject, frozen=True):
    """A nvidia.com ClusterPolicy, or a mellanox.com NicClusterPolicy."""

    status: OperatorStatus = OperatorStatus()


class NodeClaimStatus(Wire, frozen=True):
    """``status`` of a NodeClaim: its node, once it has one, and how far it is."""

    node_name: Annotated[str, "node"] = ""
    conditions: tuple[PodCondition, ...] = ()


class NodeClaim(ApiObject, frozen=True):
    """A karpenter.sh/v1 NodeClaim: a node that Karpenter makes or has made."""

    status: NodeClaimStatus = NodeClaimStatus()

    def unmet(self) -> PodCondition | None:
        """The first step that is not done: launched, registered, initialized."""
        known = {condition.type: condition for condition in self.status.conditions}
        steps = (known.get(name) for name in ("Launched", "Registered", "Initialized"))
        return next((step for step in steps if step is not None and step.status != "True"), None)


class ChannelTemplate(Wire, frozen=True):
    """The ResourceClaimTemplate that the driver's controller makes for the workload's pods."""

    name: Annotated[str, "template"] = ""


class ComputeDomainChannel(Wire, frozen=True):
    """``spec.channel`` of a ComputeDomain."""

    resource_claim_template: ChannelTemplate = ChannelTemplate()


class ComputeDomainSpec(Wire, frozen=True):
    """``spec`` of a ComputeDomain; ``num_nodes`` is deprecated, and 0 by default."""

    num_nodes: int = 0
    channel: ComputeDomainChannel = ComputeDomainChannel()


class ComputeDomainNode(Wire, frozen=True):
    """A node that has joined. ``clique_id`` is its NVLink partition; empty: it has none."""

    name: Annotated[str, "node"] = ""
    clique_id: Annotated[str, "scrambled"] = field(default="", name="cliqueID")
    index: int = 0
    status: Annotated[str, "keep"] = ""


class ComputeDomainStatus(Wire, frozen=True):
    """``status`` of a ComputeDomain: Ready or NotReady."""

    status: Annotated[str, "keep"] = ""
    nodes: tuple[ComputeDomainNode, ...] = ()


class ComputeDomain(ApiObject, frozen=True):
    """A ComputeDomain."""

    spec: ComputeDomainSpec = ComputeDomainSpec()
    status: ComputeDomainStatus = ComputeDomainStatus()


class CliqueDaemon(Wire, frozen=True):
    """The daemon of a node, as it reports itself."""

    node_name: Annotated[str, "node"] = ""
    clique_id: Annotated[str, "scrambled"] = field(default="", name="cliqueID")
    index: int = 0
    status: Annotated[str, "keep"] = ""


class ComputeDomainClique(ApiObject, frozen=True):
    """The daemons of a ComputeDomain in one NVLink partition; it is called UID.CLIQUE, in the driver's namespace."""

    daemons: tuple[CliqueDaemon, ...] = ()


class NeighbourKind(NamedTuple):
    """Where a kind is served, newest version first, and its struct; ``category``: that of its objects' names.

    ``only``: how the names of those end that are read; empty for all. Other ConfigMaps may hold anything. ``holding``:
    what a text of others holds that are read nevertheless. ``written``: also read of a manifest, for what its
    controller makes of it; for those of the other kinds nobody waits yet.
    """

    kind: str
    group: str
    versions: tuple[str, ...]
    namespaced: bool
    struct: type[Wire]
    category: str = "owner"
    only: tuple[str, ...] = ()
    holding: str = ""
    written: bool = False

    @property
    def plural(self) -> str:
        """Its resource."""
        return kind_plural(self.kind).lower()

    def reads(self, name: str, raw: Mapping[str, Any]) -> bool:
        """Whether an object of that name is read."""
        if not self.only or name.endswith(self.only):
            return True
        data = raw.get("data")
        texts = data.values() if isinstance(data, Mapping) else ()
        return any(isinstance(text, str) and self.holding in text for text in texts)


KUEUE_CONFIGURATION: Final = "config.kueue.x-k8s.io/"
"""The group of Kueue's configuration, whose ConfigMap is called after the release of its chart."""
_KUEUE: Final = "kueue.x-k8s.io"
_OF_KUEUE: Final = ("v1beta2", "v1beta1")
_VOLCANO: Final = "scheduling.volcano.sh"
_KAI: Final = "scheduling.run.ai"
_NVIDIA: Final = "resource.nvidia.com"
_KINDS: Final = (
    NeighbourKind("Workload", _KUEUE, _OF_KUEUE, True, kueue.KueueWorkload, "workload"),
    NeighbourKind("LocalQueue", _KUEUE, _OF_KUEUE, True, kueue.LocalQueue, "localqueue"),
    NeighbourKind("ClusterQueue", _KUEUE, _OF_KUEUE, False, kueue.ClusterQueue, "clusterqueue"),
    NeighbourKind("Cohort", _KUEUE, (*_OF_KUEUE, "v1alpha1"), False, kueue.Cohort, "cohort"),
    NeighbourKind("PodGroup", _VOLCANO, ("v1beta1",), True, gangs.VolcanoPodGroup, "podgroup"),
    NeighbourKind("Queue", _VOLCANO, ("v1beta1",), False, gangs.VolcanoQueue, "queue"),
    NeighbourKind("Job", "batch.volcano.sh", ("v1alpha1",), True, gangs.VolcanoJob),
    NeighbourKind("PodGroup", _KAI, ("v2alpha2",), True, gangs.KaiPodGroup, "podgroup"),
    NeighbourKind("Queue", _KAI, ("v2",), False, gangs.KaiQueue, "queue"),
    NeighbourKind("BindRequest", _KAI, ("v1alpha2",), True, gangs.BindRequest, "pod"),
    NeighbourKind("LeaderWorkerSet", "leaderworkerset.x-k8s.io", ("v1",), True, gangs.LeaderWorkerSet),
    NeighbourKind("JobSet", "jobset.x-k8s.io", ("v1alpha2",), True, gangs.JobSet),
    NeighbourKind("Job", "batch", ("v1",), True, gangs.BatchJob),
    NeighbourKind("NodeClaim", "karpenter.sh", ("v1",), False, NodeClaim, "nodeclaim"),
    NeighbourKind(
        "ProvisioningRequest", "autoscaling.x-k8s.io", ("v1", "v1beta1"), True, Conditioned, "provisioningrequest"
    ),
    NeighbourKind("NodePool", "karpenter.sh", ("v1",), False, Conditioned, "nodepool"),
    NeighbourKind("ComputeDomain", _NVIDIA, ("v1beta1",), True, ComputeDomain, "computedomain", written=True),
    NeighbourKind("ComputeDomainClique", _NVIDIA, ("v1beta1",), True, ComputeDomainClique, "clique"),
    NeighbourKind("ClusterPolicy", "nvidia.com", ("v1",), False, OperatorPolicy),
    NeighbourKind("NicClusterPolicy", "mellanox.com", ("v1alpha1",), False, OperatorPolicy),
    NeighbourKind("VirtualMachineInstance", "kubevirt.io", ("v1",), True, Conditioned),
    NeighbourKind(
        "ConfigMap",
        "",
        ("v1",),
        True,
        ConfigMap,
        "configmap",
        ("cluster-autoscaler-status", "kueue-manager-config"),
        KUEUE_CONFIGURATION,
    ),
)
NEIGHBOUR_KINDS: Final[Mapping[str, NeighbourKind]] = {
    ".".join(filter(None, (row.kind, row.group))): row for row in _KINDS
}
"""The kinds by their names here. Objects are read only where a pod points to them (``neighbours.pointers``)."""


def kind_here(kind: str, api_version: str) -> str:
    """The name here of a kind: with its group if it is one of these, otherwise as it is."""
    name = f"{kind}.{api_version.rpartition('/')[0]}"
    return name if name in NEIGHBOUR_KINDS else kind


KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""The label of a workload, or of a pod, that has a LocalQueue of Kueue."""
NAMING: Final[Mapping[str, str]] = {
    KUEUE_QUEUE: "localqueue",
    "kueue.x-k8s.io/pod-group-name": "workload",
    "kueue.x-k8s.io/prebuilt-workload-name": "workload",
    "kueue.x-k8s.io/workload": "workload",
    "kueue.x-k8s.io/podset": "podset",
    "scheduling.k8s.io/group-name": "podgroup",
    "scheduling.volcano.sh/group-name": "podgroup",
    "scheduling.volcano.sh/queue-name": "queue",
    "volcano.sh/queue-name": "queue",
    "volcano.sh/job-name": "owner",
    "volcano.sh/task-spec": "podset",
    "kai.scheduler/subgroup-name": "podset",
    "yunikorn.apache.org/app-id": "owner",
    "yunikorn.apache.org/queue": "queue",
    "yunikorn.apache.org/task-group-name": "podset",
    "pod-group-name": "podgroup",
    "kai.scheduler/queue": "queue",
    "leaderworkerset.sigs.k8s.io/name": "owner",
    "jobset.sigs.k8s.io/jobset-name": "owner",
    "jobset.sigs.k8s.io/replicatedjob-name": "podset",
    "karpenter.sh/nodepool": "nodepool",
    "autoscaling.x-k8s.io/consume-provisioning-request": "provisioningrequest",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request": "provisioningrequest",
    "kubevirt.io/domain": "owner",
    "kubevirt.io/created-by": "uid",
    "resource.nvidia.com/computeDomain": "uid",
}
"""Labels and annotations of pods and nodes that name an object of another layer, with the category of that name.

From: Kueue's ``pkg/controller/constants`` and ``jobs/pod/constants``, Volcano's ``apis/.../v1beta1/labels.go``, KAI's
``pkg/common/constants``, ``api/`` of LeaderWorkerSet and JobSet, Karpenter's ``apis/v1/labels.go``,
cluster-autoscaler's ``provisioningrequest/pods``, KubeVirt's types.
"""
LAYER_ANNOTATIONS: Final = (*NAMING, "leaderworkerset.sigs.k8s.io/")
"""Prefixes of the annotations of pods that say something to other layers."""
KNOWN_SCHEDULERS: Final = ("default-scheduler", "volcano", "kai-scheduler", "yunikorn")
"""Well-known schedulers: their names identify no user."""
