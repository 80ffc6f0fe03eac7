"""Filters that look at one node alone, and their scores.

TaintToleration, NodeName, NodeUnschedulable, NodePorts, NodeDeclaredFeatures, NodeAffinity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubectl_dra.api.behaviour import OWN_USERS_DECLARED, RESTARTS_DECLARED, TAINTS_NAMED, Behaviour
from kubectl_dra.api.nodes import Node, NodeSelector, NodeSelectorTerm, NodeTaint, Toleration
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin, ScorePlugin, share_of_best
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

# TaintToleration: node taints with NoSchedule or NoExecute that the pod does not tolerate (core/v1, KEP-5471).

COMPARISON: Final = "TaintTolerationComparisonOperators"
"""The feature gate of the operators Lt and Gt."""
COMPARING: Final = ("Lt", "Gt")
_BLOCKING: Final = ("NoSchedule", "NoExecute")
_INTEGER: Final = re.compile(r"(?:0|-?[1-9][0-9]{0,18})\Z")
_INT64: Final = 1 << 63


def proved_by_pods(pod: Pod, snapshot: Snapshot) -> frozenset[str]:
    """The gate of the operators that a pod uses, where a pod of the cluster shows that it is on: where it is off, the
    server refuses them.
    """
    both_compare = _compares(pod) and any(_compares(other) for other in snapshot.pods.values())
    return frozenset((COMPARISON,)) if both_compare else frozenset()


def _compares(pod: Pod) -> bool:
    return any(toleration.operator in COMPARING for toleration in pod.spec.tolerations)


def untolerated(
    taints: Iterable[NodeTaint], tolerations: Sequence[Toleration], *, comparing: bool = False
) -> NodeTaint | None:
    """The first taint that keeps a pod with these tolerations off a node; None if there is none.

    ``comparing``: the operators Lt and Gt are supported.
    """
    for taint in taints:
        if taint.effect in _BLOCKING and not tolerated(taint, tolerations, comparing=comparing):
            return taint
    return None


def tolerated(taint: NodeTaint, tolerations: Iterable[Toleration], *, comparing: bool = False) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(tolerates(toleration, taint, comparing=comparing) for toleration in tolerations)


def tolerates(toleration: Toleration, taint: NodeTaint, *, comparing: bool = False) -> bool:
    """Whether a toleration covers a taint. An empty effect or key matches any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return True
    if operator == "Equal":
        return toleration.value == taint.value
    if operator in COMPARING and comparing:
        bound, value = _integer(toleration.value), _integer(taint.value)
        if bound is None or value is None:
            return False
        return value < bound if operator == "Lt" else value > bound
    return False


def _integer(text: str) -> int | None:
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None


class UntoleratedTaint(Reason, frozen=True):
    """The node's first taint that the pod does not tolerate. ``named``: the release's message names it."""

    taint: NodeTaint
    named: bool = False

    @property
    def words(self) -> str:
        if self.named:
            return f"node(s) had untolerated taint {{{self.taint.key}: {self.taint.value}}}"
        return "node(s) had untolerated taint(s)"


class TaintToleration(Plugin):
    """Refuses nodes with a taint that the pod does not tolerate."""

    name = PluginName.TAINT_TOLERATION

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._comparing = COMPARISON in state.gates
        self._named = TAINTS_NAMED.affects(state.release, state.patch) is True

    def filter(self, node: NodeState) -> Rejection | None:
        taint = untolerated(node.node.taints, self.pod.spec.tolerations, comparing=self._comparing)
        return None if taint is None else Rejection(self.name, (UntoleratedTaint(taint, self._named),))


# TaintToleration: nodes with fewer untolerated PreferNoSchedule taints score higher.

_PREFERRED = "PreferNoSchedule"


class TaintTolerationScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.TAINT_TOLERATION

    def scores(self) -> Mapping[str, int]:
        tolerations = [toleration for toleration in self.pod.spec.tolerations if toleration.effect in ("", _PREFERRED)]
        comparing = COMPARISON in self.state.gates
        return share_of_best(
            {
                node.name: sum(
                    taint.effect == _PREFERRED and not tolerated(taint, tolerations, comparing=comparing)
                    for taint in node.node.taints
                )
                for node in self.nodes
            },
            reverse=True,
        )


