"""One more node like one that exists: the node, the pods that run on all of its kind, its slices with free devices.

What is copied is the kind, not the individual: whatever says which node or which hardware it is becomes that of the
new one. That is told by meaning (the label of the host's name, the node of a slice) or by a value that is the whole
name; a name that is only a part of another text says nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import json, structs

from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.api.claims import Allocation, Consumer, DeviceResult, ResourceClaim
from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.nodes import Node, NodeSelector
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import Device, NodeScope, PoolID, ResourceSlice, identifies, newest_slices
from kubectl_dra.api.volumes import CSINode
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.cluster import NodeCopy
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME

_MORE: Final = "-more"
_NAME: Final = "metadata.name"
_PASSING: Final = frozenset(
    (
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/unregistered",
        "karpenter.sh/disrupted",
    )
)
_PASSING_PREFIXES: Final = tuple(
    f"{kind}-taint.cluster-autoscaler.kubernetes.io/" for kind in ("ignore", "startup", "status")
)
"""Taints of a node's state or of its start, which say nothing of the next one: those that cluster-autoscaler leaves out
of its templates (utils/taints/taints.go), and Karpenter's own.
"""


_ADDRESS: Final = re.compile(r"(pci)?[0-9A-Fa-f]*:[0-9A-Fa-f:.]+(/[0-9]+)?|[0-9]+(\.[0-9]+){3}(/[0-9]+)?")
"""A value of an attribute that says where a device is: on which bus, or in which network."""


def node_copies(state: ClusterState, troubled: Container[str] = (), broken: Container[str] = ()) -> Iterator[NodeCopy]:
    """One copy of each kind of node, the most frequent first, with the devices that it publishes by itself.

    Nodes that are only supposed do not count among those that exist.

    Nodes that are ``troubled`` are samples only where no other one is there, those that are ``broken`` never: the next
    one of the kind would be as they are.
    """
    index = state.cycle.index
    local = _local(state.snapshot.nodes, index)
    known = ByIdentity[tuple[Device, ...], Hashable]()
    kinds: dict[Hashable, list[Node]] = defaultdict(list)
    for node in state.snapshot.nodes.values():
        kinds[_kind(node, local.get(node.name, ()), known)].append(node)
    for nodes in sorted(kinds.values(), key=lambda nodes: -len(nodes)):
        usable = [node for node in nodes if not node.spec.unschedulable and node.name not in broken]
        like = next((node for node in usable if node.name not in troubled), next(iter(usable), None))
        if like is not None:
            slices = local.get(like.name, ())
            supposed = state.snapshot.supposed
            yield _Copier(like, slices, state, index).copied(sum(node.name not in supposed for node in nodes))


def copies_of(name: str, state: ClusterState, *, as_is: bool = False, tainted: bool = False) -> Iterator[NodeCopy]:
    """As many copies of one node as are wanted, each with names of its own.

    ``as_is``: the node is itself one that is not there yet, so nothing of it has passed; but for names, they are equal.
    ``tainted``: the devices have the taints of those that are there, as cluster-autoscaler takes it. A pool of which
    slices are missing is a complete one of those that are there.
    """
    index, number = state.cycle.index, 1
    slices = _local(state.snapshot.nodes, index).get(name, ())
    while True:
        how = {"as_is": as_is, "tainted": tainted, "completed": not as_is}
        copier = _Copier(state.snapshot.nodes[name], slices, state, index, number, **how)
        yield copier.copied(1)
        number = copier.number + 1


def is_like(name: str, like: str) -> bool:
    """Whether a node is called like another one, or as a copy of it."""
    return name == like or name.startswith(like + _MORE)


def _kind(node: Node, slices: Sequence[ResourceSlice], known: ByIdentity[tuple[Device, ...], Hashable]) -> Hashable:
    """What nodes have in common of which one more may be had. A zone counts: there may be no place in another one."""
    own = _names(node)
    labels = sorted((key, value) for key, value in node.labels.items() if key != HOSTNAME and value not in own)
    devices = []
    for slice_ in slices:
        columns = slice_.individual.columns if slice_.individual is not None else ()
        alike = slice_.exact([column for column in columns if column.name and not identifies(column.name)]).devices
        contents = known.of(alike, partial(_contents, own=own))
        counters = json.encode(slice_.shared_counters, enc_hook=str, order="deterministic")
        devices.append((slice_.driver, tuple(slice_.names), counters, contents))
    return json.encode((labels, node.spec, node.status.allocatable)), tuple(devices)


def _contents(devices: Iterable[Device], own: Container[str]) -> Hashable:
    """What devices are: not which ones, where they are, or how they fare."""
    out = []
    for device in devices:
        attributes = {
            name: value
            for name, value in device.attributes.items()
            if not identifies(name) and (text := value.get("string", "")) not in own and not is_address(text)
        }
        told = (attributes, device.capacity, device.allow_multiple_allocations, device.consumes_counters)
        encoded = json.encode((*told, device.binds_to_node), enc_hook=str, order="deterministic")
        out.append((encoded, device.node_resources))
    return tuple(out)


def is_address(text: str) -> bool:
    """Whether a value of an attribute says where a device is."""
    return _ADDRESS.fullmatch(text) is not None


def _names(node: Node) -> tuple[str, str]:
    """What a node is called: by the API, and by its host. The host's name may be a shorter one."""
    return node.name, node.labels.get(HOSTNAME, node.name)


