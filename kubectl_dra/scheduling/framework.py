"""The plugin framework: a node with its pods, the cluster that plugins read, and the shape of a plugin.

A plugin is made once per pod. Its constructor is the scheduler's PreFilter, ``filter`` its Filter. Plugins
keep no state of a node. Assumptions of preemption and nominated pods are part of the node asked about
(``NodeState.removed`` and ``added``); a plugin that counts pods on other nodes corrects its counts by these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import ENDED, Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.releases import Release
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.volumes import CSINode
from kubectl_dra.api.wire import Amount
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.scheduling.amounts import Amounts, Rules, amounts_of, pod_amounts
from kubectl_dra.scheduling.profile import Profile, default_profile
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection

_Object = TypeVar("_Object", Pod, ResourceClaim)


class NodeState:
    """A node and its pods: all bound to it that have not ended, including terminating ones.

    ``removed`` and ``added`` are the pods by which it differs from the same node in the cluster.
    """

    __slots__ = ("_affine", "_allocatable", "_repelling", "_requested", "_rules", "added", "node", "pods", "removed")

    def __init__(
        self,
        node: Node,
        pods: Sequence[Pod],
        rules: Rules,
        removed: tuple[Pod, ...] = (),
        added: tuple[Pod, ...] = (),
    ) -> None:
        self.node = node
        self.pods = pods
        self.removed = removed
        self.added = added
        self._rules = rules
        # Not a ``cached_property``, which would give each of 100,000 nodes a dictionary of 400 bytes.
        self._requested: Amounts | None = None
        self._allocatable: Amounts | None = None
        self._affine: Sequence[Pod] | None = None
        self._repelling: Sequence[Pod] | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def requested(self) -> Amounts:
        """The total requests of its pods, by resource name."""
        if self._requested is None:
            out: Amounts = {}
            for pod in self.pods:
                for name, amount in pod_amounts(pod, self._rules).items():
                    out[name] = out.get(name, 0) + amount
            self._requested = out
        return self._requested

    @property
    def allocatable(self) -> Amounts:
        """What its pods can have, by resource name."""
        if self._allocatable is None:
            self._allocatable = _shared_amounts(tuple(self.node.allocatable.items()))
        return self._allocatable

    @property
    def pods_with_affinity(self) -> Sequence[Pod]:
        """Its pods that have any pod affinity or anti-affinity."""
        if self._affine is None:
            self._affine = tuple([pod for pod in self.pods if _has_affinity(pod)])
        return self._affine

    @property
    def pods_with_required_anti_affinity(self) -> Sequence[Pod]:
        """Its pods with required anti-affinity."""
        if self._repelling is None:
            given = [(pod, pod.spec.affinity) for pod in self.pods if pod.spec.affinity is not None]
            self._repelling = tuple([pod for pod, affinity in given if affinity.pod_anti_affinity.required])
        return self._repelling

    def changed(self, *, removed: Iterable[Pod] = (), added: Iterable[Pod] = ()) -> NodeState:
        """The node without some of its pods (by object identity) and with others."""
        gone, more = tuple(removed), tuple(added)
        out = {id(pod) for pod in gone}
        pods = [pod for pod in self.pods if id(pod) not in out]
        pods.extend(more)
        return NodeState(
            self.node,
            pods,
            self._rules,
            (*self.removed, *(pod for pod in gone if not _among(pod, self.added))),
            (*(pod for pod in self.added if id(pod) not in out), *more),
        )


def _has_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    own, anti = affinity.pod_affinity, affinity.pod_anti_affinity
    return bool(own.required or own.preferred or anti.required or anti.preferred)


@lru_cache(maxsize=1_000)
def _shared_amounts(written: tuple[tuple[str, Amount], ...]) -> Amounts:
    """Amounts in the scheduler's units: one table for all nodes of a kind."""
    return amounts_of(dict(written))


