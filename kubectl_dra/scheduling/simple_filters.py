"""Filters that look at one node alone: NodeName, NodeUnschedulable, NodePorts, NodeDeclaredFeatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kubectl_dra.api.behaviour import OWN_USERS_DECLARED, RESTARTS_DECLARED, Behaviour
from kubectl_dra.api.nodes import NodeTaint
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.taint_toleration import COMPARISON, tolerated


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