# NodeName: ``spec.nodeName`` of a pod.


class OtherNodeNamed(Reason, frozen=True):
    """The pod's ``spec.nodeName`` is another node."""

    TEXT = "node(s) didn't match the requested node name"
    SAID = "the pod names node {node_name}"
    node_name: str


class NodeName(Plugin):
    """Refuses every node but the one in ``spec.nodeName``."""

    name = PluginName.NODE_NAME

    def filter(self, node: NodeState) -> Rejection | None:
        wanted = self.pod.node_name
        if wanted and wanted != node.name:
            return Rejection(self.name, (OtherNodeNamed(wanted),))
        return None


# NodeUnschedulable: cordoned nodes (``spec.unschedulable``).

CORDON = NodeTaint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class Cordoned(Reason, frozen=True):
    """The node is cordoned and the pod does not tolerate that."""

    TEXT = "node(s) were unschedulable"


class NodeUnschedulable(Plugin):
    """Refuses cordoned nodes unless the pod tolerates the taint of a cordon."""

    name = PluginName.NODE_UNSCHEDULABLE

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._tolerates = tolerated(CORDON, pod.spec.tolerations, comparing=COMPARISON in state.gates)

    def filter(self, node: NodeState) -> Rejection | None:
        if node.node.unschedulable and not self._tolerates:
            return Rejection(self.name, (Cordoned(),))
        return None


# NodePorts: host ports of containers and sidecars that another pod on the node already has.

EVERY_ADDRESS: Final = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of a node: protocol, number, and the address (0.0.0.0 for all of them)."""

    protocol: str
    port: int
    address: str

    def conflicts(self, other: HostPort) -> bool:
        """Whether two pods on one node cannot both have these."""
        if self[:2] != other[:2]:
            return False
        return EVERY_ADDRESS in (self.address, other.address) or self.address == other.address

    def __str__(self) -> str:
        address = "" if self.address == EVERY_ADDRESS else f"{self.address}:"
        return f"{address}{self.port}/{self.protocol}"


class PortsTaken(Reason, frozen=True):
    """Host ports of the pod that are taken: the port, and the pod (namespace/name) that has it."""

    TEXT = "node(s) didn't have free ports for the requested pod ports"
    taken: tuple[tuple[HostPort, str], ...]


class NodePorts(Plugin):
    """Refuses nodes on which a host port of the pod is taken."""

    name = PluginName.NODE_PORTS

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._wanted = tuple(host_ports(pod))
        self.skipped = not self._wanted

    def filter(self, node: NodeState) -> Rejection | None:
        ports = tuple(
            (port, pod.key)
            for pod in node.pods
            for other in host_ports(pod)
            for port in self._wanted
            if port.conflicts(other)
        )
        return Rejection(self.name, (PortsTaken(ports),), resolvable=True) if ports else None


def host_ports(pod: Pod) -> Iterator[HostPort]:
    """The host ports of long-lived containers. With hostNetwork every port is one."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if not container.ports or not container.long_lived:
            continue
        for container_port in container.ports:
            port = container_port.host_port or (container_port.container_port if pod.spec.host_network else 0)
            if port > 0:
                yield HostPort(container_port.protocol or "TCP", port, container_port.host_ip or EVERY_ADDRESS)


# NodeDeclaredFeatures (KEP-5328): features that the pod needs from the kubelet, and those that the node declares.

GATE: Final = "NodeDeclaredFeatures"


class FeaturesNotDeclared(Reason, frozen=True):
    """Features that the pod needs and the node does not declare."""

    TEXT = "node(s) didn't match Pod's required features"
    SAID = "the node does not declare {features}"
    features: tuple[str, ...]


class _Feature(NamedTuple):
    """A feature, the releases whose scheduler checks it, and which pods need it."""

    name: str
    checked: Behaviour
    needed: Callable[[Pod], bool]


def _restarts_all(pod: Pod) -> bool:
    return any(
        rule.action == "RestartAllContainers" for container in pod.containers for rule in container.restart_policy_rules
    )


def _own_users_on_host_network(pod: Pod) -> bool:
    return pod.spec.host_network and pod.spec.host_users is False


