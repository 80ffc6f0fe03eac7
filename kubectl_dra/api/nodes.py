"""Nodes and node selectors (core/v1), as scheduling, ResourceSlices and allocations use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import field

from kubectl_dra.api.labels import InvalidNodeSelector, LabelSelector, Requirement, requirement_matches
from kubectl_dra.api.meta import NOT_SAVED, Amount, ApiObject, ObjectMeta, Wire

_SHOWN = 4
"""Number of terms of a selector, and of requirements of a term, that its text shows."""


class NodeSelectorTerm(Wire, frozen=True):
    """Requirements that must all hold. A term without requirements never matches."""

    expressions: tuple[Requirement, ...] = field(default=(), name="matchExpressions")
    fields: tuple[Requirement, ...] = field(default=(), name="matchFields")

    def holds(self, node: Node) -> bool:
        """Whether it matches the node; one that cannot be parsed does not."""
        try:
            return term_matches(self, node)
        except InvalidNodeSelector:
            return False

    def __str__(self) -> str:
        entries = (*self.expressions, *self.fields)
        more = len(entries) - _SHOWN
        text = " and ".join(str(requirement) for requirement in entries[:_SHOWN]) or "nothing"
        return f"{text} and {more:,} more" if more > 0 else text


class NodeSelector(Wire, frozen=True):
    """Terms, one of which must match."""

    terms: tuple[NodeSelectorTerm, ...] = field(default=(), name="nodeSelectorTerms")

    def matches(self, node: Node) -> bool:
        """Whether one term holds on the node.

        Raises InvalidNodeSelector: an operator or value that the scheduler cannot parse.
        """
        return any(term_matches(term, node) for term in self.terms)

    def admits(self, node: Node) -> bool:
        """Whether one term holds on the node, where one that cannot be parsed does not affect the others."""
        return any(term.holds(node) for term in self.terms)

    def __str__(self) -> str:
        more = len(self.terms) - _SHOWN
        text = " or ".join(str(term) for term in self.terms[:_SHOWN])
        return f"{text} or one of {more:,} more terms" if more > 0 else text


class NodeTaint(Wire, frozen=True):
    """One entry of a node's ``spec.taints``."""

    key: Annotated[str, "key"] = ""
    value: Annotated[str, "value"] = ""
    effect: Annotated[str, "keep"] = ""

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class NodeCondition(Wire, frozen=True):
    """One entry of a node's ``status.conditions``."""

    type: Annotated[str, "condition"] = ""
    status: Annotated[str, "keep"] = ""
    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "drop"] = ""
    last_transition_time: Annotated[str, "time"] = ""


class NodeInfo(Wire, frozen=True):
    """``status.nodeInfo``, as far as scheduling depends on it."""

    kubelet_version: Annotated[str, "keep"] = ""
    architecture: Annotated[str, NOT_SAVED] = ""


