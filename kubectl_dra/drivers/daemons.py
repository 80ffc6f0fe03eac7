"""What makes the pods of drivers: where a pod of a DaemonSet should be and is none, and why none is made."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final

from kubectl_dra.api.nodes import Node, NodeSelector, Toleration
from kubectl_dra.api.plugins import DaemonSet
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.health import DaemonState, LeftOut
from kubectl_dra.scheduling.simple_filters import tolerates

REPLICAS: Final = "ReplicaSet"
"""The kind that makes the pods of a Deployment."""
NO_POD_MADE: Final = "FailedCreate"
"""Reason of events about a DaemonSet or ReplicaSet whose pods are refused: by quota, admission or security."""
ALWAYS: Final = (
    *("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/disk-pressure"),
    *("node.kubernetes.io/memory-pressure", "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable"),
    "node.kubernetes.io/network-unavailable",
)
"""Taints that the pods of every DaemonSet tolerate (pkg/controller/daemon/util)."""


def daemon_state(daemon: DaemonSet, snapshot: Snapshot) -> DaemonState:
    """A DaemonSet with the last failure of its controller."""
    meta, strategy = daemon.metadata, daemon.spec.update_strategy
    events = snapshot.events_about("DaemonSet", meta.namespace, meta.name)
    failed = [event for event in events if event.type == "Warning" or event.reason.startswith("Failed")]
    last = failed[-1] if failed else None
    return DaemonState(
        meta.namespace,
        meta.name,
        daemon.status.desired,
        daemon.status.current,
        last.message if last is not None else "",
        last.last if last is not None else "",
        tuple(_labels_missing(daemon, snapshot)) if daemon.status.desired == 0 else (),
        strategy.type,
        strategy.rolling_update.max_surge not in (0, "0", "0%"),
    )


def replica_state(namespace: str, name: str, snapshot: Snapshot) -> DaemonState:
    """A ReplicaSet, of which only events are read."""
    failed = [event for event in snapshot.events_about(REPLICAS, namespace, name) if event.reason == NO_POD_MADE]
    said, at = (failed[-1].message, failed[-1].last) if failed else ("", "")
    return DaemonState(namespace, name, None, 0, said, at, kind=REPLICAS)


def failing_replicas(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Namespaces and names of ReplicaSets whose pods are refused."""
    for event in snapshot.events:
        if event.kind == REPLICAS and event.reason == NO_POD_MADE:
            yield event.namespace, event.name


def _labels_missing(daemon: DaemonSet, snapshot: Snapshot) -> Iterator[str]:
    """The labels that a DaemonSet asks for and no node has."""
    if snapshot.is_gap("Node"):
        return
    nodes = snapshot.nodes.values()
    for key, value in daemon.spec.template.spec.node_selector.items():
        if not any(node.labels.get(key) == value for node in nodes):
            yield f"{key}={value}"
    required = _required(daemon)
    if required is not None and not any(map(required.admits, nodes)):
        for term in required.terms:
            for requirement in term.expressions:
                if requirement.operator in ("In", "Exists"):
                    yield f"{requirement.key}={'|'.join(requirement.values)}" if requirement.values else requirement.key


def node_of(pod: Pod) -> str:
    """The node that a pod of a DaemonSet is for: before it is bound, its affinity names it."""
    if pod.node_name or pod.spec.affinity is None:
        return pod.node_name
    required = pod.spec.affinity.node_affinity.required
    for term in required.terms if required is not None else ():
        for requirement in term.fields:
            if requirement.key == "metadata.name" and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def missing_nodes(daemon: DaemonSet, nodes: Iterable[Node], have: Container[str]) -> Iterator[str]:
    """The nodes that should have a pod of a DaemonSet and have none."""
    for node in nodes:
        if node.name not in have and left_out(daemon, node) is None:
            yield node.name


def left_out(daemon: DaemonSet, node: Node) -> LeftOut | None:
    """Why a DaemonSet wants no pod on a node; None if it wants one (pkg/controller/daemon: NodeShouldRunDaemonPod)."""
    spec = daemon.spec.template.spec
    missing = [f"{key}={value}" for key, value in spec.node_selector.items() if node.labels.get(key) != value]
    if missing:
        return LeftOut(labels=tuple(missing))
    if (required := _required(daemon)) is not None and not required.admits(node):
        return LeftOut()
    always = tuple(Toleration(key=key, operator="Exists") for key in ALWAYS)
    for taint in node.taints:
        repels = taint.effect in ("NoSchedule", "NoExecute")
        if repels and not any(tolerates(toleration, taint) for toleration in (*always, *spec.tolerations)):
            return LeftOut(taint=str(taint))
    return None


def _required(daemon: DaemonSet) -> NodeSelector | None:
    affinity = daemon.spec.template.spec.affinity
    return affinity.node_affinity.required if affinity is not None else None