_FEATURES: Final = (
    _Feature("RestartAllContainersOnContainerExits", RESTARTS_DECLARED, _restarts_all),
    _Feature("UserNamespacesHostNetworkSupport", OWN_USERS_DECLARED, _own_users_on_host_network),
)


class NodeDeclaredFeatures(Plugin):
    """Refuses nodes that do not declare a feature that the pod's spec needs."""

    name = PluginName.NODE_DECLARED_FEATURES

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._needed = tuple(
            feature.name for feature in _FEATURES if state.release in feature.checked and feature.needed(pod)
        )
        self.skipped = GATE not in state.gates or not self._needed

    def filter(self, node: NodeState) -> Rejection | None:
        declared = node.node.status.declared_features
        missing = tuple(name for name in self._needed if name not in declared)
        return Rejection(self.name, (FeaturesNotDeclared(missing),)) if missing else None


# NodeAffinity: ``spec.nodeSelector`` and required node affinity, the pod's own and what the profile adds for all.

_NAME: Final = "metadata.name"


class NodeDoesNotMatch(Reason, frozen=True):
    """The node's labels or name do not meet the pod's requirements.

    ``selector``: the entries of nodeSelector that do not hold. ``affinity``: the required node affinity, if
    it does not hold.
    """

    TEXT = "node(s) didn't match Pod's node affinity/selector"
    selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeSelector | None = None


class ProfileDoesNotMatch(Reason, frozen=True):
    """The node does not meet what the scheduler's profile requires for all its pods (addedAffinity)."""

    TEXT = "node(s) didn't match scheduler-enforced node affinity"
    SAID = "the scheduler's profile requires {affinity} (addedAffinity)"
    affinity: NodeSelector


class TermsConflict(Reason, frozen=True):
    """Every term of the required node affinity names several nodes at once, so no node can match."""

    TEXT = "pod affinity terms conflict"
    SAID = "each term of the node affinity names several nodes at once"


class NodeAffinityFilter(Plugin):
    """Refuses nodes that nodeSelector or required node affinity rule out.

    If every term names nodes (matchFields), only those are examined.
    """

    name = PluginName.NODE_AFFINITY

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._selector = pod.spec.node_selector
        self._required = required_affinity(pod)
        self._added = state.profile.args.node_affinity.added_affinity.required
        if self._required is None:
            self.skipped = not self._selector and self._added is None
            return
        named = _named_nodes(self._required.terms)
        if named is not None and not named:
            self.rejection = Rejection(self.name, (TermsConflict(),))
        else:
            self.nodes = named

    def filter(self, node: NodeState) -> Rejection | None:
        added = self._added
        if added is not None and not added.admits(node.node):
            return Rejection(self.name, (ProfileDoesNotMatch(added),))
        labels = node.node.labels
        wrong = tuple((key, value) for key, value in self._selector.items() if labels.get(key) != value)
        required = self._required
        unmet = required is not None and not required.admits(node.node)
        if not wrong and not unmet:
            return None
        return Rejection(self.name, (NodeDoesNotMatch(wrong, required if unmet else None),))


def required_affinity(pod: Pod) -> NodeSelector | None:
    """The pod's required node affinity."""
    return pod.spec.affinity.node_affinity.required if pod.spec.affinity else None


def matches_node(pod: Pod, node: Node) -> bool:
    """Whether a node meets the pod's nodeSelector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = required_affinity(pod)
    return required is None or required.admits(node)


def _named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """The nodes that the terms name; None if some term names none, or there are no terms."""
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        named: set[str] | None = None
        for field in term.fields:
            if field.key == _NAME and field.operator == "In":
                named = set(field.values) if named is None else named & set(field.values)
        if named is None:
            return None
        names |= named
    return frozenset(names)


# NodeAffinity: the weights of the preferred terms that hold on the node.


class NodeAffinityScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.NODE_AFFINITY

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        own = pod.spec.affinity.node_affinity.preferred if pod.spec.affinity else ()
        self._preferred = (*state.profile.args.node_affinity.added_affinity.preferred, *own)
        self.skipped = not self._preferred

    def scores(self) -> Mapping[str, int]:
        return share_of_best(
            {
                node.name: sum(wish.weight for wish in self._preferred if wish.preference.holds(node.node))
                for node in self.nodes
            }
        )
