"""Claims that the scheduler allocates and their driver refuses, as far as the vendors' files tell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID, ResourceSlice, newest_slices
from kubectl_dra.cluster.claim_relation import same_uid
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import catalogue

if TYPE_CHECKING:
    from kubectl_dra.data.driver_releases import DriverGate


class PartOfNode(NamedTuple):
    """A claim has ``got`` of the ``of`` devices of a node, whose driver gives a claim all of them or none."""

    claim: str
    driver: str
    node: str
    got: int
    of: int


class GateLacking(NamedTuple):
    """A claim needs a gate of its driver, as ``needing`` in its configuration says, or in that of its
    ``device_class``, and it is off on a node.
    """

    claim: str
    driver: str
    node: str
    gate: DriverGate
    needing: str
    device_class: str = ""


class OfSeveralPods(NamedTuple):
    """A claim whose driver gives its devices to one pod only, and which these ``others`` use, too."""

    claim: str
    driver: str
    node: str
    others: tuple[str, ...]


Refusal: TypeAlias = PartOfNode | GateLacking | OfSeveralPods
"""Why a driver is known to refuse a claim."""


def refusals(
    claims: Iterable[ResourceClaim],
    node: str,
    snapshot: Snapshot,
    slices: Sequence[ResourceSlice],
    pod: Pod | None = None,
) -> Iterator[Refusal]:
    """Why drivers refuse what claims have or get on a node, of a pod if there is one, as far as that is known.

    ``slices`` are those that may concern the node.
    """
    claims = {claim.key: claim for claim in claims if claim.results}.values()
    if pod is not None:
        for claim in claims:
            yield from _of_several_pods(claim, node, pod)
    yield from parts_of_node(((claim.key, device) for claim in claims for device in claim.devices), node, slices)
    for claim in claims if snapshot.has_plugins else ():
        from kubectl_dra.drivers.needed_gates import gate_off, gates_needed

        requests: dict[str, set[str]] = {}
        for result in claim.results:
            requests.setdefault(result.device.driver, set()).add(result.request)
        for needed in gates_needed(claim, snapshot.classes, requests):
            if gate_off(snapshot, needed.driver, needed.gate, node):
                yield GateLacking(claim.key, needed.driver, node, needed.gate, needed.needing, needed.device_class)


def _of_several_pods(claim: ResourceClaim, node: str, pod: Pod) -> Iterator[OfSeveralPods]:
    driver = for_one_pod(device.driver for device in claim.devices)
    meta = pod.metadata
    others = [
        use for use in claim.reserved_for if use.is_pod and not (use.name == meta.name and same_uid(use.uid, meta.uid))
    ]
    if driver and others:
        names = tuple(f"{claim.metadata.namespace}/{use.name}" for use in others)
        yield OfSeveralPods(claim.key, driver, node, names)


def parts_of_node(
    held: Iterable[tuple[str, DeviceID]], node: str, slices: Sequence[ResourceSlice]
) -> Iterator[PartOfNode]:
    """The claims, by their keys with their devices on a node, that a driver refuses because they have only a part.

    ``slices`` are those that may concern the node.
    """
    whole, given = catalogue().whole_node, dict[tuple[str, str], set[DeviceID]]()
    for claim, device in held:
        if device.driver in whole:
            given.setdefault((claim, device.driver), set()).add(device)
    for (claim, driver), devices in given.items():
        published = published_on(node, driver, slices)
        if len(devices) < published:
            yield PartOfNode(claim, driver, node, len(devices), published)


def published_on(node: str, driver: str, slices: Iterable[ResourceSlice]) -> int:
    """Number of devices that a driver publishes for a node alone."""
    own = (slice_ for slice_ in slices if slice_.pool.driver == driver and slice_.scope.node_name == node)
    return sum(len(slice_.devices) for newest in newest_slices(own).values() for slice_ in newest)


def any_of_whole_nodes(drivers: Iterable[str]) -> bool:
    """Whether one of these drivers gives a claim all devices of a node or none."""
    return not catalogue().whole_node.isdisjoint(drivers)


def driver_of_whole_nodes(device_class: str) -> str:
    """The driver that installs a class and gives a claim all devices of a node or none; empty if it is another."""
    driver = catalogue().of_class(device_class)
    return driver.name if driver is not None and driver.name in catalogue().whole_node else ""


def for_one_pod(drivers: Iterable[str]) -> str:
    """The first of these drivers that gives the devices of a claim to one pod only; empty if none does."""
    return min(catalogue().one_pod.intersection(drivers), default="")