def _local(nodes: Mapping[str, Node], index: SliceIndex) -> dict[str, Sequence[ResourceSlice]]:
    """The newest slices of the pools that are for one node alone, by this node."""
    hosts = {host: name for name, node in nodes.items() if (host := node.labels.get(HOSTNAME))}
    by_node: dict[str, Sequence[ResourceSlice]] = {}
    for entries in index.by_pool.values():
        home = _home(entries[0], hosts)
        if not home or any(_home(slice_, hosts) != home for slice_ in entries[1:]):
            continue
        if len(entries) > 1:
            (entries,) = newest_slices(entries).values()
        by_node[home] = (*by_node[home], *entries) if home in by_node else entries
    return by_node


def _home(slice_: ResourceSlice, hosts: Mapping[str, str]) -> str:
    """The only node that can use the devices of a slice; empty if there is none, or several."""
    if not slice_.per_device_node_selection:
        return _only_node(slice_.scope, hosts)
    homes = {_only_node(device.scope, hosts) for device in slice_.devices}
    return homes.pop() if len(homes) == 1 else ""


def _only_node(scope: NodeScope, hosts: Mapping[str, str]) -> str:
    if scope.node_name or scope.node_selector is None:
        return scope.node_name
    if len(scope.node_selector.terms) != 1:
        return ""
    (term,) = scope.node_selector.terms
    for requirement in (*term.expressions, *term.fields):
        if requirement.operator == "In" and len(requirement.values) == 1 and requirement.key in (HOSTNAME, _NAME):
            return requirement.values[0] if requirement.key == _NAME else hosts.get(requirement.values[0], "")
    return ""


def passes(key: str) -> bool:
    """Whether a taint tells the state of a node or of its start, which says nothing of the next one."""
    return key in _PASSING or key.startswith(_PASSING_PREFIXES)