class NodeCopy(NamedTuple):
    """A node that could be had: it is like ``like``, of which kind ``exist`` are there.

    ``pods`` run on it from the beginning, with their ``claims``; ``csi_node`` says what storage drivers can do there.
    """

    like: str
    exist: int
    node: Node
    pods: Sequence[Pod] = ()
    slices: Sequence[ResourceSlice] = ()
    claims: Sequence[ResourceClaim] = ()
    csi_node: CSINode | None = None


class ClusterState:
    """The indexed part of a cluster that plugins read; made once for any number of pods.

    ``gates`` are the enabled feature gates, ``patch`` is the patch release if known, ``profile`` the
    scheduler's profile (the default one if not given), and ``rules`` say how pods' requests are counted.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        release: Release,
        gates: frozenset[str],
        patch: int | None = None,
        profile: Profile | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.release = release
        self.gates = gates
        self.patch = patch
        self.profile = profile or default_profile(release)
        self.rules = Rules.of(gates)
        by_node: dict[str, list[Pod]] = defaultdict(list)
        self._waiting: list[Pod] = []
        for pod in snapshot.pods.values():
            if pod.status.phase in ENDED:
                continue
            if pod.node_name:
                by_node[pod.node_name].append(pod)
            else:
                self._waiting.append(pod)
        self.nodes: Mapping[str, NodeState] = {
            name: NodeState(node, by_node.get(name, ()), self.rules) for name, node in snapshot.nodes.items()
        }

    @property
    def waiting(self) -> Sequence[Pod]:
        """The pods without a node that have not ended."""
        return self._waiting

    @property
    def namespaces(self) -> Mapping[str, ObjectMeta]:
        """Metadata of the namespaces by name; namespace selectors match their labels."""
        return self.snapshot.namespaces

    def others(self, kind: str) -> Mapping[Key, Any]:
        """The objects of one of ``cluster.kinds.SCHEDULING_KINDS``, by namespace (empty if none) and name."""
        return self.snapshot.others.get(kind, {})

    def unknown(self, kind: str, namespace: str = "") -> bool:
        """Whether objects of a kind may exist that were not read."""
        return self.snapshot.is_gap(kind, namespace)

    def unless_unread(self, kind: str, reason: Reason, namespace: str = "") -> Reason:
        """The reason that follows from the objects of a kind; undetermined if not all of them were read."""
        return NotRead(kind, reason) if self.unknown(kind, namespace) else reason

    @cached_property
    def nodes_with_affinity(self) -> Sequence[NodeState]:
        """Nodes with pods that have pod affinity or anti-affinity."""
        return [node for node in self.nodes.values() if node.pods_with_affinity]

    @cached_property
    def nodes_with_required_anti_affinity(self) -> Sequence[NodeState]:
        """Nodes with pods that have required anti-affinity."""
        return [node for node in self.nodes.values() if node.pods_with_required_anti_affinity]

    def changed(self, *, ended: Collection[Key] = (), nodes: Iterable[Node] = ()) -> ClusterState:
        """The same cluster after some pods (namespace, name) have ended, with some of its nodes replaced."""
        others = {node.name: node for node in nodes if node.name in self.nodes}
        left = {key: pod for key, pod in self.snapshot.pods.items() if key not in ended}
        touched = {self.snapshot.pods[key].node_name for key in ended if key in self.snapshot.pods}
        out = self.with_snapshot(replace(self.snapshot, pods={}, nodes={}))
        out.snapshot = replace(self.snapshot, pods=left, nodes={**self.snapshot.nodes, **others})
        out._waiting = [pod for pod in self._waiting if (pod.metadata.namespace, pod.metadata.name) not in ended]
        known = dict(self.nodes)
        for name in (*others, *(touched - others.keys())):
            if name in known:
                pods = [pod for pod in known[name].pods if (pod.metadata.namespace, pod.metadata.name) not in ended]
                known[name] = NodeState(others.get(name, known[name].node), pods, self.rules)
        out.nodes = known
        return out

    def with_pod(self, pod: Pod, claims: Mapping[Key, ResourceClaim]) -> ClusterState:
        """The same cluster after a pod was given its node, which exists; these claims are as they are then."""
        snapshot = self.snapshot
        key = (pod.metadata.namespace, pod.metadata.name)
        out = self.with_snapshot(replace(snapshot, pods={}, nodes={}))
        out.snapshot = replace(snapshot, pods={**snapshot.pods, key: pod}, claims={**snapshot.claims, **claims})
        out._waiting = [other for other in self._waiting if (other.metadata.namespace, other.metadata.name) != key]
        node = self.nodes[pod.node_name]
        out.nodes = {**self.nodes, node.name: NodeState(node.node, (*node.pods, pod), self.rules)}
        return out

    def with_node(self, more: NodeCopy) -> ClusterState:
        """The same cluster with one more node, the pods on it with their claims, and what drivers publish for it."""
        snapshot, node, pods = self.snapshot, more.node, more.pods
        out = self.with_snapshot(replace(snapshot, pods={}, nodes={}))
        others = snapshot.others
        if more.csi_node is not None:
            others = {**others, "CSINode": {**others["CSINode"], ("", node.name): more.csi_node}}
        out.snapshot = replace(
            snapshot,
            nodes={**snapshot.nodes, node.name: node},
            pods={**snapshot.pods, **_by_key(pods)} if pods else snapshot.pods,
            claims={**snapshot.claims, **_by_key(more.claims)} if more.claims else snapshot.claims,
            slices=(*snapshot.slices, *more.slices),
            others=others,
        )
        out._waiting = self._waiting
        out.nodes = {**self.nodes, node.name: NodeState(node, pods, self.rules)}
        return out

    def with_quotas(self, quotas: Sequence[ResourceQuota]) -> ClusterState:
        """The same cluster with other ResourceQuotas, which no plugin reads."""
        out = copy(self)
        out.snapshot = replace(self.snapshot, quotas=tuple(quotas))
        return out

    def with_claims(self, claims: Mapping[Key, ResourceClaim]) -> ClusterState:
        """The same cluster with other ResourceClaims. Pods, nodes and their indexes are shared."""
        out = copy(self)
        out.snapshot = replace(self.snapshot, claims=claims)
        return out

    def with_snapshot(self, snapshot: Snapshot) -> ClusterState:
        """The same scheduler in another cluster."""
        return ClusterState(snapshot, self.release, self.gates, self.patch, self.profile)

    @cached_property
    def nominated(self) -> Mapping[str, Sequence[Pod]]:
        """The waiting pods nominated for a node, by node."""
        out: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._waiting:
            if pod.status.nominated_node_name:
                out[pod.status.nominated_node_name].append(pod)
        return out


def _by_key(objects: Iterable[_Object]) -> dict[Key, _Object]:
    return {(entry.metadata.namespace, entry.metadata.name): entry for entry in objects}


class Plugin:
    """A Filter plugin for one pod. The constructor does PreFilter's work and sets its results.

    ``rejection``: the pod is refused as a whole. ``skipped``: the pod does not concern the plugin, and
    ``filter`` is never called. ``nodes``: only these nodes are possible; the others are not examined.
    """

    name: ClassVar[PluginName]
    rejection: Rejection | None = None
    skipped: bool = False
    nodes: frozenset[str] | None = None

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        self.pod = pod
        self.state = state

    def filter(self, node: NodeState) -> Rejection | None:
        """Why the pod cannot run on the node; None if it can."""
        return None


class ScorePlugin:
    """A Score plugin for one pod and the nodes that pass all filters. The constructor is PreScore.

    ``skipped``: the plugin adds nothing for this pod. ``inexact``: the kind or resource that its scores
    should count but do not; empty if none.
    """

    name: ClassVar[PluginName]
    inexact: str = ""
    skipped: bool = False

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        self.pod = pod
        self.state = state
        self.nodes = nodes

    def scores(self) -> Mapping[str, int]:
        """Node name to score, normalized to 0 to 100, before the weight."""
        raise NotImplementedError


def _among(pod: Pod, pods: Sequence[Pod]) -> bool:
    return any(entry is pod for entry in pods)
