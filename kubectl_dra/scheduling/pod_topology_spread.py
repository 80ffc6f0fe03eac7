"""PodTopologySpread: DoNotSchedule constraints spread matching pods evenly over the domains of a node label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import Final

from msgspec import Struct

from kubectl_dra.api.labels import LabelSelector, Requirement, all_match
from kubectl_dra.api.meta import OwnerReference, convert
from kubectl_dra.api.nodes import Node, TopologySpreadConstraint
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import PodSelecting
from kubectl_dra.scheduling.framework import MAX, ClusterState, NodeState, Plugin, ScorePlugin
from kubectl_dra.scheduling.kinds_to_read import CONTROLLERS, selecting_kinds
from kubectl_dra.scheduling.plugin_args import DefaultConstraint
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection
from kubectl_dra.scheduling.simple_filters import COMPARISON, matches_node, untolerated

# Topology spread constraints: selector, policies and defaults.

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
            _constraint(constraint, _selector(constraint, pod.metadata.labels))
            for constraint in written
            if constraint.when_unsatisfiable == when_unsatisfiable
        ]
    defaults = [
        constraint
        for constraint in state.profile.args.spread.constraints
        if constraint.when_unsatisfiable == when_unsatisfiable
    ]
    selector = _default_selector(pod, state) if defaults else Selector({})
    return [] if selector.empty else [_constraint(constraint, selector) for constraint in defaults]


def unread_selecting(pod: Pod, state: ClusterState) -> str:
    """An unread kind that determines which pods the profile's own constraints count; empty if none.

    Of controllers only the pod's own one counts, which may be known where others were not read.
    """
    namespace, owner = pod.metadata.namespace, pod.metadata.controller()
    for kind in selecting_kinds(pod, state.profile):
        of_owner = owner is not None and kind == owner.kind and _controller(owner, namespace, state) is not None
        if state.unknown(kind, namespace) and not of_owner:
            return kind
    return ""


def _constraint(constraint: TopologySpreadConstraint | DefaultConstraint, selector: Selector) -> Constraint:
    return Constraint(
        max_skew=constraint.max_skew,
        key=constraint.topology_key,
        selector=selector,
        min_domains=constraint.min_domains or 1,
        honors_affinity=constraint.node_affinity_policy == "Honor",
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def comparing(state: ClusterState) -> bool:
    """Whether tolerations of the cluster can compare numbers."""
    return COMPARISON in state.gates


def has_keys(labels: Mapping[str, str], entries: Sequence[Constraint]) -> bool:
    """Whether a node has the labels of all constraints. A node that lacks one is in no domain of any."""
    return all(constraint.key in labels for constraint in entries)


def matching_pods(pods: Sequence[Pod], selector: Selector, namespace: str) -> int:
    """Number of pods that count: in the namespace, not terminating, and matched by the selector."""
    if selector.empty or selector.nothing:
        return 0
    return sum(
        pod.metadata.namespace == namespace
        and not pod.metadata.deletion_timestamp
        and selector.matches(pod.metadata.labels)
        for pod in pods
    )


def _selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector, including the pod's own values of ``matchLabelKeys``."""
    written = constraint.label_selector
    if written is None:
        return Selector({}, nothing=True)
    own = tuple(Requirement(key, "In", (labels[key],)) for key in constraint.match_label_keys if key in labels)
    return Selector(written.match_labels, (*written.match_expressions, *own))


def _default_selector(pod: Pod, state: ClusterState) -> Selector:
    equal: dict[str, str] = {}
    for service in (
        candidate for key, candidate in state.others("Service").items() if key[0] == pod.metadata.namespace
    ):
        selector = service.spec.selector
        if selector and all(pod.metadata.labels.get(key) == value for key, value in selector.items()):
            equal.update(selector)
    requirements: tuple[Requirement, ...] = ()
    owner = pod.metadata.controller()
    if owner is not None:
        controller = _controller(owner, pod.metadata.namespace, state)
        if controller is not None and owner.kind == "ReplicationController":
            equal.update(controller.spec.selector)
        elif controller is not None:
            written = convert(controller.spec.selector, LabelSelector)
            requirements = (
                *(Requirement(key, "In", (value,)) for key, value in written.match_labels.items()),
                *written.match_expressions,
            )
    return Selector(equal, requirements)


