"""One more node like one that exists, of each kind that there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import json, structs

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import PoolID, ResourceSlice
from kubectl_dra.fit.ground import Ground
from kubectl_dra.fit.result import OneMoreNode
from kubectl_dra.scheduling.spread_constraints import HOSTNAME

MAX_KINDS: Final = 8
_MORE: Final = "-more"


class WithNode(NamedTuple):
    """The cluster with one more node, and what the node is called."""

    change: OneMoreNode
    ground: Ground
    node: str


def with_new_nodes(ground: Ground) -> Iterator[WithNode]:
    """The cluster with a node of each kind, the most frequent first."""
    kinds: dict[Hashable, list[Node]] = defaultdict(list)
    local: dict[str, list[ResourceSlice]] = defaultdict(list)
    for entry in ground.snapshot.slices:
        if entry.scope.node_name and ground.homes.get(entry.pool.name) == entry.scope.node_name:
            local[entry.scope.node_name].append(entry)
    for node in ground.snapshot.nodes.values():
        kinds[_kind(node, local[node.name])].append(node)
    for nodes in sorted(kinds.values(), key=lambda nodes: -len(nodes))[:MAX_KINDS]:
        like = next((node for node in nodes if not node.spec.unschedulable), None)
        if like is not None:
            name = like.name + _MORE
            slices = [_for_node(entry, name) for entry in local[like.name]]
            change = OneMoreNode(like.name, len(nodes))
            yield WithNode(change, ground.adding(_copy(like, name), _daemons(like.name, name, ground), slices), name)


def _kind(node: Node, slices: Sequence[ResourceSlice]) -> Hashable:
    """What nodes have in common of which one more may be had. A zone counts: there may be no place in another one."""
    labels = sorted((key, value) for key, value in node.labels.items() if node.name not in value and key != HOSTNAME)
    devices = tuple((entry.driver, tuple(device.name for device in entry.devices)) for entry in slices)
    return json.encode((labels, node.spec, node.status.allocatable)), devices


def _copy(like: Node, name: str) -> Node:
    labels = {key: value.replace(like.name, name) for key, value in like.labels.items()}
    return structs.replace(like, metadata=structs.replace(like.metadata, name=name, uid=f"fit:{name}", labels=labels))


def _daemons(like: str, name: str, ground: Ground) -> list[Pod]:
    """The pods that run on every such node: those of DaemonSets and of the kubelet."""
    return [_moved(pod, name) for pod in ground.state.nodes[like].pods if _of_every_node(pod)]


def _of_every_node(pod: Pod) -> bool:
    owner = pod.metadata.controller()
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def _moved(pod: Pod, node: str) -> Pod:
    meta = structs.replace(pod.metadata, name=f"{pod.metadata.name}{_MORE}", uid="")
    return structs.replace(pod, metadata=meta, spec=structs.replace(pod.spec, node_name=node))


def _for_node(entry: ResourceSlice, node: str) -> ResourceSlice:
    """A slice with the same devices, healthy ones."""
    scope = structs.replace(entry.scope, node_name=node)
    pool = PoolID(entry.pool.driver, entry.pool.name + _MORE)
    devices = tuple(structs.replace(device, taints=()) if device.taints else device for device in entry.devices)
    return structs.replace(entry, name=entry.name + _MORE, pool=pool, scope=scope, devices=devices)
