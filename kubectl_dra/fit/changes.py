"""Changes of the cluster with which more pods fit, each proved by placing the pods that are left with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import json, structs

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import PoolID, ResourceSlice
from kubectl_dra.explain.remedies.room import can_end
from kubectl_dra.fit.ground import Ground
from kubectl_dra.fit.lane import Lane
from kubectl_dra.fit.mold import NewPod
from kubectl_dra.fit.place import Placement, Placer, Unplaced
from kubectl_dra.fit.result import ClusterChange, DeleteClaim, EndPod, More, OneMoreNode
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.spread_constraints import HOSTNAME

MAX_KINDS: Final = 8
"""Kinds of nodes of which one more is tried."""
MAX_HOLDERS: Final = 60
"""Pods and claims whose end is tried."""
MAX_SHOWN: Final = 3
"""Of either sort, in the answer."""
_MORE: Final = "-more"


class _Change(NamedTuple):
    """A change, the cluster with it, and the nodes that may take a pod then; None for any."""

    change: ClusterChange
    ground: Ground
    nodes: frozenset[str] | None


def changes(
    placement: Placement, refused: Sequence[Unplaced], wanted: Sequence[NewPod]
) -> tuple[tuple[More, ...], int]:
    """The changes that help: holders that end, the cheapest first, then nodes, the best first; how many were tried.

    Args:
        placement: what fits without a change.
        refused: the pods that do not.
        wanted: the pods to place with each change.
    """
    denied = {id(one.new) for one in refused if one.denied is not None or one.new.pod.scheduling_gates}
    left = [new for new in wanted if id(new) not in denied]
    first = next((one for one in refused if id(one.new) not in denied), None)
    if not left or first is None:
        return (), 0
    tried = 0
    found: list[list[More]] = []
    for kind in (_holders(placement, first), _nodes(placement.ground)):
        own: list[More] = []
        for change in kind:
            tried += 1
            if not _may_help(change, left):
                continue
            if more := _with(change, left, wanted):
                own.append(more)
                if len(own) == MAX_SHOWN:
                    break
        found.append(own)
    holders, nodes = found
    # The cheapest of those that make a replica whole.
    holders.sort(key=lambda one: not one.replicas)
    return (*holders, *sorted(nodes, key=lambda one: -one.pods)), tried


def _may_help(change: _Change, left: Sequence[NewPod]) -> bool:
    """Whether a node that is changed takes a pod of any sort that is left; groups are tried as a whole."""
    if any(new.group[2] for new in left):
        return True
    kinds = {new.likeness: new for new in left}
    return any(Lane(new, change.ground, change.nodes).feasible for new in kinds.values())


def _with(change: _Change, left: Sequence[NewPod], wanted: Sequence[NewPod]) -> More | None:
    """How many of the pods that are left fit with a change; None where none does."""
    after = Placer(change.ground).place_all(left)
    if not after.seats:
        return None
    placed = {id(seat.new) for seat in after.seats}
    still = {new.ordinal.replica for new in wanted if id(new) not in placed}
    whole = {new.ordinal.replica for new in wanted} - still
    return More(change.change, len(after.seats), len(whole))


def _nodes(ground: Ground) -> Iterator[_Change]:
    """One more node of each kind, the most frequent first."""
    kinds: dict[Hashable, list[Node]] = defaultdict(list)
    local: dict[str, list[ResourceSlice]] = defaultdict(list)
    for entry in ground.snapshot.slices:
        if entry.scope.node_name and ground.homes.get(entry.pool.name) == entry.scope.node_name:
            local[entry.scope.node_name].append(entry)
    for node in ground.snapshot.nodes.values():
        kinds[_kind(node, local[node.name])].append(node)
    ranked = sorted(kinds.values(), key=lambda nodes: -len(nodes))
    for nodes in ranked[:MAX_KINDS]:
        like = next((node for node in nodes if not node.spec.unschedulable), None)
        if like is not None:
            copy = _copy(like, local[like.name], ground)
            change = OneMoreNode(like.name, len(nodes))
            yield _Change(change, ground.adding(*copy), frozenset((copy[0].name,)))


def _kind(node: Node, slices: Sequence[ResourceSlice]) -> Hashable:
    """What nodes have in common of which one more may be had."""
    labels = sorted((key, value) for key, value in node.labels.items() if node.name not in value and key != HOSTNAME)
    devices = tuple((entry.driver, tuple(device.name for device in entry.devices)) for entry in slices)
    return json.encode((labels, node.spec, node.status.allocatable)), devices


def _copy(like: Node, slices: Sequence[ResourceSlice], ground: Ground) -> tuple[Node, list[Pod], list[ResourceSlice]]:
    """A node of another name with the same devices, and the pods of DaemonSets, which run on every such node."""
    name = like.name + _MORE
    labels = {key: value.replace(like.name, name) for key, value in like.labels.items()}
    meta = structs.replace(like.metadata, name=name, uid=f"fit:{name}", labels=labels)
    pods = [_moved(pod, name) for pod in ground.state.nodes[like.name].pods if _of_daemon_set(pod)]
    return structs.replace(like, metadata=meta), pods, [_for_node(entry, name) for entry in slices]


def _for_node(entry: ResourceSlice, node: str) -> ResourceSlice:
    scope = structs.replace(entry.scope, node_name=node)
    pool = PoolID(entry.pool.driver, entry.pool.name + _MORE)
    devices = tuple(structs.replace(device, taints=()) if device.taints else device for device in entry.devices)
    return structs.replace(entry, name=entry.name + _MORE, pool=pool, scope=scope, devices=devices)


def _moved(pod: Pod, node: str) -> Pod:
    meta = structs.replace(pod.metadata, name=f"{pod.metadata.name}{_MORE}", uid="")
    return structs.replace(pod, metadata=meta, spec=structs.replace(pod.spec, node_name=node))


def _of_daemon_set(pod: Pod) -> bool:
    owner = pod.metadata.controller()
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def _holders(placement: Placement, first: Unplaced) -> Iterator[_Change]:
    """Claims that nobody uses, then pods of others, on nodes that may take the first pod without them."""
    ground = placement.ground
    held: dict[str, list[ResourceClaim]] = defaultdict(list)
    tried = 0
    for claim in ground.snapshot.claims.values():
        if claim.allocation is None:
            continue
        for user in claim.reserved_for:
            held[f"{claim.metadata.namespace}/{user.name}"].append(claim)
        if not claim.reserved_for and tried < MAX_HOLDERS:
            tried += 1
            change = DeleteClaim(claim.metadata.namespace, claim.metadata.name, _devices(claim))
            yield _Change(change, ground.freeing([claim]), _nodes_of(ground, [claim], None))
    own = {seat.new.pod.key for seat in placement.seats}
    rejected = first.outcome.rejected if first.outcome is not None else {}
    full = {name for name, rejection in rejected.items() if rejection.resolvable}
    lacking = {name for name, rejection in rejected.items() if rejection.plugin is PluginName.DYNAMIC_RESOURCES}

    def in_the_way(pod: Pod) -> bool:
        if pod.key in own or pod.finished or not can_end(pod):
            return False
        return pod.node_name in full or (pod.node_name in lacking and bool(held[pod.key]))

    found = [pod for pod in ground.snapshot.pods.values() if pod.node_name and in_the_way(pod)]
    # The younger first: the sort keeps their order.
    found.sort(key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
    found.sort(key=lambda pod: (pod.status.phase == "Running", pod.priority, sum(map(_devices, held[pod.key]))))
    for pod in found[:MAX_HOLDERS]:
        owner = pod.metadata.controller()
        named = f"{owner.kind} {owner.name}" if owner is not None else ""
        ended = EndPod(pod, sum(map(_devices, held[pod.key])), named)
        yield _Change(ended, ground.ending([pod], held[pod.key]), _nodes_of(ground, held[pod.key], pod.node_name))


def _nodes_of(ground: Ground, claims: Sequence[ResourceClaim], node: str | None) -> frozenset[str] | None:
    """The nodes for which something changes when claims are given back, and a pod on a node ends."""
    devices = [entry.device for claim in claims if claim.allocation for entry in claim.allocation.results]
    homes = [*(ground.homes.get(device.pool) for device in devices), *([node] if node else [])]
    known = frozenset(home for home in homes if home is not None)
    return None if None in homes else known & ground.state.nodes.keys()


def _devices(claim: ResourceClaim) -> int:
    return len(claim.allocation.results) if claim.allocation is not None else 0