def _controller(owner: OwnerReference, namespace: str, state: ClusterState) -> PodSelecting | None:
    if owner.api_version not in CONTROLLERS.get(owner.kind, ()):
        return None
    controller: PodSelecting | None = state.others(owner.kind).get((namespace, owner.name))
    return controller


class TooManyInDomain(Reason, frozen=True):
    """With the pod, the node's domain would have too many matching pods.

    ``here`` counts the matching pods in the domain, without the pod itself; ``least`` is the count of the
    emptiest domain, or 0 if there are fewer domains than ``min_domains``.
    """

    TEXT = "node(s) didn't match pod topology spread constraints"
    SAID = "topology spread: {here:matching pod} in {key}={value}, {least} in the emptiest, maxSkew {max_skew}"
    key: str
    value: str
    here: int
    least: int
    max_skew: int
    domains: int
    min_domains: int


class NoDomain(Reason, frozen=True):
    """The node lacks the label over which the pods are spread."""

    TEXT = "node(s) didn't match pod topology spread constraints (missing required label)"
    SAID = "topology spread: the node has no label {key}"
    key: str


class _Domains(Struct):
    """Matching pods by domain, and the two emptiest domains, to know the minimum without any one domain."""

    counts: dict[str, int]
    emptiest: Sequence[tuple[int, str]] = ()

    def settle(self) -> None:
        self.emptiest = nsmallest(2, ((count, value) for value, count in self.counts.items()))

    def least_beside(self, value: str) -> int | None:
        """The count of the emptiest domain other than ``value``; None if there is no other."""
        return next((count for count, other in self.emptiest if other != value), None)


class PodTopologySpread(Plugin):
    """The plugin for one pod."""

    name = PluginName.POD_TOPOLOGY_SPREAD

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._constraints = constraints(pod, "DoNotSchedule", state)
        self._unread: Rejection | None = None
        defaults = [constraint for constraint in state.profile.args.spread.constraints if constraint.required]
        if defaults and (kind := unread_selecting(pod, state)):
            self._unread = Rejection(self.name, (NotRead(kind, NoDomain(defaults[0].topology_key)),))
            return
        self.skipped = not self._constraints
        self._comparing = comparing(state)
        self._domains = [_Domains({}) for _ in self._constraints]
        for node in state.nodes.values():
            labels = node.node.labels
            if not has_keys(labels, self._constraints):
                continue
            for constraint, domains in zip(self._constraints, self._domains, strict=True):
                if constraint.counts(pod, node.node, comparing=self._comparing):
                    matching = matching_pods(node.pods, constraint.selector, pod.metadata.namespace)
                    value = labels[constraint.key]
                    domains.counts[value] = domains.counts.get(value, 0) + matching
        for domains in self._domains:
            domains.settle()

    def filter(self, node: NodeState) -> Rejection | None:
        if self._unread is not None:
            return self._unread
        labels = node.node.labels
        for constraint, domains in zip(self._constraints, self._domains, strict=True):
            value = labels.get(constraint.key)
            if value is None:
                return Rejection(self.name, (NoDomain(constraint.key),))
            change = self._change(constraint, node, labels)
            here = domains.counts.get(value, 0) + change
            least = self._least(constraint, domains, value, here)
            own = constraint.selector.matches(self.pod.metadata.labels)
            if here + own - least > constraint.max_skew:
                reason = TooManyInDomain(
                    constraint.key, value, here, least, constraint.max_skew, len(domains.counts), constraint.min_domains
                )
                return Rejection(self.name, (reason,), resolvable=True)
        return None

    def _least(self, constraint: Constraint, domains: _Domains, value: str, here: int) -> int:
        """The count of the emptiest domain, given that the domain ``value`` has ``here``."""
        if len(domains.counts) < constraint.min_domains:
            return 0
        beside = domains.least_beside(value)
        if value not in domains.counts:
            return beside or 0
        return here if beside is None else min(here, beside)

    def _change(self, constraint: Constraint, node: NodeState, labels: Mapping[str, str]) -> int:
        """Difference in the count of the node's domain if pods are assumed to be there or gone.

        The scheduler subtracts a matching pod that was already terminating, although it had not counted it.
        """
        if not node.added and not node.removed:
            return 0
        if not has_keys(labels, self._constraints):
            return 0
        if not constraint.counts(self.pod, node.node, comparing=self._comparing):
            return 0
        return self._matching(constraint, node.added) - self._matching(constraint, node.removed)

    def _matching(self, constraint: Constraint, pods: Sequence[Pod]) -> int:
        namespace = self.pod.metadata.namespace
        return sum(
            other.metadata.namespace == namespace and constraint.selector.matches(other.metadata.labels)
            for other in pods
        )


