"""Nodes where the scheduler places a pod and it does not start: the kubelet is away, or does not reach the driver."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.claim_relation import claims_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.health import DriverState, NodeDriver, drivers_meant, failed_call
from kubectl_dra.explain.driver_words import starts_none
from kubectl_dra.explain.phrase import Words


class NotStarting(NamedTuple):
    """A node on which pods do not start, and the driver that is at fault there, or the node itself by that state.

    Of a node that is only supposed the driver is that of another one.
    """

    node: str
    driver: NodeDriver

    @property
    def unseen(self) -> bool:
        """Whether nobody has seen the driver on that node."""
        return self.driver.node != self.node

    @property
    def why(self) -> Words:
        """What is wrong."""
        return starts_none(self.driver, elsewhere=self.unseen)


def not_starting(snapshot: Snapshot, placed: Iterable[tuple[str, Collection[str]]]) -> tuple[NotStarting, ...]:
    """Of nodes with the drivers whose devices a pod gets there, those on which it does not start."""
    known: Mapping[tuple[str, str], NodeDriver] | None = None
    out: list[NotStarting] = []
    for name, drivers in placed:
        node = snapshot.nodes.get(name)
        if name in snapshot.supposed:
            continue
        if drivers and node is not None and node.ready is False:
            out.append(NotStarting(name, NodeDriver(min(drivers), name, DriverState.NODE_DOWN)))
            continue
        known = snapshot.derived(_troubled) if known is None else known
        row = next((known[driver, name] for driver in sorted(drivers) if (driver, name) in known), None)
        # Of a node of which no kubelet has reported yet nothing says which pods will run there.
        unborn = node is not None and node.ready is None
        if row is not None and not (unborn and row.state is DriverState.NO_POD):
            out.append(NotStarting(name, row))
    return tuple(out)


def not_prepared(pod: Pod, drivers: Collection[str], snapshot: Snapshot) -> tuple[NotStarting, ...]:
    """The node of a pod whose devices its driver could not prepare, which need not concern other pods."""
    failed = failed_call(pod, snapshot)
    if failed is None or not drivers:
        return ()
    meant = drivers_meant(failed.message, claims_of(pod, snapshot)) or sorted(drivers)
    return (NotStarting(pod.node_name, NodeDriver(meant[0], pod.node_name, DriverState.PREPARE_FAILING)),)


def _troubled(snapshot: Snapshot) -> Mapping[tuple[str, str], NodeDriver]:
    """The drivers that start no pods, by driver and node."""
    if not snapshot.has_plugins and not any(event.reason == FAILED_PREPARE for event in snapshot.events):
        # Nothing but the nodes tells.
        return {}
    from kubectl_dra.drivers.drivers_on_nodes import joined

    return {(row.driver, row.node): row for row in joined(snapshot).rows if row.state.starts_no_pod}


def broken_nodes(snapshot: Snapshot) -> frozenset[str]:
    """The nodes that are there and on which a driver starts no pods: another one of their kind may be alike."""
    troubled = snapshot.derived(_troubled).values()
    return frozenset(row.node for row in troubled if row.state is not DriverState.NODE_DOWN)


def troubled_nodes(snapshot: Snapshot) -> frozenset[str]:
    """The nodes on which pods with devices of some driver do not start."""
    down = (name for name, node in snapshot.nodes.items() if node.ready is False)
    return frozenset((*down, *(node for _, node in snapshot.derived(_troubled))))
