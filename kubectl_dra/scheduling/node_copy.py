"""One more node like one that exists: the node, the pods that run on all of its kind, its slices with free devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import json, structs

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import PoolID, ResourceSlice
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.spread_constraints import HOSTNAME

_MORE: Final = "-more"


class NodeCopy(NamedTuple):
    """A node that could be had: it is like ``like``, of which kind ``exist`` are there."""

    like: str
    exist: int
    node: Node
    pods: Sequence[Pod]
    slices: Sequence[ResourceSlice]


def node_copies(state: ClusterState, local: Mapping[str, Sequence[ResourceSlice]]) -> Iterator[NodeCopy]:
    """One copy of each kind of node, the most frequent first; ``local`` are the slices of pools of one node."""
    kinds: dict[Hashable, list[Node]] = defaultdict(list)
    for node in state.snapshot.nodes.values():
        kinds[_kind(node, local.get(node.name, ()))].append(node)
    for nodes in sorted(kinds.values(), key=lambda nodes: -len(nodes)):
        like = next((node for node in nodes if not node.spec.unschedulable), None)
        if like is not None:
            name = like.name + _MORE
            slices = [_for_node(entry, name) for entry in local.get(like.name, ())]
            yield NodeCopy(like.name, len(nodes), _copy(like, name), _daemons(like.name, name, state), slices)


def _kind(node: Node, slices: Sequence[ResourceSlice]) -> Hashable:
    """What nodes have in common of which one more may be had. A zone counts: there may be no place in another one."""
    labels = sorted((key, value) for key, value in node.labels.items() if node.name not in value and key != HOSTNAME)
    devices = tuple((entry.driver, tuple(entry.names)) for entry in slices)
    return json.encode((labels, node.spec, node.status.allocatable)), devices


def _copy(like: Node, name: str) -> Node:
    labels = {key: value.replace(like.name, name) for key, value in like.labels.items()}
    return structs.replace(like, metadata=structs.replace(like.metadata, name=name, uid=f"more:{name}", labels=labels))


def _daemons(like: str, name: str, state: ClusterState) -> list[Pod]:
    """The pods that run on every such node: those of DaemonSets and of the kubelet."""
    return [_moved(pod, name) for pod in state.nodes[like].pods if _of_every_node(pod)]


def _of_every_node(pod: Pod) -> bool:
    owner = pod.metadata.controller()
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def _moved(pod: Pod, node: str) -> Pod:
    meta = structs.replace(pod.metadata, name=f"{pod.metadata.name}{_MORE}", uid="")
    return structs.replace(pod, metadata=meta, node_name=node)


def _for_node(entry: ResourceSlice, node: str) -> ResourceSlice:
    """A slice with the same devices, healthy ones."""
    scope = structs.replace(entry.scope, node_name=node)
    pool = PoolID(entry.pool.driver, entry.pool.name + _MORE)
    exact = entry.exact()
    devices = tuple(structs.replace(device, taints=()) if device.taints else device for device in exact.devices)
    return structs.replace(exact, name=entry.name + _MORE, pool=pool, scope=scope, devices=devices)
