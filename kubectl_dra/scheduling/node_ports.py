"""NodePorts: host ports of containers and sidecars that another pod on the node already has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

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

    taken: tuple[tuple[HostPort, str], ...]

    @property
    def words(self) -> str:
        return "node(s) didn't have free ports for the requested pod ports"


class NodePorts(Plugin):
    """Refuses nodes on which a host port of the pod is taken."""

    name = PluginName.NODE_PORTS

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._wanted = tuple(host_ports(pod))
        self.skipped = not self._wanted

    def filter(self, node: NodeState) -> Rejection | None:
        taken = tuple(
            (port, pod.key)
            for pod in node.pods
            for other in host_ports(pod)
            for port in self._wanted
            if port.conflicts(other)
        )
        return Rejection(self.name, (PortsTaken(taken),), resolvable=True) if taken else None


def host_ports(pod: Pod) -> Iterator[HostPort]:
    """The host ports of long-lived containers. With hostNetwork every port is one."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if not container.ports or not container.long_lived:
            continue
        for entry in container.ports:
            port = entry.host_port or (entry.container_port if pod.spec.host_network else 0)
            if port > 0:
                yield HostPort(entry.protocol or "TCP", port, entry.host_ip or EVERY_ADDRESS)
