"""What device plugins offer on a node, and how much of it pods have: what DRA knows nothing of."""

from __future__ import annotations

from typing import NamedTuple

from kubectl_dra.allocation.extended_resources import amount_of, eligible_name
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pod_resources import pod_requests
from kubectl_dra.cluster.snapshot import Snapshot


class PluginShare(NamedTuple):
    """A resource of a node that a device plugin offers, how much of it is healthy, and how much pods have.

    ``unhealthy`` is how much more its capacity is than what the kubelet allocates. ``pods`` are the names of those that
    have some, with their namespaces.
    """

    resource: str
    offered: int
    used: int
    unhealthy: int
    pods: tuple[str, ...]

    @property
    def full(self) -> bool:
        """Whether none of it is left."""
        return self.used >= self.offered


def plugin_shares(node: Node, snapshot: Snapshot) -> tuple[PluginShare, ...]:
    """The resources of device plugins on a node, by name. Extended resources that DRA serves are in no allocatable."""
    on_node = [pod for pod in snapshot.pods.values() if pod.node_name == node.name and not pod.finished]
    requests = {pod.key: pod_requests(pod) for pod in on_node}
    shares: list[PluginShare] = []
    for resource, amount in sorted(node.allocatable.items()):
        offered, capacity = amount_of(amount), amount_of(node.status.capacity.get(resource))
        if not eligible_name(resource) or not max(offered, capacity):
            continue
        used = {key: own[resource].value() for key, own in requests.items() if resource in own}
        pods = tuple(sorted(key for key, count in used.items() if count))
        shares.append(PluginShare(resource, offered, sum(used.values()), max(capacity - offered, 0), pods))
    return tuple(shares)