# PodTopologySpread: constraints with ScheduleAnyway, or the scheduler's own for pods without constraints.


class PodTopologySpreadScore(ScorePlugin):
    """The plugin for one pod. Nodes that lack a label of the pod's own constraints get 0."""

    name = PluginName.POD_TOPOLOGY_SPREAD

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        self._constraints = constraints(pod, "ScheduleAnyway", state)
        self.skipped = not self._constraints
        self.inexact = unread_selecting(pod, state)
        self._all_keys = bool(pod.spec.topology_spread_constraints) or not state.profile.args.spread.system
        if self.skipped:
            return
        self._scored = [node for node in nodes if self._counts(node)]
        # A node without the label is in the domain of the empty value, as the scheduler counts it.
        self._domains: list[dict[str, int]] = [
            {} if constraint.key == HOSTNAME else {node.node.labels.get(constraint.key, ""): 0 for node in self._scored}
            for constraint in self._constraints
        ]
        self._count_pods()

    def scores(self) -> Mapping[str, int]:
        sizes = [
            len(self._scored) if constraint.key == HOSTNAME else len(domains)
            for constraint, domains in zip(self._constraints, self._domains, strict=True)
        ]
        weights = [math.log(size + 2) for size in sizes]
        pods = {node.name: self._score(node, weights) for node in self._scored}
        least, most = min(pods.values(), default=0), max(pods.values(), default=0)
        out = dict.fromkeys((node.name for node in self.nodes), 0)
        for name, score in pods.items():
            out[name] = MAX * (most + least - score) // most if most else MAX
        return out

    def _counts(self, node: NodeState) -> bool:
        return not self._all_keys or has_keys(node.node.labels, self._constraints)

    def _count_pods(self) -> None:
        compares = comparing(self.state)
        for node in self.state.nodes.values():
            if not node.pods or not self._counts(node):
                continue
            for constraint, domains in zip(self._constraints, self._domains, strict=True):
                value = node.node.labels.get(constraint.key, "")
                if value in domains and constraint.counts(self.pod, node.node, comparing=compares):
                    domains[value] += matching_pods(node.pods, constraint.selector, self.pod.metadata.namespace)

    def _score(self, node: NodeState, weights: Sequence[float]) -> int:
        score = 0.0
        for constraint, domains, weight in zip(self._constraints, self._domains, weights, strict=True):
            value = node.node.labels.get(constraint.key)
            if value is None:
                continue
            if constraint.key == HOSTNAME:
                count = matching_pods(node.pods, constraint.selector, self.pod.metadata.namespace)
            else:
                count = domains[value]
            score += count * weight + (constraint.max_skew - 1)
        # Go rounds halves up; Python would round them to even.
        return math.floor(score + 0.5)
