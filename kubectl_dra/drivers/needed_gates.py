"""What a claim needs of its driver's feature gates, and whether they are on: the scheduler knows nothing of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.api.claims import DeviceClass, ResourceClaim
from kubectl_dra.api.meta import JSONObject
from kubectl_dra.cluster.snapshot import Snapshot

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
        for gate, needing in _needed(driver, parameters)
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
    from kubectl_dra.data.drivers import catalogue

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


def _needed(driver: str, parameters: Mapping[str, object]) -> Iterator[tuple[DriverGate, str]]:
    from kubectl_dra.data.drivers import catalogue

    known = catalogue().driver(driver)
    if known is not None:
        yield from known.gates_needed(parameters)
