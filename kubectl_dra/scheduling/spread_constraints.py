"""Topology spread constraints: selector, policies and defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kubectl_dra.api.labels import LabelSelector, Requirement, all_match
from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.api.nodes import Node, TopologySpreadConstraint
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import PodSelecting
from kubectl_dra.api.wire import convert
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.kinds_to_read import CONTROLLERS, selecting_kinds
from kubectl_dra.scheduling.node_affinity import matches_node
from kubectl_dra.scheduling.plugin_args import DefaultConstraint
from kubectl_dra.scheduling.tolerations import COMPARISON, untolerated

HOSTNAME: Final = "kubernetes.io/hostname"


class Selector(Struct, frozen=True):
    """Label requirements that must all hold. ``nothing``: it matches no pod, whatever its labels."""

    equal: Mapping[str, str]
    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is required. Such a selector matches every pod but counts none."""
        return not self.equal and not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector matches a pod with these labels."""
        return (
            not self.nothing
            and all(labels.get(key) == value for key, value in self.equal.items())
            and all_match(self.requirements, labels)
        )


class Constraint(Struct, frozen=True):
    """One constraint of a pod. ``honors_affinity`` and ``honors_taints`` exclude nodes where the pod cannot run."""

    max_skew: int
    key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def counts(self, pod: Pod, node: Node, *, comparing: bool) -> bool:
        """Whether the node's pods and domain count for a pod with this constraint."""
        if self.honors_affinity and not matches_node(pod, node):
            return False
        return not self.honors_taints or untolerated(node.taints, pod.spec.tolerations, comparing=comparing) is None


def constraints(pod: Pod, when_unsatisfiable: str, state: ClusterState) -> list[Constraint]:
    """The constraints of one kind, DoNotSchedule or ScheduleAnyway: the pod's own or, for pods without any,
    those of the profile, which spread the pods of its Services and its controller.
    """
    written = pod.spec.topology_spread_constraints
    if written:
        return [
            _constraint(entry, _selector(entry, pod.metadata.labels))
            for entry in written
            if entry.when_unsatisfiable == when_unsatisfiable
        ]
    defaults = [
        entry for entry in state.profile.args.spread.constraints if entry.when_unsatisfiable == when_unsatisfiable
    ]
    selector = _default_selector(pod, state) if defaults else Selector({})
    return [] if selector.empty else [_constraint(entry, selector) for entry in defaults]


def unread_selecting(pod: Pod, state: ClusterState) -> str:
    """An unread kind that determines which pods the profile's own constraints count; empty if none."""
    namespace = pod.metadata.namespace
    for kind in selecting_kinds(pod, state.profile):
        if state.unknown(kind, namespace):
            return kind
    return ""


def _constraint(entry: TopologySpreadConstraint | DefaultConstraint, selector: Selector) -> Constraint:
    return Constraint(
        max_skew=entry.max_skew,
        key=entry.topology_key,
        selector=selector,
        min_domains=entry.min_domains or 1,
        honors_affinity=entry.node_affinity_policy == "Honor",
        honors_taints=entry.node_taints_policy == "Honor",
    )


def comparing(state: ClusterState) -> bool:
    """Whether tolerations of the cluster can compare numbers."""
    return COMPARISON in state.gates


def has_keys(labels: Mapping[str, str], entries: Sequence[Constraint]) -> bool:
    """Whether a node has the labels of all constraints. A node that lacks one is in no domain of any."""
    return all(entry.key in labels for entry in entries)


def matching_pods(pods: Sequence[Pod], selector: Selector, namespace: str) -> int:
    """How many of the pods count: in the namespace, not terminating, and matched by the selector."""
    if selector.empty or selector.nothing:
        return 0
    return sum(
        pod.metadata.namespace == namespace
        and not pod.metadata.deletion_timestamp
        and selector.matches(pod.metadata.labels)
        for pod in pods
    )


def _selector(entry: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector, including the pod's own values of ``matchLabelKeys``."""
    written = entry.label_selector
    if written is None:
        return Selector({}, nothing=True)
    own = tuple(Requirement(key, "In", (labels[key],)) for key in entry.match_label_keys if key in labels)
    return Selector(written.match_labels, (*written.match_expressions, *own))


def _default_selector(pod: Pod, state: ClusterState) -> Selector:
    equal: dict[str, str] = {}
    for service in _in_namespace(state, "Service", pod.metadata.namespace):
        selector = service.spec.selector
        if selector and all(pod.metadata.labels.get(key) == value for key, value in selector.items()):
            equal.update(selector)
    requirements: tuple[Requirement, ...] = ()
    owner = pod.metadata.controller()
    if owner is not None:
        found = _controller(owner, pod.metadata.namespace, state)
        if found is not None and owner.kind == "ReplicationController":
            equal.update(found.spec.selector)
        elif found is not None:
            written = convert(found.spec.selector, LabelSelector)
            requirements = (
                *(Requirement(key, "In", (value,)) for key, value in written.match_labels.items()),
                *written.match_expressions,
            )
    return Selector(equal, requirements)


def _controller(owner: OwnerReference, namespace: str, state: ClusterState) -> PodSelecting | None:
    if owner.api_version not in CONTROLLERS.get(owner.kind, ()):
        return None
    found: PodSelecting | None = state.others(owner.kind).get((namespace, owner.name))
    return found


def _in_namespace(state: ClusterState, kind: str, namespace: str) -> Iterator[PodSelecting]:
    return (entry for key, entry in state.others(kind).items() if key[0] == namespace)