class ContainerImage(Wire, frozen=True):
    """One image on a node, for the ImageLocality score."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeSpec(Wire, frozen=True):
    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()


OPTIONAL_OPERATIONS: Final = "DRAOptionalNodeOperations"
"""The gate, and the feature that a node declares whose kubelet has it on."""


PRESSURES: Final = frozenset(("DiskPressure", "MemoryPressure", "PIDPressure"))
"""Conditions in which a kubelet ends pods and takes no others."""


class NodeStatus(Wire, frozen=True):
    """``status`` of a node. ``declared_features`` are those of node-declared features (KEP-5328)."""

    allocatable: Annotated[dict[str, Amount], "resource"] = {}
    capacity: Annotated[dict[str, Amount], NOT_SAVED] = {}
    conditions: tuple[NodeCondition, ...] = ()
    node_info: NodeInfo = NodeInfo()
    images: Annotated[tuple[ContainerImage, ...], NOT_SAVED] = ()
    declared_features: Annotated[tuple[str, ...], "keep"] = ()


class Node(ApiObject, frozen=True):
    """A v1 Node: name, labels, and the parts of spec and status that affect pods."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def skips_operations(self) -> bool:
        """Whether its kubelet can omit what devices do not need (``skipNodeOperations``, 1.37)."""
        return OPTIONAL_OPERATIONS in self.status.declared_features

    @classmethod
    def named(cls, name: str, labels: Mapping[str, str] | None = None) -> Node:
        """A node of which only name and labels are known."""
        return cls(ObjectMeta(name=name, labels=dict(labels or {})))

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels

    @property
    def allocatable(self) -> Mapping[str, Amount]:
        """``status.allocatable``, by resource name; the capacity if it is missing."""
        return self.status.allocatable or self.status.capacity

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return self.spec.unschedulable

    @property
    def taints(self) -> tuple[NodeTaint, ...]:
        return self.spec.taints

    @property
    def ready_since(self) -> str:
        """Since when it is ready, or not, as its condition says; empty if it has none."""
        return next(
            (condition.last_transition_time for condition in self.status.conditions if condition.type == "Ready"), ""
        )

    @property
    def ready(self) -> bool | None:
        """Whether the node reports that it is ready; None if it reports nothing."""
        ready: bool | None = None
        for condition in self.status.conditions:
            if condition.type == "Ready":
                ready = condition.status == "True"
        return ready

    @property
    def troubles(self) -> tuple[NodeCondition, ...]:
        """The conditions that say what is wrong: that it is not ready, or that disk, memory or processes run out."""
        return tuple(
            condition
            for condition in self.status.conditions
            if (condition.type == "Ready" and condition.status != "True")
            or (condition.type in PRESSURES and condition.status == "True")
        )


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether all requirements of a term hold on the node. Raises InvalidNodeSelector."""
    if not term.expressions and not term.fields:
        return False
    for requirement in term.expressions:
        if not requirement_matches(requirement, node.labels):
            return False
    return all(_field_matches(requirement, node) for requirement in term.fields)


def _field_matches(requirement: Requirement, node: Node) -> bool:
    if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
        raise InvalidNodeSelector(f"invalid matchFields entry {requirement}")
    if requirement.key != "metadata.name":
        return False
    return (node.name == requirement.values[0]) == (requirement.operator == "In")


# Where a pod may or should run (core/v1): node affinity, pod affinity, tolerations, topology spread.


class Toleration(Wire, frozen=True):
    """One entry of ``spec.tolerations``. An empty ``operator`` means Equal; Lt and Gt compare integers (KEP-5471)."""

    key: Annotated[str, "key"] = ""
    operator: Annotated[str, "keep"] = ""
    value: Annotated[str, "value"] = ""
    effect: Annotated[str, "keep"] = ""
    toleration_seconds: int | None = None


class PreferredNode(Wire, frozen=True):
    """A node selector term with the weight that it adds to a node's score."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """``affinity.nodeAffinity``."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: Annotated[tuple[PreferredNode, ...], "drop"] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire, frozen=True):
    """Pods that must (or must not) be in the same topology domain.

    ``label_selector`` None matches no pod. ``namespace_selector`` None means only ``namespaces``, or the
    pod's own namespace if that is also empty. An empty selector means every namespace.
    """

    topology_key: Annotated[str, "key"] = ""
    label_selector: LabelSelector | None = None
    namespaces: Annotated[tuple[str, ...], "namespace"] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: Annotated[tuple[str, ...], "key"] = ()
    mismatch_label_keys: Annotated[tuple[str, ...], "key"] = ()


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A pod affinity term with the weight that it adds to a node's score."""

    weight: int = 0
    term: PodAffinityTerm = field(default=PodAffinityTerm(), name="podAffinityTerm")


class PodAffinity(Wire, frozen=True):
    """``affinity.podAffinity`` or ``affinity.podAntiAffinity``."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: Annotated[tuple[WeightedPodAffinityTerm, ...], "drop"] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """``spec.affinity``."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class TopologySpreadConstraint(Wire, frozen=True):
    """One entry of ``spec.topologySpreadConstraints``. Empty policies mean the API's defaults (Honor, Ignore)."""

    max_skew: int = 1
    topology_key: Annotated[str, "key"] = ""
    when_unsatisfiable: Annotated[str, "keep"] = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Annotated[str, "keep"] = "Honor"
    node_taints_policy: Annotated[str, "keep"] = "Ignore"
    match_label_keys: Annotated[tuple[str, ...], "key"] = ()
