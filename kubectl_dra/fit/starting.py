"""Which of the placed pods do not start: their node's driver does not run, or a driver refuses what a claim got."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
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
    counts = Counter(placed_pod.node for placed_pod in placed_pods)
    most_first = sorted(placed_pods, key=lambda placed_pod: -counts[placed_pod.node])
    nodes = _not_starting(((placed_pod.node, placed_pod) for placed_pod in most_first), snapshot)
    maybe = _not_starting(((name, placed_pod) for placed_pod in placed_pods for name in placed_pod.instead), snapshot)
    there, refused, lost = {node.node for node in nodes}, list[Refusal](), 0
    for placed_pod in placed_pods:
        slices = after.cycle.index.candidates(placed_pod.node)
        own = list(refusals(placed_pod.claims, placed_pod.node, after.snapshot, slices, placed_pod.new.pod))
        refused += own
        lost += bool(own or (any(devices_of(placed_pod.claims)) and placed_pod.node in there))
    return Starting(nodes, tuple(refused), lost, maybe)


def _not_starting(places: Iterable[tuple[str, PlacedPod]], snapshot: Snapshot) -> tuple[NotStarting, ...]:
    """Of nodes that pods get, those on which they do not start."""
    drivers: dict[str, set[str]] = defaultdict(set)
    for name, placed_pod in places:
        drivers[name] |= {device.driver for device in devices_of(placed_pod.claims)}
    return not_starting(snapshot, drivers.items())