class _Copier:
    """Copies what belongs to one node."""

    def __init__(
        self,
        like: Node,
        slices: Sequence[ResourceSlice],
        state: ClusterState,
        index: SliceIndex,
        number: int = 1,
        *,
        as_is: bool = False,
        tainted: bool = False,
        completed: bool = False,
    ) -> None:
        """``number`` of the copy; the next one of which no name is taken."""
        self._like = like
        self._slices = slices
        self._state = state
        self._as_is = as_is
        self._tainted = as_is or tainted
        self._found = Counter(slice_.pool for slice_ in slices) if completed else None
        self._pools = {slice_.pool: slice_.pool for slice_ in slices}
        self.number = number
        while self._name in state.snapshot.nodes or any(self._pool(pool) in index.by_pool for pool in self._pools):
            self.number += 1
        self._texts = {text: text + self._more for text in _names(like)}

    @property
    def _more(self) -> str:
        return _MORE if self.number == 1 else f"{_MORE}-{self.number}"

    @property
    def _name(self) -> str:
        return self._like.name + self._more

    def copied(self, exist: int) -> NodeCopy:
        """The node with all that it brings; ``exist`` nodes of its kind are there."""
        pods, claims = self._daemons()
        slices = [self._slice(slice_) for slice_ in self._slices]
        return NodeCopy(self._like.name, exist, self._node(), pods, slices, claims, self._csi_node())

    def _node(self) -> Node:
        meta = self._like.metadata
        labels = {key: self._texts.get(value, value) for key, value in meta.labels.items()}
        notes = {key: self._texts.get(value, value) for key, value in meta.annotations.items()}
        uid = f"more:{self._name}" if meta.uid else ""
        created = meta.creation_timestamp if self._as_is else ""
        new = structs.replace(
            meta, name=self._name, uid=uid, labels=labels, annotations=notes, creation_timestamp=created
        )
        if self._as_is:
            return Node(new, self._like.spec, self._like.status)
        taints = tuple(taint for taint in self._like.taints if not passes(taint.key))
        status = structs.replace(self._like.status, conditions=())
        return Node(new, structs.replace(self._like.spec, unschedulable=False, taints=taints), status)

    def _csi_node(self) -> CSINode | None:
        old: CSINode | None = self._state.others("CSINode").get(("", self._like.name))
        if old is None:
            return None
        drivers = tuple(
            structs.replace(driver, node_id=self._texts.get(driver.node_id, driver.node_id))
            for driver in old.spec.drivers
        )
        return structs.replace(
            old,
            metadata=structs.replace(old.metadata, name=self._name),
            spec=structs.replace(old.spec, drivers=drivers),
        )

    def _daemons(self) -> tuple[list[Pod], list[ResourceClaim]]:
        """The pods that run on every such node, those of DaemonSets and the kubelet, with their claims."""
        stored = self._state.snapshot.claims
        pods, claims = [], []
        for pod in self._state.nodes[self._like.name].pods:
            owner = pod.metadata.controller()
            if not (owner is not None and owner.kind in ("DaemonSet", "Node")):
                continue
            space = pod.metadata.namespace
            meta = structs.replace(
                pod.metadata, name=pod.metadata.name + self._more, uid=f"more:{space}/{pod.metadata.name}"
            )
            pods.append(structs.replace(pod, metadata=meta, node_name=self._name))
            user = Consumer("pods", meta.name, meta.uid)
            for name in sorted(pod.claim_names):
                claim = stored.get((space, name))
                if claim is not None and (copied := self._claim(claim, pod, user)) is not None:
                    claims.append(copied)
        return pods, claims

    def _claim(self, claim: ResourceClaim, pod: Pod, user: Consumer) -> ResourceClaim | None:
        """The claim of a daemon's next pod, which takes the same of the new node's devices; None without any."""
        owner = claim.metadata.controller()
        if owner is None or owner.name != pod.metadata.name or claim.allocation is None:
            return None
        local = (result for result in claim.results if PoolID(*result.device[:2]) in self._pools)
        results = tuple(map(self._result, local))
        meta = structs.replace(claim.metadata, name=claim.metadata.name + self._more, uid=f"more:{claim.key}")
        allocation = Allocation(results, None, claim.allocation.timestamp)
        return structs.replace(claim, metadata=meta, allocation=allocation, reserved_for=(user,)) if results else None

    def _result(self, result: DeviceResult) -> DeviceResult:
        pool = self._pool(PoolID(result.device.driver, result.device.pool))
        return structs.replace(result, device=result.device._replace(pool=pool.name))

    def _pool(self, pool: PoolID) -> PoolID:
        return pool._replace(name=pool.name + self._more)

    def _slice(self, slice_: ResourceSlice) -> ResourceSlice:
        """A slice with the same devices; what rules taint is told where it is added."""
        exact = slice_.exact()
        devices = tuple(map(self._device, exact.devices))
        return structs.replace(
            exact,
            name=slice_.name + self._more,
            pool=self._pool(slice_.pool),
            scope=self._scope(slice_.scope),
            devices=devices,
            slice_count=slice_.slice_count if self._found is None else self._found[slice_.pool],
        )

    def _device(self, device: Device) -> Device:
        attributes = device.attributes
        if any(map(identifies, attributes)):
            attributes = {
                name: {kind: f"{text}{self._more}" for kind, text in value.items()} if identifies(name) else value
                for name, value in attributes.items()
            }
        taints = device.taints if self._tainted else ()
        same = taints == device.taints and attributes is device.attributes and device.scope.empty
        if same:
            return device
        return structs.replace(device, taints=taints, attributes=attributes, scope=self._scope(device.scope))

    def _scope(self, scope: NodeScope) -> NodeScope:
        if scope.node_name:
            return structs.replace(scope, node_name=self._name)
        if scope.node_selector is None:
            return scope
        terms = tuple(
            structs.replace(
                term,
                expressions=tuple(map(self._requirement, term.expressions)),
                fields=tuple(map(self._requirement, term.fields)),
            )
            for term in scope.node_selector.terms
        )
        return structs.replace(scope, node_selector=NodeSelector(terms))

    def _requirement(self, requirement: Requirement) -> Requirement:
        return structs.replace(requirement, values=tuple(self._texts.get(value, value) for value in requirement.values))
