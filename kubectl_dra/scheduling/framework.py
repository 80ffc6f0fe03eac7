"""The plugin framework: a node with its pods, the cluster that plugins read, and the shape of a plugin.

A plugin is made once per pod. Its constructor is the scheduler's PreFilter, ``filter`` its Filter. Plugins
keep no state of a node. Assumptions of preemption and nominated pods are part of the node asked about
(``NodeState.removed`` and ``added``); a plugin that counts pods on other nodes corrects its counts by these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Final

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.state import allocated_state, changed_state
from kubectl_dra.api.meta import Amount, ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.cluster import Cluster, Delta
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.scheduling.amounts import Amounts, Rules, amounts_of, pod_amounts
from kubectl_dra.scheduling.profile import Profile
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection


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
            self._repelling = tuple([pod for pod in self.pods if pod.required_anti_affinity])
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
            (*self.removed, *(pod for pod in gone if not any(other is pod for other in self.added))),
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


class ClusterState:
    """What plugins of one scheduler read of a cluster; made once for any number of pods (``Scheduler.sees``).

    ``gates`` are the enabled feature gates, ``patch`` is the patch release if known, ``profile`` the
    scheduler's profile, and ``rules`` say how pods' requests are counted. ``devices`` makes the cycle.
    """

    def __init__(
        self,
        cluster: Cluster,
        release: Release,
        gates: frozenset[str],
        patch: int | None,
        profile: Profile,
        devices: Callable[[Snapshot], Cycle],
    ) -> None:
        self.cluster = cluster
        self.release = release
        self.gates = gates
        self.patch = patch
        self.profile = profile
        self.rules = Rules.of(gates)
        self._devices = devices

    @cached_property
    def nodes(self) -> Mapping[str, NodeState]:
        """The nodes, each with its pods."""
        pods = self.cluster.places.on
        return {name: NodeState(node, pods.get(name, ()), self.rules) for name, node in self.snapshot.nodes.items()}

    @property
    def snapshot(self) -> Snapshot:
        """The objects of the cluster."""
        return self.cluster.snapshot

    @cached_property
    def cycle(self) -> Cycle:
        """Its devices, and who holds them. For each pod it has to be ``changed``."""
        return self._devices(self.snapshot)

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

    def moved(self, cluster: Cluster) -> ClusterState:
        """The same scheduler in another cluster, which was made of this one by a change."""
        if cluster is self.cluster:
            return self
        delta = cluster.delta
        if delta.before != self.cluster.version or delta.slices is None:
            return ClusterState(cluster, self.release, self.gates, self.patch, self.profile, self._devices)
        out = copy(self)
        out.cluster = cluster
        out.cycle = _after(self.cycle, delta)
        if cluster.snapshot.classes is not self.snapshot.classes:
            out.cycle = out.cycle.changed(classes=cluster.snapshot.classes)
        if delta.nodes and "nodes" in self.__dict__:
            nodes, pods = cluster.snapshot.nodes, cluster.places.on
            touched = {
                name: NodeState(nodes[name], pods.get(name, ()), self.rules) for name in delta.nodes if name in nodes
            }
            out.nodes = {**self.nodes, **touched}
        if delta.nodes or delta.pods:
            for name in ("nominated", "nodes_with_affinity", "nodes_with_required_anti_affinity"):
                out.__dict__.pop(name, None)
        return out

    def looking(self, **changes: Any) -> ClusterState:
        """The same cluster where a scheduler looks at devices in another way; ``changes``: see ``Cycle.changed``."""
        out = copy(self)
        out.cycle = self.cycle.changed(**changes)
        return out

    def as_good_as(self, other: ClusterState) -> bool:
        """Whether nothing that decides about pods has changed since another one: only objects that hold nothing."""
        return self.nodes is other.nodes and self.cycle is other.cycle

    @cached_property
    def nominated(self) -> Mapping[str, Sequence[Pod]]:
        """The waiting pods nominated for a node, by node."""
        out: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.cluster.places.waiting.values():
            if pod.status.nominated_node_name:
                out[pod.status.nominated_node_name].append(pod)
        return out


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


# How most plugins normalize their scores to 0 to 100.


MAX: Final = 100
"""The best score that one plugin gives a node."""


def share_of_best(scores: Mapping[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Non-negative scores as percentages of the highest; ``reverse``: the lowest wins."""
    best = max(scores.values(), default=0)
    if not best:
        return dict.fromkeys(scores, MAX if reverse else 0)
    parts = {name: MAX * score // best for name, score in scores.items()}
    return {name: MAX - part for name, part in parts.items()} if reverse else parts


def along(shape: Sequence[tuple[int, int]], use: int) -> int:
    """The score on a line through points (use, score), constant before the first and after the last."""
    before = shape[0]
    for point in shape:
        if use <= point[0]:
            if point is shape[0]:
                return point[1]
            rise = (point[1] - before[1]) * (use - before[0])
            # Go cuts a quotient towards zero.
            part = abs(rise) // (point[0] - before[0])
            return before[1] + (part if rise >= 0 else -part)
        before = point
    return shape[-1][1]


# The devices of a cluster as a scheduler sees them: the cycle that all attempts for one pod share.


def make_cycle(
    snapshot: Snapshot,
    features: Features,
    defects: KnownDefects,
    environment: Environment,
    rules: Sequence[DeviceTaintRule] = (),
) -> Cycle:
    """The devices of a cluster for all attempts of one cycle, tainted by these rules."""
    return Cycle(
        index=SliceIndex(_seen(snapshot.slices, features, rules)),
        classes=snapshot.classes,
        state=allocated_state(snapshot.claims.values(), features),
        selectors=Selectors(environment),
        features=features,
        defects=defects,
        rules=rules,
    )


def _seen(
    slices: Sequence[ResourceSlice], features: Features, rules: Sequence[DeviceTaintRule]
) -> Sequence[ResourceSlice]:
    """Published slices as the allocator sees them. What is rarely needed is loaded then."""
    if features.loose_pools or features.stable:
        from kubectl_dra.allocation.slices_seen import slices_as_read

        slices = slices_as_read(slices, features)
    if rules:
        from kubectl_dra.allocation.slices_seen import apply_rules

        slices = apply_rules(slices, rules)
    return slices


def _after(cycle: Cycle, delta: Delta) -> Cycle:
    """The cycle after a change of its cluster that replaces no slices."""
    assert delta.slices is not None
    state = changed_state(cycle.state, delta.claims, cycle.features)
    if not delta.slices:
        return cycle if state is cycle.state else cycle.changed(state=state)
    more = _seen(delta.slices, cycle.features, cycle.rules)
    return cycle.changed(state=state, index=SliceIndex((*cycle.index.slices, *more)))
