"""Which of the placed pods do not start: their node's driver does not run, or a driver refuses what a claim got."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.refused_claims import PartOfNode, parts_of_node
from kubectl_dra.explain.not_starting import NotStarting, not_starting
from kubectl_dra.fit.place import PlacedPod


class Starting(NamedTuple):
    """What keeps placed pods from starting: ``nodes``, and the parts of a node that claims got and a driver refuses.

    ``lost`` is how many pods do not start. ``maybe`` are nodes where others do not, that the scheduler may as well take
    for them.
    """

    nodes: tuple[NotStarting, ...] = ()
    refused: tuple[PartOfNode, ...] = ()
    lost: int = 0
    maybe: tuple[NotStarting, ...] = ()


def starting(placed_pods: Sequence[PlacedPod], snapshot: Snapshot, index: SliceIndex) -> Starting:
    """How the placed pods start, as far as anything tells."""
    nodes = pods_not_starting(placed_pods, snapshot)
    there, refused, lost = {each.node for each in nodes}, list[PartOfNode](), 0
    for placed_pod in placed_pods:
        own = list(_refused(placed_pod, index))
        refused += own
        lost += bool(own or (placed_pod.devices and placed_pod.node in there))
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
    return {held.device.driver for held in placed_pod.devices}


def _refused(placed_pod: PlacedPod, index: SliceIndex) -> Iterator[PartOfNode]:
    space = placed_pod.new.pod.metadata.namespace
    gets = ((f"{space}/{held.claim}", held.device) for held in placed_pod.devices)
    yield from parts_of_node(gets, placed_pod.node, index.candidates(placed_pod.node))
