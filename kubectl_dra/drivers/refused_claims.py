"""Claims that the scheduler allocates and their driver refuses, as far as the vendors' files and its gates tell it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kubectl_dra.api.claims import DeviceClass, ResourceClaim
from kubectl_dra.api.meta import JSONObject
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID, ResourceSlice, newest_slices
from kubectl_dra.cluster.claim_relation import same_uid
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import catalogue

if TYPE_CHECKING:
    from kubectl_dra.data.driver_releases import DriverGate
    from kubectl_dra.drivers.health import NodeDriver


class GateNeeded(NamedTuple):
    """A claim needs a gate of its driver, as ``needing`` in its configuration says, or in that of a DeviceClass."""

    driver: str
    gate: DriverGate
    claim: str
    needing: str
    device_class: str = ""

    def known_on(self, node: str, snapshot: Snapshot) -> bool:
        """Whether the driver's pod on a node was seen, and tells its gates."""
        return bool(_telling(snapshot, self.driver, node))


def gates_needed(
    claim: ResourceClaim,
    classes: Mapping[str, DeviceClass],
    had: Mapping[str, Collection[str]] | None = None,
) -> Iterator[GateNeeded]:
    """The gates that configurations of a claim and of its classes need; with the requests ``had`` of each driver, those
    that apply to them.

    Of configurations of one kind the last one that names a request, or all of them, applies to it; those of classes
    come before the claim's own.
    """
    applying: dict[tuple[str, object, str], tuple[Mapping[str, object], str]] = {}
    for number, (config, named, device_class) in enumerate(_configs(claim, classes)):
        opaque = config.get("opaque") or {}
        driver, parameters = str(opaque.get("driver") or ""), opaque.get("parameters")
        if not isinstance(parameters, dict):
            continue
        requests = [str(number)] if had is None else had.get(driver, ())
        for request in requests:
            if had is None or not named or request in named or request.partition("/")[0] in named:
                applying[driver, parameters.get("kind"), request] = parameters, device_class
    needed = (
        GateNeeded(driver, gate, claim.key, needing, device_class)
        for (driver, _, _), (parameters, device_class) in applying.items()
        if (known := catalogue().driver(driver)) is not None
        for gate, needing in known.gates_needed(parameters)
    )
    yield from {(need.driver, need.gate.name): need for need in needed}.values()


def _configs(
    claim: ResourceClaim, classes: Mapping[str, DeviceClass]
) -> Iterator[tuple[JSONObject, Sequence[str], str]]:
    """Each configuration, the requests that it names, all if it names none, and the class that has it."""
    for request in claim.requests:
        for alternative in request.alternatives():
            known = classes.get(alternative.device_class)
            for config in known.config if known is not None else ():
                yield config, (request.result_name(alternative),), alternative.device_class
    for config in claim.config:
        yield config, config.get("requests") or (), ""


def gate_named(message: str, drivers: Sequence[str]) -> DriverGate | None:
    """The feature gate of one of the drivers that its error names, where that is off by default."""
    known = filter(None, map(catalogue().driver, drivers))
    gates = (gate for driver in known for gate in driver.gates if not gate.on)
    return next((gate for gate in gates if re.search(rf"\b{gate.name}\b", message)), None)


def gate_off(snapshot: Snapshot, driver: str, gate: DriverGate, node: str = "") -> Sequence[NodeDriver]:
    """The driver on the node, or on all nodes where its pod tells its gates, if that has the gate off; else nothing."""
    rows = _telling(snapshot, driver, node)
    off = [row for row in rows if row.pod is not None and not dict(row.pod.gates).get(gate.name, gate.on)]
    return off if len(off) == len(rows) else ()


def gate_on(snapshot: Snapshot, driver: str, gate: DriverGate) -> bool:
    """Whether the driver's pods tell their gates, and all have this one on."""
    rows = _telling(snapshot, driver)
    return bool(rows) and all(row.pod is not None and dict(row.pod.gates).get(gate.name, gate.on) for row in rows)


def _telling(snapshot: Snapshot, driver: str, node: str = "") -> Sequence[NodeDriver]:
    """The driver on the node, or on all nodes, where its pod tells its gates.

    On a node that is only supposed it is taken to have the gates that it has everywhere else.
    """
    if not snapshot.has_plugins:
        return ()
    from kubectl_dra.drivers.drivers_on_nodes import joined

    everywhere = not node or node in snapshot.supposed
    own = [row for row in joined(snapshot).rows if row.driver == driver and (everywhere or row.node == node)]
    return [row for row in own if row.pod is not None and row.pod.gates_known]


# What a claim needs of its driver's feature gates, and whether they are on: the scheduler knows nothing of them.


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
