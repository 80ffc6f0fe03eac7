"""Which of the placed pods do not start: their node's driver does not run, or a driver refuses what a claim got."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from kubectl_dra.api.claims import devices_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.refused_claims import Refusal, refusals
from kubectl_dra.explain.not_starting import NotStarting, not_starting
from kubectl_dra.fit.place import PlacedPod
from kubectl_dra.scheduling.framework import ClusterState


class Starting(NamedTuple):
    """What keeps placed pods from starting: ``nodes``, and why drivers ``refused`` what claims got.

    ``lost`` is how many pods do not start. ``maybe`` are nodes where others do not, that the scheduler may as well take
    for them.
    """

    nodes: tuple[NotStarting, ...] = ()
    refused: tuple[Refusal, ...] = ()
    lost: int = 0
    maybe: tuple[NotStarting, ...] = ()


def starting(placed_pods: Sequence[PlacedPod], snapshot: Snapshot, after: ClusterState) -> Starting:
    """Which of the placed pods start, as far as known; ``after`` is the cluster with them, and with new nodes."""
    nodes = pods_not_starting(placed_pods, snapshot)
    there, refused, lost = {node.node for node in nodes}, list[Refusal](), 0
    for placed_pod in placed_pods:
        slices = after.cycle.index.candidates(placed_pod.node)
        own = list(refusals(placed_pod.claims, placed_pod.node, after.snapshot, slices, placed_pod.new.pod))
        refused += own
        lost += bool(own or (any(devices_of(placed_pod.claims)) and placed_pod.node in there))
    return Starting(nodes, tuple(refused), lost, _maybe(placed_pods, snapshot))


def pods_not_starting(placed_pods: Sequence[PlacedPod], snapshot: Snapshot) -> tuple[NotStarting, ...]:
    """The nodes on which placed pods do not start, those of the most pods first."""
    drivers: dict[str, set[str]] = defaultdict(set)
    counts = Counter(placed_pod.node for placed_pod in placed_pods)
    for placed_pod in placed_pods:
        drivers[placed_pod.node] |= _drivers(placed_pod)
    return not_starting(snapshot, ((node, drivers[node]) for node, _ in counts.most_common()))


def _maybe(placed_pods: Sequence[PlacedPod], snapshot: Snapshot) -> tuple[NotStarting, ...]:
    drivers: dict[str, set[str]] = defaultdict(set)
    for placed_pod in placed_pods:
        for name in placed_pod.instead:
            drivers[name] |= _drivers(placed_pod)
    return not_starting(snapshot, drivers.items())


def _drivers(placed_pod: PlacedPod) -> set[str]:
    return {device.driver for device in devices_of(placed_pod.claims)}
