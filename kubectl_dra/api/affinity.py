"""Where a pod may or should run (core/v1): node affinity, pod affinity, tolerations, topology spread."""

from __future__ import annotations

from msgspec import field

from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.nodes import NodeSelector, NodeSelectorTerm
from kubectl_dra.api.wire import Wire


class Toleration(Wire, frozen=True):
    """One entry of ``spec.tolerations``. An empty ``operator`` means Equal; Lt and Gt compare integers (KEP-5471)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PreferredNode(Wire, frozen=True):
    """A node selector term with the weight that it adds to a node's score."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """``affinity.nodeAffinity``."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNode, ...] = field(default=(), name="preferredDuringSchedulingIgnoredDuringExecution")


class PodAffinityTerm(Wire, frozen=True):
    """Pods that must (or must not) be in the same topology domain.

    ``label_selector`` None matches no pod. ``namespace_selector`` None means only ``namespaces``, or the
    pod's own namespace if that is also empty. An empty selector means every namespace.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A pod affinity term with the weight that it adds to a node's score."""

    weight: int = 0
    term: PodAffinityTerm = field(default=PodAffinityTerm(), name="podAffinityTerm")


class PodAffinity(Wire, frozen=True):
    """``affinity.podAffinity`` or ``affinity.podAntiAffinity``."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
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
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()
